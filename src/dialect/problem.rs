//! Failures on the wire: the one table from what went wrong to status, body and headers.
//!
//! No other file knows a status code of a failure. The matches have no wildcard arm, so that a new
//! kind of failure must be given its place here.

mod decisio;
mod full;
mod gateway;
mod gmlx;
mod images;
mod openai;
mod place;
mod request;
mod selfserve;
mod vllm;

use std::time::Duration;

use actors::{EngineError, Lane, ReadError, RejectReason};
use serde_json::{Value, json};
use thiserror::Error;

use crate::error::{DecideError, Problem, Step};

use super::echo;

pub(super) use decisio::decisio;
pub use full::FullStatus;
pub use gateway::GatewayFault;
pub(super) use gmlx::gmlx;
pub use images::{ImageRefusal, ImageRefusalKind};
pub(super) use openai::openai;
pub use request::RequestFault;
pub(super) use selfserve::selfserve;
pub(super) use vllm::vllm;

/// When to come back after a failure that says nothing about it itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// When to come back where too much is being registered: a registration takes seconds to minutes.
const REGISTRATIONS_RETRY_AFTER: Duration = Duration::from_secs(5);

/// Codes that are also the reason where nothing else is wrong: a prompt that does not fit the context,
/// a state that can never be held.
const LENGTHS: [&str; 2] = ["too_long", "oversize"];

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The decision failed.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// The request did not get as far as a decision.
    #[error(transparent)]
    Request(#[from] RequestFault),
    /// The images beside its state were refused.
    #[error(transparent)]
    Image(#[from] ImageRefusal),
}

impl Fault {
    /// Whether there is no room for the request now; that is no failure of the server.
    pub fn is_for_lack_of_room(&self) -> bool {
        match self {
            Self::Decide(DecideError::Read(ReadError::Rejected(reason))) => {
                reason.retry_after().is_some()
            }
            Self::Decide(DecideError::RegistrationsFull(_)) => true,
            Self::Decide(_) | Self::Request(_) | Self::Image(_) => false,
        }
    }
}

/// A failure, ready for the wire.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The JSON body.
    pub body: String,
    /// The failure in a word, for `x-docket-reason` and the log.
    pub reason: &'static str,
    /// When to come back.
    pub retry_after: Option<Duration>,
    /// The lane in which it would be let in at once.
    pub downgrade: Option<Lane>,
}

/// The `systemone` shape: `detail` is a list for a faulty body, else an object.
pub(super) fn systemone(fault: &Fault, full: FullStatus) -> Refusal {
    let refusal = match fault {
        Fault::Decide(error) => of_decision(error),
        Fault::Request(fault) => of_request(fault),
        Fault::Image(refusal) => images::of_images(refusal),
    };
    let status = if fault.is_for_lack_of_room() { full.code() } else { refusal.status };
    Refusal { status, ..refusal }
}

fn of_decision(error: &DecideError) -> Refusal {
    match error {
        DecideError::Invalid(problems) => invalid(problems),
        DecideError::Unsupported(_) => usage(400, "unsupported", &error.to_string()),
        DecideError::Template(_) => usage(400, "template", &error.to_string()),
        DecideError::UnknownModel { .. } => {
            detail(404, "not_found", "unknown_model", &error.to_string())
        }
        DecideError::UnknownProfile { .. } => {
            let path = vec!["profile".into()];
            invalid(&[Problem::new(path, "unknown_profile", error.to_string())])
        }
        DecideError::Capability(message) => {
            let code = "unsupported_capability";
            let problem = Problem::new(Vec::new(), code, message.clone());
            Refusal { reason: code, ..invalid(&[problem]) }
        }
        DecideError::NoReadStrategy(_) => {
            let code = "unsupported_capability";
            let problem = Problem::new(Vec::new(), code, error.to_string());
            Refusal { reason: code, ..invalid(&[problem]) }
        }
        DecideError::Read(error) => of_read(error),
        DecideError::RegistrationsFull(full) => {
            let reason = "registrations_full";
            let refusal = detail(429, "rate_limit_error", reason, &full.to_string());
            Refusal { retry_after: Some(REGISTRATIONS_RETRY_AFTER), ..refusal }
        }
        DecideError::Internal { .. } => internal(500, "internal", "internal error"),
    }
}

fn of_read(error: &ReadError) -> Refusal {
    match error {
        ReadError::Rejected(reason) => of_rejection(reason),
        ReadError::Engine(error) => of_engine(error),
        ReadError::Expired { .. } => detail(504, "timeout", "expired", &error.to_string()),
        ReadError::Cancelled => again(internal(503, "cancelled", "the decision was cancelled")),
        ReadError::Draining => again(internal(503, "draining", "the server is stopping")),
        ReadError::Unavailable => {
            again(internal(503, "unavailable", "the scheduler is restarting"))
        }
    }
}

