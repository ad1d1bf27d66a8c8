//! Values as gmlx's messages repeat them: written as Python writes them.

use std::fmt::Write as _;

use crate::dialect::{ECHO_CHARS_MAX, echo};
use crate::json::Json;

/// Most texts of a list that a message repeats.
const LIST_MAX: usize = 16;

/// A text between quotes, cut where it is long.
pub(super) fn text(text: &str) -> String {
    let cut = echo(text);
    let quote = if cut.contains('\'') && !cut.contains('"') { '"' } else { '\'' };
    let mut written = String::from(quote);
    for character in cut.chars() {
        match character {
            '\n' => written.push_str("\\n"),
            '\r' => written.push_str("\\r"),
            '\t' => written.push_str("\\t"),
            '\\' => written.push_str("\\\\"),
            _ if character == quote => written.extend(['\\', quote]),
            _ if character.is_control() => {
                // Writing to a string cannot fail.
                let _ = write!(written, "\\x{:02x}", u32::from(character));
            }
            _ => written.push(character),
        }
    }
    written.push(quote);
    written
}

/// A list of texts, the first few of a long one.
pub(super) fn list(texts: &[String]) -> String {
    let shown = texts.iter().take(LIST_MAX).map(|name| text(name));
    let more = (texts.len() > LIST_MAX).then(|| "...".to_owned());
    format!("[{}]", shown.chain(more).collect::<Vec<_>>().join(", "))
}

/// Any value; objects and lists as JSON, cut where they are long.
pub(super) fn value(value: &Json) -> String {
    match value {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        Json::String(string) => text(string),
        Json::Number(_) | Json::Array(_) | Json::Object(_) => value.excerpt(ECHO_CHARS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted_as_python_quotes_them() {
        // As Python 3.13's repr() gave them.
        for (given, expected) in [
            ("", "''"),
            ("a\nb\t\\", r"'a\nb\t\\'"),
            ("it's", "\"it's\""),
            ("it's \"so\"", r#"'it\'s "so"'"#),
            ("\u{7f}é", r"'\x7fé'"),
        ] {
            assert_eq!(text(given), expected);
        }
        assert_eq!(text(&"x".repeat(1_000)).len(), ECHO_CHARS_MAX + 5);
    }

    #[test]
    fn lists_and_values_are_bounded() {
        assert_eq!(list(&["yes".to_owned(), "no".to_owned()]), "['yes', 'no']");
        assert!(list(&vec!["a".to_owned(); 300]).ends_with("'a', ...]"));
        assert_eq!(value(&Json::Null), "None");
        assert_eq!(value(&Json::Bool(true)), "True");
        assert_eq!(value(&Json::Number("3.0".to_owned())), "3.0");
        assert_eq!(value(&Json::Array(vec![Json::Null; 900])).chars().count(), ECHO_CHARS_MAX + 3);
    }
}
