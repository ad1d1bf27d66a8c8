//! The decoder over tensors: embed, layers, norm, label rows of the head.
//!
//! The residual stream is `f32`; products have operands of the stored type. Differences between
//! families are fields of [`DecoderConfig`], as in the `cpu` engine.

use actors::{EngineError, RowOutcome, Step, StepOutcome};
use candle_core::{DType, Tensor};
use candle_nn::ops::rms_norm;

use super::attention::{Call, TensorAttention};
use super::blocks::{BlockLimits, Blocks};
use super::device::{TensorDevice, step_error};
use super::head::TensorHead;
use super::plan::{Kept, Plan, View};
use super::segment::{HeldShape, TensorSegment};
use crate::engine::model::Rope;
use crate::engine::pack::{ItemKind, Pack, PackLimits};
use crate::files::{Activation, DecoderConfig};

/// Rows that an MLP takes at a time, so that its widest activations are bounded.
const MLP_ROWS_MAX: usize = 4096;

/// A loaded model.
#[derive(Debug)]
pub(super) struct TensorDecoder {
    pub(super) config: DecoderConfig,
    pub(super) device: TensorDevice,
    /// What weights, keys and values are held as.
    pub(super) stored: DType,
    /// `[vocab, hidden]`; the head's too where they are tied.
    pub(super) embedding: Tensor,
    pub(super) layers: Vec<TensorLayer>,
    pub(super) head: TensorHead,
    pub(super) rope: Rope,
    pub(super) rope_local: Option<Rope>,
}

#[derive(Debug)]
pub(super) struct TensorLayer {
    pub(super) attention_norm: Norm,
    pub(super) attention: TensorAttention,
    pub(super) attention_post_norm: Option<Norm>,
    pub(super) mlp_norm: Norm,
    /// Gate rows, then up rows: `[2 intermediate, hidden]`.
    pub(super) gate_up: Tensor,
    /// `[hidden, intermediate]`.
    pub(super) down: Tensor,
    pub(super) mlp_post_norm: Option<Norm>,
    /// Sliding window in tokens; `None` sees everything.
    pub(super) window: Option<usize>,
}

/// An RMS norm in `f32`; `weight` is what values are multiplied by, whatever the file stores.
#[derive(Debug)]
pub(super) struct Norm {
    pub(super) weight: Tensor,
    pub(super) eps: f32,
}

impl Norm {
    /// Norms the last dimension.
    pub(super) fn apply(&self, tensor: &Tensor) -> candle_core::Result<Tensor> {
        rms_norm(tensor, &self.weight, self.eps)
    }
}

/// `[rows, depth] x [columns, depth]` to `[rows, columns]`.
pub(super) fn multiply(left: &Tensor, weights: &Tensor) -> candle_core::Result<Tensor> {
    left.matmul(&weights.t()?)
}

/// What a step gives: its chunks' segments and its rows' readings.
type Found = (Vec<TensorSegment>, Vec<Result<RowOutcome, EngineError>>);

impl TensorDecoder {
    /// Sizes of its segments.
    pub(super) fn shape(&self) -> HeldShape {
        let DecoderConfig { layers, kv_heads, head_dim, .. } = self.config;
        HeldShape { layers, kv_heads, head_dim, stored: self.stored }
    }

    /// Runs one step.
    ///
    /// # Errors
    /// [`EngineError::Forward`] when the step breaks a rule, [`EngineError::OutOfMemory`] when the
    /// device has no room, [`EngineError::Dead`] when it is gone.
    pub(super) fn run(
        &self,
        step: &Step<TensorSegment>,
        context: usize,
    ) -> Result<StepOutcome<TensorSegment>, EngineError> {
        let started = std::time::Instant::now();
        let limits = PackLimits { shape: self.shape(), vocab: self.config.vocab, context };
        let pack = Pack::new(step, limits)?;
        let (heads, scores_max) = (self.config.heads, self.device.scores_max());
        let blocks = Blocks::new(&pack, BlockLimits { heads, scores_max })?;
        let found = if pack.tokens() == 0 {
            Ok((Vec::new(), Vec::new()))
        } else {
            self.compute(step, &pack, blocks)
        };
        let (chunks, rows) = found.map_err(|error| step_error(&error))?;
        Ok(StepOutcome { chunks, rows, elapsed: started.elapsed() })
    }

    fn compute(
        &self,
        step: &Step<TensorSegment>,
        pack: &Pack<'_, TensorSegment>,
        blocks: Blocks,
    ) -> candle_core::Result<Found> {
        let device = self.device.device();
        let plan = Plan::new(pack, blocks, device)?;
        let kept = Kept::new(pack, self.shape(), device)?;
        let stream = self.forward(pack, &plan, &kept)?;
        let rows = self.read(step, pack, &stream)?;
        let chunks = kept.segments(&self.device)?;
        // Whoever drops a segment may do so on another thread, and on that thread's stream.
        self.device.finish()?;
        Ok((chunks, rows))
    }

