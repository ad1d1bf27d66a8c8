//! The smallest pieces of a text that can be an excerpt: sentences, lines, list items, values.
//!
//! A value is told from its key: in `Due date: 12 May` the piece is `12 May`, and what is shown of it
//! is all of the line.

use std::ops::Range;

use super::members;
use super::sentences::{Border, sentences, trimmed};

/// Most pieces of a text. Beyond it neighbours are one piece.
pub const SPANS_MAX: usize = 4096;

/// A line this long may go on in the next one, as in a letter with lines of equal length.
const WRAPPED_BYTES_MIN: usize = 50;
/// A longer beginning of a line is no key.
const KEY_BYTES_MAX: usize = 60;
const KEY_WORDS_MAX: usize = 6;

/// How strongly a piece is set off from the one before: a border of sentences, of lines, of paragraphs.
/// Borders of JSON are stronger the fewer brackets are around them.
pub(super) mod gap {
    pub(crate) const SENTENCE: u8 = 1;
    pub(crate) const STRING_LINE: u8 = 2;
    pub(crate) const LINE: u8 = 10;
    pub(crate) const PARAGRAPH: u8 = 20;
    pub(crate) const HEADING: u8 = 25;
    /// That of the outermost members; one less for each bracket further in.
    pub(crate) const MEMBER: u8 = 200;
    /// That of members however far in.
    pub(crate) const MEMBER_MIN: u8 = 30;
}

/// A piece of a text; all ranges are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// What an answer quotes.
    pub range: Range<usize>,
    /// What is shown as an option: the range, and ahead of it its key where it has one.
    pub shown: Range<usize>,
    /// The key of what it is in, where it does not stand in `shown`.
    pub path: Option<Range<usize>>,
    /// The record of a list, or the list, that a JSON value is in: what is beside it tells it apart.
    pub scope: Option<Range<usize>>,
    pub(super) gap: u8,
}

impl Leaf {
    pub(super) fn plain(range: Range<usize>, gap: u8) -> Self {
        Self { shown: range.clone(), range, path: None, scope: None, gap }
    }
}

/// The pieces of a text in its order, not overlapping; at most [`SPANS_MAX`]. Linear in the text.
pub(super) fn leaves(text: &str) -> Vec<Leaf> {
    let whole = trimmed(text, 0..text.len());
    let is_json = text[whole.clone()].starts_with(['{', '[']);
    let found = is_json.then(|| members::leaves(text, whole)).flatten();
    merged(found.unwrap_or_else(|| lines(text)))
}

/// Joins neighbours so that at most [`SPANS_MAX`] are left.
fn merged(leaves: Vec<Leaf>) -> Vec<Leaf> {
    let together = leaves.len().div_ceil(SPANS_MAX);
    if together <= 1 {
        return leaves;
    }
    let join = |pieces: &[Leaf]| {
        let mut one = pieces[0].clone();
        if let Some(last) = pieces.last() {
            one.range.end = last.range.end;
            one.shown.end = last.shown.end;
        }
        one
    };
    leaves.chunks(together).map(join).collect()
}

/// Pieces of a text that is no JSON: its lines, cut into sentences.
fn lines(text: &str) -> Vec<Leaf> {
    let mut found = Vec::new();
    let mut block: Option<(Range<usize>, u8)> = None;
    let mut gap = gap::PARAGRAPH;
    for line in text.split_inclusive(['\n', '\u{2028}', '\u{2029}']) {
        let start = line.as_ptr() as usize - text.as_ptr() as usize;
        let line = trimmed(text, start..start + line.len());
        if is_rule(&text[line.clone()]) {
            gap = gap::PARAGRAPH;
            continue;
        }
        match &mut block {
            Some((range, _))
                if gap == gap::LINE && goes_on(&text[range.clone()], &text[line.clone()]) =>
            {
                range.end = line.end;
            }
            _ => {
                close(text, block.take(), &mut found);
                let heading = text[line.clone()].starts_with('#');
                block = Some((line, if heading { gap::HEADING } else { gap }));
            }
        }
        gap = gap::LINE;
    }
    close(text, block, &mut found);
    found
}

/// Whether a line is empty, or only drawn: under a heading, within a table.
fn is_rule(line: &str) -> bool {
    line.chars().all(|c| c.is_whitespace() || "|-=_*+:~#—–".contains(c))
}

/// Whether the line `next` goes on with the sentence of the lines before.
fn goes_on(before: &str, next: &str) -> bool {
    let last = before.rsplit('\n').next().unwrap_or(before);
    last.len() >= WRAPPED_BYTES_MIN
        && !last.ends_with(['.', '!', '?', ':', ';', '|', '。'])
        && next.starts_with(char::is_lowercase)
}

