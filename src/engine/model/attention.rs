//! Attention: projections, rope, keys and values into pages, and the walk over blocks.
//!
//! A task is a run of tokens of one group for one key/value head; the query heads that share it
//! are stacked. It walks the blocks of the group's path once for all its rows, then each item's
//! own blocks. Keys are walked in blocks of 64 absolute positions, ascending (D6 rule 3).

mod blocks;
mod task;

use rayon::prelude::*;

use super::norm::Norm;
use super::rope::Angles;
use crate::engine::kernels::{self, Level, Operand, Product, Weights};
use crate::engine::pack::{Item, ItemKind, Pack};
use crate::engine::page::PageShape;
use crate::engine::segment::Pages;
use blocks::{NewKeys, Spans};
use task::Task;

/// Weights and sizes of a layer's attention.
#[derive(Debug)]
pub(super) struct Attention {
    pub(super) heads: usize,
    pub(super) shape: PageShape,
    /// Factor on `q . k`, put into q.
    pub(super) scale: f32,
    /// Columns of q, k and v.
    pub(super) qkv: Weights,
    /// `[columns of qkv, padded]`.
    pub(super) qkv_bias: Option<Vec<f32>>,
    pub(super) q_norm: Option<Norm>,
    pub(super) k_norm: Option<Norm>,
    pub(super) out: Weights,
}

/// What one call is about.
pub(super) struct Call<'a> {
    pub(super) level: Level,
    pub(super) layer: usize,
    pub(super) window: Option<usize>,
    pub(super) pack: &'a Pack<'a>,
    /// Turns of the pack's positions.
    pub(super) angles: &'a Angles,
}

/// Buffers of attention.
#[derive(Debug, Default)]
pub(super) struct AttentionScratch {
    qkv: Product,
    /// `[kv_heads][tokens][group][head_dim]`: normed, turned, scaled.
    queries: Vec<f32>,
    /// `[kv_heads][tokens][head_dim]`: normed and turned.
    keys: Vec<f32>,
    /// `[kv_heads][tokens][head_dim]`.
    values: Vec<f32>,
    /// `[kv_heads][tokens][group][value width]`.
    mixed: Vec<f32>,
}

impl Attention {
    /// Query heads that share a key/value head.
    fn group(&self) -> usize {
        self.heads / self.shape.kv_heads
    }

    /// `out = attention(input)`; keeps the keys and values of chunks in `made`.
    pub(super) fn run(
        &self,
        call: &Call<'_>,
        made: &mut [Pages],
        (left, scratch, out): (&mut Operand, &mut AttentionScratch, &mut Product),
    ) {
        kernels::multiply(call.level, left, &self.qkv, self.qkv_bias.as_deref(), &mut scratch.qkv);
        self.split(call, scratch);
        self.keep(call, scratch, made);
        self.mix(call, scratch, made);
        self.pack_heads(call, &scratch.mixed, left);
        kernels::multiply(call.level, left, &self.out, None, out);
    }

    /// Takes q, k and v out of their product, normed and turned.
    fn split(&self, call: &Call<'_>, scratch: &mut AttentionScratch) {
        let (tokens, dim, group) = (call.pack.tokens(), self.shape.head_dim, self.group());
        let AttentionScratch { qkv, queries, keys, values, .. } = scratch;
        let qkv = &*qkv;
        queries.resize(tokens * self.heads * dim, 0.0);
        keys.resize(tokens * self.shape.kv_heads * dim, 0.0);
        values.resize(tokens * self.shape.kv_heads * dim, 0.0);
        let key_column = self.heads * dim;
        let value_column = key_column + self.shape.kv_heads * dim;

        queries.par_chunks_exact_mut(group * dim).with_min_len(8).enumerate().for_each(
            |(at, rows)| {
                let (head, token) = (at / tokens, at % tokens);
                qkv.read_row(token, head * group * dim, rows);
                for row in rows.chunks_exact_mut(dim) {
                    prepare(call.level, self.q_norm.as_ref(), (call.angles, token), row);
                    task::scale(row, self.scale);
                }
            },
        );
        let pairs = keys.par_chunks_exact_mut(dim).zip(values.par_chunks_exact_mut(dim));
        pairs.with_min_len(16).enumerate().for_each(|(at, (key, value))| {
            let (head, token) = (at / tokens, at % tokens);
            qkv.read_row(token, key_column + head * dim, key);
            prepare(call.level, self.k_norm.as_ref(), (call.angles, token), key);
            qkv.read_row(token, value_column + head * dim, value);
        });
    }

