//! Keys and values of one run of tokens, in pages of 64 absolute positions.
//!
//! A segment that starts inside a page holds that page's later slots only; the others stay zero.
//! Pages lie so that attention needs no rearranging: keys transposed, values padded to whole
//! panels. Segments are filled layer by layer while their step runs and immutable afterwards. What
//! belongs to 64 positions is one piece of memory, which slices share and the last of them frees.

use std::collections::TryReserveError;
use std::ops::Range;
use std::sync::Arc;

use actors::EngineError;

use super::kernels::BLOCK_KEYS;
use super::pack::Placed;
use super::page::{Page, PageBuffer, PageMut, PageShape};

/// Keys and values of a run of tokens.
#[derive(Debug)]
pub(super) struct Pages {
    shape: PageShape,
    start: usize,
    tokens: usize,
    /// One for each block of 64 positions: `[layers][kv_heads]` pages.
    blocks: Vec<Arc<PageBuffer>>,
}

impl Pages {
    /// Room for `tokens` positions from `start`, all zeros.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`] when the allocator has no room.
    pub(super) fn new(shape: PageShape, start: usize, tokens: usize) -> Result<Self, EngineError> {
        let count = (start + tokens).div_ceil(BLOCK_KEYS) - start / BLOCK_KEYS;
        let no_room = |_: TryReserveError| {
            let bytes = count * BLOCK_KEYS * shape.bytes_per_token();
            EngineError::OutOfMemory(format!(
                "{bytes} bytes for keys and values of {tokens} tokens"
            ))
        };
        // Asked for as a whole first, so that what cannot fit is refused before memory is touched.
        let bytes = (count * BLOCK_KEYS).saturating_mul(shape.bytes_per_token());
        Vec::<u8>::new().try_reserve_exact(bytes).map_err(no_room)?;
        let mut blocks = Vec::with_capacity(count);
        for _ in 0..count {
            let block = PageBuffer::zeros(shape, shape.layers * shape.kv_heads);
            blocks.push(Arc::new(block.map_err(no_room)?));
        }
        Ok(Self { shape, start, tokens, blocks })
    }

    /// First position.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Number of positions.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Number of its first page, counted from position 0.
    pub(super) fn first_block(&self) -> usize {
        self.start / BLOCK_KEYS
    }

    /// One page of one head.
    pub(super) fn block(&self, layer: usize, block: usize, head: usize) -> Page<'_> {
        let buffer = &self.blocks[block - self.first_block()];
        buffer.page(self.shape, layer * self.shape.kv_heads + head)
    }

    /// All pages of one layer, while the segment is being made: `[pages][kv_heads]`.
    #[expect(clippy::expect_used, reason = "nothing shares what is still being made")]
    pub(super) fn layer_mut(&mut self, layer: usize) -> Vec<PageMut<'_>> {
        let (shape, heads) = (self.shape, self.shape.kv_heads);
        let run = layer * heads..(layer + 1) * heads;
        let blocks = self.blocks.iter_mut();
        let blocks = blocks.map(|block| Arc::get_mut(block).expect("pages that nothing shares"));
        blocks.flat_map(|block| block.pages_mut(shape, run.clone())).collect()
    }

    /// Some of its tokens, cut at pages or at its ends, in the same memory.
    fn slice(&self, tokens: Range<usize>) -> Self {
        let (first, end) = (self.start + tokens.start, self.start + tokens.end);
        debug_assert!(tokens.start == 0 || first % BLOCK_KEYS == 0, "cut within a page");
        debug_assert!(tokens.end == self.tokens || end % BLOCK_KEYS == 0, "cut within a page");
        let base = self.first_block();
        let blocks = first / BLOCK_KEYS - base..end.div_ceil(BLOCK_KEYS) - base;
        let blocks = self.blocks[blocks].to_vec();
        Self { shape: self.shape, start: first, tokens: tokens.len(), blocks }
    }

    fn bytes(&self) -> usize {
        self.blocks.iter().map(|block| block.bytes()).sum()
    }
}

/// A finished run of keys and values, shared by its clones.
#[derive(Debug, Clone)]
pub struct CpuSegment(pub(super) Arc<Pages>);

impl actors::Segment for CpuSegment {
    fn tokens(&self) -> u32 {
        u32::try_from(self.0.tokens).unwrap_or(u32::MAX)
    }

    fn bytes(&self) -> u64 {
        self.0.bytes() as u64
    }

    fn slice(&self, tokens: Range<u32>) -> Self {
        Self(Arc::new(self.0.slice(tokens.start as usize..tokens.end as usize)))
    }
}

impl Placed for CpuSegment {
    type Shape = PageShape;

    fn shape(&self) -> PageShape {
        self.0.shape
    }

    fn ends(&self) -> (usize, usize) {
        (self.0.start, self.0.start + self.0.tokens)
    }

    fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::page::StoredAs;
    use super::*;

    const SHAPE: PageShape =
        PageShape { layers: 2, kv_heads: 3, head_dim: 40, stored: StoredAs::F32 };

    #[test]
    fn a_segment_holds_whole_pages_at_absolute_positions() {
        for (start, tokens, pages) in [(0, 64, 1), (0, 65, 2), (63, 1, 1), (63, 2, 2), (70, 58, 1)]
        {
            for stored in [StoredAs::F32, StoredAs::Bf16] {
                let shape = PageShape { stored, ..SHAPE };
                let segment = Pages::new(shape, start, tokens).unwrap();
                assert_eq!(segment.bytes(), pages * 64 * shape.bytes_per_token());
            }
        }
    }

    #[test]
    fn slices_share_memory_and_count_their_own_pages() {
        let page_bytes = 64 * SHAPE.bytes_per_token();
        let whole = Pages::new(SHAPE, 20, 200).unwrap();
        let (first, rest) = (whole.slice(0..108), whole.slice(108..200));
        assert_eq!((first.start(), first.tokens(), first.bytes()), (20, 108, 2 * page_bytes));
        assert_eq!((rest.start(), rest.tokens(), rest.bytes()), (128, 92, 2 * page_bytes));
        let shared = Arc::downgrade(&whole.blocks[0]);
        drop((whole, rest));
        assert_eq!(shared.strong_count(), 1, "what is left holds its own pages only");
        drop(first);
        assert_eq!(shared.strong_count(), 0);
    }

    #[test]
    fn too_large_a_segment_is_out_of_memory_and_no_abort() {
        let outcome = Pages::new(SHAPE, 0, 1 << 44);
        assert!(matches!(outcome, Err(EngineError::OutOfMemory(_))));
    }
}
