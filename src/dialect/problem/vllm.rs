//! Failures in the shape of vLLM's server, which is that of `OpenAI`'s API: `error` with message, type,
//! parameter and status; a missing key alone has a text in its place.

use std::fmt::Write as _;

use actors::{EngineError, ReadError, RejectReason};
use serde_json::{Value, json};

use super::{Fault, FullStatus, ImageRefusalKind, Refusal, RequestFault, echo, systemone};
use crate::dialect::vllm::faults::{INPUT, SENSE};
use crate::dialect::vllm::python::quoted;
use crate::error::{DecideError, Fact, Problem, Step};

/// Of requests that make no sense.
const BAD_REQUEST: &str = "BadRequestError";

/// Of requests that break the schema.
const BAD_FORM: &str = "Bad Request";

/// Codes of faults of the JSON itself, which count as breaking the schema.
const JSON_CODES: [&str; 6] = [
    "json_invalid",
    "json_depth",
    "json_size",
    "duplicate_key",
    "lone_surrogate",
    "encoding_invalid",
];

/// The `vllm` shape; a request for which there is no room now is told so with 503 whatever the
/// server says in other dialects.
pub(in crate::dialect) fn vllm(fault: &Fault, _: FullStatus) -> Refusal {
    let refusal = systemone(fault, FullStatus::ServiceUnavailable);
    let (status, body) = match fault {
        Fault::Decide(error) => of_decision(error),
        Fault::Image(refused) => match refused.kind {
            ImageRefusalKind::Fetch => internal(&refused.message),
            ImageRefusalKind::Form
            | ImageRefusalKind::Unsupported
            | ImageRefusalKind::TooLarge
            | ImageRefusalKind::Count
            | ImageRefusalKind::Capability => error(400, BAD_REQUEST, &refused.message, None),
        },
        Fault::Request(RequestFault::Unauthorized) => (401, json!({"error": "Unauthorized"})),
        Fault::Request(fault) => of_request(fault, refusal.status),
    };
    Refusal { status, body: body.to_string(), ..refusal }
}

fn error(status: u16, error_type: &str, message: &str, param: Option<&str>) -> (u16, Value) {
    let error = json!({"message": message, "type": error_type, "param": param, "code": status});
    (status, json!({"error": error}))
}

fn of_decision(fault: &DecideError) -> (u16, Value) {
    match fault {
        DecideError::Invalid(problems) => invalid(problems),
        DecideError::Unsupported(message)
        | DecideError::Capability(message)
        | DecideError::Template(message) => error(400, BAD_REQUEST, message, None),
        DecideError::UnknownProfile { .. } => error(400, BAD_REQUEST, &fault.to_string(), None),
        DecideError::UnknownModel { name, .. } => {
            let message = format!("The model `{name}` does not exist.");
            error(404, "NotFoundError", &message, Some("model"))
        }
        DecideError::NoReadStrategy(_) => {
            let message = "The model does not support the structured decision API";
            error(501, "NotImplementedError", message, None)
        }
        DecideError::RegistrationsFull(full) => unavailable(&full.to_string()),
        DecideError::Read(fault) => of_read(fault),
        DecideError::Internal { .. } => internal("internal error"),
    }
}

fn of_read(fault: &ReadError) -> (u16, Value) {
    match fault {
        ReadError::Rejected(reason) => of_rejection(reason),
        ReadError::Engine(EngineError::NonFinite) => internal("the logits are not finite"),
        ReadError::Engine(EngineError::Forward(_) | EngineError::Panic(_)) => {
            internal("the forward pass failed")
        }
        ReadError::Engine(EngineError::OutOfMemory(_)) => {
            unavailable("the engine is out of memory")
        }
        ReadError::Engine(EngineError::Dead(_)) => unavailable("the engine is dead"),
        ReadError::Expired { .. } => error(504, phrase(504), &fault.to_string(), None),
        ReadError::Cancelled => unavailable("the decision was cancelled"),
        ReadError::Draining => unavailable("the server is stopping"),
        ReadError::Unavailable => unavailable("the scheduler is restarting"),
    }
}

fn of_rejection(reason: &RejectReason) -> (u16, Value) {
    match reason {
        RejectReason::QueueFull { .. }
        | RejectReason::TokensFull { .. }
        | RejectReason::WaitTooLong { .. }
        | RejectReason::PastDeadline { .. }
        | RejectReason::TenantFull { .. }
        | RejectReason::TenantRate { .. }
        | RejectReason::PrewarmsFull { .. }
        | RejectReason::Displaced { .. } => unavailable(&reason.to_string()),
        RejectReason::TooLong { .. } | RejectReason::Oversize { .. } => {
            error(400, BAD_REQUEST, &reason.to_string(), None)
        }
        RejectReason::Draining => unavailable("the server is stopping"),
        RejectReason::EngineDead(_) => unavailable("the engine is dead"),
    }
}

