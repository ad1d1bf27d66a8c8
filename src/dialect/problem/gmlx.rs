//! Failures in the shape of gmlx's server: `error` with `type`, `message` and what goes with the type.

use std::time::Duration;

use actors::{ReadError, RejectReason};
use serde_json::{Map, Value, json};

use super::{Fault, FullStatus, GatewayFault, Refusal, RequestFault, systemone};
use crate::dialect::gmlx::{INVALID_REQUEST, NO_IMAGES, VALIDATION};
use crate::error::{DecideError, Problem};

/// Between these a refused client is told to come back.
const RETRY_AFTER_MIN: Duration = Duration::from_secs(2);
const RETRY_AFTER_MAX: Duration = Duration::from_mins(1);

/// Codes of faults that are the body's as a whole, or the prompt's; all others are a field's.
const OF_BODY: [&str; 9] = [
    INVALID_REQUEST,
    "json_invalid",
    "json_depth",
    "json_size",
    "duplicate_key",
    "lone_surrogate",
    "encoding_invalid",
    "too_long",
    "oversize",
];

/// The same of the JSON text itself.
const OF_JSON: [&str; 5] =
    ["json_invalid", "json_depth", "json_size", "duplicate_key", "lone_surrogate"];

/// A failure in this dialect's words: status, type, message, and what stands beside them.
struct Told {
    status: u16,
    error_type: &'static str,
    message: String,
    more: Map<String, Value>,
}

/// The `gmlx` shape. A full queue is 503 whatever the server's own status for it: clients of gmlx know
/// no other.
pub(in crate::dialect) fn gmlx(fault: &Fault, _: FullStatus) -> Refusal {
    let usual = systemone(fault, FullStatus::ServiceUnavailable);
    let told = match fault {
        Fault::Decide(error) => of_decision(error, &usual),
        Fault::Request(fault) => of_request(fault, &usual),
        Fault::Image(_) => told(400, INVALID_REQUEST, NO_IMAGES),
    };
    let mut error = told.more;
    error.insert("type".to_owned(), json!(told.error_type));
    error.insert("message".to_owned(), json!(told.message));
    let body = json!({"error": error}).to_string();
    let retry_after = usual.retry_after.map(|wait| wait.clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX));
    Refusal { status: told.status, body, retry_after, ..usual }
}

fn told(status: u16, error_type: &'static str, message: &(impl ToString + ?Sized)) -> Told {
    Told { status, error_type, message: message.to_string(), more: Map::new() }
}

fn of_decision(error: &DecideError, usual: &Refusal) -> Told {
    match error {
        DecideError::Invalid(problems) => of_body(problems),
        DecideError::Unsupported(_)
        | DecideError::Capability(_)
        | DecideError::Template(_)
        | DecideError::NoReadStrategy(_) => told(400, INVALID_REQUEST, error),
        DecideError::UnknownModel { available, .. } => {
            with(told(404, "model_not_found", error), [("available_models", json!(available))])
        }
        DecideError::UnknownProfile { available, .. } => {
            let unknown = told(400, "unknown_profile", error);
            with(unknown, [("available_profiles", json!(available))])
        }
        DecideError::RegistrationsFull(full) => told(503, "server_overloaded", full),
        DecideError::Read(error) => of_read(error, usual),
        DecideError::Internal { .. } => told(500, "server_error", "the decision failed"),
    }
}

fn with<const COUNT: usize>(told: Told, more: [(&str, Value); COUNT]) -> Told {
    let more = more.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    Told { more, ..told }
}

/// The first fault is the one that is told.
fn of_body(problems: &[Problem]) -> Told {
    let Some(first) = problems.first() else {
        return told(400, INVALID_REQUEST, "the request is invalid");
    };
    if first.code.starts_with("image") {
        return told(400, INVALID_REQUEST, NO_IMAGES);
    }
    if OF_JSON.contains(&first.code) {
        return told(400, INVALID_REQUEST, &format!("invalid body: {}", first.message));
    }
    if OF_BODY.contains(&first.code) {
        return told(400, INVALID_REQUEST, &first.message);
    }
    told(422, VALIDATION, &first.message)
}

fn of_read(error: &ReadError, usual: &Refusal) -> Told {
    match error {
        ReadError::Rejected(reason) => of_rejection(reason, usual),
        ReadError::Expired { .. } => told(504, "timeout", error),
        ReadError::Engine(_)
        | ReadError::Cancelled
        | ReadError::Draining
        | ReadError::Unavailable => server_error(usual),
    }
}

