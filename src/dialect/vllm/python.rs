//! JSON values as Python writes them: in prompts, legends and error messages of servers in Python.
//!
//! Facts: the `str` and `repr` of Python 3 for what its `json` module makes of a text.

use std::fmt::{self, Write};

use crate::json::{Json, cut_after};

/// Most characters of a value that an error repeats.
const ECHO_CHARS_MAX: usize = 200;

/// A value as `str()` gives it: a string as it is, anything else as [`repr`].
pub(in crate::dialect) fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
            repr(value)
        }
    }
}

/// A value as `repr()` gives it.
pub(in crate::dialect) fn repr(value: &Json) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_repr(&mut out, value);
    out
}

/// The same, cut after [`ECHO_CHARS_MAX`] characters, whatever the value's size.
pub(in crate::dialect) fn excerpt(value: &Json) -> String {
    cut_after(ECHO_CHARS_MAX, |out| write_repr(out, value))
}

/// A string as `repr()` gives it.
pub(in crate::dialect) fn quoted(text: &str) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = write_quoted(&mut out, text);
    out
}

/// The depth of `value` is bounded by the parser that made it.
fn write_repr(out: &mut impl Write, value: &Json) -> fmt::Result {
    match value {
        Json::Null => out.write_str("None"),
        Json::Bool(true) => out.write_str("True"),
        Json::Bool(false) => out.write_str("False"),
        Json::Number(spelling) => write_number(out, spelling),
        Json::String(text) => write_quoted(out, text),
        Json::Array(items) => {
            out.write_char('[')?;
            for (index, item) in items.iter().enumerate() {
                out.write_str(if index == 0 { "" } else { ", " })?;
                write_repr(out, item)?;
            }
            out.write_char(']')
        }
        Json::Object(members) => {
            out.write_char('{')?;
            for (index, (key, member)) in members.iter().enumerate() {
                out.write_str(if index == 0 { "" } else { ", " })?;
                write_quoted(out, key)?;
                out.write_str(": ")?;
                write_repr(out, member)?;
            }
            out.write_char('}')
        }
    }
}

/// An integer keeps its digits; anything else is the shortest text of its `f64`, in scientific form
/// below 1e-4 and from 1e16.
fn write_number(out: &mut impl Write, spelling: &str) -> fmt::Result {
    if !spelling.contains(['.', 'e', 'E']) {
        return out.write_str(if spelling == "-0" { "0" } else { spelling });
    }
    let Ok(number) = spelling.parse::<f64>() else { return out.write_str(spelling) };
    if number.is_infinite() {
        return out.write_str(if number > 0.0 { "inf" } else { "-inf" });
    }
    let shortest = format!("{number:e}");
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        return write!(out, "{number:?}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    write!(out, "{digits}e{sign}{:02}", exponent.abs())
}

/// In single quotes, or in double ones where only that saves an escape.
fn write_quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.write_char(quote)?;
    for character in text.chars() {
        match character {
            '\\' => out.write_str("\\\\")?,
            '\n' => out.write_str("\\n")?,
            '\r' => out.write_str("\\r")?,
            '\t' => out.write_str("\\t")?,
            ' ' => out.write_char(' ')?,
            own if own == quote => write!(out, "\\{own}")?,
            hidden if hidden.is_control() || hidden.is_whitespace() => write_code(out, hidden)?,
            plain => out.write_char(plain)?,
        }
    }
    out.write_char(quote)
}

fn write_code(out: &mut impl Write, character: char) -> fmt::Result {
    match u32::from(character) {
        code @ ..=0xff => write!(out, "\\x{code:02x}"),
        code @ 0x100..=0xffff => write!(out, "\\u{code:04x}"),
        code => write!(out, "\\U{code:08x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Limits;

    fn read(json: &str) -> Json {
        Json::parse(json.as_bytes(), Limits::default()).unwrap()
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        for (json, expected) in [
            (r#""it's""#, "it's"),
            (r#"{"a":true,"b":[null,false,1]}"#, "{'a': True, 'b': [None, False, 1]}"),
            (
                r#"["é","it's","\"","'\"","a\\b\n\u0000\u2028"]"#,
                r#"['é', "it's", '"', '\'"', 'a\\b\n\x00\u2028']"#,
            ),
            ("1e2", "100.0"),
            ("1E16", "1e+16"),
            ("1.0", "1.0"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1.25e-10", "1.25e-10"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1e999", "inf"),
            ("12345678901234567890", "12345678901234567890"),
        ] {
            assert_eq!(text(&read(json)), expected, "{json}");
        }
    }

    #[test]
    fn an_excerpt_is_cut_however_large_the_value_is() {
        assert_eq!(excerpt(&read("[1, \"x\"]")), "[1, 'x']");
        let long = Json::Array(vec![Json::String("é".repeat(50)); 1_000]);
        let cut = excerpt(&long);
        assert_eq!(cut.chars().count(), ECHO_CHARS_MAX + 3);
        assert!(cut.starts_with("['éé") && cut.ends_with("é..."), "{cut}");
    }
}
