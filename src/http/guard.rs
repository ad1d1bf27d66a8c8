//! What every request passes: identity, key, and a net for panics; and what every response carries.

use std::hash::{BuildHasher, RandomState};
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use actors::TenantId;
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use tokio::time::Instant;

use crate::config::is_loopback;
use crate::dialect::Dialect;
use crate::dialect::problem::RequestFault;
use crate::service::Arrival;
use crate::telemetry::{Ended, RouteMeters};
use crate::tenants::Quota;

use super::auth::Grant;
use super::serve::Exchange;
use super::watch::Watch;
use super::wire::Connection;
use super::{App, OPERATOR_ROUTES, PUBLIC_ROUTES, ROUTES, body, headers, once, respond, usage};

/// Longest path and query in bytes: a 16th of what a head may be, and far beyond every route.
const URI_BYTES_MAX: usize = 4 << 10;

/// Most headers of a request.
const HEADERS_MAX: usize = 100;

/// Longest `x-request-id` that is taken over, in characters.
const REQUEST_ID_CHARS_MAX: usize = 128;

/// Responses by route, in the order of [`ROUTES`]; the last of those that have none.
static RESPONSES: LazyLock<Vec<RouteMeters>> =
    LazyLock::new(|| (0..=ROUTES.len()).map(|index| RouteMeters::new(name_of(index))).collect());

/// Who sent a request, and when; put into its extensions for the handlers.
#[derive(Debug, Clone)]
pub(super) struct Sender {
    /// `None` on a public route without a valid key.
    pub(super) grant: Option<Grant>,
    pub(super) arrival: Arrival,
    /// What the response says in `x-request-id`.
    pub(super) request_id: String,
    /// Whether the request named itself so.
    pub(super) names_itself: bool,
    /// The trace that it is part of, where it is traced.
    pub(super) trace_id: Option<String>,
    /// The connection it came on; none in tests that call the router.
    pub(super) connection: Option<Arc<Connection>>,
}

/// The outermost layer of the router.
pub(super) async fn guard(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let exchange = request.extensions_mut().remove::<Exchange>();
    let arrival = exchange.as_ref().map_or_else(now, |exchange| exchange.arrival);
    let route = route(&request);
    let sent_id = sent_id(request.headers());
    let names_itself = sent_id.is_some();
    let id = sent_id.unwrap_or_else(new_id);
    let dialect = app.dialect_of_unknown(&request);
    let mut seen = Seen::default();
    let granted = let_in(&app, &request, name_of(route), &mut seen);
    if let Some(tenant) = &seen.tenant {
        app.config.usage.add(tenant, usage::of_request());
    }
    let told = (name_of(route), dialect);
    let watch = Watch::begin(&app, &request, told, (&id, arrival.at), seen.tenant.as_ref());
    let trace_id = watch.as_ref().and_then(Watch::trace_id);
    let mut response = match granted {
        Err(fault) => {
            let (parts, body) = request.into_parts();
            body::discard(&parts.headers, body).await;
            app.refuse(dialect, &fault.into())
        }
        Ok(grant) => {
            let connection = exchange.map(|exchange| exchange.connection);
            let request_id = id.clone();
            let trace_id = trace_id.clone();
            let sender = Sender { grant, arrival, request_id, names_itself, trace_id, connection };
            request.extensions_mut().insert(sender);
            // A handler's state is dropped whole when it panics, and the service's part of it is
            // cancelled like that of a client which went away.
            let answered = AssertUnwindSafe(next.run(request)).catch_unwind().await;
            answered.unwrap_or_else(|_| app.refuse(dialect, &RequestFault::Panicked.into()))
        }
    };
    if let Some(tenant) = seen.tenant {
        let tokens = app.service.token_bucket(&tenant);
        headers::add_quotas(response.headers_mut(), seen.quota, tokens);
        app.config.usage.add(&tenant, usage::of_response(response.status()));
    }
    headers::insert(response.headers_mut(), headers::REQUEST_ID, &id);
    respond::log(&response, (&id, trace_id.as_deref()), name_of(route));
    RESPONSES[route].ended(Ended {
        status: response.status().as_u16(),
        reason: response.extensions().get::<respond::Reason>().map(|reason| reason.0),
        lane: headers::served_lane(response.headers()),
        took: now().at.duration_since(arrival.at),
    });
    match watch {
        Some(watch) => watch.end(response),
        None => response,
    }
}

