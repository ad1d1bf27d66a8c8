//! Responses of the `systemone` dialect.
//!
//! Probabilities are written as the shortest text that reads back as the same f64, never rounded; a
//! number that is not finite is an error here, because JSON has no way to write it.

use actors::Tier;
use serde::Serialize;
use serde::ser::{SerializeMap as _, Serializer};
use serde_json::{Map, Value as Wire, json};

use crate::dialect::Extras;
use crate::dialect::problem::{self, Fault, FullStatus};
use crate::dialect::shapes::{self, Shape, shape};
use crate::error::DecideError;
use crate::question::answer::{Answer, Cost, Diagnostics, Learned, Value};
use crate::service::{Decided, Prefixes, Prewarmed, Warmed};

/// See [`crate::dialect::Dialect::decided`].
pub(in crate::dialect) fn decided(
    decided: &Decided,
    extras: &Extras,
) -> Result<String, DecideError> {
    let diagnostics = extras.diagnostics;
    shapes::check_finite(&decided.answers)?;
    let response = Response {
        model: &decided.model,
        answers: Answers { answers: &decided.answers, diagnostics },
        usage: Usage { input_tokens: decided.cost.input_tokens, output_tokens: 0 },
        x_state_text: decided.state_text.as_deref(),
        x_diagnostics: diagnostics.then(|| cost(&decided.cost)),
    };
    shapes::text(&response)
}

/// See [`crate::dialect::Dialect::prewarmed`].
pub(in crate::dialect) fn prewarmed(prewarmed: &Prewarmed, full: FullStatus) -> String {
    let mut body = match &prewarmed.prefixes {
        Prefixes::One(warmed) => prefix(warmed),
        Prefixes::Many(prefixes) => together(prefixes, full),
    };
    body.insert("model".to_owned(), json!(prewarmed.model));
    Wire::Object(body).to_string()
}

/// How one prefix is kept.
fn prefix(warmed: &Warmed) -> Map<String, Wire> {
    fields([
        ("ok", json!(warmed.is_ok())),
        ("prompt_tokens", json!(warmed.prompt_tokens)),
        (
            "prefix",
            json!({
                "reused": warmed.reused,
                "stored": warmed.stored,
                "tier": warmed.tier.as_str(),
            }),
        ),
        ("expires_at", json!(warmed.expires_at)),
        ("handle", json!(warmed.handle)),
    ])
}

/// The same of several, each with its own fields or its own error; what they say together is the
/// least that is true of each.
fn together(prefixes: &[Result<Warmed, DecideError>], full: FullStatus) -> Map<String, Wire> {
    let warmed: Vec<&Warmed> = prefixes.iter().flatten().collect();
    let has_all = warmed.len() == prefixes.len();
    let each = |result: &Result<Warmed, DecideError>| match result {
        Ok(warmed) => Wire::Object(prefix(warmed)),
        Err(error) => json!({"ok": false, "error": refused(error, full)}),
    };
    fields([
        ("ok", json!(has_all && warmed.iter().all(|warmed| warmed.is_ok()))),
        ("prompt_tokens", json!(warmed.iter().map(|warmed| warmed.prompt_tokens).sum::<u64>())),
        (
            "prefix",
            json!({
                "reused": has_all && warmed.iter().all(|warmed| warmed.reused),
                "stored": warmed.iter().any(|warmed| warmed.stored),
                "tier": warmed.iter().map(|warmed| warmed.tier).max().unwrap_or(Tier::Off).as_str(),
            }),
        ),
        ("prefixes", json!(prefixes.iter().map(each).collect::<Vec<_>>())),
    ])
}

/// What the request would have been refused with had it been for this state alone.
fn refused(error: &DecideError, full: FullStatus) -> Wire {
    let refusal = problem::systemone(&Fault::Decide(error.clone()), full);
    let body: Wire = serde_json::from_str(&refusal.body).unwrap_or_default();
    let mut entry = fields([
        ("status", json!(refusal.status)),
        ("reason", json!(refusal.reason)),
        ("detail", body["detail"].clone()),
    ]);
    if let Some(wait) = refusal.retry_after {
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX).max(1);
        entry.insert("retry_after_ms".to_owned(), json!(wait_ms));
    }
    Wire::Object(entry)
}

fn fields<const COUNT: usize>(fields: [(&str, Wire); COUNT]) -> Map<String, Wire> {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

#[derive(Serialize)]
struct Response<'a> {
    model: &'a str,
    answers: Answers<'a>,
    usage: Usage,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_state_text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_diagnostics: Option<Wire>,
}

#[derive(Serialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

struct Answers<'a> {
    answers: &'a [Answer],
    diagnostics: bool,
}

impl Serialize for Answers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.answers.len()))?;
        for answer in self.answers {
            let is_read = !matches!(answer.value, Value::Skipped { .. });
            let x_diagnostics = (self.diagnostics && is_read).then(|| reading(&answer.diagnostics));
            let Learned { abstention, certified } = &answer.learned;
            let body = AnswerBody {
                value: shape(&answer.value),
                x_unknown_probability: abstention.map(|abstention| abstention.unknown),
                x_abstained: abstention.map(|abstention| abstention.abstained),
                x_certified: certified.as_ref().map(|certified| certified.is_certified),
                x_citations: answer.citations.as_deref().map(shapes::citations),
                x_diagnostics,
            };
            map.serialize_entry(&answer.id, &body)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct AnswerBody<'a> {
    #[serde(flatten)]
    value: Shape<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_unknown_probability: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_abstained: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_certified: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_citations: Option<Vec<shapes::Place<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x_diagnostics: Option<Wire>,
}

/// How one question was read. What takes the whole vocabulary is absent where only the labels' rows
/// were read.
fn reading(diagnostics: &Diagnostics) -> Wire {
    let mut fields = Map::new();
    if let Some(mass) = diagnostics.label_mass {
        fields.insert("label_mass".to_owned(), json!(mass));
        fields.insert("argmax_is_label".to_owned(), json!(diagnostics.argmax_is_label));
    }
    fields.insert("entropy".to_owned(), json!(diagnostics.entropy));
    fields.insert("orders".to_owned(), json!(diagnostics.orders));
    fields.insert("order_consistency".to_owned(), json!(diagnostics.order_consistency));
    fields.insert("reads".to_owned(), json!(diagnostics.reads));
    Wire::Object(fields)
}

/// What the decision cost and waited for; times in milliseconds.
fn cost(cost: &Cost) -> Wire {
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1e3;
    json!({
        "prompt_tokens": cost.prompt_tokens,
        "computed_tokens": cost.computed_tokens,
        "cached_tokens": cost.cached_tokens,
        "lane": cost.lane.as_str(),
        "queue_ms": ms(cost.queue_wait + cost.engine_wait),
        "state_ms": ms(cost.state_wait),
        "engine_wait_ms": ms(cost.engine_wait),
        "engine_ms": ms(cost.engine_time),
        "wait_behind": cost.behind_registration.then_some("registration"),
        "state_tokenisations": cost.state_tokenisations,
    })
}
