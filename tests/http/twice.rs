//! Headers that are there twice: none is read by its first value, and no key is repeated.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Request};

use crate::server::{Server, in_time, read_response};
use crate::support::{NOUL, Reply, Stub, call, plain, request, with_keys};
use tokio::io::AsyncWriteExt;

/// A route of each dialect.
const ROUTES: [&str; 6] = [
    "/systemone/v1/systemone",
    "/decisio/v1/systemone",
    "/self/v1/systemone",
    "/vllm/v1/systemone",
    "/gmlx/v1/systemone",
    "/v1/decisions",
];

/// Headers of which one value is read, with two that each could be alone.
const ONCE: [(&str, [&str; 2]); 13] = [
    ("x-docket-dialect", ["systemone", "self"]),
    ("x-docket-priority", ["urgent", "batch"]),
    ("x-gateway-inference-objective", ["urgent", "batch"]),
    ("x-docket-timeout-ms", ["250", "500"]),
    ("x-docket-salt", ["first-salt", "second-salt"]),
    ("x-docket-state-key", ["0011223344556677", "8899aabbccddeeff"]),
    ("x-gateway-inference-fairness-id", ["ann", "eve"]),
    ("x-request-id", ["one", "two"]),
    ("content-type", ["application/json", "application/cloudevents+json"]),
    ("x-decisio-route", ["text", "image"]),
    ("x-rlcd-route", ["text", "image"]),
    ("x-decisio-debug", ["readout", "hidden"]),
    ("x-rlcd-debug", ["readout", "hidden"]),
];

fn with(path: &str, headers: &[(&'static str, &str)]) -> Request<Body> {
    let mut sent = request("POST", path, NOUL);
    for (name, value) in headers {
        sent.headers_mut().append(*name, HeaderValue::from_str(value).unwrap());
    }
    sent
}

fn assert_refused(reply: &Reply, name: &str, about: &str) {
    let text = String::from_utf8(reply.body.clone()).unwrap();
    assert_eq!(reply.status, 400, "{about}: {text}");
    assert_eq!(reply.header("x-docket-reason"), "header_invalid", "{about}");
    assert!(text.contains(name), "{about}: {text}");
    assert!(text.contains("more than once"), "{about}: {text}");
}

#[tokio::test]
async fn a_header_with_two_values_is_refused_in_the_words_of_each_dialect() {
    let router = plain();
    for path in ROUTES {
        for (name, [one, other]) in ONCE {
            let about = format!("{path} {name}");
            let reply = call(&router, with(path, &[(name, one), (name, other)])).await;
            assert_refused(&reply, name, &about);
            assert!(reply.json().is_object(), "{about}");
        }
    }
    let reply =
        call(&router, with(ROUTES[0], &[ONCE[4]].map(|(name, [one, _])| (name, one)))).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn a_header_that_says_the_same_twice_says_it_once() {
    let router = plain();
    for (name, value) in [("x-docket-priority", "batch"), ("content-type", "application/json")] {
        let reply = call(&router, with(ROUTES[0], &[(name, value), (name, value)])).await;
        assert_eq!(reply.status, 200, "{name}: {reply:?}");
    }
    let mut health = request("GET", "/health", "");
    for dialect in ["systemone", "self"] {
        health.headers_mut().append("x-docket-dialect", dialect.parse().unwrap());
    }
    assert_refused(&call(&router, health).await, "x-docket-dialect", "a public route");
}

#[tokio::test]
async fn two_keys_let_nobody_in_and_neither_is_repeated() {
    let router = with_keys(&["acme=first-key", "beta=second-key"]);
    for (name, values) in [
        ("x-api-key", ["first-key", "second-key"]),
        ("x-api-key", ["first-key", "unknown-key"]),
        ("x-api-key", ["unknown-key", "first-key"]),
        ("authorization", ["Bearer first-key", "Bearer second-key"]),
        ("authorization", ["Bearer first-key", "Basic unknown-key"]),
    ] {
        for path in ROUTES {
            let reply = call(&router, with(path, &values.map(|value| (name, value)))).await;
            assert_refused(&reply, name, path);
            let told = format!("{:?} {}", reply.headers, String::from_utf8_lossy(&reply.body));
            assert!(
                !told.contains("-key\"") && !told.contains("first") && !told.contains("second")
            );
            assert!(!told.contains("unknown"), "{told}");
        }
    }
    let both = [("authorization", "Bearer first-key"), ("x-api-key", "second-key")];
    let reply = call(&router, with(ROUTES[0], &both)).await;
    assert_eq!((reply.status.as_u16(), reply.header("x-docket-reason")), (400, "header_invalid"));
    let same = [("x-api-key", "first-key"), ("x-api-key", "first-key")];
    assert_eq!(call(&router, with(ROUTES[0], &same)).await.status, 200);
    let stranger = [("x-docket-salt", "a"), ("x-docket-salt", "b")];
    assert_eq!(call(&router, with(ROUTES[0], &stranger)).await.status, 401, "keys come first");
}

#[tokio::test]
async fn a_body_that_is_to_be_taken_off_its_chunks_twice_is_refused() {
    let server = Server::plain(&Arc::new(Stub::default())).await;
    let chunked = "transfer-encoding: chunked\r\n";
    for (codings, status) in [(chunked.to_owned(), "200"), (chunked.repeat(2), "415")] {
        let mut stream = server.connect().await;
        let head = "POST /v1/systemone HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
        let body = format!("{:x}\r\n{NOUL}\r\n0\r\n\r\n", NOUL.len());
        stream.write_all(format!("{head}{codings}\r\n{body}").as_bytes()).await.unwrap();
        let (head, _) = in_time(read_response(&mut stream)).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{head}");
    }
}
