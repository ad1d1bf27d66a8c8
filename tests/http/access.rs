//! Routes, methods, keys and health.

use std::collections::BTreeSet;
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use docket::dialect::Dialect;
use docket::http::{AuthConfig, HttpConfig, router};
use docket::service::Health;
use docket::tenants::Keyring;

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
        "/",
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

/// A server with a key file: `small` is a tenant's key, `boss` an operator's, `gate` one that acts for
/// others.
fn with_file(stub: &Arc<Stub>) -> Router {
    let text = r#"
        [tenants.small]
        lane = "batch"
        models = ["stub"]
        requests_per_minute = 5
        [[tenants.small.keys]]
        id = "00000001"
        hash = "sha256:81db8ebbbbc69c6c6ad4a6aa92b76e0c08af547da236b9e2c9dbe1d8285a8130"
        created = 2026-11-30T12:00:00Z
        [tenants.boss]
        operator = true
        models = ["another"]
        [[tenants.boss.keys]]
        id = "00000002"
        hash = "sha256:a5e7c002443743c5836758c7d1cd8ddefd9fcf2061daa0efaac683fb99966057"
        created = 2026-11-30T12:00:00Z
        [tenants.gate]
        act_for = true
        [[tenants.gate.keys]]
        id = "00000003"
        hash = "sha256:c974e17b8e7321ce8c12983de3d0ed4a289821f579bbe0925b0181a4bc8e8d80"
        created = 2026-11-30T12:00:00Z
        [[tenants.gate.keys]]
        id = "00000004"
        hash = "sha256:cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4"
        created = 2026-01-30T12:00:00Z
        expires = 2026-02-01T00:00:00Z
    "#;
    let keyring = Keyring::parse(text).unwrap();
    let auth = AuthConfig::of(Arc::new(ArcSwap::from_pointee(keyring)));
    router(Arc::clone(stub) as _, HttpConfig { auth, ..HttpConfig::default() })
}

fn by(key: &str, method: &str, path: &str, body: &'static str) -> Request<Body> {
    let mut sent = request(method, path, body);
    sent.headers_mut().insert("x-api-key", key.parse().unwrap());
    sent
}

#[tokio::test]
async fn what_concerns_all_tenants_is_for_operators() {
    let router = with_file(&Arc::default());
    for (key, metrics, has_details) in
        [("small", 403, false), ("boss", 200, true), ("gate", 403, false)]
    {
        let reply = call(&router, by(key, "GET", "/metrics", "")).await;
        assert_eq!(reply.status, metrics, "{key}");
        let health = call(&router, by(key, "GET", "/health", "")).await;
        assert_eq!(
            (health.status.as_u16(), health.json()["details"].is_object()),
            (200, has_details),
            "{key}"
        );
    }
    let refused = call(&router, by("small", "GET", "/metrics", "")).await;
    assert_eq!(refused.failure(), (403, "permission_error".to_owned()));
    assert_eq!(refused.header("x-docket-reason"), "not_allowed");
}

#[tokio::test]
async fn an_expired_key_is_as_one_that_is_unknown() {
    let router = with_file(&Arc::default());
    let expired = call(&router, by("old", "POST", "/v1/systemone", NOUL)).await;
    let unknown = call(&router, by("none", "POST", "/v1/systemone", NOUL)).await;
    assert_eq!((expired.status, expired.json()), (unknown.status, unknown.json()));
    assert_eq!(expired.status, 401);
}

