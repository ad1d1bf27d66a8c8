//! One question of a `systemone` request: its type, and the criteria that go with it.

use std::collections::HashSet;

use crate::dialect::staging::Waits;
use crate::dialect::{ECHO_CHARS_MAX, RequestLimits, echo};
use crate::error::Step;
use crate::json::Json;
use crate::question::{ChoiceOption, Finds, Kind, OPTIONS_MAX, Question};

use super::decode::Members;
use super::fields::{Extensions, Findings, boolean};
use super::finding;

/// Fewest levels of a score.
const LEVELS_MIN: usize = 2;

/// Docket's own fields of a question.
const NAMES: [&str; 3] = ["samples", "ask_if", "depends_on"];

/// Reads the question `id` and what it waits for; its faults go to `findings`.
pub(super) fn question(
    id: String,
    value: Json,
    limits: &RequestLimits,
    findings: &mut Findings,
) -> Option<(Question, Waits)> {
    if id.is_empty() {
        let message = "a question's id is empty, expected at least 1 character".to_owned();
        findings.fault(vec![Step::Key(id)], "id_empty", message);
        return None;
    }
    if let Json::Object(members) = value {
        let at = Step::Key(id.clone());
        return findings.inside(at, |findings| fields(id, members, limits, findings));
    }
    let message = format!(
        "a question must be an object, not {}: {}",
        value.type_name(),
        value.excerpt(ECHO_CHARS_MAX)
    );
    findings.fault(vec![Step::Key(id)], "wrong_type", message);
    None
}

fn fields(
    id: String,
    members: Members,
    limits: &RequestLimits,
    findings: &mut Findings,
) -> Option<(Question, Waits)> {
    let mut extensions = Extensions::default();
    let (mut kind, mut instructions, mut criteria) = (None, None, None);
    let mut cites = false;
    for (field, value) in members {
        match field.as_str() {
            "type" => kind = Some(value),
            "instructions" => instructions = Some(value).filter(|value| *value != Json::Null),
            "criteria" => criteria = Some(value).filter(|value| *value != Json::Null),
            "cite" | "x_cite" if value == Json::Null => {}
            "cite" | "x_cite" => cites = boolean(&field, &value, findings).unwrap_or_default(),
            _ if extensions.read(&NAMES, (&field, &value), limits, findings) => {}
            _ => findings.ignore(&field),
        }
    }
    let question = match read_kind(kind, criteria, findings)? {
        Type::Given(kind) => Question::new(id, kind, instructions),
        Type::Found(finds) => Question::finding(id, finds, instructions),
    };
    let question = Question { samples: extensions.samples, cites, ..question };
    Some((question, extensions.waits))
}

/// Whether a question's options are given or found in the state.
enum Type {
    Given(Kind),
    Found(Finds),
}

fn read_kind(kind: Option<Json>, criteria: Option<Json>, findings: &mut Findings) -> Option<Type> {
    let expected = "\"noul\", \"choice\", \"score\", \"number\" or \"excerpt\"";
    match kind {
        Some(Json::String(name)) => match name.as_str() {
            "noul" => noul(criteria, findings).map(Type::Given),
            "choice" => choice(criteria, findings).map(Type::Given),
            "score" => score(criteria, findings).map(Type::Given),
            "number" => finding::number(criteria, findings).map(Type::Found),
            "excerpt" => finding::excerpt(criteria, findings).map(Type::Found),
            other => {
                let message = format!("type must be {expected}, not \"{}\"", echo(other));
                findings.fault(vec!["type".into()], "unknown_type", message);
                None
            }
        },
        Some(other) => {
            findings.wrong_type("type", expected, &other);
            None
        }
        None => {
            let message = format!("type is missing: {expected}");
            findings.fault(vec!["type".into()], "missing", message);
            None
        }
    }
}

