//! Keys and values of one run of tokens, on the device.

use std::ops::Range;
use std::sync::Arc;

use candle_core::{DType, Tensor};

use super::device::TensorDevice;
use crate::engine::pack::Placed;

/// Sizes that all segments of one model share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) struct HeldShape {
    pub(super) layers: usize,
    pub(super) kv_heads: usize,
    pub(super) head_dim: usize,
    pub(super) stored: DType,
}

impl HeldShape {
    /// Bytes of one position over all layers and heads.
    pub(super) fn bytes_per_token(self) -> usize {
        2 * self.layers * self.kv_heads * self.head_dim * self.stored.size_in_bytes()
    }
}

/// A finished run of keys and values on the device, shared by its clones.
#[derive(Debug, Clone)]
pub struct TensorSegment(Arc<Held>);

#[derive(Debug)]
struct Held {
    shape: HeldShape,
    start: usize,
    tokens: usize,
    /// `[layers, 2, kv_heads, tokens, head_dim]`: keys, then values.
    keys_values: Tensor,
    device: TensorDevice,
}

impl Drop for Held {
    /// The last clone goes on any thread: on that of the cache, as a rule.
    fn drop(&mut self) {
        self.device.enter();
    }
}

impl TensorSegment {
    /// A segment on `device` from position `start`; `keys_values` is
    /// `[layers, 2, kv_heads, tokens, head_dim]`.
    pub(super) fn new(
        shape: HeldShape,
        device: &TensorDevice,
        start: usize,
        keys_values: Tensor,
    ) -> Self {
        let (tokens, device) = (keys_values.dims()[3], device.clone());
        Self(Arc::new(Held { shape, start, tokens, keys_values, device }))
    }

    /// Keys and values of one layer: `[2, kv_heads, tokens, head_dim]`.
    pub(super) fn layer(&self, layer: usize) -> candle_core::Result<Tensor> {
        // A slice lies in the rows of the run that it was cut from.
        self.0.keys_values.get(layer)?.contiguous()
    }
}

impl actors::Segment for TensorSegment {
    fn tokens(&self) -> u32 {
        u32::try_from(self.0.tokens).unwrap_or(u32::MAX)
    }

    fn bytes(&self) -> u64 {
        (self.0.tokens * self.0.shape.bytes_per_token()) as u64
    }

    /// A view: on a device the memory of a run is freed with its last slice, not page by page, so what
    /// is held may be more than what is counted, by less than the tokens of a step a run.
    #[expect(clippy::expect_used, reason = "a range within the run")]
    fn slice(&self, tokens: Range<u32>) -> Self {
        let (first, len) = (tokens.start as usize, tokens.len());
        let view = self.0.keys_values.narrow(3, first, len).expect("a slice within its run");
        Self::new(self.0.shape, &self.0.device, self.0.start + first, view)
    }
}

impl Placed for TensorSegment {
    type Shape = HeldShape;

    fn shape(&self) -> HeldShape {
        self.0.shape
    }

    fn ends(&self) -> (usize, usize) {
        (self.0.start, self.0.start + self.0.tokens)
    }

    fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
