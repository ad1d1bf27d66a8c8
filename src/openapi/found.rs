//! Schemas of questions whose answer is found in the state, and of answers that come of them.

use serde_json::{Value, json};

use super::fields::{count, object, probability, text, with};

/// A number or excerpt, as it is asked.
pub(super) fn questions() -> Vec<Value> {
    let of = |kind: &str, criteria: &Value| {
        let mut properties = super::staged::of_question();
        properties.insert("type".to_owned(), json!({"const": kind}));
        properties.insert("criteria".to_owned(), criteria.clone());
        json!({"type": "object", "required": ["type"], "properties": properties})
    };
    vec![of("number", &criteria()), of("excerpt", &json!({"type": "null"}))]
}

/// What narrows a number.
pub(super) fn criteria() -> Value {
    let limit = |description: &str| json!({"description": description, "type": ["number", "null"]});
    json!({
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
    })
}

/// Whether citations are wanted.
pub(super) fn cite() -> Value {
    json!({
        "description": "Whether the passages that the answer rests on are wanted",
        "type": ["boolean", "null"],
    })
}

/// Answers that are found.
pub(super) fn answers() -> [Value; 2] {
    [number(), with(excerpt(), &json!({"not_stated": probability()}))]
}

/// A number, with those that it was chosen from.
pub(super) fn number() -> Value {
    let candidate = object(
        json!({"value": {"type": "number"}, "probability": probability(), "context": text()}),
    );
    object(json!({
        "type": {"const": "number"},
        "value": {"type": ["number", "null"]},
        "probability": probability(),
        "not_stated": probability(),
        "confidence": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "candidates": {"type": "array", "items": candidate},
    }))
}

/// A passage, or several.
pub(super) fn excerpt() -> Value {
    let excerpt = object(json!({
        "type": {"const": "excerpt"},
        "text": {"type": ["string", "null"]},
        "probability": probability(),
    }));
    with(
        excerpt,
        &json!({
            "start": offset(),
            "end": offset(),
            "parts": {"type": "array", "items": object(passage())},
        }),
    )
}

/// What is not asked because of another answer.
pub(super) fn skipped() -> Value {
    object(json!({
        "type": {"const": "skipped"},
        "because": {"description": "Id of the question whose answer it was", "type": "string"},
        "was": {"type": ["string", "null"]},
        "wanted": {"type": "array", "items": text()},
    }))
}

/// The passages that an answer rests on.
pub(super) fn citations() -> Value {
    let mut citation = passage();
    citation["probability"] = probability();
    json!({"type": "array", "items": object(citation)})
}

fn passage() -> Value {
    json!({"text": text(), "start": offset(), "end": offset()})
}

fn offset() -> Value {
    let mut offset = count();
    offset["description"] = json!("In Unicode code points of the state");
    offset
}