#[tokio::test]
async fn a_tenants_requests_a_minute_are_counted_and_told() {
    let router = with_file(&Arc::default());
    for left in ["4", "3", "2", "1", "0"] {
        let reply = call(&router, by("small", "GET", "/v1/models", "")).await;
        assert_eq!((reply.status.as_u16(), reply.header("ratelimit-remaining")), (200, left));
        assert_eq!(
            (reply.header("ratelimit-limit"), reply.header("ratelimit-policy")),
            ("5", "5;w=60")
        );
    }
    for (path, kind) in [
        ("/v1/systemone", "rate_limit_error"),
        ("/self/v1/systemone", "rate_limited"),
        ("/gmlx/v1/systemone", "rate_limit_error"),
        ("/vllm/v1/systemone", "Too Many Requests"),
        ("/openai/v1/decisions", "rate_limit_error"),
    ] {
        let reply = call(&router, by("small", "POST", path, NOUL)).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("x-docket-reason")),
            (429, "rate_limited"),
            "{path}"
        );
        assert!(reply.json().to_string().contains(kind), "{path}: {reply:?}");
        let wait: u64 = reply.header("retry-after").parse().unwrap();
        assert!((11..=12).contains(&wait), "{wait}");
        assert_eq!(reply.header("ratelimit-remaining"), "0");
    }
    let public = call(&router, by("small", "GET", "/health", "")).await;
    assert_eq!((public.status.as_u16(), public.headers.get("ratelimit-limit")), (200, None));
    assert_eq!(call(&router, by("gate", "POST", "/v1/systemone", NOUL)).await.status, 200);
}

#[tokio::test]
async fn a_tenant_is_served_in_its_lanes_and_from_its_models() {
    let stub = Arc::new(Stub::default());
    let router = with_file(&stub);
    let urgent = r#"{"state":"x","priority":"urgent","questions":{"q":{"type":"noul"}}}"#;
    assert_eq!(call(&router, by("small", "POST", "/v1/systemone", urgent)).await.status, 200);
    let last = stub.last.lock().unwrap().take().unwrap();
    assert_eq!(last.1.lane, Some(actors::Lane::Batch));
    assert_eq!(call(&router, by("gate", "POST", "/v1/systemone", urgent)).await.status, 200);
    let last = stub.last.lock().unwrap().take().unwrap();
    assert_eq!(last.1.lane, Some(actors::Lane::Urgent));
    for path in ["/v1/systemone", "/v1/estimate", "/decisio/v1/systemone"] {
        assert_eq!(call(&router, by("boss", "POST", path, NOUL)).await.status, 404, "{path}");
    }
    let reply = call(&router, by("boss", "GET", "/v1/models", "")).await;
    assert_eq!(reply.header("x-docket-reason"), "unknown_model");
    assert_eq!(
        call(&router, by("boss", "POST", "/v1/prewarm", r#"{"state":"x"}"#)).await.status,
        404
    );
}

#[tokio::test]
async fn only_a_key_with_the_right_acts_for_others() {
    let stub = Arc::new(Stub::default());
    let router = with_file(&stub);
    let acting = |key: &str, sub: &str| {
        let mut sent = by(key, "POST", "/v1/systemone", NOUL);
        sent.headers_mut().insert("x-gateway-inference-fairness-id", sub.parse().unwrap());
        sent
    };
    assert_eq!(call(&router, acting("gate", "ann")).await.status, 200);
    let last = stub.last.lock().unwrap().take().unwrap();
    assert_eq!(&*last.0.tenant.0, "gate/ann");
    assert_eq!(
        call(&router, acting("small", "ann")).await.failure(),
        (403, "permission_error".to_owned())
    );
    let odd = call(&router, acting("gate", "a/b")).await;
    assert_eq!((odd.status.as_u16(), odd.header("x-docket-reason")), (400, "header_invalid"));
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
    found.retain(|(_, path)| !path.starts_with("/docs"));
    // It is there to refuse: OpenAI's decisions have no batches.
    assert!(found.remove(&("POST".to_owned(), "/openai/v1/systemone/batch".to_owned())));
    assert_eq!(found, described());
}

#[tokio::test]
async fn pages_load_nothing_from_elsewhere() {
    let router = with_keys(&["k"]);
    for (path, media) in [
        ("/docs", "text/html; charset=utf-8"),
        ("/docs/reference.css", "text/css; charset=utf-8"),
        ("/docs/reference.js", "text/javascript; charset=utf-8"),
    ] {
        let page = call(&router, request("GET", path, "")).await;
        assert_eq!((page.status.as_u16(), page.header("content-type")), (200, media));
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let text = String::from_utf8(page.body).unwrap();
        assert!(!text.contains("http://") && !text.contains("https://"), "{path}");
        assert!(!text.contains("innerHTML") && !text.contains("style="), "{path}");
    }
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
