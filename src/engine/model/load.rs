//! Weights from their source into the layouts of the kernels, one tensor at a time.
//!
//! A tensor is dropped as soon as it is packed, and the largest (embedding and head) come first,
//! while little else is held: so memory never rises far above what stays.

use thiserror::Error;

use super::{Decoder, Head, Layer, Level, Mlp, Norm, Rope};
use crate::engine::EngineOptions;
use crate::engine::kernels::{PANEL_COLUMNS, Precision, Weights};
use crate::engine::model::attention::Attention;
use crate::engine::page::{PageShape, StoredAs};
use crate::files::{DecoderConfig, FilesError, RopeScaling, TensorSource};

/// Why a model cannot be loaded into the engine.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A tensor cannot be read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// A tensor does not have the shape that the configuration says.
    #[error("tensor {name} is {found:?}, expected {expected:?}")]
    Shape {
        /// Hugging Face name.
        name: String,
        /// What the file has.
        found: Vec<usize>,
        /// What the configuration says.
        expected: Vec<usize>,
    },
    /// The configuration contradicts itself or asks for what this engine cannot do.
    #[error("{0}")]
    Config(String),
    /// The threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
}

impl Decoder {
    /// Loads and packs all weights; `progress` is told tensors done and tensors in all.
    ///
    /// # Errors
    /// [`LoadError`] naming the tensor or the setting.
    pub(in crate::engine) fn load(
        config: &DecoderConfig,
        tensors: &dyn TensorSource,
        options: &EngineOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, LoadError> {
        check(config)?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads.max(1))
            .thread_name(|index| format!("kernel-{index}"))
            .build()
            .map_err(|error| LoadError::Threads(error.to_string()))?;
        let loader = &mut Loader {
            config,
            precision: options.precision,
            tensors,
            progress,
            done: 0,
            total: tensor_count(config),
        };
        // Packing runs on the same threads as the steps will.
        let (embedding, head_weights) = loader.embedding(&pool)?;
        let layers = (0..config.layers).map(|index| loader.layer(&pool, index));
        let layers = layers.collect::<Result<_, _>>()?;
        let norm = loader.norm("model.norm.weight", config.hidden)?;
        let labels_only = options.readout_rows_only;
        Ok(Self {
            config: config.clone(),
            precision: options.precision,
            level: options.level.unwrap_or_else(Level::detect),
            pool,
            embedding,
            layers,
            head: Head { norm, weights: head_weights, labels_only },
            rope: Rope::new(&config.rope, config.head_dim),
            rope_local: config.rope_local.as_ref().map(|rope| Rope::new(rope, config.head_dim)),
        })
    }

    /// Instruction set in use.
    pub(in crate::engine) fn level(&self) -> Level {
        self.level
    }

    /// Bytes of all matrices held.
    pub(in crate::engine) fn weights_bytes(&self) -> u64 {
        let embedding = self.embedding.as_deref().map_or(0, |table| size_of_val(table) as u64);
        let matrices = self.layers.iter().map(|layer| {
            let (attention, mlp) = (&layer.attention, &layer.mlp);
            let panels = [&attention.qkv, &attention.out, &mlp.gate_up, &mlp.down];
            panels.into_iter().map(Weights::bytes).sum::<u64>()
        });
        embedding + self.head.weights.bytes() + matrices.sum::<u64>()
    }

    /// Bytes of buffers for steps of this many tokens.
    pub(in crate::engine) fn scratch_bytes(&self, tokens: usize) -> u64 {
        let DecoderConfig { hidden, intermediate, heads, kv_heads, head_dim, .. } = self.config;
        let value_width = self.page_shape().value_width();
        let stream = 2 * hidden + hidden.max(heads * head_dim);
        let attention = 2 * (heads + 2 * kv_heads) * head_dim + heads * value_width;
        let mlp = 2 * intermediate * tokens.min(super::mlp::ROWS_MAX);
        ((tokens * (stream + attention) + mlp) * size_of::<f32>()) as u64
    }
}

/// Reads tensors by name, checks their shapes and counts them.
struct Loader<'a> {
    config: &'a DecoderConfig,
    precision: Precision,
    tensors: &'a dyn TensorSource,
    progress: &'a mut dyn FnMut(usize, usize),
    done: usize,
    total: usize,
}

