//! What the answers of all dialects of System One have in common.
//!
//! Probabilities are written as the shortest text that reads back as the same f64, never rounded; a
//! number that is not finite is an error here, because JSON has no way to write it.

use serde::Serialize;
use serde::ser::Serializer;

use crate::error::DecideError;
use crate::question::answer::{Answer, Diagnostics, Value};

/// Refuses answers that JSON cannot carry.
pub(super) fn check_finite(answers: &[Answer]) -> Result<(), DecideError> {
    let Some(answer) = answers.iter().find(|answer| !is_finite(answer)) else { return Ok(()) };
    let detail = format!("the answer to {:?} is not finite: {:?}", answer.id, answer.value);
    Err(DecideError::Internal { detail })
}

/// A response's text.
pub(super) fn text(response: &impl Serialize) -> Result<String, DecideError> {
    serde_json::to_string(response)
        .map_err(|error| DecideError::Internal { detail: format!("encoding: {error}") })
}

fn is_finite(answer: &Answer) -> bool {
    let all = |numbers: &[f64]| numbers.iter().all(|number| number.is_finite());
    let value = match &answer.value {
        Value::Noul { yes } => yes.is_finite(),
        Value::Choice { probabilities, confidence, .. } => {
            all(probabilities) && confidence.is_finite()
        }
        Value::Score { mean, probabilities, confidence, .. } => {
            all(probabilities) && all(&[*mean, *confidence])
        }
    };
    let Diagnostics { label_mass, entropy, order_consistency, .. } = answer.diagnostics;
    value && all(&[label_mass.unwrap_or_default(), entropy, order_consistency])
}

/// What all dialects of System One have in an answer.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(super) enum Shape<'a> {
    Noul {
        noul: f64,
    },
    Choice {
        choice: &'a str,
        confidence: f64,
        probabilities: ByKey<'a>,
    },
    Score {
        score: f64,
        confidence: f64,
        legend: ByLevel<'a, String>,
        probabilities: ByLevel<'a, f64>,
    },
}

/// An answer by type.
pub(super) fn shape(value: &Value) -> Shape<'_> {
    match value {
        Value::Noul { yes } => Shape::Noul { noul: *yes },
        Value::Choice { chosen, keys, probabilities, confidence } => Shape::Choice {
            choice: &keys[*chosen],
            confidence: *confidence,
            probabilities: ByKey(keys, probabilities),
        },
        Value::Score { mean, legend, probabilities, confidence } => Shape::Score {
            score: *mean,
            confidence: *confidence,
            legend: ByLevel(legend),
            probabilities: ByLevel(probabilities),
        },
    }
}

/// Probabilities by option.
#[derive(Debug)]
pub(super) struct ByKey<'a>(&'a [String], &'a [f64]);

impl Serialize for ByKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

/// Values by level: the official clients read `"0"`, `"1"`, ... as keys.
#[derive(Debug)]
pub(super) struct ByLevel<'a, T>(&'a [T]);

impl<T: Serialize> Serialize for ByLevel<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().enumerate().map(|(level, v)| (level.to_string(), v)))
    }
}
