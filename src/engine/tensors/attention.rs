//! Attention: projections, rope, and the blocks' products over shared and own keys.
//!
//! The queries of all items of a block meet the keys of their shared prefix in one product for each
//! key/value head; each item meets its own keys in one entry of a batched product. Both kinds of
//! scores are softened together. Scores, weights and sums are `f32`, whatever keys and values are
//! stored as.

use candle_core::{DType, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::rotary_emb::rope_thd;

use super::blocks::Block;
use super::decoder::{Norm, multiply};
use super::masks::Sight;
use super::plan::{Kept, Plan, View};

/// Weights and sizes of a layer's attention.
#[derive(Debug)]
pub(super) struct TensorAttention {
    pub(super) heads: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    /// Factor on `q . k`, put into q.
    pub(super) scale: f32,
    /// Rows of q, k and v: `[(heads + 2 kv_heads) * head_dim, hidden]`.
    pub(super) qkv: Tensor,
    /// `[(heads + 2 kv_heads) * head_dim]`, of the type of `qkv`.
    pub(super) qkv_bias: Option<Tensor>,
    pub(super) q_norm: Option<Norm>,
    pub(super) k_norm: Option<Norm>,
    /// `[hidden, heads * head_dim]`.
    pub(super) out: Tensor,
}

/// What one call is about.
pub(super) struct Call<'a> {
    pub(super) layer: usize,
    pub(super) plan: &'a Plan<'a>,
    /// What this kind of layers sees.
    pub(super) view: &'a View,
}

/// Keys and values that blocks attend to, as `f32`.
struct Sources {
    /// Of the padded tokens: `[2, kv_heads, padded tokens, head_dim]`.
    own: Tensor,
    /// Of the end of the current group's prefix that is seen: `[2, kv_heads, tokens, head_dim]`.
    prefix: Option<Tensor>,
}

impl TensorAttention {
    /// `attention(input)`, `[tokens, hidden]` to `[tokens, hidden]`; keeps the keys and values of
    /// chunks in `kept`.
    pub(super) fn run(
        &self,
        call: &Call<'_>,
        input: &Tensor,
        kept: &Kept,
    ) -> candle_core::Result<Tensor> {
        let mut qkv = multiply(input, &self.qkv)?;
        if let Some(bias) = &self.qkv_bias {
            qkv = qkv.broadcast_add(bias)?;
        }
        let queries = self.queries(call, &qkv)?;
        let keys_values = self.keys_values(call, &qkv)?;
        kept.keep(call.layer, &keys_values)?;
        let mixed = self.mix(call, queries, &keys_values)?;
        let width = self.heads * self.head_dim;
        let mixed = mixed.transpose(0, 1)?.reshape((call.plan.tokens(), width))?;
        multiply(&mixed.to_dtype(input.dtype())?, &self.out)
    }

    /// Query heads that share a key/value head.
    fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Normed, turned and scaled: `[kv_heads, tokens, group * head_dim]`.
    fn queries(&self, call: &Call<'_>, qkv: &Tensor) -> candle_core::Result<Tensor> {
        let group = self.group();
        let queries = self.by_head(qkv, 0, group)?.to_dtype(DType::F32)?;
        let queries = turn(call.view, self.q_norm.as_ref(), &queries)?;
        (queries * f64::from(self.scale))?.flatten_from(2)
    }

    /// Normed, turned, and rounded to their stored type before anything attends to them:
    /// `[2, kv_heads, tokens, head_dim]`.
    fn keys_values(&self, call: &Call<'_>, qkv: &Tensor) -> candle_core::Result<Tensor> {
        let first = self.heads * self.head_dim;
        let keys = self.by_head(qkv, first, 1)?.to_dtype(DType::F32)?;
        let keys = turn(call.view, self.k_norm.as_ref(), &keys)?;
        let values = self.by_head(qkv, first + self.kv_heads * self.head_dim, 1)?;
        let pair = [keys.to_dtype(qkv.dtype())?.squeeze(2)?, values.squeeze(2)?];
        Tensor::stack(&pair, 0)
    }

    /// Columns of `qkv` from `first` on: `[kv_heads, tokens, heads of each, head_dim]`.
    fn by_head(&self, qkv: &Tensor, first: usize, heads: usize) -> candle_core::Result<Tensor> {
        let tokens = qkv.dims()[0];
        let columns = qkv.narrow(1, first, self.kv_heads * heads * self.head_dim)?;
        let columns = columns.reshape((tokens, self.kv_heads, heads, self.head_dim))?;
        columns.transpose(0, 1)?.contiguous()
    }

