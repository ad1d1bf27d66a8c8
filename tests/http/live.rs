//! `GET /v1/live`: for operators only, one look or events, and never more viewers than the limit.

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::response::Response;
use docket::http::LIVE_VIEWERS_MAX;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::support::{NOUL, call, plain, request, with_keys};

fn asked(accept: &str) -> Request<Body> {
    Request::get("/v1/live").header("accept", accept).body(Body::empty()).unwrap()
}

async fn opened(router: &Router) -> Response {
    router.clone().oneshot(asked("application/json, text/event-stream;q=0.9")).await.unwrap()
}

fn kind(response: &Response) -> &str {
    response.headers()["content-type"].to_str().unwrap()
}

/// The next event of a stream.
async fn next(response: &mut Response) -> Value {
    let frame = response.body_mut().frame().await.unwrap().unwrap().into_data().unwrap();
    let text = std::str::from_utf8(&frame).unwrap();
    let data = text.strip_prefix("data: ").and_then(|rest| rest.strip_suffix("\n\n")).unwrap();
    serde_json::from_str(data).unwrap()
}

#[tokio::test]
async fn one_look_is_json() {
    let router = plain();
    for accept in ["*/*", "application/json", "text/event-streams"] {
        let reply = call(&router, asked(accept)).await;
        assert_eq!(reply.header("content-type"), "application/json", "{accept}");
        assert_eq!(reply.header("cache-control"), "no-store");
        let look = reply.json();
        assert_eq!((&look["ready"], &look["viewers"]), (&true.into(), &0.into()), "{look}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_come_twice_a_second_and_have_the_answers_of_late() {
    let router = plain();
    let mut stream = opened(&router).await;
    assert_eq!(kind(&stream), "text/event-stream");
    let first = next(&mut stream).await;
    assert_eq!(first["latency"]["normal"]["answered"], 0, "{first}");
    assert_eq!(first["viewers"], 1);
    for _ in 0..3 {
        assert_eq!(call(&router, request("POST", "/v1/systemone", NOUL)).await.status, 200);
    }
    let began = tokio::time::Instant::now();
    let second = next(&mut stream).await;
    assert!((500..=502).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert_eq!(second["latency"]["normal"]["answered"], 3, "{second}");
}

#[tokio::test(start_paused = true)]
async fn no_more_look_than_the_limit_and_a_place_that_is_left_is_free() {
    let router = plain();
    let mut open = Vec::new();
    for _ in 0..LIVE_VIEWERS_MAX {
        open.push(opened(&router).await);
    }
    assert!(open.iter().all(|stream| kind(stream) == "text/event-stream"));
    let beyond = opened(&router).await;
    assert_eq!((beyond.status().as_u16(), kind(&beyond)), (200, "application/json"));
    open.pop();
    assert_eq!(kind(&opened(&router).await), "text/event-stream");
}

#[tokio::test]
async fn only_an_operator_looks() {
    let router = with_keys(&["acme=secret"]);
    assert_eq!(call(&router, asked("text/event-stream")).await.status, 401);
    let mut with_key = asked("application/json");
    with_key.headers_mut().insert("x-api-key", "secret".parse().unwrap());
    assert_eq!(call(&router, with_key).await.status, 200);
}
