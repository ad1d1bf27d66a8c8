//! Failures in the `decisio` shape: `detail` is a list for fields that break the schema, as a pydantic
//! model reports them, and a text for everything else.

use serde_json::{Map, Value, json};

use super::{Fault, FullStatus, ImageRefusalKind, Refusal, loc_step, systemone};
use crate::error::{DecideError, Fact, Problem};

/// Codes of faults of length, without what a schema would say of them.
const LENGTHS: [&str; 2] = ["too_long", "oversize"];

/// What a text begins with where a prompt does not fit.
const OVER_CONTEXT: &str = "the rendered prompt is longer than the context";

/// Codes of faults that no schema knows: of the JSON itself.
const NO_SCHEMA: [&str; 7] = [
    "json_invalid",
    "json_depth",
    "json_size",
    "duplicate_key",
    "lone_surrogate",
    "encoding_invalid",
    "image_invalid",
];

/// The `decisio` shape; statuses are those of [`systemone`], and 400 for what the engine refuses.
pub(in crate::dialect) fn decisio(fault: &Fault, full: FullStatus) -> Refusal {
    let refusal = systemone(fault, full);
    match fault {
        Fault::Decide(DecideError::Invalid(problems)) => {
            Refusal { body: invalid(problems).to_string(), ..refusal }
        }
        Fault::Decide(
            error @ (DecideError::Unsupported(_)
            | DecideError::NoReadStrategy(_)
            | DecideError::Capability(_)
            | DecideError::Template(_)
            | DecideError::UnknownProfile { .. }),
        ) => Refusal { status: 400, body: text(&error.to_string()), ..refusal },
        Fault::Image(image) => match image.kind {
            ImageRefusalKind::Capability | ImageRefusalKind::Fetch => {
                Refusal { body: text(&image.message), ..refusal }
            }
            ImageRefusalKind::Form
            | ImageRefusalKind::Unsupported
            | ImageRefusalKind::TooLarge
            | ImageRefusalKind::Count => {
                Refusal { body: invalid(&[image.problem()]).to_string(), ..refusal }
            }
        },
        Fault::Decide(
            DecideError::Read(_)
            | DecideError::RegistrationsFull(_)
            | DecideError::Conflict(_)
            | DecideError::StoreLost { .. }
            | DecideError::Internal { .. }
            | DecideError::UnknownModel { .. },
        )
        | Fault::Request(_) => Refusal { body: text(&message(&refusal.body)), ..refusal },
    }
}

fn invalid(problems: &[Problem]) -> Value {
    let is_length = |problem: &Problem| LENGTHS.contains(&problem.code) && problem.facts.is_empty();
    if let Some(first) = problems.iter().find(|problem| is_length(problem)) {
        return json!({"detail": format!("{OVER_CONTEXT}: {}", first.message)});
    }
    if let Some(first) = problems.iter().find(|problem| NO_SCHEMA.contains(&problem.code)) {
        let at: Vec<String> = first.path.iter().map(|step| loc_step(step).to_string()).collect();
        let place = if at.is_empty() { String::new() } else { format!(" (at {})", at.join(".")) };
        return json!({"detail": format!("{}{place}", first.message)});
    }
    json!({"detail": problems.iter().map(entry).collect::<Vec<_>>()})
}

fn entry(problem: &Problem) -> Value {
    let loc: Vec<Value> =
        std::iter::once(json!("body")).chain(problem.path.iter().map(loc_step)).collect();
    let mut entry = Map::new();
    entry.insert("type".to_owned(), json!(problem.code));
    entry.insert("loc".to_owned(), json!(loc));
    entry.insert("msg".to_owned(), json!(problem.message));
    if !problem.facts.is_empty() {
        let fact = |(name, fact): &(&'static str, Fact)| {
            let value = match fact {
                Fact::Text(text) => json!(text),
                Fact::Count(count) => json!(count),
                Fact::Unknown => Value::Null,
            };
            ((*name).to_owned(), value)
        };
        entry.insert("ctx".to_owned(), Value::Object(problem.facts.iter().map(fact).collect()));
    }
    Value::Object(entry)
}

/// The message of a failure in the `systemone` shape.
pub(super) fn message(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let detail = &body["detail"];
    let message = detail["message"].as_str().or(detail[0]["msg"].as_str());
    message.unwrap_or("the request was refused").to_owned()
}

fn text(message: &str) -> String {
    json!({"detail": message}).to_string()
}
