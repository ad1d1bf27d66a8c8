//! What surrounds a number: a few words of its sentence, line or record, and its key.

use std::ops::Range;

use super::cut::{cut_in_the_middle, shown};
use super::leaves::Leaf;
use super::numbers::NumberCandidate;
use super::spans::{PATH_CHARS_MAX, Spans};

/// Longest text of a number as an option, in characters.
pub const OPTION_CHARS_MAX: usize = 120;

/// Words on either side of a number.
const WORDS_MAX: usize = 8;
/// Bytes that these words may have.
const SIDE_BYTES_MAX: usize = 100;
/// A record up to this long is context as a whole.
const SCOPE_BYTES_MAX: usize = 120;
/// Places of one number that its option shows.
const PLACES_MAX: usize = 3;
/// A longer number is shown by its value.
const WRITTEN_CHARS_MAX: usize = 40;

impl Spans {
    /// The surroundings of a place within its sentence, line or short record, its key included.
    pub fn context(&self, text: &str, place: &Range<usize>) -> Range<usize> {
        let Some(leaf) = self.leaf_at(place.start).map(|index| &self.leaves[index]) else {
            return place.clone();
        };
        let is_short = |scope: &&Range<usize>| scope.len() <= SCOPE_BYTES_MAX;
        if let Some(scope) = leaf.scope.as_ref().filter(is_short) {
            return hull(scope, place);
        }
        let bounds = hull(&(leaf.shown.start..leaf.shown.end.max(leaf.range.end)), place);
        let before = last_words(&text[bounds.start..place.start]);
        let behind = first_words(&text[place.end..bounds.end]);
        let start = place.start - before.len();
        let has_near_key = has_key(leaf) && start - bounds.start <= SIDE_BYTES_MAX;
        (if has_near_key { bounds.start } else { start })..place.end + behind.len()
    }

    /// The same as one line, with the key of what it is in ahead of it.
    pub fn context_text(&self, text: &str, place: &Range<usize>) -> String {
        self.context_line(text, place, OPTION_CHARS_MAX)
    }

    /// A number as an option: as written, and its surroundings at up to three of its places. One line of
    /// at most [`OPTION_CHARS_MAX`] characters; another for another number.
    pub fn number_option(&self, text: &str, candidate: &NumberCandidate) -> String {
        let written = candidate.places.first().map_or("", |place| &text[place.clone()]);
        let written = match shown(written, WRITTEN_CHARS_MAX) {
            line if line.is_empty() || line.contains('…') => format!("{:e}", candidate.value),
            line => line,
        };
        let places = &candidate.places[..candidate.places.len().min(PLACES_MAX)];
        let room = OPTION_CHARS_MAX.saturating_sub(written.chars().count() + 3);
        let each = room / places.len().max(1);
        let mut contexts: Vec<String> = Vec::new();
        for place in places {
            let line = self.context_line(text, place, each.saturating_sub(3));
            if line != written && !contexts.contains(&line) {
                contexts.push(line);
            }
        }
        if contexts.is_empty() { written } else { format!("{written} ({})", contexts.join(" / ")) }
    }

    fn context_line(&self, text: &str, place: &Range<usize>, chars_max: usize) -> String {
        let context = self.context(text, place);
        let leaf = self.leaf_at(place.start).map(|index| &self.leaves[index]);
        let path = leaf.and_then(|leaf| {
            let is_cut_off = has_key(leaf) && context.start > leaf.range.start;
            let key = is_cut_off.then_some(leaf.shown.start..leaf.range.start);
            key.or_else(|| leaf.path.clone())
        });
        let path = path.map_or_else(String::new, |path| key_text(text, path) + ": ");
        // Which member of a record it is.
        let own = leaf.filter(|leaf| has_key(leaf) && context.start < leaf.shown.start);
        let own = own.map(|leaf| key_text(text, leaf.shown.start..leaf.range.start) + " in ");
        let path = own.unwrap_or_default() + &path;
        let line = shown(&text[context], chars_max * 2);
        cut_in_the_middle(&(path + &line), chars_max)
    }
}

fn key_text(text: &str, key: Range<usize>) -> String {
    let key = text[key].trim_matches(|c: char| c.is_whitespace() || "\":：".contains(c));
    shown(key, PATH_CHARS_MAX)
}

fn has_key(leaf: &Leaf) -> bool {
    leaf.shown.start < leaf.range.start
}

