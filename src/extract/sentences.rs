//! Sentences of a stretch of text: where one ends and the next begins.
//!
//! A full stop ends one where a space and no small letter follow, unless the word before it is an
//! abbreviation; the marks of scripts without spaces end one by themselves. In the text of a JSON
//! string the escapes of line ends are line ends.

use std::ops::Range;

/// A sentence longer than this is cut at its next space.
const SENTENCE_BYTES_MAX: usize = 800;
/// Letters of an abbreviation that are looked at.
const ABBREVIATION_CHARS_MAX: usize = 8;

/// Words whose full stop ends no sentence, in small letters.
const ABBREVIATIONS: [&str; 62] = [
    "mr", "mrs", "ms", "dr", "prof", "st", "no", "nos", "inc", "ltd", "co", "corp", "vs", "approx",
    "e.g", "i.e", "fig", "sec", "art", "dept", "est", "jr", "sr", "jan", "feb", "mar", "apr",
    "jun", "jul", "aug", "sep", "sept", "oct", "nov", "dec", "u.s", "a.m", "p.m", "vol", "pp",
    "ref", "tel", "г", "гг", "ул", "д", "кв", "стр", "т", "руб", "тыс", "им", "рис", "п", "ст",
    "см", "др", "тел", "nr", "str", "bzw", "z.b",
];

/// How a piece is set off from the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Border {
    /// The end of a sentence.
    Sentence,
    /// The end of a line within a string.
    Line,
}

/// The sentences of `range`, trimmed and not empty, in order, each with the border ahead of it.
pub(super) fn sentences(
    text: &str,
    range: Range<usize>,
    is_escaped: bool,
) -> Vec<(Range<usize>, Border)> {
    let mut cutter =
        Cutter { text, start: range.start, border: Border::Sentence, found: Vec::new() };
    let mut at = range.start;
    while let Some(character) = text[at..range.end].chars().next() {
        let next = at + character.len_utf8();
        if character == '\\' && is_escaped {
            at = cutter.escape(at, range.end);
            continue;
        }
        let is_too_long = at - cutter.start > SENTENCE_BYTES_MAX && character.is_whitespace();
        if is_too_long || (character == '\n' && is_escaped) {
            cutter.cut(at, Border::Sentence);
        } else if let Some((end, ends)) = mark_end(text, cutter.start, at, range.end, is_escaped) {
            if ends {
                cutter.cut(end, Border::Sentence);
            }
            at = end;
            continue;
        }
        at = next;
    }
    cutter.cut(range.end, Border::Sentence);
    cutter.found
}

struct Cutter<'a> {
    text: &'a str,
    start: usize,
    border: Border,
    found: Vec<(Range<usize>, Border)>,
}

impl Cutter<'_> {
    fn cut(&mut self, end: usize, next: Border) {
        let piece = trimmed(self.text, self.start..end);
        if !piece.is_empty() {
            self.found.push((piece, self.border));
        }
        self.start = end;
        self.border = next;
    }

    /// Passes an escape of a JSON string. Where it ends.
    fn escape(&mut self, at: usize, end: usize) -> usize {
        let escaped = self.text[at + 1..end].chars().next();
        let next = at + 1 + escaped.map_or(0, char::len_utf8);
        if matches!(escaped, Some('n' | 'r')) {
            self.cut(at, Border::Line);
            self.start = next;
        }
        next
    }
}

/// The range without white space at its ends.
pub(super) fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let shown = &text[range.clone()];
    let start = range.start + (shown.len() - shown.trim_start().len());
    start..start.max(range.start + shown.trim_end().len())
}

/// Where the marks end that begin at `at`, and whether the sentence from `start` ends there; none where
/// there is no such mark.
fn mark_end(
    text: &str,
    start: usize,
    at: usize,
    end: usize,
    is_escaped: bool,
) -> Option<(usize, bool)> {
    let mark = text[at..end].chars().next().filter(|c| is_mark(*c))?;
    let rest = &text[at..end];
    let is_tail = |c: char| is_mark(c) || (is_closer(c) && !(is_escaped && c == '"'));
    let tail = rest.trim_start_matches(is_tail);
    let stop = end - tail.len();
    if is_spaceless(mark) {
        return Some((stop, true));
    }
    let behind = tail.trim_start();
    let is_line_end = is_escaped && tail.starts_with('\\');
    let is_apart = tail.is_empty() || behind.len() < tail.len() || is_line_end;
    let goes_on = behind.starts_with(char::is_lowercase);
    let is_short = mark == '.' && is_abbreviation(&text[start..at]);
    Some((stop, is_apart && !goes_on && !is_short))
}

fn is_mark(character: char) -> bool {
    matches!(character, '.' | '!' | '?' | '…' | '।' | '؟' | '۔') || is_spaceless(character)
}

fn is_closer(character: char) -> bool {
    matches!(character, '"' | '\'' | '”' | '’' | '»' | ')' | ']' | '」' | '』' | '）')
}

fn is_spaceless(mark: char) -> bool {
    matches!(mark, '。' | '！' | '？' | '；')
}

/// Whether the full stop behind this text is that of its last word, or of a number that counts an item.
fn is_abbreviation(before: &str) -> bool {
    let back = before.char_indices().rev().take(ABBREVIATION_CHARS_MAX + 1);
    let word = back.take_while(|(_, c)| c.is_alphanumeric() || *c == '.').last();
    let Some((start, _)) = word else { return false };
    let word = before[start..].to_lowercase();
    let is_initial = word.chars().count() == 1 && before[start..].starts_with(char::is_uppercase);
    let is_count = before.len() < 8 && before.trim().bytes().all(|b| b.is_ascii_digit());
    is_initial || is_count || ABBREVIATIONS.contains(&word.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, is_escaped: bool) -> Vec<&str> {
        sentences(text, 0..text.len(), is_escaped)
            .into_iter()
            .map(|(place, _)| &text[place])
            .collect()
    }

    #[test]
    fn sentences_end_where_a_reader_ends_them() {
        assert_eq!(
            cut("It cost 3.50 at Smith Inc. in May. Why? \"No!\" he said.", false),
            ["It cost 3.50 at Smith Inc. in May.", "Why?", "\"No!\" he said."]
        );
        assert_eq!(
            cut("J. Doe met Dr. Roe. They left.", false),
            ["J. Doe met Dr. Roe.", "They left."]
        );
        assert_eq!(cut("他来了。她走了！好", false), ["他来了。", "她走了！", "好"]);
        assert_eq!(
            cut("Он жил на ул. Мира. Потом уехал.", false),
            ["Он жил на ул. Мира.", "Потом уехал."]
        );
    }

    #[test]
    fn escaped_line_ends_are_line_ends() {
        assert_eq!(cut(r"one\ntwo\\n three.\nFour", true), ["one", r"two\\n three.", "Four"]);
        let found = sentences(r"a\nb. C", 0..7, true);
        assert_eq!(
            found.iter().map(|one| one.1).collect::<Vec<_>>(),
            [Border::Sentence, Border::Line, Border::Sentence]
        );
    }

    #[test]
    fn a_sentence_without_end_is_cut_at_a_space() {
        let text = "word ".repeat(500);
        let found = cut(&text, false);
        assert!(found.len() > 2 && found.iter().all(|one| one.len() < SENTENCE_BYTES_MAX + 10));
    }
}
