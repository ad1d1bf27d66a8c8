//! What is told of a request once it has ended: its spans, and its line in the access log.
//!
//! Where neither is wanted nothing of this is made. A response carries what became of its decisions
//! among its extensions, up to the guard, which knows the rest.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant, SystemTime};

use actors::{Lane, TenantId};
use axum::body::Body;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

use crate::dialect::Dialect;
use crate::question::answer::Cost;
use crate::tenants::tenant_hash;
use crate::traces::spans::{self, Work, Works};
use crate::traces::{Traced, parent};

use super::guard::Sender;
use super::{App, decide, headers, respond};

/// Target of the access log, which is written whatever the log level.
pub const ACCESS: &str = "docket::access";

/// A route that asks about itself all the time: it is traced only where its caller says so.
const SCRAPED: &str = "/metrics";

/// What the access log says of a request whose client went before there was an answer: nginx's status.
const GONE_STATUS: u16 = 499;
const GONE: &str = "client_gone";

const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

/// What became of a request's decisions; among the extensions of its response.
#[derive(Debug, Clone, Default)]
pub(super) struct Told {
    works: Arc<Mutex<Works>>,
    /// Whether more of them come with the body.
    is_streamed: bool,
}

/// In which dialect a response is; among its extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spoken(pub(super) Dialect);

/// A request that will be told of.
pub(super) struct Watch {
    app: Arc<App>,
    method: &'static str,
    route: &'static str,
    scheme: &'static str,
    dialect: Dialect,
    arrival: Instant,
    request_id: String,
    /// As [`tenant_hash`]; none of a request without a valid key.
    tenant: Option<String>,
    traced: Option<Traced>,
    /// Whether there is a response.
    is_answered: bool,
}

/// What a response says of itself.
#[derive(Debug)]
struct Head {
    status: u16,
    reason: Option<&'static str>,
    lane: Option<Lane>,
    dialect: Dialect,
}

impl Told {
    /// Of a response that is one decision or prewarm.
    pub(super) fn one(sender: &Sender, cost: &Cost, questions: usize) -> Self {
        let work = Work {
            state: None,
            began: Duration::ZERO,
            tried: Duration::ZERO,
            ended: decide::since(sender),
            status: 200,
            reason: None,
            questions,
            cost: Some(spans::without_rows(cost)),
        };
        Self { works: Arc::new(Mutex::new(Works::one(work))), is_streamed: false }
    }

    /// Adds one of several.
    pub(super) fn add(&self, work: Work) {
        self.works.lock().unwrap_or_else(PoisonError::into_inner).add(work);
    }

    /// The same, of a response whose body brings more.
    pub(super) fn streamed(&self) -> Self {
        Self { works: Arc::clone(&self.works), is_streamed: true }
    }
}

impl App {
    /// Whether anything is told of requests.
    pub(super) fn is_watched(&self) -> bool {
        self.config.traces.is_some() || self.config.access_log
    }

    /// Notes in a response what only its handler knows, where it is wanted.
    pub(super) fn note<T: Clone + Send + Sync + 'static>(
        &self,
        response: &mut Response,
        note: impl FnOnce() -> T,
    ) {
        if self.is_watched() {
            response.extensions_mut().insert(note());
        }
    }
}

