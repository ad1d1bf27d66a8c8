//! What is served, as self's server tells it: `/v1/model`, `/v1/models` and `/health`.

use serde_json::{Map, Value as Wire, json};

use crate::question::OPTIONS_MAX;
use crate::service::{Health, ModelEntry};

/// The body of `GET /v1/model`.
pub(in crate::dialect) fn model(entry: &ModelEntry) -> Wire {
    let mut body = json!({
        "id": entry.name,
        "object": "model",
        "type": "decision",
        "quant": entry.precision.as_deref().unwrap_or("none"),
        "capabilities": capabilities(entry.is_readable),
    });
    let info = info(entry);
    if !info.is_empty() {
        body["info"] = Wire::Object(info);
    }
    body
}

/// The body of `GET /v1/models`.
pub(in crate::dialect) fn models(entries: &[ModelEntry]) -> String {
    json!({"object": "list", "data": entries.iter().map(model).collect::<Vec<_>>()}).to_string()
}

/// What `/health` has beside docket's own fields.
pub(in crate::dialect) fn health(health: &Health, model: &str) -> Wire {
    let runner = match (&health.dead, health.ready) {
        (Some(_), _) => "crashed",
        (None, true) => "ready",
        (None, false) => "stopping",
    };
    let status = if runner == "ready" { "ok" } else { "unavailable" };
    json!({"status": status, "model": model, "runner": runner})
}

/// Whatever can be asked is read by letters, so every model that any question can be read from answers
/// all of it.
fn capabilities(is_readable: bool) -> Wire {
    let output = ["choice", "score", "noul", "number", "excerpt", "cite"];
    let mut output: Map<String, Wire> =
        output.iter().map(|name| ((*name).to_owned(), is_readable.into())).collect();
    output.insert("max_options".to_owned(), if is_readable { OPTIONS_MAX } else { 0 }.into());
    json!({
        "input": {"text": is_readable, "vision": false, "multi_image": false, "max_images": 0},
        "output": output,
    })
}

fn info(entry: &ModelEntry) -> Map<String, Wire> {
    let mut info = Map::new();
    if !entry.description.is_empty() {
        info.insert("description".to_owned(), json!(entry.description));
    }
    if let Some(tokens) = entry.context_tokens {
        info.insert("context_length".to_owned(), json!(tokens));
    }
    info
}
