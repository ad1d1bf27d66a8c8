//! One request through a gateway: received whole, sent to a backend, to another one where the rules of
//! `retry` say so, and its answer passed on as it comes.
//!
//! A future that is dropped, because its client has gone, ends the request at the backend: the
//! connection to it is closed, and a docket takes that for what it is.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, Version, uri};
use axum::response::Response;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::answer::{AnswerBody, UnderWay};
use super::pool::Place;
use super::retry::{Failed, Next, Refused, Sake, Tries};
use super::route::{About, Route};
use super::{Gateway, hygiene, key};
use crate::dialect::Dialect;
use crate::dialect::problem::{GatewayFault, RequestFault};
use crate::http::{BODY_TIMEOUT, Encoding, discard, off_the_runtime, receive_in_time, refuse};
use crate::state_key::{HEADER, StateKey};
use crate::telemetry::{self, BackendEnd, Held, KeyFrom};

/// Most bytes of a refusal that is kept while another backend is asked.
const REFUSAL_BYTES_MAX: usize = 64 << 10;

/// Bodies longer than this are parsed off the runtime's own turn.
const QUICK_BYTES_MAX: usize = 256 << 10;

/// What every backend is sent of a request.
struct Sending {
    method: Method,
    path: uri::PathAndQuery,
    headers: HeaderMap,
    body: Bytes,
    route: Route,
    /// What it is routed by; none where it is about nothing.
    key: Option<StateKey>,
}

/// What became of a request at one backend.
enum Tried {
    /// An answer that is passed on.
    Answered(Response<Incoming>),
    /// None, or a refusal that is kept.
    Failed(Failed, Option<Response<Bytes>>),
}

/// What a client is told where there is no answer.
enum Told {
    Refusal(Response<Bytes>),
    Fault(GatewayFault),
}

pub(super) async fn forward(State(gateway): State<Arc<Gateway>>, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let dialect = gateway.dialect_of(&parts);
    let id = hygiene::prepare(&mut parts);
    // Boxed: what it holds between two backends is large, and most requests ask one.
    let forwarded = Box::pin(gateway.forwarded(parts, body)).await;
    forwarded.unwrap_or_else(|fault| failed(dialect, fault, &id))
}

/// What a gateway answers itself, in the words of the request's dialect.
fn failed(dialect: Dialect, fault: RequestFault, id: &str) -> Response {
    let fault = fault.into();
    let refusal = dialect.refusal(&fault, crate::dialect::problem::FullStatus::default());
    telemetry::gateway_failed(refusal.reason);
    let mut response = refuse(refusal, &fault);
    if let Ok(id) = HeaderValue::from_str(id) {
        response.headers_mut().insert("x-typesafe-request-id", id);
    }
    response
}

impl Gateway {
    /// The dialect in whose words a request is refused: that of its path, else of its header, else the
    /// gateway's.
    fn dialect_of(&self, parts: &Parts) -> Dialect {
        let first = parts.uri.path().split('/').nth(1).and_then(|name| name.parse().ok());
        let named = || crate::http::one_value(&parts.headers, "x-docket-dialect").ok().flatten();
        first.or_else(|| named()?.to_str().ok()?.parse().ok()).unwrap_or(self.dialect)
    }

    async fn forwarded(
        self: &Arc<Self>,
        parts: Parts,
        body: Body,
    ) -> Result<Response, RequestFault> {
        let count_max = self.config.requests.max as usize;
        let permit = Arc::clone(&self.requests).try_acquire_owned();
        let Ok(permit) = permit else {
            discard(&parts.headers, body).await;
            return Err(GatewayFault::Full { count_max }.into());
        };
        let under_way = UnderWay::new(permit);
        let mut body = body;
        let mut hold = self.bodies.hold();
        let limits = (self.body_bytes_max(), BODY_TIMEOUT);
        let received = receive_in_time(&parts.headers, &mut body, limits, &mut hold).await;
        let received = match received {
            Ok(bytes) => Bytes::from(bytes),
            Err(fault) => {
                discard(&parts.headers, body).await;
                return Err(fault);
            }
        };
        let sending = self.sending(parts, received).await?;
        if sending.route.about == About::Pin {
            return self.everywhere(&sending, under_way).await;
        }
        self.anywhere(&sending, under_way).await
    }

