//! Keys and values of one run of tokens, in pages of 64 absolute positions.
//!
//! A segment that starts inside a page holds that page's later slots only; the others stay zero.
//! Pages lie so that attention needs no rearranging: keys transposed, values padded to whole
//! panels. Segments are filled layer by layer while their step runs and immutable afterwards.

use std::sync::Arc;

use actors::EngineError;

use super::kernels::BLOCK_KEYS;
use super::pack::Placed;
use super::page::{Page, PageBuffer, PageMut, PageShape};

/// Keys and values of a run of tokens: `[layers][pages][kv_heads]` pages.
#[derive(Debug)]
pub(super) struct Pages {
    shape: PageShape,
    start: usize,
    tokens: usize,
    buffer: PageBuffer,
}

impl Pages {
    /// Room for `tokens` positions from `start`, all zeros.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`] when the allocator has no room.
    pub(super) fn new(shape: PageShape, start: usize, tokens: usize) -> Result<Self, EngineError> {
        let blocks = (start + tokens).div_ceil(BLOCK_KEYS) - start / BLOCK_KEYS;
        let buffer = PageBuffer::zeros(shape, shape.layers * blocks * shape.kv_heads);
        let buffer = buffer.map_err(|_| {
            let bytes = blocks * BLOCK_KEYS * shape.bytes_per_token();
            EngineError::OutOfMemory(format!(
                "{bytes} bytes for keys and values of {tokens} tokens"
            ))
        })?;
        Ok(Self { shape, start, tokens, buffer })
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
        let page = (block - self.first_block()) * self.shape.kv_heads + head;
        self.buffer.page(self.shape, layer * self.layer_pages() + page)
    }

    /// All pages of one layer: `[pages][kv_heads]`.
    pub(super) fn layer_mut(&mut self, layer: usize) -> Vec<PageMut<'_>> {
        let pages = self.layer_pages();
        self.buffer.pages_mut(self.shape, layer * pages..(layer + 1) * pages)
    }

    fn layer_pages(&self) -> usize {
        let blocks = (self.start + self.tokens).div_ceil(BLOCK_KEYS) - self.first_block();
        blocks * self.shape.kv_heads
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
        self.0.buffer.bytes() as u64
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
                assert_eq!(segment.buffer.bytes(), pages * 64 * shape.bytes_per_token());
            }
        }
    }

    #[test]
    fn too_large_a_segment_is_out_of_memory_and_no_abort() {
        let outcome = Pages::new(SHAPE, 0, 1 << 44);
        assert!(matches!(outcome, Err(EngineError::OutOfMemory(_))));
    }
}
