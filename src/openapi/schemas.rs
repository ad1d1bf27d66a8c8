//! Schemas of request and response bodies, in JSON Schema 2020-12.

use serde_json::{Value, json};

use crate::dialect::{QUESTIONS_MAX, STATES_MAX};
use crate::question::OPTIONS_MAX;

/// Every JSON type but null.
const NOT_NULL: [&str; 6] = ["string", "object", "array", "number", "integer", "boolean"];

/// All named schemas.
pub(super) fn all() -> Value {
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
        "Prewarm": prewarm(),
        "Question": question(),
        "Decided": decided(),
        "Answer": answer(),
        "Probability": {"type": "number", "minimum": 0, "maximum": 1},
        "Reading": reading(),
        "Prewarmed": prewarmed(),
        "Prefix": prefix(),
        "Unread": unread(),
        "Models": models(),
        "Health": super::health::health(),
        "HealthDetails": super::health::details(),
        "Invalid": invalid(),
        "Failure": failure(),
    })
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn nullable(schema: &Value) -> Value {
    json!({"anyOf": [{"type": "null"}, schema]})
}

fn decision() -> Value {
    json!({
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
        },
    })
}

fn timeout_ms() -> Value {
    json!({
        "description": "Milliseconds from the first byte to the answer; the maximum is the server's \
                        --timeout-max",
        "type": ["integer", "null"], "minimum": 1, "maximum": super::TIMEOUT_MAX_MS,
    })
}

fn prewarm() -> Value {
    json!({
        "type": "object",
        "oneOf": [{"required": ["state"]}, {"required": ["states"]}],
        "properties": {
            "state": reference("State"),
            "states": {
                "description": "Several states, in the place of one",
                "type": "array",
                "minItems": 1,
                "maxItems": STATES_MAX,
                "items": reference("State"),
            },
            "model": {"description": "Any name; the served model is used"},
            "priority": nullable(&reference("Lane")),
            "timeout_ms": timeout_ms(),
            "ttl_s": {
                "description": "Seconds for which the state stays pinned without a hit",
                "type": ["integer", "null"], "minimum": 1, "maximum": 604_800,
            },
            "wait": {
                "description": "Whether to answer only when the state is resident; true by default",
                "type": ["boolean", "null"],
            },
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
                "instructions": {"description": "The question in words: any JSON"},
                "criteria": criteria,
                "samples": reference("Samples"),
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
    json!({"oneOf": [
        of("noul", noul, &["type"]),
        of("choice", choice, &["type", "criteria"]),
        of("score", score, &["type", "criteria"]),
    ]})
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
            "x_diagnostics": {"type": "object", "description": "Costs, where asked for"},
        },
    })
}

fn answer() -> Value {
    let probability = reference("Probability");
    let distribution = json!({"type": "object", "additionalProperties": probability});
    let reading = reference("Reading");
    json!({"oneOf": [
        {
            "type": "object",
            "required": ["type", "noul"],
            "properties": {
                "type": {"const": "noul"}, "noul": probability, "x_diagnostics": reading,
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
                "x_diagnostics": reading,
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
                "x_diagnostics": reading,
            },
        },
    ]})
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

fn prewarmed() -> Value {
    json!({
        "type": "object",
        "required": ["model", "ok", "prompt_tokens", "prefix"],
        "properties": {
            "model": {"type": "string"},
            "ok": {"type": "boolean"},
            "prompt_tokens": {"type": "integer", "minimum": 0},
            "prefix": reference("Prefix"),
            "expires_at": expires_at(),
            "handle": handle(),
            "prefixes": {
                "description": "Of several states, each in order",
                "type": "array",
                "minItems": 1,
                "items": {"oneOf": [
                    {
                        "type": "object",
                        "required": ["ok", "prompt_tokens", "prefix", "expires_at", "handle"],
                        "properties": {
                            "ok": {"type": "boolean"},
                            "prompt_tokens": {"type": "integer", "minimum": 0},
                            "prefix": reference("Prefix"),
                            "expires_at": expires_at(),
                            "handle": handle(),
                        },
                    },
                    reference("Unread"),
                ]},
            },
        },
    })
}

fn expires_at() -> Value {
    json!({
        "description": "Seconds since 1970; null where nothing is pinned",
        "type": ["integer", "null"],
    })
}

fn handle() -> Value {
    json!({"description": "For DELETE /v1/prewarm/{handle}", "type": ["string", "null"]})
}

fn prefix() -> Value {
    json!({
        "type": "object",
        "required": ["reused", "stored", "tier"],
        "properties": {
            "reused": {"type": "boolean"},
            "stored": {"type": "boolean"},
            "tier": {"enum": ["exact", "pending", "unsupported", "off"]},
        },
    })
}

fn unread() -> Value {
    json!({
        "description": "One of several states that was not read, with what it alone would have been refused with",
        "type": "object",
        "required": ["ok", "error"],
        "properties": {
            "ok": {"const": false},
            "error": {
                "type": "object",
                "required": ["status", "reason", "detail"],
                "properties": {
                    "status": {"type": "integer"},
                    "reason": {"type": "string"},
                    "detail": {"type": ["object", "array"]},
                    "retry_after_ms": {"type": "integer", "minimum": 1},
                },
            },
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
