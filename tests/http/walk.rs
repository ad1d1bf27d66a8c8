//! Every route, walked without a key, with wrong ones, and by paths that look like it: nothing but what
//! is public is answered, and nothing of the rest is told.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};

use crate::support::{NOUL, Reply, call, request, with_keys};

const METHODS: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Answered without a key: all methods, most of them with 405.
const PUBLIC: [&str; 10] = [
    "/",
    "/play/main.js",
    "/live",
    "/live/live.js",
    "/health",
    "/openapi.json",
    "/docs",
    "/docs/reference.css",
    "/docs/reference.js",
    "/docs/try.js",
];

/// The paths of the router, with a value for each name in them.
fn paths() -> Vec<String> {
    let mut found = Vec::new();
    for path in docket::http::ROUTES {
        let path = path.replace("{handle}", "beef").replace("{id}", "task");
        let script = if path.starts_with("/play/") { "main.js" } else { "live.js" };
        let path = path.replace("{file}", script);
        for dialect in ["systemone", "decisio", "self", "vllm", "gmlx", "openai", "nothing"] {
            found.push(path.replace("{dialect}", dialect));
        }
    }
    found.sort();
    found.dedup();
    assert!(found.len() > 30, "{found:?}");
    found
}

fn is_public(path: &str) -> bool {
    let is_health = path.ends_with("/health") && path != "/nothing/health";
    PUBLIC.contains(&path) || is_health
}

fn sent(method: &Method, path: &str, key: Option<(&'static str, &str)>) -> Request<Body> {
    let mut sent = request(method.as_str(), path, NOUL);
    if let Some((name, value)) = key {
        sent.headers_mut().insert(name, value.parse().unwrap());
    }
    sent
}

async fn refused(router: &Router, sent: Request<Body>) -> Reply {
    let shown = format!("{} {} {:?}", sent.method(), sent.uri(), sent.headers());
    let reply = call(router, sent).await;
    assert_eq!(reply.status, 401, "{shown}: {reply:?}");
    assert_eq!(reply.header("x-docket-reason"), "unauthorized", "{shown}");
    assert!(!reply.headers.contains_key("allow"), "{shown}: tells which methods there are");
    reply
}

#[tokio::test]
async fn nothing_but_what_is_public_is_answered_without_a_key_or_with_a_wrong_one() {
    let router = with_keys(&["acme=secret", "bolt=other"]);
    let paths = paths();
    let paths = paths.iter().filter(|path| !is_public(path));
    for (path, method) in paths.flat_map(|path| METHODS.iter().map(move |method| (path, method))) {
        let without = refused(&router, sent(method, path, None)).await;
        for key in [
            ("x-api-key", "secre"),
            ("x-api-key", "acme=secret"),
            ("x-api-key", ""),
            ("authorization", "secret"),
            ("authorization", "Basic secret"),
            ("authorization", "Bearer secret2"),
            ("authorization", "Bearer"),
        ] {
            let wrong = refused(&router, sent(method, path, Some(key))).await;
            assert_eq!(wrong.body, without.body, "{method} {path} tells wrong from none");
        }
    }
}

#[tokio::test]
async fn paths_that_only_look_public_are_not() {
    let router = with_keys(&["secret"]);
    let tricks = |path: &str| {
        vec![
            format!("/{path}"),
            format!("{path}/"),
            format!("/.{path}"),
            format!("/health/..{path}"),
            format!("/health/%2e%2e{path}"),
            format!("/health%2f..{path}"),
            format!("/health;{path}"),
            format!("/openapi.json{path}"),
            format!("/openapi.json/..{path}"),
            format!("/self/health/..{path}"),
            format!("{path}%00"),
            format!("{path};/health"),
            format!("{path}%3f/health"),
            format!("{path}?/health"),
            path.to_uppercase(),
            path.replacen('/', "/%2f", 1),
            path.replacen("v1", "%761", 1) + "/x",
        ]
    };
    let paths = paths();
    for trick in paths.iter().filter(|path| !is_public(path)).flat_map(|path| tricks(path)) {
        for method in [Method::GET, Method::POST, Method::HEAD, Method::OPTIONS] {
            refused(&router, sent(&method, &trick, None)).await;
        }
    }
    for path in ["/health/", "/HEALTH", "/health/ready", "/x/y/health", "//health", "/health%20"] {
        refused(&router, sent(&Method::GET, path, None)).await;
    }
}

#[tokio::test]
async fn what_is_public_tells_no_more_without_a_key() {
    let router = with_keys(&["secret"]);
    for path in ["/health", "/health?ready=1", "/self/health", "/health?details=1"] {
        let health = call(&router, sent(&Method::GET, path, None)).await;
        assert_eq!(health.status, 200, "{path}");
        assert!(health.json().get("details").is_none(), "{path}: {health:?}");
        let head = call(&router, sent(&Method::HEAD, path, None)).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0), "{path}");
    }
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        let reply = call(&router, sent(&method, "/health", None)).await;
        assert_eq!(reply.status, 405, "{method}");
    }
    let preflight = Request::builder()
        .method("OPTIONS")
        .uri("/v1/systemone")
        .header("origin", "https://elsewhere.example")
        .header("access-control-request-method", "POST")
        .body(Body::empty())
        .unwrap();
    let reply = refused(&router, preflight).await;
    let allows = reply.headers.keys().any(|name| name.as_str().starts_with("access-control"));
    assert!(!allows, "{reply:?}");
}
