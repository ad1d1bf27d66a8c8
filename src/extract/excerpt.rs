//! Excerpts and citations: the pieces that a search found, quoted with their places.
//!
//! An excerpt is one stretch of the text where one piece, or neighbours, stand out, and several parts
//! where pieces apart from each other do.

use std::ops::Range;

use super::narrowing::Narrowing;
use super::offsets::Offsets;
use super::spans::Spans;

/// A further piece belongs to an excerpt if its probability is at least this ...
const PIECE_MIN: f64 = 0.2;
/// ... and this share of that of the most probable one.
const PIECE_SHARE_MIN: f64 = 0.5;
/// Least probability of a citation, but for the first.
const CITATION_MIN: f64 = 0.1;
/// Most citations of an answer.
const CITATIONS_MAX: usize = 5;
/// What stands between parts in the text of an excerpt.
const BETWEEN_PARTS: &str = " … ";

/// A stretch of the text that an answer quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// As it stands in the text.
    pub text: String,
    /// In Unicode code points, zero-based.
    pub start: usize,
    /// Its end, exclusive.
    pub end: usize,
}

/// An answer to a question for an excerpt.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcerptAnswer {
    /// None where it is more probable than not that nothing fits. The parts with `…` between them where
    /// there are several.
    pub text: Option<String>,
    /// Of the answer that is given: of its pieces together, or that none is stated.
    pub probability: f64,
    /// That nothing fits.
    pub not_stated: f64,
    /// Where the excerpt begins, in Unicode code points, zero-based; with a text only.
    pub start: Option<usize>,
    /// Where it (its last part) ends, exclusive; with a text only.
    pub end: Option<usize>,
    /// In the order of the text; only where the excerpt is not contiguous, so empty or at least two.
    pub parts: Vec<Part>,
}

/// A stretch of the text that supports an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Citation {
    /// Where and what.
    pub part: Part,
    /// That it is the one that supports the answer.
    pub probability: f64,
}

impl Narrowing {
    /// The answer to a question for an excerpt.
    ///
    /// It is the most probable piece, with every other that is at least half as probable and has at
    /// least .2; neighbours are one part.
    pub fn excerpt(&self, text: &str, spans: &Spans) -> ExcerptAnswer {
        let not_stated = self.not_stated();
        let ranked = self.ranked();
        let none = ExcerptAnswer {
            text: None,
            probability: not_stated,
            not_stated,
            start: None,
            end: None,
            parts: Vec::new(),
        };
        let Some((_, best)) = ranked.first().copied().filter(|_| not_stated <= 0.5) else {
            return none;
        };
        let belongs = |(index, (_, one)): &(usize, &(usize, f64))| {
            *index == 0 || (*one >= PIECE_MIN && *one >= best * PIECE_SHARE_MIN)
        };
        let chosen: Vec<(usize, f64)> =
            ranked.iter().enumerate().filter(belongs).map(|(_, piece)| *piece).collect();
        let probability = chosen.iter().map(|(_, one)| one).sum::<f64>().min(1.0);
        let offsets = Offsets::new(text);
        let ranges = merged(text, spans, chosen.into_iter().map(|(leaf, _)| leaf).collect());
        let parts: Vec<Part> = ranges.iter().map(|range| part(text, &offsets, range)).collect();
        let texts: Vec<&str> = parts.iter().map(|part| part.text.as_str()).collect();
        ExcerptAnswer {
            text: Some(texts.join(BETWEEN_PARTS)),
            probability,
            start: parts.first().map(|part| part.start),
            end: parts.last().map(|part| part.end),
            parts: if parts.len() > 1 { parts } else { Vec::new() },
            ..none
        }
    }

    /// The pieces that support an answer, the most probable first; none where nothing does.
    pub fn citations(&self, text: &str, spans: &Spans) -> Vec<Citation> {
        if self.not_stated() > 0.5 {
            return Vec::new();
        }
        let offsets = Offsets::new(text);
        let cited = self
            .ranked()
            .into_iter()
            .enumerate()
            .filter(|(index, (_, one))| *index == 0 || *one >= CITATION_MIN);
        let cited = cited.take(CITATIONS_MAX).map(|(_, piece)| piece);
        let citation = |(leaf, probability): (usize, f64)| {
            let range = &spans.leaves().get(leaf)?.range;
            Some(Citation { part: part(text, &offsets, range), probability })
        };
        cited.filter_map(citation).collect()
    }
}

