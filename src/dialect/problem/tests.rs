//! The table of failures: statuses, bodies, what is told and what is not.

use super::*;
use crate::error::{Conflict, RegistrationsFull};

fn shape(fault: impl Into<Fault>) -> (u16, Value, Option<Duration>) {
    let refusal = systemone(&fault.into(), FullStatus::default());
    (refusal.status, serde_json::from_str(&refusal.body).unwrap(), refusal.retry_after)
}

#[test]
fn a_full_queue_is_429_with_its_own_retry_after() {
    let retry_after = Duration::from_millis(1_500);
    let reason = RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
    let (status, body, after) = shape(DecideError::from(ReadError::Rejected(reason)));
    assert_eq!((status, after), (429, Some(retry_after)));
    assert_eq!(body["detail"]["error_type"], "rate_limit_error");
    assert_eq!(body["detail"]["message"], "7 reads wait, at most 4 may");
}

#[test]
fn a_full_queue_is_503_where_that_is_asked_for_and_all_else_stays() {
    let retry_after = Duration::from_millis(1_500);
    let (waiting, waiting_max, of_tenant) = (4, 4, false);
    let limited = [
        RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after },
        RejectReason::TenantFull { reads_waiting: 7, reads_max: 4, retry_after },
        RejectReason::PrewarmsFull { waiting, waiting_max, of_tenant, retry_after },
        RejectReason::Displaced { retry_after },
    ];
    for reason in limited {
        let fault = Fault::from(DecideError::from(ReadError::Rejected(reason)));
        let usual = systemone(&fault, FullStatus::TooManyRequests);
        let asked = systemone(&fault, FullStatus::ServiceUnavailable);
        assert_eq!((usual.status, asked.status), (429, 503));
        assert_eq!(Refusal { status: 429, ..asked }, usual);
    }
    let dead = RejectReason::EngineDead("x".to_owned());
    let long = RejectReason::TooLong { tokens: 9, tokens_max: 8 };
    for (reason, status) in [(RejectReason::Draining, 503), (dead, 503), (long, 422)] {
        let fault = Fault::from(DecideError::from(ReadError::Rejected(reason)));
        assert_eq!(systemone(&fault, FullStatus::ServiceUnavailable).status, status);
    }
    assert_eq!("503".parse(), Ok(FullStatus::ServiceUnavailable));
    assert!("500".parse::<FullStatus>().unwrap_err().contains("\"500\""));
}

#[test]
fn too_many_registrations_are_told_in_words_of_their_own() {
    let full = RegistrationsFull::OfKey { count: 32, count_max: 32 };
    let fault = Fault::from(DecideError::from(full));
    let refusal = systemone(&fault, FullStatus::default());
    assert_eq!((refusal.status, refusal.reason), (429, "registrations_full"));
    assert_eq!(refusal.retry_after, Some(Duration::from_secs(5)));
    let message = "32 registrations of this tenant are under way, at most 32 may be";
    assert!(refusal.body.contains(message), "{}", refusal.body);
    assert_eq!(systemone(&fault, FullStatus::ServiceUnavailable).status, 503);
    let full = RegistrationsFull::Bytes { bytes: 7, held: 9, bytes_max: 10 };
    let refusal = decisio(&DecideError::from(full).into(), FullStatus::default());
    let body: Value = serde_json::from_str(&refusal.body).unwrap();
    assert_eq!((refusal.status, refusal.reason), (429, "registrations_full"));
    assert!(body["detail"].as_str().unwrap().contains("it would be more than 10"), "{body}");
}

#[test]
fn what_servers_share_is_refused_in_the_words_of_each_dialect() {
    let conflict = Conflict { record: "task refunds".to_owned(), based_on: 41, current: 43 };
    let conflict = Fault::from(DecideError::from(conflict));
    let lost = Fault::from(DecideError::StoreLost { detail: "db.internal:5432".to_owned() });
    let full = FullStatus::ServiceUnavailable;
    let refusal = systemone(&conflict, full);
    assert_eq!((refusal.status, refusal.reason), (409, "version_conflict"));
    assert_eq!(refusal.retry_after, None, "to send it again as it is would undo what others did");
    let named = |text: &str| refusal.body.contains(text);
    assert!(named("task refunds") && named("version 41,") && named("version 43 "), "{refusal:?}");
    for dialect in [systemone, decisio, openai, vllm, selfserve, gmlx] {
        assert_eq!(dialect(&conflict, full).status, 409);
        let refusal = dialect(&lost, full);
        assert_eq!((refusal.status, refusal.reason), (503, "store_unavailable"));
        assert_eq!(refusal.retry_after, Some(STORE_RETRY_AFTER));
        assert!(!refusal.body.contains("db.internal"), "{}", refusal.body);
    }
}

#[test]
fn case_51_a_prompt_too_long_is_422_with_both_lengths() {
    let reason = RejectReason::TooLong { tokens: 40_112, tokens_max: 32_768 };
    let (status, body, _) = shape(DecideError::from(ReadError::Rejected(reason)));
    assert_eq!(status, 422);
    assert_eq!(
        body["detail"],
        json!([{
            "loc": ["body", "state"],
            "msg": "the prompt is 40112 tokens, at most 32768 fit",
            "type": "too_long",
        }])
    );
}

