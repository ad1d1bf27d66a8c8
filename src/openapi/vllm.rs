//! Schemas of vLLM's dialect, which knows all of its fields.

use serde_json::{Value, json};

use super::Served;
use super::fields::{count, falsy, images, object, probability, reference, text};
use super::schemas::Named;

/// Limits of vLLM's own.
const QUESTIONS_MAX: usize = 64;
const OPTIONS_MAX: usize = 26;
const LEVELS: (usize, usize) = (2, 10);
const SALT_CHARS_MAX: usize = 128;

pub(super) fn schemas(served: &Served) -> Named {
    vec![
        ("VllmDecision", decision(served)),
        ("VllmQuestion", question()),
        ("VllmTemplate", template()),
        ("VllmDecided", decided()),
    ]
}

fn decision(served: &Served) -> Value {
    let none = |what: &str| json!({"description": format!("{what}: the model has none"), "type": ["array", "null"], "maxItems": 0});
    json!({
        "type": "object",
        "required": ["state", "questions"],
        "additionalProperties": false,
        "properties": {
            "state": {"description": "Any JSON"},
            "questions": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": served.limits.questions_max.min(QUESTIONS_MAX),
                "propertyNames": {"minLength": 1},
                "additionalProperties": reference("VllmQuestion"),
            },
            "model": model(served),
            "instructions": {
                "description": "A text ahead of the state",
                "type": ["string", "null"],
            },
            "chat_template_kwargs": reference("VllmTemplate"),
            "cache_salt": {
                "description": "Only requests with the same one share states",
                "type": ["string", "null"],
                "maxLength": SALT_CHARS_MAX,
                "pattern": "^[^@/\\\\\u{0}]*$",
            },
            "priority": {
                "description": "Below 0 urgent, above 0 batch",
                "type": ["integer", "null"],
                "minimum": i64::MIN,
                "maximum": i64::MAX,
            },
            "request_id": {"type": ["string", "null"]},
            "images": images(served, &text()),
            "audio": none("Sounds"),
            "videos": none("Videos"),
            "joint": {"description": "Questions are read each by itself", "enum": [null, false]},
        },
    })
}

/// A name that is served; none is the server's choice.
fn model(served: &Served) -> Value {
    let description = "A served name; another is 404";
    if served.names.is_empty() {
        return json!({"description": description, "type": ["string", "null"]});
    }
    let names = served.names.iter().map(|name| json!(name));
    let names: Vec<Value> = [json!(null), json!("")].into_iter().chain(names).collect();
    json!({"description": description, "enum": names})
}

/// Values for the chat template. Others than these reach it; what makes the prompt end in another way,
/// or makes the template fail, is refused, and so is more than 4,096 bytes.
fn template() -> Value {
    let off = || json!({"description": "Thinking is off", "enum": falsy()});
    let no = || json!({"description": "The server's own", "not": {}});
    json!({
        "type": ["object", "null"],
        "properties": {
            "enable_thinking": off(),
            "thinking": off(),
            "add_generation_prompt": {"not": {"enum": falsy()}},
            "messages": no(),
            "bos_token": no(),
            "eos_token": no(),
        },
    })
}

fn question() -> Value {
    let of = |kind: &str, criteria: Value, required: &[&str]| {
        json!({
            "type": "object",
            "required": required,
            "additionalProperties": false,
            "properties": {
                "type": {"const": kind},
                "instructions": {"description": "Shown as Python writes it"},
                "criteria": criteria,
            },
        })
    };
    let noul = json!({
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "true": {"description": "What yes means"},
            "false": {"description": "What no means"},
        },
    });
    let choice = json!({"type": "object", "minProperties": 1, "maxProperties": OPTIONS_MAX});
    let score = json!({
        "description": "Levels, lowest first; their texts differ",
        "type": "array",
        "minItems": LEVELS.0,
        "maxItems": LEVELS.1,
        "uniqueItems": true,
        "items": {},
    });
    json!({"oneOf": [
        of("noul", noul, &["type"]),
        of("choice", choice, &["type", "criteria"]),
        of("score", score, &["type", "criteria"]),
    ]})
}

fn decided() -> Value {
    let distribution = || json!({"type": "object", "additionalProperties": probability()});
    let sides = object(json!({"yes": probability(), "no": probability()}));
    let answers = [
        object(json!({
            "type": {"const": "noul"},
            "noul": probability(),
            "probabilities": sides,
            "confidence": probability(),
        })),
        object(json!({
            "type": {"const": "choice"},
            "choice": text(),
            "probabilities": distribution(),
            "confidence": probability(),
        })),
        object(json!({
            "type": {"const": "score"},
            "score": {"type": "number", "minimum": 0, "maximum": LEVELS.1 - 1},
            "legend": {"type": "object", "additionalProperties": text()},
            "probabilities": distribution(),
            "confidence": probability(),
        })),
    ];
    let reading =
        object(json!({"label_mass": probability(), "argmax_is_label": {"type": "boolean"}}));
    object(json!({
        "id": {"type": "string", "pattern": "^decision-."},
        "object": {"const": "structured_decision"},
        "created": count(),
        "model": text(),
        "answers": {"type": "object", "additionalProperties": {"oneOf": answers}},
        "usage": object(json!({"input_tokens": count(), "output_tokens": count()})),
        "diagnostics": {"type": "object", "additionalProperties": reading},
    }))
}