    /// What backends are sent, with the key that it is routed by.
    async fn sending(&self, parts: Parts, body: Bytes) -> Result<Sending, RequestFault> {
        let route = Route::of(&parts.method, parts.uri.path());
        let mut headers = parts.headers;
        let sent = key::sent(&headers);
        let is_about_state = matches!(route.about, About::State | About::States);
        let key = match sent.filter(|_| is_about_state) {
            Some(key) => Some(key),
            None => self.made_key(&headers, route.about, &body).await?,
        };
        telemetry::keyed(match (key, sent) {
            (None, _) => KeyFrom::None,
            (Some(_), Some(_)) if is_about_state => KeyFrom::Header,
            (Some(_), _) => KeyFrom::Body,
        });
        // A router behind this one goes by the same key. One that is malformed is for the backend to refuse.
        if let (Some(key), false) = (key.filter(|_| is_about_state), headers.contains_key(HEADER)) {
            insert_key(&mut headers, key);
        }
        let root = uri::PathAndQuery::from_static("/");
        let path = parts.uri.path_and_query().cloned().unwrap_or(root);
        Ok(Sending { method: parts.method, path, headers, body, route, key })
    }

    async fn made_key(
        &self,
        headers: &HeaderMap,
        about: About,
        body: &Bytes,
    ) -> Result<Option<StateKey>, RequestFault> {
        let encoding = Encoding::of(headers)?;
        let bytes_max = self.body_bytes_max();
        let made = || {
            // What is damaged has a key too: its backend says what is wrong with it.
            let opened = (encoding != Encoding::Identity).then(|| encoding.decode(body, bytes_max));
            let text = opened.and_then(Result::ok);
            key::made(&self.secret, headers, about, text.as_deref().unwrap_or(body))
        };
        if encoding == Encoding::Identity && body.len() <= QUICK_BYTES_MAX {
            return Ok(made());
        }
        // The semaphore is never closed; were it, parsing would go on without its limit.
        let _permit = self.parsers.acquire().await;
        let _busy = telemetry::parser();
        Ok(off_the_runtime(made))
    }

    /// Asks the backend that the key prefers, and others as far as the rules allow.
    async fn anywhere(
        self: &Arc<Self>,
        sending: &Sending,
        under_way: UnderWay,
    ) -> Result<Response, RequestFault> {
        let order = sending.key.map(|key| self.pool.order(key));
        let mut tries = Tries::new(sending.route, self.config.retries);
        let (mut tried, mut told) = (Vec::new(), None);
        // Whoever refuses first has told a time, and keeps room until then.
        let (mut first_refused, mut again, mut has_waited) = (None, None, false);
        let mut retrying: Option<(SemaphorePermit<'_>, Held)> = None;
        loop {
            let same = again.take().and_then(|index| self.pool.place_at(index));
            let place = same.or_else(|| self.pool.place(order.as_deref(), &tried));
            let Some(mut place) = place else { break };
            tried.push(place.index());
            let (failed, refusal) = match self.ask(&mut place, sending).await {
                Tried::Answered(response) => {
                    return Ok(self.passed_on(response, sending, place, under_way));
                }
                Tried::Failed(failed, refusal) => (failed, refusal),
            };
            if refusal.is_some() {
                first_refused = first_refused.or(Some(place.index()));
            }
            drop(place);
            let limit = self.config.requests.answer_timeout;
            told = Some(worse(told.filter(|_| !has_waited), (failed, refusal), limit));
            let next = tries.next(failed, self.pool.has_others(&tried));
            if next != Next::Tell && retrying.is_none() {
                let Ok(permit) = self.retrying.try_acquire() else { break };
                retrying = Some((permit, telemetry::retrying()));
            }
            match next {
                Next::Elsewhere(why) => telemetry::retried(why),
                Next::After(time) => {
                    tokio::time::sleep(time).await;
                    telemetry::retried(telemetry::RetryFor::Waited);
                    (again, has_waited) = (first_refused, true);
                }
                Next::Tell => break,
            }
        }
        match told.unwrap_or(Told::Fault(GatewayFault::NoBackend)) {
            Told::Refusal(response) => Ok(finished(response.map(Body::from), sending)),
            Told::Fault(fault) => Err(fault.into()),
        }
    }

    /// Asks all backends in turn, until one has what is to be given up.
    async fn everywhere(
        self: &Arc<Self>,
        sending: &Sending,
        under_way: UnderWay,
    ) -> Result<Response, RequestFault> {
        let (mut absent, mut fault) = (None, None);
        for index in self.pool.taking() {
            let Some(mut place) = self.pool.place_at(index) else { continue };
            match self.ask(&mut place, sending).await {
                Tried::Answered(response) if response.status() != StatusCode::NOT_FOUND => {
                    return Ok(self.passed_on(response, sending, place, under_way));
                }
                Tried::Answered(response) => absent = Some((response, place)),
                Tried::Failed(_, Some(refusal)) => fault = Some(Told::Refusal(refusal)),
                Tried::Failed(failed, None) => {
                    let limit = self.config.requests.answer_timeout;
                    fault = Some(Told::Fault(fault_of(failed, limit)));
                }
            }
        }
        // One that could not be asked may have had it.
        match (fault, absent) {
            (Some(Told::Refusal(response)), _) => Ok(finished(response.map(Body::from), sending)),
            (Some(Told::Fault(fault)), _) => Err(fault.into()),
            (None, Some((response, place))) => {
                Ok(self.passed_on(response, sending, place, under_way))
            }
            (None, None) => Err(GatewayFault::NoBackend.into()),
        }
    }

    /// Asks one backend, once.
    async fn ask(&self, place: &mut Place, sending: &Sending) -> Tried {
        let failed = |failed| Tried::Failed(failed, None);
        let asked = self.client.request(sending.to(self.pool.name(place.index())));
        let limit = self.config.requests.answer_timeout;
        let response = match timeout(limit, asked).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() => {
                tracing::debug!(%error, "a backend could not be reached");
                place.ends(BackendEnd::Unreached);
                return failed(Failed::Unreached);
            }
            Ok(Err(error)) => {
                tracing::debug!(%error, "the connection to a backend broke");
                place.ends(BackendEnd::Broken);
                return failed(Failed::Broken);
            }
            Err(_) => {
                place.ends(BackendEnd::Timeout);
                return failed(Failed::Timeout);
            }
        };
        place.answered();
        let status = response.status();
        if !matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            return Tried::Answered(response);
        }
        let refused = Refused::of(response.headers());
        let Some(refusal) = kept(response, limit).await else {
            place.ends(BackendEnd::Broken);
            return failed(Failed::Broken);
        };
        place.ends(BackendEnd::Refused);
        if refused.sake == Sake::Leaving {
            place.leaving();
        }
        Tried::Failed(Failed::Refused(refused), Some(refusal))
    }

    /// An answer, for the client: its body follows as it comes.
    fn passed_on(
        &self,
        response: Response<Incoming>,
        sending: &Sending,
        place: Place,
        under_way: UnderWay,
    ) -> Response {
        let limit = self.config.requests.answer_timeout;
        let body = |incoming| Body::new(AnswerBody::new(incoming, place, under_way, limit));
        finished(response.map(body), sending)
    }
}

