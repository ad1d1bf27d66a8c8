//! Where the keys and values of a block of 64 positions are, and gathering those that lie apart.

use std::ops::Range;

use actors::PathPart;

use super::Call;
use crate::engine::kernels::BLOCK_KEYS;
use crate::engine::pack::{Item, ItemKind};
use crate::engine::page::{Page, PageBuffer, PageMut, PageShape};
use crate::engine::segment::Pages;

/// Keys and values of the step's own tokens in this layer: `[kv_heads][tokens][head_dim]` each.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewKeys<'a> {
    pub(super) shape: PageShape,
    pub(super) tokens: usize,
    pub(super) keys: &'a [f32],
    pub(super) values: &'a [f32],
}

impl NewKeys<'_> {
    /// Copies what `item` has in `block` into a page of `head`.
    pub(super) fn copy(&self, item: &Item<'_>, block: usize, head: usize, page: &mut PageMut<'_>) {
        let dim = self.shape.head_dim;
        for position in overlap(block, item.start..item.end()) {
            let token = item.first + position - item.start;
            let number = (head * self.tokens + token) * dim..(head * self.tokens + token + 1) * dim;
            let slot = position - block * BLOCK_KEYS;
            page.write(slot, &self.keys[number.clone()], &self.values[number]);
        }
    }
}

/// One piece of what an item sees.
#[derive(Debug, Clone, Copy)]
enum Source<'a> {
    Pages(&'a Pages),
    /// The item's own tokens, not in pages.
    New,
}

/// The pieces of all items: for each, in ascending order, positions and where they are.
pub(super) struct Spans<'a> {
    layer: usize,
    new: NewKeys<'a>,
    pieces: Vec<Vec<(Range<usize>, Source<'a>)>>,
    /// Index of the item whose first token is at this place of the pack.
    by_first: Vec<usize>,
}

impl<'a> Spans<'a> {
    /// Follows the paths of all items of the step.
    pub(super) fn new(call: &Call<'a>, made: &'a [Pages], new: NewKeys<'a>) -> Self {
        let mut by_first = vec![0; call.pack.tokens()];
        for (index, item) in call.pack.items.iter().enumerate() {
            by_first[item.first] = index;
        }
        let pieces = call.pack.items.iter().map(|item| pieces(item, made)).collect();
        Self { layer: call.layer, new, pieces, by_first }
    }

    /// Keys and values of `block` as `item` sees them, gathered into `tile` where they lie apart.
    pub(super) fn block<'b>(
        &'b self,
        item: &Item<'_>,
        block: usize,
        head: usize,
        tile: &'b mut Option<PageBuffer>,
    ) -> Page<'b> {
        match self.pieces_in(item, block) {
            [(_, Source::Pages(pages))] => pages.block(self.layer, block, head),
            _ => self.gather(item, block, head, tile),
        }
    }

    /// The pieces of what `item` sees that lie in `block`. A long path has many, so they are not
    /// looked through one by one.
    fn pieces_in(&self, item: &Item<'_>, block: usize) -> &[(Range<usize>, Source<'a>)] {
        let pieces = &self.pieces[self.by_first[item.first]];
        let first = pieces.partition_point(|(span, _)| span.end <= block * BLOCK_KEYS);
        let count =
            pieces[first..].partition_point(|(span, _)| span.start < (block + 1) * BLOCK_KEYS);
        &pieces[first..first + count]
    }

    fn gather<'b>(
        &self,
        item: &Item<'_>,
        block: usize,
        head: usize,
        tile: &'b mut Option<PageBuffer>,
    ) -> Page<'b> {
        let shape = self.new.shape;
        // A fresh one each time: its other slots must be zeros, and it is a few KiB.
        let tile = tile.insert(PageBuffer::one(shape));
        let mut pages = tile.pages_mut(shape, 0..1);
        for (span, source) in self.pieces_in(item, block) {
            let positions = overlap(block, span.clone());
            match source {
                Source::New => self.new.copy(item, block, head, &mut pages[0]),
                Source::Pages(pages_of) => {
                    let slots = positions.start % BLOCK_KEYS..(positions.end - 1) % BLOCK_KEYS + 1;
                    pages[0].copy(pages_of.block(self.layer, block, head), slots);
                }
            }
        }
        drop(pages);
        tile.page(shape, 0)
    }
}

fn pieces<'a>(item: &Item<'a>, made: &'a [Pages]) -> Vec<(Range<usize>, Source<'a>)> {
    let pages =
        |pages: &'a Pages| (pages.start()..pages.start() + pages.tokens(), Source::Pages(pages));
    let path = item.path.iter().map(|part| match part {
        PathPart::Segment(segment) => pages(&segment.0),
        PathPart::Chunk(index) => pages(&made[*index]),
    });
    let own = match item.kind {
        ItemKind::Chunk(index) => pages(&made[index]),
        ItemKind::Row(_) => (item.start..item.end(), Source::New),
    };
    path.chain([own]).collect()
}

/// The positions of `span` that lie in `block`.
fn overlap(block: usize, span: Range<usize>) -> Range<usize> {
    let first = span.start.max(block * BLOCK_KEYS);
    first..span.end.min((block + 1) * BLOCK_KEYS).max(first)
}