/// Who is not let in is not told which methods there are.
pub(super) async fn without_methods(mut response: Response) -> Response {
    if response.status() == StatusCode::UNAUTHORIZED {
        response.headers_mut().remove(header::ALLOW);
    }
    response
}

/// What is known of a request's tenant, whatever becomes of the request.
#[derive(Default)]
struct Seen {
    /// Whom it is counted for; nobody on public routes.
    tenant: Option<TenantId>,
    /// What is left of its requests.
    quota: Option<Quota>,
}

/// Who sent a request, if it may be answered.
fn let_in(
    app: &App,
    request: &Request,
    route: &'static str,
    seen: &mut Seen,
) -> Result<Option<Grant>, RequestFault> {
    check_head(request)?;
    check_host(request, app.config.auth.is_local_only())?;
    let grant = app.config.auth.grant(request.headers())?;
    let is_open = app.config.open_metrics && OPERATOR_ROUTES.contains(&route);
    if is_open || is_public(route, request.uri().path()) {
        once::check(request.headers())?;
        check_life(app, route)?;
        return Ok(grant);
    }
    let grant = grant.ok_or(RequestFault::Unauthorized)?;
    seen.tenant = Some(grant.tenant.clone());
    seen.quota = app.config.auth.count(&grant);
    if let Some(Quota { allowed: false, limit, retry_after, .. }) = seen.quota {
        return Err(RequestFault::RateLimited { limit, retry_after });
    }
    once::check(request.headers())?;
    let grant = grant.acting(request.headers())?;
    seen.tenant = Some(grant.tenant.clone());
    if OPERATOR_ROUTES.contains(&route) && !grant.is_operator() {
        let message = format!("{route} is for keys of operators");
        return Err(RequestFault::NotAllowed { message });
    }
    check_life(app, route)?;
    Ok(Some(grant))
}

/// Whether no key is needed; of a path with a dialect only where there is that dialect.
fn is_public(route: &str, path: &str) -> bool {
    let of_dialect = || path.split('/').nth(1).is_some_and(|name| name.parse::<Dialect>().is_ok());
    PUBLIC_ROUTES.contains(&route) && (!route.starts_with("/{dialect}/") || of_dialect())
}

/// Refuses a head that is larger than any honest one.
fn check_head(request: &Request) -> Result<(), RequestFault> {
    let count = request.headers().len();
    if count > HEADERS_MAX {
        return Err(RequestFault::TooManyHeaders { count, count_max: HEADERS_MAX });
    }
    let bytes = request.uri().path_and_query().map_or(0, |sent| sent.as_str().len());
    if bytes > URI_BYTES_MAX {
        return Err(RequestFault::UriTooLong { bytes, bytes_max: URI_BYTES_MAX });
    }
    Ok(())
}

/// Refuses what does not say in one way whom it is for, and, where nothing else keeps strangers out, what
/// is for another host than this machine: a page whose own name has come to lead here (DNS rebinding)
/// may send anything that a page of this server may.
fn check_host(request: &Request, local_only: bool) -> Result<(), RequestFault> {
    let fault = |message: String| RequestFault::Host { message };
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (host, further) = (hosts.next(), hosts.next());
    if further.is_some() {
        return Err(fault("header host: it is there twice".to_owned()));
    }
    // Of two the target is the one that counts (RFC 9112, section 3.2.2).
    let sent = match request.uri().authority() {
        Some(authority) => authority.as_str().as_bytes(),
        None => host.map(HeaderValue::as_bytes).unwrap_or_default(),
    };
    if sent.is_empty() {
        return Ok(());
    }
    let told = || respond::excerpt(&String::from_utf8_lossy(sent));
    let authority = Authority::try_from(sent).ok().filter(|found| !found.as_str().contains('@'));
    let Some(authority) = authority else {
        return Err(fault(format!("header host: {} is no host", told())));
    };
    if local_only && !is_own(authority.host()) {
        return Err(fault(format!(
            "header host: {} is not this machine; a server without keys answers to localhost and \
             loopback addresses only, unless it has --insecure-open",
            told()
        )));
    }
    Ok(())
}

/// Whether a host can only be this machine.
fn is_own(host: &str) -> bool {
    let is_below = || host.to_ascii_lowercase().ends_with(".localhost");
    is_loopback(host) || is_below()
}

