//! Responses of the `self` dialect: every value between 0 and 1, and a score, to four decimals.

use std::time::Duration;

use serde_json::{Map, Value as Wire, json};

use crate::dialect::shapes::{self, first_as_probable};
use crate::error::DecideError;
use crate::question::answer::{Answer, Cost, ExcerptFound, NumberFound, Part, Value};
use crate::service::Decided;

/// See [`crate::dialect::Dialect::decided`].
pub(in crate::dialect) fn decided(decided: &Decided) -> Result<String, DecideError> {
    shapes::check_finite(&decided.answers)?;
    let answers = decided.answers.iter().map(|answer| (answer.id.clone(), body(answer)));
    let response = json!({
        "model": decided.model,
        "answers": Wire::Object(answers.collect()),
        "usage": usage(&decided.cost),
    });
    Ok(response.to_string())
}

/// No image has been looked at: a request with one is refused by a model that reads text only.
fn usage(cost: &Cost) -> Wire {
    let admitted = cost.queue_wait + cost.state_wait + cost.engine_wait + cost.engine_time;
    let running = (cost.state_time + cost.steps_time).min(admitted);
    json!({
        "input_tokens": cost.input_tokens,
        "output_tokens": 0,
        "images": 0,
        "latency_ms": ms(running),
        "queue_ms": ms(admitted.saturating_sub(running)),
    })
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e4).round() / 10.0
}

fn body(answer: &Answer) -> Wire {
    let mut body = match &answer.value {
        Value::Noul { yes } => {
            let confidence = (2.0 * yes - 1.0).abs();
            json!({"type": "noul", "noul": rounded(*yes), "confidence": rounded(confidence)})
        }
        Value::Choice { chosen, keys, probabilities, confidence } => json!({
            "type": "choice",
            "choice": keys[first_as_probable(*chosen, probabilities)],
            "probabilities": by(keys.iter().cloned(), probabilities),
            "confidence": rounded(*confidence),
        }),
        Value::Score { mean, legend, probabilities, confidence } => json!({
            "type": "score",
            "score": rounded(*mean),
            "probabilities": by((0..legend.len()).map(|level| level.to_string()), probabilities),
            "confidence": rounded(*confidence),
        }),
        Value::Number(found) => number(found),
        Value::Excerpt(found) => excerpt(found),
        Value::Skipped { because, was, wanted } => {
            json!({"type": "skipped", "because": because, "was": was, "wanted": wanted})
        }
    };
    if let Some(citations) = &answer.citations {
        let citations = citations.iter().map(|citation| {
            let mut place = place(&citation.part);
            place["probability"] = rounded(citation.probability).into();
            place
        });
        body["citations"] = citations.collect();
    }
    body
}

fn number(found: &NumberFound) -> Wire {
    let candidates = found.candidates.iter().map(|read| {
        json!({
            "value": read.value,
            "probability": rounded(read.probability),
            "context": read.context,
        })
    });
    json!({
        "type": "number",
        "value": found.value,
        "probability": rounded(found.probability),
        "not_stated": rounded(found.not_stated),
        "confidence": found.confidence.map(rounded),
        "candidates": candidates.collect::<Wire>(),
    })
}

fn excerpt(found: &ExcerptFound) -> Wire {
    let mut body = json!({
        "type": "excerpt",
        "text": found.found.as_ref().map(|part| &part.text),
        "probability": rounded(found.probability),
    });
    if let Some(part) = &found.found {
        body["start"] = part.start.into();
        body["end"] = part.end.into();
    }
    if !found.parts.is_empty() {
        body["parts"] = found.parts.iter().map(place).collect();
    }
    body
}

fn place(part: &Part) -> Wire {
    json!({"text": part.text, "start": part.start, "end": part.end})
}

fn by(keys: impl Iterator<Item = String>, probabilities: &[f64]) -> Map<String, Wire> {
    keys.zip(probabilities.iter().map(|p| rounded(*p).into())).collect()
}

/// To four decimals, as self's own engine has them.
fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