#[test]
fn a_model_that_nothing_can_be_read_from_is_422_unsupported_capability() {
    let fault = DecideError::NoReadStrategy("bert is not causal".to_owned());
    let refusal = systemone(&Fault::from(fault.clone()), FullStatus::default());
    assert_eq!(refusal.reason, "unsupported_capability");
    let (status, body, retry_after) = shape(fault);
    assert_eq!((status, retry_after), (422, None));
    assert_eq!(body["detail"][0]["type"], "unsupported_capability");
    assert_eq!(body["detail"][0]["loc"], json!(["body"]));
    let message = body["detail"][0]["msg"].as_str().unwrap();
    assert!(message.contains("bert is not causal"), "{message}");
}

#[test]
fn the_reason_is_too_long_where_nothing_else_is_wrong() {
    let problem = |code| Problem::new(vec!["x".into()], code, "x".to_owned());
    let reason = |codes: &[&'static str]| {
        let problems = codes.iter().map(|code| problem(code)).collect();
        systemone(&DecideError::Invalid(problems).into(), FullStatus::default()).reason
    };
    assert_eq!(reason(&["too_long"]), "too_long");
    assert_eq!(reason(&["too_long", "too_long"]), "too_long");
    assert_eq!(reason(&["oversize", "oversize"]), "oversize");
    assert_eq!(reason(&["too_long", "oversize"]), "invalid");
    assert_eq!(reason(&["too_long", "missing"]), "invalid");
    assert_eq!(reason(&["missing"]), "invalid");
}

#[test]
fn a_refusal_is_called_the_same_on_the_wire_as_in_the_metrics() {
    let retry_after = Duration::from_secs(1);
    let (waiting, waiting_max) = (4, 4);
    let (lane, wait, limit, left) = (Lane::Normal, retry_after, retry_after, retry_after);
    for reason in [
        RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after },
        RejectReason::TokensFull { tokens_waiting: 7, tokens_max: 4, retry_after },
        RejectReason::WaitTooLong { lane, wait, limit, downgrade: None, retry_after },
        RejectReason::PastDeadline { wait, left, downgrade: None, retry_after },
        RejectReason::TenantFull { reads_waiting: 7, reads_max: 4, retry_after },
        RejectReason::TenantRate { tokens: 9, rate: 1, burst: 1, retry_after },
        RejectReason::PrewarmsFull { waiting, waiting_max, of_tenant: true, retry_after },
        RejectReason::Displaced { retry_after },
        RejectReason::TooLong { tokens: 9, tokens_max: 8 },
        RejectReason::Oversize { bytes: 9, bytes_max: 8 },
        RejectReason::Draining,
        RejectReason::EngineDead("x".to_owned()),
    ] {
        let name = reason.as_str();
        let fault = Fault::from(DecideError::from(ReadError::Rejected(reason)));
        assert_eq!(systemone(&fault, FullStatus::default()).reason, name);
    }
    let restarting = Fault::from(DecideError::from(ReadError::Unavailable));
    assert_eq!(systemone(&restarting, FullStatus::default()).reason, "unavailable");
}

#[test]
fn engine_messages_stay_in_the_log() {
    for error in [
        EngineError::Forward("/secret/path".to_owned()),
        EngineError::Panic("/secret/path".to_owned()),
        EngineError::Dead("/secret/path".to_owned()),
        EngineError::OutOfMemory("/secret/path".to_owned()),
    ] {
        let (status, body, _) = shape(DecideError::from(ReadError::Engine(error)));
        assert!(status >= 500);
        assert_eq!(body["detail"]["error_type"], "internal_error");
        assert!(!body.to_string().contains("secret"));
    }
}

#[test]
fn statuses_are_those_of_the_contract() {
    let broken = DecideError::Internal { detail: "x".to_owned() };
    let expired = ReadError::Expired { waited: Duration::from_mins(1), spent: None };
    let not_found = RequestFault::NotFound { method: "GET".to_owned(), path: "/x".to_owned() };
    for (fault, status, error_type) in [
        (Fault::from(RequestFault::Unauthorized), 401, "authentication_error"),
        (not_found.into(), 404, "not_found"),
        (DecideError::Unsupported("images".to_owned()).into(), 400, "api_usage_error"),
        (RequestFault::BodyTooLarge { bytes_max: 1 }.into(), 413, "api_usage_error"),
        (DecideError::from(expired).into(), 504, "timeout"),
        (broken.into(), 500, "internal_error"),
        (DecideError::from(ReadError::Draining).into(), 503, "internal_error"),
    ] {
        let (found, body, _) = shape(fault);
        assert_eq!((found, &body["detail"]["error_type"]), (status, &json!(error_type)));
    }
}

#[test]
fn a_loc_does_not_grow_with_the_request() {
    let path = vec![Step::Key("k".repeat(10_000)), 3.into()];
    let problem = Problem::new(path, "missing", "x".to_owned());
    let (_, body, _) = shape(DecideError::Invalid(vec![problem]));
    assert!(body.to_string().len() < 300);
    assert_eq!(body["detail"][0]["loc"][2], 3);
}
