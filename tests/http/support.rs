//! A service that answers at once (or when told), and ways to call the router over it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use actors::{Lane, ReadError, RejectReason, Tier};
use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, Request, StatusCode};
use docket::error::DecideError;
use docket::http::{AuthConfig, HttpConfig, router};
use docket::json::Json;
use docket::question::answer::{Answer, Cost, Diagnostics, Learned, Value};
use docket::question::{Decision, Kind};
use docket::service::images::{Image, ImageLimits};
use docket::service::{
    Arrival, Caller, Decided, Estimate, Health, ModelEntry, Order, Prefixes, Prewarm, Prewarmed,
    Registered, Service, States, TaskKind, Teaching, Warmed,
};
use docket::state_key::StateKey;
use futures_util::future::BoxFuture;
use http_body_util::BodyExt;
use tokio::sync::Notify;
use tower::ServiceExt;

/// Answers every question with even odds; for the state `full` there is no room.
pub(crate) struct Stub {
    /// What decisions end with instead of an answer.
    pub(crate) error: Option<DecideError>,
    /// Whether decisions wait for [`Stub::release`].
    pub(crate) waits: bool,
    pub(crate) release: Notify,
    pub(crate) panics: bool,
    pub(crate) health: Health,
    /// Decisions that were begun, dropped unanswered, and reported as served.
    pub(crate) begun: AtomicUsize,
    pub(crate) dropped: AtomicUsize,
    pub(crate) served: Arc<AtomicUsize>,
    /// Rises with `begun`, `dropped` and `served`.
    pub(crate) changed: Arc<Notify>,
    pub(crate) last: Mutex<Option<(Caller, Decision)>>,
    /// What it sees of images, and those of the last decision.
    pub(crate) sees: Option<ImageLimits>,
    pub(crate) seen: Mutex<Vec<Image>>,
}

impl Default for Stub {
    fn default() -> Self {
        let details = serde_json::json!({"engine": "stub"});
        Self {
            error: None,
            waits: false,
            release: Notify::new(),
            panics: false,
            health: Health { ready: true, reason: None, dead: None, details },
            begun: AtomicUsize::new(0),
            dropped: AtomicUsize::new(0),
            served: Arc::default(),
            changed: Arc::default(),
            last: Mutex::default(),
            sees: None,
            seen: Mutex::default(),
        }
    }
}

impl Stub {
    /// Waits until `is_so`; the caller's test times out where it never is.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }
}

/// Counts a decision whose future was dropped before its end.
struct Dropped<'a>(&'a Stub, bool);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        if !self.1 {
            self.0.dropped.fetch_add(1, Ordering::SeqCst);
            self.0.changed.notify_waiters();
        }
    }
}

pub(crate) fn cost() -> Cost {
    Cost {
        lane: Lane::Normal,
        input_tokens: 10,
        prompt_tokens: 20,
        computed_tokens: 15,
        cached_tokens: 5,
        prepare: Duration::from_micros(5),
        queue_wait: Duration::from_micros(10),
        state_wait: Duration::from_micros(20),
        state_time: Duration::from_micros(20),
        engine_wait: Duration::from_micros(30),
        engine_time: Duration::from_micros(40),
        steps_time: Duration::from_micros(40),
        behind_registration: false,
        state_tokenisations: 1,
        rows: Vec::new(),
        prefix_tokens: 0,
        runs: 1,
    }
}

fn text(level: &Json) -> String {
    level.as_str().map_or_else(|| level.compact(), str::to_owned)
}

fn even(kind: &Kind) -> Value {
    let count = kind.options();
    let probabilities = vec![1.0 / count as f64; count];
    match kind {
        Kind::Noul { .. } => Value::Noul { yes: 0.5 },
        Kind::Choice { options } => Value::Choice {
            chosen: 0,
            keys: options.iter().map(|option| option.key.clone()).collect(),
            probabilities,
            confidence: if count == 1 { 1.0 } else { 0.0 },
        },
        Kind::Score { levels } => Value::Score {
            mean: (count - 1) as f64 / 2.0,
            legend: levels.iter().map(text).collect(),
            probabilities,
            confidence: 0.0,
        },
    }
}

