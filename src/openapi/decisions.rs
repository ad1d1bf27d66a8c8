//! `OpenAI`'s route for decisions, and self's for the model: their failures have a shape of their own.

use serde_json::{Map, Value, json};

use super::{cost_headers, dialect, post, reference, response, with_failures};
use crate::dialect::QUESTIONS_MAX;
use crate::question::OPTIONS_MAX;

/// Both of them.
pub(super) fn paths() -> Map<String, Value> {
    let answered = response("The answers", "DecisionAnswers", &cost_headers());
    let summary = "Answers questions in OpenAI's form";
    let mut decisions = post("decisions", summary, "DecisionRequest", &answered);
    let mut model = json!({
        "operationId": "model",
        "summary": "What is served and what it can do, in self's words",
        "parameters": [dialect()],
        "responses": with_failures(
            json!({"200": response("The model", "Model", &json!({}))}), &[400, 401, 414, 431, 500, 503]),
    });
    for route in [&mut decisions, &mut model] {
        told_otherwise(&mut route["responses"]);
    }
    let mut paths = Map::new();
    paths.insert("/v1/decisions".to_owned(), json!({"post": decisions}));
    paths.insert("/v1/model".to_owned(), json!({"get": model}));
    paths
}

/// The same responses, the bodies of failures in the shape that these routes have.
fn told_otherwise(responses: &mut Value) {
    let Some(responses) = responses.as_object_mut() else { return };
    for (_, response) in responses.iter_mut().filter(|(status, _)| *status != "200") {
        response["content"]["application/json"]["schema"] = reference("ErrorFailure");
    }
}

/// What they name.
pub(super) fn schemas() -> Map<String, Value> {
    let named = [
        ("DecisionRequest", request()),
        ("DecisionQuestion", question()),
        ("DecisionAnswers", answers()),
        ("DecisionAnswer", answer()),
        ("ErrorFailure", failure()),
        ("Model", model()),
    ];
    named.into_iter().map(|(name, schema)| (name.to_owned(), schema)).collect()
}

/// A text, or one of several parts.
fn content() -> Value {
    let part = json!({
        "type": "object",
        "required": ["type", "text"],
        "additionalProperties": false,
        "properties": {"type": {"const": "input_text"}, "text": {"type": "string"}},
    });
    json!({"anyOf": [{"type": "string"}, {"type": "array", "items": part}]})
}

fn request() -> Value {
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
                "maxItems": QUESTIONS_MAX,
                "items": reference("DecisionQuestion"),
            },
            "safety_identifier": short(128),
            "cache_salt": short(128),
            "prompt_cache_key": short(64),
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
    let count = json!({"type": "integer", "minimum": 0});
    let counts = |names: &[&str]| {
        let properties: Map<String, Value> =
            names.iter().map(|name| ((*name).to_owned(), count.clone())).collect();
        json!({"type": "object", "required": names, "properties": properties})
    };
    let mut usage = counts(&["input_tokens", "output_tokens", "total_tokens"]);
    usage["properties"]["input_tokens_details"] = counts(&["cached_tokens", "cache_write_tokens"]);
    usage["properties"]["output_tokens_details"] = counts(&["reasoning_tokens"]);
    json!({
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {
            "model": {"type": "string"},
            "answers": {"type": "array", "items": reference("DecisionAnswer")},
            "usage": usage,
        },
    })
}

fn answer() -> Value {
    let probability = reference("Probability");
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
    let each = json!({"type": "array", "items": {
        "type": "object",
        "required": ["value", "probability"],
        "properties": {"probability": probability, "label": {"type": "string"}},
    }});
    json!({"oneOf": [
        of("predicate", json!({"probability": probability})),
        of("choice", json!({"choice": value, "probabilities": each, "confidence": probability})),
        of("score", json!({
            "score": {"type": "number", "minimum": 0}, "probabilities": each, "confidence": probability,
        })),
        of("refusal", json!({})),
    ]})
}

fn failure() -> Value {
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["message", "type"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": "string"},
            },
        }},
    })
}

fn model() -> Value {
    json!({
        "type": "object",
        "required": ["id", "object", "type", "quant", "capabilities"],
        "properties": {
            "id": {"type": "string"},
            "object": {"const": "model"},
            "type": {"const": "decision"},
            "quant": {"type": "string"},
            "capabilities": {
                "type": "object",
                "required": ["input", "output"],
                "properties": {"input": {"type": "object"}, "output": {"type": "object"}},
            },
            "info": {"type": "object"},
        },
    })
}
