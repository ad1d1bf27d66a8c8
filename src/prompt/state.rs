//! JSON values as text for a prompt: a state, and the instructions and descriptions of questions.
//!
//! A string is shown as it is. Anything else is shown as JSON with the keys in the order and the
//! numbers in the spelling in which they were sent, and without escapes that JSON does not need:
//! the model should see what the caller wrote.

use std::borrow::Cow;
use std::fmt::{self, Write};

use crate::json::Json;

/// How a state that is no string is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateStyle {
    /// As JSON with `", "` and `": "`.
    Json,
    /// An object as a line `key: value` for each member whose key does not begin with `_`, in the
    /// order they were sent, strings as they are; all else as compact JSON.
    Lines,
}

/// What stands between the members and after the keys of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// `{"a":1,"b":2}`
    Compact,
    /// `{"a": 1, "b": 2}`
    Spaced,
}

impl Spacing {
    fn comma(self) -> &'static str {
        match self {
            Self::Compact => ",",
            Self::Spaced => ", ",
        }
    }

    fn colon(self) -> &'static str {
        match self {
            Self::Compact => ":",
            Self::Spaced => ": ",
        }
    }
}

/// A state as text: a string as it is, else as the style says.
pub fn state_text(state: &Json, style: StateStyle) -> Cow<'_, str> {
    match (style, state) {
        (StateStyle::Json, _) => text(state, Spacing::Spaced),
        (StateStyle::Lines, Json::Object(members)) => Cow::Owned(lines(members)),
        (StateStyle::Lines, _) => compact_text(state),
    }
}

fn lines(members: &[(String, Json)]) -> String {
    let shown = members.iter().filter(|(key, _)| !key.starts_with('_'));
    let lines: Vec<String> =
        shown.map(|(key, value)| [key, ": ", &*compact_text(value)].concat()).collect();
    lines.join("\n")
}

/// Instructions, a description or a level as text: a string as it is, else compact JSON.
pub fn compact_text(value: &Json) -> Cow<'_, str> {
    text(value, Spacing::Compact)
}

/// The texts by which answers name a score's levels: a string as it is, else compact JSON.
pub fn legend(levels: &[Json]) -> Vec<String> {
    levels.iter().map(|level| compact_text(level).into_owned()).collect()
}

/// Length in bytes of a state's text as [`StateStyle::Json`], without building it. No style's text is
/// longer.
pub fn state_bytes(state: &Json) -> usize {
    match state {
        Json::String(text) => text.len(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            let mut counter = ByteCount(0);
            // Counting cannot fail.
            let _ = write_json(&mut counter, state, Spacing::Spaced);
            counter.0
        }
    }
}

/// Writes `text` as a JSON string: quoted, with the escapes that JSON needs and no others.
///
/// # Errors
/// Only what `out` gives; a `String` gives none.
pub fn write_quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            '\u{8}' => out.write_str("\\b")?,
            '\u{c}' => out.write_str("\\f")?,
            control if control < ' ' => write!(out, "\\u{:04x}", u32::from(control))?,
            plain => out.write_char(plain)?,
        }
    }
    out.write_char('"')
}

fn text(value: &Json, spacing: Spacing) -> Cow<'_, str> {
    match value {
        Json::String(text) => Cow::Borrowed(text),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            let mut out = String::new();
            // Writing to a String cannot fail.
            let _ = write_json(&mut out, value, spacing);
            Cow::Owned(out)
        }
    }
}

/// The depth of `value` is bounded by the parser that made it.
fn write_json(out: &mut impl Write, value: &Json, spacing: Spacing) -> fmt::Result {
    match value {
        Json::Null => out.write_str("null"),
        Json::Bool(true) => out.write_str("true"),
        Json::Bool(false) => out.write_str("false"),
        Json::Number(spelling) => out.write_str(spelling),
        Json::String(text) => write_quoted(out, text),
        Json::Array(elements) => write_array(out, elements, spacing),
        Json::Object(members) => write_object(out, members, spacing),
    }
}

