//! Responses: the one place where an answer or a fault becomes bytes.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::dialect::ECHO_CHARS_MAX;
use crate::dialect::problem::{Fault, Refusal, RequestFault};
use crate::error::DecideError;

use super::headers::{DOWNGRADE, REASON, insert};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Why a response is a refusal; among its extensions, for the metrics.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reason(pub(super) &'static str);

/// What failed where a response is our own fault; among its extensions, for the log.
#[derive(Debug, Clone)]
struct Failed {
    /// What the caller is not told.
    detail: String,
    /// Whether it is a bug, and not a state that the server can be in.
    is_bug: bool,
}

/// A JSON response of known length, so that head and body leave in one write.
pub(crate) fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, JSON);
    response
}

/// The response to a request that was not answered.
pub(crate) fn refuse(refusal: Refusal, fault: &Fault) -> Response {
    // The table gives valid statuses only.
    let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = json(status, refusal.body);
    response.extensions_mut().insert(Reason(refusal.reason));
    if status.is_server_error() && !fault.is_for_lack_of_room() {
        response.extensions_mut().insert(Failed::of(fault));
    }
    let headers = response.headers_mut();
    insert(headers, REASON, refusal.reason);
    if let Some(wait) = refusal.retry_after {
        add_retry_after(headers, wait);
    }
    if let Some(lane) = refusal.downgrade {
        insert(headers, DOWNGRADE, lane.as_str());
    }
    if matches!(fault, Fault::Request(RequestFault::Unauthorized)) {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

impl Failed {
    fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Decide(DecideError::Internal { detail }) => {
                Self { detail: detail.clone(), is_bug: true }
            }
            Fault::Decide(_) | Fault::Request(_) | Fault::Image(_) => {
                Self { detail: fault.to_string(), is_bug: false }
            }
        }
    }
}

/// Tells the log of a response that is our own fault, with what its caller can find it by.
pub(super) fn log(
    response: &Response,
    (request_id, trace_id): (&str, Option<&str>),
    route: &'static str,
) {
    let Some(Failed { detail, is_bug }) = response.extensions().get() else { return };
    let status = response.status().as_u16();
    let reason = response.extensions().get::<Reason>().map_or("", |reason| reason.0);
    if *is_bug {
        tracing::error!(request_id, trace_id, route, status, reason, detail, "request failed");
    } else {
        tracing::warn!(
            request_id,
            trace_id,
            route,
            status,
            reason,
            error = detail,
            "request failed"
        );
    }
}

/// The official clients read `retry-after-ms` first; both are rounded up.
fn add_retry_after(headers: &mut HeaderMap, wait: Duration) {
    let wait_ms = wait.as_nanos().div_ceil(1_000_000).max(1);
    insert(headers, "retry-after-ms", &wait_ms.to_string());
    insert(headers, "retry-after", &wait_ms.div_ceil(1_000).to_string());
}

/// What of a request's own text a message may repeat.
pub(super) fn excerpt(text: &str) -> String {
    text.chars().take(ECHO_CHARS_MAX).collect()
}
