//! A run of digits: groups of them and the marks between, as far as they touch.
//!
//! What a mark means depends on all others (`1,234` and `1,5`, `10.5` and `10.5.0.1`), so a run is
//! collected whole before it is read.

use std::ops::Range;

use super::digits::{Mark, digit, is_digit, is_identifier, mark, raised};

/// Digits that follow each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) place: Range<usize>,
    /// The same in ASCII.
    pub(super) digits: String,
}

impl Group {
    pub(super) fn len(&self) -> usize {
        self.digits.len()
    }

    /// A leading zero, which no counted thing has.
    pub(super) fn is_padded(&self) -> bool {
        self.len() > 1 && self.digits.starts_with('0')
    }
}

/// Groups with what stands between them: always one mark fewer than groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) groups: Vec<Group>,
    pub(super) marks: Vec<Mark>,
    /// Whether it stands in brackets or in a row of a table, outside a string: a comma ends an item.
    pub(super) is_listed: bool,
}

impl Run {
    /// The run behind its first comma.
    pub(super) fn behind_comma(&self) -> Option<Self> {
        let at = self.marks.iter().position(|mark| *mark == Mark::Comma)? + 1;
        let (groups, marks) = (self.groups[at..].to_vec(), self.marks[at..].to_vec());
        Some(Self { groups, marks, is_listed: self.is_listed })
    }

    pub(super) fn place(&self) -> Range<usize> {
        let start = self.groups.first().map_or(0, |group| group.place.start);
        let end = self.groups.last().map_or(0, |group| group.place.end);
        start..end
    }
}

/// All runs of a text, in its order.
pub(super) fn runs(text: &str) -> Vec<Run> {
    let mut found = Vec::new();
    let mut brackets = Brackets { is_row: is_row(text), ..Brackets::default() };
    let mut at = 0;
    while let Some(character) = text[at..].chars().next() {
        if is_digit(character) {
            let run = run(text, at, brackets.is_list());
            at = run.place().end;
            found.push(run);
        } else {
            brackets.pass(character);
            at += character.len_utf8();
            if character == '\n' {
                brackets.is_row = is_row(&text[at..]);
            }
        }
    }
    found
}

/// Whether the first line of a text is a row of values with commas between: no space follows any, and
/// they do not only stand between digits, or there is no space at all and a word.
fn is_row(text: &str) -> bool {
    let line = text.split('\n').next().unwrap_or(text);
    let (mut commas, mut spaced, mut bare) = (0, 0, 0);
    let mut left = ' ';
    for (character, right) in line.chars().zip(line.chars().skip(1).chain([' '])) {
        if character == ',' {
            commas += 1;
            spaced += usize::from(right == ' ');
            bare += usize::from(!left.is_numeric() || !right.is_numeric());
        }
        left = character;
    }
    let is_word = line.contains(char::is_alphabetic) && !line.contains(' ');
    let has_no_spaces_anyway = line.chars().any(|c| c.is_alphabetic() && !is_identifier(c));
    commas > 1 && spaced == 0 && (bare > 0 || is_word) && !has_no_spaces_anyway
}

/// Where a reader of JSON or of a table would be: in a list, and in a string of it.
#[derive(Debug, Default)]
struct Brackets {
    depth: usize,
    is_row: bool,
    is_quoted: bool,
    is_escaped: bool,
}

impl Brackets {
    fn is_list(&self) -> bool {
        (self.depth > 0 || self.is_row) && !self.is_quoted
    }

    fn pass(&mut self, character: char) {
        match character {
            '\n' => *self = Self::default(),
            '"' if !self.is_escaped => self.is_quoted = !self.is_quoted,
            '[' if !self.is_quoted => self.depth += 1,
            ']' if !self.is_quoted => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        self.is_escaped = character == '\\' && !self.is_escaped;
    }
}

fn run(text: &str, start: usize, is_listed: bool) -> Run {
    let mut run = Run { groups: vec![group(text, start)], marks: Vec::new(), is_listed };
    while let Some((mark, next)) = joined(text, &run) {
        run.marks.push(mark);
        run.groups.push(next);
    }
    run
}

fn group(text: &str, start: usize) -> Group {
    let mut digits = String::new();
    let mut end = start;
    for character in text[start..].chars() {
        let Some(value) = digit(character) else { break };
        digits.push(char::from(b'0' + value));
        end += character.len_utf8();
    }
    Group { place: start..end, digits }
}

/// The mark and the group that follow a run, if they belong to it.
fn joined(text: &str, run: &Run) -> Option<(Mark, Group)> {
    let end = run.place().end;
    let mut ahead = text[end..].chars();
    let (between, right) = (ahead.next()?, ahead.next()?);
    let left = text[..end].chars().next_back()?;
    if !is_digit(right) {
        return None;
    }
    let mark = mark(between, left, right)?;
    let next = end + between.len_utf8();
    let is_outside = match mark {
        Mark::Space | Mark::Group => !is_grouping(text, run, mark, next),
        Mark::Times => is_power_of_ten(&text[next..]),
        Mark::Dot
        | Mark::Comma
        | Mark::Decimal
        | Mark::Colon
        | Mark::Slash
        | Mark::Hyphen
        | Mark::Dash => false,
    };
    (!is_outside).then(|| (mark, group(text, next)))
}

/// Whether a group behind a space goes on with the number before it: three digits, behind one to three
/// or behind such groups.
fn is_grouping(text: &str, run: &Run, mark: Mark, next: usize) -> bool {
    let last = run.marks.last();
    let is_first = last != Some(&mark);
    // A range may end with such a number; what follows another mark is complete.
    if is_first && last.is_some_and(|last| !matches!(last, Mark::Hyphen | Mark::Dash)) {
        return false;
    }
    let fits = run.groups.last().is_some_and(|last| {
        if is_first {
            last.len() <= 3 && !last.is_padded() && last.digits != "0"
        } else {
            last.len() == 3
        }
    });
    fits && text[next..].chars().take(4).take_while(|c| is_digit(*c)).count() == 3
}

/// `10^3` and `10³`, ahead of which `×` is no mark between measures.
fn is_power_of_ten(text: &str) -> bool {
    let next = text.strip_prefix("10").and_then(|rest| rest.chars().next());
    next.is_some_and(|next| next == '^' || next == '⁻' || raised(next).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Vec<String> {
        runs(text).into_iter().map(|run| text[run.place()].to_owned()).collect()
    }

    #[test]
    fn a_run_ends_where_the_digits_no_longer_touch() {
        assert_eq!(shown("1,234.56 and 7; 8:30, 9."), ["1,234.56", "7", "8:30", "9"]);
        assert_eq!(shown("2×3 but 2×10^3 and 2×10³"), ["2×3", "2", "10", "3", "2", "10"]);
    }

    #[test]
    fn a_space_joins_groups_of_three_only() {
        assert_eq!(shown("12 500 300"), ["12 500 300"]);
        assert_eq!(shown("2024 500"), ["2024", "500"]);
        assert_eq!(shown("12 50 and 12 5000"), ["12", "50", "12", "5000"]);
        assert_eq!(shown("1.5 200"), ["1.5", "200"]);
    }

    #[test]
    fn a_list_is_in_brackets_and_outside_strings() {
        let listed = |text| runs(text).iter().map(|run| run.is_listed).collect::<Vec<_>>();
        assert_eq!(listed("[1,2] 3 [\"4\", 5]"), [true, false, false, true]);
        assert_eq!(listed("[\n1"), [false]);
        assert_eq!(listed("sku,n\nA,1,2\n1,234,567\nof A, 1, 2"), [true, false, false, false]);
    }
}
