//! Weights from their source to the device, one tensor at a time.
//!
//! A tensor is dropped on the host as soon as it is on the device, so the host never holds more than
//! one.

use candle_core::{DType, Tensor};

use super::attention::TensorAttention;
use super::decoder::{Norm, TensorDecoder, TensorLayer};
use super::device::{TensorDevice, load_error};
use super::head::TensorHead;
use crate::engine::LoadError;
use crate::engine::model::{Rope, check, tensor_count};
use crate::files::{DecoderConfig, TensorSource};

/// Reads tensors by name, checks their shapes, counts them, and brings them to the device.
struct Loader<'a> {
    config: &'a DecoderConfig,
    tensors: &'a dyn TensorSource,
    device: &'a TensorDevice,
    stored: DType,
    progress: &'a mut dyn FnMut(usize, usize),
    done: usize,
    total: usize,
}

impl TensorDecoder {
    /// Loads all weights, held as `stored`; `progress` is told tensors done and tensors in all.
    ///
    /// # Errors
    /// [`LoadError`] naming the tensor or the setting, or what the device refuses.
    pub(super) fn load(
        (config, tensors, device): (&DecoderConfig, &dyn TensorSource, &TensorDevice),
        stored: DType,
        labels_only: bool,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, LoadError> {
        check(config)?;
        let total = tensor_count(config);
        let loader = &mut Loader { config, tensors, device, stored, progress, done: 0, total };
        let DecoderConfig { vocab, hidden, tied, .. } = *config;
        let part = |name: &str| [(name.to_owned(), vocab)];
        let embedding = loader.matrix(hidden, &part("model.embed_tokens.weight"))?;
        let head = (!tied).then(|| loader.matrix(hidden, &part("lm_head.weight")));
        let weights = head.transpose()?.unwrap_or_else(|| embedding.clone());
        let layers = (0..config.layers).map(|index| loader.layer(index));
        let layers = layers.collect::<Result<_, _>>()?;
        let norm = loader.norm("model.norm.weight", hidden)?;
        // The thread that runs steps has a stream of its own.
        device.finish().map_err(|error| load_error(&error))?;
        Ok(Self {
            config: config.clone(),
            device: device.clone(),
            stored,
            embedding,
            layers,
            head: TensorHead { norm, weights, labels_only },
            rope: Rope::new(&config.rope, config.head_dim),
            rope_local: config.rope_local.as_ref().map(|rope| Rope::new(rope, config.head_dim)),
        })
    }
}

impl Loader<'_> {
    /// One matrix of these tensors' rows one below the other: names and rows.
    fn matrix(&mut self, depth: usize, parts: &[(String, usize)]) -> Result<Tensor, LoadError> {
        let rows = parts.iter().map(|(_, rows)| rows).sum::<usize>();
        let device = self.device.device();
        let matrix = Tensor::zeros((rows, depth), self.stored, device);
        let matrix = matrix.map_err(|error| load_error(&error))?;
        let mut first = 0;
        for (name, rows) in parts {
            let part = self.tensor(name, &[*rows, depth], self.stored)?;
            matrix.slice_set(&part, 0, first).map_err(|error| load_error(&error))?;
            first += rows;
        }
        Ok(matrix)
    }

    /// A tensor of this name on the device.
    fn tensor(&mut self, name: &str, shape: &[usize], stored: DType) -> Result<Tensor, LoadError> {
        let tensor = self.tensors.load(name)?;
        if tensor.shape != shape {
            let (name, expected) = (name.to_owned(), shape.to_vec());
            return Err(LoadError::Shape { name, found: tensor.shape, expected });
        }
        let on_device = Tensor::from_vec(tensor.values, shape, self.device.device());
        let on_device = on_device.and_then(|tensor| tensor.to_dtype(stored));
        self.done += 1;
        (self.progress)(self.done, self.total);
        on_device.map_err(|error| load_error(&error))
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<Norm, LoadError> {
        let weight = self.tensor(name, &[width], DType::F32)?;
        let shift = if self.config.norm_plus_one { 1.0 } else { 0.0 };
        let weight = (weight + shift).map_err(|error| load_error(&error))?;
        Ok(Norm { weight, eps: self.config.norm_eps })
    }

    fn layer(&mut self, index: usize) -> Result<TensorLayer, LoadError> {
        let DecoderConfig { hidden, intermediate, post_norms, .. } = *self.config;
        let name = |part: &str| format!("model.layers.{index}.{part}.weight");
        let (after_attention, before_mlp) = if post_norms {
            let norm = self.norm(&name("post_attention_layernorm"), hidden)?;
            (Some(norm), "pre_feedforward_layernorm")
        } else {
            (None, "post_attention_layernorm")
        };
        let after_mlp = post_norms.then(|| self.norm(&name("post_feedforward_layernorm"), hidden));
        let after_mlp = after_mlp.transpose()?;
        let gate_up = ["mlp.gate_proj", "mlp.up_proj"].map(|part| (name(part), intermediate));
        let is_full = (index + 1).is_multiple_of(self.config.sliding_pattern.max(1));
        Ok(TensorLayer {
            attention_norm: self.norm(&name("input_layernorm"), hidden)?,
            attention: self.attention(index)?,
            attention_post_norm: after_attention,
            mlp_norm: self.norm(&name(before_mlp), hidden)?,
            gate_up: self.matrix(hidden, &gate_up)?,
            down: self.matrix(intermediate, &[(name("mlp.down_proj"), hidden)])?,
            mlp_post_norm: after_mlp,
            window: self.config.sliding_window.filter(|_| !is_full),
        })
    }

    fn attention(&mut self, index: usize) -> Result<TensorAttention, LoadError> {
        let DecoderConfig { hidden, heads, kv_heads, head_dim, .. } = *self.config;
        let name = |part: &str| format!("model.layers.{index}.self_attn.{part}");
        let parts = [("q_proj", heads), ("k_proj", kv_heads), ("v_proj", kv_heads)];
        let weights = parts.map(|(part, heads)| (name(part) + ".weight", heads * head_dim));
        let qkv = self.matrix(hidden, &weights)?;
        let biases = parts.map(|(part, heads)| (name(part) + ".bias", heads * head_dim));
        let qkv_bias = self.config.qkv_bias.then(|| self.vector(&biases)).transpose()?;
        let norms = if self.config.qk_norm {
            let q_norm = self.norm(&name("q_norm.weight"), head_dim)?;
            (Some(q_norm), Some(self.norm(&name("k_norm.weight"), head_dim)?))
        } else {
            (None, None)
        };
        Ok(TensorAttention {
            heads,
            kv_heads,
            head_dim,
            scale: self.config.attention_scale,
            qkv,
            qkv_bias,
            q_norm: norms.0,
            k_norm: norms.1,
            out: self.matrix(heads * head_dim, &[(name("o_proj.weight"), hidden)])?,
        })
    }

    /// These tensors one after the other: names and widths.
    fn vector(&mut self, parts: &[(String, usize)]) -> Result<Tensor, LoadError> {
        let part = |(name, width): &(String, usize)| self.tensor(name, &[*width], self.stored);
        let parts = parts.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        Tensor::cat(&parts, 0).map_err(|error| load_error(&error))
    }
}