    /// The softmax-weighted values of every query: `[kv_heads, tokens, group * head_dim]`.
    fn mix(&self, call: &Call<'_>, queries: Tensor, new: &Tensor) -> candle_core::Result<Tensor> {
        let (plan, dim) = (call.plan, self.head_dim);
        let queries = plan.pad(queries, 1)?;
        let queries = queries.reshape((self.kv_heads, (), dim))?;
        let own = plan.pad(new.clone(), 2)?.to_dtype(DType::F32)?;
        let mut sources = Sources { own, prefix: None };
        let mut mixed = Vec::with_capacity(plan.blocks().len());
        let mut gathered = None;
        for block in plan.blocks() {
            if gathered != Some(block.group) {
                let prefix = plan.prefix(block.group);
                let from = call.view.first_seen(prefix.tokens());
                // The last group's goes before the next one's is made.
                sources.prefix = None;
                sources.prefix = prefix.gather(call.layer, from, new)?;
                gathered = Some(block.group);
            }
            mixed.push(self.attend(call, block, &queries, &sources)?);
        }
        let mixed = Tensor::cat(&mixed, 1)?;
        let mixed = mixed.reshape((self.kv_heads, (), self.group() * dim))?;
        plan.unpad(mixed, 1)
    }

    /// One block: `[kv_heads, rows * queries * group, head_dim]`.
    fn attend(
        &self,
        call: &Call<'_>,
        block: &Block,
        queries: &Tensor,
        sources: &Sources,
    ) -> candle_core::Result<Tensor> {
        let (masks, group) = (&call.view.masks, self.group());
        let (count, first) = (block.queries.len(), block.first + block.queries.start);
        let tokens = block.rows * count;
        let entries = self.kv_heads * block.rows;
        let sight = call.view.sight(block, call.plan.prefix(block.group).tokens());

        let queries = queries.narrow(1, first * group, tokens * group)?.contiguous()?;
        let beside = sources.own.narrow(2, first, tokens)?.contiguous()?;
        let beside = beside.reshape((2, entries, count, self.head_dim))?;
        let by_row = queries.reshape((entries, count * group, self.head_dim))?;
        let scores = scores(&by_row, &beside.get(0)?)?;
        let scores = hide(scores, masks.beside(count), (entries, count, group))?;
        let Some(before) = before(block, sight, sources)? else {
            let mixed = softmax_last_dim(&scores)?.matmul(&beside.get(1)?)?;
            return mixed.reshape((self.kv_heads, tokens * group, self.head_dim));
        };

        let scores = scores.reshape((self.kv_heads, tokens * group, count))?;
        let earlier = self::scores(&queries, &before.get(0)?)?;
        let earlier = hide(earlier, masks.before(sight), (entries, count, group))?;
        let earlier = earlier.reshape((self.kv_heads, tokens * group, sight.before))?;
        let joined = Tensor::cat(&[earlier, scores], 2)?;
        let weights = softmax_last_dim(&joined)?;
        drop(joined);
        let earlier = weights.narrow(2, 0, sight.before)?.contiguous()?;
        let earlier = earlier.matmul(&before.get(1)?)?;
        let own = weights.narrow(2, sight.before, count)?.contiguous()?;
        let own = own.reshape((entries, count * group, count))?.matmul(&beside.get(1)?)?;
        earlier + own.reshape((self.kv_heads, tokens * group, self.head_dim))?
    }
}

/// Norms (where the family does) and turns the last dimension of `[.., tokens, heads, head_dim]`.
fn turn(view: &View, norm: Option<&Norm>, heads: &Tensor) -> candle_core::Result<Tensor> {
    let normed = norm.map(|norm| norm.apply(heads)).transpose()?;
    rope_thd(normed.as_ref().unwrap_or(heads), &view.cosines, &view.sines)
}

/// Keys and values before a block's queries, `[2, kv_heads, sight.before, head_dim]`: the end of the
/// prefix, and of an item that is cut by queries its earlier tokens.
fn before(block: &Block, sight: Sight, sources: &Sources) -> candle_core::Result<Option<Tensor>> {
    let of_item = block.queries.start.min(sight.before);
    let of_prefix = sight.before - of_item;
    let mut parts = Vec::with_capacity(2);
    if let (Some(prefix), true) = (&sources.prefix, of_prefix > 0) {
        parts.push(prefix.narrow(2, prefix.dims()[2] - of_prefix, of_prefix)?);
    }
    if of_item > 0 {
        let first = block.first + block.queries.start - of_item;
        parts.push(sources.own.narrow(2, first, of_item)?);
    }
    if parts.is_empty() { Ok(None) } else { Tensor::cat(&parts, 2).map(Some) }
}

/// `queries x keys` for each entry: `[entries, queries, keys]`.
fn scores(queries: &Tensor, keys: &Tensor) -> candle_core::Result<Tensor> {
    queries.matmul(&keys.transpose(1, 2)?)
}

/// Puts a mask on the scores of these entries, queries and heads.
fn hide(
    scores: Tensor,
    mask: Option<&Tensor>,
    (entries, queries, group): (usize, usize, usize),
) -> candle_core::Result<Tensor> {
    let Some(mask) = mask else { return Ok(scores) };
    let shape = scores.shape().clone();
    let scores = scores.reshape((entries, queries, group, ()))?;
    scores.broadcast_add(mask)?.reshape(shape)
}