fn warm(state: &Json) -> Result<Warmed, DecideError> {
    if state.as_str() == Some("full") {
        let (reads_waiting, reads_max) = (9, 8);
        let retry_after = Duration::from_millis(2_400);
        let full = RejectReason::QueueFull { reads_waiting, reads_max, retry_after };
        return Err(ReadError::Rejected(full).into());
    }
    Ok(Warmed {
        prompt_tokens: 17,
        reused: false,
        stored: true,
        tier: Tier::Exact,
        expires_at: Some(1_800_000_000),
        handle: Some("beef".to_owned()),
    })
}

impl Service for Stub {
    fn estimate(
        &self,
        caller: Caller,
        decision: Decision,
        _: Arrival,
    ) -> BoxFuture<'_, Result<Estimate, DecideError>> {
        *self.last.lock().unwrap() = Some((caller, decision));
        Box::pin(async move {
            Ok(Estimate {
                input_tokens: 20,
                prefix_tokens: 30,
                cached_tokens: 10,
                computed_tokens: 40,
                longest_tokens: 50,
                context_tokens: 100,
                reads: 2,
                wait: Duration::from_millis(250),
                engine: None,
                refused: None,
            })
        })
    }

    fn decide(
        &self,
        caller: Caller,
        decision: Decision,
        _: Arrival,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        let questions = decision.questions.clone();
        let has_room = warm(&decision.state).map(|_| ());
        *self.last.lock().unwrap() = Some((caller, decision));
        Box::pin(async move {
            assert!(!self.panics, "as the test wants");
            let mut guard = Dropped(self, false);
            self.begun.fetch_add(1, Ordering::SeqCst);
            self.changed.notify_waiters();
            if self.waits {
                self.release.notified().await;
            }
            guard.1 = true;
            if let Some(error) = &self.error {
                return Err(error.clone());
            }
            has_room?;
            let diagnostics = Diagnostics { label_mass: Some(1.0), ..Diagnostics::default() };
            let answers = questions.into_iter().map(|question| Answer {
                value: even(&question.kind),
                id: question.id,
                diagnostics: diagnostics.clone(),
                raw: Vec::new(),
                hidden: None,
                learned: Learned::default(),
                citations: None,
            });
            let (served, changed) = (Arc::clone(&self.served), Arc::clone(&self.changed));
            Ok(Decided {
                answers: answers.collect(),
                cost: cost(),
                tasks: Vec::new(),
                model: "stub".to_owned(),
                stages: Vec::new(),
                reused: false,
                tier: Tier::Exact,
                state_text: None,
                state_key: Some(StateKey(0xab)),
                served: Box::new(move || {
                    served.fetch_add(1, Ordering::SeqCst);
                    changed.notify_waiters();
                }),
            })
        })
    }

    fn images(&self) -> Option<ImageLimits> {
        self.sees
    }

    fn decide_seeing(
        &self,
        caller: Caller,
        decision: Decision,
        images: Vec<Image>,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        *self.seen.lock().unwrap() = images;
        self.decide(caller, decision, arrival)
    }

    /// Reads every state but the text `full`, for which there is no room.
    fn prewarm(
        &self,
        _: Caller,
        request: Prewarm,
        _: Arrival,
    ) -> BoxFuture<'_, Result<Prewarmed, DecideError>> {
        let prefixes = match request.states {
            States::One(state) => warm(&state).map(Prefixes::One),
            States::Many(states) => Ok(Prefixes::Many(states.iter().map(warm).collect())),
        };
        let model = "stub".to_owned();
        let prewarmed = prefixes.map(|prefixes| Prewarmed {
            model,
            prefixes,
            cost: cost(),
            state_key: Some(StateKey(0xab)),
        });
        Box::pin(async move { prewarmed })
    }

    /// Knows one pin, `beef`.
    fn unpin(&self, _: Caller, handle: String) -> BoxFuture<'_, Result<bool, DecideError>> {
        Box::pin(async move { Ok(handle == "beef") })
    }

    fn models(&self) -> Vec<ModelEntry> {
        let text = |text: &str| text.to_owned();
        vec![ModelEntry {
            name: text("stub"),
            description: text("answers with even odds"),
            is_readable: true,
            ..ModelEntry::default()
        }]
    }

    fn served_name(&self) -> &'static str {
        "stub"
    }

    fn health(&self) -> Health {
        self.health.clone()
    }

    fn metrics(&self) -> String {
        "docket_test 1\n".to_owned()
    }

    fn teaching(&self) -> Option<&dyn Teaching> {
        Some(self)
    }
}

