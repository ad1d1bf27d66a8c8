//! What the answers of all dialects of System One have in common.
//!
//! Probabilities are written as the shortest text that reads back as the same f64, never rounded; a
//! number that is not finite is an error here, because JSON has no way to write it.

use serde::Serialize;
use serde::ser::Serializer;

use crate::error::DecideError;
use crate::question::answer::{Answer, Citation, Diagnostics, NumberRead, Part, Value};

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
        Value::Number(found) => {
            let read = |read: &NumberRead| all(&[read.value, read.probability]);
            all(&[found.probability, found.not_stated])
                && all(&[found.value.unwrap_or_default(), found.confidence.unwrap_or_default()])
                && found.candidates.iter().all(read)
        }
        Value::Excerpt(found) => all(&[found.probability, found.not_stated]),
        Value::Skipped { .. } => true,
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
    Number {
        value: Option<f64>,
        probability: f64,
        not_stated: f64,
        confidence: Option<f64>,
        candidates: Vec<Candidate<'a>>,
    },
    Excerpt {
        text: Option<&'a str>,
        probability: f64,
        not_stated: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        start: Option<usize>,
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<usize>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        parts: Vec<Place<'a>>,
    },
    Skipped {
        because: &'a str,
        was: Option<&'a str>,
        wanted: &'a [String],
    },
}

/// A number that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Candidate<'a> {
    value: f64,
    probability: f64,
    context: &'a str,
}

/// A passage of the state.
#[derive(Debug, Serialize)]
pub(super) struct Place<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    probability: Option<f64>,
}

impl<'a> Place<'a> {
    fn of(part: &'a Part) -> Self {
        Self { text: &part.text, start: part.start, end: part.end, probability: None }
    }
}

/// The passages that an answer rests on.
pub(super) fn citations(citations: &[Citation]) -> Vec<Place<'_>> {
    let places = citations.iter().map(|citation| Place {
        probability: Some(citation.probability),
        ..Place::of(&citation.part)
    });
    places.collect()
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
        Value::Number(found) => Shape::Number {
            value: found.value,
            probability: found.probability,
            not_stated: found.not_stated,
            confidence: found.confidence,
            candidates: found.candidates.iter().map(candidate).collect(),
        },
        Value::Excerpt(found) => Shape::Excerpt {
            text: found.found.as_ref().map(|part| part.text.as_str()),
            probability: found.probability,
            not_stated: found.not_stated,
            start: found.found.as_ref().map(|part| part.start),
            end: found.found.as_ref().map(|part| part.end),
            parts: found.parts.iter().map(Place::of).collect(),
        },
        Value::Skipped { because, was, wanted } => {
            Shape::Skipped { because, was: was.as_deref(), wanted }
        }
    }
}

fn candidate(read: &NumberRead) -> Candidate<'_> {
    Candidate { value: read.value, probability: read.probability, context: &read.context }
}

/// The first option that is exactly as probable as the chosen one: of equals docket chooses by key,
/// others by place.
pub(super) fn first_as_probable(chosen: usize, probabilities: &[f64]) -> usize {
    let top = probabilities[chosen].to_bits();
    probabilities.iter().position(|p| p.to_bits() == top).unwrap_or(chosen)
}

/// Probabilities by option.
#[derive(Debug)]
pub(super) struct ByKey<'a>(pub(super) &'a [String], pub(super) &'a [f64]);

impl Serialize for ByKey<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

/// Values by level: the official clients read `"0"`, `"1"`, ... as keys.
#[derive(Debug)]
pub(super) struct ByLevel<'a, T>(pub(super) &'a [T]);

impl<T: Serialize> Serialize for ByLevel<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().enumerate().map(|(level, v)| (level.to_string(), v)))
    }
}