/// Refuses everything once nothing will be answered any more; only `/health` says more than that.
fn check_life(app: &App, route: &str) -> Result<(), RequestFault> {
    match app.service.dead() {
        Some(reason) if !route.ends_with("/health") => Err(RequestFault::EngineDead { reason }),
        Some(_) | None => Ok(()),
    }
}

fn now() -> Arrival {
    Arrival { at: Instant::now().into_std() }
}

/// Which of [`ROUTES`] the request's route is; their number if it is none.
fn route(request: &Request) -> usize {
    let matched = request.extensions().get::<MatchedPath>();
    let is_it = |route: &&str| matched.is_some_and(|path| path.as_str() == *route);
    ROUTES.iter().position(is_it).unwrap_or(ROUTES.len())
}

/// The pattern of a route, or `other`.
fn name_of(route: usize) -> &'static str {
    ROUTES.get(route).copied().unwrap_or("other")
}

/// The client's `x-request-id`, where it is one.
fn sent_id(headers: &HeaderMap) -> Option<String> {
    let sent = once::value(headers, once::REQUEST_ID).ok().flatten();
    sent.map(HeaderValue::as_bytes).and_then(harmless)
}

/// A request's name for itself reduced to harmless characters; `None` where nothing is left.
pub(crate) fn harmless(sent: &[u8]) -> Option<String> {
    let is_harmless = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.' | b':');
    let harmless = sent.iter().copied().filter(is_harmless).take(REQUEST_ID_CHARS_MAX);
    Some(harmless.map(char::from).collect()).filter(|id: &String| !id.is_empty())
}

/// A fresh id in the form of a version 4 UUID.
///
/// The bits are a keyed hash of a counter, under keys that the standard library takes from the
/// system once a process: distinct within the process, and not to be guessed from outside.
pub(crate) fn new_id() -> String {
    static KEYS: LazyLock<(RandomState, RandomState)> = LazyLock::new(Default::default);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let (high, low) = (KEYS.0.hash_one(count), KEYS.1.hash_one(count));
    format!(
        "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
        high >> 32,
        high >> 16 & 0xffff,
        high & 0xfff,
        low >> 48 & 0x3fff | 0x8000,
        low & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn a_sent_id_is_taken_over_without_what_could_harm() {
        let mut headers = HeaderMap::new();
        headers.insert("x-request-id", "req-1:a_b.c\" <x>".parse().unwrap());
        assert_eq!(sent_id(&headers).unwrap(), "req-1:a_b.cx");
        headers.insert("x-request-id", "x".repeat(500).parse().unwrap());
        assert_eq!(sent_id(&headers).unwrap().len(), REQUEST_ID_CHARS_MAX);
        headers.insert("x-request-id", "<>".parse().unwrap());
        assert_eq!(sent_id(&headers), None);
        headers.append("x-request-id", "other".parse().unwrap());
        assert_eq!(sent_id(&headers), None, "one of two is none");
    }

    #[test]
    fn a_request_is_for_one_host_and_without_keys_for_this_machine() {
        let refused = |hosts: &[&str], local_only| {
            let mut request = Request::builder().uri("/health");
            for host in hosts {
                request = request.header(header::HOST, *host);
            }
            check_host(&request.body(Body::empty()).unwrap(), local_only).is_err()
        };
        let own = ["localhost:8000", "127.0.0.1", "[::1]:80", "api.LOCALHOST", "127.9.9.9:1", ""];
        let others = ["attacker.example:8000", "localhost.evil.example", "10.0.0.1", "[::2]"];
        let none = ["a b", "x@localhost", "localhost/health"];
        for host in own {
            assert!(!refused(&[host], true) && !refused(&[host], false), "{host}");
        }
        for host in others {
            assert!(refused(&[host], true) && !refused(&[host], false), "{host}");
        }
        for host in none {
            assert!(refused(&[host], true) && refused(&[host], false), "{host}");
        }
        assert!(refused(&["localhost", "localhost"], false), "two");
        assert!(!refused(&[], true), "HTTP/1.0 has none, and no page is without");
        let target = Request::builder().uri("http://attacker.example/health");
        let target = target.header(header::HOST, "localhost").body(Body::empty()).unwrap();
        assert!(check_host(&target, true).is_err(), "the target counts");
    }

    #[test]
    fn own_ids_are_uuids_and_distinct() {
        let (one, other) = (new_id(), new_id());
        assert_ne!(one, other);
        let lengths: Vec<usize> = one.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert_eq!(&one[14..15], "4");
        assert!("89ab".contains(&one[19..20]));
    }
}
