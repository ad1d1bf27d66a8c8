//! How a JSON report is laid out: a line a member, but lists of numbers on one line. Thousands of
//! probabilities, each on a line of its own, would hide the rest from a reader.

use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};

/// Spaces of one level.
const INDENT: &str = "  ";

/// A value as text, with a line end.
///
/// # Errors
/// Never in practice: a value can be written, and memory takes it.
pub(crate) fn text(value: &Value) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut bytes, Lines::default()))?;
    bytes.push(b'\n');
    Ok(String::from_utf8(bytes)?)
}

/// Objects over several lines, lists on one.
#[derive(Debug, Default)]
struct Lines {
    depth: usize,
    has_members: bool,
}

impl Lines {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        out.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| out.write_all(INDENT.as_bytes()))
    }
}

impl Formatter for Lines {
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth += 1;
        self.has_members = false;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.depth = self.depth.saturating_sub(1);
        if self.has_members {
            self.line(out)?;
        }
        self.has_members = true;
        out.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _out: &mut W) -> io::Result<()> {
        self.has_members = true;
        Ok(())
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        CompactFormatter.begin_array_value(out, first)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_have_lines_and_numbers_of_a_list_share_one() {
        let value = json!({"a": {}, "b": [1, [0.5, null]], "c": {"d": "x\n"}, "e": [{"f": 1}]});
        let expected = "{\n  \"a\": {},\n  \"b\": [1,[0.5,null]],\n  \"c\": {\n    \"d\": \"x\\n\"\n  },\n  \
                        \"e\": [{\n    \"f\": 1\n  }]\n}\n";
        assert_eq!(text(&value).unwrap(), expected);
    }
}
