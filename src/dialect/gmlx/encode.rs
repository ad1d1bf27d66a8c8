//! Responses of the `gmlx` dialect.
//!
//! Diagnostics are part of every answer and have the members of gmlx's letter readout.

use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value as Wire, json};

use actors::Tier;

use crate::dialect::Extras;
use crate::dialect::shapes::{self, Shape, shape};
use crate::error::DecideError;
use crate::question::answer::{Answer, Value};
use crate::service::{Decided, ModelEntry, Prefixes, Prewarmed, Warmed};

/// Who answers, in the diagnostics.
const ENGINE: &str = "docket";

/// See [`crate::dialect::Dialect::decided`].
pub(in crate::dialect) fn decided(
    decided: &Decided,
    extras: &Extras,
) -> Result<String, DecideError> {
    shapes::check_finite(&decided.answers)?;
    let response = Response {
        model: &decided.model,
        answers: Answers(&decided.answers),
        usage: Usage { input_tokens: decided.cost.prompt_tokens, output_tokens: 0 },
        diagnostics: diagnostics(decided, extras),
    };
    shapes::text(&response)
}

/// See [`crate::dialect::Dialect::prewarmed`].
pub(in crate::dialect) fn prewarmed(prewarmed: &Prewarmed) -> String {
    let warmed: Vec<&Warmed> = match &prewarmed.prefixes {
        Prefixes::One(warmed) => vec![warmed],
        // Requests of this dialect have one state.
        Prefixes::Many(warmed) => warmed.iter().flatten().collect(),
    };
    let body = json!({
        "model": prewarmed.model,
        "ok": !warmed.is_empty() && warmed.iter().all(|warmed| warmed.is_ok()),
        "prompt_tokens": warmed.iter().map(|warmed| warmed.prompt_tokens).sum::<u64>(),
        "prefix": {
            "reused": !warmed.is_empty() && warmed.iter().all(|warmed| warmed.reused),
            "stored": warmed.iter().any(|warmed| warmed.stored),
            "tier": warmed.iter().map(|warmed| warmed.tier).max().unwrap_or(Tier::Off).as_str(),
        },
    });
    body.to_string()
}

/// See [`crate::dialect::Dialect::models`].
pub(in crate::dialect) fn models(models: &[ModelEntry]) -> String {
    let entry = |model: &ModelEntry| json!({"id": model.name, "object": "model", "created": 0, "owned_by": ENGINE});
    json!({"object": "list", "data": models.iter().map(entry).collect::<Vec<_>>()}).to_string()
}

#[derive(Serialize)]
struct Response<'a> {
    model: &'a str,
    answers: Answers<'a>,
    usage: Usage,
    diagnostics: Wire,
}

#[derive(Serialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

/// By id in the order of the questions; null for one that was not asked.
struct Answers<'a>(&'a [Answer]);

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for answer in self.0 {
            let shown = shape(&answer.value);
            let shown = (!matches!(shown, Shape::Skipped { .. })).then_some(shown);
            map.serialize_entry(&answer.id, &shown)?;
        }
        map.end()
    }
}

fn diagnostics(decided: &Decided, extras: &Extras) -> Wire {
    let cost = &decided.cost;
    let answers = &decided.answers;
    // Answers that were read from the whole vocabulary know what the labels weigh in it.
    let is_whole = answers.iter().any(|answer| answer.diagnostics.label_mass.is_some());
    json!({
        "engine": ENGINE,
        "readout": "letters",
        "stages": decided.stages,
        "skipped": skipped(answers),
        "orderings": answers.iter().map(|answer| answer.diagnostics.orders).max().unwrap_or(0),
        "prefix": {
            "tokens": cost.prefix_tokens,
            "reused": decided.reused,
            "stored": !decided.reused && decided.tier == Tier::Exact,
            "tier": decided.tier.as_str(),
        },
        "passes": cost.rows.len(),
        "prompt_tokens": cost.prompt_tokens,
        "computed_tokens": cost.computed_tokens,
        "path": if is_whole { "logits" } else { "rows" },
        "timing": {"total_ms": extras.total.as_secs_f64() * 1e3, "reads": cost.runs},
    })
}

fn skipped(answers: &[Answer]) -> Map<String, Wire> {
    let one = |answer: &Answer| match &answer.value {
        Value::Skipped { because, was, wanted } => {
            let why = json!({"because": because, "was": was, "wanted": wanted});
            Some((answer.id.clone(), why))
        }
        Value::Noul { .. }
        | Value::Choice { .. }
        | Value::Score { .. }
        | Value::Number(_)
        | Value::Excerpt(_) => None,
    };
    answers.iter().filter_map(one).collect()
}
