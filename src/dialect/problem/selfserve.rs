//! Failures in the shape of self's server: `{"error": {"type", "message"}}`.

use actors::{EngineError, ReadError, RejectReason};
use serde_json::json;

use super::decisio::message;
use super::place::told;
use super::{Fault, FullStatus, GatewayFault, ImageRefusalKind, Refusal, RequestFault, systemone};
use crate::error::{DecideError, Problem};

/// What self says of an image that its model does not see; clients may look for it.
const NO_IMAGES: &str = "The loaded decision model does not support image input.";

/// The `self` shape; statuses and types are those of self's server where it has one for the fault, and
/// the status of a full queue is the operator's.
pub(in crate::dialect) fn selfserve(fault: &Fault, full: FullStatus) -> Refusal {
    let refusal = systemone(fault, full);
    let (status, kind) = match fault {
        Fault::Decide(error) => of_decision(error),
        Fault::Request(fault) => of_request(fault),
        Fault::Image(refused) => of_image(refused.kind),
    };
    let status = if fault.is_for_lack_of_room() { refusal.status } else { status };
    let text = match fault {
        Fault::Decide(DecideError::Invalid(problems)) if kind == "invalid_request" => {
            format!("invalid request body: {}", told(problems))
        }
        Fault::Decide(DecideError::Invalid(problems)) => told(problems),
        Fault::Request(RequestFault::NotFound { method, path }) => {
            format!("no route for {method} {path}")
        }
        Fault::Image(refused) => match refused.kind {
            ImageRefusalKind::Capability => NO_IMAGES.to_owned(),
            ImageRefusalKind::Form
            | ImageRefusalKind::Unsupported
            | ImageRefusalKind::TooLarge
            | ImageRefusalKind::Count
            | ImageRefusalKind::Fetch => refused.message.clone(),
        },
        Fault::Decide(_) | Fault::Request(_) if status == 500 => {
            "Internal server error.".to_owned()
        }
        Fault::Decide(_) | Fault::Request(_) => message(&refusal.body),
    };
    let body = json!({"error": {"type": kind, "message": text}}).to_string();
    Refusal { status, body, ..refusal }
}

fn of_decision(error: &DecideError) -> (u16, &'static str) {
    match error {
        DecideError::Invalid(problems) => of_problems(problems),
        DecideError::Template(_) | DecideError::UnknownProfile { .. } => (400, "invalid_request"),
        DecideError::Unsupported(_)
        | DecideError::Capability(_)
        | DecideError::NoReadStrategy(_) => (422, "unsupported_capability"),
        DecideError::UnknownModel { .. } => (404, "model_not_found"),
        DecideError::RegistrationsFull(_) => (429, "queue_full"),
        DecideError::Read(error) => of_read(error),
        DecideError::Internal { .. } => (500, "internal_error"),
    }
}

fn of_image(kind: ImageRefusalKind) -> (u16, &'static str) {
    match kind {
        ImageRefusalKind::Form => (400, "invalid_request"),
        ImageRefusalKind::Unsupported => (400, "unsupported_image"),
        ImageRefusalKind::TooLarge => (413, "image_too_large"),
        ImageRefusalKind::Count | ImageRefusalKind::Capability => (422, "unsupported_capability"),
        ImageRefusalKind::Fetch => (502, "image_fetch_failed"),
    }
}

/// What cannot be answered by this model is told so only where nothing else is wrong.
fn of_problems(problems: &[Problem]) -> (u16, &'static str) {
    let is_all = |code: &str| problems.iter().all(|problem| problem.code == code);
    if is_all("unsupported_capability") {
        (422, "unsupported_capability")
    } else {
        (400, "invalid_request")
    }
}

fn of_read(error: &ReadError) -> (u16, &'static str) {
    match error {
        ReadError::Rejected(reason) => of_rejection(reason),
        ReadError::Engine(error) => match error {
            EngineError::NonFinite | EngineError::Forward(_) | EngineError::Panic(_) => {
                (500, "internal_error")
            }
            EngineError::OutOfMemory(_) | EngineError::Dead(_) => (503, "runtime_crashed"),
        },
        ReadError::Expired { .. } => (504, "timeout"),
        ReadError::Cancelled | ReadError::Draining => (503, "shutting_down"),
        ReadError::Unavailable => (503, "runtime_crashed"),
    }
}

fn of_rejection(reason: &RejectReason) -> (u16, &'static str) {
    match reason {
        RejectReason::QueueFull { .. }
        | RejectReason::TokensFull { .. }
        | RejectReason::WaitTooLong { .. }
        | RejectReason::PastDeadline { .. }
        | RejectReason::TenantFull { .. }
        | RejectReason::TenantRate { .. }
        | RejectReason::PrewarmsFull { .. }
        | RejectReason::Displaced { .. } => (429, "queue_full"),
        RejectReason::TooLong { .. } | RejectReason::Oversize { .. } => (400, "invalid_request"),
        RejectReason::Draining => (503, "shutting_down"),
        RejectReason::EngineDead(_) => (503, "runtime_crashed"),
    }
}

/// self has no keys and no handles; what is said of those is in its manner.
fn of_request(fault: &RequestFault) -> (u16, &'static str) {
    match fault {
        RequestFault::Unauthorized => (401, "unauthorized"),
        RequestFault::NotAllowed { .. } => (403, "forbidden"),
        RequestFault::RateLimited { .. } => (429, "rate_limited"),
        RequestFault::NotFound { .. }
        | RequestFault::UnknownDialect { .. }
        | RequestFault::Header { .. }
        | RequestFault::Host { .. }
        | RequestFault::Query { .. }
        | RequestFault::DialectHeader { .. }
        | RequestFault::MediaType { .. }
        | RequestFault::Encoding { .. }
        | RequestFault::Damaged { .. }
        | RequestFault::Window { .. }
        | RequestFault::BodyBroken => (400, "invalid_request"),
        RequestFault::NoPrewarm { .. } | RequestFault::NoTask { .. } => (404, "not_found"),
        RequestFault::MethodNotAllowed { .. } => (405, "invalid_request"),
        RequestFault::BodyTimeout { .. } => (408, "timeout"),
        RequestFault::BodyTooLarge { .. } => (413, "image_too_large"),
        RequestFault::UriTooLong { .. } => (414, "request_too_large"),
        RequestFault::TooManyHeaders { .. } => (431, "request_too_large"),
        RequestFault::BodiesFull { .. } => (503, "queue_full"),
        RequestFault::EngineDead { .. } => (503, "runtime_crashed"),
        RequestFault::Panicked => (500, "internal_error"),
        RequestFault::Gateway(GatewayFault::NoBackend | GatewayFault::Full { .. }) => {
            (503, "queue_full")
        }
        RequestFault::Gateway(GatewayFault::Lost) => (502, "runtime_crashed"),
        RequestFault::Gateway(GatewayFault::Timeout { .. }) => (504, "timeout"),
    }
}
