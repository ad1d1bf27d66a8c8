//! The writers of JSON: compact, spaced as Python's default, and cut short for messages.

use std::fmt::{self, Write};

use super::Json;

/// Whether a space follows each comma and colon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spacing {
    None,
    AfterSeparators,
}

/// Writes `value`; fails only where `out` does.
pub(super) fn write(value: &Json, spacing: Spacing, out: &mut impl Write) -> fmt::Result {
    match value {
        Json::Null => out.write_str("null"),
        Json::Bool(true) => out.write_str("true"),
        Json::Bool(false) => out.write_str("false"),
        Json::Number(spelling) => out.write_str(spelling),
        Json::String(text) => write_string(text, out),
        Json::Array(items) => write_array(items, spacing, out),
        Json::Object(members) => write_object(members, spacing, out),
    }
}

fn write_array(items: &[Json], spacing: Spacing, out: &mut impl Write) -> fmt::Result {
    out.write_char('[')?;
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            separate(',', spacing, out)?;
        }
        write(item, spacing, out)?;
    }
    out.write_char(']')
}

fn write_object(members: &[(String, Json)], spacing: Spacing, out: &mut impl Write) -> fmt::Result {
    out.write_char('{')?;
    for (index, (key, value)) in members.iter().enumerate() {
        if index > 0 {
            separate(',', spacing, out)?;
        }
        write_string(key, out)?;
        separate(':', spacing, out)?;
        write(value, spacing, out)?;
    }
    out.write_char('}')
}

fn separate(mark: char, spacing: Spacing, out: &mut impl Write) -> fmt::Result {
    out.write_char(mark)?;
    match spacing {
        Spacing::None => Ok(()),
        Spacing::AfterSeparators => out.write_char(' '),
    }
}

fn write_string(text: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|b| b == b'"' || b == b'\\' || b < 0x20) {
        out.write_str(&rest[..at])?;
        match rest.as_bytes()[at] {
            b'"' => out.write_str("\\\"")?,
            b'\\' => out.write_str("\\\\")?,
            b'\n' => out.write_str("\\n")?,
            b'\r' => out.write_str("\\r")?,
            b'\t' => out.write_str("\\t")?,
            8 => out.write_str("\\b")?,
            12 => out.write_str("\\f")?,
            control => write!(out, "\\u{control:04x}")?,
        }
        rest = &rest[at + 1..];
    }
    out.write_str(rest)?;
    out.write_char('"')
}

/// See [`Json::excerpt`].
pub(super) fn excerpt(value: &Json, chars_max: usize) -> String {
    cut_after(chars_max, |out| write(value, Spacing::None, out))
}

/// What `write` writes, up to `chars_max` characters, with `...` where there would be more; nothing is
/// written beyond.
pub(crate) fn cut_after(chars_max: usize, write: impl FnOnce(&mut Cut) -> fmt::Result) -> String {
    let mut cut = Cut { text: String::new(), chars_left: chars_max };
    if write(&mut cut).is_err() {
        cut.text.push_str("...");
    }
    cut.text
}

/// A sink that refuses more than a number of characters, which ends the writing early.
pub(crate) struct Cut {
    text: String,
    chars_left: usize,
}

impl Write for Cut {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            self.chars_left = self.chars_left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Json, Limits};

    fn parse(text: &str) -> Json {
        Json::parse(text.as_bytes(), Limits::default()).unwrap()
    }

    #[test]
    fn both_spacings_keep_order_spelling_and_text() {
        let value = parse(r#" {"b":[1.50,-0,1E+2 , null],"a":{"é\u0000\"":"\u001f\n😀"},"c":[]} "#);
        assert_eq!(
            value.compact(),
            r#"{"b":[1.50,-0,1E+2,null],"a":{"é\u0000\"":"\u001f\n😀"},"c":[]}"#
        );
        assert_eq!(
            value.spaced(),
            r#"{"b": [1.50, -0, 1E+2, null], "a": {"é\u0000\"": "\u001f\n😀"}, "c": []}"#
        );
    }

    #[test]
    fn an_excerpt_is_cut_by_characters() {
        assert_eq!(parse(r#""ééééé""#).excerpt(4), "\"ééé...");
        assert_eq!(parse("[1,2]").excerpt(5), "[1,2]");
    }
}