/// A failure of ours, with the status and message that it has in other dialects.
fn server_error(usual: &Refusal) -> Told {
    told(usual.status, "server_error", &message(&usual.body))
}

fn of_rejection(reason: &RejectReason, usual: &Refusal) -> Told {
    let full = || told(503, "server_overloaded", reason);
    let depth = |depth: u64, cap: u64| {
        with(full(), [("queue_depth", json!(depth)), ("queue_cap", json!(cap))])
    };
    match reason {
        RejectReason::QueueFull { reads_waiting, reads_max, .. }
        | RejectReason::TenantFull { reads_waiting, reads_max, .. } => {
            depth(*reads_waiting as u64, *reads_max as u64)
        }
        RejectReason::TokensFull { tokens_waiting, tokens_max, .. } => {
            depth(*tokens_waiting, *tokens_max)
        }
        RejectReason::PrewarmsFull { waiting, waiting_max, .. } => {
            depth(*waiting as u64, *waiting_max as u64)
        }
        RejectReason::WaitTooLong { .. }
        | RejectReason::PastDeadline { .. }
        | RejectReason::TenantRate { .. }
        | RejectReason::Displaced { .. } => full(),
        RejectReason::TooLong { .. } | RejectReason::Oversize { .. } => {
            told(400, INVALID_REQUEST, reason)
        }
        RejectReason::Draining | RejectReason::EngineDead(_) => server_error(usual),
    }
}

fn of_request(fault: &RequestFault, usual: &Refusal) -> Told {
    match fault {
        RequestFault::Unauthorized => told(401, "authentication_error", fault),
        RequestFault::NotAllowed { .. } => told(403, "permission_error", fault),
        RequestFault::RateLimited { .. } => told(429, "rate_limit_error", fault),
        RequestFault::NotFound { .. }
        | RequestFault::NoPrewarm { .. }
        | RequestFault::NoTask { .. }
        | RequestFault::UnknownDialect { in_path: true, .. } => told(404, "not_found", fault),
        RequestFault::BodiesFull { .. } => told(503, "server_overloaded", fault),
        RequestFault::BodyTimeout { .. } => told(usual.status, "timeout", fault),
        RequestFault::EngineDead { .. }
        | RequestFault::Panicked
        | RequestFault::Gateway(GatewayFault::Lost) => server_error(usual),
        RequestFault::Gateway(GatewayFault::NoBackend | GatewayFault::Full { .. }) => {
            told(503, "server_overloaded", fault)
        }
        RequestFault::Gateway(GatewayFault::Timeout { .. }) => told(usual.status, "timeout", fault),
        RequestFault::MediaType { .. }
        | RequestFault::Damaged { .. }
        | RequestFault::Window { .. }
        | RequestFault::DialectHeader { .. } => told(400, INVALID_REQUEST, fault),
        RequestFault::UnknownDialect { in_path: false, .. }
        | RequestFault::MethodNotAllowed { .. }
        | RequestFault::Header { .. }
        | RequestFault::Host { .. }
        | RequestFault::Query { .. }
        | RequestFault::Encoding { .. }
        | RequestFault::UriTooLong { .. }
        | RequestFault::TooManyHeaders { .. }
        | RequestFault::BodyTooLarge { .. }
        | RequestFault::BodyBroken => told(usual.status, INVALID_REQUEST, fault),
    }
}

/// The message of a failure in the `systemone` shape: what may be told of it.
fn message(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let message = body["detail"]["message"].as_str();
    message.unwrap_or("the request was refused").to_owned()
}

#[cfg(test)]
mod tests {
    use actors::{EngineError, Lane};

    use super::*;
    use crate::dialect::Dialect;

    fn shape(fault: impl Into<Fault>) -> (u16, Value, Option<u64>) {
        let refusal = Dialect::Gmlx.refusal(&fault.into(), FullStatus::default());
        let body = serde_json::from_str(&refusal.body).unwrap();
        (refusal.status, body, refusal.retry_after.map(|wait| wait.as_secs()))
    }

    fn rejected(reason: RejectReason) -> Fault {
        DecideError::from(ReadError::Rejected(reason)).into()
    }

