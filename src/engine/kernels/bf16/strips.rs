//! Activations rounded to bf16, the left operand of a product.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use rayon::prelude::*;

use super::super::STRIP_ROWS;
use super::super::portable::{Isa, Job, Level};
use super::dot::transposed;
use super::rounding::word;

/// Words of a row that are rounded before the rows are interleaved.
const WORDS: usize = 16;

/// Rows and words that are interleaved at a time.
const QUAD: usize = 4;

/// Activations: `[strips][depth / 2, rounded up][STRIP_ROWS]` words; an odd depth ends in a zero.
#[derive(Debug, Default)]
pub struct Bf16Strips {
    rows: usize,
    depth: usize,
    words: Vec<u32>,
}

impl Bf16Strips {
    /// Takes this shape, reusing memory. What the strips hold is then undefined: all are to be
    /// filled, by [`fill`].
    pub fn reshape(&mut self, rows: usize, depth: usize) {
        self.rows = rows;
        self.depth = depth;
        self.words.resize(rows.div_ceil(STRIP_ROWS) * self.strip_len(), 0);
    }

    /// Rounds and packs a row-major `[rows, depth]` matrix.
    pub fn pack(&mut self, level: Level, matrix: &[f32], depth: usize) {
        self.reshape(matrix.len() / depth, depth);
        self.par_strips().for_each(|(first, strip)| {
            let rows = &matrix[first * depth..matrix.len().min((first + STRIP_ROWS) * depth)];
            fill(level, rows, depth, strip);
        });
    }

    /// Rows that mean something.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row in values.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// One strip: `[depth / 2, rounded up][STRIP_ROWS]`.
    pub(super) fn strip(&self, index: usize) -> &[u32] {
        &self.words[index * self.strip_len()..(index + 1) * self.strip_len()]
    }

    /// All strips in parallel, each with the number of its first row.
    pub fn par_strips(&mut self) -> impl IndexedParallelIterator<Item = (usize, &mut [u32])> {
        let strips = self.words.par_chunks_exact_mut(self.depth.div_ceil(2) * STRIP_ROWS);
        strips.enumerate().map(|(index, strip)| (index * STRIP_ROWS, strip))
    }

    fn strip_len(&self) -> usize {
        self.depth.div_ceil(2) * STRIP_ROWS
    }
}

/// Rounds the row-major `[rows, depth]` matrix `rows` (at most [`STRIP_ROWS`] of them) into a
/// strip, `[depth / 2, rounded up][STRIP_ROWS]`; missing rows become zeros.
pub fn fill(level: Level, rows: &[f32], depth: usize, strip: &mut [u32]) {
    assert!(rows.len() <= STRIP_ROWS * depth, "{} values for a strip of {depth}", rows.len());
    assert_eq!(rows.len() % depth, 0, "rows of a strip are not of length {depth}");
    assert_eq!(strip.len(), depth.div_ceil(2) * STRIP_ROWS, "a strip of another depth");
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
        let Self { rows, depth, strip } = self;
        for (piece, strip) in strip.chunks_mut(WORDS * STRIP_ROWS).enumerate() {
            let mut words = [[0; WORDS]; STRIP_ROWS];
            for (words, row) in words.iter_mut().zip(rows.chunks_exact(depth)) {
                round(&row[piece * 2 * WORDS..depth.min((piece + 1) * 2 * WORDS)], words);
            }
            for (quad, columns) in strip.chunks_mut(QUAD * STRIP_ROWS).enumerate() {
                turn(&words, 0, quad * QUAD, columns);
                turn(&words, QUAD, quad * QUAD, columns);
                turn(&words, 2 * QUAD, quad * QUAD, columns);
            }
        }
    }
}

/// Writes [`QUAD`] rows of [`QUAD`] words as columns of a strip.
#[inline(always)]
fn turn(words: &[[u32; WORDS]; STRIP_ROWS], row: usize, word: usize, columns: &mut [u32]) {
    let mut quad = [[0; QUAD]; QUAD];
    for (quad, words) in quad.iter_mut().zip(&words[row..row + QUAD]) {
        quad.copy_from_slice(&words[word..word + QUAD]);
    }
    for (column, turned) in columns.chunks_exact_mut(STRIP_ROWS).zip(transposed(quad)) {
        column[row..row + QUAD].copy_from_slice(&turned);
    }
}

/// Rounds up to `2 * WORDS` values; what is missing is zero.
#[inline(always)]
fn round(values: &[f32], words: &mut [u32; WORDS]) {
    let mut padded = [0.0; 2 * WORDS];
    let values = <&[f32; 2 * WORDS]>::try_from(values).unwrap_or_else(|_| {
        padded[..values.len()].copy_from_slice(values);
        &padded
    });
    for (word_, pair) in words.iter_mut().zip(values.chunks_exact(2)) {
        *word_ = word(pair[0], pair[1]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounding::halves;
    use super::*;

    #[test]
    fn a_strip_holds_each_row_rounded_and_zeros_past_them() {
        for (level, depth) in
            Level::all().into_iter().flat_map(|l| [1, 2, 31, 33, 64].map(|d| (l, d)))
        {
            let mut rows: Vec<f32> = (0..5 * depth).map(|i| (i as f32).sin()).collect();
            (rows[0], rows[depth]) = (f32::NAN, f32::NEG_INFINITY);
            let mut strip = vec![7; depth.div_ceil(2) * STRIP_ROWS];
            fill(level, &rows, depth, &mut strip);
            let expected = |lane: usize, k: usize| {
                let inside = lane < 5 && k < depth;
                let value = inside.then(|| half::bf16::from_f32(rows[lane * depth + k]));
                value.map_or(0, |value| value.to_f32().to_bits())
            };
            for (at, word) in strip.iter().enumerate() {
                let (lane, k) = (at % STRIP_ROWS, at / STRIP_ROWS * 2);
                let found = halves(*word).map(f32::to_bits);
                let expected = [expected(lane, k), expected(lane, k + 1)];
                assert_eq!(found, expected, "{level:?} depth {depth} row {lane} at {k}");
            }
        }
    }
}
