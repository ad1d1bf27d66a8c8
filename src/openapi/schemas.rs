//! All named schemas of the document, in JSON Schema 2020-12.

use serde_json::{Map, Value, json};

use super::{
    Served, batch, decisio, fields, gmlx, health, letters, models, openai, prewarm, selfserve,
    systemone, tasks, usage, vllm,
};

/// Schemas with their names.
pub(super) type Named = Vec<(&'static str, Value)>;

pub(super) fn all(served: &Served) -> Map<String, Value> {
    let own = vec![
        ("Lane", json!({"type": "string", "enum": ["urgent", "normal", "batch", "idle"]})),
        ("Probability", json!({"type": "number", "minimum": 0, "maximum": 1})),
        ("State", json!({"description": "What the questions are about", "type": fields::NOT_NULL})),
    ];
    let named: Vec<Named> = vec![
        own,
        systemone::schemas(served),
        decisio::schemas(served),
        selfserve::schemas(served),
        vllm::schemas(served),
        gmlx::schemas(served),
        openai::schemas(served),
        letters::schemas(served),
        prewarm::schemas(served),
        health::schemas(),
        models::schemas(),
        usage::schemas(),
    ];
    let mut all: Map<String, Value> =
        named.into_iter().flatten().map(|(name, schema)| (name.to_owned(), schema)).collect();
    all.extend(batch::schemas(&all));
    all.extend(tasks::schemas());
    all
}
