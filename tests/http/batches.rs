//! Many states with one set of questions, and what decisions would cost.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use actors::Lane;
use axum::body::Body;
use axum::http::Request;
use docket::http::{HttpConfig, router};
use serde_json::{Value, json};

use crate::support::{Reply, Stub, call, plain, request};

const QUESTIONS: &str = r#""questions":{"q":{"type":"noul"}}"#;

fn batch(fields: &str) -> Request<Body> {
    request("POST", "/v1/systemone/batch", format!("{{{fields},{QUESTIONS}}}"))
}

fn lines(reply: &Reply) -> Vec<Value> {
    let text = std::str::from_utf8(&reply.body).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn every_state_has_an_answer_or_a_refusal_of_its_own() {
    let stub = Arc::new(Stub::default());
    let router = router(Arc::clone(&stub) as Arc<_>, HttpConfig::default());
    let reply =
        call(&router, batch(r#""states":["a","full",null,{"b":1}],"timeout_ms":5000"#)).await;
    assert_eq!(reply.status, 200);
    let body = reply.json();
    assert_eq!((&body["succeeded"], &body["failed"]), (&json!(2), &json!(2)));
    let results = body["results"].as_array().unwrap();
    let statuses: Vec<_> = results.iter().map(|result| result["status"].clone()).collect();
    assert_eq!(statuses, [200, 429, 422, 200]);
    assert_eq!(results[0]["response"]["answers"]["q"], json!({"type": "noul", "noul": 0.5}));
    assert_eq!(results[1]["reason"], "queue_full");
    assert_eq!(results[1]["retry_after_ms"], 2_400);
    assert_eq!(results[2]["response"]["detail"][0]["loc"], json!(["body", "states", 2]));
    let (_, last) = stub.last.lock().unwrap().clone().unwrap();
    assert_eq!(last.lane, Some(Lane::Batch), "unless it says otherwise");
    assert_eq!(stub.served.load(Ordering::SeqCst), 2);
    // What found no room was sent again as long as there was time: at 0, 2 and 4 s.
    assert_eq!(stub.begun.load(Ordering::SeqCst), 2 + 3);
}

#[tokio::test]
async fn results_come_as_lines_to_whoever_asks_for_them() {
    let mut wanted = batch(r#""states":["a","b","c"],"priority":"normal""#);
    let value = "application/json;q=0.5, application/x-ndjson".parse().unwrap();
    wanted.headers_mut().insert("accept", value);
    let reply = call(&plain(), wanted).await;
    assert_eq!(
        (reply.status.as_u16(), reply.header("content-type")),
        (200, "application/x-ndjson")
    );
    let mut indexes: Vec<_> = lines(&reply).iter().map(|line| line["index"].clone()).collect();
    indexes.sort_by_key(Value::as_u64);
    assert_eq!(indexes, [0, 1, 2]);
}

#[tokio::test]
async fn a_batch_that_cannot_be_is_refused_whole() {
    let many = format!(r#""states":[{}"s"]"#, "\"s\",".repeat(1_024));
    for (fields, code) in [
        (r#""states":[]"#, "too_few"),
        (r#""states":"s""#, "wrong_type"),
        (r#""state":"s""#, "missing"),
        (r#""state":"s","states":["s"]"#, "duplicate_key"),
        (r#""x":1"#, "missing"),
        (many.as_str(), "too_many"),
    ] {
        assert_eq!(call(&plain(), batch(fields)).await.fault(), code, "{fields}");
    }
    let none = request("POST", "/v1/systemone/batch", r#"{"states":["a"]}"#);
    assert_eq!(call(&plain(), none).await.fault(), "missing");
    let list = request("POST", "/v1/systemone/batch", "[1]");
    assert_eq!(call(&plain(), list).await.fault(), "wrong_type");
    let images = batch(r#""states":["s"],"images":[]"#);
    assert_eq!(call(&plain(), images).await.failure(), (400, "api_usage_error".to_owned()));
}

#[tokio::test]
async fn a_state_is_judged_as_it_would_be_alone() {
    let state = "data:image/png;base64,AAAA";
    let reply = call(&plain(), batch(&format!(r#""states":["a","{state}",7]"#))).await;
    let results = reply.json()["results"].clone();
    assert_eq!(results[0]["status"], 200);
    assert_eq!(results[1]["response"]["detail"][0]["type"], "image_invalid");
    assert_eq!(results[1]["response"]["detail"][0]["loc"], json!(["body", "states", 1]));
    assert_eq!(results[2]["status"], 200, "a number is a state here");
    let body = format!(r#"{{"states":["a",7,null],{QUESTIONS}}}"#);
    let reply = call(&plain(), request("POST", "/decisio/v1/systemone/batch", body)).await;
    let statuses: Vec<_> = (0..3).map(|at| reply.json()["results"][at]["status"].clone()).collect();
    assert_eq!(statuses, [200, 422, 422], "and none there");
}

#[tokio::test]
async fn a_page_in_a_browser_must_declare_json() {
    let body = || format!(r#"{{"state":"s","states":["s"],{QUESTIONS}}}"#);
    let routes =
        ["systemone", "systemone/batch", "estimate", "prewarm", "tasks", "answer", "decisions"];
    for route in routes {
        for dialect in ["", "/gmlx"] {
            let mut sent = request("POST", &format!("{dialect}/v1/{route}"), body());
            sent.headers_mut().insert("origin", "http://evil.example".parse().unwrap());
            let reply = call(&plain(), sent).await;
            let refused = [400, 404, 415].contains(&reply.status.as_u16());
            assert!(refused && !reply.body.is_empty(), "{dialect} {route}: {reply:?}");
        }
    }
}

#[tokio::test]
async fn a_batch_that_nobody_waits_for_is_cancelled() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let router = router(Arc::clone(&stub) as Arc<_>, HttpConfig::default());
    let task = tokio::spawn(async move { call(&router, batch(r#""states":[1,2,3]"#)).await });
    while stub.begun.load(Ordering::SeqCst) < 3 {
        stub.changed.notified().await;
    }
    task.abort();
    while stub.dropped.load(Ordering::SeqCst) < 3 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn an_estimate_says_what_a_decision_would_cost() {
    let body = format!(r#"{{"state":"s",{QUESTIONS}}}"#);
    let reply = call(&plain(), request("POST", "/v1/estimate", body)).await;
    assert_eq!(
        reply.json(),
        json!({
            "fits": true, "admitted": true, "reads": 2, "input_tokens": 20, "prefix_tokens": 30,
            "cached_tokens": 10, "computed_tokens": 40, "longest_prompt_tokens": 50,
            "context_tokens": 100, "wait_ms": 250.0, "engine_ms": null, "model": "stub",
        })
    );
    let faulty = call(&plain(), request("POST", "/v1/estimate", r#"{"state":null}"#)).await;
    assert_eq!(faulty.fault(), "wrong_type");
}
