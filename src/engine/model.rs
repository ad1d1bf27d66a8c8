//! The decoder: embed, layers, norm, label rows of the head. One for all architectures.
//!
//! Differences between families are fields of [`DecoderConfig`]; no code below asks which family
//! it runs. A step's tokens go through each layer together: first the keys and values of all of
//! them, then attention, so that rows see the chunks of their own step.

mod attention;
mod awake;
mod head;
mod load;
mod mlp;
mod norm;
mod rope;

use actors::{EngineError, RowOutcome, Step, StepOutcome};
use rayon::prelude::*;

use crate::files::DecoderConfig;

use super::kernels::{Level, Operand, Precision, Product, Weights};
use super::pack::{ItemKind, Pack, PackLimits};
use super::page::{PageShape, StoredAs};
use super::segment::{CpuSegment, Pages};
use attention::{Attention, AttentionScratch};
use head::Head;
pub(super) use head::{Scale, read_row};
pub use load::LoadError;
pub(super) use load::{check, not_kept, tensor_count};
use mlp::{Mlp, MlpScratch};
use norm::Norm;
use rope::Angles;
pub(super) use rope::Rope;

/// A loaded model.
#[derive(Debug)]
pub(super) struct Decoder {
    config: DecoderConfig,
    precision: Precision,
    level: Level,
    pool: rayon::ThreadPool,
    /// One column a token; absent where the head's columns are the embedding.
    embedding: Option<Weights>,
    layers: Vec<Layer>,
    head: Head,
    rope: Rope,
    rope_local: Option<Rope>,
}

#[derive(Debug)]
struct Layer {
    attention_norm: Norm,
    attention: Attention,
    attention_post_norm: Option<Norm>,
    mlp_norm: Norm,
    mlp: Mlp,
    mlp_post_norm: Option<Norm>,
    /// Sliding window in tokens; `None` sees everything.
    window: Option<usize>,
}

/// Buffers of a step, kept from one to the next.
#[derive(Debug)]
pub(super) struct Scratch {
    /// The residual stream: `[tokens, hidden]`.
    stream: Vec<f32>,
    left: Operand,
    out: Product,
    attention: AttentionScratch,
    mlp: MlpScratch,
}

impl Scratch {
    /// Empty ones for products of this precision.
    pub(super) fn new(precision: Precision) -> Self {
        Self {
            stream: Vec::new(),
            left: Operand::new(precision),
            out: Product::default(),
            attention: AttentionScratch::default(),
            mlp: MlpScratch::new(precision),
        }
    }
}

/// Cosines and sines of a step's positions, for both kinds of layers.
struct StepAngles {
    full: Angles,
    local: Option<Angles>,
}

impl Decoder {
    /// Sizes of its segments.
    pub(super) fn page_shape(&self) -> PageShape {
        let DecoderConfig { layers, kv_heads, head_dim, .. } = self.config;
        PageShape { layers, kv_heads, head_dim, stored: StoredAs::under(self.precision) }
    }

    /// Runs one step.
    ///
    /// # Errors
    /// [`EngineError::Forward`] when the step breaks a rule, [`EngineError::OutOfMemory`] when its
    /// segments do not fit.
    pub(super) fn run(
        &self,
        step: &Step<CpuSegment>,
        context: usize,
        scratch: &mut Scratch,
    ) -> Result<StepOutcome<CpuSegment>, EngineError> {
        let started = std::time::Instant::now();
        let limits = PackLimits { shape: self.page_shape(), vocab: self.config.vocab, context };
        let pack = Pack::new(step, limits)?;
        let mut made = self.make_room(step, &pack)?;
        let rows = awake::install(&self.pool, || {
            self.forward(&pack, &mut made, scratch);
            self.read(step, &pack, &scratch.stream)
        });
        let chunks = made.into_iter().map(|pages| CpuSegment(pages.into())).collect();
        Ok(StepOutcome { chunks, rows, elapsed: started.elapsed() })
    }

