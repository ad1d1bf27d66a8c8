//! Values of a JSON text as pieces of it, each shown with its key.
//!
//! The text is what docket itself wrote, so this looks only for where values are; what is no JSON is
//! found out on the way, and then cut as a plain text.

use std::ops::Range;

use super::leaves::{Leaf, border_gap, gap};
use super::sentences::sentences;

/// Deeper texts are cut as plain ones: each bracket that closes looks at all pieces in it.
const DEPTH_MAX: usize = 128;

/// Brackets that are open.
#[derive(Debug)]
struct Frame {
    start: usize,
    is_object: bool,
    /// The last key read in it whose value is still to come.
    key: Option<Range<usize>>,
    /// The nearest key of what is around it.
    path: Option<Range<usize>>,
    /// The first piece in it.
    first: usize,
}

#[derive(Debug)]
struct Scanner<'a> {
    text: &'a str,
    end: usize,
    at: usize,
    frames: Vec<Frame>,
    found: Vec<Leaf>,
    /// The strongest border since the last piece.
    gap: u8,
}

/// The pieces of the JSON text in `range`, which begins with a bracket; none where it is no JSON.
pub(super) fn leaves(text: &str, range: Range<usize>) -> Option<Vec<Leaf>> {
    let mut scanner = Scanner {
        text,
        at: range.start,
        end: range.end,
        frames: Vec::new(),
        found: Vec::new(),
        gap: gap::MEMBER,
    };
    while let Some(byte) = scanner.peek() {
        if scanner.frames.is_empty() && scanner.at > range.start {
            return None;
        }
        scanner.step(byte)?;
    }
    scanner.frames.is_empty().then_some(scanner.found)
}