fn part(text: &str, offsets: &Offsets, range: &Range<usize>) -> Part {
    let place = offsets.range(text, range);
    Part { text: text[range.clone()].to_owned(), start: place.start, end: place.end }
}

/// The ranges of pieces in the order of the text, neighbours as one. Values of JSON stay apart: there is
/// a key between them.
fn merged(text: &str, spans: &Spans, mut pieces: Vec<usize>) -> Vec<Range<usize>> {
    pieces.sort_unstable();
    let mut found: Vec<(usize, Range<usize>)> = Vec::new();
    for index in pieces {
        let Some(leaf) = spans.leaves().get(index) else { continue };
        match found.last_mut() {
            Some((last, range))
                if *last + 1 == index && !text[range.end..leaf.range.start].contains('"') =>
            {
                *last = index;
                range.end = leaf.range.end;
            }
            _ => found.push((index, leaf.range.clone())),
        }
    }
    found.into_iter().map(|(_, range)| range).collect()
}

#[cfg(test)]
mod tests {
    use super::super::spans::spans;
    use super::*;

    const TEXT: &str = "One é.\r\nTwo.\nThree.\nFour.";

    fn read_once(text: &str, distribution: &[f64]) -> (Narrowing, Spans) {
        let found = spans(text);
        let mut search = Narrowing::new(&found, 9, 2);
        search.read(&found, &[distribution.to_vec()]);
        assert!(search.wanted().is_empty());
        (search, found)
    }

    fn excerpt(text: &str, distribution: &[f64]) -> ExcerptAnswer {
        let (search, found) = read_once(text, distribution);
        search.excerpt(text, &found)
    }

    #[test]
    fn the_most_probable_piece_is_the_excerpt() {
        let answer = excerpt(TEXT, &[0.1, 0.6, 0.1, 0.1, 0.1]);
        assert_eq!(answer.text.as_deref(), Some("Two."));
        assert_eq!((answer.start, answer.end, answer.parts.len()), (Some(8), Some(12), 0));
        assert_eq!(answer.probability.to_string(), "0.6");
    }

    #[test]
    fn neighbours_are_one_part_and_others_are_parts() {
        let near = excerpt(TEXT, &[0.4, 0.4, 0.1, 0.1, 0.0]);
        assert_eq!((near.text.as_deref(), near.parts.len()), (Some("One é.\r\nTwo."), 0));
        let apart = excerpt(TEXT, &[0.3, 0.1, 0.0, 0.5, 0.1]);
        assert_eq!(apart.text.as_deref(), Some("One é. … Four."));
        assert_eq!((apart.start, apart.end), (Some(0), Some(25)));
        let places: Vec<(usize, usize)> =
            apart.parts.iter().map(|part| (part.start, part.end)).collect();
        assert_eq!(places, [(0, 6), (20, 25)]);
        let weak = excerpt(TEXT, &[0.25, 0.1, 0.05, 0.6, 0.0]);
        assert_eq!(weak.text.as_deref(), Some("Four."));
    }

    #[test]
    fn values_of_json_stay_apart() {
        let answer = excerpt(r#"{"a": "x", "b": "y"}"#, &[0.5, 0.5, 0.0]);
        assert_eq!((answer.text.as_deref(), answer.parts.len()), (Some("x … y"), 2));
    }

    #[test]
    fn ties_go_to_the_first_in_the_text() {
        let answer = excerpt(TEXT, &[0.1, 0.15, 0.15, 0.15, 0.45]);
        assert_eq!(answer.text.as_deref(), Some("Two."));
    }

    #[test]
    fn nothing_is_quoted_where_nothing_fits() {
        let answer = excerpt(TEXT, &[0.1, 0.1, 0.1, 0.1, 0.6]);
        assert_eq!(
            (answer.text, answer.start, answer.probability.to_string()),
            (None, None, "0.6".into())
        );
        let empty = spans(" \n");
        let search = Narrowing::new(&empty, 9, 2);
        assert_eq!((search.wanted().len(), search.not_stated().to_string()), (0, "1".to_owned()));
        assert_eq!(search.excerpt("", &empty).text, None);
    }

    #[test]
    fn citations_are_ranked_and_few() {
        let (search, found) = read_once(TEXT, &[0.2, 0.05, 0.55, 0.15, 0.05]);
        let cited = search.citations(TEXT, &found);
        let texts: Vec<&str> = cited.iter().map(|one| one.part.text.as_str()).collect();
        assert_eq!(texts, ["Three.", "One é.", "Four."]);
    }
}
