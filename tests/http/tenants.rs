//! What a key file says, at the door: operators, requests a minute, lanes, models, sub-tenants.

use std::sync::Arc;
use std::time::SystemTime;

use actors::{Account, TenantId, Work};
use arc_swap::ArcSwap;
use axum::Router;
use axum::body::Body;
use axum::http::Request;
use docket::http::{AuthConfig, HttpConfig, router};
use docket::tenants::Keyring;
use docket::usage::Meter;

use crate::support::{NOUL, Stub, call, request};

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
        let live = call(&router, by(key, "GET", "/v1/live", "")).await;
        assert_eq!(live.status, metrics, "{key}");
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

/// A body that a route of a dialect computes something for.
fn body_of(dialect: &str, route: &str) -> &'static str {
    let last = |names: &[&str]| names.iter().any(|name| route.ends_with(name));
    match dialect {
        "openai" if last(&["/systemone", "/decide", "/decisions", "/estimate"]) => {
            r#"{"model":"m","input":"s","questions":[{"type":"predicate","instructions":"x"}]}"#
        }
        _ if last(&["/decisions"]) => body_of("openai", route),
        _ if last(&["/systemone", "/decide", "/estimate"]) => {
            r#"{"state":"s","questions":{"q":{"type":"noul","instructions":"x"}}}"#
        }
        _ if last(&["/batch"]) => {
            r#"{"states":["s"],"questions":{"q":{"type":"noul","instructions":"x"}}}"#
        }
        _ if last(&["/prewarm"]) => r#"{"state":"s"}"#,
        _ if last(&["/answer"]) => {
            r#"{"state":"s","questions":[{"kind":"noul","instructions":"x"}]}"#
        }
        _ if last(&["/tasks"]) => {
            r#"{"id":"t","examples":[{"request":{"state":"s","questions":{"q":{"type":"noul"}}},"answer":"yes"}]}"#
        }
        _ if last(&["/import"]) => r#"{"tasks":[]}"#,
        _ => panic!("{route}: what does it compute for?"),
    }
}

/// Every route that takes a body, in every dialect.
fn posts() -> Vec<(String, &'static str)> {
    let dialects = ["systemone", "decisio", "self", "vllm", "gmlx", "openai"];
    let named =
        docket::http::ROUTES.into_iter().flat_map(|route| match route.strip_prefix("/{dialect}") {
            Some(rest) => dialects.map(|dialect| (dialect, format!("/{dialect}{rest}"))).to_vec(),
            None => vec![(
                route
                    .split('/')
                    .nth(1)
                    .filter(|first| dialects.contains(first))
                    .unwrap_or("systemone"),
                route.to_owned(),
            )],
        });
    let is_read = |route: &str| {
        ["}", "/status", "/health", "/models", "/model", "/metrics", "/usage", "/openapi.json"]
            .iter()
            .any(|end| route.ends_with(end))
            || route.starts_with("/docs")
            || route == "/"
            || route.ends_with("/live")
            || route == "/openai/v1/systemone/batch"
    };
    named
        .filter(|(_, route)| !is_read(route))
        .map(|(dialect, route)| {
            let body = body_of(dialect, &route);
            (route, body)
        })
        .collect()
}

#[tokio::test]
async fn no_route_computes_for_a_tenant_whose_models_are_not_served() {
    let stub = Arc::new(Stub::default());
    let router = with_file(&stub);
    let posts = posts();
    assert!(posts.len() > 60, "{posts:?}");
    for (route, body) in posts {
        let mut sent = by("boss", "POST", &route, body);
        sent.headers_mut().insert("content-type", "application/json".parse().unwrap());
        let reply = call(&router, sent).await;
        assert_eq!(
            (reply.status.as_u16(), reply.header("x-docket-reason")),
            (404, "unknown_model"),
            "{route}: {reply:?}"
        );
        assert!(
            reply.json().to_string().contains("to this key") || route.contains("vllm"),
            "{route}: {reply:?}"
        );
    }
    assert!(stub.last.lock().unwrap().is_none(), "something was decided");
}

