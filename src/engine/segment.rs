//! Keys and values of one run of tokens, in pages of 64 absolute positions.
//!
//! A segment that starts inside a page holds that page's later slots only; the others stay zero.
//! Pages lie so that attention needs no rearranging: keys transposed, values padded to whole
//! panels. Segments are filled layer by layer while their step runs and immutable afterwards.

use std::sync::Arc;

use actors::EngineError;

use super::kernels::{BLOCK_KEYS, Block, PANEL_COLUMNS};

/// What keys and values are stored as. Rounding to it happens before anything attends to them.
pub(super) type Stored = f32;

/// Sizes that all segments of one model share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageShape {
    pub(super) layers: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
}

impl PageShape {
    /// Width of a value row, padded to whole panels.
    pub(super) fn value_width(self) -> usize {
        self.head_dim.next_multiple_of(PANEL_COLUMNS)
    }

    /// Elements of one page of one head: keys `[head_dim][64]`, then values `[64][value width]`.
    pub(super) fn page_len(self) -> usize {
        BLOCK_KEYS * (self.head_dim + self.value_width())
    }

    /// Bytes of one position over all layers and heads, padding included.
    pub(super) fn bytes_per_token(self) -> usize {
        let per_head = (self.head_dim + self.value_width()) * size_of::<Stored>();
        self.layers * self.kv_heads * per_head
    }
}

/// Keys and values of a run of tokens: `[layers][pages][kv_heads][page]`.
#[derive(Debug)]
pub(super) struct Pages {
    shape: PageShape,
    start: usize,
    tokens: usize,
    values: Vec<Stored>,
}

impl Pages {
    /// Room for `tokens` positions from `start`, all zeros.
    ///
    /// # Errors
    /// [`EngineError::OutOfMemory`] when the allocator has no room.
    pub(super) fn new(shape: PageShape, start: usize, tokens: usize) -> Result<Self, EngineError> {
        let mut pages = Self { shape, start, tokens, values: Vec::new() };
        let len = shape.layers * pages.layer_len();
        let failed = |_| {
            let bytes = len * size_of::<Stored>();
            EngineError::OutOfMemory(format!(
                "{bytes} bytes for keys and values of {tokens} tokens"
            ))
        };
        pages.values.try_reserve_exact(len).map_err(failed)?;
        pages.values.resize(len, 0.0);
        Ok(pages)
    }

    /// First position.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Number of positions.
    pub(super) fn tokens(&self) -> usize {
        self.tokens
    }

    /// Sizes of its pages.
    pub(super) fn shape(&self) -> PageShape {
        self.shape
    }

    /// Number of its first page, counted from position 0.
    pub(super) fn first_block(&self) -> usize {
        self.start / BLOCK_KEYS
    }

    /// One page of one head.
    pub(super) fn block(&self, layer: usize, block: usize, head: usize) -> Block<'_> {
        let page = (block - self.first_block()) * self.shape.kv_heads + head;
        let first = layer * self.layer_len() + page * self.shape.page_len();
        let page = &self.values[first..first + self.shape.page_len()];
        let (keys, values) = page.split_at(BLOCK_KEYS * self.shape.head_dim);
        Block { keys, values }
    }

    /// All pages of one layer: `[pages][kv_heads][page]`.
    pub(super) fn layer_mut(&mut self, layer: usize) -> &mut [Stored] {
        let len = self.layer_len();
        &mut self.values[layer * len..(layer + 1) * len]
    }

    fn layer_len(&self) -> usize {
        let blocks = (self.start + self.tokens).div_ceil(BLOCK_KEYS) - self.first_block();
        blocks * self.shape.kv_heads * self.shape.page_len()
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
        size_of_val(self.0.values.as_slice()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: PageShape = PageShape { layers: 2, kv_heads: 3, head_dim: 40 };

    #[test]
    fn a_segment_holds_whole_pages_at_absolute_positions() {
        for (start, tokens, pages) in [(0, 64, 1), (0, 65, 2), (63, 1, 1), (63, 2, 2), (70, 58, 1)]
        {
            let segment = Pages::new(SHAPE, start, tokens).unwrap();
            assert_eq!(segment.values.len(), pages * 64 * SHAPE.bytes_per_token() / 4);
        }
    }

    #[test]
    fn too_large_a_segment_is_out_of_memory_and_no_abort() {
        let outcome = Pages::new(SHAPE, 0, 1 << 44);
        assert!(matches!(outcome, Err(EngineError::OutOfMemory(_))));
    }
}