    /// Empty pages for each chunk of the step, in its order.
    fn make_room(
        &self,
        step: &Step<CpuSegment>,
        pack: &Pack<'_>,
    ) -> Result<Vec<Pages>, EngineError> {
        let mut starts = vec![0; step.chunks.len()];
        for item in &pack.items {
            if let ItemKind::Chunk(index) = item.kind {
                starts[index] = item.start;
            }
        }
        let shape = self.page_shape();
        let sizes = step.chunks.iter().zip(starts);
        sizes.map(|(chunk, start)| Pages::new(shape, start, chunk.tokens.len())).collect()
    }

    /// Embeds all tokens and takes them through the layers; leaves them in `scratch.stream`.
    fn forward(&self, pack: &Pack<'_>, made: &mut [Pages], scratch: &mut Scratch) {
        self.embed(&pack.ids, &mut scratch.stream);
        let angles = StepAngles {
            full: self.rope.angles(&pack.positions),
            local: self.rope_local.as_ref().map(|rope| rope.angles(&pack.positions)),
        };
        for (index, layer) in self.layers.iter().enumerate() {
            let angles = match (&angles.local, layer.window) {
                (Some(local), Some(_)) => local,
                _ => &angles.full,
            };
            let (level, window) = (self.level, layer.window);
            let call = attention::Call { level, layer: index, window, pack, angles };
            self.layer(layer, &call, made, scratch);
        }
    }

    fn embed(&self, ids: &[u32], stream: &mut Vec<f32>) {
        let hidden = self.config.hidden;
        stream.resize(ids.len() * hidden, 0.0);
        stream.par_chunks_exact_mut(hidden).zip(ids).for_each(|(row, id)| {
            let table = self.embedding.as_ref().unwrap_or(&self.head.weights);
            table.read_column(*id as usize, row);
            for value in row {
                *value *= self.config.embedding_scale;
            }
        });
    }

    fn layer(
        &self,
        layer: &Layer,
        call: &attention::Call<'_>,
        made: &mut [Pages],
        scratch: &mut Scratch,
    ) {
        let Scratch { stream, left, out, attention, mlp } = scratch;
        layer.attention_norm.pack(self.level, stream, left);
        layer.attention.run(call, made, (left, attention, out));
        self.add(out, layer.attention_post_norm.as_ref(), stream);

        let hidden = self.config.hidden;
        for rows in stream.chunks_mut(mlp::ROWS_MAX * hidden) {
            layer.mlp_norm.pack(self.level, rows, left);
            layer.mlp.run(self.level, left, mlp, out);
            self.add(out, layer.mlp_post_norm.as_ref(), rows);
        }
    }

    /// Adds a product, normed where the family does so, to the residual stream.
    fn add(&self, product: &Product, norm: Option<&Norm>, stream: &mut [f32]) {
        let hidden = self.config.hidden;
        stream.par_chunks_exact_mut(hidden).with_min_len(8).enumerate().for_each_init(
            || vec![0.0; hidden],
            |addend, (row, stream)| {
                product.read_row(row, 0, addend);
                if let Some(norm) = norm {
                    norm.apply(self.level, addend);
                }
                for (value, addend) in stream.iter_mut().zip(&*addend) {
                    *value += addend;
                }
            },
        );
    }

    /// Reads out the rows of the step at their last tokens, in the step's order.
    fn read(
        &self,
        step: &Step<CpuSegment>,
        pack: &Pack<'_>,
        stream: &[f32],
    ) -> Vec<Result<RowOutcome, EngineError>> {
        let hidden = self.config.hidden;
        let mut last_states = vec![0.0; step.rows.len() * hidden];
        for item in &pack.items {
            if let ItemKind::Row(row) = item.kind {
                let last = item.last() - 1;
                last_states[row * hidden..][..hidden]
                    .copy_from_slice(&stream[last * hidden..][..hidden]);
            }
        }
        self.head.read(self.level, self.precision, &step.rows, &mut last_states)
    }
}
