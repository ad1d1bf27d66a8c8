//! Schemas of questions whose answer is found in the state, and of answers that come of them.

use serde_json::{Value, json};

use super::schemas::reference;

/// A number or excerpt, as it is asked.
pub(super) fn questions() -> Vec<Value> {
    let of = |kind: &str, criteria: &Value| {
        let mut properties = super::staged::of_question();
        properties.insert("type".to_owned(), json!({"const": kind}));
        properties.insert("criteria".to_owned(), criteria.clone());
        json!({"type": "object", "required": ["type"], "properties": properties})
    };
    let limit = |description: &str| json!({"description": description, "type": ["number", "null"]});
    let number = json!({
        "description": "min must not be above max",
        "type": ["object", "null"],
        "properties": {
            "min": limit("The least"),
            "max": limit("The greatest"),
            "precision": {
                "description": "The step that values are rounded to; 0 for none",
                "type": ["number", "null"], "minimum": 0,
            },
        },
    });
    vec![of("number", &number), of("excerpt", &json!({"type": "null"}))]
}

/// Whether citations are wanted.
pub(super) fn cite() -> Value {
    json!({
        "description": "Whether the passages that the answer rests on are wanted",
        "type": ["boolean", "null"],
    })
}

/// Answers that are found, or not given because of another.
pub(super) fn answers() -> Vec<Value> {
    let probability = reference("Probability");
    let (reading, citations) = (reference("Reading"), citations());
    let number = json!({
        "type": "object",
        "required": ["type", "value", "probability", "not_stated", "confidence", "candidates"],
        "properties": {
            "type": {"const": "number"},
            "value": {"type": ["number", "null"]},
            "probability": probability,
            "not_stated": probability,
            "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
            "candidates": {"type": "array", "items": {
                "type": "object",
                "required": ["value", "probability", "context"],
                "properties": {
                    "value": {"type": "number"},
                    "probability": probability,
                    "context": {"type": "string"},
                },
            }},
            "x_citations": citations,
            "x_diagnostics": reading,
        },
    });
    let excerpt = json!({
        "type": "object",
        "required": ["type", "text", "probability", "not_stated"],
        "properties": {
            "type": {"const": "excerpt"},
            "text": {"type": ["string", "null"]},
            "probability": probability,
            "not_stated": probability,
            "start": offset(),
            "end": offset(),
            "parts": {"type": "array", "items": passage(&[])},
            "x_citations": citations,
            "x_diagnostics": reading,
        },
    });
    let skipped = json!({
        "type": "object",
        "required": ["type", "because", "was", "wanted"],
        "properties": {
            "type": {"const": "skipped"},
            "because": {"description": "Id of the question whose answer it was", "type": "string"},
            "was": {"type": ["string", "null"]},
            "wanted": {"type": "array", "items": {"type": "string"}},
        },
    });
    vec![number, excerpt, skipped]
}

/// The passages that an answer rests on.
pub(super) fn citations() -> Value {
    json!({"type": "array", "items": passage(&["probability"])})
}

fn passage(more: &[&str]) -> Value {
    let required: Vec<&str> = ["text", "start", "end"].iter().chain(more).copied().collect();
    json!({
        "type": "object",
        "required": required,
        "properties": {
            "text": {"type": "string"},
            "start": offset(),
            "end": offset(),
            "probability": reference("Probability"),
        },
    })
}

fn offset() -> Value {
    json!({"description": "In Unicode code points of the state", "type": "integer", "minimum": 0})
}
