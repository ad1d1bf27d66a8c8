//! Schemas of self's dialect, which knows all of its fields.

use serde_json::{Map, Value, json};

use super::Served;
use super::fields::{
    count, images, milliseconds, object, probability, reference, text, visible, with,
};
use super::schemas::Named;
use super::{found, systemone};
use crate::question::OPTIONS_MAX;

pub(super) fn schemas(served: &Served) -> Named {
    vec![
        ("SelfDecision", decision(served)),
        ("SelfQuestion", question()),
        ("SelfDecided", decided()),
    ]
}

fn decision(served: &Served) -> Value {
    json!({
        "type": "object",
        "required": ["state", "questions"],
        "additionalProperties": false,
        "properties": {
            "state": reference("State"),
            "questions": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": served.limits.questions_max,
                "additionalProperties": reference("SelfQuestion"),
            },
            "model": {"type": ["string", "null"], "description": "Ignored"},
            "images": images(served, &systemone::image(true)),
        },
    })
}

fn question() -> Value {
    let of = |kind: &str, criteria: Value| {
        let mut required = vec!["type", "instructions"];
        if matches!(kind, "choice" | "score") {
            required.push("criteria");
        }
        json!({
            "type": "object",
            "required": required,
            "additionalProperties": false,
            "properties": {
                "type": {"const": kind},
                "instructions": {"type": "string", "pattern": visible()},
                "criteria": criteria,
                "cite": found::cite(),
            },
        })
    };
    let none = || json!({"type": "null"});
    let choice = json!({"anyOf": [
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": OPTIONS_MAX,
            "propertyNames": {"pattern": visible()},
            "additionalProperties": {"type": ["string", "null"]},
        },
        {
            "type": "array",
            "minItems": 1,
            "maxItems": OPTIONS_MAX,
            "uniqueItems": true,
            "items": {"type": "string", "pattern": visible()},
        },
    ]});
    let score = json!({"type": "array", "minItems": 1, "maxItems": OPTIONS_MAX, "items": text()});
    let mut number = found::criteria();
    number["additionalProperties"] = false.into();
    json!({"oneOf": [
        of("noul", none()),
        of("choice", choice),
        of("score", score),
        of("number", number),
        of("excerpt", none()),
    ]})
}

fn decided() -> Value {
    let usage = object(json!({
        "input_tokens": count(),
        "output_tokens": {"const": 0},
        "images": {"const": 0},
        "latency_ms": milliseconds(),
        "queue_ms": milliseconds(),
    }));
    object(json!({
        "model": text(),
        "answers": {"type": "object", "additionalProperties": {"oneOf": answers()}},
        "usage": usage,
    }))
}

fn answers() -> Vec<Value> {
    let distribution = || json!({"type": "object", "additionalProperties": probability()});
    let of = |kind: &str, more: Value| {
        let mut members = Map::from_iter([
            ("type".to_owned(), json!({"const": kind})),
            ("confidence".to_owned(), probability()),
        ]);
        members.extend(super::fields::members(more));
        object(Value::Object(members))
    };
    let score = json!({"type": "number", "minimum": 0, "maximum": OPTIONS_MAX - 1});
    let all = vec![
        of("noul", json!({"noul": probability()})),
        of("choice", json!({"choice": text(), "probabilities": distribution()})),
        of("score", json!({"score": score, "probabilities": distribution()})),
        found::number(),
        found::excerpt(),
    ];
    let citations = json!({"citations": found::citations()});
    all.into_iter().map(|answer| with(answer, &citations)).collect()
}