impl Sending {
    /// The request, for one backend.
    fn to(&self, backend: &str) -> hyper::Request<Full<Bytes>> {
        let mut request = hyper::Request::new(Full::new(self.body.clone()));
        let mut parts = uri::Parts::default();
        parts.scheme = Some(uri::Scheme::HTTP);
        // Checked when the gateway was configured.
        parts.authority = backend.parse().ok();
        parts.path_and_query = Some(self.path.clone());
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

/// An answer without what was for its connection only, and with the key that its request was routed by:
/// a client that sends that back is not moved, be its next request the first with a key or not.
fn finished(response: Response<Body>, sending: &Sending) -> Response {
    let (mut parts, body) = response.into_parts();
    hygiene::pass_on(&mut parts.headers);
    match sending.key.filter(|_| sending.route.about == About::State) {
        Some(key) => insert_key(&mut parts.headers, key),
        None => drop(parts.headers.remove(HEADER)),
    }
    parts.version = Version::HTTP_11;
    parts.extensions.clear();
    Response::from_parts(parts, body)
}

fn insert_key(headers: &mut HeaderMap, key: StateKey) {
    // Digits are a value.
    if let Ok(value) = HeaderValue::from_str(&key.to_string()) {
        headers.insert(HEADER, value);
    }
}

/// A refusal, read whole; `None` where it does not come to its end, or has far too much to say.
async fn kept(response: Response<Incoming>, limit: Duration) -> Option<Response<Bytes>> {
    let (parts, body) = response.into_parts();
    let collected = timeout(limit, Limited::new(body, REFUSAL_BYTES_MAX).collect()).await;
    let body = collected.ok()?.ok()?.to_bytes();
    Some(Response::from_parts(parts, body))
}

/// What is told after one more try: the first refusal, whose backend keeps room for whoever comes back, else
/// what went wrong last.
fn worse(
    told: Option<Told>,
    (failed, refusal): (Failed, Option<Response<Bytes>>),
    limit: Duration,
) -> Told {
    match (told, refusal) {
        (Some(first @ Told::Refusal(_)), _) => first,
        (_, Some(refusal)) => Told::Refusal(refusal),
        (_, None) => Told::Fault(fault_of(failed, limit)),
    }
}

fn fault_of(failed: Failed, limit: Duration) -> GatewayFault {
    match failed {
        Failed::Broken => GatewayFault::Lost,
        Failed::Timeout => GatewayFault::Timeout { limit },
        Failed::Unreached | Failed::Refused(_) => GatewayFault::NoBackend,
    }
}