impl Watch {
    /// Begins to watch a request of this tenant, where anything is told of requests.
    pub(super) fn begin(
        app: &Arc<App>,
        request: &Request,
        (route, dialect): (&'static str, Dialect),
        (request_id, arrival): (&str, Instant),
        tenant: Option<&TenantId>,
    ) -> Option<Self> {
        if !app.is_watched() {
            return None;
        }
        let traced = tenant.and_then(|_| traced(app, request.headers(), route));
        Some(Self {
            app: Arc::clone(app),
            method: name_of(request.method()),
            route,
            scheme: if app.config.is_tls { "https" } else { "http" },
            dialect,
            arrival,
            request_id: request_id.to_owned(),
            tenant: tenant.map(|tenant| tenant_hash(&tenant.0)),
            traced,
            is_answered: false,
        })
    }

    /// The trace that the request is part of.
    pub(super) fn trace_id(&self) -> Option<String> {
        self.traced.as_ref().map(|traced| traced.trace.to_string())
    }

    /// Tells of the request, with the end of the response's body where that brings more to tell.
    pub(super) fn end(mut self, mut response: Response) -> Response {
        self.is_answered = true;
        let told: Option<Told> = response.extensions_mut().remove();
        let spoken = response.extensions().get::<Spoken>();
        let head = Head {
            status: response.status().as_u16(),
            reason: response.extensions().get::<respond::Reason>().map(|reason| reason.0),
            lane: headers::served_lane(response.headers()),
            dialect: spoken.map_or(self.dialect, |spoken| spoken.0),
        };
        let is_streamed = told.as_ref().is_some_and(|told| told.is_streamed);
        let ending = Ending { watch: self, head, told: told.unwrap_or_default() };
        if is_streamed {
            return response.map(|body| Body::new(WatchedBody { body, _ending: ending }));
        }
        response
    }

    fn tell(&self, head: &Head, works: &Works) {
        let took = decide::now().saturating_duration_since(self.arrival);
        let lane = head.lane.or_else(|| Some(works.listed.first()?.cost.as_ref()?.lane));
        let lane = lane.map(Lane::as_str);
        let Head { status, reason, dialect, .. } = *head;
        if self.app.config.access_log {
            self.log(head, (lane, took), works);
        }
        if let (Some(traces), Some(traced)) = (&self.app.config.traces, &self.traced) {
            let request = spans::Request {
                method: self.method,
                route: self.route,
                scheme: self.scheme,
                status,
                reason,
                dialect: dialect.name(),
                lane,
                tenant: self.tenant.clone().unwrap_or_default(),
                request_id: self.request_id.clone(),
                took,
            };
            let now = SystemTime::now();
            let arrived = now.checked_sub(took).unwrap_or(now);
            traces.end(traced, spans::spans(&request, works), arrived);
        }
    }

    /// Writes its line in the access log.
    fn log(&self, head: &Head, (lane, took): (Option<&str>, Duration), works: &Works) {
        let Self { method, route, .. } = *self;
        let Head { status, reason, dialect, .. } = *head;
        let (dialect, tenant) = (dialect.name(), self.tenant.as_deref());
        let Works { questions, computed_tokens, cached_tokens, .. } = *works;
        let (request_id, trace_id) = (&*self.request_id, self.trace_id());
        // A tenth of a millisecond, as in the headers.
        let ms = (took.as_secs_f64() * 1e4).round() / 10.0;
        tracing::info!(
            target: ACCESS,
            method, route, status, reason, dialect, lane, tenant, ms, questions,
            computed_tokens, cached_tokens, request_id, trace_id = trace_id.as_deref(),
            "{}", if self.is_answered { "answered" } else { "gone" }
        );
    }
}

impl Drop for Watch {
    /// Its client went before there was an answer.
    fn drop(&mut self) {
        if self.is_answered || !self.app.config.access_log {
            return;
        }
        let took = decide::now().saturating_duration_since(self.arrival);
        let (reason, dialect) = (Some(GONE), self.dialect);
        let head = Head { status: GONE_STATUS, reason, lane: None, dialect };
        self.log(&head, (None, took), &Works::default());
    }
}

/// Tells of a request when it is dropped.
struct Ending {
    watch: Watch,
    head: Head,
    told: Told,
}

impl Drop for Ending {
    fn drop(&mut self) {
        let works = self.told.works.lock().unwrap_or_else(PoisonError::into_inner);
        self.watch.tell(&self.head, &works);
    }
}

/// A body whose request is told of when it has been sent, or its client has gone.
struct WatchedBody {
    body: Body,
    _ending: Ending,
}

impl hyper::body::Body for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What log lines say that are written while a request of this dialect is decoded: whose they are.
pub(super) fn named<T>(dialect: Dialect, sender: &Sender, decode: impl FnOnce() -> T) -> T {
    // The one dialect that tells the log what it ignores.
    if dialect != Dialect::Gmlx {
        return decode();
    }
    let (request_id, trace_id) = (&*sender.request_id, sender.trace_id.as_deref());
    tracing::warn_span!("request", request_id, trace_id).in_scope(decode)
}

/// Whether a request is traced, and as part of what.
fn traced(app: &App, headers: &HeaderMap, route: &str) -> Option<Traced> {
    let traces = app.config.traces.as_ref()?;
    let mut parents = headers.get_all(TRACEPARENT).iter();
    let parent = match (parents.next(), parents.next()) {
        (Some(sent), None) => parent::parse(sent.as_bytes()),
        _ => None,
    };
    let state = || parent::state(headers.get_all(TRACESTATE).iter().map(HeaderValue::as_bytes));
    traces.begin(parent, state, route != SCRAPED)
}

/// A method's name, where it is one of HTTP's.
fn name_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "_OTHER",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_that_is_none_of_https_is_not_repeated() {
        assert_eq!(name_of(&Method::DELETE), "DELETE");
        assert_eq!(name_of(&Method::from_bytes(b"SECRET").unwrap()), "_OTHER");
    }
}
