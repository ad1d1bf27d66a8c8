//! Activations in 8 bits, the left operand: each row's blocks of 32 with a scale of their own.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use rayon::prelude::*;

use super::super::portable::{Isa, Job};
use super::super::{Level, STRIP_ROWS};
use super::BLOCK;
use super::panels::{ROUNDER, WORD};
#[cfg(target_arch = "x86_64")]
use super::vnni;

/// Words of four values that one row has in a block.
pub(super) const BLOCK_WORDS: usize = BLOCK / WORD;
/// Words of a strip's block: `[BLOCK_WORDS][STRIP_ROWS]` of values, low byte first; then scales and
/// sums of values, `[STRIP_ROWS]` bits of `f32` each.
pub(super) const STRIP_WORDS: usize = (BLOCK_WORDS + 2) * STRIP_ROWS;
/// Where a block's scales begin.
pub(super) const SCALES: usize = BLOCK_WORDS * STRIP_ROWS;
/// Where a block's sums begin.
pub(super) const SUMS: usize = SCALES + STRIP_ROWS;
/// The largest quantised value.
const HIGHEST: f32 = 127.0;

/// Activations, `[strips][depth / 32, rounded up]` of blocks of [`STRIP_ROWS`] x 32.
#[derive(Debug, Default)]
pub struct Int8Strips {
    rows: usize,
    depth: usize,
    words: Vec<u32>,
}

impl Int8Strips {
    /// Takes this shape, reusing memory. Each strip must then be filled.
    pub fn reshape(&mut self, rows: usize, depth: usize) {
        self.rows = rows;
        self.depth = depth;
        self.words.resize(rows.div_ceil(STRIP_ROWS) * strip_words(depth), 0);
    }

    /// Rows that mean something.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.words.as_slice()) as u64
    }

    /// All strips in parallel, each with the number of its first row, to be given to [`fill`].
    pub fn par_strips(&mut self) -> impl IndexedParallelIterator<Item = (usize, &mut [u32])> {
        let strips = self.words.par_chunks_exact_mut(strip_words(self.depth));
        strips.enumerate().map(|(index, strip)| (index * STRIP_ROWS, strip))
    }

    /// One strip, in blocks of [`STRIP_WORDS`].
    pub(super) fn strip(&self, index: usize) -> &[[u32; STRIP_WORDS]] {
        let size = strip_words(self.depth);
        self.words[index * size..(index + 1) * size].as_chunks().0
    }
}

fn strip_words(depth: usize) -> usize {
    depth.div_ceil(BLOCK) * STRIP_WORDS
}

/// Quantises `rows`, row-major `[at most STRIP_ROWS, depth]`, into a strip; missing rows are zeros.
///
/// A block's scale is its largest magnitude / 127, values are rounded to the nearest, ties to even;
/// no operation is fused, so all levels give the same bits. A scale that would not be a normal
/// number (magnitudes below 1.5e-36) counts as 0; that of values which are not all finite is not
/// finite either, which no product with it can hide.
pub fn fill(level: Level, rows: &[f32], depth: usize, strip: &mut [u32]) {
    assert!(rows.len() <= STRIP_ROWS * depth, "more than {STRIP_ROWS} rows for one strip");
    assert_eq!(strip.len(), strip_words(depth), "a strip of another depth than {depth}");
    #[cfg(target_arch = "x86_64")]
    if level.has_int8_dot() {
        return vnni::fill(level, rows, depth, strip);
    }
    level.run(FillJob { rows, depth, strip });
}

struct FillJob<'a> {
    rows: &'a [f32],
    depth: usize,
    strip: &'a mut [u32],
}

impl Job for FillJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        lay_out(self.rows, self.depth, self.strip, quantise);
    }
}

/// One row's block: its scale, the sum of the quantised values, and those, as signed bytes.
pub(super) struct Quantised {
    pub(super) scale: f32,
    pub(super) sum: i32,
    pub(super) values: [u8; BLOCK],
}

/// Writes what `quantise` makes of all blocks of `rows` into their lanes of a strip.
#[inline(always)]
pub(super) fn lay_out(
    rows: &[f32],
    depth: usize,
    strip: &mut [u32],
    quantise: impl Fn(&[f32; BLOCK]) -> Quantised,
) {
    if rows.len() < STRIP_ROWS * depth {
        strip.fill(0);
    }
    let (blocks, _) = strip.as_chunks_mut::<STRIP_WORDS>();
    for (lane, row) in rows.chunks_exact(depth).take(STRIP_ROWS).enumerate() {
        let (whole, rest) = row.as_chunks::<BLOCK>();
        for (block, values) in blocks.iter_mut().zip(whole) {
            write(block, lane, &quantise(values));
        }
        if let (false, Some(block)) = (rest.is_empty(), blocks.last_mut()) {
            let mut values = [0.0; BLOCK];
            values[..rest.len()].copy_from_slice(rest);
            write(block, lane, &quantise(&values));
        }
    }
}

#[inline(always)]
fn write(block: &mut [u32; STRIP_WORDS], lane: usize, quantised: &Quantised) {
    for (word, four) in quantised.values.as_chunks().0.iter().enumerate() {
        block[word * STRIP_ROWS + lane] = u32::from_le_bytes(*four);
    }
    block[SCALES + lane] = quantised.scale.to_bits();
    block[SUMS + lane] = (quantised.sum as f32).to_bits();
}

/// Scale of a block whose largest magnitude is `highest`, and what its values are multiplied by.
#[inline(always)]
pub(super) fn scales(highest: f32) -> (f32, f32) {
    if highest < HIGHEST * f32::MIN_POSITIVE {
        (0.0, 0.0)
    } else {
        (highest / HIGHEST, HIGHEST / highest)
    }
}

#[inline(always)]
fn quantise(values: &[f32; BLOCK]) -> Quantised {
    let (scale, inverse) = scales(highest_magnitude(values));
    let mut quantised = [0; BLOCK];
    let mut sum = 0_i32;
    for (byte, value) in quantised.iter_mut().zip(values) {
        let bits = (value * inverse + ROUNDER).to_bits();
        sum = sum.wrapping_add(bits.wrapping_sub(ROUNDER.to_bits()).cast_signed());
        *byte = bits.to_le_bytes()[0];
    }
    Quantised { scale, sum, values: quantised }
}

/// The largest magnitude, found in the bits: there infinities, and what is not a number, win.
#[inline(always)]
fn highest_magnitude(values: &[f32; BLOCK]) -> f32 {
    let mut highest = 0;
    for value in values {
        highest = highest.max(value.abs().to_bits());
    }
    f32::from_bits(highest)
}