    /// Embeds all tokens and takes them through the layers: `[tokens, hidden]`.
    fn forward(
        &self,
        pack: &Pack<'_, TensorSegment>,
        plan: &Plan<'_>,
        kept: &Kept,
    ) -> candle_core::Result<Tensor> {
        let device = self.device.device();
        let view = |rope, window| View::new(plan, &pack.positions, (rope, window), device);
        let full = view(&self.rope, None)?;
        let window = self.layers.iter().find_map(|layer| layer.window);
        let rope_local = self.rope_local.as_ref().unwrap_or(&self.rope);
        let local = window.map(|_| view(rope_local, window)).transpose()?;

        let mut stream = self.embed(&pack.ids)?;
        for (index, layer) in self.layers.iter().enumerate() {
            let view = local.as_ref().filter(|_| layer.window.is_some()).unwrap_or(&full);
            stream = self.layer(layer, &Call { layer: index, plan, view }, stream, kept)?;
        }
        Ok(stream)
    }

    fn embed(&self, ids: &[u32]) -> candle_core::Result<Tensor> {
        let ids = Tensor::new(ids, self.device.device())?;
        let rows = self.embedding.index_select(&ids, 0)?.to_dtype(DType::F32)?;
        rows * f64::from(self.config.embedding_scale)
    }

    fn layer(
        &self,
        layer: &TensorLayer,
        call: &Call<'_>,
        stream: Tensor,
        kept: &Kept,
    ) -> candle_core::Result<Tensor> {
        let input = layer.attention_norm.apply(&stream)?.to_dtype(self.stored)?;
        let product = layer.attention.run(call, &input, kept)?;
        let stream = add(stream, &product, layer.attention_post_norm.as_ref())?;

        let tokens = call.plan.tokens();
        let mut products = Vec::with_capacity(tokens.div_ceil(MLP_ROWS_MAX));
        for first in (0..tokens).step_by(MLP_ROWS_MAX) {
            let rows = stream.narrow(0, first, MLP_ROWS_MAX.min(tokens - first))?;
            let input = layer.mlp_norm.apply(&rows)?.to_dtype(self.stored)?;
            products.push(self.mlp(layer, &input)?);
        }
        add(stream, &Tensor::cat(&products, 0)?, layer.mlp_post_norm.as_ref())
    }

    /// `down(activation(gate(x)) * up(x))`.
    fn mlp(&self, layer: &TensorLayer, input: &Tensor) -> candle_core::Result<Tensor> {
        let width = self.config.intermediate;
        let gate_up = multiply(input, &layer.gate_up)?.to_dtype(DType::F32)?;
        let gate = gate_up.narrow(1, 0, width)?;
        let gate = match self.config.activation {
            Activation::Silu => gate.silu()?,
            // candle's `gelu` is the one by tanh.
            Activation::GeluTanh => gate.gelu()?,
        };
        let gated = (gate * gate_up.narrow(1, width, width)?)?;
        multiply(&gated.to_dtype(self.stored)?, &layer.down)
    }

    /// Reads out the rows of the step at their last tokens, in the step's order.
    fn read(
        &self,
        step: &Step<TensorSegment>,
        pack: &Pack<'_, TensorSegment>,
        stream: &Tensor,
    ) -> candle_core::Result<Vec<Result<RowOutcome, EngineError>>> {
        if step.rows.is_empty() {
            return Ok(Vec::new());
        }
        let mut lasts = vec![0; step.rows.len()];
        for item in &pack.items {
            if let (ItemKind::Row(row), Ok(last)) = (item.kind, u32::try_from(item.last() - 1)) {
                lasts[row] = last;
            }
        }
        let lasts = Tensor::new(lasts.as_slice(), self.device.device())?;
        self.head.read(&step.rows, &stream.index_select(&lasts, 0)?)
    }

    /// Bytes of all weights on the device.
    pub(super) fn weights_bytes(&self) -> u64 {
        let layers = self.layers.iter().flat_map(|layer| {
            [&layer.attention.qkv, &layer.attention.out, &layer.gate_up, &layer.down]
        });
        let head = (!self.config.tied).then_some(&self.head.weights);
        let matrices = layers.chain(head).chain([&self.embedding]);
        let bytes = |tensor: &Tensor| tensor.elem_count() * tensor.dtype().size_in_bytes();
        matrices.map(bytes).sum::<usize>() as u64
    }

    /// About the bytes of what steps of this many tokens hold beside weights and segments, at most.
    pub(super) fn scratch_bytes(&self, tokens: usize) -> u64 {
        let DecoderConfig { hidden, intermediate, heads, kv_heads, head_dim, context, .. } =
            self.config;
        let attention = 4 * (heads + 2 * kv_heads) * head_dim;
        let mlp = 4 * intermediate * tokens.min(MLP_ROWS_MAX);
        let scores = 3 * self.device.scores_max().min(heads * tokens * context);
        let numbers =
            tokens * (3 * hidden + attention) + mlp + scores + 2 * super::head::NUMBERS_MAX;
        (numbers * size_of::<f32>()) as u64
    }
}

/// Adds a product, normed where the family does so, to the residual stream.
fn add(stream: Tensor, product: &Tensor, norm: Option<&Norm>) -> candle_core::Result<Tensor> {
    let product = product.to_dtype(DType::F32)?;
    match norm {
        Some(norm) => stream + norm.apply(&product)?,
        None => stream + product,
    }
}
