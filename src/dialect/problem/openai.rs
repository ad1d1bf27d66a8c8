//! Failures in `OpenAI`'s shape: `{"error": {"message", "type", "param", "code"}}`.

use actors::ReadError;
use serde_json::json;

use super::decisio::message;
use super::place::{place, told};
use super::{Fault, FullStatus, ImageRefusal, ImageRefusalKind, Refusal, RequestFault, systemone};
use crate::error::{DecideError, Problem, Step};

/// Types by status; what is not listed is the server's fault.
const TYPES: [(u16, &str); 10] = [
    (400, INVALID),
    (401, "authentication_error"),
    (403, "permission_error"),
    (404, INVALID),
    (405, INVALID),
    (408, "timeout"),
    (413, INVALID),
    (414, INVALID),
    (429, "rate_limit_error"),
    (431, INVALID),
];
const INVALID: &str = "invalid_request_error";

/// The `openai` shape. Whatever is wrong with a request is 400, and `param` and `code` are of the first
/// fault; of other failures `code` is what `x-docket-reason` says.
pub(in crate::dialect) fn openai(fault: &Fault, full: FullStatus) -> Refusal {
    let refusal = systemone(fault, full);
    let status = if matches!(refusal.status, 415 | 422) { 400 } else { refusal.status };
    let kind = TYPES.into_iter().find(|(known, _)| *known == status);
    let kind = kind.map_or("server_error", |(_, kind)| kind);
    let Told { message, param, code } = match fault {
        Fault::Decide(DecideError::Invalid(problems)) => of_problems(problems),
        Fault::Decide(error) => of_decision(error, &refusal),
        Fault::Request(fault) => of_request(fault, &refusal),
        Fault::Image(refused) => of_image(refused),
    };
    let error = json!({"message": message, "type": kind, "param": param, "code": code});
    Refusal { status, body: json!({"error": error}).to_string(), ..refusal }
}

/// What an error says beside its type.
struct Told {
    message: String,
    param: Option<String>,
    code: String,
}

fn of_problems(problems: &[Problem]) -> Told {
    let problems: Vec<Problem> = problems.iter().cloned().map(renamed).collect();
    let first = problems.first();
    let param = first.map(|first| place(&first.path)).filter(|place| !place.is_empty());
    let code = first.map_or("invalid", |first| first.code).to_owned();
    Told { message: told(&problems), param, code }
}

/// The state is told of as the input, and questions, whose ids are their places, by these.
fn renamed(mut problem: Problem) -> Problem {
    let [first, rest @ ..] = problem.path.as_mut_slice() else { return problem };
    match (&*first, rest.first()) {
        (Step::Key(field), _) if field == "state" => *first = "input".into(),
        (Step::Key(field), Some(Step::Key(id))) if field == "questions" => {
            if let Ok(index) = id.parse::<usize>() {
                rest[0] = index.into();
            }
        }
        (Step::Key(_) | Step::Index(_), _) => {}
    }
    problem
}

fn of_image(refused: &ImageRefusal) -> Told {
    let code = match refused.kind {
        ImageRefusalKind::Capability => "unsupported_capability",
        ImageRefusalKind::Fetch => "image_fetch_failed",
        ImageRefusalKind::Form
        | ImageRefusalKind::Unsupported
        | ImageRefusalKind::TooLarge
        | ImageRefusalKind::Count => "image_invalid",
    };
    let param = Some(place(&refused.path)).filter(|place| !place.is_empty());
    Told { message: refused.message.clone(), param, code: code.to_owned() }
}

fn of_decision(error: &DecideError, refusal: &Refusal) -> Told {
    let param = match error {
        DecideError::UnknownModel { .. } => Some("model"),
        DecideError::Invalid(_)
        | DecideError::Unsupported(_)
        | DecideError::Capability(_)
        | DecideError::Template(_)
        | DecideError::UnknownProfile { .. }
        | DecideError::NoReadStrategy(_)
        | DecideError::RegistrationsFull(_)
        | DecideError::Read(
            ReadError::Rejected(_)
            | ReadError::Engine(_)
            | ReadError::Expired { .. }
            | ReadError::Cancelled
            | ReadError::Draining
            | ReadError::Unavailable,
        )
        | DecideError::Internal { .. } => None,
    };
    let code = if param.is_some() { "model_not_found" } else { refusal.reason };
    let param = param.map(str::to_owned);
    Told { message: message(&refusal.body), param, code: code.to_owned() }
}

fn of_request(fault: &RequestFault, refusal: &Refusal) -> Told {
    let code = match fault {
        RequestFault::Unauthorized => "invalid_api_key",
        RequestFault::NotFound { .. } => "unknown_url",
        RequestFault::RateLimited { .. } => "rate_limit_exceeded",
        RequestFault::NotAllowed { .. }
        | RequestFault::NoPrewarm { .. }
        | RequestFault::NoTask { .. }
        | RequestFault::MethodNotAllowed { .. }
        | RequestFault::UnknownDialect { .. }
        | RequestFault::Header { .. }
        | RequestFault::Host { .. }
        | RequestFault::Query { .. }
        | RequestFault::DialectHeader { .. }
        | RequestFault::MediaType { .. }
        | RequestFault::Encoding { .. }
        | RequestFault::Damaged { .. }
        | RequestFault::Window { .. }
        | RequestFault::UriTooLong { .. }
        | RequestFault::TooManyHeaders { .. }
        | RequestFault::BodyTooLarge { .. }
        | RequestFault::BodyTimeout { .. }
        | RequestFault::BodyBroken
        | RequestFault::BodiesFull { .. }
        | RequestFault::EngineDead { .. }
        | RequestFault::Panicked
        | RequestFault::Gateway(_) => refusal.reason,
    };
    Told { message: message(&refusal.body), param: None, code: code.to_owned() }
}
