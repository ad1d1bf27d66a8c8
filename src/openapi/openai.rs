//! Schemas of `OpenAI`'s decisions, and the route that is theirs.

use serde_json::{Map, Value, json};

use super::Served;
use super::fields::{count, ignored, object, probability, reference, text};
use super::operation::{Operation, Place};
use super::schemas::Named;
use crate::dialect::Dialect;
use crate::question::OPTIONS_MAX;

/// The route.
pub(super) fn route(place: Place<'_>) -> Value {
    let operation = Operation::new(place, "decisions", "Answers questions in OpenAI's form");
    operation.decision().posting(&place.schema("Decision")).answering("decided").value()
}

/// The same under the dialect's name.
pub(super) fn of_path(served: &Served) -> (Dialect, &'static str, &'static str, Value) {
    let dialect = Dialect::Openai;
    (dialect, "/v1/decisions", "post", route(Place { served, dialect, is_named: true }))
}

pub(super) fn schemas(served: &Served) -> Named {
    vec![
        ("OpenaiDecision", request(served)),
        ("OpenaiQuestion", question()),
        ("OpenaiDecided", answers()),
        ("OpenaiAnswer", answer()),
    ]
}

/// A text, or one of several parts.
fn content() -> Value {
    let part = json!({
        "type": "object",
        "required": ["type", "text"],
        "additionalProperties": false,
        "properties": {
            "type": {"const": "input_text"}, "text": text(), "prompt_cache_breakpoint": ignored(),
        },
    });
    json!({"anyOf": [{"type": "string"}, {"type": "array", "items": part}]})
}

fn request(served: &Served) -> Value {
    let message = json!({
        "type": "object",
        "required": ["role", "content"],
        "additionalProperties": false,
        "properties": {
            "type": {"const": "message"},
            "role": {"const": "user"},
            "content": content(),
        },
    });
    let short = |chars_max: usize| json!({"type": ["string", "null"], "maxLength": chars_max});
    json!({
        "type": "object",
        "required": ["model", "input", "questions"],
        "additionalProperties": false,
        "properties": {
            "model": {"type": "string", "description": "Any name; the served model answers"},
            "input": {"anyOf": [
                {"type": "string"},
                {"type": "array", "minItems": 1, "items": message},
            ]},
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": served.limits.questions_max,
                "items": reference("OpenaiQuestion"),
            },
            "safety_identifier": short(128),
            "cache_salt": short(128),
            "prompt_cache_key": short(64),
            "prompt_cache_options": ignored(),
        },
    })
}

fn question() -> Value {
    let option = |what: &str, schema: Value| {
        json!({
            "type": "object",
            "required": [what],
            "additionalProperties": false,
            "properties": {what: schema, "description": {"type": "string"}},
        })
    };
    let of = |kind: &str, field: Option<(&str, Value)>| {
        let mut required = vec!["type", "instructions"];
        let mut properties = json!({
            "type": {"const": kind},
            "instructions": content(),
            "name": {"type": "string"},
        });
        if let Some((field, schema)) = field {
            required.push(field);
            properties[field] = schema;
        }
        json!({
            "type": "object",
            "required": required,
            "additionalProperties": false,
            "properties": properties,
        })
    };
    let choices = json!({
        "description": "Options, whose values differ",
        "type": "array",
        "minItems": 2,
        "maxItems": OPTIONS_MAX,
        "uniqueItems": true,
        "items": option("value", json!({"type": ["string", "boolean"]})),
    });
    let levels = json!({
        "description": "Levels, lowest first",
        "type": "array",
        "minItems": 2,
        "maxItems": 10,
        "items": option("label", json!({"type": "string"})),
    });
    json!({"oneOf": [
        of("predicate", None),
        of("choice", Some(("choices", choices))),
        of("score", Some(("levels", levels))),
    ]})
}

fn answers() -> Value {
    let counts = |names: &[&str]| {
        let properties: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), count())).collect();
        json!({"type": "object", "required": names, "properties": properties})
    };
    let usage = object(json!({
        "input_tokens": count(),
        "input_tokens_details": counts(&["cached_tokens", "cache_write_tokens"]),
        "output_tokens": {"const": 0},
        "output_tokens_details": counts(&["reasoning_tokens"]),
        "total_tokens": count(),
    }));
    json!({
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {
            "model": {"type": "string"},
            "answers": {"type": "array", "items": reference("OpenaiAnswer")},
            "usage": usage,
        },
    })
}

fn answer() -> Value {
    let probability = probability();
    let of = |kind: &str, fields: Value| {
        let mut properties = json!({"type": {"const": kind}, "name": {"type": ["string", "null"]}});
        let mut required = vec!["type".to_owned(), "name".to_owned()];
        if let (Some(all), Value::Object(fields)) = (properties.as_object_mut(), fields) {
            required.extend(fields.keys().cloned());
            all.extend(fields);
        }
        json!({"type": "object", "required": required, "properties": properties})
    };
    let value = json!({"type": ["string", "boolean"]});
    let list = |item: Value| json!({"type": "array", "items": object(item)});
    let options = list(json!({"value": value, "probability": probability}));
    let levels = list(json!({"value": count(), "label": text(), "probability": probability}));
    json!({"oneOf": [
        of("predicate", json!({"probability": probability})),
        of("choice", json!({"choice": value, "probabilities": options, "confidence": probability})),
        of("score", json!({
            "score": {"type": "number", "minimum": 0}, "probabilities": levels, "confidence": probability,
        })),
        of("refusal", json!({})),
    ]})
}
