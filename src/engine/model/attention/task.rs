//! One task of attention: the queries of a run of tokens, one key/value head, all their blocks.

use std::cell::RefCell;
use std::ops::Range;

use super::Call;
use super::blocks::Spans;
use crate::engine::kernels::bf16::{self, Block16, QueryRows16};
use crate::engine::kernels::{self, BLOCK_KEYS, Block, Level, QueryRows, STRIP_ROWS, write_lane};
use crate::engine::pack::Item;
use crate::engine::page::{Page, PageBuffer, PageShape, StoredAs};

/// Most queries of a task: enough to read each block once for many, few enough to share out work.
pub(super) const QUERIES_MAX: usize = 32 * STRIP_ROWS;

/// What a task works on.
pub(super) struct Task<'a> {
    pub(super) call: &'a Call<'a>,
    pub(super) spans: &'a Spans<'a>,
    pub(super) shape: PageShape,
    /// Query heads that share a key/value head.
    pub(super) group: usize,
    /// Key/value head.
    pub(super) head: usize,
    /// Items with one path; the task has a run of their tokens.
    pub(super) items: &'a [Item<'a>],
    /// Tokens, by their index in the pack.
    pub(super) range: Range<usize>,
    /// `[tokens][group][head_dim]`.
    pub(super) queries: &'a [f32],
}

/// Buffers of a task, one set a thread.
#[derive(Default)]
struct Buffers {
    strips: Strips,
    visible: Vec<Range<usize>>,
    score_max: Vec<f32>,
    weight_sum: Vec<f32>,
    tile: Option<PageBuffer>,
}

/// A walk's queries, in strips as the kernel of the stored type wants them.
#[derive(Default)]
struct Strips {
    /// `[strips][head_dim][STRIP_ROWS]`.
    f32: Vec<f32>,
    /// `[strips][head_dim / 2][STRIP_ROWS]` words of two.
    bf16: Vec<u32>,
}

thread_local! {
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

/// A run of a task's queries that walk the same blocks.
struct Walk<'a> {
    /// Queries, counted in the task.
    rows: Range<usize>,
    /// Whose blocks.
    item: &'a Item<'a>,
    blocks: Range<usize>,
}