    #[test]
    fn a_full_queue_is_503_with_its_depth_and_a_wait_between_2_and_60_s() {
        let full =
            |retry_after| RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
        let (status, body, wait) = shape(rejected(full(Duration::from_millis(10))));
        assert_eq!((status, wait), (503, Some(2)));
        let message = "7 reads wait, at most 4 may";
        let error = json!({"type": "server_overloaded", "message": message,
                           "queue_depth": 7, "queue_cap": 4});
        assert_eq!(body, json!({"error": error}));
        assert_eq!(shape(rejected(full(Duration::from_secs(5)))).2, Some(5));
        assert_eq!(shape(rejected(full(Duration::from_mins(5)))).2, Some(60));
    }

    #[test]
    fn statuses_and_types_are_those_of_the_table() {
        let invalid =
            |code| DecideError::Invalid(vec![Problem::new(Vec::new(), code, "x".to_owned())]);
        let (name, available) = ("p".to_owned(), vec!["fast".to_owned()]);
        let model = DecideError::UnknownModel { name: name.clone(), available: available.clone() };
        let expired = ReadError::Expired { waited: Duration::from_mins(1), spent: None };
        let (lane, wait) = (Lane::Normal, Duration::from_secs(9));
        let late = RejectReason::WaitTooLong {
            lane,
            wait,
            limit: wait,
            downgrade: None,
            retry_after: wait,
        };
        for (fault, status, error_type) in [
            (invalid("json_invalid").into(), 400, INVALID_REQUEST),
            (invalid("duplicate_key").into(), 400, INVALID_REQUEST),
            (invalid("image_invalid").into(), 400, INVALID_REQUEST),
            (invalid("too_long").into(), 400, INVALID_REQUEST),
            (invalid(INVALID_REQUEST).into(), 400, INVALID_REQUEST),
            (invalid(VALIDATION).into(), 422, VALIDATION),
            (rejected(RejectReason::TooLong { tokens: 9, tokens_max: 8 }), 400, INVALID_REQUEST),
            (rejected(RejectReason::Oversize { bytes: 9, bytes_max: 8 }), 400, INVALID_REQUEST),
            (rejected(late), 503, "server_overloaded"),
            (rejected(RejectReason::Draining), 503, "server_error"),
            (DecideError::UnknownProfile { name, available }.into(), 400, "unknown_profile"),
            (model.into(), 404, "model_not_found"),
            (DecideError::NoReadStrategy("x".to_owned()).into(), 400, INVALID_REQUEST),
            (DecideError::from(expired).into(), 504, "timeout"),
            (
                DecideError::from(ReadError::Engine(EngineError::NonFinite)).into(),
                500,
                "server_error",
            ),
            (DecideError::Internal { detail: "x".to_owned() }.into(), 500, "server_error"),
            (RequestFault::Unauthorized.into(), 401, "authentication_error"),
            (RequestFault::MediaType { found: "x".to_owned() }.into(), 400, INVALID_REQUEST),
            (
                RequestFault::NotFound { method: "GET".to_owned(), path: "/x".to_owned() }.into(),
                404,
                "not_found",
            ),
            (RequestFault::BodyTooLarge { bytes_max: 1 }.into(), 413, INVALID_REQUEST),
            (RequestFault::EngineDead { reason: "x".to_owned() }.into(), 503, "server_error"),
        ] {
            let fault: Fault = fault;
            let (found, body, _) = shape(fault.clone());
            assert_eq!((found, &body["error"]["type"]), (status, &json!(error_type)), "{fault:?}");
            assert!(body["error"]["message"].is_string(), "{body}");
        }
    }

    #[test]
    fn an_unknown_profile_lists_those_that_there_are() {
        let (name, available) = ("p".to_owned(), vec!["fast".to_owned(), "wide".to_owned()]);
        let (_, body, _) = shape(DecideError::UnknownProfile { name, available });
        assert_eq!(body["error"]["available_profiles"], json!(["fast", "wide"]));
        assert!(body["error"]["message"].as_str().unwrap().contains("no profile p"));
    }

    #[test]
    fn what_the_engine_says_stays_in_the_log() {
        for error in [
            EngineError::Forward("/secret/path".to_owned()),
            EngineError::Panic("/secret/path".to_owned()),
            EngineError::Dead("/secret/path".to_owned()),
            EngineError::OutOfMemory("/secret/path".to_owned()),
        ] {
            let (status, body, _) = shape(DecideError::from(ReadError::Engine(error)));
            assert!(status >= 500 && !body.to_string().contains("secret"), "{body}");
        }
        let (_, body, _) = shape(DecideError::Internal { detail: "/secret".to_owned() });
        assert!(!body.to_string().contains("secret"));
    }
}