/// Cuts a block of joined lines into pieces.
fn close(text: &str, block: Option<(Range<usize>, u8)>, found: &mut Vec<Leaf>) {
    let Some((range, gap)) = block else { return };
    let content = trimmed(text, marker_end(text, &range)..range.end);
    if content.is_empty() {
        return;
    }
    let value = value_start(&text[content.clone()]).map_or(content.start, |at| content.start + at);
    let is_json = value > content.start && text[value..content.end].starts_with(['{', '[']);
    let inner = is_json.then(|| members::leaves(text, value..content.end)).flatten();
    let is_inner = inner.is_some();
    let key = trimmed(text, content.start..value);
    let mut pieces = inner.unwrap_or_else(|| pieces(text, value..content.end));
    for (index, piece) in pieces.iter_mut().enumerate() {
        if index == 0 {
            piece.gap = gap;
        }
        if index == 0 && !is_inner {
            piece.shown.start = content.start;
        } else if piece.path.is_none() && !key.is_empty() {
            piece.path = Some(key.start..key.end - key_mark(&text[key.clone()]));
        }
    }
    found.append(&mut pieces);
}

fn pieces(text: &str, range: Range<usize>) -> Vec<Leaf> {
    let with_gap = |(range, border)| Leaf::plain(range, border_gap(border));
    sentences(text, range, false).into_iter().map(with_gap).collect()
}

pub(super) fn border_gap(border: Border) -> u8 {
    match border {
        Border::Sentence => gap::SENTENCE,
        Border::Line => gap::STRING_LINE,
    }
}

/// Where the marker of a list item, heading, quotation or table row ends.
fn marker_end(text: &str, line: &Range<usize>) -> usize {
    let shown = &text[line.clone()];
    let digits = shown.bytes().take_while(u8::is_ascii_digit).count();
    let behind = &shown[digits..];
    let is_counted = (1..=3).contains(&digits) && behind.starts_with([')', '.']);
    let marker = if is_counted && behind[1..].starts_with(' ') {
        digits + 1
    } else if let Some(mark) = shown.chars().next().filter(|c| "-*•‣–—+>·|".contains(*c)) {
        let width = mark.len_utf8();
        if shown[width..].starts_with(' ') { width } else { 0 }
    } else {
        shown.len() - shown.trim_start_matches('#').len()
    };
    line.start + marker
}

/// Where the value of `key: value` begins; none where the line is no such.
fn value_start(line: &str) -> Option<usize> {
    let bound = (0..=KEY_BYTES_MAX.min(line.len())).rev().find(|at| line.is_char_boundary(*at))?;
    let head = &line[..bound];
    let (at, width) = match (head.find(": "), head.find('：')) {
        (Some(narrow), wide) if wide.is_none_or(|wide| narrow < wide) => (narrow, 1),
        (_, Some(wide)) => (wide, '：'.len_utf8()),
        (_, None) => return None,
    };
    let key = &head[..at];
    let is_key = !key.trim().is_empty()
        && key.split_whitespace().count() <= KEY_WORDS_MAX
        && !key.contains(['!', '?', ',', ';', '。', '，', '|'])
        && !key.contains(". ");
    let value = line[at + width..].trim_start();
    (is_key && !value.is_empty()).then(|| line.len() - value.len())
}

/// Bytes of the colon that ends a key.
fn key_mark(key: &str) -> usize {
    key.chars().next_back().filter(|c| matches!(c, ':' | '：')).map_or(0, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(text: &str) -> Vec<&str> {
        leaves(text).into_iter().map(|leaf| &text[leaf.range]).collect()
    }

    fn shown(text: &str) -> Vec<&str> {
        leaves(text).into_iter().map(|leaf| &text[leaf.shown]).collect()
    }

    #[test]
    fn lines_items_and_sentences_are_pieces() {
        let text = "# Notes\r\n===\r\n- First thing. Second thing.\r\n2. Third\r\n\r\n| a | b |\r\n|---|---|";
        assert_eq!(ranges(text), ["Notes", "First thing.", "Second thing.", "Third", "a | b |"]);
    }

    #[test]
    fn the_value_of_a_line_is_the_piece_and_its_key_is_shown() {
        let text = "Customer: Anna Schmidt\nTotal：５ 元\nat 12:30 we met\nUrl: https://a.b";
        assert_eq!(ranges(text), ["Anna Schmidt", "５ 元", "at 12:30 we met", "https://a.b"]);
        assert_eq!(shown(text)[..2], ["Customer: Anna Schmidt", "Total：５ 元"]);
    }

    #[test]
    fn a_wrapped_sentence_is_one_piece() {
        let text = "The supplier shall deliver the goods to the address within\nten days. After that\nno more.";
        assert_eq!(
            ranges(text),
            [
                "The supplier shall deliver the goods to the address within\nten days.",
                "After that",
                "no more."
            ]
        );
    }

    #[test]
    fn json_within_a_line_is_cut_into_values() {
        let text = "id: 7\nitems: [{\"name\":\"A\",\"n\":1},{\"name\":\"B\",\"n\":2}]";
        assert_eq!(ranges(text), ["7", "A", "1", "B", "2"]);
        let path = leaves(text)[1].path.clone().expect("it has a path");
        assert_eq!(&text[path], "items");
    }

    #[test]
    fn too_many_pieces_are_joined() {
        let text = "a\n".repeat(SPANS_MAX * 2 + 1);
        let found = leaves(&text);
        assert!(found.len() <= SPANS_MAX && found.len() > SPANS_MAX / 3, "{}", found.len());
        assert_eq!(found.last().map(|leaf| leaf.range.end), Some(text.trim_end().len()));
    }
}
