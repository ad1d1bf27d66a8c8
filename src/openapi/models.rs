//! Lists of models, and self's page on the one that is served.

use serde_json::{Value, json};

use super::fields::{count, object, reference, text};
use super::operation::{Operation, Place};
use super::schemas::Named;
use super::{Served, title};
use crate::dialect::Dialect;

/// The list of a dialect.
pub(super) fn list(place: Place<'_>) -> Value {
    Operation::new(place, "models", "Lists the served models").answering("models").value()
}

/// The page on the model.
pub(super) fn model(place: Place<'_>) -> Value {
    let summary = "What is served and what it can do, in self's words";
    Operation::new(place, "model", summary).answering("model").value()
}

/// The same under the dialect's name.
pub(super) fn of_path(served: &Served) -> (Dialect, &'static str, &'static str, Value) {
    let dialect = Dialect::SelfServe;
    (dialect, "/v1/model", "get", model(Place { served, dialect, is_named: true }))
}

pub(super) fn schemas() -> Named {
    let lists = Dialect::ALL.map(|dialect| {
        let name = match title(dialect) {
            "Systemone" => "SystemoneModels",
            "Decisio" => "DecisioModels",
            "Self" => "SelfModels",
            "Vllm" => "VllmModels",
            "Gmlx" => "GmlxModels",
            _ => "OpenaiModels",
        };
        (name, schema(dialect))
    });
    lists.into_iter().chain([("Model", of_self())]).collect()
}

fn schema(dialect: Dialect) -> Value {
    match dialect {
        Dialect::Systemone | Dialect::Decisio => named(),
        Dialect::SelfServe => listed(&reference("Model")),
        Dialect::Vllm => {
            let more = json!({
                "root": text(),
                "parent": {"type": "null"},
                "max_model_len": {"type": "null"},
                "permission": {"type": "array"},
            });
            listed(&of_openai(more))
        }
        Dialect::Gmlx | Dialect::Openai => listed(&of_openai(json!({}))),
    }
}

fn named() -> Value {
    let date = json!({
        "description": "YYYY-MM-DD; empty where it is not known",
        "type": "string",
        "pattern": "^([0-9]{4}-[0-9]{2}-[0-9]{2})?$",
    });
    let item = object(json!({"name": text(), "description": text(), "release_date": date}));
    object(json!({"models": {"type": "array", "minItems": 1, "items": item}}))
}

fn listed(item: &Value) -> Value {
    let data = json!({"type": "array", "minItems": 1, "items": item});
    object(json!({"object": {"const": "list"}, "data": data}))
}

fn of_openai(more: Value) -> Value {
    let mut members = json!({
        "id": text(),
        "object": {"const": "model"},
        "created": {"type": "integer"},
        "owned_by": {"const": "docket"},
    });
    if let (Some(members), Value::Object(more)) = (members.as_object_mut(), more) {
        members.extend(more);
    }
    object(members)
}

fn of_self() -> Value {
    let flag = || json!({"type": "boolean"});
    let input = object(json!({
        "text": flag(), "vision": flag(), "multi_image": flag(), "max_images": count(),
    }));
    let output = object(json!({
        "choice": flag(), "score": flag(), "noul": flag(), "number": flag(), "excerpt": flag(),
        "cite": flag(), "max_options": count(),
    }));
    let mut model = object(json!({
        "id": text(),
        "object": {"const": "model"},
        "type": {"const": "decision"},
        "quant": text(),
        "capabilities": object(json!({"input": input, "output": output})),
    }));
    model["properties"]["info"] = json!({
        "type": "object",
        "properties": {"description": text(), "context_length": count()},
    });
    model
}