/// The smallest range with both in it.
fn hull(one: &Range<usize>, other: &Range<usize>) -> Range<usize> {
    one.start.min(other.start)..one.end.max(other.end)
}

/// The first words of a text: their number and bytes are limited.
fn first_words(text: &str) -> &str {
    let bound = (0..=SIDE_BYTES_MAX.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    let near = &text[..bound.unwrap_or(0)];
    let mut breaks = near.char_indices().filter(|(_, c)| c.is_whitespace()).map(|(at, _)| at);
    let begins_apart = near.starts_with(char::is_whitespace);
    let end = breaks.nth(WORDS_MAX - usize::from(!begins_apart)).unwrap_or(near.len());
    // What the limit of bytes cuts in two is left out.
    let end = if end == near.len() && near.len() < text.len() {
        near.rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(end)
    } else {
        end
    };
    near[..end].trim_end()
}

/// The last words of a text, likewise.
fn last_words(text: &str) -> &str {
    let from = text.len().saturating_sub(SIDE_BYTES_MAX);
    let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let near = &text[from..];
    let mut breaks = near.char_indices().rev().filter(|(_, c)| c.is_whitespace());
    let ends_apart = near.ends_with(char::is_whitespace);
    let cut = breaks.nth(WORDS_MAX - usize::from(!ends_apart)).map_or(0, |(at, _)| at);
    let cut = if cut == 0 && from > 0 { near.find(char::is_whitespace).unwrap_or(0) } else { cut };
    near[cut..].trim_start()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::numbers::{NumberCriteria, numbers};
    use super::super::spans::spans;

    fn options(text: &str) -> Vec<String> {
        let found = spans(text);
        let candidates = numbers(text, &NumberCriteria::default());
        candidates.iter().map(|candidate| found.number_option(text, candidate)).collect()
    }

    #[test]
    fn a_number_is_shown_with_its_sentence_or_line() {
        assert_eq!(
            options("We met. The total of 1,234.50 EUR is due.\nItems: 3"),
            ["1,234.50 EUR (The total of 1,234.50 EUR is due.)", "3 (Items: 3)"]
        );
    }

    #[test]
    fn a_number_of_json_is_shown_with_its_key_or_record() {
        let text = r#"{"order": {"lines": [{"sku": "A", "price": 5}, {"sku": "B", "price": 7}]}, "total": 12}"#;
        assert_eq!(
            options(text),
            [
                r#"5 (price in lines: {"sku": "A", "price": 5})"#,
                r#"7 (price in lines: {"sku": "B", "price": 7})"#,
                r#"12 ("total": 12)"#,
            ]
        );
    }

    #[test]
    fn a_number_at_several_places_is_shown_with_each() {
        assert_eq!(options("Seats: 4\nDays: 4\nHours: 5")[0], "4 (Seats: 4 / Days: 4)");
    }

    #[test]
    fn what_says_nothing_more_is_not_shown() {
        assert_eq!(options("12"), ["12"]);
        assert_eq!(options("Seats: 4\nSeats: 4"), ["4 (Seats: 4)"]);
    }

    #[test]
    fn a_few_words_of_a_long_sentence_are_shown() {
        let text = "a b c d e f g h i j k 17 l m n o p q r s t u";
        assert_eq!(options(text), ["17 (d e f g h i j k 17 l m n o p q r s)"]);
    }

    proptest! {
        #[test]
        fn options_of_numbers_are_short_lines_and_differ(
            text in "([0-9]{1,3}|[a-z]{1,9}| |\n|: |\\. |[{}\\[\\]\",:]|é|half|万|%){0,80}",
        ) {
            let mut shown = options(&text);
            for option in &shown {
                prop_assert!(option.chars().count() <= super::OPTION_CHARS_MAX + 2, "{option}");
                prop_assert!(!option.contains('\n') && !option.is_empty());
            }
            let count = shown.len();
            shown.sort();
            shown.dedup();
            prop_assert_eq!(shown.len(), count);
        }

        #[test]
        fn a_context_has_its_number_in_it(text in "([0-9]{1,3}|[a-z]{1,9}| |\n|: |\\. |[{}\\[\\]\",:]|é|文){0,80}") {
            let found = spans(&text);
            for candidate in numbers(&text, &NumberCriteria::default()) {
                for place in &candidate.places {
                    let context = found.context(&text, place);
                    prop_assert!(context.start <= place.start && context.end >= place.end);
                    prop_assert!(text.get(context).is_some());
                }
            }
        }
    }
}
