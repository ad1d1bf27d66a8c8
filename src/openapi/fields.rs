//! Pieces that the schemas of several dialects are made of, in JSON Schema 2020-12.

use serde_json::{Map, Value, json};

use super::Served;

/// Every JSON type but null.
pub(super) const NOT_NULL: [&str; 6] =
    ["string", "object", "array", "number", "integer", "boolean"];

/// What Rust, and so every check of the server, takes for white space (Unicode's `White_Space`).
const SPACE: &str =
    "\t-\r \u{85}\u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}";

/// The pattern of a text that shows something.
pub(super) fn visible() -> String {
    format!("[^{SPACE}]")
}

/// The pattern of a text that shows something, and has none of `banned` but around it.
pub(super) fn visible_without(banned: &str) -> String {
    format!("^[{SPACE}]*[^{SPACE}{banned}]([^{banned}]*[^{SPACE}{banned}])?[{SPACE}]*$")
}

pub(super) fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

pub(super) fn nullable(schema: &Value) -> Value {
    json!({"anyOf": [{"type": "null"}, schema]})
}

pub(super) fn text() -> Value {
    json!({"type": "string"})
}

pub(super) fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

pub(super) fn milliseconds() -> Value {
    json!({"type": "number", "minimum": 0})
}

pub(super) fn probability() -> Value {
    reference("Probability")
}

/// What Python takes for false.
pub(super) fn falsy() -> Value {
    json!([null, false, 0, "", [], {}])
}

/// An object that has all of these members, and may have others.
pub(super) fn object(members: Value) -> Value {
    let Value::Object(members) = members else { return members };
    let required: Vec<&String> = members.keys().collect();
    json!({"type": "object", "required": required, "properties": members})
}

/// `schema` with more members, none of which must be there.
pub(super) fn with(mut schema: Value, more: &Value) -> Value {
    let properties = schema["properties"].as_object_mut();
    if let (Some(properties), Some(more)) = (properties, more.as_object()) {
        properties.extend(more.clone());
    }
    schema
}

/// The members of an object.
pub(super) fn members(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

/// The list `images` of a request. Where the model reads text only, there can be none in it.
pub(super) fn images(served: &Served, element: &Value) -> Value {
    let mut images = json!({
        "description": "Images beside the state, for a model that sees them",
        "type": ["array", "null"],
        "maxItems": served.images_max,
    });
    if served.images_max > 0 {
        images["items"] = element.clone();
    }
    images
}

/// A limit of time in a body.
pub(super) fn timeout_ms(served: &Served) -> Value {
    let most = u64::try_from(served.limits.timeout_max.as_millis()).unwrap_or(u64::MAX);
    json!({
        "description": "Milliseconds from the first byte to the answer",
        "type": ["integer", "null"], "minimum": 1, "maximum": most,
    })
}

/// A lane in a body.
pub(super) fn lane() -> Value {
    nullable(&reference("Lane"))
}

/// What is read where it is sound, and ignored where it is not.
pub(super) fn lenient(description: &str) -> Value {
    json!({"description": format!("{description}; ignored where it is not sound")})
}

/// What is accepted and changes nothing.
pub(super) fn ignored() -> Value {
    json!({"description": "Ignored"})
}
