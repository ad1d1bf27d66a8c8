//! What lies before the items of one group: held segments and chunks of the same step, in order.

use std::ops::Range;

use actors::PathPart;
use candle_core::{DType, Tensor};

use super::segment::TensorSegment;
use crate::engine::pack::{ItemKind, Pack, Placed};

/// The keys and values of one path, piece by piece.
#[derive(Debug)]
pub(super) struct Prefix<'a> {
    /// Pieces with their positions, from 0 on without a gap.
    pieces: Vec<(Range<usize>, Source<'a>)>,
}

#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Held(&'a TensorSegment),
    /// Index in the pack of a chunk's first token.
    New(usize),
}

impl<'a> Prefix<'a> {
    /// The prefix of every group of `pack`, in its order.
    pub(super) fn of_groups(pack: &Pack<'a, TensorSegment>) -> Vec<Self> {
        let path = |group: &Range<usize>| pack.items[group.start].path;
        pack.groups.iter().map(|group| Self::new(path(group), pack)).collect()
    }

    fn new(path: &'a [PathPart<TensorSegment>], pack: &Pack<'a, TensorSegment>) -> Self {
        let piece = |part: &'a PathPart<TensorSegment>| match part {
            PathPart::Segment(segment) => {
                let (start, end) = segment.ends();
                Some((start..end, Source::Held(segment)))
            }
            PathPart::Chunk(index) => {
                let is_it = |kind| kind == ItemKind::Chunk(*index);
                let chunk = pack.items.iter().find(|item| is_it(item.kind))?;
                Some((chunk.start..chunk.end(), Source::New(chunk.first)))
            }
        };
        Self { pieces: path.iter().filter_map(piece).collect() }
    }

    /// Number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.pieces.last().map_or(0, |(positions, _)| positions.end)
    }

    /// Keys and values of one layer from position `from` on, as `f32`:
    /// `[2, kv_heads, tokens - from, head_dim]`; nothing where there are none.
    ///
    /// * `new`: those of the step's own tokens, `[2, kv_heads, tokens of the pack, head_dim]`.
    pub(super) fn gather(
        &self,
        layer: usize,
        from: usize,
        new: &Tensor,
    ) -> candle_core::Result<Option<Tensor>> {
        let mut gathered = Vec::new();
        for (positions, source) in &self.pieces {
            let start = positions.start.max(from);
            if start >= positions.end {
                continue;
            }
            let (skipped, count) = (start - positions.start, positions.end - start);
            gathered.push(match source {
                Source::Held(segment) => segment.layer(layer)?.narrow(2, skipped, count)?,
                Source::New(first) => new.narrow(2, first + skipped, count)?,
            });
        }
        if gathered.is_empty() {
            return Ok(None);
        }
        Tensor::cat(&gathered, 2)?.to_dtype(DType::F32).map(Some)
    }
}