    /// Writes the chunks' keys and values into their pages of this layer.
    fn keep(&self, call: &Call<'_>, scratch: &AttentionScratch, made: &mut [Pages]) {
        let new = self.new_keys(call, scratch);
        for item in &call.pack.items {
            let ItemKind::Chunk(index) = item.kind else { continue };
            let pages = &mut made[index];
            let (first_block, kv_heads) = (pages.first_block(), self.shape.kv_heads);
            let layer = pages.layer_mut(call.layer).into_par_iter().enumerate();
            layer.for_each(|(number, mut page)| {
                new.copy(item, first_block + number / kv_heads, number % kv_heads, &mut page);
            });
        }
    }

    fn new_keys<'a>(&self, call: &Call<'_>, scratch: &'a AttentionScratch) -> NewKeys<'a> {
        let AttentionScratch { keys, values, .. } = scratch;
        NewKeys { shape: self.shape, tokens: call.pack.tokens(), keys, values }
    }

    /// The softmax-weighted values of every query.
    fn mix(&self, call: &Call<'_>, scratch: &mut AttentionScratch, made: &[Pages]) {
        let tokens = call.pack.tokens();
        let width = self.group() * self.shape.value_width();
        let mut mixed = std::mem::take(&mut scratch.mixed);
        mixed.resize(tokens * self.shape.kv_heads * width, 0.0);
        let new = self.new_keys(call, scratch);
        let spans = Spans::new(call, made, new);
        let mut rest = mixed.as_mut_slice();
        let mut tasks = Vec::new();
        for (head, items, range) in self.ranges(call.pack) {
            let (part, tail) = rest.split_at_mut(range.len() * width);
            rest = tail;
            let queries_width = self.group() * self.shape.head_dim;
            let first = (head * tokens + range.start) * queries_width;
            let queries = &scratch.queries[first..first + range.len() * queries_width];
            tasks.push((
                Task {
                    call,
                    spans: &spans,
                    shape: self.shape,
                    group: self.group(),
                    head,
                    items,
                    range,
                    queries,
                },
                part,
            ));
        }
        tasks.into_par_iter().with_max_len(1).for_each(|(task, mixed)| {
            task.run(mixed);
        });
        scratch.mixed = mixed;
    }

    /// The tasks' heads, groups of items and token ranges, in the order in which they lie in `mixed`.
    fn ranges<'a>(
        &self,
        pack: &'a Pack<'_>,
    ) -> impl Iterator<Item = (usize, &'a [Item<'a>], std::ops::Range<usize>)> {
        let tokens_max = (task::QUERIES_MAX / self.group()).max(1);
        let groups =
            move |head| pack.groups.iter().map(move |group| (head, &pack.items[group.clone()]));
        (0..self.shape.kv_heads).flat_map(groups).flat_map(move |(head, items)| {
            let (first, last) = (items[0].first, items[items.len() - 1].last());
            let starts = (first..last).step_by(tokens_max);
            starts.map(move |start| (head, items, start..last.min(start + tokens_max)))
        })
    }

    /// Makes the mixed values of all heads the left operand of the output projection.
    fn pack_heads(&self, call: &Call<'_>, mixed: &[f32], left: &mut Operand) {
        let (dim, width, group) = (self.shape.head_dim, self.shape.value_width(), self.group());
        let tokens = call.pack.tokens();
        left.fill(call.level, (tokens, self.heads * dim), |first, rows| {
            // Row-major rows: the heads of a token follow each other.
            for (number, out) in rows.chunks_exact_mut(dim).enumerate() {
                let (token, head) = (first + number / self.heads, number % self.heads);
                let from = (head / group * tokens + token) * group + head % group;
                out.copy_from_slice(&mixed[from * width..][..dim]);
            }
        });
    }
}

/// Norms (where the family does) and turns one head of a token.
fn prepare(level: Level, norm: Option<&Norm>, (angles, token): (&Angles, usize), head: &mut [f32]) {
    if let Some(norm) = norm {
        norm.apply(level, head);
    }
    angles.turn(token, head);
}