impl Task<'_> {
    /// Fills `mixed`, `[tokens][group][value width]`.
    pub(super) fn run(&self, mixed: &mut [f32]) {
        BUFFERS.with_borrow_mut(|buffers| {
            let rows = self.range.len() * self.group;
            mixed.fill(0.0);
            buffers.score_max.clear();
            buffers.score_max.resize(rows, QueryRows::NO_SCORE);
            buffers.weight_sum.clear();
            buffers.weight_sum.resize(rows, 0.0);
            for walk in self.walks() {
                self.walk(&walk, buffers, mixed);
            }
            let width = self.shape.value_width();
            for (row, sum) in mixed.chunks_exact_mut(width).zip(&buffers.weight_sum) {
                scale(row, 1.0 / sum);
            }
        });
    }

    /// First the whole blocks of the shared path for all queries, then each item's own.
    fn walks(&self) -> Vec<Walk<'_>> {
        let shared = self.items[0].start / BLOCK_KEYS;
        let all = 0..self.range.len() * self.group;
        let mut walks = vec![Walk { rows: all, item: &self.items[0], blocks: 0..shared }];
        for item in self.items {
            let tokens = item.first.max(self.range.start)..item.last().min(self.range.end);
            if tokens.is_empty() {
                continue;
            }
            let last = self.call.pack.positions[tokens.end - 1] / BLOCK_KEYS;
            let first = tokens.start - self.range.start;
            let rows = first * self.group..(first + tokens.len()) * self.group;
            walks.push(Walk { rows, item, blocks: shared..last + 1 });
        }
        walks
    }

    fn walk(&self, walk: &Walk<'_>, buffers: &mut Buffers, mixed: &mut [f32]) {
        if walk.blocks.is_empty() {
            return;
        }
        let Buffers { strips, visible, score_max, weight_sum, tile } = buffers;
        let dim = self.shape.head_dim;
        let queries = &self.queries[walk.rows.start * dim..walk.rows.end * dim];
        match self.shape.stored {
            StoredAs::F32 => pack_strips(queries, dim, &mut strips.f32),
            StoredAs::Bf16 => pack_words(self.call.level, queries, dim, &mut strips.bf16),
        }
        let width = self.shape.value_width();
        let softmax = &mut Softmax {
            score_max: &mut score_max[walk.rows.clone()],
            weight_sum: &mut weight_sum[walk.rows.clone()],
            mixed: &mut mixed[walk.rows.start * width..walk.rows.end * width],
        };
        for index in walk.blocks.clone() {
            visible.clear();
            visible.extend(walk.rows.clone().map(|row| self.seen(self.position(row), index)));
            if visible.iter().all(Range::is_empty) {
                continue;
            }
            match self.spans.block(walk.item, index, self.head, tile) {
                Page::F32(block) => self.attend(block, &strips.f32, visible, softmax),
                Page::Bf16(block) => self.attend_words(block, &strips.bf16, visible, softmax),
            }
        }
    }

    /// Lets all strips of a walk attend to one block of `f32`.
    fn attend(
        &self,
        block: Block<'_>,
        strips: &[f32],
        visible: &[Range<usize>],
        softmax: &mut Softmax<'_>,
    ) {
        let width = self.shape.value_width();
        let strips = strips.chunks_exact(self.shape.head_dim * STRIP_ROWS);
        for ((strip, queries), visible) in strips.enumerate().zip(visible.chunks(STRIP_ROWS)) {
            if visible.iter().all(Range::is_empty) {
                continue;
            }
            let rows = strip * STRIP_ROWS..strip * STRIP_ROWS + visible.len();
            let rows = QueryRows {
                queries,
                visible,
                score_max: &mut softmax.score_max[rows.clone()],
                weight_sum: &mut softmax.weight_sum[rows.clone()],
                mixed: &mut softmax.mixed[rows.start * width..rows.end * width],
            };
            kernels::attend(self.call.level, block, rows);
        }
    }

    /// The same with one of bf16.
    fn attend_words(
        &self,
        block: Block16<'_>,
        queries: &[u32],
        visible: &[Range<usize>],
        softmax: &mut Softmax<'_>,
    ) {
        let rows = QueryRows16 {
            queries,
            visible,
            score_max: &mut *softmax.score_max,
            weight_sum: &mut *softmax.weight_sum,
            mixed: &mut *softmax.mixed,
        };
        bf16::attend(self.call.level, block, rows);
    }

    fn position(&self, row: usize) -> usize {
        self.call.pack.positions[self.range.start + row / self.group]
    }

    /// The keys of `block` that a query at `position` sees: not later ones, none out of its window.
    fn seen(&self, position: usize, block: usize) -> Range<usize> {
        let base = block * BLOCK_KEYS;
        let oldest = self.call.window.map_or(0, |window| (position + 1).saturating_sub(window));
        let first = oldest.saturating_sub(base).min(BLOCK_KEYS);
        let last = (position + 1).saturating_sub(base).min(BLOCK_KEYS);
        if first < last { first..last } else { 0..0 }
    }
}

/// How far the softmax of a walk's queries has come.
struct Softmax<'a> {
    /// `[queries]`.
    score_max: &'a mut [f32],
    /// `[queries]`.
    weight_sum: &'a mut [f32],
    /// `[queries][value width]`.
    mixed: &'a mut [f32],
}

/// Multiplies all values of a row.
pub(super) fn scale(row: &mut [f32], factor: f32) {
    for value in row {
        *value *= factor;
    }
}

/// Row-major `[rows, dim]` to `[strips][dim][STRIP_ROWS]`, missing rows as zeros.
fn pack_strips(rows: &[f32], dim: usize, strips: &mut Vec<f32>) {
    strips.clear();
    strips.resize((rows.len() / dim).next_multiple_of(STRIP_ROWS) * dim, 0.0);
    let chunks = rows.chunks(STRIP_ROWS * dim);
    for (strip, rows) in strips.chunks_exact_mut(STRIP_ROWS * dim).zip(chunks) {
        for (lane, row) in rows.chunks_exact(dim).enumerate() {
            write_lane(strip, lane, row.iter().copied());
        }
    }
}

/// The same into words of two bf16.
fn pack_words(level: Level, rows: &[f32], dim: usize, strips: &mut Vec<u32>) {
    let len = dim / 2 * STRIP_ROWS;
    strips.resize((rows.len() / dim).div_ceil(STRIP_ROWS) * len, 0);
    for (strip, rows) in strips.chunks_exact_mut(len).zip(rows.chunks(STRIP_ROWS * dim)) {
        bf16::fill(level, rows, dim, strip);
    }
}