/// Learns nothing, and has one task, `ticket one`.
impl Teaching for Stub {
    fn register(
        &self,
        _: Caller,
        _: Order,
        _: bool,
    ) -> BoxFuture<'_, Result<Registered, DecideError>> {
        Box::pin(async { Err(self.error.clone().unwrap_or(ReadError::Cancelled.into())) })
    }

    fn tasks(&self, _: &Caller, _: TaskKind, _: bool) -> serde_json::Value {
        serde_json::json!({"tasks": [{"id": "ticket one"}]})
    }

    fn registration(&self, _: &Caller, _: TaskKind, id: &str) -> Option<serde_json::Value> {
        (id == "ticket one").then(|| serde_json::json!({"id": id, "state": "done"}))
    }

    fn unregister(&self, _: &Caller, _: TaskKind, id: &str) -> Result<bool, DecideError> {
        Ok(id == "ticket one")
    }

    fn import(
        &self,
        _: &Caller,
        _: TaskKind,
        _: Vec<serde_json::Value>,
    ) -> Result<Vec<String>, DecideError> {
        Ok(Vec::new())
    }

    fn settings(&self, _: Option<&Caller>) -> serde_json::Value {
        serde_json::json!({})
    }
}

/// A response, read whole.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }

    /// Type of the first fault of a 422.
    pub(crate) fn fault(&self) -> String {
        assert_eq!(self.status, 422, "{self:?}");
        let detail = &self.json()["detail"][0];
        assert_eq!(detail["loc"][0], "body");
        assert!(detail["msg"].is_string());
        detail["type"].as_str().unwrap().to_owned()
    }

    /// Status and type of any other failure.
    pub(crate) fn failure(&self) -> (u16, String) {
        let detail = &self.json()["detail"];
        assert!(detail["message"].is_string(), "{self:?}");
        (self.status.as_u16(), detail["error_type"].as_str().unwrap().to_owned())
    }
}

pub(crate) async fn call(router: &Router, request: Request<Body>) -> Reply {
    let response = router.clone().oneshot(request).await.unwrap();
    assert!(response.headers().contains_key("x-typesafe-request-id"));
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    Reply { status: parts.status, headers: parts.headers, body }
}

/// A router over a stub with default settings.
pub(crate) fn plain() -> Router {
    router(Arc::new(Stub::default()), HttpConfig::default())
}

pub(crate) fn with_keys(texts: &[&str]) -> Router {
    let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
    let auth = AuthConfig::from_texts(&texts).unwrap();
    router(Arc::new(Stub::default()), HttpConfig { auth, ..HttpConfig::default() })
}

pub(crate) fn request(method: &str, path: &str, body: impl Into<Body>) -> Request<Body> {
    Request::builder().method(method).uri(path).body(body.into()).unwrap()
}

pub(crate) async fn post(router: &Router, body: impl Into<Body>) -> Reply {
    call(router, request("POST", "/v1/systemone", body)).await
}

/// A body with one noul.
pub(crate) const NOUL: &str = r#"{"state":"s","questions":{"q":{"type":"noul"}}}"#;
