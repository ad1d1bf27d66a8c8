//! Pages of other sites: nothing says that they may ask, and an `OPTIONS` is a request like any other.

use axum::http::{HeaderMap, Request};
use axum::{Router, body::Body};

use crate::support::{NOUL, Reply, call, plain, with_keys};

/// What a browser asks before it lets a page of another site send JSON.
fn preflight(path: &str) -> Request<Body> {
    Request::options(path)
        .header("origin", "https://elsewhere.example")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type, authorization")
        .body(Body::empty())
        .unwrap()
}

fn is_silent(headers: &HeaderMap) -> bool {
    headers.keys().all(|name| !name.as_str().starts_with("access-control-"))
}

async fn asked(router: &Router, path: &str, key: Option<&str>) -> Reply {
    let mut request = preflight(path);
    if let Some(key) = key {
        let value = format!("Bearer {key}").parse().unwrap();
        request.headers_mut().insert("authorization", value);
    }
    call(router, request).await
}

#[tokio::test]
async fn no_route_tells_a_browser_that_it_may_ask() {
    let router = with_keys(&["secret"]);
    let document: serde_json::Value =
        serde_json::from_str(&docket::openapi::document(&docket::openapi::Served::default()))
            .expect("it is JSON");
    let routes = document["paths"].as_object().expect("paths is an object");
    assert!(routes.len() > 10, "{}", routes.len());
    for path in routes.keys().map(|path| path.replace(['{', '}'], "x")) {
        let is_public = path.ends_with("/health") || path == "/openapi.json";
        for (key, status) in [(None, if is_public { 405 } else { 401 }), (Some("secret"), 405)] {
            let reply = asked(&router, &path, key).await;
            assert_eq!(reply.status, status, "{path}");
            assert!(is_silent(&reply.headers), "{path}: {:?}", reply.headers);
        }
    }
}

#[tokio::test]
async fn answers_to_pages_say_nothing_of_origins_either() {
    let router = plain();
    for (method, path, body, status) in [
        ("POST", "/v1/systemone", NOUL, 200),
        ("POST", "/v1/systemone", "{", 422),
        ("GET", "/health", "", 200),
        ("GET", "/nowhere", "", 404),
    ] {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("origin", "https://elsewhere.example")
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap();
        let reply = call(&router, request).await;
        assert_eq!(reply.status, status, "{path}");
        assert!(is_silent(&reply.headers), "{path}: {:?}", reply.headers);
    }
}
