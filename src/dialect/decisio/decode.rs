//! Requests of the `decisio` dialect.
//!
//! Unknown fields are ignored at every level; docket's own fields are read where they are sound, and
//! ignored where they are not, since a client may mean something else by them.

use std::time::Duration;

use crate::dialect::systemone::fields::{Extensions, Findings};
use crate::dialect::{Decoded, RequestLimits, Undecoded, systemone};
use crate::error::{Fact, Problem, Step};
use crate::json::Json;
use crate::question::{Decision, Manner, Question, Samples};
use crate::service::Prewarm;

use super::questions;

/// Longest time of a request that sets none, as decisio's clients wait; lowered to `--timeout-max`.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Docket's own fields of a decision.
const EXTENSIONS: [&str; 3] = ["samples", "priority", "timeout_ms"];

/// Faults of a body, in the words of a pydantic model.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<Problem>);

impl Faults {
    pub(super) fn add(&mut self, path: Vec<Step>, code: &'static str, message: &str) {
        self.with(path, (code, message), Vec::new());
    }

    /// A fault with what pydantic calls its context.
    pub(super) fn with(
        &mut self,
        path: Vec<Step>,
        (code, message): (&'static str, &str),
        facts: Vec<(&'static str, Fact)>,
    ) {
        if self.0.len() < crate::dialect::FAULTS_MAX {
            self.0.push(Problem { facts, ..Problem::new(path, code, message.to_owned()) });
        }
    }

    pub(super) fn missing(&mut self, path: Vec<Step>) {
        self.add(path, "missing", "Field required");
    }

    /// A value that is neither text nor object nor list, where each of these would do.
    pub(super) fn no_text_or_container(&mut self, path: &[Step]) {
        for (code, message, member) in [
            ("string_type", "Input should be a valid string", "str"),
            ("dict_type", "Input should be a valid dictionary", "dict[str,any]"),
            ("list_type", "Input should be a valid list", "list[any]"),
        ] {
            self.add(below(path, member), code, message);
        }
    }

    /// A list or object of the wrong size.
    pub(super) fn size(&mut self, path: Vec<Step>, kind: &str, size: Size) {
        let (code, message, limit, limit_name, actual) = match size {
            Size::TooShort { min, actual } => {
                let message = format!(
                    "{kind} should have at least {min} item after validation, not {actual}"
                );
                ("too_short", message, min, "min_length", Fact::Count(actual))
            }
            Size::TooLong { max } => {
                let message =
                    format!("{kind} should have at most {max} items after validation, not more");
                ("too_long", message, max, "max_length", Fact::Unknown)
            }
        };
        let facts = vec![
            ("field_type", Fact::Text(kind.to_owned())),
            (limit_name, Fact::Count(limit)),
            ("actual_length", actual),
        ];
        self.with(path, (code, &message), facts);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn into_undecoded(self, ignored: Vec<String>) -> Undecoded {
        Undecoded { faults: self.0, ignored }
    }
}

/// What is wrong with a size.
#[derive(Debug, Clone, Copy)]
pub(super) enum Size {
    TooShort { min: usize, actual: usize },
    TooLong { max: usize },
}

/// `path` with one more step.
pub(super) fn below(path: &[Step], step: &str) -> Vec<Step> {
    path.iter().cloned().chain([step.into()]).collect()
}

/// See [`crate::dialect::Dialect::decision`].
pub(in crate::dialect) fn decision(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Decision>, Undecoded> {
    let members = members(body)?;
    let (mut faults, mut notes) = (Faults::default(), Findings::new());
    let mut extensions = Extensions::default();
    let (mut state, mut questions, mut orders) = (None, None, None);
    for (field, value) in members {
        match field.as_str() {
            "state" => state = Some(value),
            "questions" => questions = Some(value),
            "orders" => orders = Some(value),
            "model" => check_model(&value, &mut faults),
            // What is in it has been found already.
            "images" => {}
            _ => lenient(&mut extensions, (&field, &value), limits, &mut notes),
        }
    }
    let state = check_state(state, &mut faults);
    let questions = check_questions(questions, limits, &mut faults, &mut notes);
    match (state, questions) {
        (Some(state), Some(questions)) if faults.is_empty() => {
            let twice = orders.as_ref().is_some_and(is_two).then_some(Samples::Count(2));
            let request = Decision {
                samples: twice.or(extensions.samples),
                lane: extensions.lane,
                timeout: extensions.timeout,
                timeout_default: Some(TIMEOUT.min(limits.timeout_max)),
                manner: Manner::Letters,
                ..Decision::new(state, questions)
            };
            Ok(Decoded { request, ignored: notes.ignored })
        }
        _ => Err(faults.into_undecoded(notes.ignored)),
    }
}

/// See [`crate::dialect::Dialect::prewarm`]: decisio has none, so its fields are docket's.
pub(in crate::dialect) fn prewarm(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Prewarm>, Undecoded> {
    let decoded = systemone::decode::prewarm(body, limits)?;
    let request = Prewarm { manner: Manner::Letters, ..decoded.request };
    Ok(Decoded { request, ignored: decoded.ignored })
}

/// The members of a body that is an object; anything else is refused with a text.
pub(super) fn members(body: Json) -> Result<Vec<(String, Json)>, Undecoded> {
    if let Json::Object(members) = body {
        return Ok(members);
    }
    let message = format!("the request must be a JSON object, not {}", body.type_name());
    let fault = Problem::new(Vec::new(), "json_invalid", message);
    Err(Undecoded { faults: vec![fault], ignored: Vec::new() })
}

/// Reads one of docket's own fields, or notes that the field is ignored.
fn lenient(
    extensions: &mut Extensions,
    (field, value): (&str, &Json),
    limits: &RequestLimits,
    notes: &mut Findings,
) {
    let mut faulty = Findings::new();
    let is_known = extensions.read(&EXTENSIONS, (field, value), limits, &mut faulty);
    if !is_known || !faulty.faults.is_empty() {
        notes.ignore(field);
    }
}

fn check_model(value: &Json, faults: &mut Faults) {
    if !matches!(value, Json::String(_) | Json::Null) {
        faults.add(vec!["model".into()], "string_type", "Input should be a valid string");
    }
}

/// A state that is there and of one of the types it may have.
pub(super) fn check_state(state: Option<Json>, faults: &mut Faults) -> Option<Json> {
    match state {
        None => faults.missing(vec!["state".into()]),
        Some(state @ (Json::String(_) | Json::Object(_) | Json::Array(_))) => return Some(state),
        Some(Json::Null | Json::Bool(_) | Json::Number(_)) => {
            faults.no_text_or_container(&["state".into()]);
        }
    }
    None
}

fn check_questions(
    questions: Option<Json>,
    limits: &RequestLimits,
    faults: &mut Faults,
    notes: &mut Findings,
) -> Option<Vec<Question>> {
    let path = || vec!["questions".into()];
    let members = match questions {
        Some(Json::Object(members)) => members,
        Some(_) => {
            faults.add(path(), "dict_type", "Input should be a valid dictionary");
            return None;
        }
        None => {
            faults.missing(path());
            return None;
        }
    };
    if members.is_empty() {
        faults.size(path(), "Dictionary", Size::TooShort { min: 1, actual: 0 });
        return None;
    }
    if members.len() > limits.questions_max {
        faults.size(path(), "Dictionary", Size::TooLong { max: limits.questions_max });
        return None;
    }
    notes.inside("questions".into(), |notes| {
        let read = |(id, value)| questions::question(id, value, faults, notes);
        let read: Vec<Option<Question>> = members.into_iter().map(read).collect();
        read.into_iter().collect()
    })
}

/// Whether a value means two, as Python's `int` would read it.
fn is_two(value: &Json) -> bool {
    let spelling = match value {
        Json::Number(spelling) => spelling.as_str(),
        Json::String(text) => return text.trim() == "2",
        Json::Null | Json::Bool(_) | Json::Array(_) | Json::Object(_) => return false,
    };
    spelling.parse::<f64>().is_ok_and(|number| (2.0..3.0).contains(&number))
}
