//! Requests of the `vllm` dialect: a field that the server does not know is a fault, at every level.

use actors::Lane;

use crate::dialect::{Decoded, RequestLimits, Undecoded, systemone};
use crate::json::Json;
use crate::question::{Decision, Manner, Question};
use crate::service::Prewarm;

use super::faults::Faults;
use super::questions;

/// Most questions of a decision, whatever the server's own limit.
const QUESTIONS_MAX: usize = 64;

/// Longest `cache_salt` in characters.
const SALT_CHARS_MAX: usize = 128;

/// What a `cache_salt` does not contain.
const NOT_IN_SALTS: [char; 4] = ['@', '/', '\\', '\0'];

/// Values for the chat template by which thinking would be switched on.
const THINKING: [&str; 2] = ["enable_thinking", "thinking"];

/// Values for the chat template that are the server's own.
const OF_SERVER: [&str; 3] = ["messages", "bos_token", "eos_token"];

/// What a request says beside state and questions.
#[derive(Debug, Default)]
struct Fields {
    state: Option<Json>,
    questions: Option<Json>,
    model: Option<String>,
    context: Option<String>,
    template: Vec<(String, Json)>,
    salt: Option<String>,
    lane: Option<Lane>,
    request_id: Option<String>,
}

/// See [`crate::dialect::Dialect::decision`].
pub(in crate::dialect) fn decision(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Decision>, Undecoded> {
    let mut faults = Faults::default();
    check_present(&body, &mut faults);
    let mut fields = Fields::default();
    if let Json::Object(members) = body {
        for (name, value) in members {
            fields.read(&name, value, &mut faults);
        }
    }
    let questions = fields.questions.take();
    let questions = questions.map(|sent| check_questions(sent, limits, &mut faults));
    faults.check()?;
    // Both are there where nothing is missing.
    let (state, questions) = (fields.state.unwrap_or(Json::Null), questions.unwrap_or_default());
    let request = Decision {
        manner: Manner::Plain,
        lane: fields.lane,
        context: fields.context,
        template: fields.template,
        model: fields.model,
        salt: fields.salt,
        request_id: fields.request_id,
        ..Decision::new(state, questions)
    };
    Ok(Decoded { request, ignored: Vec::new() })
}

/// See [`crate::dialect::Dialect::prewarm`]: vLLM has none, so its fields are docket's
/// and those of a decision that belong to the prefix.
pub(in crate::dialect) fn prewarm(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Prewarm>, Undecoded> {
    let (mut faults, mut fields) = (Faults::default(), Fields::default());
    let mut members = systemone::decode::members(body)?;
    // What a decision takes into its prefix is taken into it here too.
    for (name, value) in members.extract_if(.., |(name, _)| {
        ["instructions", "chat_template_kwargs"].contains(&name.as_str())
    }) {
        fields.read(&name, value, &mut faults);
    }
    for (_, state) in members.iter_mut().filter(|(name, _)| name == "state") {
        *state = stated(std::mem::replace(state, Json::Null));
    }
    faults.check()?;
    let decoded = systemone::decode::prewarm(Json::Object(members), limits)?;
    let context = fields.context.or(decoded.request.context);
    let (manner, template) = (Manner::Plain, fields.template);
    let request = Prewarm { manner, context, template, ..decoded.request };
    Ok(Decoded { request, ignored: decoded.ignored })
}

fn check_present(body: &Json, faults: &mut Faults) {
    let Json::Object(members) = body else {
        let message = "Input should be a valid dictionary or object to extract fields from";
        return faults.form(Vec::new(), ("model_attributes_type", message), body);
    };
    for name in ["state", "questions"] {
        if !members.iter().any(|(member, _)| member == name) {
            faults.form(vec![name.into()], ("missing", "Field required"), body);
        }
    }
}

impl Fields {
    fn read(&mut self, name: &str, value: Json, faults: &mut Faults) {
        match name {
            "state" => self.state = Some(stated(value)),
            "questions" => self.questions = Some(value),
            "model" => self.model = text(name, value, faults).filter(|model| !model.is_empty()),
            "instructions" => {
                self.context = text(name, value, faults).filter(|context| !context.is_empty());
            }
            "chat_template_kwargs" => self.template = template(name, value, faults),
            "cache_salt" => self.salt = text(name, value, faults).and_then(|s| salt(s, faults)),
            "priority" => self.lane = lane(name, &value, faults),
            "request_id" => self.request_id = text(name, value, faults),
            "images" => {
                // What is in it has been found already.
                list_of_texts(name, &value, faults);
            }
            "audio" | "videos" => check_media(name, &value, faults),
            "joint" => check_joint(name, &value, faults),
            _ => {
                let fault = ("extra_forbidden", "Extra inputs are not permitted");
                faults.form(vec![name.into()], fault, &value);
            }
        }
    }
}

/// Null is a state like any other here; to the core it is none, so it is the text that it becomes.
fn stated(state: Json) -> Json {
    match state {
        Json::Null => Json::String("null".to_owned()),
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            state
        }
    }
}

/// A text or null.
fn text(name: &str, value: Json, faults: &mut Faults) -> Option<String> {
    match value {
        Json::String(text) => Some(text),
        Json::Null => None,
        other @ (Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => {
            let fault = ("string_type", "Input should be a valid string");
            faults.form(vec![name.into()], fault, &other);
            None
        }
    }
}

fn salt(salt: String, faults: &mut Faults) -> Option<String> {
    let path = || vec!["cache_salt".into()];
    if salt.chars().count() > SALT_CHARS_MAX {
        let message = format!("String should have at most {SALT_CHARS_MAX} characters");
        faults.form(path(), ("string_too_long", &message), &Json::String(salt));
        return None;
    }
    if salt.contains(NOT_IN_SALTS) {
        let message = "Value error, cache_salt must not contain '@', '/', '\\' or NUL";
        faults.form(path(), ("value_error", message), &Json::String(salt));
        return None;
    }
    Some(salt).filter(|salt| !salt.is_empty())
}

/// Below 0 urgent, above 0 batch; 0, which is what a client sends that says nothing, names no lane.
fn lane(name: &str, value: &Json, faults: &mut Faults) -> Option<Lane> {
    let fault = match value {
        Json::Number(spelling) => match integer(spelling) {
            Ok(0) => return None,
            Ok(below) if below < 0 => return Some(Lane::Urgent),
            Ok(_) => return Some(Lane::Batch),
            Err(fault) => fault,
        },
        Json::Null => return None,
        Json::Bool(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            ("int_type", "Input should be a valid integer")
        }
    };
    faults.form(vec![name.into()], fault, value);
    None
}

/// An integer of 64 bits; `2.0` is one too.
fn integer(spelling: &str) -> Result<i64, (&'static str, &'static str)> {
    if let Ok(number) = spelling.parse() {
        return Ok(number);
    }
    let too_large = ("int_parsing_size", "Input should be an integer of 64 bits");
    // As a float the first integer beyond the range would round into it.
    if spelling.bytes().all(|byte| byte == b'-' || byte.is_ascii_digit()) {
        return Err(too_large);
    }
    let number: f64 = spelling.parse().unwrap_or(f64::NAN);
    if number.fract() != 0.0 && number.is_finite() {
        let message = "Input should be a valid integer, got a number with a fractional part";
        return Err(("int_from_float", message));
    }
    #[expect(clippy::cast_possible_truncation, reason = "checked to be within; the cast is exact")]
    match number {
        // The bounds are powers of two, which `f64` has exactly.
        within if (-(2_f64.powi(63))..2_f64.powi(63)).contains(&within) => Ok(within as i64),
        _ => Err(too_large),
    }
}

/// Values for the chat template, without those that say what is so anyway.
fn template(name: &str, value: Json, faults: &mut Faults) -> Vec<(String, Json)> {
    let members = match value {
        Json::Object(members) => members,
        Json::Null => return Vec::new(),
        other @ (Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_)) => {
            let fault = ("dict_type", "Input should be a valid dictionary");
            faults.form(vec![name.into()], fault, &other);
            return Vec::new();
        }
    };
    let mut values = Vec::new();
    for (key, value) in members {
        let path = || vec![name.into(), key.as_str().into()];
        match key.as_str() {
            thinking if THINKING.contains(&thinking) => {
                if is_true(&value) {
                    faults.sense(path(), "thinking must be off".to_owned());
                }
            }
            "add_generation_prompt" => {
                if !is_true(&value) {
                    let message = "these chat options end the prompt differently";
                    faults.sense(path(), message.to_owned());
                }
            }
            of_server if OF_SERVER.contains(&of_server) => {
                faults.sense(path(), format!("{name} must not set {key}"));
            }
            _ => values.push((key, value)),
        }
    }
    values
}

/// Whether Python takes a value for true.
fn is_true(value: &Json) -> bool {
    match value {
        Json::Null => false,
        Json::Bool(flag) => *flag,
        Json::Number(spelling) => spelling.parse::<f64>().is_ok_and(|number| number != 0.0),
        Json::String(text) => !text.is_empty(),
        Json::Array(items) => !items.is_empty(),
        Json::Object(members) => !members.is_empty(),
    }
}

/// Length of a list of texts; 0 of null, and of anything else, which is a fault.
fn list_of_texts(name: &str, value: &Json, faults: &mut Faults) -> usize {
    let items = match value {
        Json::Array(items) => items,
        Json::Null => return 0,
        Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Object(_) => {
            faults.form(vec![name.into()], ("list_type", "Input should be a valid list"), value);
            return 0;
        }
    };
    let others = items.iter().enumerate().filter(|(_, item)| item.as_str().is_none());
    for (index, item) in others {
        let fault = ("string_type", "Input should be a valid string");
        faults.form(vec![name.into(), index.into()], fault, item);
    }
    items.len()
}

fn check_media(name: &str, value: &Json, faults: &mut Faults) {
    let count = list_of_texts(name, value, faults);
    if count > 0 {
        let message =
            format!("the served model reads text only, and the request has {count} {name}");
        faults.sense(vec![name.into()], message);
    }
}

fn check_joint(name: &str, value: &Json, faults: &mut Faults) {
    match value {
        Json::Null | Json::Bool(false) => {}
        Json::Bool(true) => {
            let message = "the served model reads each question by itself, joint must be false";
            faults.sense(vec![name.into()], message.to_owned());
        }
        Json::Number(_) | Json::String(_) | Json::Array(_) | Json::Object(_) => {
            faults.form(vec![name.into()], ("bool_type", "Input should be a valid boolean"), value);
        }
    }
}

fn check_questions(sent: Json, limits: &RequestLimits, faults: &mut Faults) -> Vec<Question> {
    let path = || vec!["questions".into()];
    let (count, count_max) = match &sent {
        Json::Object(members) => (members.len(), limits.questions_max.min(QUESTIONS_MAX)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
            faults.form(path(), ("dict_type", "Input should be a valid dictionary"), &sent);
            return Vec::new();
        }
    };
    if count == 0 {
        let message = "Dictionary should have at least 1 item after validation, not 0";
        faults.form(path(), ("too_short", message), &sent);
        return Vec::new();
    }
    if count > count_max {
        let message = format!(
            "Dictionary should have at most {count_max} items after validation, not {count}"
        );
        faults.form(path(), ("too_long", &message), &sent);
        return Vec::new();
    }
    let Json::Object(members) = sent else { return Vec::new() };
    members.into_iter().filter_map(|(id, value)| questions::question(id, value, faults)).collect()
}
