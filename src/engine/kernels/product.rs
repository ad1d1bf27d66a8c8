//! Matrix product: packed activations times packed weights.
//!
//! Threads share out runs of panels of columns. A run walks the depth in shares whose sums are kept as
//! `f32` between shares, and with each share some strips at a time, which all its panels take while
//! they are in the cache: none of that changes the order in which an element is summed.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::cell::RefCell;
use std::marker::PhantomData;
use std::ops::Range;

use rayon::prelude::*;

use crate::files::Activation;

use super::activate::activate;
use super::bf16;
use super::int8;
use super::matrix::{Panels, Product, Strips};
use super::operand::{Operand, Weights};
use super::portable::{Isa, Job, Left, Out, Right};
use super::{Level, PANEL_COLUMNS, STRIP_ROWS};

/// Depth that is walked before going to the next strip: a panel's share is 64 KiB, a strip's 24 KiB.
const DEPTH_BLOCK: usize = 512;

/// Strips that each panel of a run takes in turn: their shares, 384 KiB, stay in the second-level
/// cache from one panel to the next.
const GROUP_STRIPS: usize = 16;

/// The most panels of a run, which share each read of the left operand from memory.
const RUN_PANELS: usize = 4;

/// Rows from which there are runs: with fewer, a panel is read faster than it is multiplied only
/// when it is read in one go.
const RUN_ROWS: usize = 128;

/// `out = left x right + bias`, for rows of `left` and columns of `right`.
///
/// * `bias`: `[columns, padded to panels]`; the sums start from it.
///
/// # Panics
/// When the operands differ in precision or depth.
pub fn multiply(
    level: Level,
    left: &Operand,
    right: &Weights,
    bias: Option<&[f32]>,
    out: &mut Product,
) {
    out.reshape(left.rows(), right.panels());
    let panels = run_panels(left, right.panels());
    out.par_runs(panels).with_max_len(1).enumerate().for_each(|(run, out)| {
        let first = run * panels;
        let bias = bias.map(|bias| &bias[first * PANEL_COLUMNS..]);
        multiply_run(level, left, right, Run { first, bias, out });
    });
}

thread_local! {
    /// A run's up columns.
    static UP: RefCell<Vec<f32>> = RefCell::default();
}

/// `out = activation(left x gate) * (left x up)`, a run of panels of both at a time: neither is ever
/// whole in memory.
///
/// * `right`: the gate's panels, then as many panels of up.
///
/// # Panics
/// When the operands differ in precision or depth, or the panels are not two halves.
pub fn multiply_gated(
    level: Level,
    activation: Activation,
    left: &Operand,
    right: &Weights,
    out: &mut Product,
) {
    assert!(right.panels().is_multiple_of(2), "{} panels of gate and up", right.panels());
    let half = right.panels() / 2;
    out.reshape(left.rows(), half);
    let panels = run_panels(left, half);
    out.par_runs(panels).with_max_len(1).enumerate().for_each(|(run, gate)| {
        UP.with_borrow_mut(|up| {
            up.resize(up.len().max(gate.len()), 0.0);
            let up = &mut up[..gate.len()];
            let first = run * panels;
            for (first, out) in [(first, &mut *gate), (half + first, &mut *up)] {
                multiply_run(level, left, right, Run { first, bias: None, out });
            }
            activate(level, activation, gate, up);
        });
    });
}

/// How many panels, of so many, one task takes: what keeps all threads busy to the end, and of that
/// the most. It changes which thread computes an element and when, never how.
fn run_panels(left: &Operand, panels: usize) -> usize {
    if left.rows() < RUN_ROWS {
        return 1;
    }
    longest_run(panels, rayon::current_num_threads())
}

/// The longest run with which no thread computes more panels than it must.
fn longest_run(panels: usize, threads: usize) -> usize {
    let most = |run: &usize| panels.div_ceil(*run).div_ceil(threads) * run;
    (1..=RUN_PANELS).rev().min_by_key(most).unwrap_or(1)
}

/// Some panels of a product that follow each other.
#[derive(Debug)]
pub struct Run<'a> {
    /// The first panel of the weights.
    pub first: usize,
    /// `[at least the run's columns]`; the sums start from it, or from zero.
    pub bias: Option<&'a [f32]>,
    /// `[panels][rows, padded to strips][PANEL_COLUMNS]`; what it holds before does not matter.
    pub out: &'a mut [f32],
}

/// The product of `left` and a run of panels.
///
/// # Panics
/// When the operands differ in precision or depth, or the run's parts in length.
pub fn multiply_run(level: Level, left: &Operand, right: &Weights, run: Run<'_>) {
    assert_eq!(left.depth(), right.depth(), "depths of a product differ");
    run.check(left.rows());
    match (left, right) {
        (Operand::F32(left), Weights::F32(right)) => level.run(RunJob { left, right, run }),
        (Operand::Bf16(left), Weights::Bf16(right)) => bf16::multiply_run(level, left, right, run),
        (Operand::Int8(left), Weights::Int8(right)) => int8::multiply_run(level, left, right, run),
        (Operand::F32(_) | Operand::Bf16(_) | Operand::Int8(_), _) => {
            unreachable!("operands of two precisions");
        }
    }
}

/// What sums without a bias start from.
const ZEROS: [f32; PANEL_COLUMNS] = [0.0; PANEL_COLUMNS];

