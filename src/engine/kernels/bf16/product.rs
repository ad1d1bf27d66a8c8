//! Matrix product of packed bf16 activations and weights, a run of panels of columns at a time.
//!
//! A run walks the depth in shares whose sums are kept as f32 between shares, and each share goes
//! over all strips while its weights lie in L1 or L2: neither changes the order of a sum.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::marker::PhantomData;
use std::ops::Range;

use super::super::portable::{Isa, Job, Level, Out, Right};
use super::super::product::{Add, Piece, Run};
use super::super::{PANEL_COLUMNS, STRIP_ROWS};
use super::dot::Dot;
use super::wide::{LeftPiece, LeftWords, RightPairs, RightPiece, pieces};
use super::{Bf16Panels, Bf16Strips};

/// Pairs of depth that are walked before going to the next strip: a panel's share is 64 KiB.
const DEPTH_PAIRS: usize = 512;

/// Strips that each panel of a run takes in turn: their shares, 384 KiB, stay in the second-level
/// cache from one panel to the next.
const GROUP_STRIPS: usize = 16;

/// A strip, or its later part: `[depth / 2][STRIP_ROWS]`.
type StripWords<'a> = LeftWords<'a, 1, STRIP_ROWS>;

/// The product of `left` and a run of panels.
///
/// What it leaves in rows past the last is undefined.
pub fn multiply_run(level: Level, left: &Bf16Strips, right: &Bf16Panels, run: Run<'_>) {
    assert_eq!(left.depth(), right.depth(), "depths of a product differ");
    run.check(left.rows());
    match Dot::of(level) {
        Some(dot) => by_dot(dot, left, right, run),
        None => level.run(WideJob { left, right, run }),
    }
}

fn by_dot(dot: Dot, left: &Bf16Strips, right: &Bf16Panels, mut run: Run<'_>) {
    let depth = left.depth().div_ceil(2);
    // One tile reads the weights once: nothing is gained by coming back to them.
    let size = if left.rows() > STRIP_ROWS { DEPTH_PAIRS } else { depth };
    for (share, first) in (0..depth).step_by(size).enumerate() {
        let last = depth.min(first + size);
        run.pieces((left.rows(), GROUP_STRIPS), share, |piece: Piece<'_>| {
            let Piece { strip, more, panel, rows, bias, out } = piece;
            let values = &right.panel(panel)[first * 2 * PANEL_COLUMNS..last * 2 * PANEL_COLUMNS];
            let right = RightPairs { values, stride: PANEL_COLUMNS, first: 0 };
            let words = &left.strip(strip)[first * STRIP_ROWS..];
            let left: StripWords<'_> =
                LeftWords { words, ahead: if more { depth * STRIP_ROWS } else { 0 } };
            let out = Out { values: out, stride: PANEL_COLUMNS, first: 0 };
            dot.multiply((left, rows), bias, right, out);
        });
    }
}

/// The same product without the instruction, a panel at a time: it is widened only once.
struct WideJob<'a> {
    left: &'a Bf16Strips,
    right: &'a Bf16Panels,
    run: Run<'a>,
}

impl Job for WideJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { left, right, run } = self;
        for run in run.panels(left.rows()) {
            let values = right.panel(run.first);
            multiply_wide::<I>(left, RightPairs { values, stride: PANEL_COLUMNS, first: 0 }, run);
        }
    }
}

/// The product of `left` and one panel.
#[inline(always)]
fn multiply_wide<I: Isa>(left: &Bf16Strips, right: RightPairs<'_>, mut run: Run<'_>) {
    let (mut left_piece, mut right_piece) = (LeftPiece::ZERO, RightPiece::ZERO);
    for (share, pairs) in pieces(right.pairs()).enumerate() {
        let right = right_piece.widen(right, pairs.clone());
        let widened = &mut left_piece;
        let add = AddWide { left, widened, right, pairs, isa: PhantomData::<I> };
        run.pieces((left.rows(), usize::MAX), share, add);
    }
}

/// Adds the products of some pairs of the depth, the right operand widened.
struct AddWide<'a, I> {
    left: &'a Bf16Strips,
    widened: &'a mut LeftPiece,
    right: Right<'a>,
    pairs: Range<usize>,
    isa: PhantomData<I>,
}

impl<I: Isa> Add for AddWide<'_, I> {
    #[inline(always)]
    fn add(&mut self, piece: Piece<'_>) {
        let rows = piece.rows;
        let strip: StripWords<'_> = LeftWords { words: self.left.strip(piece.strip), ahead: 0 };
        let left = self.widened.widen(strip, rows, self.pairs.clone());
        let out = Out { values: piece.started(), stride: PANEL_COLUMNS, first: 0 };
        I::accumulate(&left, rows, self.right, out);
    }
}

#[cfg(test)]
mod tests;
