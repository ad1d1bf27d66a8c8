//! Schemas of gmlx's dialect, which ignores what it does not know.

use serde_json::{Value, json};

use super::Served;
use super::fields::{
    NOT_NULL, count, falsy, ignored, lenient, milliseconds, object, reference, text,
    visible_without,
};
use super::schemas::Named;
use super::staged::profile;
use super::{found, systemone};
use crate::question::OPTIONS_MAX;

pub(super) fn schemas(served: &Served) -> Named {
    vec![
        ("GmlxDecision", decision(served)),
        ("GmlxQuestion", question()),
        ("GmlxDecided", decided()),
    ]
}

fn decision(served: &Served) -> Value {
    json!({
        "type": "object",
        "required": ["state", "questions"],
        "properties": {
            "state": {
                "description": "A picture under `screenshot` or `image` is refused",
                "type": NOT_NULL,
            },
            "questions": {
                "description": "By ids that differ, white space around them apart",
                "type": "object",
                "minProperties": 1,
                "maxProperties": served.limits.questions_max,
                "propertyNames": {"pattern": visible_without(":\n")},
                "additionalProperties": reference("GmlxQuestion"),
            },
            "model": {"description": "Any; a text may end in `@` and the name of a profile"},
            "profile": profile(),
            "ask": {
                "description": "Ids of the questions that are answered: these and all that they wait for",
                "type": ["array", "null"],
                "minItems": 1,
                "items": text(),
            },
            "samples": reference("Samples"),
            "auto_max": {"type": ["integer", "null"], "minimum": 1},
            "auto_threshold": {"type": ["number", "null"], "minimum": 0},
            "images": {"description": "There are none", "enum": falsy()},
            "priority": lenient("A lane"),
            "timeout_ms": lenient("A limit of time"),
            "instructions": ignored(),
            "steps": ignored(),
            "think": ignored(),
            "think_threshold": ignored(),
            "think_budget": ignored(),
            "chunk_rows": ignored(),
            "chunk_prompt": ignored(),
            "sequential": ignored(),
            "seed": ignored(),
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
                "instructions": {"description": "The question in words", "type": NOT_NULL},
                "criteria": criteria,
                "ask_if": {
                    "description": "Answers of other questions under which alone it is asked",
                    "type": ["object", "null"],
                    "additionalProperties": {"type": "array", "minItems": 1, "items": text()},
                },
                "depends_on": ignored(),
                "alone": ignored(),
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
    let choice = json!({"type": "object", "minProperties": 2, "maxProperties": OPTIONS_MAX});
    let score = json!({"type": "array", "minItems": 2, "maxItems": OPTIONS_MAX, "items": {}});
    json!({"oneOf": [
        of("noul", noul, &["type", "instructions"]),
        of("choice", choice, &["type", "instructions", "criteria"]),
        of("score", score, &["type", "instructions", "criteria"]),
    ]})
}

fn decided() -> Value {
    let answers: Vec<Value> =
        systemone::given().into_iter().chain([json!({"type": "null"})]).collect();
    let mut skipped = found::skipped();
    let named = |member: &Value| *member != json!("type");
    if let Some(required) = skipped["required"].as_array_mut() {
        required.retain(named);
    }
    if let Some(properties) = skipped["properties"].as_object_mut() {
        properties.remove("type");
    }
    let mut prefix = super::prewarm::prefix();
    prefix["properties"]["tokens"] = count();
    let diagnostics = object(json!({
        "engine": {"const": "docket"},
        "readout": {"const": "letters"},
        "stages": {"type": "array", "items": {"type": "array", "items": text()}},
        "skipped": {"type": "object", "additionalProperties": skipped},
        "orderings": count(),
        "prefix": prefix,
        "passes": count(),
        "prompt_tokens": count(),
        "computed_tokens": count(),
        "path": {"enum": ["logits", "rows"]},
        "timing": object(json!({"total_ms": milliseconds(), "reads": count()})),
    }));
    object(json!({
        "model": text(),
        "answers": {"type": "object", "additionalProperties": {"oneOf": answers}},
        "usage": object(json!({"input_tokens": count(), "output_tokens": {"const": 0}})),
        "diagnostics": diagnostics,
    }))
}
