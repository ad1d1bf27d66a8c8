//! The product in plain Rust: for machines without a dot instruction, and what tests go by.
//!
//! The quantised values are widened to `f32`, where sums of a block's products (below 2^21) are
//! whole numbers and exact: so the tile of `f32` products computes what integers would.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::marker::PhantomData;

use super::super::portable::{Isa, Job, Out, Right, mul_add};
use super::super::product::{Add, PackedColumns, Piece, Run};
use super::super::{PANEL_COLUMNS, STRIP_ROWS};
use super::BLOCK;
use super::panels::{BLOCK_BYTES, Int8Panels, WORD, factors};
use super::strips::{BLOCK_WORDS, Int8Strips, SCALES, STRIP_WORDS, SUMS};

/// The product of `left` and a run of panels, a panel at a time: its blocks are widened only once.
pub(super) struct RunJob<'a> {
    pub(super) left: &'a Int8Strips,
    pub(super) right: &'a Int8Panels,
    pub(super) run: Run<'a>,
}

/// One block of a panel, widened.
struct Block {
    values: [f32; BLOCK * PANEL_COLUMNS],
    scales: [f32; PANEL_COLUMNS],
    minima: [f32; PANEL_COLUMNS],
}

impl Job for RunJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { left, right, run } = self;
        for run in run.panels(left.rows()) {
            multiply::<I>(left, right.panel(run.first), run);
        }
    }
}

/// The product of `left` and one panel.
#[inline(always)]
fn multiply<I: Isa>(left: &Int8Strips, right: &[u8], mut run: Run<'_>) {
    for (index, bytes) in right.as_chunks::<BLOCK_BYTES>().0.iter().enumerate() {
        let block = Block::new(bytes);
        let add = AddBlock { left, index, right: &block, isa: PhantomData::<I> };
        run.pieces((left.rows(), usize::MAX), index, add);
    }
}

/// Adds the products of one block of the depth.
struct AddBlock<'a, I> {
    left: &'a Int8Strips,
    index: usize,
    right: &'a Block,
    isa: PhantomData<I>,
}

impl<I: Isa> Add for AddBlock<'_, I> {
    #[inline(always)]
    fn add(&mut self, piece: Piece<'_>) {
        let (strip, rows) = (piece.strip, piece.rows);
        add::<I>(&self.left.strip(strip)[self.index], rows, self.right, piece.started());
    }
}

impl Block {
    #[inline(always)]
    fn new(bytes: &[u8; BLOCK_BYTES]) -> Self {
        let mut values = [0.0; BLOCK * PANEL_COLUMNS];
        for (k, row) in values.as_chunks_mut::<PANEL_COLUMNS>().0.iter_mut().enumerate() {
            let word = &bytes[k / WORD * WORD * PANEL_COLUMNS..][..WORD * PANEL_COLUMNS];
            for (value, four) in row.iter_mut().zip(word.as_chunks::<WORD>().0) {
                *value = f32::from(four[k % WORD]);
            }
        }
        let factors: [(f32, f32); PANEL_COLUMNS] = std::array::from_fn(|lane| factors(bytes, lane));
        Self { values, scales: factors.map(|f| f.0), minima: factors.map(|f| f.1) }
    }
}

/// Adds the product of one strip's block and one panel's.
#[inline(always)]
fn add<I: Isa>(
    left: &[u32; STRIP_WORDS],
    rows: usize,
    right: &Block,
    out: &mut [f32; STRIP_ROWS * PANEL_COLUMNS],
) {
    let mut values = [0.0; BLOCK * STRIP_ROWS];
    for word in 0..BLOCK_WORDS {
        for row in 0..STRIP_ROWS {
            for (k, byte) in left[word * STRIP_ROWS + row].to_le_bytes().into_iter().enumerate() {
                values[(word * WORD + k) * STRIP_ROWS + row] = f32::from(byte.cast_signed());
            }
        }
    }
    let mut sums = [0.0; STRIP_ROWS * PANEL_COLUMNS];
    let product = Right { values: &right.values, stride: PANEL_COLUMNS, first: 0 };
    let tile = Out { values: &mut sums, stride: PANEL_COLUMNS, first: 0 };
    I::accumulate(&PackedColumns(&values), rows, product, tile);
    let rows =
        out.as_chunks_mut::<PANEL_COLUMNS>().0.iter_mut().zip(sums.as_chunks::<PANEL_COLUMNS>().0);
    for (row, (out, sums)) in rows.enumerate() {
        let scale = f32::from_bits(left[SCALES + row]);
        let sum = f32::from_bits(left[SUMS + row]);
        for lane in 0..PANEL_COLUMNS {
            let value = mul_add::<I>(right.minima[lane], sum, right.scales[lane] * sums[lane]);
            out[lane] = mul_add::<I>(value, scale, out[lane]);
        }
    }
}
