//! Failures on the wire: the one table from what went wrong to status, body and headers.
//!
//! No other file knows a status code of a failure. The matches have no wildcard arm, so that a new
//! kind of failure must be given its place here.

use std::time::Duration;

use actors::{EngineError, Lane, ReadError, RejectReason};
use serde_json::{Value, json};
use thiserror::Error;

use crate::error::{DecideError, Problem, Step};

use super::echo;

/// When to come back after a failure that says nothing about it itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Code of a prompt that does not fit the context; also the reason where that is all that is wrong.
const TOO_LONG: &str = "too_long";

/// Why a request was not answered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Fault {
    /// The decision failed.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// The request did not get as far as a decision.
    #[error(transparent)]
    Request(#[from] RequestFault),
}

/// What is wrong with a request as HTTP.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RequestFault {
    /// No key, or none that is known.
    #[error("a valid API key is required, as `Authorization: Bearer KEY` or `x-api-key: KEY`")]
    Unauthorized,
    /// No such route.
    #[error("no route {path}")]
    NotFound {
        /// As sent, cut.
        path: String,
    },
    /// The route is there, but not for this method.
    #[error("{method} is not allowed on this route, see the Allow header")]
    MethodNotAllowed {
        /// As sent, cut.
        method: String,
    },
    /// The path or header names a dialect that is not served.
    #[error("unknown dialect {name}; available: systemone")]
    UnknownDialect {
        /// As sent, cut.
        name: String,
        /// Whether the path named it: then there is no such route.
        in_path: bool,
    },
    /// A request header has a value that it cannot have.
    #[error("header {name}: {message}")]
    Header {
        /// The header.
        name: &'static str,
        /// What it must be, and what it was.
        message: String,
    },
    /// The body is of another type.
    #[error("content type {found} is not supported, send application/json")]
    MediaType {
        /// As sent, cut.
        found: String,
    },
    /// The body is compressed in an unknown way.
    #[error("content encoding {found} is not supported, send zstd, gzip or identity")]
    Encoding {
        /// As sent, cut.
        found: String,
    },
    /// The compressed body is damaged.
    #[error("the body is not valid {encoding}")]
    Damaged {
        /// `zstd` or `gzip`.
        encoding: &'static str,
    },
    /// A zstd frame wants more memory than is lent.
    #[error("a zstd window of {bytes} bytes, at most {bytes_max} are decoded")]
    Window {
        /// As the frame says.
        bytes: u64,
        /// The limit.
        bytes_max: u64,
    },
    /// The path and query are longer than the limit.
    #[error("the URI is {bytes} bytes, at most {bytes_max} are read")]
    UriTooLong {
        /// As sent.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// There are more headers than the limit.
    #[error("the request has {count} headers, at most {count_max} are read")]
    TooManyHeaders {
        /// As sent.
        count: usize,
        /// The limit.
        count_max: usize,
    },
    /// The body is longer than the limit, compressed or decompressed.
    #[error("the body is larger than {bytes_max} bytes")]
    BodyTooLarge {
        /// The limit.
        bytes_max: usize,
    },
    /// The body did not come in time.
    #[error("the body did not arrive within {limit:?}")]
    BodyTimeout {
        /// The limit.
        limit: Duration,
    },
    /// The body ended before its announced length.
    #[error("the body ended early")]
    BodyBroken,
    /// All bodies being received together are more than the server holds.
    #[error("the bodies being received exceed {bytes_max} bytes")]
    BodiesFull {
        /// The limit.
        bytes_max: usize,
    },
    /// The handler panicked; the log says where.
    #[error("internal error")]
    Panicked,
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
pub(super) fn systemone(fault: &Fault) -> Refusal {
    match fault {
        Fault::Decide(error) => of_decision(error),
        Fault::Request(fault) => of_request(fault),
    }
}

fn of_decision(error: &DecideError) -> Refusal {
    match error {
        DecideError::Invalid(problems) => invalid(problems),
        DecideError::Unsupported(_) => usage(400, "unsupported", &error.to_string()),
        DecideError::NoReadStrategy(_) => {
            let code = "unsupported_capability";
            let problem = Problem { path: Vec::new(), code, message: error.to_string() };
            Refusal { reason: code, ..invalid(&[problem]) }
        }
        DecideError::Read(error) => of_read(error),
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
        | RejectReason::PastDeadline { retry_after, .. }
        | RejectReason::TenantFull { retry_after, .. }
        | RejectReason::Displaced { retry_after } => limited(reason, *retry_after),
        RejectReason::WaitTooLong { retry_after, downgrade, .. } => {
            Refusal { downgrade: *downgrade, ..limited(reason, *retry_after) }
        }
        RejectReason::TooLong { .. } | RejectReason::Oversize { .. } => {
            let path = vec!["state".into()];
            invalid(&[Problem { path, code: TOO_LONG, message: reason.to_string() }])
        }
        RejectReason::Draining => again(internal(503, "draining", "the server is stopping")),
        RejectReason::EngineDead(_) => internal(503, "engine_dead", "the engine is dead"),
    }
}

/// What the engine says is for the log: it may name files and tensors.
fn of_engine(error: &EngineError) -> Refusal {
    match error {
        EngineError::NonFinite => internal(500, "non_finite", "the logits are not finite"),
        EngineError::Forward(_) => internal(500, "engine_failed", "the forward pass failed"),
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
        RequestFault::NotFound { .. } | RequestFault::UnknownDialect { in_path: true, .. } => {
            detail(404, "not_found", "not_found", &message)
        }
        RequestFault::MethodNotAllowed { .. } => usage(405, "method_not_allowed", &message),
        RequestFault::UnknownDialect { in_path: false, .. } => {
            usage(400, "unknown_dialect", &message)
        }
        RequestFault::Header { .. } => usage(400, "header_invalid", &message),
        RequestFault::MediaType { .. } => usage(415, "media_type", &message),
        RequestFault::Encoding { .. } => usage(415, "content_encoding", &message),
        RequestFault::Damaged { .. } | RequestFault::Window { .. } => {
            invalid(&[Problem { path: Vec::new(), code: "encoding_invalid", message }])
        }
        RequestFault::BodyTooLarge { .. } => usage(413, "body_too_large", &message),
        RequestFault::UriTooLong { .. } => usage(414, "uri_too_long", &message),
        RequestFault::TooManyHeaders { .. } => usage(431, "too_many_headers", &message),
        RequestFault::BodyTimeout { .. } => detail(408, "timeout", "body_timeout", &message),
        RequestFault::BodyBroken => usage(400, "body_broken", &message),
        RequestFault::BodiesFull { .. } => again(internal(503, "bodies_full", &message)),
        RequestFault::Panicked => internal(500, "panicked", &message),
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
    let is_length = !problems.is_empty() && problems.iter().all(|p| p.code == TOO_LONG);
    let reason = if is_length { TOO_LONG } else { "invalid" };
    Refusal { status: 422, body, reason, retry_after: None, downgrade: None }
}

fn loc_step(step: &Step) -> Value {
    match step {
        Step::Key(key) => json!(echo(key)),
        Step::Index(index) => json!(index),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(fault: impl Into<Fault>) -> (u16, Value, Option<Duration>) {
        let refusal = systemone(&fault.into());
        (refusal.status, serde_json::from_str(&refusal.body).unwrap(), refusal.retry_after)
    }

    #[test]
    fn a_full_queue_is_429_with_its_own_retry_after() {
        let retry_after = Duration::from_millis(1_500);
        let reason = RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
        let (status, body, after) = shape(DecideError::from(ReadError::Rejected(reason)));
        assert_eq!((status, after), (429, Some(retry_after)));
        assert_eq!(body["detail"]["error_type"], "rate_limit_error");
        assert_eq!(body["detail"]["message"], "7 reads wait, at most 4 may");
    }

    #[test]
    fn case_51_a_prompt_too_long_is_422_with_both_lengths() {
        let reason = RejectReason::TooLong { tokens: 40_112, tokens_max: 32_768 };
        let (status, body, _) = shape(DecideError::from(ReadError::Rejected(reason)));
        assert_eq!(status, 422);
        assert_eq!(
            body["detail"],
            json!([{
                "loc": ["body", "state"],
                "msg": "the prompt is 40112 tokens, at most 32768 fit",
                "type": "too_long",
            }])
        );
    }

    #[test]
    fn a_model_that_nothing_can_be_read_from_is_422_unsupported_capability() {
        let fault = DecideError::NoReadStrategy("bert is not causal".to_owned());
        let refusal = systemone(&Fault::from(fault.clone()));
        assert_eq!(refusal.reason, "unsupported_capability");
        let (status, body, retry_after) = shape(fault);
        assert_eq!((status, retry_after), (422, None));
        assert_eq!(body["detail"][0]["type"], "unsupported_capability");
        assert_eq!(body["detail"][0]["loc"], json!(["body"]));
        let message = body["detail"][0]["msg"].as_str().unwrap();
        assert!(message.contains("bert is not causal"), "{message}");
    }

    #[test]
    fn the_reason_is_too_long_where_nothing_else_is_wrong() {
        let problem = |code| Problem { path: vec!["x".into()], code, message: "x".to_owned() };
        let reason = |codes: &[&'static str]| {
            let problems = codes.iter().map(|code| problem(code)).collect();
            systemone(&DecideError::Invalid(problems).into()).reason
        };
        assert_eq!(reason(&["too_long"]), "too_long");
        assert_eq!(reason(&["too_long", "too_long"]), "too_long");
        assert_eq!(reason(&["too_long", "missing"]), "invalid");
        assert_eq!(reason(&["missing"]), "invalid");
    }

    #[test]
    fn engine_messages_stay_in_the_log() {
        for error in [
            EngineError::Forward("/secret/path".to_owned()),
            EngineError::Dead("/secret/path".to_owned()),
            EngineError::OutOfMemory("/secret/path".to_owned()),
        ] {
            let (status, body, _) = shape(DecideError::from(ReadError::Engine(error)));
            assert!(status >= 500);
            assert_eq!(body["detail"]["error_type"], "internal_error");
            assert!(!body.to_string().contains("secret"));
        }
    }

    #[test]
    fn statuses_are_those_of_the_contract() {
        let broken = DecideError::Internal { detail: "x".to_owned() };
        let expired = ReadError::Expired { waited: Duration::from_mins(1), spent: None };
        for (fault, status, error_type) in [
            (Fault::from(RequestFault::Unauthorized), 401, "authentication_error"),
            (RequestFault::NotFound { path: "/x".to_owned() }.into(), 404, "not_found"),
            (DecideError::Unsupported("images".to_owned()).into(), 400, "api_usage_error"),
            (RequestFault::BodyTooLarge { bytes_max: 1 }.into(), 413, "api_usage_error"),
            (DecideError::from(expired).into(), 504, "timeout"),
            (broken.into(), 500, "internal_error"),
            (DecideError::from(ReadError::Draining).into(), 503, "internal_error"),
        ] {
            let (found, body, _) = shape(fault);
            assert_eq!((found, &body["detail"]["error_type"]), (status, &json!(error_type)));
        }
    }

    #[test]
    fn a_loc_does_not_grow_with_the_request() {
        let path = vec![Step::Key("k".repeat(10_000)), 3.into()];
        let problem = Problem { path, code: "missing", message: "x".to_owned() };
        let (_, body, _) = shape(DecideError::Invalid(vec![problem]));
        assert!(body.to_string().len() < 300);
        assert_eq!(body["detail"][0]["loc"][2], 3);
    }
}
