//! Byte ranges as ranges of Unicode code points, which is how answers count.

use std::ops::Range;

/// Bytes between two places whose count is kept.
const STRIDE: usize = 1024;

/// Code points ahead of places of a text, so that many ranges cost one pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offsets {
    /// Code points that begin before byte `STRIDE * index`.
    counts: Vec<usize>,
}

/// Bytes at which a code point begins.
fn beginnings(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

impl Offsets {
    /// Counts once; linear in the text.
    pub fn new(text: &str) -> Self {
        let mut counts = vec![0];
        let mut total = 0;
        for part in text.as_bytes().chunks(STRIDE) {
            total += beginnings(part);
            counts.push(total);
        }
        Self { counts }
    }

    /// The range in code points, zero-based, its end exclusive. `text` is the one that was counted; what
    /// lies behind its end is taken for its end.
    pub fn range(&self, text: &str, range: &Range<usize>) -> Range<usize> {
        self.offset(text, range.start)..self.offset(text, range.end)
    }

    fn offset(&self, text: &str, at: usize) -> usize {
        let at = at.min(text.len());
        let kept = at / STRIDE;
        let before = self.counts.get(kept).copied().unwrap_or(0);
        before + beginnings(&text.as_bytes()[kept * STRIDE..at])
    }
}

/// A byte range of a text in code points. For many ranges of one text: [`Offsets`].
pub fn code_points(text: &str, range: &Range<usize>) -> Range<usize> {
    Offsets::new(text).range(text, range)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn emoji_combining_marks_and_line_ends_are_counted_by_code_points() {
        let text = "🙂e\u{301}\r\n👨\u{200D}👩x";
        let at = text.find('x').expect("it is there");
        assert_eq!(code_points(text, &(at..at + 1)), 8..9);
        assert_eq!(code_points(text, &(4..7)), 1..3);
    }

    proptest! {
        #[test]
        fn offsets_are_counts_of_characters(text in ".{0,40}", more in 0_usize..200, at in 0_usize..9000) {
            let text = text.repeat(more);
            let at = (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
            let counted = Offsets::new(&text).range(&text, &(at..text.len()));
            prop_assert_eq!(counted, text[..at].chars().count()..text.chars().count());
        }
    }
}