fn noul(criteria: Option<Json>, findings: &mut Findings) -> Option<Kind> {
    let members = match criteria {
        None => Vec::new(),
        Some(Json::Object(members)) => members,
        Some(other) => {
            let expected = "null or an object with true, false or both for a noul";
            findings.wrong_type("criteria", expected, &other);
            return None;
        }
    };
    let (mut when_true, mut when_false) = (None, None);
    for (key, value) in members {
        let value = Some(value).filter(|value| *value != Json::Null);
        match key.as_str() {
            "true" => when_true = value,
            "false" => when_false = value,
            _ => findings.inside("criteria".into(), |findings| findings.ignore(&key)),
        }
    }
    Some(Kind::Noul { when_true, when_false })
}

fn choice(criteria: Option<Json>, findings: &mut Findings) -> Option<Kind> {
    let options = match criteria {
        Some(Json::Object(members)) => described(members),
        Some(Json::Array(items)) => listed(items, findings)?,
        other => {
            let expected = "an object of options or a list of their names for a choice";
            missing_or_wrong(other, expected, findings);
            return None;
        }
    };
    check_count("options", options.len(), 1, findings)?;
    if options.iter().any(|option| option.key.trim().is_empty()) {
        let message = "an option's name is blank, expected a visible character".to_owned();
        findings.fault(vec!["criteria".into()], "option_blank", message);
        return None;
    }
    Some(Kind::Choice { options })
}

/// Options with what each means.
fn described(members: Members) -> Vec<ChoiceOption> {
    let option = |(key, value)| ChoiceOption {
        key,
        description: Some(value).filter(|value| *value != Json::Null),
    };
    members.into_iter().map(option).collect()
}

/// Options by their names alone.
fn listed(items: Vec<Json>, findings: &mut Findings) -> Option<Vec<ChoiceOption>> {
    let mut options = Vec::with_capacity(items.len());
    let mut names = HashSet::new();
    let mut is_sound = true;
    for (index, item) in items.into_iter().enumerate() {
        let Json::String(key) = item else {
            let message = format!(
                "an option must be a string, not {}: {}",
                item.type_name(),
                item.excerpt(ECHO_CHARS_MAX)
            );
            findings.fault(vec!["criteria".into(), index.into()], "wrong_type", message);
            is_sound = false;
            continue;
        };
        if !names.insert(key.clone()) {
            let message = format!("the option \"{}\" appears twice", echo(&key));
            findings.fault(vec!["criteria".into(), index.into()], "duplicate_key", message);
            is_sound = false;
        }
        options.push(ChoiceOption { key, description: None });
    }
    is_sound.then_some(options)
}

fn score(criteria: Option<Json>, findings: &mut Findings) -> Option<Kind> {
    let levels = match criteria {
        Some(Json::Array(levels)) => levels,
        other => {
            let expected = "a list of levels, lowest first, for a score";
            missing_or_wrong(other, expected, findings);
            return None;
        }
    };
    check_count("levels", levels.len(), LEVELS_MIN, findings)?;
    if let Some(index) = levels.iter().position(|level| *level == Json::Null) {
        let message = "a level must be a string or other JSON, not null".to_owned();
        findings.fault(vec!["criteria".into(), index.into()], "wrong_type", message);
        return None;
    }
    Some(Kind::Score { levels })
}

fn missing_or_wrong(criteria: Option<Json>, expected: &str, findings: &mut Findings) {
    if let Some(found) = criteria {
        return findings.wrong_type("criteria", expected, &found);
    }
    let message = format!("criteria is missing: {expected}");
    findings.fault(vec!["criteria".into()], "missing", message);
}

fn check_count(what: &str, count: usize, count_min: usize, findings: &mut Findings) -> Option<()> {
    if (count_min..=OPTIONS_MAX).contains(&count) {
        return Some(());
    }
    let code = if count < count_min { "too_few" } else { "too_many" };
    let message = format!("criteria has {count} of {count_min} to {OPTIONS_MAX} {what}");
    findings.fault(vec!["criteria".into()], code, message);
    None
}