fn of_rejection(reason: &RejectReason) -> Refusal {
    match reason {
        RejectReason::QueueFull { retry_after, .. }
        | RejectReason::TokensFull { retry_after, .. }
        | RejectReason::WaitTooLong { retry_after, .. }
        | RejectReason::PastDeadline { retry_after, .. }
        | RejectReason::TenantFull { retry_after, .. }
        | RejectReason::TenantRate { retry_after, .. }
        | RejectReason::PrewarmsFull { retry_after, .. }
        | RejectReason::Displaced { retry_after } => {
            Refusal { downgrade: reason.downgrade(), ..limited(reason, *retry_after) }
        }
        RejectReason::TooLong { .. } | RejectReason::Oversize { .. } => {
            let path = vec!["state".into()];
            invalid(&[Problem::new(path, reason.as_str(), reason.to_string())])
        }
        RejectReason::Draining => again(internal(503, reason.as_str(), "the server is stopping")),
        RejectReason::EngineDead(_) => internal(503, reason.as_str(), "the engine is dead"),
    }
}

/// What the engine says is for the log: it may name files and tensors.
fn of_engine(error: &EngineError) -> Refusal {
    match error {
        EngineError::NonFinite => internal(500, "non_finite", "the logits are not finite"),
        EngineError::Forward(_) | EngineError::Panic(_) => {
            internal(500, "engine_failed", "the forward pass failed")
        }
        EngineError::OutOfMemory(_) => {
            again(internal(503, "out_of_memory", "the engine is out of memory"))
        }
        EngineError::Dead(_) => internal(503, "engine_dead", "the engine is dead"),
    }
}

fn of_request(fault: &RequestFault) -> Refusal {
    let message = fault.to_string();
    match fault {
        RequestFault::Unauthorized => detail(401, "authentication_error", "unauthorized", &message),
        RequestFault::NotAllowed { .. } => detail(403, "permission_error", "not_allowed", &message),
        RequestFault::RateLimited { retry_after, .. } => Refusal {
            retry_after: Some(*retry_after),
            ..detail(429, "rate_limit_error", "rate_limited", &message)
        },
        RequestFault::NotFound { .. }
        | RequestFault::NoPrewarm { .. }
        | RequestFault::NoTask { .. }
        | RequestFault::UnknownDialect { in_path: true, .. } => {
            detail(404, "not_found", "not_found", &message)
        }
        RequestFault::MethodNotAllowed { .. } => usage(405, "method_not_allowed", &message),
        RequestFault::UnknownDialect { in_path: false, .. } => {
            usage(400, "unknown_dialect", &message)
        }
        RequestFault::Header { .. } => usage(400, "header_invalid", &message),
        RequestFault::Host { .. } => usage(400, "host_invalid", &message),
        RequestFault::Query { .. } => usage(400, "query_invalid", &message),
        RequestFault::DialectHeader { .. } => usage(422, "header_invalid", &message),
        RequestFault::MediaType { .. } => usage(415, "media_type", &message),
        RequestFault::Encoding { .. } => usage(415, "content_encoding", &message),
        RequestFault::Damaged { .. } | RequestFault::Window { .. } => {
            invalid(&[Problem::new(Vec::new(), "encoding_invalid", message)])
        }
        RequestFault::BodyTooLarge { .. } => usage(413, "body_too_large", &message),
        RequestFault::UriTooLong { .. } => usage(414, "uri_too_long", &message),
        RequestFault::TooManyHeaders { .. } => usage(431, "too_many_headers", &message),
        RequestFault::BodyTimeout { .. } => detail(408, "timeout", "body_timeout", &message),
        RequestFault::BodyBroken => usage(400, "body_broken", &message),
        RequestFault::BodiesFull { .. } => again(internal(503, "bodies_full", &message)),
        RequestFault::EngineDead { .. } => internal(503, "engine_dead", &message),
        RequestFault::Panicked => internal(500, "panicked", &message),
        RequestFault::Gateway(fault) => gateway::of_gateway(*fault),
    }
}

fn detail(status: u16, error_type: &str, reason: &'static str, message: &str) -> Refusal {
    let body = json!({"detail": {"error_type": error_type, "message": message}}).to_string();
    Refusal { status, body, reason, retry_after: None, downgrade: None }
}

fn usage(status: u16, reason: &'static str, message: &str) -> Refusal {
    detail(status, "api_usage_error", reason, message)
}

fn internal(status: u16, reason: &'static str, message: &str) -> Refusal {
    detail(status, "internal_error", reason, message)
}

fn limited(reason: &RejectReason, retry_after: Duration) -> Refusal {
    let retry_after = Some(retry_after);
    let message = reason.to_string();
    Refusal { retry_after, ..detail(429, "rate_limit_error", reason.as_str(), &message) }
}

fn again(refusal: Refusal) -> Refusal {
    Refusal { retry_after: Some(RETRY_AFTER), ..refusal }
}

fn invalid(problems: &[Problem]) -> Refusal {
    let entry = |problem: &Problem| {
        let body = std::iter::once(json!("body"));
        let loc: Vec<Value> = body.chain(problem.path.iter().map(loc_step)).collect();
        json!({"loc": loc, "msg": problem.message, "type": problem.code})
    };
    let entries: Vec<Value> = problems.iter().map(entry).collect();
    let body = json!({"detail": entries}).to_string();
    let is_all = |code: &&str| !problems.is_empty() && problems.iter().all(|p| p.code == *code);
    let reason = LENGTHS.into_iter().find(is_all).unwrap_or("invalid");
    Refusal { status: 422, body, reason, retry_after: None, downgrade: None }
}

fn loc_step(step: &Step) -> Value {
    match step {
        Step::Key(key) => json!(echo(key)),
        Step::Index(index) => json!(index),
    }
}

#[cfg(test)]
mod tests;
