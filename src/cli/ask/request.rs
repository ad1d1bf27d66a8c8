//! The request that inline flags, or a file, make up.

use std::io::Read;

use serde_json::{Map, Value, json};

use super::{AskError, DecisionArgs, read};

/// The body to send.
///
/// # Errors
/// [`AskError::Request`] when the flags do not make up a request, [`AskError::File`].
pub(super) fn body(arguments: &DecisionArgs, input: impl Read) -> Result<Vec<u8>, AskError> {
    if let Some(file) = &arguments.file {
        return read(file, input);
    }
    let Some(state) = &arguments.state else {
        return fault("say what to ask about with --state, or give a whole request with --file");
    };
    let mut request = Map::new();
    request.insert("state".to_owned(), Value::String(state_text(state, input)?));
    request.insert("questions".to_owned(), Value::Object(questions(arguments)?));
    if let Some(samples) = arguments.samples {
        request.insert("samples".to_owned(), json!(samples));
    }
    if let Some(priority) = &arguments.priority {
        request.insert("priority".to_owned(), json!(priority));
    }
    Ok(Value::Object(request).to_string().into_bytes())
}

fn state_text(state: &str, input: impl Read) -> Result<String, AskError> {
    let path = match state.strip_prefix('@') {
        Some(path) => path,
        None if state == "-" => "-",
        None => return Ok(state.to_owned()),
    };
    String::from_utf8(read(path, input)?).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        AskError::Request(format!("{path}: the state is not UTF-8 text: byte {at} is not"))
    })
}

fn questions(arguments: &DecisionArgs) -> Result<Map<String, Value>, AskError> {
    pair("--choice", &arguments.choice, "--options", &arguments.options)?;
    pair("--score", &arguments.score, "--levels", &arguments.levels)?;
    let mut questions = Map::new();
    for text in &arguments.noul {
        insert(&mut questions, "noul", text, None)?;
    }
    for (text, options) in arguments.choice.iter().zip(&arguments.options) {
        insert(&mut questions, "choice", text, Some(choice_criteria(options)?))?;
    }
    for (text, levels) in arguments.score.iter().zip(&arguments.levels) {
        let levels: Vec<&str> = levels.split(',').map(str::trim).collect();
        insert(&mut questions, "score", text, Some(json!(levels)))?;
    }
    for (kind, texts) in [("number", &arguments.number), ("excerpt", &arguments.excerpt)] {
        for text in texts {
            insert(&mut questions, kind, text, None)?;
        }
    }
    if questions.is_empty() {
        return fault("ask something with --noul, --choice, --score, --number or --excerpt");
    }
    Ok(questions)
}

fn pair(
    flag: &str,
    questions: &[String],
    other: &str,
    criteria: &[String],
) -> Result<(), AskError> {
    if questions.len() == criteria.len() {
        return Ok(());
    }
    let (asked, given) = (questions.len(), criteria.len());
    fault(&format!("{asked} of {flag} and {given} of {other}; each {flag} needs its own {other}"))
}

fn choice_criteria(options: &str) -> Result<Value, AskError> {
    let mut criteria = Map::new();
    for option in options.split(',').map(str::trim) {
        let (key, description) = match option.split_once('=') {
            Some((key, description)) => (key.trim(), json!(description.trim())),
            None => (option, Value::Null),
        };
        if criteria.insert(key.to_owned(), description).is_some() {
            return fault(&format!("--options names {key:?} twice"));
        }
    }
    Ok(Value::Object(criteria))
}

/// Adds a question under the id it names, else under `q` and its number.
fn insert(
    questions: &mut Map<String, Value>,
    kind: &str,
    text: &str,
    criteria: Option<Value>,
) -> Result<(), AskError> {
    let is_id = |id: &str| {
        id.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-')) && !id.is_empty()
    };
    let (id, text) = match text.split_once('=') {
        Some((id, text)) if is_id(id) => (id.to_owned(), text),
        _ => (format!("q{}", questions.len() + 1), text),
    };
    let mut question = json!({ "type": kind, "instructions": text });
    if let Some(criteria) = criteria {
        question["criteria"] = criteria;
    }
    if questions.contains_key(&id) {
        return fault(&format!("two questions are called {id:?}"));
    }
    questions.insert(id, question);
    Ok(())
}

fn fault<T>(message: &str) -> Result<T, AskError> {
    Err(AskError::Request(message.to_owned()))
}
