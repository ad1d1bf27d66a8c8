//! Attention of a strip of queries over one block of 64 keys, by online softmax.
//!
//! Blocks come in ascending order of position. A query that sees no key of a block leaves it
//! unchanged to the last bit, so it does not matter which queries share a strip (D6 rule 3).

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::ops::Range;

use super::exponential::exp;
use super::portable::{Isa, Job, Left, Level, Out, Right, mul_add};
use super::product::PackedColumns;
use super::{BLOCK_KEYS, PANEL_COLUMNS, STRIP_ROWS};

/// Lanes in which a row's weights are summed, and its maximum is found.
const LANES: usize = 16;

/// Keys and values of 64 consecutive positions of one head.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// `[head_dim][BLOCK_KEYS]`: transposed, so that scores need no horizontal sums.
    pub keys: &'a [f32],
    /// `[BLOCK_KEYS][head_dim, padded to PANEL_COLUMNS]`.
    pub values: &'a [f32],
}

/// Up to [`STRIP_ROWS`] queries of one head, and how far their softmax has come.
#[derive(Debug)]
pub struct QueryRows<'a> {
    /// `[head_dim][STRIP_ROWS]`, already scaled.
    pub queries: &'a [f32],
    /// For each query the keys of the block that it sees.
    pub visible: &'a [Range<usize>],
    /// Largest score so far: `[queries]`; starts at [`QueryRows::NO_SCORE`].
    pub score_max: &'a mut [f32],
    /// Sum of weights so far: `[queries]`; starts at 0.
    pub weight_sum: &'a mut [f32],
    /// Weighted sum of values so far: `[queries][head_dim, padded]`; starts at 0.
    pub mixed: &'a mut [f32],
}

impl QueryRows<'_> {
    /// Below every score, and finite, so that no difference of maxima is undefined.
    pub const NO_SCORE: f32 = -1e30;
}

/// Lets the queries of `rows` attend to `block` too.
pub fn attend(level: Level, block: Block<'_>, rows: QueryRows<'_>) {
    level.run(AttendJob { block, rows });
}

struct AttendJob<'a> {
    block: Block<'a>,
    rows: QueryRows<'a>,
}

impl Job for AttendJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { block, rows } = self;
        let count = rows.visible.len();
        let mut weights = Weights([[0.0; BLOCK_KEYS]; STRIP_ROWS]);
        scores::<I>(block.keys, rows.queries, count, &mut weights);
        let mut fades = [0.0; STRIP_ROWS];
        for (row, scores) in weights.0.iter_mut().take(count).enumerate() {
            let visible = rows.visible[row].clone();
            let (max, sum) = (&mut rows.score_max[row], &mut rows.weight_sum[row]);
            fades[row] = soften::<I>(scores, visible, max, sum);
        }
        let width = rows.mixed.len() / count;
        for first in (0..width).step_by(PANEL_COLUMNS) {
            let right = Right { values: block.values, stride: width, first };
            mix::<I>(&weights, right, &fades[..count], rows.mixed);
        }
    }
}

/// `weights = queries x keys`.
#[inline(always)]
fn scores<I: Isa>(keys: &[f32], queries: &[f32], count: usize, weights: &mut Weights) {
    for first in (0..BLOCK_KEYS).step_by(PANEL_COLUMNS) {
        let right = Right { values: keys, stride: BLOCK_KEYS, first };
        let values = weights.0.as_flattened_mut();
        let out = Out { values, stride: BLOCK_KEYS, first };
        I::accumulate(&PackedColumns(queries), count, right, out);
    }
}

/// Turns one query's scores into weights relative to its new maximum; weights that are not visible
/// are exactly 0. Returns the factor by which what was summed before must fade.
#[inline(always)]
fn soften<I: Isa>(
    scores: &mut [f32; BLOCK_KEYS],
    visible: Range<usize>,
    score_max: &mut f32,
    weight_sum: &mut f32,
) -> f32 {
    if visible != (0..BLOCK_KEYS) {
        for (key, score) in scores.iter_mut().enumerate() {
            *score = if visible.contains(&key) { *score } else { f32::NEG_INFINITY };
        }
    }
    let mut lanes = [*score_max; LANES];
    for piece in scores.chunks_exact(LANES) {
        for (lane, score) in lanes.iter_mut().zip(piece) {
            *lane = if *score > *lane { *score } else { *lane };
        }
    }
    let highest =
        lanes.iter().copied().fold(*score_max, |max, lane| if lane > max { lane } else { max });
    let mut sums = [0.0; LANES];
    for piece in scores.chunks_exact_mut(LANES) {
        for (sum, score) in sums.iter_mut().zip(piece) {
            *score = exp::<I>(*score - highest);
            *sum += *score;
        }
    }
    let fade = exp::<I>(*score_max - highest);
    *score_max = highest;
    *weight_sum = mul_add::<I>(*weight_sum, fade, sums.iter().sum());
    fade
}

