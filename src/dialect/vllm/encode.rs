//! Responses of the `vllm` dialect.
//!
//! A confidence here is the probability of the answer over the whole vocabulary: its share of the
//! labels times the label mass.

use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Value as Wire, json};

use crate::dialect::Extras;
use crate::dialect::shapes::{self, ByKey, ByLevel, Shape, shape};
use crate::error::DecideError;
use crate::question::answer::{Answer, Value};
use crate::service::{Decided, ModelEntry};

/// See [`crate::dialect::Dialect::decided`].
pub(in crate::dialect) fn decided(
    decided: &Decided,
    extras: &Extras,
) -> Result<String, DecideError> {
    shapes::check_finite(&decided.answers)?;
    let read: Vec<&Answer> = decided.answers.iter().filter(|answer| is_read(answer)).collect();
    if let Some(answer) = read.iter().find(|answer| answer.diagnostics.label_mass.is_none()) {
        let detail = format!("the answer to {:?} has no label mass", answer.id);
        return Err(DecideError::Internal { detail });
    }
    let response = Response {
        id: format!("decision-{}", extras.request_id),
        object: "structured_decision",
        created: now_s(),
        model: &decided.model,
        answers: Answers(&decided.answers),
        usage: Usage { input_tokens: decided.cost.prompt_tokens, output_tokens: read.len() },
        diagnostics: Readings(&read),
    };
    shapes::text(&response)
}

/// See [`crate::dialect::Dialect::models`]: `OpenAI`'s list.
pub(in crate::dialect) fn models(models: &[ModelEntry]) -> String {
    let created = now_s();
    let entry = |model: &ModelEntry| {
        json!({
            "id": model.name,
            "object": "model",
            "created": created,
            "owned_by": "docket",
            "root": model.name,
            "parent": null,
            "max_model_len": null,
            "permission": [],
        })
    };
    let data: Vec<Wire> = models.iter().map(entry).collect();
    json!({"object": "list", "data": data}).to_string()
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn is_read(answer: &Answer) -> bool {
    match answer.value {
        Value::Noul { .. }
        | Value::Choice { .. }
        | Value::Score { .. }
        | Value::Number(_)
        | Value::Excerpt(_) => true,
        Value::Skipped { .. } => false,
    }
}

#[derive(Serialize)]
struct Response<'a> {
    id: String,
    object: &'static str,
    created: u64,
    model: &'a str,
    answers: Answers<'a>,
    usage: Usage,
    diagnostics: Readings<'a>,
}

#[derive(Serialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: usize,
}

struct Answers<'a>(&'a [Answer]);

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for answer in self.0 {
            map.serialize_entry(&answer.id, &body(answer))?;
        }
        map.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Body<'a> {
    Noul {
        noul: f64,
        probabilities: Sides,
        confidence: f64,
    },
    Choice {
        choice: &'a str,
        probabilities: ByKey<'a>,
        confidence: f64,
    },
    Score {
        score: f64,
        legend: ByLevel<'a, String>,
        probabilities: ByLevel<'a, f64>,
        confidence: f64,
    },
    /// What no request of this dialect asks for.
    #[serde(untagged)]
    Other(Shape<'a>),
}

#[derive(Serialize)]
struct Sides {
    yes: f64,
    no: f64,
}

fn body(answer: &Answer) -> Body<'_> {
    let mass = answer.diagnostics.label_mass.unwrap_or_default();
    let confidence = |probabilities: &[f64]| probabilities[first_top(probabilities)] * mass;
    match &answer.value {
        Value::Noul { yes } => {
            let sides = Sides { yes: *yes, no: 1.0 - yes };
            let confidence = confidence(&[sides.yes, sides.no]);
            Body::Noul { noul: *yes, probabilities: sides, confidence }
        }
        Value::Choice { keys, probabilities, .. } => Body::Choice {
            choice: &keys[first_top(probabilities)],
            probabilities: ByKey(keys, probabilities),
            confidence: confidence(probabilities),
        },
        Value::Score { mean, legend, probabilities, .. } => Body::Score {
            score: *mean,
            legend: ByLevel(legend),
            probabilities: ByLevel(probabilities),
            confidence: confidence(probabilities),
        },
        other @ (Value::Number(_) | Value::Excerpt(_) | Value::Skipped { .. }) => {
            Body::Other(shape(other))
        }
    }
}

/// Index of the largest, the first of equals; of none 0.
fn first_top(probabilities: &[f64]) -> usize {
    let is_more = |at: usize, best: usize| probabilities[at] > probabilities[best];
    (0..probabilities.len()).fold(0, |best, at| if is_more(at, best) { at } else { best })
}

/// How each question was read, by its id.
struct Readings<'a>(&'a [&'a Answer]);

#[derive(Serialize)]
struct Reading {
    label_mass: Option<f64>,
    argmax_is_label: bool,
}

impl Serialize for Readings<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|answer| {
            let diagnostics = &answer.diagnostics;
            let (label_mass, argmax_is_label) =
                (diagnostics.label_mass, diagnostics.argmax_is_label);
            (&answer.id, Reading { label_mass, argmax_is_label })
        }))
    }
}
