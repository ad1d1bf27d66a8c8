//! Requests of the `openai` dialect; codes of faults are those of `OpenAI`'s server.

use serde_json::json;

use crate::dialect::systemone::fields::Findings;
use crate::dialect::{Decoded, ECHO_CHARS_MAX, RequestLimits, Undecoded, echo};
use crate::json::Json;
use crate::question::{Decision, Question};

use super::questions::{self, Wanted};

/// Longest texts that say who asks or with whom states are shared, in characters.
const NAMES_CHARS_MAX: [(&str, usize); 3] =
    [("safety_identifier", 128), ("cache_salt", 128), ("prompt_cache_key", 64)];

/// A request, and how each of its questions is answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// What is read.
    pub decision: Decision,
    /// Names of ignored fields.
    pub ignored: Vec<String>,
    /// How each question is answered.
    pub wanted: Vec<Wanted>,
}

/// See [`crate::dialect::Dialect::decision`]: the questions without their names.
pub(in crate::dialect) fn decision(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Decision>, Undecoded> {
    let Asked { decision, ignored, .. } = asked(body, limits)?;
    Ok(Decoded { request: decision, ignored })
}

/// Reads a request.
pub(in crate::dialect) fn asked(body: Json, limits: &RequestLimits) -> Result<Asked, Undecoded> {
    let mut findings = Findings::new();
    let (mut model, mut input, mut questions) = (None, None, None);
    let mut salts = [None, None];
    for (field, value) in members(body, &mut findings)? {
        match field.as_str() {
            "model" => model = Some(value),
            "input" => input = Some(value),
            "questions" => questions = Some(value),
            "safety_identifier" => drop(name("safety_identifier", &value, &mut findings)),
            "cache_salt" => salts[0] = name("cache_salt", &value, &mut findings),
            "prompt_cache_key" => salts[1] = name("prompt_cache_key", &value, &mut findings),
            // What is kept, and where it ends, is the server's to find out.
            "prompt_cache_options" => findings.ignore(&field),
            _ => unknown(&field, &mut findings),
        }
    }
    check_model(model, &mut findings);
    let state = read_input(input, &mut findings);
    let read = read_questions(questions, limits, &mut findings);
    match (state, read) {
        (Some(state), Some(read)) if findings.faults.is_empty() => {
            let (questions, wanted) = read.into_iter().unzip();
            let is_salted = salts.iter().any(Option::is_some);
            let salt = is_salted.then(|| json!(salts).to_string());
            let decision = Decision { salt, ..Decision::new(Json::String(state), questions) };
            Ok(Asked { decision, ignored: findings.ignored, wanted })
        }
        _ => Err(findings.into()),
    }
}

fn members(body: Json, findings: &mut Findings) -> Result<Vec<(String, Json)>, Undecoded> {
    if let Json::Object(members) = body {
        return Ok(members);
    }
    let message = format!("the body must be an object, not {}", body.type_name());
    findings.fault(Vec::new(), "invalid_type", message);
    Err(std::mem::replace(findings, Findings::new()).into())
}

/// Clients send names of models that are not served here: any will do.
fn check_model(model: Option<Json>, findings: &mut Findings) {
    match model {
        Some(Json::String(_)) => {}
        Some(other) => wrong_type("model", "a string", &other, findings),
        None => missing("model", "a string", findings),
    }
}

/// A text that names something; null is none.
fn name(field: &str, value: &Json, findings: &mut Findings) -> Option<String> {
    let chars_max = NAMES_CHARS_MAX.into_iter().find(|(name, _)| *name == field)?.1;
    let Some(text) = value.as_str() else {
        if *value != Json::Null {
            wrong_type(field, "a string", value, findings);
        }
        return None;
    };
    let count = text.chars().count();
    if count > chars_max {
        let message = format!("{field} has {count} characters, at most {chars_max} are allowed");
        findings.fault(vec![field.into()], "string_above_max_length", message);
    }
    Some(text.to_owned())
}

/// The text of the input: that of several messages with an empty line between, that of the parts of one
/// with a line end.
fn read_input(input: Option<Json>, findings: &mut Findings) -> Option<String> {
    let expected = "a string or a list of messages of the user";
    match input {
        Some(Json::String(text)) => Some(text),
        Some(Json::Array(messages)) if !messages.is_empty() => findings
            .inside("input".into(), |findings| joined(&messages, "\n\n", read_message, findings)),
        Some(Json::Array(_)) => {
            let message = format!("input is empty, expected {expected}");
            findings.fault(vec!["input".into()], "array_below_min_length", message);
            None
        }
        Some(other) => {
            wrong_type("input", expected, &other, findings);
            None
        }
        None => {
            missing("input", expected, findings);
            None
        }
    }
}

/// The texts of a list, each read below its place.
fn joined(
    items: &[Json],
    between: &str,
    read: fn(&Json, &mut Findings) -> Option<String>,
    findings: &mut Findings,
) -> Option<String> {
    let read = items
        .iter()
        .enumerate()
        .map(|(index, item)| findings.inside(index.into(), |findings| read(item, findings)));
    // Every one is read, so that the faults of all of them are found.
    let read: Vec<Option<String>> = read.collect();
    Some(read.into_iter().collect::<Option<Vec<String>>>()?.join(between))
}

fn read_message(message: &Json, findings: &mut Findings) -> Option<String> {
    let Json::Object(members) = message else {
        let message = format!("a message must be an object, not {}", message.type_name());
        findings.fault(Vec::new(), "invalid_type", message);
        return None;
    };
    for (field, value) in members {
        match (field.as_str(), value.as_str()) {
            ("content", _) | ("role", Some("user")) | ("type", Some("message")) => {}
            ("role", _) => wrong_value("role", "\"user\"", value, findings),
            ("type", _) => wrong_value("type", "\"message\"", value, findings),
            _ => unknown(field, findings),
        }
    }
    if message.get("role").is_none() {
        missing("role", "\"user\"", findings);
    }
    read_content("content", message.get("content"), findings)
}

/// A text, or one of several parts.
pub(super) fn read_content(
    field: &str,
    content: Option<&Json>,
    findings: &mut Findings,
) -> Option<String> {
    let expected = "a string or a list of parts";
    match content {
        Some(Json::String(text)) => return Some(text.clone()),
        Some(Json::Array(parts)) => {
            let read = |findings: &mut Findings| joined(parts, "\n", read_part, findings);
            return findings.inside(field.into(), read);
        }
        Some(other) => wrong_type(field, expected, other, findings),
        None => missing(field, expected, findings),
    }
    None
}

fn read_part(part: &Json, findings: &mut Findings) -> Option<String> {
    let Json::Object(members) = part else {
        let message = format!("a part must be an object, not {}", part.type_name());
        findings.fault(Vec::new(), "invalid_type", message);
        return None;
    };
    match part.get("type") {
        Some(Json::String(kind)) if kind == "input_text" => {}
        Some(Json::String(kind)) if kind == "input_image" => {
            let message = "the served model reads text only, and the input has an image";
            findings.fault(Vec::new(), "unsupported_capability", message.to_owned());
            return None;
        }
        Some(other) => wrong_value("type", "\"input_text\"", other, findings),
        None => missing("type", "\"input_text\"", findings),
    }
    for (field, _) in members {
        match field.as_str() {
            "type" | "text" => {}
            "prompt_cache_breakpoint" => findings.ignore(field),
            _ => unknown(field, findings),
        }
    }
    match part.get("text") {
        Some(Json::String(text)) => Some(text.clone()),
        Some(other) => {
            wrong_type("text", "a string", other, findings);
            None
        }
        None => {
            missing("text", "a string", findings);
            None
        }
    }
}

fn read_questions(
    questions: Option<Json>,
    limits: &RequestLimits,
    findings: &mut Findings,
) -> Option<Vec<(Question, Wanted)>> {
    let items = match questions {
        Some(Json::Array(items)) => items,
        Some(other) => {
            wrong_type("questions", "a list of questions", &other, findings);
            return None;
        }
        None => {
            missing("questions", "a list of questions", findings);
            return None;
        }
    };
    check_size("questions", items.len(), (1, limits.questions_max), findings)?;
    findings.inside("questions".into(), |findings| {
        let read = items.into_iter().enumerate().map(|(index, item)| {
            findings.inside(index.into(), |findings| questions::question(index, item, findings))
        });
        let read: Vec<Option<(Question, Wanted)>> = read.collect();
        read.into_iter().collect()
    })
}

/// Refuses a list that is too short or too long.
pub(super) fn check_size(
    field: &str,
    count: usize,
    (count_min, count_max): (usize, usize),
    findings: &mut Findings,
) -> Option<()> {
    let (code, limit) = match count {
        _ if count < count_min => ("array_below_min_length", format!("at least {count_min}")),
        _ if count > count_max => ("array_above_max_length", format!("at most {count_max}")),
        _ => return Some(()),
    };
    let message = format!("{field} has {count} elements, expected {limit}");
    findings.fault(vec![field.into()], code, message);
    None
}

/// Reports a field that nobody knows.
pub(super) fn unknown(field: &str, findings: &mut Findings) {
    let message = format!("unknown parameter: '{}'", echo(field));
    findings.fault(vec![field.into()], "unknown_parameter", message);
}

/// Reports a field that is not there.
pub(super) fn missing(field: &str, expected: &str, findings: &mut Findings) {
    let message = format!("{field} is required: {expected}");
    findings.fault(vec![field.into()], "missing_required_parameter", message);
}

/// Reports a value of a type that it may not have.
pub(super) fn wrong_type(field: &str, expected: &str, found: &Json, findings: &mut Findings) {
    not(field, expected, found, ("invalid_type", findings));
}

/// Reports a value that it may not have.
pub(super) fn wrong_value(field: &str, expected: &str, found: &Json, findings: &mut Findings) {
    not(field, expected, found, ("invalid_value", findings));
}

fn not(field: &str, expected: &str, found: &Json, (code, findings): (&'static str, &mut Findings)) {
    let (kind, excerpt) = (found.type_name(), found.excerpt(ECHO_CHARS_MAX));
    let message = format!("{field} must be {expected}, not {kind}: {excerpt}");
    findings.fault(vec![field.into()], code, message);
}
