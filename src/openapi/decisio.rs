//! Schemas of decisio's dialect: unknown fields are ignored, and docket's own where they are not sound.

use serde_json::{Value, json};

use super::Served;
use super::fields::{count, images, lenient, object, probability, reference, text, with};
use super::schemas::Named;
use super::systemone;
use crate::question::OPTIONS_MAX;

pub(super) fn schemas(served: &Served) -> Named {
    vec![
        ("DecisioDecision", decision(served)),
        ("DecisioQuestion", question()),
        ("DecisioDecided", decided()),
    ]
}

fn decision(served: &Served) -> Value {
    json!({
        "type": "object",
        "required": ["state", "questions"],
        "properties": {
            "state": {"type": ["string", "object", "array"]},
            "questions": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": served.limits.questions_max,
                "additionalProperties": reference("DecisioQuestion"),
            },
            "model": {"type": ["string", "null"]},
            "orders": lenient("2: each question is read in two orders"),
            "samples": lenient("Orders, `auto` or a count"),
            "priority": lenient("A lane"),
            "timeout_ms": lenient("A limit of time"),
            "images": images(served, &text()),
        },
    })
}

fn question() -> Value {
    let of = |kind: &str, criteria: Value, required: &[&str]| {
        json!({
            "type": "object",
            "required": required,
            "properties": {
                "type": {"const": kind},
                "instructions": {"type": ["string", "object", "array", "null"]},
                "criteria": criteria,
            },
        })
    };
    let noul = json!({
        "type": ["object", "null"],
        "properties": {
            "true": {"description": "What yes means"},
            "false": {"description": "What no means"},
        },
    });
    let choice = json!({
        "description": "Options by name, each with when to choose it, or null",
        "type": "object", "minProperties": 1, "maxProperties": OPTIONS_MAX,
    });
    let score = json!({
        "description": "Levels, lowest first",
        "type": "array", "minItems": 1, "maxItems": OPTIONS_MAX, "items": {},
    });
    json!({"oneOf": [
        of("noul", noul, &["type"]),
        of("choice", choice, &["type", "criteria"]),
        of("score", score, &["type", "criteria"]),
    ]})
}

fn decided() -> Value {
    let more = json!({
        "unknown_probability": probability(),
        "abstained": {"type": "boolean"},
        "certified": {"type": "boolean"},
        "certified_reason": text(),
    });
    let answers: Vec<Value> =
        systemone::given().into_iter().map(|answer| with(answer, &more)).collect();
    let decided = object(json!({
        "model": text(),
        "answers": {"type": "object", "additionalProperties": {"oneOf": answers}},
        "usage": object(json!({"input_tokens": count(), "output_tokens": count()})),
    }));
    with(decided, &json!({"decisio_debug": {"type": "object"}}))
}
