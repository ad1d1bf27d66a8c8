//! Schemas of request and response bodies, in JSON Schema 2020-12.

use serde_json::{Value, json};

use crate::dialect::QUESTIONS_MAX;
use crate::http::IMAGES_MAX;
use crate::question::OPTIONS_MAX;

use super::{found, prewarm, staged};

/// Every JSON type but null.
const NOT_NULL: [&str; 6] = ["string", "object", "array", "number", "integer", "boolean"];

/// All named schemas.
pub(super) fn all() -> Value {
    let mut schemas = own();
    if let Some(schemas) = schemas.as_object_mut() {
        schemas.extend(super::batch::schemas());
        schemas.extend(super::decisions::schemas());
    }
    schemas
}

fn own() -> Value {
    json!({
        "Lane": {"type": "string", "enum": ["urgent", "normal", "batch", "idle"]},
        "Samples": {
            "description": "Orders of the options that are read and averaged",
            "anyOf": [
                {"type": "null"},
                {"const": "auto"},
                {"type": "integer", "minimum": 1},
            ],
        },
        "State": {"description": "What the questions are about", "type": NOT_NULL},
        "Decision": decision(),
        "Prewarm": prewarm::prewarm(),
        "Question": question(),
        "Decided": decided(),
        "Answer": answer(),
        "Probability": {"type": "number", "minimum": 0, "maximum": 1},
        "Reading": reading(),
        "Prewarmed": prewarm::prewarmed(),
        "Prefix": prewarm::prefix(),
        "Unread": prewarm::unread(),
        "Models": models(),
        "Health": super::health::health(),
        "HealthDetails": super::health::details(),
        "Invalid": invalid(),
        "Failure": failure(),
    })
}

pub(super) fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

pub(super) fn nullable(schema: &Value) -> Value {
    json!({"anyOf": [{"type": "null"}, schema]})
}

pub(super) fn decision() -> Value {
    let mut decision = json!({
        "type": "object",
        "required": ["state", "questions"],
        "properties": {
            "state": reference("State"),
            "questions": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": QUESTIONS_MAX,
                "propertyNames": {"minLength": 1},
                "additionalProperties": reference("Question"),
            },
            "model": {"description": "Any name; the served model answers"},
            "samples": reference("Samples"),
            "priority": nullable(&reference("Lane")),
            "timeout_ms": timeout_ms(),
            "diagnostics": {"type": ["boolean", "null"]},
            "context": {
                "description": "What the prompts say ahead of the state",
                "type": ["string", "null"],
            },
            "state_text": {
                "description": "Whether the state is wanted as the model read it",
                "type": ["boolean", "null"],
            },
            "images": images(),
        },
    });
    if let Some(properties) = decision["properties"].as_object_mut() {
        properties.extend(staged::of_decision());
    }
    decision
}

fn images() -> Value {
    let text = json!({"type": ["string", "null"]});
    let object = json!({
        "type": "object",
        "required": ["url"],
        "properties": {"url": {"type": "string"}, "name": text, "description": text},
    });
    json!({
        "description": "Images beside the state, for models that see them",
        "type": ["array", "null"],
        "maxItems": IMAGES_MAX,
        "items": {"anyOf": [{"type": "string"}, object]},
    })
}

pub(super) fn timeout_ms() -> Value {
    json!({
        "description": "Milliseconds from the first byte to the answer; the maximum is the server's \
                        --timeout-max",
        "type": ["integer", "null"], "minimum": 1, "maximum": super::TIMEOUT_MAX_MS,
    })
}

fn question() -> Value {
    let of = |kind: &str, criteria: Value, required: &[&str]| {
        let mut properties = staged::of_question();
        properties.insert("type".to_owned(), json!({"const": kind}));
        properties.insert("criteria".to_owned(), criteria);
        json!({"type": "object", "required": required, "properties": properties})
    };
    let noul = json!({
        "type": ["object", "null"],
        "properties": {
            "true": {"description": "What yes means"},
            "false": {"description": "What no means"},
        },
    });
    let choice = json!({"anyOf": [
        {
            "description": "Options by name, each with when to choose it, or null",
            "type": "object",
            "minProperties": 1,
            "maxProperties": OPTIONS_MAX,
            "propertyNames": {"pattern": "[!-~]"},
        },
        {
            "description": "Options by name alone",
            "type": "array",
            "minItems": 1,
            "maxItems": OPTIONS_MAX,
            "uniqueItems": true,
            "items": {"type": "string", "pattern": "[!-~]"},
        },
    ]});
    let score = json!({
        "description": "Levels, lowest first",
        "type": "array",
        "minItems": 2,
        "maxItems": OPTIONS_MAX,
        "items": {"type": NOT_NULL},
    });
    let mut types = vec![
        of("noul", noul, &["type"]),
        of("choice", choice, &["type", "criteria"]),
        of("score", score, &["type", "criteria"]),
    ];
    types.extend(found::questions());
    json!({ "oneOf": types })
}

