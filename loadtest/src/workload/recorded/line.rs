//! One line of the user's own requests: what of it is for the load test, and what is asked.

use std::fmt::{self, Write as _};

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::workload::Lane;
use crate::workload::decision::{Answer, Given, Kind, Question};

/// Longest time at which a request may start, seconds: a day.
const AT_S_MAX: f64 = 86_400.0;
/// Most characters of a value that a fault repeats.
const ECHO_CHARS_MAX: usize = 60;
/// Lanes, as a fault lists them.
const LANES: &str = "urgent, normal, batch, idle";

/// A request, and what the load test is told about it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) lane: Option<Lane>,
    pub(super) tenant: Option<String>,
    pub(super) at_us: Option<u64>,
    pub(super) given: Given,
    /// Those that are to be answered.
    pub(super) questions: Vec<Question>,
}

/// A JSON object's members as they came.
struct Members<'l>(Vec<(String, &'l RawValue)>);

impl<'l> Deserialize<'l> for Members<'l> {
    fn deserialize<D: Deserializer<'l>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Collect)
    }
}

/// Collects [`Members`].
struct Collect;

impl<'l> Visitor<'l> for Collect {
    type Value = Members<'l>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a JSON object")
    }

    fn visit_map<M: MapAccess<'l>>(self, mut map: M) -> Result<Members<'l>, M::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

/// A line whose members have not all been read.
#[derive(Default)]
struct Draft<'l> {
    lane: Option<Lane>,
    tenant: Option<String>,
    at_us: Option<u64>,
    state: Option<&'l RawValue>,
    asked: Option<&'l RawValue>,
    /// The ids of the questions that are to be answered, where not all are.
    ask: Option<&'l RawValue>,
    rest: String,
    has_model: bool,
}

impl<'l> Draft<'l> {
    fn take(&mut self, name: &str, value: &'l RawValue) -> Result<(), String> {
        match name {
            "lane" | "x-docket-priority" => self.lane = Some(lane_of(name, value)?),
            "tenant" => self.tenant = Some(string(name, value)?),
            "at" => self.at_us = Some(at(value)?),
            "state" => self.state = Some(value),
            "questions" => self.asked = Some(value),
            _ => self.pass_on(name, value),
        }
        Ok(())
    }

    fn pass_on(&mut self, name: &str, value: &'l RawValue) {
        match name {
            "ask" | "x_ask" => self.ask = Some(value),
            "model" => self.has_model = true,
            // A body's own priority names its lane in the report.
            "priority" | "x_priority" => self.lane = self.lane.or(lane_of(name, value).ok()),
            _ => {}
        }
        // A string takes whatever is written to it.
        let _ = write!(self.rest, ",{}:{}", quoted(name), value.get());
    }
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong first, in words.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        // The line is the file's, and this one has no others.
        let fault = |fault: serde_json::Error| fault.to_string().replace(" at line 1 ", " at ");
        let Members(members) = serde_json::from_str(text).map_err(fault)?;
        let mut draft = Draft::default();
        for (index, (name, value)) in members.iter().enumerate() {
            if members[..index].iter().any(|(other, _)| other == name) {
                return Err(format!("{name} is given twice"));
            }
            draft.take(name, value)?;
        }
        let Draft { lane, tenant, at_us, state, asked, ask, rest, has_model } = draft;
        let state = state.filter(|state| state.get() != "null").ok_or("state is missing")?;
        let asked = asked.ok_or("questions is missing")?;
        let questions = questions(asked, ask)?;
        let text = text_of(state).map_err(|fault| format!("state{fault}"))?;
        let (state, asked) = (state.get().to_owned(), asked.get().to_owned());
        let given = Given { text, state, questions: asked, rest, has_model };
        Ok(Self { lane, tenant, at_us, given, questions })
    }
}

fn lane_of(name: &str, value: &RawValue) -> Result<Lane, String> {
    serde_json::from_str(value.get())
        .map_err(|_| format!("{name} is {}, must be one of {LANES}", echo(value)))
}

fn string(name: &str, value: &RawValue) -> Result<String, String> {
    let text = serde_json::from_str::<String>(value.get()).ok().filter(|text| !text.is_empty());
    text.ok_or_else(|| format!("{name} is {}, must be a string that is not empty", echo(value)))
}

/// Seconds as microseconds.
fn at(value: &RawValue) -> Result<u64, String> {
    let seconds = value.get().parse::<f64>().ok().filter(|s| (0.0..=AT_S_MAX).contains(s));
    let seconds = seconds
        .ok_or_else(|| format!("at is {}, must be from 0 to {AT_S_MAX} seconds", echo(value)))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to a day of microseconds"
    )]
    let whole = (seconds * 1e6).round() as u64;
    Ok(whole)
}

