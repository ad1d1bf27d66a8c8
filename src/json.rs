//! Strict JSON: a value that keeps key order and number spelling.
//!
//! Requests are decoded from this type and not from `serde_json::Value`, because a duplicate key, a
//! lone surrogate or a nesting of ten thousand must be an error that names its place, and because a
//! number in a state must reach the model as it was spelt.

mod parse;
mod write;

pub(crate) use write::cut_after;

use crate::error::Problem;

/// Most containers inside each other, the outermost included; the default of [`Limits::depth_max`].
pub const DEPTH_MAX: usize = 64;

/// Most values of one text, the default of [`Limits::values_max`]. A value costs up to 100 bytes of
/// memory for 2 bytes of text, and a million of them is beyond any context.
pub const VALUES_MAX: usize = 1_000_000;

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

/// How much of a text [`Json::parse`] accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most containers inside each other.
    pub depth_max: usize,
    /// Most values, containers included.
    pub values_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { depth_max: DEPTH_MAX, values_max: VALUES_MAX }
    }
}

impl Json {
    /// Parses one JSON text (RFC 8259), in time linear in its length.
    ///
    /// # Errors
    /// The first fault found, with its path where one is known. Codes: `json_invalid`, `json_depth`,
    /// `json_size`, `duplicate_key`, `lone_surrogate`. Messages give byte offsets and never repeat
    /// bytes that are not UTF-8.
    pub fn parse(text: &[u8], limits: Limits) -> Result<Self, Problem> {
        parse::parse(text, limits)
    }

    /// The value as JSON without spaces; text beyond ASCII is kept as it is.
    pub fn compact(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write::write(self, write::Spacing::None, &mut text);
        text
    }

    /// The value as JSON with `", "` and `": "`; text beyond ASCII is kept as it is.
    pub fn spaced(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = write::write(self, write::Spacing::AfterSeparators, &mut text);
        text
    }

    /// The value as compact JSON, cut after `chars_max` characters (then followed by `...`): for
    /// error messages, which must not grow with what was sent.
    pub fn excerpt(&self, chars_max: usize) -> String {
        write::excerpt(self, chars_max)
    }

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

    /// Bytes of memory that the value takes beside its own size.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Null | Self::Bool(_) => 0,
            Self::Number(text) | Self::String(text) => text.capacity(),
            Self::Array(items) => {
                let own = items.capacity() * size_of::<Self>();
                own + items.iter().map(Self::heap_bytes).sum::<usize>()
            }
            Self::Object(members) => {
                let own = members.capacity() * size_of::<(String, Self)>();
                let each = |(name, value): &(String, Self)| name.capacity() + value.heap_bytes();
                own + members.iter().map(each).sum::<usize>()
            }
        }
    }

    /// The spelling of a number.
    pub fn as_number(&self) -> Option<&str> {
        if let Self::Number(spelling) = self { Some(spelling) } else { None }
    }

    /// The text of a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    /// The member `key` of an object; `None` for other types and absent keys.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let Self::Object(members) = self else { return None };
        members.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }
}