/// `mixed = mixed * fade + weights x values`, for one panel of the values' columns.
#[inline(always)]
fn mix<I: Isa>(weights: &Weights, right: Right<'_>, fades: &[f32], mixed: &mut [f32]) {
    let mut sums = [[0.0; PANEL_COLUMNS]; STRIP_ROWS];
    for ((row, sums), fade) in sums.iter_mut().enumerate().zip(fades) {
        let before = &mixed[row * right.stride + right.first..][..PANEL_COLUMNS];
        for (sum, before) in sums.iter_mut().zip(before) {
            *sum = before * fade;
        }
    }
    let out = Out { values: sums.as_flattened_mut(), stride: PANEL_COLUMNS, first: 0 };
    I::accumulate(weights, fades.len(), right, out);
    for (row, sums) in sums.iter().take(fades.len()).enumerate() {
        mixed[row * right.stride + right.first..][..PANEL_COLUMNS].copy_from_slice(sums);
    }
}

/// Scores, then weights, of a strip of queries: a left operand as it lies.
struct Weights([[f32; BLOCK_KEYS]; STRIP_ROWS]);

impl Left for Weights {
    #[inline(always)]
    fn column<const R: usize>(&self, k: usize, first: usize) -> [f32; R] {
        let mut column = [0.0; R];
        for (value, row) in column.iter_mut().zip(&self.0[first..first + R]) {
            *value = row[k];
        }
        column
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIM: usize = 8;

    /// A fixed, uneven pattern in -1..1.
    fn pattern(count: usize, step: usize) -> Vec<f32> {
        (0..count).map(|i| ((i * step + i * i) % 37) as f32 / 18.5 - 1.0).collect()
    }

    struct Query {
        max: [f32; 2],
        sum: [f32; 2],
        mixed: Vec<f32>,
    }

    impl Query {
        fn new() -> Self {
            let mixed = vec![0.0; 2 * PANEL_COLUMNS];
            Self { max: [QueryRows::NO_SCORE; 2], sum: [0.0; 2], mixed }
        }

        fn attend(&mut self, level: Level, block: Block<'_>, visible: &[Range<usize>]) {
            let queries = &pattern(DIM * STRIP_ROWS, 5);
            let (score_max, weight_sum) = (&mut self.max[..], &mut self.sum[..]);
            let mixed = &mut self.mixed[..];
            attend(level, block, QueryRows { queries, visible, score_max, weight_sum, mixed });
        }
    }

    #[test]
    fn two_blocks_give_the_softmax_of_all_visible_keys() {
        let (keys, values) = (pattern(DIM * 128, 3), pattern(PANEL_COLUMNS * 128, 7));
        let block = |index: usize| Block {
            keys: &keys[index * DIM * 64..][..DIM * 64],
            values: &values[index * PANEL_COLUMNS * 64..][..PANEL_COLUMNS * 64],
        };
        let queries = pattern(DIM * STRIP_ROWS, 5);
        for level in Level::all() {
            let mut query = Query::new();
            query.attend(level, block(0), &[3..64, 0..64]);
            query.attend(level, block(1), &[0..40, 0..41]);
            let key = |key: usize, d: usize| f64::from(block(key / 64).keys[d * 64 + key % 64]);
            let query_at = |d: usize| f64::from(queries[d * STRIP_ROWS]);
            let score = |at: usize| (0..DIM).map(|d| query_at(d) * key(at, d)).sum::<f64>();
            let total: f64 = (3..104).map(|key| score(key).exp()).sum();
            let value = |key: usize| f64::from(values[key * PANEL_COLUMNS + 5]);
            let expected: f64 = (3..104).map(|key| score(key).exp() / total * value(key)).sum();
            let found = f64::from(query.mixed[5] / query.sum[0]);
            assert!((found - expected).abs() < 1e-6, "{level:?}: {found}, not {expected}");
        }
    }

    #[test]
    fn a_block_without_a_visible_key_changes_nothing() {
        let (keys, values) = (pattern(DIM * 64, 3), pattern(PANEL_COLUMNS * 64, 7));
        let block = Block { keys: &keys, values: &values };
        for level in Level::all() {
            let mut query = Query::new();
            query.attend(level, block, &[0..0, 5..64]);
            assert_eq!((query.max[0], query.sum[0]), (QueryRows::NO_SCORE, 0.0));
            let before = (query.max, query.sum, query.mixed.clone());
            query.attend(level, block, &[0..0, 0..0]);
            assert_eq!(before, (query.max, query.sum, query.mixed));
        }
    }
}
