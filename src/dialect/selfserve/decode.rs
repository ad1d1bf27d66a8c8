//! Requests of the `self` dialect: a field that nobody knows is a fault.

use crate::dialect::systemone::decode::members;
use crate::dialect::systemone::fields::Findings;
use crate::dialect::{Decoded, RequestLimits, Undecoded, echo};
use crate::json::Json;
use crate::question::{Decision, Question};

use super::questions;

/// See [`crate::dialect::Dialect::decision`].
pub(in crate::dialect) fn decision(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Decision>, Undecoded> {
    let mut findings = Findings::new();
    let (mut state, mut questions) = (None, None);
    for (field, value) in members(body)? {
        match field.as_str() {
            "state" => state = Some(value).filter(|state| *state != Json::Null),
            "questions" => questions = Some(value),
            // Clients send names of models that are not served here.
            "model" => check_text("model", &value, &mut findings),
            // What is in it has been found already.
            "images" => {}
            _ => unknown(&field, "state, questions, images, model", &mut findings),
        }
    }
    if state.is_none() {
        missing("state", "any JSON but null", &mut findings);
    }
    let questions = check_questions(questions, limits, &mut findings);
    match (state, questions) {
        (Some(state), Some(questions)) if findings.faults.is_empty() => {
            Ok(Decoded { request: Decision::new(state, questions), ignored: Vec::new() })
        }
        _ => Err(findings.into()),
    }
}

fn check_questions(
    questions: Option<Json>,
    limits: &RequestLimits,
    findings: &mut Findings,
) -> Option<Vec<Question>> {
    let expected = "an object of one or more questions by id";
    let members = match questions {
        Some(Json::Object(members)) => members,
        Some(other) => {
            findings.wrong_type("questions", expected, &other);
            return None;
        }
        None => {
            missing("questions", expected, findings);
            return None;
        }
    };
    let (count, count_max) = (members.len(), limits.questions_max);
    if count == 0 {
        let message = format!("questions is empty, expected {expected}");
        findings.fault(vec!["questions".into()], "too_few", message);
        return None;
    }
    if count > count_max {
        let message = format!("questions has {count} members, at most {count_max} are answered");
        findings.fault(vec!["questions".into()], "too_many", message);
        return None;
    }
    findings.inside("questions".into(), |findings| {
        let read = |(id, value)| questions::question(id, value, findings);
        let read: Vec<Option<Question>> = members.into_iter().map(read).collect();
        read.into_iter().collect()
    })
}

/// Reports a field that nobody knows, with those that there are.
pub(super) fn unknown(field: &str, known: &str, findings: &mut Findings) {
    let message = format!("unknown field \"{}\", expected {known}", echo(field));
    findings.fault(Vec::new(), "unknown_field", message);
}

/// Reports a field that is not there.
pub(super) fn missing(field: &str, expected: &str, findings: &mut Findings) {
    let message = format!("{field} is required: {expected}");
    findings.fault(vec![field.into()], "missing", message);
}

/// Checks a text that may be absent.
pub(super) fn check_text(field: &str, value: &Json, findings: &mut Findings) {
    if !matches!(value, Json::String(_) | Json::Null) {
        findings.wrong_type(field, "a string", value);
    }
}
