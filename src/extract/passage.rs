//! The piece in which something stands.

use std::ops::Range;

use super::excerpt::Part;
use super::offsets::code_points;
use super::spans::Spans;

impl Spans {
    /// The piece in which a place stands, or the last one ahead of it.
    pub fn passage(&self, text: &str, place: &Range<usize>) -> Option<Part> {
        let range = &self.leaves().get(self.leaf_at(place.start)?)?.range;
        let at = code_points(text, range);
        Some(Part { text: text[range.clone()].to_owned(), start: at.start, end: at.end })
    }
}

#[cfg(test)]
mod tests {
    use crate::extract::{NumberCriteria, numbers, spans};

    #[test]
    fn a_number_stands_in_a_piece() {
        let text = "É one. It costs 45 euros. Done.";
        let criteria = NumberCriteria { min: Some(40.0), ..NumberCriteria::default() };
        let candidate = &numbers(text, &criteria)[0];
        let passage = spans(text).passage(text, &candidate.places[0]).unwrap();
        assert_eq!(
            (passage.text.as_str(), passage.start, passage.end),
            ("It costs 45 euros.", 7, 25)
        );
        assert_eq!(spans("").passage("", &(0..0)), None);
    }
}
