//! A step's attention cut into blocks: what one pair of products covers, and how its rows are padded.
//!
//! The items of a group (one path) that are about as long are padded to the longest, so that each is
//! one entry of a batched product over its own keys, and no item's numbers reach another's. The
//! scores that a block holds at once are bounded: what would be more is cut by rows, then by queries.

use std::ops::Range;

use actors::EngineError;

use crate::engine::pack::{Item, Pack, Placed};

/// What one pair of products covers: some items of one group, or some queries of one item.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Number of its group in the pack.
    pub(super) group: usize,
    /// Items.
    pub(super) rows: usize,
    /// Padded index of the first token of the first item.
    pub(super) first: usize,
    /// Which tokens of each item ask; all of them where there is more than one item.
    pub(super) queries: Range<usize>,
}

/// All blocks of a step, and where its tokens lie in them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Blocks {
    /// In the order of their padded tokens.
    pub(super) list: Vec<Block>,
    /// Index in the pack of each padded token: `[padded tokens]`.
    pub(super) padded: Vec<u32>,
    /// Index among the padded tokens of each token of the pack: `[tokens]`.
    pub(super) unpadded: Vec<u32>,
}

/// What bounds a block.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockLimits {
    /// Query heads.
    pub(super) heads: usize,
    /// Most scores of one block; one query may have more.
    pub(super) scores_max: usize,
}

impl Blocks {
    /// Cuts the attention of `pack`.
    ///
    /// # Errors
    /// [`EngineError::Forward`] when the step has more tokens than an index can count.
    pub(super) fn new<S: Placed>(
        pack: &Pack<'_, S>,
        limits: BlockLimits,
    ) -> Result<Self, EngineError> {
        // Padding at most doubles them.
        if pack.tokens() > u32::MAX as usize / 2 {
            return Err(EngineError::Forward(format!("{} tokens in a step", pack.tokens())));
        }
        let unpadded = vec![0; pack.tokens()];
        let mut blocks = Self { list: Vec::new(), padded: Vec::new(), unpadded };
        for (group, range) in pack.groups.iter().enumerate() {
            let mut items: Vec<&Item<'_, S>> = pack.items[range.clone()].iter().collect();
            items.sort_by_key(|item| std::cmp::Reverse(item.tokens.len()));
            let mut rest = items.as_slice();
            while !rest.is_empty() {
                let (rows, tail) = rest.split_at(rows_of_block(rest, limits));
                blocks.add(group, rows, limits);
                rest = tail;
            }
        }
        Ok(blocks)
    }

    /// Whether padding changes nothing.
    pub(super) fn are_as_packed(&self) -> bool {
        self.padded.len() == self.unpadded.len()
            && self.padded.iter().enumerate().all(|(at, token)| at == *token as usize)
    }

    /// Adds items of one group, the longest first, as one block or, where one item is too much, by
    /// runs of its queries.
    fn add<S>(&mut self, group: usize, items: &[&Item<'_, S>], limits: BlockLimits) {
        let (first, width) = (self.padded.len(), items[0].tokens.len());
        for item in items {
            for packed in item.first..item.last() {
                self.unpadded[packed] = index(self.padded.len());
                self.padded.push(index(packed));
            }
            // Up to the width an item repeats its own last token, which nothing asks for.
            let width = self.padded.len() + width - item.tokens.len();
            self.padded.resize(width, index(item.last() - 1));
        }
        let queries = if items.len() > 1 { width } else { queries_of_block(items[0], limits) };
        for start in (0..width).step_by(queries) {
            let queries = start..width.min(start + queries);
            self.list.push(Block { group, rows: items.len(), first, queries });
        }
    }
}

/// How many of `items`, which are sorted by length, make the next block: those of more than half
/// the first one's length, as far as their scores are not too many.
fn rows_of_block<S>(items: &[&Item<'_, S>], limits: BlockLimits) -> usize {
    let width = items[0].tokens.len();
    let scores = limits.heads * width * (items[0].start + width);
    let most = (limits.scores_max / scores).max(1);
    items.iter().take(most).take_while(|item| 2 * item.tokens.len() > width).count()
}

/// How many queries of a single item make a block.
fn queries_of_block<S>(item: &Item<'_, S>, limits: BlockLimits) -> usize {
    (limits.scores_max / (limits.heads * item.end())).max(1)
}

/// Its `u32`; [`Blocks::new`] has refused what does not fit.
fn index(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
