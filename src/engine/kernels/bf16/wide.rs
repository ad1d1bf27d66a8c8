//! Products for CPUs without a bf16 dot product: operands widened to f32, then the f32 tiles.
//!
//! Widening is exact, so this is one chain of multiply-adds over the rounded operands. Of a pair the
//! high value goes first, as `vdpbf16ps` has it: where multiply and add are fused, both forms give
//! the same bits, but for subnormal numbers, which the instruction takes as zeros.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::ops::Range;

use super::super::portable::{Isa, Out, Right};
use super::super::product::PackedColumns;
use super::super::{PANEL_COLUMNS, STRIP_ROWS};
use super::rounding::halves;

/// Pairs of depth that are widened at a time: 16 KiB.
const PIECE_PAIRS: usize = 64;

/// Rows of word pairs, the left operand of a tile: the word of a row and a pair of the depth is at
/// `row * ROW + pair * PAIR`.
#[derive(Debug, Clone, Copy)]
pub(super) struct LeftWords<'a, const ROW: usize, const PAIR: usize> {
    pub(super) words: &'a [u32],
    /// From a word to the one in its place in the tile after this one, which is brought near; or 0.
    pub(super) ahead: usize,
}

/// Part of a left operand as f32: `[2 * PIECE_PAIRS][STRIP_ROWS]`.
pub(super) struct LeftPiece([[f32; STRIP_ROWS]; 2 * PIECE_PAIRS]);

impl LeftPiece {
    /// Zeros.
    pub(super) const ZERO: Self = Self([[0.0; STRIP_ROWS]; 2 * PIECE_PAIRS]);

    /// Widens some pairs of the depth, at most [`PIECE_PAIRS`], of `rows` rows.
    #[inline(always)]
    pub(super) fn widen<const ROW: usize, const PAIR: usize>(
        &mut self,
        left: LeftWords<'_, ROW, PAIR>,
        rows: usize,
        pairs: Range<usize>,
    ) -> PackedColumns<'_> {
        let columns = self.0.as_chunks_mut::<2>().0.iter_mut();
        for ([high, low], pair) in columns.zip(pairs) {
            let words = left.words[pair * PAIR..].iter().step_by(ROW).take(rows);
            for ((low, high), word) in low.iter_mut().zip(high).zip(words) {
                [*low, *high] = halves(*word);
            }
        }
        PackedColumns(self.0.as_flattened())
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
pub(super) struct RightPiece([[f32; PANEL_COLUMNS]; 2 * PIECE_PAIRS]);

impl RightPiece {
    /// Zeros.
    pub(super) const ZERO: Self = Self([[0.0; PANEL_COLUMNS]; 2 * PIECE_PAIRS]);

    /// Widens some pairs of the depth, at most [`PIECE_PAIRS`].
    #[inline(always)]
    pub(super) fn widen(&mut self, right: RightPairs<'_>, pairs: Range<usize>) -> Right<'_> {
        let depth = 2 * pairs.len();
        let rows = right.values[pairs.start * 2 * right.stride..].chunks_exact(2 * right.stride);
        let columns = self.0[..depth].as_chunks_mut::<2>().0.iter_mut();
        for ([high, low], from) in columns.zip(rows) {
            widen_row(&from[2 * right.first..][..2 * PANEL_COLUMNS], high, low);
        }
        Right { values: self.0[..depth].as_flattened(), stride: PANEL_COLUMNS, first: 0 }
    }
}

/// The pieces of a depth of so many pairs.
#[inline(always)]
pub(super) fn pieces(pairs: usize) -> impl Iterator<Item = Range<usize>> {
    (0..pairs).step_by(PIECE_PAIRS).map(move |first| first..pairs.min(first + PIECE_PAIRS))
}

/// A whole right operand as f32, `[depth][stride]`, for many products with it.
#[inline(always)]
pub(super) fn widened(values: &[u16], stride: usize) -> Vec<f32> {
    let mut wide = vec![0.0; values.len()];
    let rows = wide.chunks_exact_mut(2 * stride).zip(values.chunks_exact(2 * stride));
    for (to, from) in rows {
        let (high, low) = to.split_at_mut(stride);
        widen_row(from, high, low);
    }
    wide
}

/// Widens one pair of the depth: `[columns][2]`.
#[inline(always)]
fn widen_row(from: &[u16], high: &mut [f32], low: &mut [f32]) {
    for ((high, low), pair) in high.iter_mut().zip(low).zip(from.as_chunks::<2>().0) {
        let word = u32::from(pair[0]) | (u32::from(pair[1]) << 16);
        [*low, *high] = halves(word);
    }
}

/// Adds the product of `rows` rows of `left` and one panel of `right` to `out`.
///
/// * `right`: as [`widened`] made it.
///
/// The f32 tiles may fill up their rows; the sums go through a full strip, so that `out` need not.
#[inline(always)]
pub(super) fn accumulate<I: Isa, const ROW: usize, const PAIR: usize>(
    left: LeftWords<'_, ROW, PAIR>,
    rows: usize,
    right: Right<'_>,
    out: Out<'_>,
) {
    let Out { values, stride, first } = out;
    let mut sums = [[0.0; PANEL_COLUMNS]; STRIP_ROWS];
    for (row, sums) in sums.iter_mut().enumerate().take(rows) {
        sums.copy_from_slice(&values[row * stride + first..][..PANEL_COLUMNS]);
    }
    let mut piece = LeftPiece::ZERO;
    for pairs in pieces(right.values.len() / (2 * right.stride)) {
        let depth = 2 * pairs.start * right.stride..2 * pairs.end * right.stride;
        let right = Right { values: &right.values[depth], ..right };
        let out = Out { values: sums.as_flattened_mut(), stride: PANEL_COLUMNS, first: 0 };
        I::accumulate(&piece.widen(left, rows, pairs), rows, right, out);
    }
    for (row, sums) in sums.iter().enumerate().take(rows) {
        values[row * stride + first..][..PANEL_COLUMNS].copy_from_slice(sums);
    }
}
