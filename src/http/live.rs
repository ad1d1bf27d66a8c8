//! `GET /v1/live`: what operators look at from one moment to the next, as one look or as events.
//!
//! A look is made of what the actors publish anyway, at most once in [`FRESH`] however many look, so that
//! looking costs the scheduler nothing. It has numbers and names of tenants, and never text of a state.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::stream::{self, Stream};
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use super::latency::Latencies;
use super::{App, respond};
use crate::telemetry;

/// Most streams of events at one time; who finds all taken is given one look.
pub const VIEWERS_MAX: usize = 16;

/// From one event to the next.
const EVERY: Duration = Duration::from_millis(500);

/// For how long a look is shown to all who ask; less than [`EVERY`], so that each event is a new one.
const FRESH: Duration = Duration::from_millis(400);

const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// What looking needs.
pub(super) struct Looks {
    viewers: Arc<Semaphore>,
    /// The last look. Held while one is made, which is short: who comes meanwhile wants that very one.
    last: Mutex<Option<Look>>,
    /// Answers of late, by lane.
    pub(super) latencies: Latencies,
}

/// One look, made at a time.
#[derive(Clone)]
struct Look {
    at: Instant,
    text: Bytes,
    /// Whether what waits, runs and is held is in it one by one.
    has_details: bool,
    /// Whether there will be nothing more to look at: the server stops.
    is_last: bool,
}

impl Looks {
    pub(super) fn new() -> Self {
        telemetry::viewers_max(VIEWERS_MAX);
        Self {
            viewers: Arc::new(Semaphore::new(VIEWERS_MAX)),
            last: Mutex::new(None),
            latencies: Latencies::default(),
        }
    }
}

/// One place among the viewers; counted for as long as it is held.
struct Viewer {
    _place: OwnedSemaphorePermit,
}

impl Viewer {
    fn new(place: OwnedSemaphorePermit) -> Self {
        telemetry::viewer(1.0);
        Self { _place: place }
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        telemetry::viewer(-1.0);
    }
}

pub(super) async fn live(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let place = wants_events(&headers)
        .then(|| Arc::clone(&app.looks.viewers).try_acquire_owned().ok())
        .flatten();
    let mut response = match place {
        Some(place) => {
            let body = Body::from_stream(events(app, Viewer::new(place)));
            let mut response = Response::new(body);
            response.headers_mut().insert(header::CONTENT_TYPE, EVENTS);
            response
        }
        None => respond::json(StatusCode::OK, whole(&app).await.text),
    };
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Whether the client says by name that it takes events.
fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepts.flat_map(|value| value.split(','));
    kinds.any(|kind| kind.split(';').next().unwrap_or_default().trim() == "text/event-stream")
}

/// A look at once and then one in [`EVERY`], until the server stops or the viewer leaves.
fn events(
    app: Arc<App>,
    viewer: Viewer,
) -> impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::unfold(Some((app, viewer, Duration::ZERO)), |state| async move {
        let (app, viewer, wait) = state?;
        sleep(wait).await;
        let look = look(&app);
        let event = [b"data: ".as_slice(), &look.text, b"\n\n"].concat();
        let next = (!look.is_last).then_some((app, viewer, EVERY));
        Some((Ok(event.into()), next))
    })
}

/// A look with details, which the first after a while has none of: it only has them made.
async fn whole(app: &App) -> Look {
    let first = look(app);
    if first.has_details {
        return first;
    }
    sleep(FRESH).await;
    look(app)
}

/// The last look, or a new one where that is not fresh.
fn look(app: &App) -> Look {
    let now = Instant::now();
    let mut last = app.looks.last.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(look) = last.as_ref().filter(|look| now.duration_since(look.at) < FRESH) {
        return look.clone();
    }
    let health = app.service.live();
    let is_last = health.dead.is_some() || health.reason.as_deref() == Some("draining");
    let mut body = health.details;
    body["ready"] = json!(health.ready);
    body["reason"] = json!(health.dead.or(health.reason));
    body["latency"] = app.looks.latencies.shown(now);
    body["viewers"] = json!(VIEWERS_MAX - app.looks.viewers.available_permits());
    // An engine without a scheduler has no such member, and never will.
    let has_details = body.get("resident").is_none_or(|held| !held.is_null());
    let look = Look { at: now, text: body.to_string().into(), has_details, is_last };
    *last = Some(look.clone());
    look
}
