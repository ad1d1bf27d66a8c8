//! Attention of many strips of queries over one block of 64 bf16 keys and values.
//!
//! Like the f32 form: online softmax, blocks in ascending order of position. All strips go by while
//! the block lies in L1. A query that sees no key of a block is not touched at all, and what a
//! query gets depends on itself and its keys only (D6 rule 3).

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::ops::Range;

use super::super::attend::QueryRows;
use super::super::exponential::exp;
use super::super::portable::{Isa, Job, Level, Out, Right, mul_add};
use super::super::{BLOCK_KEYS, PANEL_COLUMNS, STRIP_ROWS};
use super::dot::Dot;
use super::strip::{self, KEY_PAIRS, larger};
use super::wide::{self, LeftWords, RightPairs};

/// Keys and values of 64 consecutive positions of one head.
#[derive(Debug, Clone, Copy)]
pub struct Block16<'a> {
    /// `[head_dim / 2][BLOCK_KEYS][2]`.
    pub keys: &'a [u16],
    /// `[BLOCK_KEYS / 2][head_dim, padded to PANEL_COLUMNS][2]`.
    pub values: &'a [u16],
}

/// Any number of queries of one key/value head, and how far their softmax has come.
#[derive(Debug)]
pub struct QueryRows16<'a> {
    /// `[strips][head_dim / 2][STRIP_ROWS]` words, already scaled; `fill` makes them.
    pub queries: &'a [u32],
    /// For each query the keys of the block that it sees.
    pub visible: &'a [Range<usize>],
    /// Largest score so far: `[queries]`; starts at [`QueryRows16::NO_SCORE`].
    pub score_max: &'a mut [f32],
    /// Sum of weights so far, of what they were rounded to: `[queries]`; starts at 0.
    pub weight_sum: &'a mut [f32],
    /// Weighted sum of values so far: `[queries][head_dim, padded]`; starts at 0.
    pub mixed: &'a mut [f32],
}

impl QueryRows16<'_> {
    /// Below every score, and finite, so that no difference of maxima is undefined.
    pub const NO_SCORE: f32 = QueryRows::NO_SCORE;
}

/// Lets the queries of `rows` attend to `block` too.
pub fn attend(level: Level, block: Block16<'_>, rows: QueryRows16<'_>) {
    let count = rows.visible.len();
    let dim = block.keys.len() / BLOCK_KEYS;
    let width = block.values.len() / BLOCK_KEYS;
    let strip = dim / 2 * STRIP_ROWS;
    assert_eq!(dim * BLOCK_KEYS, block.keys.len(), "keys that are no whole block");
    assert_eq!(width * BLOCK_KEYS, block.values.len(), "values that are no whole block");
    assert_eq!((dim % 2, width % PANEL_COLUMNS), (0, 0), "an odd or unpadded head");
    assert_eq!(rows.queries.len(), count.div_ceil(STRIP_ROWS) * strip, "strips of {count} queries");
    assert_eq!((rows.score_max.len(), rows.weight_sum.len()), (count, count), "state of queries");
    assert_eq!(rows.mixed.len(), count * width, "mixed values of {count} queries");
    level.run(AttendJob { dot: Dot::of(level), block, width, rows, wide: Wide::default() });
}

struct AttendJob<'a> {
    dot: Option<Dot>,
    block: Block16<'a>,
    /// Of a value row.
    width: usize,
    rows: QueryRows16<'a>,
    /// The block as f32, where there is no dot product.
    wide: Wide,
}

/// Keys and values of a block as f32, in the layouts of the pairs.
#[derive(Default)]
struct Wide {
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Job for AttendJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(mut self) {
        if self.dot.is_none() {
            self.wide.keys = wide::widened(self.block.keys, BLOCK_KEYS);
            self.wide.values = wide::widened(self.block.values, self.width);
        }
        let count = self.rows.visible.len();
        for strip in (0..count).step_by(STRIP_ROWS) {
            let end = count.min(strip + STRIP_ROWS);
            let mut first = strip;
            while let Some(run) = seeing(self.rows.visible, first..end) {
                first = run.end;
                self.attend::<I>(run);
            }
        }
    }
}

/// The first run of queries in `rows` that see a key.
fn seeing(visible: &[Range<usize>], rows: Range<usize>) -> Option<Range<usize>> {
    let first = rows.clone().find(|row| !visible[*row].is_empty())?;
    let end = (first..rows.end).find(|row| visible[*row].is_empty());
    Some(first..end.unwrap_or(rows.end))
}