/// What is wrong with a request as HTTP; statuses are those of the `systemone` dialect but for a
/// body's type and encoding.
fn of_request(fault: &RequestFault, status: u16) -> (u16, Value) {
    let message = fault.to_string();
    match fault {
        RequestFault::MediaType { .. } | RequestFault::Encoding { .. } => {
            let message = format!("1 validation error:\n  {message}");
            error(400, BAD_FORM, &message, None)
        }
        RequestFault::Damaged { .. } | RequestFault::Window { .. } => {
            let problem = Problem::new(Vec::new(), "encoding_invalid", message);
            invalid(&[problem])
        }
        RequestFault::Header { .. }
        | RequestFault::Host { .. }
        | RequestFault::Query { .. }
        | RequestFault::DialectHeader { .. }
        | RequestFault::UnknownDialect { in_path: false, .. } => {
            error(400, BAD_REQUEST, &message, None)
        }
        RequestFault::NoPrewarm { .. } | RequestFault::NoTask { .. } => {
            error(404, "NotFoundError", &message, None)
        }
        RequestFault::Panicked => internal(&message),
        RequestFault::Unauthorized
        | RequestFault::NotAllowed { .. }
        | RequestFault::RateLimited { .. }
        | RequestFault::NotFound { .. }
        | RequestFault::UnknownDialect { in_path: true, .. }
        | RequestFault::MethodNotAllowed { .. }
        | RequestFault::UriTooLong { .. }
        | RequestFault::TooManyHeaders { .. }
        | RequestFault::BodyTooLarge { .. }
        | RequestFault::BodyTimeout { .. }
        | RequestFault::BodyBroken
        | RequestFault::BodiesFull { .. }
        | RequestFault::EngineDead { .. }
        | RequestFault::Gateway(_) => error(status, phrase(status), &message, None),
    }
}

fn internal(message: &str) -> (u16, Value) {
    error(500, "InternalServerError", message, None)
}

fn unavailable(message: &str) -> (u16, Value) {
    error(503, phrase(503), message, None)
}

/// A status in words (RFC 9110, section 15).
fn phrase(status: u16) -> &'static str {
    match status {
        400 => BAD_FORM,
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Request Entity Too Large",
        414 => "Request-URI Too Long",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "Internal Server Error",
    }
}

/// Faults of a body: all where it breaks the schema, else the first.
fn invalid(problems: &[Problem]) -> (u16, Value) {
    let is_of_form =
        |problem: &Problem| JSON_CODES.contains(&problem.code) || input(problem).is_some();
    let formless: Vec<&Problem> = problems.iter().filter(|problem| is_of_form(problem)).collect();
    let (Some(first), true) = (formless.first(), problems.iter().all(|p| p.code != SENSE)) else {
        let first = problems.first();
        let message = first.map_or("the request is invalid", |first| first.message.as_str());
        return error(400, BAD_REQUEST, message, None);
    };
    let plural = if formless.len() == 1 { "" } else { "s" };
    let mut message = format!("{} validation error{plural}:", formless.len());
    for problem in &formless {
        // Writing to a string cannot fail.
        let _ = write!(message, "\n  {}", entry(problem));
    }
    let param: Vec<String> = std::iter::once("body".to_owned())
        .chain(first.path.iter().map(|step| match step {
            Step::Key(key) => echo(key),
            Step::Index(index) => index.to_string(),
        }))
        .collect();
    error(400, BAD_FORM, &message, Some(&param.join(".")))
}

/// One fault as Python writes a dictionary.
fn entry(problem: &Problem) -> String {
    let loc: Vec<String> = std::iter::once("'body'".to_owned())
        .chain(problem.path.iter().map(|step| match step {
            Step::Key(key) => quoted(&echo(key)),
            Step::Index(index) => index.to_string(),
        }))
        .collect();
    // A tuple of one has a comma.
    let end = if loc.len() == 1 { "," } else { "" };
    format!(
        "{{'type': {}, 'loc': ({}{end}), 'msg': {}, 'input': {}}}",
        quoted(problem.code),
        loc.join(", "),
        quoted(&problem.message),
        input(problem).unwrap_or("None"),
    )
}

/// What was sent, where the fault says so.
fn input(problem: &Problem) -> Option<&str> {
    let (_, fact) = problem.facts.iter().find(|(name, _)| *name == INPUT)?;
    match fact {
        Fact::Text(text) => Some(text),
        Fact::Count(_) | Fact::Unknown => None,
    }
}
