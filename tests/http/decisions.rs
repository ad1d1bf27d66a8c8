//! Headers of requests and responses, and failures of the service as they reach the client.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{Lane, ReadError, RejectReason};
use axum::http::Request;
use docket::error::DecideError;
use docket::http::{HttpConfig, router};

use crate::support::{NOUL, Stub, call, plain, post, request};

#[tokio::test]
async fn a_decision_carries_its_times_and_tokens() {
    let reply = post(&plain(), NOUL).await;
    for name in ["queue-ms", "state-ms", "engine-ms", "total-ms"] {
        let value = reply.header(&format!("x-docket-{name}"));
        let (_, decimals) = value.split_once('.').unwrap();
        assert!(decimals.len() == 1 && value.parse::<f64>().is_ok(), "{name}: {value}");
    }
    assert_eq!(reply.header("x-docket-computed-tokens"), "15");
    assert_eq!(reply.header("x-docket-cached-tokens"), "5");
    assert_eq!(reply.header("x-docket-lane"), "normal");
    assert!(!reply.headers.contains_key("x-docket-wait-behind"));
    assert!(!reply.headers.contains_key("x-docket-ignored"));
    let timing = reply.header("server-timing");
    let times: Vec<f64> = timing
        .split(", ")
        .map(|entry| entry.split_once(";dur=").unwrap().1.parse().unwrap())
        .collect();
    assert_eq!(times.len(), 6);
    assert!((times[..5].iter().sum::<f64>() - times[5]).abs() <= 1.0, "{timing}");
    let length: usize = reply.header("content-length").parse().unwrap();
    assert_eq!(length, reply.body.len());
}

#[tokio::test]
async fn diagnostics_are_given_on_request() {
    let router = plain();
    assert!(post(&router, NOUL).await.json().get("x_diagnostics").is_none());
    for field in ["diagnostics", "x_diagnostics"] {
        let body = NOUL.replacen('{', &format!("{{\"{field}\":true,"), 1);
        let reply = post(&router, body).await.json();
        assert_eq!(reply["x_diagnostics"]["prompt_tokens"], 20);
        assert_eq!(reply["answers"]["q"]["x_diagnostics"]["label_mass"], 1.0);
    }
}