/// One strip's rows of one panel of a run.
pub(super) struct Piece<'a> {
    /// The strip's number.
    pub(super) strip: usize,
    /// Whether this panel's next strip is the next piece.
    pub(super) more: bool,
    /// The panel's number among all of the weights.
    pub(super) panel: usize,
    /// Rows that mean something.
    pub(super) rows: usize,
    /// What the sums start from, in the depth's first share.
    pub(super) bias: Option<&'a [f32; PANEL_COLUMNS]>,
    /// The sums, `[STRIP_ROWS][PANEL_COLUMNS]`; undefined before the first share.
    pub(super) out: &'a mut [f32; STRIP_ROWS * PANEL_COLUMNS],
}

impl<'a> Run<'a> {
    /// Checks the extent of a run of a product with `rows` rows.
    pub(super) fn check(&self, rows: usize) {
        let size = rows.next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS;
        let len = self.out.len();
        assert!(len.is_multiple_of(size), "{len} sums for panels of {rows} rows");
    }

    /// The panels of a run, of a product with `rows` rows, as runs of one.
    #[inline(always)]
    pub(super) fn panels(self, rows: usize) -> impl Iterator<Item = Run<'a>> {
        let size = rows.next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS;
        let Self { first, bias, out } = self;
        out.chunks_exact_mut(size).enumerate().map(move |(at, out)| Run {
            first: first + at,
            bias: bias.map(|bias| &bias[at * PANEL_COLUMNS..]),
            out,
        })
    }

    /// Walks the pieces of a run of a product with `rows` rows: strips in groups of so many, and all
    /// panels with a group before the next. Those of the depth's first share start from the bias.
    #[inline(always)]
    pub(super) fn pieces(
        &mut self,
        (rows, group): (usize, usize),
        share: usize,
        mut add: impl Add,
    ) {
        let strips = rows.div_ceil(STRIP_ROWS);
        for first in (0..strips).step_by(group) {
            self.group(rows, first..strips.min(first + group), share, &mut add);
        }
    }

    #[inline(always)]
    fn group(&mut self, rows: usize, strips: Range<usize>, share: usize, add: &mut impl Add) {
        let outs = self.out.as_chunks_mut::<{ STRIP_ROWS * PANEL_COLUMNS }>().0;
        for (at, outs) in outs.chunks_exact_mut(rows.div_ceil(STRIP_ROWS)).enumerate() {
            let bias = self.bias.map_or(&ZEROS[..], |bias| &bias[at * PANEL_COLUMNS..]);
            let bias = bias[..PANEL_COLUMNS].first_chunk().filter(|_| share == 0);
            let panel = self.first + at;
            for (strip, out) in strips.clone().zip(&mut outs[strips.clone()]) {
                let rows = STRIP_ROWS.min(rows - strip * STRIP_ROWS);
                add.add(Piece { strip, more: strip + 1 < strips.end, panel, rows, bias, out });
            }
        }
    }
}

/// What is done with each piece of a run.
///
/// A closure will do where it calls a function that has its own instructions. Elsewhere it is to be a type
/// whose method is always inlined: a closure that is not inlined is compiled without the instructions of
/// the function that it is written in, and each multiply-add in it becomes a call.
pub(super) trait Add {
    /// Adds the product of one piece.
    fn add(&mut self, piece: Piece<'_>);
}

impl<F: FnMut(Piece<'_>)> Add for F {
    #[inline(always)]
    fn add(&mut self, piece: Piece<'_>) {
        self(piece);
    }
}

impl<'a> Piece<'a> {
    /// The sums, with the bias written to them where they start from it.
    #[inline(always)]
    pub(super) fn started(self) -> &'a mut [f32; STRIP_ROWS * PANEL_COLUMNS] {
        if let Some(bias) = self.bias {
            self.out.as_chunks_mut().0.fill(*bias);
        }
        self.out
    }
}

struct RunJob<'a> {
    left: &'a Strips,
    right: &'a Panels,
    run: Run<'a>,
}

impl Job for RunJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { left, right, mut run } = self;
        for (share, first) in (0..left.depth()).step_by(DEPTH_BLOCK).enumerate() {
            let last = left.depth().min(first + DEPTH_BLOCK);
            let add = AddTiles { left, right, depth: first..last, isa: PhantomData::<I> };
            run.pieces((left.rows(), GROUP_STRIPS), share, add);
        }
    }
}

/// Adds the products of a share of the depth.
struct AddTiles<'a, I> {
    left: &'a Strips,
    right: &'a Panels,
    depth: Range<usize>,
    isa: PhantomData<I>,
}

impl<I: Isa> Add for AddTiles<'_, I> {
    #[inline(always)]
    fn add(&mut self, piece: Piece<'_>) {
        let (strip, panel, rows) = (piece.strip, piece.panel, piece.rows);
        let Range { start: first, end: last } = self.depth;
        let values = &self.right.panel(panel)[first * PANEL_COLUMNS..last * PANEL_COLUMNS];
        let right = Right { values, stride: PANEL_COLUMNS, first: 0 };
        let left = PackedColumns(&self.left.strip(strip)[first * STRIP_ROWS..last * STRIP_ROWS]);
        let out = Out { values: piece.started(), stride: PANEL_COLUMNS, first: 0 };
        I::accumulate(&left, rows, right, out);
    }
}

/// Part of a strip: `[depth][STRIP_ROWS]`.
pub(super) struct PackedColumns<'a>(pub(super) &'a [f32]);

impl Left for PackedColumns<'_> {
    #[inline(always)]
    fn column<const R: usize>(&self, k: usize, first: usize) -> [f32; R] {
        let mut column = [0.0; R];
        column.copy_from_slice(&self.0[k * STRIP_ROWS..(k + 1) * STRIP_ROWS][first..first + R]);
        column
    }
}

#[cfg(test)]
mod tests;