impl Scanner<'_> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..self.end];
        let spaces = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.at += spaces;
        rest.get(spaces).copied()
    }

    fn step(&mut self, byte: u8) -> Option<()> {
        match byte {
            b'{' | b'[' if self.frames.len() < DEPTH_MAX => self.open(byte == b'{'),
            b'}' | b']' => return self.close(byte == b'}'),
            b',' | b':' => {
                self.frames.last()?;
                self.at += 1;
            }
            b'"' => return self.string(),
            _ => return self.literal(),
        }
        Some(())
    }

    fn open(&mut self, is_object: bool) {
        let around = self.frames.last_mut();
        let path = around.and_then(|frame| frame.key.take().or_else(|| frame.path.clone()));
        let (start, first) = (self.at, self.found.len());
        self.frames.push(Frame { start, is_object, key: None, path, first });
        self.at += 1;
        self.mark();
    }

    fn close(&mut self, is_object: bool) -> Option<()> {
        let frame = self.frames.pop().filter(|frame| frame.is_object == is_object)?;
        self.at += 1;
        // Members of an object are told apart by its key; those of a list need what is beside them.
        let is_of_list = self.frames.last().is_some_and(|around| !around.is_object || !is_object);
        if is_of_list {
            let scope = frame.start..self.at;
            let inner = self.found[frame.first..].iter_mut().rev();
            // Those of brackets further in have their scope, and so has all that is ahead of them.
            for leaf in inner.filter(|leaf| leaf.scope.is_none()) {
                leaf.scope = Some(scope.clone());
            }
        }
        self.mark();
        Some(())
    }

    /// Notes that a border lies here.
    fn mark(&mut self) {
        let depth = u8::try_from(self.frames.len()).unwrap_or(u8::MAX);
        let strength = gap::MEMBER.saturating_sub(depth).max(gap::MEMBER_MIN);
        self.gap = self.gap.max(strength);
    }

    /// A key or a value in quotation marks.
    fn string(&mut self) -> Option<()> {
        let start = self.at;
        let mut is_escaped = false;
        let inner = self.text.as_bytes()[start + 1..self.end].iter();
        let length = inner.clone().position(|byte| {
            let ends = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        })?;
        self.at = start + length + 2;
        let is_key = self.peek() == Some(b':');
        let frame = self.frames.last_mut()?;
        if is_key && frame.is_object {
            frame.key = Some(start + 1..start + 1 + length);
        } else {
            self.value(start..start + length + 2, start + 1..start + 1 + length);
        }
        Some(())
    }

    /// A number or a word; `null` says nothing.
    fn literal(&mut self) -> Option<()> {
        let rest = &self.text[self.at..self.end];
        let is_end = |c: char| {
            c.is_ascii_whitespace() || matches!(c, ',' | ']' | '}' | ':' | '"' | '{' | '[')
        };
        let length = rest.find(is_end).unwrap_or(rest.len());
        let shown = &rest[..length];
        let is_value = shown.parse::<f64>().is_ok() || matches!(shown, "true" | "false" | "null");
        if !is_value || self.frames.is_empty() {
            return None;
        }
        let place = self.at..self.at + length;
        self.at += length;
        if shown == "null" {
            self.frames.last_mut()?.key = None;
        } else {
            self.value(place.clone(), place);
        }
        Some(())
    }

    /// Adds the pieces of a value: `quoted` with its quotation marks, `content` without.
    fn value(&mut self, quoted: Range<usize>, content: Range<usize>) {
        let strength =
            gap::MEMBER.saturating_sub(u8::try_from(self.frames.len()).unwrap_or(u8::MAX));
        let border = self.gap.max(strength.max(gap::MEMBER_MIN));
        let Some(frame) = self.frames.last_mut() else { return };
        let key = frame.key.take();
        let path = frame.path.clone();
        let pieces = sentences(self.text, content, true);
        let count = pieces.len();
        for (index, (range, between)) in pieces.into_iter().enumerate() {
            let mut leaf = Leaf::plain(range, border_gap(between));
            leaf.path =
                if index == 0 { path.clone() } else { key.clone().or_else(|| path.clone()) };
            if index == 0 {
                leaf.gap = border;
                leaf.shown.start = key.as_ref().map_or(leaf.shown.start, |key| key.start - 1);
            }
            if count == 1 && key.is_some() {
                leaf.shown.end = quoted.end;
            }
            self.found.push(leaf);
        }
        if count > 0 {
            self.gap = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<Leaf> {
        leaves(text, 0..text.len()).expect("it is JSON")
    }

    #[test]
    fn values_are_pieces_and_keys_are_shown() {
        let text = r#"{"a": "x \"y\"", "b": {"c": 1.5, "d": null, "e": ["f. G", true]}, "": ""}"#;
        let found = of(text);
        let ranges: Vec<&str> = found.iter().map(|leaf| &text[leaf.range.clone()]).collect();
        assert_eq!(ranges, [r#"x \"y\""#, "1.5", "f.", "G", "true"]);
        let shown: Vec<&str> = found.iter().map(|leaf| &text[leaf.shown.clone()]).collect();
        assert_eq!(shown[..2], [r#""a": "x \"y\"""#, r#""c": 1.5"#]);
        let paths: Vec<Option<&str>> =
            found.iter().map(|leaf| leaf.path.clone().map(|path| &text[path])).collect();
        assert_eq!(paths, [None, Some("b"), Some("e"), Some("e"), Some("e")]);
    }

    #[test]
    fn a_piece_knows_the_brackets_around_it() {
        let text = r#"{"items": [{"n": 1}, {"n": 2}], "m": {"o": 3}}"#;
        let scopes: Vec<Option<&str>> =
            of(text).into_iter().map(|leaf| leaf.scope.map(|scope| &text[scope])).collect();
        assert_eq!(scopes, [Some(r#"{"n": 1}"#), Some(r#"{"n": 2}"#), None]);
    }

    #[test]
    fn borders_are_stronger_further_out() {
        let found = of(r#"{"a": {"b": 1, "c": 2}, "d": "One. Two."}"#);
        assert!(found[2].gap > found[1].gap, "{found:?}");
        assert!(found[1].gap > found[3].gap);
    }

    #[test]
    fn what_is_no_json_is_found_out() {
        for text in ["{", "[1", "{\"a\": 1]", "[a]", "{\"a", "[1] [2]", "[1] x", "{a: 1}"] {
            assert!(leaves(text, 0..text.len()).is_none(), "{text}");
        }
    }
}
