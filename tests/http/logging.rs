//! What the log says of a request that failed.
//!
//! Goal: whoever is shown an error finds its line. Method: lines are written into memory.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use actors::{EngineError, ReadError};
use axum::Router;
use axum::http::Request;
use docket::error::DecideError;
use docket::http::{HttpConfig, router};
use docket::tenants::tenant_hash;

use crate::support::{NOUL, Stub, call};

/// A log in memory.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged while one decision with the id `ticket-7` is asked of a service that fails.
async fn logged(error: DecideError) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let guard = tracing::subscriber::set_default(log.finish());
    let stub = Stub { error: Some(error), ..Stub::default() };
    let router: Router = router(Arc::new(stub), HttpConfig::default());
    let sent = Request::post("/v1/systemone").header("x-request-id", "ticket-7");
    let reply = call(&router, sent.body(NOUL.into()).unwrap()).await;
    drop(guard);
    assert_eq!(reply.header("x-typesafe-request-id"), "ticket-7");
    String::from_utf8(lines.0.lock().unwrap().clone()).unwrap()
}

#[tokio::test]
async fn a_failed_request_is_logged_with_its_id_and_route() {
    let engine = EngineError::Forward("blk.3 is odd".to_owned());
    let told = logged(ReadError::Engine(engine).into()).await;
    for part in [" WARN ", "request failed", "ticket-7", "/v1/systemone", "500", "blk.3 is odd"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let bug = logged(DecideError::Internal { detail: "lost an answer".to_owned() }).await;
    for part in ["ERROR ", "request failed", "ticket-7", "lost an answer"] {
        assert!(bug.contains(part), "{part}: {bug}");
    }
}

#[tokio::test]
async fn what_is_the_callers_fault_is_not_logged() {
    assert_eq!(logged(DecideError::Unsupported("images".to_owned())).await, "");
}

#[tokio::test]
async fn a_client_that_leaves_before_its_answer_has_a_line_in_the_access_log() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let guard = tracing::subscriber::set_default(log.finish());
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let config = HttpConfig { access_log: true, ..HttpConfig::default() };
    let router: Router = router(Arc::clone(&stub) as _, config);
    let asked = tokio::spawn(async move {
        let sent = Request::post("/v1/systemone").header("x-request-id", "ticket-8");
        call(&router, sent.body(NOUL.into()).unwrap()).await
    });
    stub.until(|stub| stub.begun.load(Ordering::SeqCst) == 1).await;
    assert_eq!(String::from_utf8(lines.0.lock().unwrap().clone()).unwrap(), "", "not yet");
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    drop(guard);
    let told = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    assert_eq!(told.lines().count(), 1, "{told}");
    let tenant = format!("tenant=\"{}\"", tenant_hash("default"));
    for part in [
        "INFO docket::access: gone ",
        "method=\"POST\"",
        "route=\"/v1/systemone\"",
        "status=499",
        "reason=\"client_gone\"",
        "dialect=\"systemone\"",
        "request_id=\"ticket-8\"",
        &tenant,
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[tokio::test]
async fn ignored_fields_are_logged_by_names_that_are_not_the_callers() {
    let lines = Lines::default();
    let writer = lines.clone();
    let log = tracing_subscriber::fmt().with_ansi(false).with_writer(move || writer.clone());
    let guard = tracing::subscriber::set_default(log.finish());
    let router: Router = router(Arc::new(Stub::default()), HttpConfig::default());
    let body = r#"{"state": "plum", "seed": 1, "grape": 2, "questions":
        {"fig": {"type": "noul", "instructions": "x", "alone": true, "melon": 3}}}"#;
    let sent = Request::post("/gmlx/v1/systemone").header("x-request-id", "ticket-9");
    let sent = sent.body(body.into()).unwrap();
    let reply = call(&router, sent).await;
    drop(guard);
    let told = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let ignored = r#"["seed","grape","questions.fig.alone","questions.fig.melon"]"#;
    assert_eq!(reply.header("x-docket-ignored"), ignored);
    let id = "request_id=\"ticket-9\"";
    for part in [" WARN ", "ignoring unsupported parameter(s)", "alone, seed", "unknown=2", id] {
        assert!(told.contains(part), "{part}: {told}");
    }
    for word in ["plum", "grape", "fig", "melon"] {
        assert!(!told.contains(word), "{word}: {told}");
    }
}
