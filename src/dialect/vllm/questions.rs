//! One question of a `vllm` request.
//!
//! What is no text reaches the prompt as Python writes it, and so does a level the legend.

use std::collections::HashSet;

use crate::dialect::echo;
use crate::error::Step;
use crate::json::Json;
use crate::question::{ChoiceOption, Kind, Question};

use super::faults::Faults;
use super::python;

/// Most options of a choice: its labels are A to Z.
const OPTIONS_MAX: usize = 26;

/// Fewest and most levels of a score: its labels are digits.
const LEVELS: (usize, usize) = (2, 10);

/// The types of question, as a message lists them.
const TYPES: &str = "['choice', 'noul', 'score']";

type Members = Vec<(String, Json)>;

/// Reads the question `id`.
pub(super) fn question(id: String, value: Json, faults: &mut Faults) -> Option<Question> {
    let path = [Step::from("questions"), Step::Key(id.clone())];
    let below = |field: &str| path.iter().cloned().chain([Step::from(field)]).collect();
    let Json::Object(members) = &value else {
        faults.form(path.to_vec(), ("dict_type", "Input should be a valid dictionary"), &value);
        return None;
    };
    let find = |name: &str| members.iter().find(|(field, _)| field == name);
    let tag = match find("type") {
        Some((_, Json::String(tag))) => tag.clone(),
        Some((_, other)) => {
            faults.form(below("type"), ("string_type", "Input should be a valid string"), other);
            return None;
        }
        None => {
            faults.form(below("type"), ("missing", "Field required"), &value);
            return None;
        }
    };
    let Json::Object(members) = value else { return None };
    match read(&id, &tag, members) {
        Ok((kind, instructions)) => {
            let question = Question::new(id, kind, instructions);
            Some(Question { wants_mass: true, ..question })
        }
        Err(message) => {
            faults.sense(path.to_vec(), message);
            None
        }
    }
}

/// Type with criteria, and instructions; or what is wrong first.
fn read(id: &str, tag: &str, members: Members) -> Result<(Kind, Option<Json>), String> {
    if id.is_empty() {
        return Err("question ids must be non-empty".to_owned());
    }
    let of_question = |what: &str| format!("question {}: {what}", python::quoted(&echo(id)));
    let (mut instructions, mut criteria, mut unknown) = (Json::Null, Json::Null, Vec::new());
    for (field, value) in members {
        match field.as_str() {
            "type" => {}
            "instructions" => instructions = value,
            "criteria" => criteria = value,
            _ => unknown.push(python::quoted(&echo(&field))),
        }
    }
    if !unknown.is_empty() {
        unknown.sort_unstable();
        let more = if unknown.len() > crate::dialect::FAULTS_MAX { ", ..." } else { "" };
        unknown.truncate(crate::dialect::FAULTS_MAX);
        return Err(of_question(&format!("unknown field(s) [{}{more}]", unknown.join(", "))));
    }
    let kind = match tag {
        "choice" => choice(criteria),
        "noul" => noul(criteria),
        "score" => score(&criteria),
        other => {
            let other = python::quoted(&echo(other));
            return Err(format!("unknown question type {other}; supported: {TYPES}"));
        }
    };
    Ok((kind.map_err(|what| of_question(&what))?, shown(instructions)))
}

/// A text for the prompt; none for null and for an empty one.
fn shown(value: Json) -> Option<Json> {
    match value {
        Json::Null => None,
        Json::String(text) => Some(text).filter(|text| !text.is_empty()).map(Json::String),
        other @ (Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            Some(Json::String(python::repr(&other)))
        }
    }
}

fn choice(criteria: Json) -> Result<Kind, String> {
    let members = match criteria {
        Json::Object(members) if !members.is_empty() => members,
        Json::Null
        | Json::Bool(_)
        | Json::Number(_)
        | Json::String(_)
        | Json::Array(_)
        | Json::Object(_) => {
            let message = "choice criteria must map option names to a description or null";
            return Err(message.to_owned());
        }
    };
    check_count(members.len(), OPTIONS_MAX)?;
    let option = |(key, value)| ChoiceOption { key, description: shown(value) };
    Ok(Kind::Choice { options: members.into_iter().map(option).collect() })
}

fn noul(criteria: Json) -> Result<Kind, String> {
    let refused = || Err("noul criteria must be an object with true and false".to_owned());
    let members = match criteria {
        Json::Null => Vec::new(),
        Json::Object(members) => members,
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => return refused(),
    };
    let (mut when_true, mut when_false) = (None, None);
    for (side, value) in members {
        match side.as_str() {
            "true" => when_true = shown(value),
            "false" => when_false = shown(value),
            _ => return refused(),
        }
    }
    Ok(Kind::Noul { when_true, when_false })
}

fn score(criteria: &Json) -> Result<Kind, String> {
    let (least, most) = LEVELS;
    let levels: Vec<String> = match criteria {
        Json::Array(levels) if levels.len() >= least => {
            check_count(levels.len(), most)?;
            levels.iter().map(python::text).collect()
        }
        Json::Null
        | Json::Bool(_)
        | Json::Number(_)
        | Json::String(_)
        | Json::Array(_)
        | Json::Object(_) => {
            return Err("score criteria must be an ordered list of levels".to_owned());
        }
    };
    let distinct: HashSet<&String> = levels.iter().collect();
    if distinct.len() < levels.len() {
        return Err("duplicate option names".to_owned());
    }
    Ok(Kind::Score { levels: levels.into_iter().map(Json::String).collect() })
}

fn check_count(count: usize, count_max: usize) -> Result<(), String> {
    if count <= count_max {
        return Ok(());
    }
    Err(format!("at most {count_max} options for this model"))
}