impl AttendJob<'_> {
    /// Attends with a run of queries of one strip, all of which see a key.
    #[inline(always)]
    fn attend<I: Isa>(&mut self, run: Range<usize>) {
        let mut scores = [[0.0; BLOCK_KEYS]; STRIP_ROWS];
        self.scores::<I>(&run, &mut scores);
        for (scores, visible) in scores.iter_mut().zip(&self.rows.visible[run.clone()]) {
            hide(scores, visible);
        }
        let mut weights = [[0; KEY_PAIRS]; STRIP_ROWS];
        self.soften::<I>(&run, &mut scores[..run.len()], &mut weights[..run.len()]);
        self.mix::<I>(&run, &weights);
    }

    /// `scores = queries x keys`.
    #[inline(always)]
    fn scores<I: Isa>(&self, run: &Range<usize>, scores: &mut [[f32; BLOCK_KEYS]; STRIP_ROWS]) {
        let strip_len = self.block.keys.len() / KEY_ROW * STRIP_ROWS;
        let (strip, lane) = (run.start / STRIP_ROWS, run.start % STRIP_ROWS);
        let queries = &self.rows.queries[strip * strip_len..(strip + 1) * strip_len];
        let left = LeftWords::<1, STRIP_ROWS> { words: &queries[lane..], ahead: 0 };
        for first in (0..BLOCK_KEYS).step_by(PANEL_COLUMNS) {
            let values = scores.as_flattened_mut();
            let (stride, out) = (BLOCK_KEYS, Out { values, stride: BLOCK_KEYS, first });
            if let Some(dot) = self.dot {
                let right = RightPairs { values: self.block.keys, stride, first };
                dot.accumulate(left, run.len(), right, out);
            } else {
                let right = Right { values: &self.wide.keys, stride, first };
                wide::accumulate::<I, _, _>(left, run.len(), right, out);
            }
        }
    }

    /// Turns scores into weights relative to each query's new maximum, rounded (those that are
    /// hidden are exactly 0), and fades what was summed before.
    #[inline(always)]
    fn soften<I: Isa>(
        &mut self,
        run: &Range<usize>,
        scores: &mut [[f32; BLOCK_KEYS]],
        weights: &mut [[u32; KEY_PAIRS]],
    ) {
        let mut highest = [0.0; STRIP_ROWS];
        strip::highest(self.dot, scores, &mut highest);
        let mut fades = [0.0; STRIP_ROWS];
        for (at, row) in run.clone().enumerate() {
            let before = self.rows.score_max[row];
            let highest = larger(before, highest[at]);
            for score in &mut scores[at] {
                *score = exp::<I>(*score - highest);
            }
            self.rows.score_max[row] = highest;
            fades[at] = exp::<I>(before - highest);
            fade(fades[at], &mut self.rows.mixed[row * self.width..][..self.width]);
        }
        let mut sums = [0.0; STRIP_ROWS];
        strip::round(self.dot, scores, weights, &mut sums);
        let state = self.rows.weight_sum[run.clone()].iter_mut().zip(fades);
        for ((sum, fade), added) in state.zip(sums) {
            *sum = mul_add::<I>(*sum, fade, added);
        }
    }

    /// `mixed += weights x values`.
    #[inline(always)]
    fn mix<I: Isa>(&mut self, run: &Range<usize>, weights: &[[u32; KEY_PAIRS]; STRIP_ROWS]) {
        let left = LeftWords::<KEY_PAIRS, 1> { words: weights.as_flattened(), ahead: 0 };
        let mixed = &mut self.rows.mixed[run.start * self.width..run.end * self.width];
        for first in (0..self.width).step_by(PANEL_COLUMNS) {
            let (stride, out) =
                (self.width, Out { values: &mut *mixed, stride: self.width, first });
            if let Some(dot) = self.dot {
                let right = RightPairs { values: self.block.values, stride, first };
                dot.accumulate(left, run.len(), right, out);
            } else {
                let right = Right { values: &self.wide.values, stride, first };
                wide::accumulate::<I, _, _>(left, run.len(), right, out);
            }
        }
    }
}

/// Values of a key row: one pair of elements for each key.
const KEY_ROW: usize = 2 * BLOCK_KEYS;

/// Puts keys that are not visible below every score.
#[inline(always)]
fn hide(scores: &mut [f32; BLOCK_KEYS], visible: &Range<usize>) {
    if *visible != (0..BLOCK_KEYS) {
        for (key, score) in scores.iter_mut().enumerate() {
            *score = if visible.contains(&key) { *score } else { f32::NEG_INFINITY };
        }
    }
}

/// Multiplies a row; by 1, which most blocks ask for, nothing would change.
#[inline(always)]
fn fade(factor: f32, mixed: &mut [f32]) {
    if factor.to_bits() != 1.0_f32.to_bits() {
        for value in mixed {
            *value *= factor;
        }
    }
}

#[cfg(test)]
mod tests;
