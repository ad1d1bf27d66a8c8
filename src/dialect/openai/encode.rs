//! Responses of the `openai` dialect.

use serde_json::{Value as Wire, json};

use crate::dialect::shapes::{self, first_as_probable};
use crate::error::DecideError;
use crate::json::Json;
use crate::question::answer::{Answer, Cost, Value};
use crate::service::Decided;

use super::questions::{Form, Wanted};

/// See [`crate::dialect::Dialect::decided`]: of questions without names, whose values are their keys.
pub(in crate::dialect) fn decided(decided: &Decided) -> Result<String, DecideError> {
    let wanted: Vec<Wanted> = decided.answers.iter().map(unnamed).collect();
    answered(&wanted, decided)
}

/// The response; what is wanted of each answer, in their order.
pub(in crate::dialect) fn answered(
    wanted: &[Wanted],
    decided: &Decided,
) -> Result<String, DecideError> {
    shapes::check_finite(&decided.answers)?;
    let answers = wanted.iter().zip(&decided.answers).map(|(wanted, answer)| body(wanted, answer));
    let response = json!({
        "model": decided.model,
        "answers": answers.collect::<Vec<Wire>>(),
        "usage": usage(&decided.cost),
    });
    Ok(response.to_string())
}

fn unnamed(answer: &Answer) -> Wanted {
    let form = match &answer.value {
        Value::Choice { keys, .. } => {
            Form::Choice(keys.iter().cloned().map(Json::String).collect())
        }
        Value::Score { legend, .. } => Form::Score(legend.clone()),
        Value::Noul { .. } | Value::Number(_) | Value::Excerpt(_) | Value::Skipped { .. } => {
            Form::Predicate
        }
    };
    Wanted { name: None, form }
}

fn body(Wanted { name, form }: &Wanted, answer: &Answer) -> Wire {
    match (&answer.value, form) {
        (Value::Noul { yes }, _) => json!({"type": "predicate", "name": name, "probability": yes}),
        (Value::Choice { chosen, probabilities, confidence, .. }, Form::Choice(values)) => {
            let values: Vec<Wire> = values.iter().map(value).collect();
            let each = values.iter().zip(probabilities);
            let each = each.map(|(value, p)| json!({"value": value, "probability": p}));
            json!({
                "type": "choice",
                "name": name,
                "choice": values[first_as_probable(*chosen, probabilities)],
                "probabilities": each.collect::<Vec<Wire>>(),
                "confidence": confidence,
            })
        }
        (Value::Score { mean, probabilities, confidence, .. }, Form::Score(labels)) => {
            let each = labels.iter().zip(probabilities).enumerate().map(
                |(level, (label, p))| json!({"value": level, "label": label, "probability": p}),
            );
            json!({
                "type": "score",
                "name": name,
                "score": mean,
                "probabilities": each.collect::<Vec<Wire>>(),
                "confidence": confidence,
            })
        }
        // The form for a question that has no answer.
        (
            Value::Choice { .. }
            | Value::Score { .. }
            | Value::Number(_)
            | Value::Excerpt(_)
            | Value::Skipped { .. },
            _,
        ) => json!({"type": "refusal", "name": name}),
    }
}

/// A text, true or false.
fn value(value: &Json) -> Wire {
    match value {
        Json::Bool(flag) => (*flag).into(),
        Json::String(text) => text.as_str().into(),
        Json::Null | Json::Number(_) | Json::Array(_) | Json::Object(_) => value.compact().into(),
    }
}

/// Every prompt in full, since what was found of it is told beside; what was written is the part of
/// head and state that had to be computed.
fn usage(cost: &Cost) -> Wire {
    let prefix = u64::from(cost.prefix_tokens);
    let suffixes: u64 = cost.rows.iter().map(|row| row.prompt.saturating_sub(prefix)).sum();
    json!({
        "input_tokens": cost.prompt_tokens,
        "input_tokens_details": {
            "cached_tokens": cost.cached_tokens,
            "cache_write_tokens": cost.computed_tokens.saturating_sub(suffixes).min(prefix),
        },
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": cost.prompt_tokens,
    })
}