#[tokio::test]
async fn ignored_fields_are_listed_in_ascii() {
    let body = NOUL.replacen('{', "{\"seed\":1,\"\u{e9}\\n\":2,", 1);
    let reply = post(&plain(), body).await;
    assert_eq!(reply.header("x-docket-ignored"), r#"["seed","\u00e9\u000a"]"#);
}

#[tokio::test]
async fn ignored_fields_are_listed_whatever_the_answer() {
    let typo = r#"{"state":1,"seed":2,"questions":{"q":{"type":"choice","critera":["a"]}}}"#;
    let reply = post(&plain(), typo).await;
    assert_eq!(reply.fault(), "missing");
    assert_eq!(reply.header("x-docket-ignored"), r#"["seed","questions.q.critera"]"#);
    let prewarm = request("POST", "/v1/prewarm", r#"{"stat":1}"#);
    let reply = call(&plain(), prewarm).await;
    assert_eq!(
        (reply.fault().as_str(), reply.header("x-docket-ignored")),
        ("missing", r#"["stat"]"#)
    );
    let stub = Stub { error: Some(ReadError::Draining.into()), ..Stub::default() };
    let router = router(Arc::new(stub), HttpConfig::default());
    let reply = post(&router, NOUL.replacen('{', "{\"seed\":1,", 1)).await;
    assert_eq!((reply.status.as_u16(), reply.header("x-docket-ignored")), (503, r#"["seed"]"#));
}

#[tokio::test]
async fn headers_speak_where_the_body_is_silent() {
    let stub = Arc::new(Stub::default());
    let router = router(Arc::clone(&stub) as _, HttpConfig::default());
    for (body, lane, timeout_ms) in [
        (NOUL.to_owned(), Lane::Urgent, 250),
        (NOUL.replacen('{', r#"{"priority":"batch","timeout_ms":90,"#, 1), Lane::Batch, 90),
    ] {
        let sent = Request::post("/v1/systemone")
            .header("x-docket-priority", "urgent")
            .header("x-docket-timeout-ms", "250")
            .body(body.into())
            .unwrap();
        assert_eq!(call(&router, sent).await.status, 200);
        let (caller, decision) = stub.last.lock().unwrap().take().unwrap();
        assert_eq!(&*caller.tenant.0, "default");
        assert_eq!(decision.lane, Some(lane));
        assert_eq!(decision.timeout, Some(Duration::from_millis(timeout_ms)));
    }
    let wrong = Request::post("/v1/systemone").header("x-docket-priority", "high");
    let reply = call(&router, wrong.body(NOUL.into()).unwrap()).await;
    assert_eq!(reply.failure(), (400, "api_usage_error".to_owned()));
}

#[tokio::test]
async fn request_ids_are_taken_over_or_made() {
    let router = plain();
    let sent = Request::get("/health").header("x-request-id", "trace-7<>").body("".into()).unwrap();
    assert_eq!(call(&router, sent).await.header("x-typesafe-request-id"), "trace-7");
    let reply = call(&router, request("GET", "/nowhere", "")).await;
    assert_eq!(reply.header("x-typesafe-request-id").len(), 36);
}

#[tokio::test]
async fn failures_of_the_service_have_their_status() {
    let retry_after = Duration::from_millis(2_400);
    let full = RejectReason::QueueFull { reads_waiting: 9, reads_max: 8, retry_after };
    let displaced = RejectReason::Displaced { retry_after };
    for (error, status, error_type, reason) in [
        (ReadError::Rejected(full).into(), 429, "rate_limit_error", "queue_full"),
        (ReadError::Rejected(displaced).into(), 429, "rate_limit_error", "displaced"),
        (
            ReadError::Expired { waited: Duration::from_secs(1), spent: None }.into(),
            504,
            "timeout",
            "expired",
        ),
        (ReadError::Draining.into(), 503, "internal_error", "draining"),
        (DecideError::Unsupported("no images".to_owned()), 400, "api_usage_error", "unsupported"),
        (DecideError::Internal { detail: "secret".to_owned() }, 500, "internal_error", "internal"),
    ] {
        let stub = Stub { error: Some(error), ..Stub::default() };
        let reply = post(&router(Arc::new(stub), HttpConfig::default()), NOUL).await;
        assert_eq!(reply.failure(), (status, error_type.to_owned()));
        assert_eq!(reply.header("x-docket-reason"), reason);
        assert!(!String::from_utf8_lossy(&reply.body).contains("secret"));
        if status == 429 {
            assert_eq!(reply.header("retry-after-ms"), "2400");
            assert_eq!(reply.header("retry-after"), "3");
        }
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_names_the_lane_that_would_do() {
    let (wait, limit) = (Duration::from_secs(9), Duration::from_secs(1));
    let reason = RejectReason::WaitTooLong {
        lane: Lane::Urgent,
        wait,
        limit,
        downgrade: Some(Lane::Batch),
        retry_after: wait.saturating_sub(limit),
    };
    let stub = Stub { error: Some(ReadError::Rejected(reason).into()), ..Stub::default() };
    let reply = post(&router(Arc::new(stub), HttpConfig::default()), NOUL).await;
    assert_eq!(reply.failure(), (429, "rate_limit_error".to_owned()));
    assert_eq!(reply.header("x-docket-reason"), "wait");
    assert_eq!(reply.header("x-docket-downgrade"), "batch");
    assert_eq!(reply.header("retry-after-ms"), "8000");
    assert!(reply.json()["detail"]["message"].to_string().contains("9000 ms, at most 1000 ms"));
}

#[tokio::test]
async fn case_51_a_prompt_too_long_is_422_with_both_lengths() {
    let error = ReadError::Rejected(RejectReason::TooLong { tokens: 5_000, tokens_max: 4_096 });
    let stub = Stub { error: Some(error.into()), ..Stub::default() };
    let reply = post(&router(Arc::new(stub), HttpConfig::default()), NOUL).await;
    assert_eq!(reply.fault(), "too_long");
    let message = reply.json()["detail"][0]["msg"].to_string();
    assert!(message.contains("5000") && message.contains("4096"), "{message}");
}

#[tokio::test]
async fn a_panic_is_500_and_the_next_request_is_answered() {
    let stub = Arc::new(Stub { panics: true, ..Stub::default() });
    let router = router(stub as _, HttpConfig::default());
    let reply = post(&router, NOUL).await;
    assert_eq!(reply.failure(), (500, "internal_error".to_owned()));
    assert_eq!(call(&router, request("GET", "/health", "")).await.status, 200);
}

#[tokio::test]
async fn served_is_called_once_the_body_was_taken() {
    use http_body_util::BodyExt;
    use tower::ServiceExt;
    let stub = Arc::new(Stub::default());
    let router = router(Arc::clone(&stub) as _, HttpConfig::default());
    let response = router.clone().oneshot(request("POST", "/v1/systemone", NOUL)).await.unwrap();
    assert_eq!(stub.served.load(Ordering::SeqCst), 0);
    response.into_body().collect().await.unwrap();
    assert_eq!(stub.served.load(Ordering::SeqCst), 1);
    let unread = router.oneshot(request("POST", "/v1/systemone", NOUL)).await.unwrap();
    drop(unread);
    assert_eq!(stub.served.load(Ordering::SeqCst), 1);
}
