//! Schemas of docket's own dialect, and of the answers that others share with it.

use serde_json::{Value, json};

use super::Served;
use super::fields::{
    NOT_NULL, count, ignored, images, lane, milliseconds, object, probability, reference, text,
    timeout_ms, visible, with,
};
use super::schemas::Named;
use super::{found, staged};
use crate::question::OPTIONS_MAX;

pub(super) fn schemas(served: &Served) -> Named {
    vec![
        ("SystemoneDecision", decision(served)),
        ("SystemoneQuestion", question()),
        ("SystemoneDecided", decided()),
        ("SystemoneAnswer", answer()),
        ("SystemoneReading", reading()),
        ("Samples", samples()),
    ]
}

fn samples() -> Value {
    json!({
        "description": "Orders of the options that are read and averaged",
        "anyOf": [{"type": "null"}, {"const": "auto"}, {"type": "integer", "minimum": 1}],
    })
}

fn decision(served: &Served) -> Value {
    let mut decision = json!({
        "description": "What is docket's own, all but state, questions, model and images, may also be \
                        spelt with x_ in front",
        "type": "object",
        "required": ["state", "questions"],
        "properties": {
            "state": reference("State"),
            "questions": {
                "type": "object",
                "minProperties": 1,
                "maxProperties": served.limits.questions_max,
                "propertyNames": {"minLength": 1},
                "additionalProperties": reference("SystemoneQuestion"),
            },
            "model": ignored(),
            "samples": reference("Samples"),
            "priority": lane(),
            "timeout_ms": timeout_ms(served),
            "diagnostics": {"type": ["boolean", "null"]},
            "context": {
                "description": "What the prompts say ahead of the state",
                "type": ["string", "null"],
            },
            "state_text": {
                "description": "Whether the state is wanted as the model read it",
                "type": ["boolean", "null"],
            },
            "images": images(served, &image(false)),
        },
    });
    if let Some(properties) = decision["properties"].as_object_mut() {
        properties.extend(staged::of_decision());
    }
    decision
}

/// An image: a URL, or an object with one.
pub(super) fn image(is_strict: bool) -> Value {
    let text_or_null = || json!({"type": ["string", "null"]});
    let mut image = object(json!({"url": text()}));
    image = with(image, &json!({"name": text_or_null(), "description": text_or_null()}));
    if is_strict {
        image["additionalProperties"] = false.into();
    }
    json!({"anyOf": [text(), image]})
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
            "propertyNames": {"pattern": visible()},
        },
        {
            "description": "Options by name alone",
            "type": "array",
            "minItems": 1,
            "maxItems": OPTIONS_MAX,
            "uniqueItems": true,
            "items": {"type": "string", "pattern": visible()},
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
    let decided = object(json!({
        "model": text(),
        "answers": {"type": "object", "additionalProperties": reference("SystemoneAnswer")},
        "usage": object(json!({"input_tokens": count(), "output_tokens": {"const": 0}})),
    }));
    with(
        decided,
        &json!({
            "x_state_text": {"type": "string", "description": "The state as it was read, where asked for"},
            "x_diagnostics": cost(),
        }),
    )
}

/// What a decision cost and waited for.
fn cost() -> Value {
    let mut cost = object(json!({
        "prompt_tokens": count(),
        "computed_tokens": count(),
        "cached_tokens": count(),
        "lane": reference("Lane"),
        "queue_ms": milliseconds(),
        "state_ms": milliseconds(),
        "engine_wait_ms": milliseconds(),
        "engine_ms": milliseconds(),
        "wait_behind": {"enum": [null, "registration"]},
        "state_tokenisations": count(),
    }));
    cost["description"] = json!("Costs, where asked for");
    cost
}

fn answer() -> Value {
    let more = json!({
        "x_unknown_probability": probability(),
        "x_abstained": {"type": "boolean"},
        "x_certified": {"type": "boolean"},
        "x_citations": found::citations(),
        "x_diagnostics": reference("SystemoneReading"),
    });
    let read = given().into_iter().chain(found::answers());
    let mut types: Vec<Value> = read.map(|answer| with(answer, &more)).collect();
    types.push(found::skipped());
    json!({ "oneOf": types })
}

/// Answers to questions whose options are given, as most dialects have them.
pub(super) fn given() -> [Value; 3] {
    let distribution = || json!({"type": "object", "additionalProperties": probability()});
    [
        object(json!({"type": {"const": "noul"}, "noul": probability()})),
        object(json!({
            "type": {"const": "choice"},
            "choice": text(),
            "confidence": probability(),
            "probabilities": distribution(),
        })),
        object(json!({
            "type": {"const": "score"},
            "score": {"type": "number", "minimum": 0, "maximum": OPTIONS_MAX - 1},
            "confidence": probability(),
            "legend": {"type": "object", "additionalProperties": text()},
            "probabilities": distribution(),
        })),
    ]
}

fn reading() -> Value {
    let reading = object(json!({
        "entropy": {"type": "number", "minimum": 0},
        "orders": count(),
        "order_consistency": probability(),
        "reads": count(),
    }));
    with(reading, &json!({"label_mass": probability(), "argmax_is_label": {"type": "boolean"}}))
}
