//! The key of a state: told with what is about one state, and taken back from whoever was told.

use axum::body::Body;
use axum::http::Request;

use crate::support::{NOUL, call, plain, request};

const HEADER: &str = "x-docket-state-key";

#[tokio::test]
async fn decisions_and_prewarms_of_one_state_tell_its_key_in_every_dialect() {
    let router = plain();
    let criteria =
        r#"{"state":"s","questions":{"q":{"type":"noul","criteria":{"false":"no","true":"yes"}}}}"#;
    let state = r#"{"state":"s"}"#;
    for (path, body) in [
        ("/v1/systemone", NOUL),
        ("/self/v1/systemone", criteria),
        ("/vllm/v1/systemone", criteria),
        ("/gmlx/v1/systemone", criteria),
        ("/decisio/v1/systemone", criteria),
        ("/v1/prewarm", state),
        ("/gmlx/v1/prewarm", state),
    ] {
        let reply = call(&router, json(path, body, None)).await;
        assert_eq!(reply.status, 200, "{path}: {}", String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.header(HEADER), "00000000000000ab", "{path}");
    }
}

#[tokio::test]
async fn what_is_about_many_states_or_none_has_no_key() {
    let router = plain();
    let batch = r#"{"states":["a","b"],"questions":{"q":{"type":"noul"}}}"#;
    for (path, body) in [("/v1/systemone/batch", batch), ("/v1/estimate", NOUL)] {
        let reply = call(&router, json(path, body, None)).await;
        assert_eq!((reply.status.as_u16(), reply.headers.get(HEADER)), (200, None), "{path}");
    }
    let reply = call(&router, request("GET", "/v1/models", "")).await;
    assert_eq!(reply.headers.get(HEADER), None);
}

#[tokio::test]
async fn a_key_that_is_sent_back_is_taken_by_its_form_only() {
    let router = plain();
    let sent = |key: &'static str| call(&router, json("/v1/systemone", NOUL, Some(key)));
    let reply = sent("fedcba9876543210").await;
    assert_eq!((reply.status.as_u16(), reply.header(HEADER)), (200, "00000000000000ab"));
    for wrong in ["", "fedcba987654321", "FEDCBA9876543210", "fedcba9876543210, fedcba9876543210"] {
        let reply = sent(wrong).await;
        assert_eq!(reply.status, 400, "{wrong}");
        assert_eq!(reply.header("x-docket-reason"), "header_invalid");
    }
}

fn json(path: &str, body: &'static str, key: Option<&str>) -> Request<Body> {
    let mut request = request("POST", path, body);
    let headers = request.headers_mut();
    headers.insert("content-type", "application/json".parse().unwrap());
    if let Some(key) = key {
        headers.insert(HEADER, key.parse().unwrap());
    }
    request
}
