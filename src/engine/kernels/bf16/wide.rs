//! Products for CPUs without a bf16 dot product: operands widened to f32, then the f32 tiles.
//!
//! Widening is exact, so this is a chain of multiply-adds over the rounded operands, the low value
//! of a pair first; it also is what the tests hold the dot product against.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::super::portable::{Isa, Left, Out, Right};
use super::super::{PANEL_COLUMNS, STRIP_ROWS};
use super::rounding::halves;

/// Pairs of depth that are widened at a time: 16 KiB.
pub(super) const PIECE_PAIRS: usize = 64;

/// Rows of word pairs, the left operand of a tile: the word of a row and a pair of the depth is at
/// `row * ROW + pair * PAIR`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeftWords<'a, const ROW: usize, const PAIR: usize>(pub(super) &'a [u32]);

impl<const ROW: usize, const PAIR: usize> Left for LeftWords<'_, ROW, PAIR> {
    #[inline(always)]
    fn column<const R: usize>(&self, k: usize, first: usize) -> [f32; R] {
        let mut column = [0.0; R];
        for (row, value) in column.iter_mut().enumerate() {
            // Rows that only fill up a tile may lie past the end.
            let word = self.0.get((first + row) * ROW + k / 2 * PAIR);
            *value = word.map_or(0.0, |word| halves(*word)[k % 2]);
        }
        column
    }
}

/// The right operand: `PANEL_COLUMNS` columns from `first` of a `[depth / 2][stride][2]` matrix.
#[derive(Debug, Clone, Copy)]
pub(super) struct RightPairs<'a> {
    pub(super) values: &'a [u16],
    pub(super) stride: usize,
    pub(super) first: usize,
}

impl RightPairs<'_> {
    /// Half of the depth.
    #[inline(always)]
    pub(super) fn pairs(&self) -> usize {
        self.values.len() / (2 * self.stride)
    }
}

/// Part of a right operand as f32: `[2 * PIECE_PAIRS][PANEL_COLUMNS]`.
pub(super) struct Piece {
    values: [[f32; PANEL_COLUMNS]; 2 * PIECE_PAIRS],
    depth: usize,
}

impl Piece {
    /// Widens up to [`PIECE_PAIRS`] pairs of the depth from `pair`.
    #[inline(always)]
    pub(super) fn new(right: RightPairs<'_>, pair: usize) -> Self {
        let pairs = PIECE_PAIRS.min(right.pairs() - pair);
        let mut values = [[0.0; PANEL_COLUMNS]; 2 * PIECE_PAIRS];
        let rows = right.values[pair * 2 * right.stride..].chunks_exact(2 * right.stride);
        for (to, from) in values.as_chunks_mut::<2>().0.iter_mut().zip(rows).take(pairs) {
            let [low, high] = to;
            let from = from[2 * right.first..][..2 * PANEL_COLUMNS].as_chunks::<2>().0;
            for ((low, high), pair) in low.iter_mut().zip(high).zip(from) {
                let word = u32::from(pair[0]) | (u32::from(pair[1]) << 16);
                [*low, *high] = halves(word);
            }
        }
        Self { values, depth: 2 * pairs }
    }

    /// The piece as the right operand of an f32 tile.
    #[inline(always)]
    pub(super) fn right(&self) -> Right<'_> {
        let values = self.values[..self.depth].as_flattened();
        Right { values, stride: PANEL_COLUMNS, first: 0 }
    }
}

/// Adds the product of `rows` rows of `left` and one panel of `right` to `out`.
///
/// The f32 tiles may fill up their rows; the sums go through a full strip, so that `out` need not.
#[inline(always)]
pub(super) fn accumulate<I: Isa, const ROW: usize, const PAIR: usize>(
    left: LeftWords<'_, ROW, PAIR>,
    rows: usize,
    right: RightPairs<'_>,
    out: Out<'_>,
) {
    let Out { values, stride, first } = out;
    let mut sums = [[0.0; PANEL_COLUMNS]; STRIP_ROWS];
    for (row, sums) in sums.iter_mut().enumerate().take(rows) {
        sums.copy_from_slice(&values[row * stride + first..][..PANEL_COLUMNS]);
    }
    for pair in (0..right.pairs()).step_by(PIECE_PAIRS) {
        let piece = Piece::new(right, pair);
        let left = LeftWords::<ROW, PAIR>(&left.0[pair * PAIR..]);
        let out = Out { values: sums.as_flattened_mut(), stride: PANEL_COLUMNS, first: 0 };
        I::accumulate(&left, rows, piece.right(), out);
    }
    for (row, sums) in sums.iter().enumerate().take(rows) {
        values[row * stride + first..][..PANEL_COLUMNS].copy_from_slice(sums);
    }
}
