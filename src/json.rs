//! Strict JSON: a value that keeps key order and number spelling.
//!
//! Requests are decoded from this type and not from `serde_json::Value`, because a duplicate key, a
//! lone surrogate or a nesting of ten thousand must be an error that names its place, and because a
//! number in a state must reach the model as it was spelt.

/// A JSON value as it was sent.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, in its original spelling.
    Number(String),
    /// A string, unescaped.
    String(String),
    /// An array.
    Array(Vec<Json>),
    /// An object in its original key order; keys are distinct.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// The value's JSON type, in words for error messages.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// The member `key` of an object; `None` for other types and absent keys.
    pub fn get(&self, key: &str) -> Option<&Json> {
        match self {
            Self::Object(members) => members.iter().find(|(name, _)| name == key).map(|(_, v)| v),
            _ => None,
        }
    }
}
