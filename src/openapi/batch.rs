//! Batches and estimates: their routes and schemas.

use serde_json::{Map, Value, json};

use super::fields::{count, object, reference, text};
use super::operation::{Operation, Place};
use super::title;
use crate::dialect::Dialect;
use crate::http::BATCH_STATES_MAX;

/// The route of batches.
pub(super) fn batch(place: Place<'_>) -> Value {
    let operation = Operation::new(place, "batch", "Answers questions about many states");
    operation.deciding().posting(&place.schema("Batch")).answering("batched").value()
}

/// The route of estimates.
pub(super) fn estimate(place: Place<'_>) -> Value {
    let operation = Operation::new(place, "estimate", "Says what a decision would cost");
    operation.decision().posting(&place.schema("Decision")).answering("estimated").value()
}

/// The schemas; those of batches come of the decisions of `all`.
pub(super) fn schemas(all: &Map<String, Value>) -> Map<String, Value> {
    let mut schemas = Map::new();
    for title in Dialect::ALL.map(title).into_iter().filter(|title| *title != "Openai") {
        schemas.insert(format!("{title}Batch"), batch_of(&all[&format!("{title}Decision")]));
        schemas.insert(format!("{title}BatchDecided"), decided(title));
    }
    schemas.insert("Estimate".to_owned(), estimated());
    schemas
}

/// A decision with many states. What is wrong with one of them is its own result, so all of JSON will
/// do.
fn batch_of(decision: &Value) -> Value {
    let mut batch = decision.clone();
    if let Some(properties) = batch["properties"].as_object_mut() {
        properties.remove("state");
        properties.insert("images".to_owned(), json!({"type": "null"}));
    }
    // An unknown name is each result's own failure too.
    if batch["properties"]["model"].get("enum").is_some() {
        batch["properties"]["model"] = json!({"type": ["string", "null"]});
    }
    batch["properties"]["states"] = json!({
        "type": "array", "minItems": 1, "maxItems": BATCH_STATES_MAX, "items": {},
    });
    batch["required"] = json!(["states", "questions"]);
    if batch["additionalProperties"] != json!(false) {
        batch["not"] = json!({"required": ["state"]});
    }
    batch
}

fn decided(title: &str) -> Value {
    let (answered, refused) = (
        json!({
            "index": count(),
            "status": {"const": 200},
            "response": reference(&format!("{title}Decided")),
        }),
        json!({
            "index": count(),
            "status": {"type": "integer", "minimum": 400, "maximum": 599},
            "reason": text(),
            "response": {"type": "object"},
        }),
    );
    let mut refused = object(refused);
    refused["properties"]["retry_after_ms"] = count();
    object(json!({
        "model": text(),
        "succeeded": count(),
        "failed": count(),
        "results": {"type": "array", "items": {"oneOf": [object(answered), refused]}},
        "usage": object(json!({"input_tokens": count(), "output_tokens": {"const": 0}})),
    }))
}

fn estimated() -> Value {
    let mut estimate = object(json!({
        "model": text(),
        "fits": {"const": true},
        "admitted": {"type": "boolean"},
        "reads": count(),
        "input_tokens": count(),
        "prefix_tokens": count(),
        "cached_tokens": count(),
        "computed_tokens": count(),
        "longest_prompt_tokens": count(),
        "context_tokens": count(),
        "wait_ms": {"type": "number", "minimum": 0},
        "engine_ms": {"type": ["number", "null"], "minimum": 0},
    }));
    for (name, schema) in [
        ("status", json!({"type": "integer", "minimum": 400, "maximum": 599})),
        ("reason", text()),
        ("retry_after_ms", json!({"type": ["integer", "null"], "minimum": 0})),
    ] {
        estimate["properties"][name] = schema;
    }
    estimate
}