fn decided() -> Value {
    json!({
        "type": "object",
        "required": ["model", "answers", "usage"],
        "properties": {
            "model": {"type": "string"},
            "answers": {"type": "object", "additionalProperties": reference("Answer")},
            "usage": {
                "type": "object",
                "required": ["input_tokens", "output_tokens"],
                "properties": {
                    "input_tokens": {"type": "integer", "minimum": 0},
                    "output_tokens": {"const": 0},
                },
            },
            "x_state_text": {"type": "string", "description": "The state as it was read, where asked for"},
            "x_diagnostics": {"type": "object", "description": "Costs, where asked for"},
        },
    })
}

fn answer() -> Value {
    let probability = reference("Probability");
    let distribution = json!({"type": "object", "additionalProperties": probability});
    let (reading, citations) = (reference("Reading"), found::citations());
    let given = json!([
        {
            "type": "object",
            "required": ["type", "noul"],
            "properties": {
                "type": {"const": "noul"}, "noul": probability, "x_citations": citations, "x_diagnostics": reading,
            },
        },
        {
            "type": "object",
            "required": ["type", "choice", "confidence", "probabilities"],
            "properties": {
                "type": {"const": "choice"},
                "choice": {"type": "string"},
                "confidence": probability,
                "probabilities": distribution,
                "x_citations": citations, "x_diagnostics": reading,
            },
        },
        {
            "type": "object",
            "required": ["type", "score", "confidence", "legend", "probabilities"],
            "properties": {
                "type": {"const": "score"},
                "score": {"type": "number", "minimum": 0, "maximum": OPTIONS_MAX - 1},
                "confidence": probability,
                "legend": {"type": "object", "additionalProperties": {"type": "string"}},
                "probabilities": distribution,
                "x_citations": citations, "x_diagnostics": reading,
            },
        },
    ]);
    let given = given.as_array().cloned().unwrap_or_default();
    let types: Vec<Value> = given.into_iter().chain(found::answers()).collect();
    json!({ "oneOf": types })
}

fn reading() -> Value {
    json!({
        "type": "object",
        "required": ["entropy", "orders", "order_consistency", "reads"],
        "properties": {
            "label_mass": reference("Probability"),
            "argmax_is_label": {"type": "boolean"},
            "entropy": {"type": "number", "minimum": 0},
            "orders": {"type": "integer", "minimum": 0},
            "order_consistency": reference("Probability"),
            "reads": {"type": "integer", "minimum": 0},
        },
    })
}

fn models() -> Value {
    let text = json!({"type": "string"});
    let date = json!({
        "description": "YYYY-MM-DD; empty where it is not known",
        "type": "string",
        "pattern": "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$",
    });
    json!({
        "type": "object",
        "required": ["models"],
        "properties": {"models": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["name", "description", "release_date"],
                "properties": {"name": text, "description": text, "release_date": date},
            },
        }},
    })
}

fn invalid() -> Value {
    json!({
        "type": "object",
        "required": ["detail"],
        "properties": {"detail": {
            "type": "array",
            "minItems": 1,
            "maxItems": 10,
            "items": {
                "type": "object",
                "required": ["loc", "msg", "type"],
                "properties": {
                    "loc": {
                        "type": "array",
                        "minItems": 1,
                        "items": {"type": ["string", "integer"]},
                    },
                    "msg": {"type": "string"},
                    "type": {"type": "string"},
                },
            },
        }},
    })
}

fn failure() -> Value {
    json!({
        "type": "object",
        "required": ["detail"],
        "properties": {"detail": {
            "type": "object",
            "required": ["error_type", "message"],
            "properties": {
                "error_type": {"type": "string"},
                "message": {"type": "string"},
            },
        }},
    })
}
