//! The parser of strict JSON: one pass, depth limited, first fault reported with its path.
//!
//! Recursion is safe here because the depth limit comes first; the path of a fault is put together
//! while the calls return, so that a text without faults pays nothing for it.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::error::{Problem, Step};

use super::{Json, Limits};

/// Objects up to this many members are searched for a duplicate key one by one.
const SCANNED_MEMBERS_MAX: usize = 16;

type Parsed<T> = Result<T, Problem>;

/// See [`Json::parse`].
pub(super) fn parse(bytes: &[u8], limits: Limits) -> Parsed<Json> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| invalid(format!("not UTF-8 at byte {}", error.valid_up_to())))?;
    let mut parser = Parser { text, bytes, at: 0, values_left: limits.values_max, limits };
    parser.skip_space();
    if parser.peek().is_none() {
        return Err(invalid("empty body, expected a JSON value".to_owned()));
    }
    let value = parser.value(0)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.fault("unexpected text after the JSON value")),
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(Vec::new(), "json_invalid", message)
}

/// Puts `step` before the path of a fault found below it.
fn under(mut problem: Problem, step: Step) -> Problem {
    problem.path.insert(0, step);
    problem
}

struct Parser<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Byte offset of what comes next.
    at: usize,
    values_left: usize,
    limits: Limits,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn fault(&self, what: &str) -> Problem {
        invalid(format!("{what} at byte {}", self.at))
    }

    /// `depth` is the number of containers around the value.
    fn value(&mut self, depth: usize) -> Parsed<Json> {
        self.count_value()?;
        match self.peek() {
            Some(b'{') => self.object(depth + 1),
            Some(b'[') => self.array(depth + 1),
            Some(b'"') => self.string().map(Json::String),
            Some(b'-' | b'0'..=b'9') => self.number().map(Json::Number),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'N' | b'I') => Err(self.fault("NaN and Infinity are not JSON: found one")),
            Some(_) => Err(self.fault("expected a JSON value")),
            None => Err(self.fault("the text ends where a JSON value should be")),
        }
    }

    fn count_value(&mut self) -> Parsed<()> {
        match self.values_left.checked_sub(1) {
            Some(left) => {
                self.values_left = left;
                Ok(())
            }
            None => Err(Problem::new(
                Vec::new(),
                "json_size",
                format!("more than {} JSON values", self.limits.values_max),
            )),
        }
    }

    fn enter(&self, depth: usize) -> Parsed<()> {
        if depth <= self.limits.depth_max {
            return Ok(());
        }
        let limit = self.limits.depth_max;
        let message =
            format!("nested deeper than the limit of {limit} containers at byte {}", self.at);
        Err(Problem::new(Vec::new(), "json_depth", message))
    }

    fn word(&mut self, word: &str, value: Json) -> Parsed<Json> {
        if self.bytes[self.at..].starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(value);
        }
        Err(self.fault("expected true, false or null"))
    }

    fn array(&mut self, depth: usize) -> Parsed<Json> {
        self.enter(depth)?;
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(items));
        }
        loop {
            self.skip_space();
            let item = self.value(depth).map_err(|fault| under(fault, items.len().into()))?;
            items.push(item);
            if self.ends(b']')? {
                return Ok(Json::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Parsed<Json> {
        self.enter(depth)?;
        self.at += 1;
        let mut members = Vec::new();
        let mut keys = Keys::default();
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            let key = self.key()?;
            if keys.repeats(&key, &members) {
                return Err(duplicate(key));
            }
            match self.value(depth) {
                Ok(value) => members.push((key, value)),
                Err(fault) => return Err(under(fault, Step::Key(key))),
            }
            if self.ends(b'}')? {
                return Ok(Json::Object(members));
            }
        }
    }

    /// A key and its colon, with the space around them.
    fn key(&mut self) -> Parsed<String> {
        self.skip_space();
        if self.peek() != Some(b'"') {
            return Err(self.fault("expected a key in double quotes"));
        }
        let key = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.fault("expected a colon after a key"));
        }
        self.at += 1;
        self.skip_space();
        Ok(key)
    }

    /// Whether a container ends here with `close`; else steps over the comma.
    fn ends(&mut self, close: u8) -> Parsed<bool> {
        self.skip_space();
        let found = self.peek();
        if found != Some(close) && found != Some(b',') {
            return Err(self.fault(if close == b']' {
                "expected a comma or the array's end"
            } else {
                "expected a comma or the object's end"
            }));
        }
        self.at += 1;
        Ok(found == Some(close))
    }

    fn number(&mut self) -> Parsed<String> {
        let start = self.at;
        self.skip(b'-');
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            Some(b'I') => return Err(self.fault("NaN and Infinity are not JSON: found one")),
            _ => return Err(self.fault("expected a digit")),
        }
        if self.skip(b'.') {
            self.some_digits()?;
        }
        if self.skip(b'e') || self.skip(b'E') {
            let _ = self.skip(b'+') || self.skip(b'-');
            self.some_digits()?;
        }
        Ok(self.text[start..self.at].to_owned())
    }

    fn skip(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    fn digits(&mut self) {
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
    }

    fn some_digits(&mut self) -> Parsed<()> {
        let start = self.at;
        self.digits();
        if self.at == start { Err(self.fault("expected a digit")) } else { Ok(()) }
    }

    fn string(&mut self) -> Parsed<String> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            let special = |byte: &u8| *byte == b'"' || *byte == b'\\' || *byte < 0x20;
            let plain = self.bytes[start..].iter().position(special);
            self.at = plain.map_or(self.bytes.len(), |length| start + length);
            text.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(self.fault("a control character must be escaped: found one")),
                None => return Err(self.fault("the text ends inside a string")),
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let letter = self.bytes.get(self.at + 1).copied();
        let character = match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.fault("unknown escape")),
        };
        self.at += 2;
        Ok(character)
    }

    /// `\uXXXX`, or two of them for a character beyond the basic plane.
    fn unicode_escape(&mut self) -> Parsed<char> {
        let start = self.at;
        let first = self.code_unit()?;
        let mut units = vec![first];
        if (0xd800..0xdc00).contains(&first) && self.bytes[self.at..].starts_with(b"\\u") {
            units.push(self.code_unit()?);
        }
        match char::decode_utf16(units).next() {
            Some(Ok(character)) => Ok(character),
            _ => Err(Problem::new(
                Vec::new(),
                "lone_surrogate",
                format!(
                    "the escape \\u{first:04x} at byte {start} is half of a surrogate pair and \
                     stands for no character"
                ),
            )),
        }
    }

    fn code_unit(&mut self) -> Parsed<u16> {
        let digits = self.bytes.get(self.at + 2..self.at + 6).unwrap_or_default();
        let value = digits.iter().try_fold(0u16, |value, digit| {
            let digit = char::from(*digit).to_digit(16)?;
            Some(value << 4 | u16::try_from(digit).ok()?)
        });
        match value {
            Some(value) if digits.len() == 4 => {
                self.at += 6;
                Ok(value)
            }
            _ => Err(self.fault("expected four hexadecimal digits after the escape")),
        }
    }
}

/// The keys of one object, hashed once there are many.
///
/// Only hashes are kept, under a key of this process's own: equal hashes are looked up among the
/// members, and nobody outside can make many of them.
#[derive(Default)]
struct Keys {
    state: RandomState,
    hashes: HashSet<u64>,
}

impl Keys {
    /// Whether one of `members` has this key already; remembers it.
    fn repeats(&mut self, key: &str, members: &[(String, Json)]) -> bool {
        if members.len() < SCANNED_MEMBERS_MAX {
            return members.iter().any(|(name, _)| name == key);
        }
        if self.hashes.is_empty() {
            self.hashes = members.iter().map(|(name, _)| self.state.hash_one(name)).collect();
        }
        !self.hashes.insert(self.state.hash_one(key)) && members.iter().any(|(n, _)| n == key)
    }
}

fn duplicate(key: String) -> Problem {
    let message = "this key appears twice in its object".to_owned();
    Problem::new(vec![Step::Key(key)], "duplicate_key", message)
}

#[cfg(test)]
mod tests;
