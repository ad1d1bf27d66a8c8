//! Matrix product of packed bf16 activations and weights, one panel of columns at a time.
//!
//! A panel walks the depth in blocks whose sums are kept as f32 between blocks, and each block goes
//! over all strips while its weights lie in L1 or L2: neither changes the order of a sum.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::super::portable::{Isa, Job, Level, Out};
use super::super::{PANEL_COLUMNS, STRIP_ROWS};
use super::dot::Dot;
use super::wide::{LeftPiece, LeftWords, RightPairs, RightPiece, pieces};
use super::{Bf16Panels, Bf16Strips};

/// Pairs of depth that are walked before going to the next strip: a panel's share is 64 KiB.
const DEPTH_PAIRS: usize = 512;

/// A strip, or its later part: `[depth / 2][STRIP_ROWS]`.
type StripWords<'a> = LeftWords<'a, 1, STRIP_ROWS>;

/// Adds the product of `left` and one panel to `out`, `[rows, padded to strips][PANEL_COLUMNS]`.
///
/// What it leaves in rows past the last is undefined.
pub fn multiply_panel(
    level: Level,
    left: &Bf16Strips,
    right: &Bf16Panels,
    panel: usize,
    out: &mut [f32],
) {
    assert_eq!(left.depth(), right.depth(), "depths of a product differ");
    let rows_padded = left.rows().next_multiple_of(STRIP_ROWS);
    assert_eq!(out.len(), rows_padded * PANEL_COLUMNS, "sums for another number of rows");
    let right = RightPairs { values: right.panel(panel), stride: PANEL_COLUMNS, first: 0 };
    match Dot::of(level) {
        Some(dot) => by_dot(dot, left, right, out),
        None => level.run(WideJob { left, right, out }),
    }
}

fn by_dot(dot: Dot, left: &Bf16Strips, right: RightPairs<'_>, out: &mut [f32]) {
    for (depth, values) in right.values.chunks(DEPTH_PAIRS * 2 * PANEL_COLUMNS).enumerate() {
        let right = RightPairs { values, ..right };
        for (strip, rows, values) in strips(left, out) {
            let left: StripWords<'_> = LeftWords(&strip[depth * DEPTH_PAIRS * STRIP_ROWS..]);
            dot.accumulate(left, rows, right, Out { values, stride: PANEL_COLUMNS, first: 0 });
        }
    }
}

/// All strips: words, rows that mean something, sums.
#[inline(always)]
fn strips<'a>(
    left: &'a Bf16Strips,
    out: &'a mut [f32],
) -> impl Iterator<Item = (&'a [u32], usize, &'a mut [f32])> {
    let outs = out.chunks_exact_mut(STRIP_ROWS * PANEL_COLUMNS).enumerate();
    outs.map(|(strip, out)| {
        (left.strip(strip), STRIP_ROWS.min(left.rows() - strip * STRIP_ROWS), out)
    })
}

/// The same product without the instruction.
struct WideJob<'a> {
    left: &'a Bf16Strips,
    right: RightPairs<'a>,
    out: &'a mut [f32],
}

impl Job for WideJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { left, right, out } = self;
        let (mut left_piece, mut right_piece) = (LeftPiece::ZERO, RightPiece::ZERO);
        for pairs in pieces(right.pairs()) {
            let right = right_piece.widen(right, pairs.clone());
            for (strip, rows, values) in strips(left, out) {
                let strip: StripWords<'_> = LeftWords(strip);
                let left = left_piece.widen(strip, rows, pairs.clone());
                let out = Out { values, stride: PANEL_COLUMNS, first: 0 };
                I::accumulate(&left, rows, right, out);
            }
        }
    }
}

#[cfg(test)]
mod tests;
