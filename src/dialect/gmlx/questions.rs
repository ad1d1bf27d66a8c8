//! One question of a `gmlx` request.

use crate::dialect::staging::{self, Waits};
use crate::error::Step;
use crate::json::Json;
use crate::question::{ChoiceOption, Kind, OPTIONS_MAX, Question};

use super::decode::{Faulty, Notes, invalid};
use super::repr;

/// Fewest answers of a choice or score.
const ANSWERS_MIN: usize = 2;

/// A question with what it waits for. Whether its instructions are there is for later: gmlx says it
/// only where nothing else is wrong.
pub(super) type Read = (Question, Waits);

/// Reads the question that was sent as `id`.
pub(super) fn question(id: &str, value: Json, notes: &mut Notes) -> Result<Read, Faulty> {
    let name = id.trim();
    if name.is_empty() || name.contains([':', '\n']) {
        let name = repr::text(name);
        return Err(invalid(format!("question id {name} must be non-empty, no ':' or newline")));
    }
    let name = name.to_owned();
    let Json::Object(members) = value else {
        return Err(of(&name, "must be an object"));
    };
    notes.findings.at.push(Step::Key(id.to_owned()));
    let read = fields(name, members, notes);
    notes.findings.at.pop();
    read
}

/// A fault of the question of this id.
pub(super) fn of(id: &str, message: &str) -> Faulty {
    invalid(format!("question {}: {message}", repr::text(id)))
}

fn fields(id: String, members: Vec<(String, Json)>, notes: &mut Notes) -> Result<Read, Faulty> {
    let (mut tag, mut instructions, mut criteria, mut ask_if) = (None, None, None, None);
    for (field, value) in members {
        match field.as_str() {
            "type" => tag = Some(value),
            "instructions" => instructions = present(value),
            "criteria" => criteria = present(value),
            "ask_if" => ask_if = present(value),
            _ => notes.ignore(&field),
        }
    }
    let kind = kind(&id, tag, criteria, notes)?;
    let ask_if = match ask_if {
        None => Vec::new(),
        Some(value) => staging::conditions(&value).ok_or_else(|| {
            of(&id, "ask_if must map a question id to a non-empty list of its answers")
        })?,
    };
    let ask_if = ask_if.into_iter().map(|(id, answers)| (id.trim().to_owned(), answers));
    let waits = Waits { ask_if: ask_if.collect(), depends_on: Vec::new() };
    Ok((Question::new(id, kind, instructions), waits))
}

/// A value that is there, null standing for none.
pub(super) fn present(value: Json) -> Option<Json> {
    Some(value).filter(|value| *value != Json::Null)
}

fn kind(
    id: &str,
    tag: Option<Json>,
    criteria: Option<Json>,
    notes: &mut Notes,
) -> Result<Kind, Faulty> {
    let tag = tag.unwrap_or(Json::Null);
    match tag.as_str() {
        Some("noul") => noul(id, criteria, notes),
        Some("choice") => choice(id, criteria),
        Some("score") => score(id, criteria),
        Some(_) | None => Err(of(id, &format!("unknown type {}", repr::value(&tag)))),
    }
}

fn noul(id: &str, criteria: Option<Json>, notes: &mut Notes) -> Result<Kind, Faulty> {
    let members = match criteria {
        None => Vec::new(),
        Some(Json::Object(members)) => members,
        Some(_) => {
            return Err(of(id, "noul criteria must be an object with true and false"));
        }
    };
    let (mut when_true, mut when_false) = (None, None);
    for (key, value) in members {
        match key.as_str() {
            "true" => when_true = present(value),
            "false" => when_false = present(value),
            _ => notes.ignore_in("criteria", &key),
        }
    }
    Ok(Kind::Noul { when_true, when_false })
}

fn choice(id: &str, criteria: Option<Json>) -> Result<Kind, Faulty> {
    let Some(Json::Object(members)) = criteria.filter(|criteria| !is_empty(criteria)) else {
        return Err(of(id, "choice criteria must map option names to descriptions"));
    };
    check_count(id, members.len())?;
    let option = |(key, value)| ChoiceOption { key, description: present(value) };
    Ok(Kind::Choice { options: members.into_iter().map(option).collect() })
}

fn score(id: &str, criteria: Option<Json>) -> Result<Kind, Faulty> {
    let Some(Json::Array(levels)) = criteria else {
        return Err(of(id, "score criteria must be an ordered list of levels"));
    };
    check_count(id, levels.len())?;
    Ok(Kind::Score { levels })
}

fn is_empty(criteria: &Json) -> bool {
    *criteria == Json::Object(Vec::new())
}

fn check_count(id: &str, count: usize) -> Result<(), Faulty> {
    if count < ANSWERS_MIN {
        return Err(of(id, "needs at least two alternatives"));
    }
    if count > OPTIONS_MAX {
        let message = format!("has {count} alternatives, at most {OPTIONS_MAX} are read");
        return Err(of(id, &message));
    }
    Ok(())
}
