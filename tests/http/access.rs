//! Routes, methods, keys and health.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::http::Request;
use docket::dialect::Dialect;
use docket::http::{AuthConfig, HttpConfig, router};
use docket::service::Health;

use crate::support::{NOUL, Stub, call, plain, request, with_keys};

#[tokio::test]
async fn all_routes_answer() {
    let router = plain();
    for path in ["/v1/systemone", "/v1/decide", "/systemone/v1/systemone", "/systemone/v1/decide"] {
        let reply = call(&router, request("POST", path, NOUL)).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.json()["answers"]["q"]["noul"], 0.5);
    }
    for path in ["/v1/prewarm", "/prewarm", "/systemone/v1/prewarm"] {
        let reply = call(&router, request("POST", path, r#"{"state":1,"model":"m"}"#)).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.json()["prefix"]["stored"], true);
        assert_eq!(reply.header("x-docket-computed-tokens"), "15");
    }
    for path in ["/v1/models", "/systemone/v1/models"] {
        let reply = call(&router, request("GET", path, "")).await;
        assert_eq!(reply.json()["models"][0]["name"], "stub");
    }
    let metrics = call(&router, request("GET", "/metrics", "")).await;
    assert!(metrics.header("content-type").starts_with("text/plain; version=0.0.4"));
    let api = call(&router, request("GET", "/openapi.json", "")).await.json();
    assert_eq!(api["openapi"], "3.1.0");
}

#[tokio::test]
async fn metrics_can_be_open_where_everything_else_needs_a_key() {
    let auth = AuthConfig::from_texts(&["secret".to_owned()]).unwrap();
    for (open_metrics, status) in [(false, 401), (true, 200)] {
        let config = HttpConfig { auth: auth.clone(), open_metrics, ..HttpConfig::default() };
        let router = router(Arc::new(Stub::default()), config);
        assert_eq!(call(&router, request("GET", "/metrics", "")).await.status, status);
        assert_eq!(call(&router, request("GET", "/v1/models", "")).await.status, 401);
        let health = call(&router, request("GET", "/health", "")).await.json();
        assert!(health.get("details").is_none(), "{health}");
    }
}

#[tokio::test]
async fn case_54_paths_are_matched_as_they_are_sent() {
    let router = plain();
    for path in [
        "//v1/systemone",
        "/v1//systemone",
        "/v1/../v1/prewarm",
        "/../v1/systemone",
        "/v1/systemone/",
        "/v1/%73ystemone",
        "/V1/systemone",
        "/%2F/v1/systemone",
        "/nothing/v1/systemone",
        "/docs/",
        "/docs/x",
        "/play",
        "/play/",
        "/play/x/y",
    ] {
        let reply = call(&router, request("POST", path, NOUL)).await;
        assert_eq!(reply.failure(), (404, "not_found".to_owned()), "{path}");
    }
}

#[tokio::test]
async fn a_dialect_in_a_path_that_is_no_text_is_an_unknown_one() {
    let router = plain();
    for (method, path) in [
        ("GET", "/%ff/v1/models"),
        ("POST", "/%ff/v1/systemone"),
        ("POST", "/%ff/v1/prewarm"),
        ("POST", "/%73ystemone/v1/systemone"),
        ("GET", "/%00/v1/models"),
        ("GET", "/%zz/v1/models"),
    ] {
        let reply = call(&router, request(method, path, NOUL)).await;
        assert_eq!(reply.failure(), (404, "not_found".to_owned()), "{method} {path}");
        assert_eq!(reply.header("x-docket-reason"), "not_found");
        assert_eq!(reply.header("content-type"), "application/json");
    }
}

#[tokio::test]
async fn a_head_beyond_the_limits_is_answered_with_the_limit() {
    let router = with_keys(&["secret"]);
    let long = call(&router, request("GET", &format!("/v1/{}", "x".repeat(5_000)), "")).await;
    assert_eq!(long.failure(), (414, "api_usage_error".to_owned()));
    assert_eq!(long.header("x-docket-reason"), "uri_too_long");
    assert!(long.json()["detail"]["message"].as_str().unwrap().contains("4096"));
    let headed = |count| {
        let headers = (0..count).map(|number| format!("x-{number}"));
        let sent = headers.fold(Request::get("/health"), |sent, name| sent.header(name, "1"));
        call(&router, sent.body("".into()).unwrap())
    };
    assert_eq!(headed(100).await.status, 200);
    let many = headed(101).await;
    assert_eq!(many.failure(), (431, "api_usage_error".to_owned()));
    assert_eq!(many.header("x-docket-reason"), "too_many_headers");
    let query = format!("/openapi.json?{}", "x".repeat(4_096 - "/openapi.json?".len()));
    assert_eq!(call(&router, request("GET", &query, "")).await.status, 200);
}

#[tokio::test]
async fn wrong_methods_are_405_with_allow() {
    let router = plain();
    for (method, path, allow) in [
        ("GET", "/v1/systemone", "POST"),
        ("HEAD", "/v1/systemone", "POST"),
        ("OPTIONS", "/v1/systemone", "POST"),
        ("DELETE", "/v1/prewarm", "POST"),
        ("POST", "/v1/prewarm/beef", "DELETE"),
        ("POST", "/health", "GET,HEAD"),
        ("OPTIONS", "/v1/models", "GET,HEAD"),
        ("TRACE", "/metrics", "GET,HEAD"),
    ] {
        let reply = call(&router, request(method, path, "")).await;
        assert_eq!((reply.status.as_u16(), reply.header("allow")), (405, allow), "{method} {path}");
    }
    let head = call(&router, request("HEAD", "/health", "")).await;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
}

#[tokio::test]
async fn an_unknown_dialect_is_refused_by_name() {
    let router = plain();
    let mut sent = request("POST", "/v1/systemone", NOUL);
    sent.headers_mut().insert("x-docket-dialect", "nothing".parse().unwrap());
    let reply = call(&router, sent).await;
    assert_eq!(reply.failure(), (400, "api_usage_error".to_owned()));
    assert!(String::from_utf8(reply.body).unwrap().contains("nothing"));
    let mut sent = request("POST", "/v1/systemone", NOUL);
    sent.headers_mut().insert("x-docket-dialect", "systemone".parse().unwrap());
    assert_eq!(call(&router, sent).await.status, 200);
}

#[tokio::test]
async fn case_54_without_a_key_only_two_routes_are_public() {
    let router = with_keys(&["acme=secret"]);
    let unauthorized = (401, "authentication_error".to_owned());
    for (method, path) in [
        ("POST", "/v1/systemone"),
        ("GET", "/v1/systemone"),
        ("POST", "//v1/systemone"),
        ("POST", "/v1/../v1/prewarm"),
        ("POST", "/systemone/v1/decide"),
        ("POST", "/prewarm"),
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("OPTIONS", "/v1/systemone"),
        ("GET", "/docs/x"),
        ("GET", "/health/"),
    ] {
        let reply = call(&router, request(method, path, "")).await;
        assert_eq!(reply.failure(), unauthorized, "{method} {path}");
        assert_eq!(reply.header("www-authenticate"), "Bearer");
        assert_eq!(reply.header("x-docket-reason"), "unauthorized");
    }
    let health = call(&router, request("GET", "/health", "")).await;
    assert_eq!(health.json(), serde_json::json!({"ok": true, "ready": true, "reason": null}));
    assert_eq!(call(&router, request("GET", "/openapi.json", "")).await.status, 200);
}

#[tokio::test]
async fn a_key_opens_everything_and_names_the_tenant() {
    let stub = Arc::new(Stub::default());
    let auth = AuthConfig::from_texts(&["acme=secret".to_owned()]).unwrap();
    let router = router(Arc::clone(&stub) as _, HttpConfig { auth, ..HttpConfig::default() });
    for (name, value, status) in [
        ("authorization", "Bearer secret", 200),
        ("x-api-key", "secret", 200),
        ("authorization", "Bearer secre", 401),
        ("x-api-key", "", 401),
    ] {
        let sent = Request::post("/v1/systemone").header(name, value);
        let sent = sent.header("x-docket-salt", "pepper").body(NOUL.into()).unwrap();
        assert_eq!(call(&router, sent).await.status, status, "{name}: {value}");
    }
    let last = stub.last.lock().unwrap().take().unwrap();
    assert_eq!(&*last.0.tenant.0, "acme");
    assert_eq!(last.0.salt.as_deref(), Some("pepper"));
    let health = Request::get("/health").header("x-api-key", "secret").body("".into()).unwrap();
    assert_eq!(call(&router, health).await.json()["details"]["engine"], "stub");
}

#[tokio::test]
async fn an_open_server_ignores_keys() {
    let sent = Request::post("/v1/systemone").header("authorization", "Bearer anything");
    assert_eq!(call(&plain(), sent.body(NOUL.into()).unwrap()).await.status, 200);
}

#[tokio::test]
async fn health_tells_liveness_from_readiness() {
    let state = |ready, dead: Option<&str>| Health {
        ready,
        reason: (!ready).then(|| "loading".to_owned()),
        dead: dead.map(str::to_owned),
        details: serde_json::json!({}),
    };
    for (health, live, ready, reason) in [
        (state(true, None), 200, 200, None),
        (state(false, None), 200, 503, Some("loading")),
        (state(false, Some("engine gone")), 503, 503, Some("engine gone")),
    ] {
        let stub = Stub { health, ..Stub::default() };
        let router = router(Arc::new(stub), HttpConfig::default());
        let reply = call(&router, request("GET", "/health", "")).await;
        assert_eq!(reply.status, live);
        assert_eq!(reply.json()["reason"].as_str(), reason);
        let is_dead = live == 503;
        assert_eq!(reply.json()["engine"].as_str(), is_dead.then_some("dead"));
        assert_eq!(reply.json()["exit_code"].as_u64(), is_dead.then_some(70));
        for query in ["ready=1", "ready=true", "x=2&ready=1"] {
            let reply = call(&router, request("GET", &format!("/health?{query}"), "")).await;
            assert_eq!(reply.status, ready, "{query}");
        }
    }
}

#[tokio::test]
async fn once_the_engine_is_dead_every_route_says_why() {
    let dead = Some("it failed too often".to_owned());
    let health = Health { ready: false, reason: None, dead, details: serde_json::json!({}) };
    let router = router(Arc::new(Stub { health, ..Stub::default() }), HttpConfig::default());
    for (method, path) in [
        ("POST", "/v1/systemone"),
        ("POST", "/systemone/v1/decide"),
        ("POST", "/v1/prewarm"),
        ("DELETE", "/v1/prewarm/beef"),
        ("GET", "/v1/models"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/docs/x"),
    ] {
        let reply = call(&router, request(method, path, NOUL)).await;
        assert_eq!((reply.status.as_u16(), reply.header("x-docket-reason")), (503, "engine_dead"));
        let message = reply.json()["detail"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("it failed too often"), "{method} {path}: {message}");
    }
}

fn document() -> serde_json::Value {
    let served = docket::openapi::Served::default();
    serde_json::from_str(&docket::openapi::document(&served)).unwrap()
}

/// Methods and paths of the document.
fn described() -> BTreeSet<(String, String)> {
    let document = document();
    let paths = document["paths"].as_object().unwrap().clone().into_iter();
    let each = paths.flat_map(|(path, operations)| {
        let methods: Vec<String> = operations.as_object().unwrap().keys().cloned().collect();
        methods.into_iter().map(move |method| (method.to_uppercase(), path.clone()))
    });
    each.collect()
}

/// The document has every route with every method that it takes, and no other.
#[tokio::test]
async fn the_document_describes_the_routes_that_exist() {
    let router = plain();
    let mut found = BTreeSet::new();
    let paths = docket::http::ROUTES.into_iter().flat_map(|route| {
        let dialects = Dialect::ALL.map(Dialect::name);
        let named = |rest: &str| dialects.map(|name| format!("/{name}{rest}")).to_vec();
        route.strip_prefix("/{dialect}").map_or_else(|| vec![route.to_owned()], named)
    });
    let methods = ["GET", "POST", "PUT", "PATCH", "DELETE"];
    for (path, method) in paths.flat_map(|path| methods.map(|method| (path.clone(), method))) {
        if call(&router, request(method, &path, "{}")).await.status != 405 {
            found.insert((method.to_owned(), path));
        }
    }
    // Pages are for people, and not of the interface.
    let is_page =
        |path: &str| path == "/" || path.starts_with("/docs") || path.starts_with("/play/");
    found.retain(|(_, path)| !is_page(path));
    // It is there to refuse: OpenAI's decisions have no batches.
    assert!(found.remove(&("POST".to_owned(), "/openai/v1/systemone/batch".to_owned())));
    assert_eq!(found, described());
}

#[tokio::test]
async fn an_empty_body_is_answered_with_a_status_of_the_document() {
    let (router, document) = (plain(), document());
    for (method, path) in described() {
        let reply = call(&router, request(&method, &path, "{}")).await;
        let statuses = &document["paths"][&path][method.to_lowercase()]["responses"];
        let status = reply.status.as_u16();
        assert!(statuses.get(status.to_string()).is_some(), "{method} {path} {status}");
    }
}

#[tokio::test]
async fn a_route_of_one_dialect_refuses_in_its_shape() {
    let router = with_keys(&["k"]);
    for (path, place) in [("/v1/answer", "/detail"), ("/v1/decisions", "/error/message")] {
        let reply = call(&router, request("POST", path, "{}")).await;
        assert_eq!(reply.status, 401);
        let told = reply.json();
        assert!(told.pointer(place).is_some_and(serde_json::Value::is_string), "{path}: {told}");
    }
}