fn write_array(out: &mut impl Write, elements: &[Json], spacing: Spacing) -> fmt::Result {
    out.write_char('[')?;
    for (index, element) in elements.iter().enumerate() {
        out.write_str(if index == 0 { "" } else { spacing.comma() })?;
        write_json(out, element, spacing)?;
    }
    out.write_char(']')
}

fn write_object(out: &mut impl Write, members: &[(String, Json)], spacing: Spacing) -> fmt::Result {
    out.write_char('{')?;
    for (index, (key, value)) in members.iter().enumerate() {
        out.write_str(if index == 0 { "" } else { spacing.comma() })?;
        write_quoted(out, key)?;
        out.write_str(spacing.colon())?;
        write_json(out, value, spacing)?;
    }
    out.write_char('}')
}

/// Counts the bytes written to it.
struct ByteCount(usize);

impl Write for ByteCount {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 += text.len();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Json {
        Json::String(text.to_owned())
    }

    fn ticket() -> Json {
        Json::Object(vec![
            ("z".to_owned(), Json::Number("1.50e+3".to_owned())),
            ("a".to_owned(), Json::Array(vec![Json::Null, Json::Bool(true), Json::Bool(false)])),
            ("é\"\\".to_owned(), string("zeile\n\u{1}ü😀/")),
            ("leer".to_owned(), Json::Object(vec![])),
        ])
    }

    #[test]
    fn a_string_is_shown_as_it_is() {
        let text = " \"quoted\" \n\u{0}end ";
        assert_eq!(state_text(&string(text), StateStyle::Json), text);
        assert_eq!(compact_text(&string("")), "");
    }

    #[test]
    fn other_states_keep_key_order_number_spelling_and_letters() {
        let expected = "{\"z\": 1.50e+3, \"a\": [null, true, false], \
                        \"é\\\"\\\\\": \"zeile\\n\\u0001ü😀/\", \"leer\": {}}";
        assert_eq!(state_text(&ticket(), StateStyle::Json), expected);
    }

    #[test]
    fn descriptions_are_compact() {
        let expected = "{\"z\":1.50e+3,\"a\":[null,true,false],\
                        \"é\\\"\\\\\":\"zeile\\n\\u0001ü😀/\",\"leer\":{}}";
        assert_eq!(compact_text(&ticket()), expected);
    }

    #[test]
    fn the_length_is_that_of_the_text() {
        for state in [ticket(), string("é\n"), Json::Null, Json::Array(vec![ticket(), ticket()])] {
            assert_eq!(state_bytes(&state), state_text(&state, StateStyle::Json).len());
        }
    }

    #[test]
    fn an_object_can_be_lines_without_its_hidden_members() {
        let state = Json::Object(vec![
            ("b".to_owned(), Json::Object(vec![("_c".to_owned(), ticket())])),
            ("_secret".to_owned(), string("x")),
            ("n".to_owned(), Json::Null),
            ("text".to_owned(), string("two\nlines")),
        ]);
        let nested = compact_text(&ticket()).into_owned();
        let expected = ["b: {\"_c\":", &nested, "}\nn: null\ntext: two\nlines"].concat();
        assert_eq!(state_text(&state, StateStyle::Lines), expected);
        assert_eq!(state_text(&Json::Object(vec![]), StateStyle::Lines), "");
        let array = Json::Array(vec![Json::Bool(true), string("é")]);
        assert_eq!(state_text(&array, StateStyle::Lines), "[true,\"é\"]");
        assert_eq!(state_text(&string(" s "), StateStyle::Lines), " s ");
        for state in [state, array, ticket()] {
            assert!(state_text(&state, StateStyle::Lines).len() <= state_bytes(&state));
        }
    }

    #[test]
    fn case_39_nul_is_kept() {
        assert_eq!(state_text(&string("yes\u{0} no"), StateStyle::Json).len(), 7);
        assert_eq!(
            state_text(&Json::Array(vec![string("\u{0}")]), StateStyle::Json),
            "[\"\\u0000\"]"
        );
    }

    #[test]
    fn the_legend_is_what_was_sent() {
        let levels = [string(" a\n"), Json::Object(vec![("k".to_owned(), Json::Null)])];
        assert_eq!(legend(&levels), [" a\n", "{\"k\":null}"]);
    }
}
