//! What the `vllm` dialect asks of the HTTP layer: names, salts, content types, keys.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use docket::http::{HttpConfig, router};
use serde_json::json;

use crate::support::{Stub, call, plain};

const BODY: &str =
    r#"{"state":"s","cache_salt":"mine","request_id":"own<7>","questions":{"q":{"type":"noul"}}}"#;

fn posted(headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let request = Request::post("/vllm/v1/systemone");
    let request =
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
    request.body(Body::from(body.to_owned())).unwrap()
}

const JSON: (&str, &str) = ("content-type", "application/json");

#[tokio::test]
async fn a_request_names_itself_by_header_then_by_body() {
    for (header, id) in [(Some("theirs"), "decision-theirs"), (None, "decision-own7")] {
        let mut headers = vec![JSON];
        headers.extend(header.map(|id| ("x-request-id", id)));
        let reply = call(&plain(), posted(&headers, BODY)).await;
        assert_eq!(reply.json()["id"], id, "{}", reply.json());
    }
    let unnamed = BODY.replace(r#""request_id":"own<7>","#, "");
    let reply = call(&plain(), posted(&[JSON], &unnamed)).await;
    let id = format!("decision-{}", reply.header("x-typesafe-request-id"));
    assert_eq!(reply.json()["id"], id);
}

#[tokio::test]
async fn a_salt_of_the_body_joins_that_of_the_header() {
    for (header, salt) in [(None, "mine"), (Some("more"), "more\nmine")] {
        let stub = Arc::new(Stub::default());
        let router = router(Arc::clone(&stub) as _, HttpConfig::default());
        let mut headers = vec![JSON];
        headers.extend(header.map(|salt| ("x-docket-salt", salt)));
        assert_eq!(call(&router, posted(&headers, BODY)).await.status, 200);
        let (caller, decision) = stub.last.lock().unwrap().clone().unwrap();
        assert_eq!(caller.salt.as_deref(), Some(salt));
        assert_eq!(decision.salt, None);
    }
}

#[tokio::test]
async fn a_body_must_be_declared_as_json_by_name() {
    for (declared, status) in [
        (Some("application/json"), 200),
        (Some("Application/JSON ; charset=utf-8"), 200),
        (Some("application/problem+json"), 400),
        (Some("text/plain"), 400),
        (None, 400),
    ] {
        let headers: Vec<_> = declared.map(|kind| ("content-type", kind)).into_iter().collect();
        let reply = call(&plain(), posted(&headers, BODY)).await;
        assert_eq!(reply.status, status, "{declared:?}");
        if status == 400 {
            assert_eq!(reply.json()["error"]["type"], "Bad Request");
            assert_eq!(reply.header("x-docket-reason"), "media_type");
        }
    }
}

#[tokio::test]
async fn a_refusal_before_the_handler_is_in_the_dialect_of_the_path() {
    let stub = Stub { panics: true, ..Stub::default() };
    let router = router(Arc::new(stub), HttpConfig::default());
    let reply = call(&router, posted(&[JSON], BODY)).await;
    let expected = json!({"message": "internal error", "type": "InternalServerError", "param": null, "code": 500});
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]), (500, &expected));
    let long = Request::post(format!("/vllm/v1/systemone?{}", "x".repeat(5_000)));
    let reply = call(&router, long.body(Body::empty()).unwrap()).await;
    assert_eq!((reply.status.as_u16(), &reply.json()["error"]["code"]), (414, &json!(414)));
}
