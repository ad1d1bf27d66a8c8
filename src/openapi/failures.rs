//! Failures by dialect and status, as the dialects themselves answer them: statuses, codes, headers and
//! shapes of bodies are those of [`Dialect::refusal`] for a fault of each kind.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::faults::Stage;
use super::{Served, described, headers};
use crate::dialect::Dialect;
use crate::dialect::problem::Refusal;

/// The statuses with which requests that get as far as these stages can fail.
pub(super) fn statuses(dialect: Dialect, served: &Served, stages: &[Stage]) -> BTreeSet<u16> {
    refusals(dialect, served, stages).into_iter().map(|refusal| refusal.status).collect()
}

/// The name of a component.
pub(super) fn name(dialect: Dialect, status: u16) -> String {
    format!("{}_{status}", dialect.name())
}

/// The components of a dialect.
pub(super) fn of(dialect: Dialect, served: &Served) -> Map<String, Value> {
    let mut by_status: BTreeMap<u16, Vec<Refusal>> = BTreeMap::new();
    for refusal in refusals(dialect, served, &Stage::ALL) {
        by_status.entry(refusal.status).or_default().push(refusal);
    }
    let component = |(status, refusals): (u16, Vec<Refusal>)| {
        (name(dialect, status), failure(status, &refusals))
    };
    by_status.into_iter().map(component).collect()
}

fn refusals(dialect: Dialect, served: &Served, stages: &[Stage]) -> Vec<Refusal> {
    let faults = stages.iter().flat_map(|stage| stage.faults(dialect, served));
    faults.map(|fault| dialect.refusal(&fault, served.full)).collect()
}

fn failure(status: u16, refusals: &[Refusal]) -> Value {
    let bodies: Vec<Value> =
        refusals.iter().filter_map(|refusal| serde_json::from_str(&refusal.body).ok()).collect();
    let reasons: BTreeSet<&str> = refusals.iter().map(|refusal| refusal.reason).collect();
    let mut headers = headers::request_id();
    headers.insert(
        "x-docket-reason".to_owned(),
        json!({
            "description": "Why it was refused, in a word",
            "required": true,
            "schema": {"type": "string", "enum": reasons},
        }),
    );
    headers.extend(headers::optional(&["Ignored"]));
    if status == 401 {
        headers.extend(headers::challenge());
    }
    if refusals.iter().any(|refusal| refusal.retry_after.is_some()) {
        headers.extend(headers::optional(&["RetryAfter", "RetryAfterMs"]));
    }
    if refusals.iter().any(|refusal| refusal.downgrade.is_some()) {
        headers.extend(headers::optional(&["Downgrade"]));
    }
    let schema = described::schema(&bodies);
    json!({
        "description": description(status),
        "headers": headers,
        "content": {"application/json": {"schema": schema}},
    })
}

fn description(status: u16) -> &'static str {
    match status {
        400 => "It cannot be: the body, a header, or what it asks of the model",
        401 => "No key, or an unknown one",
        403 => "The key has no right to it",
        404 => "There is no such model, prewarm or task",
        405 => "The path `import` is no task's",
        408 => "The body did not arrive in time",
        409 => "Another server changed the task meanwhile",
        413 => "The body, or an image, is too large",
        414 => "The URI is too long",
        415 => "The body's type or encoding is not supported",
        422 => "The body breaks a rule, or asks for what the model has not",
        429 => "Too much waits; come back after Retry-After",
        431 => "There are too many headers",
        501 => "The model answers no questions",
        502 => "An image could not be fetched",
        503 => "Not now",
        504 => "Not answered by the deadline",
        _ => "Our own fault",
    }
}
