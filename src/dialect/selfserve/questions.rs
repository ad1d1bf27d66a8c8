//! One question of a `self` request: its type, and the criteria that go with it.

use std::collections::HashSet;

use crate::dialect::systemone::fields::Findings;
use crate::dialect::systemone::finding;
use crate::dialect::{ECHO_CHARS_MAX, echo};
use crate::error::Step;
use crate::json::Json;
use crate::question::{ChoiceOption, Finds, Kind, OPTIONS_MAX, Question};

use super::decode::{missing, unknown};

/// The types of question, for messages.
const TYPES: &str = "choice, score, noul, number or excerpt";

/// Reads the question `id`; its faults go to `findings`.
pub(super) fn question(id: String, value: Json, findings: &mut Findings) -> Option<Question> {
    findings.inside(Step::Key(id.clone()), |findings| {
        if let Json::Object(members) = value {
            return fields(id, members, findings);
        }
        let message = format!(
            "a question must be an object, not {}: {}",
            value.type_name(),
            value.excerpt(ECHO_CHARS_MAX)
        );
        findings.fault(Vec::new(), "wrong_type", message);
        None
    })
}

fn fields(id: String, members: Vec<(String, Json)>, findings: &mut Findings) -> Option<Question> {
    let (mut kind, mut instructions, mut criteria, mut cites) = (None, None, None, false);
    for (field, value) in members {
        let value = Some(value).filter(|value| *value != Json::Null);
        match (field.as_str(), value) {
            ("type", value) => kind = value,
            ("instructions", value) => instructions = value,
            ("criteria", value) => criteria = value,
            ("cite", None) => {}
            ("cite", Some(Json::Bool(flag))) => cites = flag,
            ("cite", Some(other)) => findings.wrong_type("cite", "true or false", &other),
            _ => unknown(&field, "type, instructions, criteria, cite", findings),
        }
    }
    let instructions = read_instructions(instructions, findings);
    let asked = read_type(kind, findings).and_then(|kind| asked(&kind, criteria, findings));
    let question = match asked? {
        Asked::Kind(kind) => Question::new(id, kind, instructions),
        Asked::Finds(finds) => Question::finding(id, finds, instructions),
    };
    Some(Question { cites, ..question })
}

/// What is asked for: options that the request has, or some that are found in the state.
enum Asked {
    Kind(Kind),
    Finds(Finds),
}

fn read_instructions(instructions: Option<Json>, findings: &mut Findings) -> Option<Json> {
    let expected = "a string that is not blank";
    match instructions {
        Some(Json::String(text)) if !text.trim().is_empty() => return Some(Json::String(text)),
        Some(other) => findings.wrong_type("instructions", expected, &other),
        None => missing("instructions", expected, findings),
    }
    None
}

fn read_type(kind: Option<Json>, findings: &mut Findings) -> Option<String> {
    match kind {
        Some(Json::String(name)) => return Some(name),
        Some(other) => findings.wrong_type("type", TYPES, &other),
        None => missing("type", TYPES, findings),
    }
    None
}

fn asked(kind: &str, criteria: Option<Json>, findings: &mut Findings) -> Option<Asked> {
    match kind {
        "choice" => choice(criteria, findings).map(Asked::Kind),
        "score" => score(criteria, findings).map(Asked::Kind),
        "noul" => {
            if let Some(criteria) = criteria {
                findings.wrong_type("criteria", "null or left out for a noul", &criteria);
                return None;
            }
            Some(Asked::Kind(Kind::Noul { when_true: None, when_false: None }))
        }
        "number" => number(criteria, findings).map(Asked::Finds),
        "excerpt" => finding::excerpt(criteria, findings).map(Asked::Finds),
        other => {
            let message = format!("type must be {TYPES}, not \"{}\"", echo(other));
            findings.fault(vec!["type".into()], "unknown_type", message);
            None
        }
    }
}

