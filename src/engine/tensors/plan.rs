//! What a step needs in every layer, made once: blocks, prefixes, index lists, turns and masks.

use candle_core::{DType, Device, Tensor};

use super::blocks::{Block, Blocks};
use super::device::TensorDevice;
use super::masks::{Masks, Sight};
use super::prefix::Prefix;
use super::segment::{HeldShape, TensorSegment};
use crate::engine::model::Rope;
use crate::engine::pack::{ItemKind, Pack};

/// A step as attention sees it.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    tokens: usize,
    blocks: Blocks,
    prefixes: Vec<Prefix<'a>>,
    /// The blocks' index lists on the device, unless they change nothing.
    padded: Option<(Tensor, Tensor)>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        pack: &Pack<'a, TensorSegment>,
        blocks: Blocks,
        device: &Device,
    ) -> candle_core::Result<Self> {
        let indices = |list: &[u32]| Tensor::new(list, device);
        let padded = if blocks.are_as_packed() {
            None
        } else {
            Some((indices(&blocks.padded)?, indices(&blocks.unpadded)?))
        };
        Ok(Self { tokens: pack.tokens(), blocks, prefixes: Prefix::of_groups(pack), padded })
    }

    /// Tokens of the step.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// In the order of their padded tokens, those of one group next to each other.
    pub(super) fn blocks(&self) -> &[Block] {
        &self.blocks.list
    }

    /// What lies before the items of a group.
    pub(super) fn prefix(&self, group: usize) -> &Prefix<'a> {
        &self.prefixes[group]
    }

    /// Takes dimension `dim` from the pack's tokens to the blocks' padded ones.
    pub(super) fn pad(&self, tensor: Tensor, dim: usize) -> candle_core::Result<Tensor> {
        match &self.padded {
            Some((padded, _)) => tensor.index_select(padded, dim),
            None => Ok(tensor),
        }
    }

    /// Takes it back.
    pub(super) fn unpad(&self, tensor: Tensor, dim: usize) -> candle_core::Result<Tensor> {
        match &self.padded {
            Some((_, unpadded)) => tensor.index_select(unpadded, dim),
            None => Ok(tensor),
        }
    }
}

/// What layers of one kind (with or without a sliding window) see in a step.
#[derive(Debug)]
pub(super) struct View {
    window: Option<usize>,
    /// Turns of the pack's positions: `[tokens, head_dim / 2]`.
    pub(super) cosines: Tensor,
    pub(super) sines: Tensor,
    pub(super) masks: Masks,
}

impl View {
    pub(super) fn new(
        plan: &Plan<'_>,
        positions: &[usize],
        (rope, window): (&Rope, Option<usize>),
        device: &Device,
    ) -> candle_core::Result<Self> {
        let (cosines, sines) = rope.angles(positions).cosines_and_sines();
        let turns = |values: Vec<f32>| Tensor::from_vec(values, (positions.len(), ()), device);
        let sights = plan.blocks().iter().map(|block| {
            let prefix = plan.prefix(block.group).tokens();
            sight(block, prefix, window)
        });
        let masks = Masks::new(sights, window, device)?;
        Ok(Self { window, cosines: turns(cosines)?, sines: turns(sines)?, masks })
    }

    /// The first position of a prefix of so many tokens that the token after it sees.
    pub(super) fn first_seen(&self, prefix: usize) -> usize {
        prefix - seen(prefix, self.window)
    }

    /// Where the queries of a block stand whose prefix has so many tokens.
    pub(super) fn sight(&self, block: &Block, prefix: usize) -> Sight {
        sight(block, prefix, self.window)
    }
}

fn sight(block: &Block, prefix: usize, window: Option<usize>) -> Sight {
    let before = seen(prefix + block.queries.start, window);
    Sight { queries: block.queries.len(), before }
}

/// How many of the `before` tokens ahead of a query it sees.
fn seen(before: usize, window: Option<usize>) -> usize {
    window.map_or(before, |window| before.min(window.saturating_sub(1)))
}

/// Keys and values of a step's chunks, filled layer by layer.
#[derive(Debug)]
pub(super) struct Kept {
    shape: HeldShape,
    /// `[layers, 2, kv_heads, tokens of all chunks, head_dim]`; absent in a step without chunks.
    buffer: Option<Tensor>,
    /// Which tokens of the pack these are, in the chunks' order, unless they are all of them.
    tokens: Option<Tensor>,
    /// Start and number of tokens of each chunk.
    chunks: Vec<(usize, usize)>,
}

impl Kept {
    /// Room for the chunks of `pack`.
    pub(super) fn new(
        pack: &Pack<'_, TensorSegment>,
        shape: HeldShape,
        device: &Device,
    ) -> candle_core::Result<Self> {
        let mut items: Vec<_> = pack
            .items
            .iter()
            .filter_map(|item| match item.kind {
                ItemKind::Chunk(index) => Some((index, item)),
                ItemKind::Row(_) => None,
            })
            .collect();
        items.sort_by_key(|(index, _)| *index);
        let chunks = items.iter().map(|(_, item)| (item.start, item.tokens.len())).collect();
        let tokens: Vec<usize> =
            items.iter().flat_map(|(_, item)| item.first..item.last()).collect();
        if tokens.is_empty() {
            return Ok(Self { shape, buffer: None, tokens: None, chunks });
        }
        let HeldShape { layers, kv_heads, head_dim, stored } = shape;
        let buffer = (layers, 2, kv_heads, tokens.len(), head_dim);
        let buffer = Tensor::zeros(buffer, stored, device)?;
        let are_all = tokens.iter().copied().eq(0..pack.tokens());
        let tokens: Vec<u32> = tokens.iter().filter_map(|at| u32::try_from(*at).ok()).collect();
        let tokens = (!are_all).then(|| Tensor::new(tokens.as_slice(), device)).transpose()?;
        Ok(Self { shape, buffer: Some(buffer), tokens, chunks })
    }

    /// Keeps what chunks have in `keys_values`, `[2, kv_heads, tokens of the pack, head_dim]`.
    pub(super) fn keep(&self, layer: usize, keys_values: &Tensor) -> candle_core::Result<()> {
        let Some(buffer) = &self.buffer else { return Ok(()) };
        let keys_values = match &self.tokens {
            Some(tokens) => keys_values.index_select(tokens, 2)?,
            None => keys_values.clone(),
        };
        buffer.slice_set(&keys_values.unsqueeze(0)?, 0, layer)
    }

    /// The chunks' segments, each with its storage for itself.
    pub(super) fn segments(self, device: &TensorDevice) -> candle_core::Result<Vec<TensorSegment>> {
        let Some(buffer) = &self.buffer else { return Ok(Vec::new()) };
        let mut first = 0;
        let mut segments = Vec::with_capacity(self.chunks.len());
        for (start, tokens) in &self.chunks {
            let keys_values = buffer.narrow(3, first, *tokens)?.contiguous()?;
            segments.push(TensorSegment::new(self.shape, device, *start, keys_values));
            first += tokens;
        }
        Ok(segments)
    }
}

/// Numbers as `f32` on the host.
pub(super) fn to_rows(tensor: &Tensor) -> candle_core::Result<Vec<Vec<f32>>> {
    tensor.to_dtype(DType::F32)?.to_vec2()
}