/// The questions that are answered: all, or those that `ask` lists.
fn questions(asked: &RawValue, ask: Option<&RawValue>) -> Result<Vec<Question>, String> {
    let Members(members) = object("questions", asked)?;
    let mut questions = Vec::with_capacity(members.len());
    for (id, value) in members {
        let question = question(&id, value).map_err(|fault| format!("questions.{id}{fault}"))?;
        questions.push(question);
    }
    let listed = ask.and_then(|ask| serde_json::from_str::<Vec<String>>(ask.get()).ok());
    if let Some(listed) = listed {
        let is_listed = |id: &Option<String>| id.as_ref().is_some_and(|id| listed.contains(id));
        questions.retain(|question| is_listed(&question.id));
    }
    if questions.is_empty() {
        return Err("questions must have one that is asked".to_owned());
    }
    Ok(questions)
}

/// What is wrong begins with the member's place below the question.
fn question(id: &str, value: &RawValue) -> Result<Question, String> {
    let Members(members) = object("", value)?;
    let member = |name: &str| {
        let found = members.iter().find(|(member, _)| member == name);
        found.map(|(_, value)| *value).filter(|value| value.get() != "null")
    };
    let named = member("type").ok_or(".type is missing")?;
    let (kind, default) = match named.get() {
        "\"noul\"" => (Kind::Noul, "Is it so?"),
        "\"choice\"" => (Kind::Choice, "Which of these is it?"),
        "\"score\"" => (Kind::Score, "Which level is it?"),
        "\"number\"" | "\"excerpt\"" => (Kind::Other, ""),
        _ => {
            let kinds = "noul, choice, score, number, excerpt";
            return Err(format!(".type is {}, must be one of {kinds}", echo(named)));
        }
    };
    let instructions = member("instructions").map_or(Ok(default.to_owned()), text_of)?;
    let criteria = member("criteria");
    let options = match kind {
        Kind::Noul => sides(criteria)?,
        Kind::Choice => choices(criteria)?,
        Kind::Score => levels(criteria)?,
        Kind::Other => Vec::new(),
    };
    let json = value.get().to_owned();
    Ok(Question { id: Some(id.to_owned()), kind, instructions, options, json })
}

fn sides(criteria: Option<&RawValue>) -> Result<Vec<Answer>, String> {
    let members = criteria.map_or(Ok(Vec::new()), |criteria| {
        object(".criteria", criteria).map(|Members(members)| members)
    })?;
    let side = |name: &str, side: &str| {
        let meant = members.iter().find(|(member, _)| member == side);
        let description = meant.and_then(|(_, value)| described(value));
        Answer { description, ..Answer::named(name) }
    };
    Ok(vec![side("Yes", "true"), side("No", "false")])
}

fn choices(criteria: Option<&RawValue>) -> Result<Vec<Answer>, String> {
    let criteria = criteria.ok_or(".criteria is missing")?;
    if let Ok(names) = serde_json::from_str::<Vec<String>>(criteria.get()) {
        return some(names.into_iter().map(Answer::named).collect());
    }
    let Members(members) = object(".criteria", criteria)?;
    let option = |(name, value)| Answer { name, description: described(value) };
    some(members.into_iter().map(option).collect())
}

fn levels(criteria: Option<&RawValue>) -> Result<Vec<Answer>, String> {
    let criteria = criteria.ok_or(".criteria is missing")?;
    let levels = serde_json::from_str::<Vec<&RawValue>>(criteria.get())
        .map_err(|_| format!(".criteria is {}, must be a list", echo(criteria)))?;
    let level = |value: &RawValue| text_of(value).map(Answer::named);
    some(levels.into_iter().map(level).collect::<Result<_, _>>()?)
}

fn some(options: Vec<Answer>) -> Result<Vec<Answer>, String> {
    if options.is_empty() { Err(".criteria is empty".to_owned()) } else { Ok(options) }
}

fn described(value: &RawValue) -> Option<String> {
    text_of(value).ok().filter(|text| text != "null" && !text.is_empty())
}

fn object<'v>(name: &str, value: &'v RawValue) -> Result<Members<'v>, String> {
    serde_json::from_str(value.get())
        .map_err(|_| format!("{name} is {}, must be a JSON object", echo(value)))
}

/// A string's characters, anything else as compact JSON.
fn text_of(value: &RawValue) -> Result<String, String> {
    let json = value.get();
    if json.starts_with('"') {
        return serde_json::from_str(json).map_err(|fault| format!(": {fault}"));
    }
    let (mut text, mut is_string, mut is_escaped) = (String::new(), false, false);
    for c in json.chars() {
        if is_string || !c.is_ascii_whitespace() {
            text.push(c);
        }
        is_string ^= c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
    }
    Ok(text)
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn echo(value: &RawValue) -> String {
    let mut text: String = value.get().chars().take(ECHO_CHARS_MAX).collect();
    if text.len() < value.get().len() {
        text.push_str("...");
    }
    text
}