fn choice(criteria: Option<Json>, findings: &mut Findings) -> Option<Kind> {
    let faults = findings.faults.len();
    let options: Vec<ChoiceOption> = match criteria {
        Some(Json::Object(members)) => {
            let described = |(key, value)| described(key, value, findings);
            members.into_iter().filter_map(described).collect()
        }
        Some(Json::Array(items)) => {
            let keys = texts(items, "an option", findings);
            refuse_repeated(&keys, findings);
            keys.into_iter().map(|key| ChoiceOption { key, description: None }).collect()
        }
        other => return wrong_criteria(other, "an object of options or a list of them", findings),
    };
    if let Some(blank) = options.iter().find(|option| option.key.trim().is_empty()) {
        let message = format!(
            "criteria has the option \"{}\", expected a visible character in its name",
            echo(&blank.key)
        );
        findings.fault(vec!["criteria".into()], "option_blank", message);
    }
    check_count("options", options.len(), findings);
    (findings.faults.len() == faults).then_some(Kind::Choice { options })
}

/// An option with when to choose it, or null.
fn described(key: String, value: Json, findings: &mut Findings) -> Option<ChoiceOption> {
    if matches!(value, Json::String(_) | Json::Null) {
        let description = Some(value).filter(|value| *value != Json::Null);
        return Some(ChoiceOption { key, description });
    }
    let message = format!(
        "the description of an option must be a string, not {}: {}",
        value.type_name(),
        value.excerpt(ECHO_CHARS_MAX)
    );
    findings.fault(vec!["criteria".into(), Step::Key(key)], "wrong_type", message);
    None
}

fn score(criteria: Option<Json>, findings: &mut Findings) -> Option<Kind> {
    let faults = findings.faults.len();
    let Some(Json::Array(items)) = criteria else {
        return wrong_criteria(criteria, "a list of levels, lowest first", findings);
    };
    let levels = texts(items, "a level", findings);
    check_count("levels", levels.len(), findings);
    let levels = levels.into_iter().map(Json::String).collect();
    (findings.faults.len() == faults).then_some(Kind::Score { levels })
}

fn number(criteria: Option<Json>, findings: &mut Findings) -> Option<Finds> {
    if let Some(Json::Object(members)) = &criteria {
        findings.inside("criteria".into(), |findings| {
            let is_known = |field: &str| matches!(field, "min" | "max" | "precision");
            for (field, _) in members.iter().filter(|(field, _)| !is_known(field)) {
                unknown(field, "min, max, precision", findings);
            }
        });
    }
    finding::number(criteria, findings)
}

/// The texts of a list of them.
fn texts(items: Vec<Json>, what: &str, findings: &mut Findings) -> Vec<String> {
    let mut texts = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        if let Json::String(text) = item {
            texts.push(text);
            continue;
        }
        let message = format!(
            "{what} must be a string, not {}: {}",
            item.type_name(),
            item.excerpt(ECHO_CHARS_MAX)
        );
        findings.fault(vec!["criteria".into(), index.into()], "wrong_type", message);
    }
    texts
}

fn refuse_repeated(keys: &[String], findings: &mut Findings) {
    let mut seen = HashSet::new();
    if let Some(twice) = keys.iter().find(|key| !seen.insert(key.as_str())) {
        let message = format!("criteria has the option \"{}\" twice", echo(twice));
        findings.fault(vec!["criteria".into()], "duplicate_key", message);
    }
}

/// Refuses none of what there must be one at least, and more than the model can tell apart.
fn check_count(what: &str, count: usize, findings: &mut Findings) {
    if count == 0 {
        let message = format!("criteria has no {what}, expected at least 1");
        findings.fault(vec!["criteria".into()], "too_few", message);
    }
    if count > OPTIONS_MAX {
        let message = format!("criteria has {count} {what}, at most {OPTIONS_MAX} are supported");
        findings.fault(vec!["criteria".into()], "unsupported_capability", message);
    }
}

/// Reports criteria that are missing or of another type.
fn wrong_criteria<T>(criteria: Option<Json>, expected: &str, findings: &mut Findings) -> Option<T> {
    match criteria {
        Some(other) => findings.wrong_type("criteria", expected, &other),
        None => missing("criteria", expected, findings),
    }
    None
}