impl Loader<'_> {
    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let tensor = self.tensors.load(name)?;
        if tensor.shape != shape || tensor.values.len() != shape.iter().product::<usize>() {
            let (found, expected) = (tensor.shape, shape.to_vec());
            return Err(LoadError::Shape { name: name.to_owned(), found, expected });
        }
        self.done += 1;
        (self.progress)(self.done, self.total);
        Ok(tensor.values)
    }

    /// The embedding where it is held apart, and the head.
    fn embedding(
        &mut self,
        pool: &rayon::ThreadPool,
    ) -> Result<(Option<Vec<f32>>, Weights), LoadError> {
        let DecoderConfig { vocab, hidden, tied, .. } = *self.config;
        let precision = self.precision;
        let head = if tied { "model.embed_tokens.weight" } else { "lm_head.weight" };
        let mut panels = Weights::zeros(precision, vocab, hidden);
        let weights = self.tensor(head, &[vocab, hidden])?;
        pool.install(|| panels.pack(0, &weights));
        drop(weights);
        let apart = (!tied).then(|| self.tensor("model.embed_tokens.weight", &[vocab, hidden]));
        Ok((apart.transpose()?, panels))
    }

    fn layer(&mut self, pool: &rayon::ThreadPool, index: usize) -> Result<Layer, LoadError> {
        let config = self.config;
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        let hidden = config.hidden;
        let (after_attention, before_mlp) = if config.post_norms {
            let norm = self.norm(&name("post_attention_layernorm"), hidden)?;
            (Some(norm), "pre_feedforward_layernorm")
        } else {
            (None, "post_attention_layernorm")
        };
        let after_mlp =
            config.post_norms.then(|| self.norm(&name("post_feedforward_layernorm"), hidden));
        let is_full = (index + 1).is_multiple_of(config.sliding_pattern.max(1));
        Ok(Layer {
            attention_norm: self.norm(&name("input_layernorm"), hidden)?,
            attention: self.attention(pool, index)?,
            attention_post_norm: after_attention,
            mlp_norm: self.norm(&name(before_mlp), hidden)?,
            mlp: self.mlp(pool, index)?,
            mlp_post_norm: after_mlp.transpose()?,
            window: config.sliding_window.filter(|_| !is_full),
        })
    }

    fn attention(
        &mut self,
        pool: &rayon::ThreadPool,
        index: usize,
    ) -> Result<Attention, LoadError> {
        let DecoderConfig { layers, hidden, heads, kv_heads, head_dim, .. } = *self.config;
        let precision = self.precision;
        let prefix = format!("model.layers.{index}.self_attn");
        let columns = (heads + 2 * kv_heads) * head_dim;
        let mut qkv = Weights::zeros(precision, columns, hidden);
        let mut bias = vec![0.0; columns.next_multiple_of(PANEL_COLUMNS)];
        let mut first = 0;
        for (part, part_heads) in [("q", heads), ("k", kv_heads), ("v", kv_heads)] {
            let width = part_heads * head_dim;
            let weights = self.tensor(&format!("{prefix}.{part}_proj.weight"), &[width, hidden])?;
            pool.install(|| qkv.pack(first, &weights));
            if self.config.qkv_bias {
                let part_bias = self.tensor(&format!("{prefix}.{part}_proj.bias"), &[width])?;
                bias[first..first + width].copy_from_slice(&part_bias);
            }
            first += width;
        }
        let norms = if self.config.qk_norm {
            let q_norm = self.norm(&format!("{prefix}.q_norm.weight"), head_dim)?;
            (Some(q_norm), Some(self.norm(&format!("{prefix}.k_norm.weight"), head_dim)?))
        } else {
            (None, None)
        };
        let mut out = Weights::zeros(precision, hidden, heads * head_dim);
        let weights =
            self.tensor(&format!("{prefix}.o_proj.weight"), &[hidden, heads * head_dim])?;
        pool.install(|| out.pack(0, &weights));
        Ok(Attention {
            heads,
            shape: PageShape { layers, kv_heads, head_dim, stored: StoredAs::under(precision) },
            scale: self.config.attention_scale,
            qkv,
            qkv_bias: self.config.qkv_bias.then_some(bias),
            q_norm: norms.0,
            k_norm: norms.1,
            out,
        })
    }

    fn mlp(&mut self, pool: &rayon::ThreadPool, index: usize) -> Result<Mlp, LoadError> {
        let DecoderConfig { hidden, intermediate, activation, .. } = *self.config;
        let precision = self.precision;
        let name = |part: &str| format!("model.layers.{index}.mlp.{part}_proj.weight");
        let padded = intermediate.next_multiple_of(PANEL_COLUMNS);
        let mut gate_up = Weights::zeros(precision, padded + intermediate, hidden);
        for (part, first) in [("gate", 0), ("up", padded)] {
            let weights = self.tensor(&name(part), &[intermediate, hidden])?;
            pool.install(|| gate_up.pack(first, &weights));
        }
        let mut down = Weights::zeros(precision, hidden, intermediate);
        let weights = self.tensor(&name("down"), &[hidden, intermediate])?;
        pool.install(|| down.pack(0, &weights));
        Ok(Mlp { activation, gate_up, down })
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<Norm, LoadError> {
        let mut weight = self.tensor(name, &[width])?;
        if self.config.norm_plus_one {
            for value in &mut weight {
                *value += 1.0;
            }
        }
        Ok(Norm { weight, eps: self.config.norm_eps })
    }
}

/// Tensors that a configuration has.
fn tensor_count(config: &DecoderConfig) -> usize {
    let mut per_layer = 9;
    for (has, count) in [(config.qkv_bias, 3), (config.qk_norm, 2), (config.post_norms, 2)] {
        per_layer += if has { count } else { 0 };
    }
    config.layers * per_layer + if config.tied { 2 } else { 3 }
}

fn check(config: &DecoderConfig) -> Result<(), LoadError> {
    let DecoderConfig { hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, .. } =
        *config;
    let wrong = |what: String| Err(LoadError::Config(what));
    let sizes = [hidden, intermediate, layers, heads, kv_heads, head_dim, vocab, config.context];
    if sizes.contains(&0) {
        return wrong(format!("a size of the model is 0: {config:?}"));
    }
    if !heads.is_multiple_of(kv_heads) {
        return wrong(format!("{kv_heads} key/value heads do not divide {heads} heads"));
    }
    if !head_dim.is_multiple_of(2) {
        return wrong(format!("the head width {head_dim} is odd"));
    }
    for rope in [Some(&config.rope), config.rope_local.as_ref()].into_iter().flatten() {
        if let RopeScaling::PerFrequency(factors) = &rope.scaling
            && factors.len() != head_dim / 2
        {
            return wrong(format!(
                "{} rope factors for {} frequencies",
                factors.len(),
                head_dim / 2
            ));
        }
    }
    Ok(())
}
