//! Batches and estimates: their routes and schemas.

use serde_json::{Map, Value, json};

use super::schemas::{decision, reference};
use super::{headers, post, response};
use crate::http::BATCH_STATES_MAX;

/// The routes.
pub(super) fn paths() -> Map<String, Value> {
    let mut batch = response("A result for each state", "BatchDecided", &headers([]));
    batch["content"]["application/x-ndjson"] = json!({
        "schema": {"description": "A result a line, as they come", "type": "string"},
    });
    let estimate = response("What it would cost", "Estimate", &headers([]));
    let mut paths = Map::new();
    paths.insert(
        "/v1/systemone/batch".to_owned(),
        json!({
            "post": post("batch", "Answers questions about many states", "Batch", &batch),
        }),
    );
    paths.insert(
        "/v1/estimate".to_owned(),
        json!({
            "post": post("estimate", "Says what a decision would cost", "Decision", &estimate),
        }),
    );
    paths
}

/// The schemas.
pub(super) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    schemas.insert("Batch".to_owned(), batch());
    schemas.insert("BatchDecided".to_owned(), decided());
    schemas.insert("Estimate".to_owned(), estimate());
    schemas
}

fn batch() -> Value {
    let mut batch = decision();
    batch["required"] = json!(["states", "questions"]);
    if let Some(properties) = batch["properties"].as_object_mut() {
        properties.remove("state");
    }
    batch["properties"]["states"] = json!({
        "type": "array", "minItems": 1, "maxItems": BATCH_STATES_MAX, "items": reference("State"),
    });
    batch["not"] = json!({"required": ["state"]});
    batch
}

fn decided() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    json!({
        "type": "object",
        "required": ["model", "succeeded", "failed", "results", "usage"],
        "properties": {
            "model": {"type": "string"},
            "succeeded": count,
            "failed": count,
            "results": {"type": "array", "items": {
                "type": "object",
                "required": ["index", "status", "response"],
                "properties": {
                    "index": count,
                    "status": {"type": "integer", "minimum": 200, "maximum": 599},
                    "reason": {"type": "string"},
                    "retry_after_ms": count,
                    "response": {"type": "object"},
                },
            }},
            "usage": {"type": "object", "required": ["input_tokens", "output_tokens"]},
        },
    })
}

fn estimate() -> Value {
    let count = json!({"type": "integer", "minimum": 0});
    let ms = json!({"type": ["number", "null"], "minimum": 0});
    json!({
        "type": "object",
        "required": ["model", "fits", "admitted", "reads", "input_tokens", "computed_tokens", "wait_ms"],
        "properties": {
            "model": {"type": "string"},
            "fits": {"type": "boolean"},
            "admitted": {"type": "boolean"},
            "status": count,
            "reason": {"type": "string"},
            "retry_after_ms": {"type": ["integer", "null"], "minimum": 0},
            "reads": count,
            "input_tokens": count,
            "prefix_tokens": count,
            "cached_tokens": count,
            "computed_tokens": count,
            "longest_prompt_tokens": count,
            "context_tokens": count,
            "wait_ms": ms,
            "engine_ms": ms,
        },
    })
}
