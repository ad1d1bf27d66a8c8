//! Prewarm over HTTP: one state or many, what is refused, and with which status.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Request;
use docket::dialect::problem::FullStatus;
use docket::http::{HttpConfig, router};

use crate::support::{Stub, call, plain, request};

fn prewarm(body: &str) -> Request<Body> {
    request("POST", "/v1/prewarm", body.to_owned())
}

#[tokio::test]
async fn a_prewarm_says_until_when_it_is_pinned_and_how_to_give_that_up() {
    let router = plain();
    let reply = call(&router, request("POST", "/v1/prewarm", r#"{"state":1,"ttl_s":60}"#)).await;
    let body = reply.json();
    assert_eq!(body["expires_at"], 1_800_000_000);
    assert_eq!(body["handle"], "beef");
    for path in ["/v1/prewarm/beef", "/prewarm/beef"] {
        assert_eq!(call(&router, request("DELETE", path, "")).await.status, 200, "{path}");
    }
    let absent = call(&router, request("DELETE", "/v1/prewarm/dead", "")).await;
    assert_eq!(absent.failure(), (404, "not_found".to_owned()));
    assert_eq!(absent.json()["detail"]["message"], "no prewarm dead");
    for (body, code) in [
        (r#"{"state":1,"ttl_s":0}"#, "ttl_invalid"),
        (r#"{"state":1,"ttl_s":604801}"#, "ttl_invalid"),
        (r#"{"state":1,"wait":1}"#, "wrong_type"),
    ] {
        assert_eq!(call(&router, request("POST", "/v1/prewarm", body)).await.fault(), code);
    }
}

#[tokio::test]
async fn images_are_refused_as_in_a_decision() {
    let image = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAAAAAAAA";
    let bodies = [
        format!(r#"{{"state":"see {image}"}}"#),
        format!(r#"{{"states":["none",{{"shot":"{image}"}}]}}"#),
        format!(r#"{{"state":"none","images":["{image}"]}}"#),
    ];
    for dialect in ["systemone", "decisio"] {
        let path = format!("/{dialect}/v1/systemone");
        let state = format!(r#"{{"state":"see {image}","questions":{{"q":{{"type":"noul"}}}}}}"#);
        let refused = call(&plain(), request("POST", &path, state)).await.status;
        let path = format!("/{dialect}/v1/prewarm");
        for body in &bodies {
            let reply = call(&plain(), request("POST", &path, body.clone())).await;
            assert_eq!(reply.status, refused, "{dialect} {body}");
        }
        let mention = r#"{"state":"data:image/png","images":[]}"#;
        assert_eq!(call(&plain(), request("POST", &path, mention)).await.status, 200, "{dialect}");
    }
}

#[tokio::test]
async fn an_unknown_handle_is_cut_and_a_wrong_path_is_still_no_route() {
    let long = format!("/v1/prewarm/{}", "f".repeat(300));
    let reply = call(&plain(), request("DELETE", &long, "")).await;
    let message = reply.json()["detail"]["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("no prewarm fff") && message.len() < 120, "{message}");
    let reply = call(&plain(), request("DELETE", "/v1/prewarm/beef/2", "")).await;
    assert_eq!(reply.failure(), (404, "not_found".to_owned()));
    assert_eq!(reply.json()["detail"]["message"], "no route /v1/prewarm/beef/2");
}

#[tokio::test]
async fn several_states_have_an_answer_each_and_a_failure_is_seen() {
    let reply = call(&plain(), prewarm(r#"{"states":["a","full",{"b":1}]}"#)).await;
    assert_eq!(reply.status, 200);
    let body = reply.json();
    assert_eq!((&body["ok"], &body["prompt_tokens"]), (&false.into(), &34.into()));
    let oks: Vec<_> =
        body["prefixes"].as_array().unwrap().iter().map(|entry| entry["ok"] == true).collect();
    assert_eq!(oks, [true, false, true]);
    let error = &body["prefixes"][1]["error"];
    assert_eq!((&error["status"], &error["retry_after_ms"]), (&429.into(), &2_400.into()));
    for (body, code) in [
        (r#"{"states":[]}"#, "too_few"),
        (r#"{"states":[1,null]}"#, "wrong_type"),
        (r#"{"states":[1],"state":1}"#, "duplicate_key"),
    ] {
        assert_eq!(call(&plain(), prewarm(body)).await.fault(), code);
    }
}

#[tokio::test]
async fn a_full_queue_is_503_where_the_server_is_told_so() {
    let config =
        HttpConfig { queue_full_status: FullStatus::ServiceUnavailable, ..HttpConfig::default() };
    let router = router(Arc::new(Stub::default()), config);
    let reply = call(&router, prewarm(r#"{"state":"full"}"#)).await;
    assert_eq!(reply.failure(), (503, "rate_limit_error".to_owned()));
    assert_eq!(reply.header("x-docket-reason"), "queue_full");
    assert_eq!((reply.header("retry-after"), reply.header("retry-after-ms")), ("3", "2400"));
    let reply = call(&router, prewarm(r#"{"states":["a","full"]}"#)).await;
    assert_eq!(reply.json()["prefixes"][1]["error"]["status"], 503);
    let reply = call(&plain(), prewarm(r#"{"state":"full"}"#)).await;
    assert_eq!(reply.failure(), (429, "rate_limit_error".to_owned()));
}
