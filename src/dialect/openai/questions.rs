//! One question of an `openai` request: what is read of it, and what its answer says.

use std::collections::HashSet;

use crate::dialect::systemone::fields::Findings;
use crate::json::Json;
use crate::question::{ChoiceOption, Kind, OPTIONS_MAX, Question};

use super::decode::{check_size, missing, read_content, unknown, wrong_type, wrong_value};

/// The types of question, for messages.
const TYPES: &str = "\"predicate\", \"choice\" or \"score\"";

/// Fewest options of a choice and levels of a score.
const OPTIONS_MIN: usize = 2;

/// Most levels of a score.
const LEVELS_MAX: usize = 10;

/// How a question is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Its name, which others may have too.
    pub(super) name: Option<String>,
    /// What its answer is made of.
    pub(super) form: Form,
}

/// What an answer is made of.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Form {
    /// One probability.
    Predicate,
    /// Values: texts, true and false.
    Choice(Vec<Json>),
    /// Labels, lowest first.
    Score(Vec<String>),
}

/// Reads question number `index`; its faults go to `findings`.
pub(super) fn question(
    index: usize,
    value: Json,
    findings: &mut Findings,
) -> Option<(Question, Wanted)> {
    let Json::Object(members) = value else {
        let message = format!("a question must be an object, not {}", value.type_name());
        findings.fault(Vec::new(), "invalid_type", message);
        return None;
    };
    let (mut kind, mut instructions, mut name, mut listed) = (None, None, None, Vec::new());
    for (field, value) in members {
        match field.as_str() {
            "type" => kind = Some(value),
            "instructions" => instructions = Some(value),
            "name" => name = text("name", value, findings),
            "choices" | "levels" => listed.push((field, value)),
            _ => unknown(&field, findings),
        }
    }
    let instructions = read_content("instructions", instructions.as_ref(), findings);
    let kind = read_type(kind, findings)?;
    let (kind, form) = read_form(&kind, listed, findings)?;
    let question = Question::new(index.to_string(), kind, instructions.map(Json::String));
    Some((question, Wanted { name, form }))
}

fn read_type(kind: Option<Json>, findings: &mut Findings) -> Option<String> {
    match kind {
        Some(Json::String(name)) if matches!(&*name, "predicate" | "choice" | "score") => {
            return Some(name);
        }
        Some(other) => wrong_value("type", TYPES, &other, findings),
        None => missing("type", TYPES, findings),
    }
    None
}

/// Reads `choices` or `levels`, whichever goes with the type; the other is not known to it.
fn read_form(
    kind: &str,
    listed: Vec<(String, Json)>,
    findings: &mut Findings,
) -> Option<(Kind, Form)> {
    let field = match kind {
        "choice" => "choices",
        "score" => "levels",
        _ => "",
    };
    let mut items = None;
    for (name, value) in listed {
        match value {
            _ if name != field => unknown(&name, findings),
            Json::Array(list) => items = Some(list),
            other @ (Json::Null
            | Json::Bool(_)
            | Json::Number(_)
            | Json::String(_)
            | Json::Object(_)) => {
                wrong_type(field, "a list", &other, findings);
                return None;
            }
        }
    }
    if field.is_empty() {
        return Some((Kind::Noul { when_true: None, when_false: None }, Form::Predicate));
    }
    let Some(items) = items else {
        missing(field, "a list", findings);
        return None;
    };
    if field == "choices" { choices(items, findings) } else { levels(items, findings) }
}

fn choices(items: Vec<Json>, findings: &mut Findings) -> Option<(Kind, Form)> {
    check_size("choices", items.len(), (OPTIONS_MIN, OPTIONS_MAX), findings)?;
    let read = each("choices", items, findings, |item, findings| {
        let (value, description) = described(item, "value", findings)?;
        if !matches!(value, Json::String(_) | Json::Bool(_)) {
            wrong_type("value", "a string, true or false", &value, findings);
            return None;
        }
        Some((value, description))
    })?;
    let mut seen = HashSet::new();
    if let Some((twice, _)) = read.iter().find(|(value, _)| !seen.insert(value.compact())) {
        wrong_value("choices", "of values that differ", twice, findings);
        return None;
    }
    let keys = keys(&read);
    let (values, descriptions): (Vec<Json>, Vec<Option<Json>>) = read.into_iter().unzip();
    let option = |(key, description)| ChoiceOption { key, description };
    let options = keys.into_iter().zip(descriptions).map(option).collect();
    Some((Kind::Choice { options }, Form::Choice(values)))
}

/// What values are called in the prompt: as they are, or as JSON where that would not tell the text
/// `"true"` from the value, or would show nothing.
fn keys(read: &[(Json, Option<Json>)]) -> Vec<String> {
    let plain = |value: &Json| value.as_str().map_or_else(|| value.compact(), str::to_owned);
    let keys: Vec<String> = read.iter().map(|(value, _)| plain(value)).collect();
    let distinct: HashSet<&String> = keys.iter().collect();
    if distinct.len() == keys.len() && keys.iter().all(|key| !key.trim().is_empty()) {
        return keys;
    }
    read.iter().map(|(value, _)| value.compact()).collect()
}

fn levels(items: Vec<Json>, findings: &mut Findings) -> Option<(Kind, Form)> {
    check_size("levels", items.len(), (OPTIONS_MIN, LEVELS_MAX), findings)?;
    let read = each("levels", items, findings, |item, findings| {
        match described(item, "label", findings)? {
            (Json::String(label), description) => Some((label, description)),
            (other, _) => {
                wrong_type("label", "a string", &other, findings);
                None
            }
        }
    })?;
    let text = |(label, description): &(String, Option<Json>)| match description {
        Some(Json::String(description)) => Json::String(format!("{label}: {description}")),
        _ => Json::String(label.clone()),
    };
    let levels = read.iter().map(text).collect();
    let labels = read.into_iter().map(|(label, _)| label).collect();
    Some((Kind::Score { levels }, Form::Score(labels)))
}

/// Reads every element of a list below its place.
fn each<T>(
    field: &str,
    items: Vec<Json>,
    findings: &mut Findings,
    read: impl Fn(Json, &mut Findings) -> Option<T>,
) -> Option<Vec<T>> {
    findings.inside(field.into(), |findings| {
        let read = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| findings.inside(index.into(), |findings| read(item, findings)));
        // Every one is read, so that the faults of all of them are found.
        let read: Vec<Option<T>> = read.collect();
        read.into_iter().collect()
    })
}

/// The members of a choice or a level: what it is, and its description where it has one.
fn described(item: Json, field: &str, findings: &mut Findings) -> Option<(Json, Option<Json>)> {
    let Json::Object(members) = item else {
        let message = format!("an element must be an object, not {}", item.type_name());
        findings.fault(Vec::new(), "invalid_type", message);
        return None;
    };
    let (mut what, mut description) = (None, None);
    for (name, value) in members {
        match name.as_str() {
            _ if name == field => what = Some(value),
            "description" => description = text("description", value, findings),
            _ => unknown(&name, findings),
        }
    }
    if what.is_none() {
        missing(field, "what the option is", findings);
    }
    Some((what?, description.filter(|text| !text.is_empty()).map(Json::String)))
}

fn text(field: &str, value: Json, findings: &mut Findings) -> Option<String> {
    if let Json::String(text) = value {
        return Some(text);
    }
    wrong_type(field, "a string", &value, findings);
    None
}