#[tokio::test]
async fn the_highest_lane_of_a_tenant_holds_in_every_dialect() {
    let stub = Arc::new(Stub::default());
    for route in [
        "/v1/systemone",
        "/decisio/v1/systemone",
        "/self/v1/systemone",
        "/gmlx/v1/systemone",
        "/vllm/v1/systemone",
        "/v1/decisions",
        "/v1/answer",
    ] {
        let body = if route == "/v1/answer" {
            body_of("decisio", route)
        } else {
            body_of("systemone", route)
        };
        let mut sent = by("small", "POST", route, body);
        sent.headers_mut().insert("content-type", "application/json".parse().unwrap());
        sent.headers_mut().insert("x-docket-priority", "urgent".parse().unwrap());
        // A router of its own: the tenant has few requests a minute.
        let reply = call(&with_file(&stub), sent).await;
        assert_eq!(reply.status, 200, "{route}: {reply:?}");
        let last = stub.last.lock().unwrap().take().unwrap();
        assert_eq!(last.1.lane, Some(actors::Lane::Batch), "{route}");
    }
}

#[tokio::test]
async fn a_sub_tenant_that_is_refused_costs_a_request_too() {
    let router = with_file(&Arc::default());
    for left in ["4", "3"] {
        let mut sent = by("small", "GET", "/v1/models", "");
        sent.headers_mut().insert("x-gateway-inference-fairness-id", "ann".parse().unwrap());
        let reply = call(&router, sent).await;
        assert_eq!((reply.status.as_u16(), reply.header("ratelimit-remaining")), (403, left));
    }
}

#[tokio::test]
async fn requests_are_counted_whatever_becomes_of_them() {
    let stub = Arc::new(Stub { waits: true, ..Stub::default() });
    let usage = Arc::new(Meter::in_memory());
    let config = HttpConfig { usage: Arc::clone(&usage), ..HttpConfig::default() };
    let router = router(Arc::clone(&stub) as _, config);
    let asked = tokio::spawn({
        let (router, sent) = (router.clone(), request("POST", "/v1/systemone", NOUL));
        async move { call(&router, sent).await }
    });
    stub.until(|stub| stub.begun.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    assert_eq!(call(&router, request("POST", "/v1/systemone", "{")).await.status, 422);
    assert_eq!(call(&router, request("GET", "/v1/models", "")).await.status, 200);
    let total = usage.usage("default", 1, SystemTime::now()).total;
    let ends = [total.answered, total.refused, total.failed];
    assert_eq!((total.requests, ends), (3, [1, 0, 1]), "the first left before its answer");
}

#[tokio::test]
async fn reads_and_their_tokens_are_counted_by_who_runs_them_alone() {
    let usage = Arc::new(Meter::in_memory());
    let config = HttpConfig { usage: Arc::clone(&usage), ..HttpConfig::default() };
    let router = router(Arc::new(Stub::default()), config);
    let counted = || {
        let total = usage.usage("default", 1, SystemTime::now()).total;
        [total.questions, total.reads, total.computed_tokens, total.cached_tokens]
    };
    assert_eq!(call(&router, request("POST", "/v1/systemone", NOUL)).await.status, 200);
    assert_eq!(counted(), [1, 0, 0, 0], "the stub runs nothing");
    let work = Work { reads: 2, computed_tokens: 30, cached_tokens: 7 };
    usage.worked(&TenantId(Arc::from("default")), work);
    assert_eq!(counted(), [1, 2, 30, 7]);
    let body = r#"{"state":"s","model":"m"}"#;
    assert_eq!(call(&router, request("POST", "/v1/prewarm", body)).await.status, 200);
    assert_eq!(counted(), [1, 2, 30, 12], "what a prewarm found is in no read");
}
