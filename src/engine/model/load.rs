//! Weights from their source into the layouts of the kernels, a few columns at a time.
//!
//! A matrix is never held in another form than that in which it stays: so memory does not rise above
//! what stays, and the time goes into dequantising and packing, not into pages that are cleared for
//! values which are dropped again.

mod check;
mod extent;

use std::ops::Range;

use thiserror::Error;

use super::{Decoder, Head, Layer, Level, Mlp, Norm, Rope};
use crate::engine::EngineOptions;
use crate::engine::kernels::{PANEL_COLUMNS, Precision, Weights};
use crate::engine::model::attention::Attention;
use crate::engine::packed::{PackedError, PackedReader, PackedWriter};
use crate::engine::page::{PageShape, StoredAs};
use crate::files::{DecoderConfig, FilesError, TensorSource};

pub(in crate::engine) use check::check;
pub(in crate::engine) use extent::tensor_count;

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
    /// The packed weights of an earlier start cannot be used.
    #[error("the packed weights cannot be used: {0}")]
    Packed(String),
    /// The device does not do what is asked of it.
    #[error("the device refuses: {0}")]
    Device(String),
    /// The threads could not be started.
    #[error("cannot start threads: {0}")]
    Threads(String),
}

impl Decoder {
    /// Loads and packs all weights; `progress` is told tensors done and tensors in all. What was
    /// packed comes back beside it, to be kept once the files are known to be good.
    ///
    /// # Errors
    /// [`LoadError`] naming the tensor or the setting.
    pub(in crate::engine) fn load(
        config: &DecoderConfig,
        tensors: &dyn TensorSource,
        options: &EngineOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(Self, Option<PackedWriter>), LoadError> {
        check(config)?;
        let pool = kernel_pool(options)?;
        let Some(packed) = &options.packed else {
            let origin = Origin::Files { tensors, writer: None };
            return Self::from_origin(config, options, (pool, origin), progress);
        };
        let precision = options.precision;
        let path = packed.folder.path(&packed.hash, precision);
        let _ = packed.folder.trim(&path).map_err(|error| not_kept(&error));
        let pool = match PackedReader::open(&packed.folder, &packed.hash, precision) {
            Ok(reader) => {
                let origin = Origin::Packed(reader);
                match Self::from_origin(config, options, (pool, origin), progress) {
                    Ok(loaded) => return Ok(loaded),
                    Err(error) => {
                        tracing::warn!("{} is packed anew: {error}", path.display());
                        kernel_pool(options)?
                    }
                }
            }
            Err(PackedError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => pool,
            Err(error) => {
                tracing::warn!("{} is packed anew: {error}", path.display());
                pool
            }
        };
        let writer =
            PackedWriter::create(packed, precision, extent::packed_bytes(config, precision));
        let writer = writer.map_err(|error| not_kept(&error)).ok();
        let origin = Origin::Files { tensors, writer };
        Self::from_origin(config, options, (pool, origin), progress)
    }

    fn from_origin(
        config: &DecoderConfig,
        options: &EngineOptions,
        (pool, origin): (rayon::ThreadPool, Origin<'_>),
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<(Self, Option<PackedWriter>), LoadError> {
        let precision = options.precision;
        let total = tensor_count(config);
        let loader =
            &mut Loader { config, precision, origin, pool: &pool, progress, done: 0, total };
        let (embedding, head_weights) = loader.embedding()?;
        let layers = (0..config.layers).map(|index| loader.layer(index));
        let layers = layers.collect::<Result<_, _>>()?;
        let norm = loader.norm("model.norm.weight", config.hidden)?;
        let writer = loader.finish()?;
        let labels_only = options.readout_rows_only;
        let decoder = Self {
            config: config.clone(),
            precision,
            level: options.level.unwrap_or_else(Level::detect),
            embedding,
            layers,
            head: Head { norm, weights: head_weights, labels_only },
            rope: Rope::new(&config.rope, config.head_dim),
            rope_local: config.rope_local.as_ref().map(|rope| Rope::new(rope, config.head_dim)),
            pool,
        };
        Ok((decoder, writer))
    }

    /// Instruction set in use.
    pub(in crate::engine) fn level(&self) -> Level {
        self.level
    }

    /// Bytes of all matrices held.
    pub(in crate::engine) fn weights_bytes(&self) -> u64 {
        let embedding = self.embedding.as_ref().map_or(0, Weights::bytes);
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

/// The threads of steps, which pack the weights too.
fn kernel_pool(options: &EngineOptions) -> Result<rayon::ThreadPool, LoadError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(options.threads.max(1))
        .thread_name(|index| format!("kernel-{index}"))
        .build()
        .map_err(|error| LoadError::Threads(error.to_string()))
}

/// Tells the log why the next start will pack again, and what changes that.
pub(in crate::engine) fn not_kept(error: &PackedError) {
    tracing::warn!(
        "packed weights are not kept: {error}; --home (DOCKET_HOME) says where they lie, \
         --packed-max 0 keeps none"
    );
}

/// Where weights come from.
enum Origin<'a> {
    /// The model's files, packed here, and kept for the next time where there is a writer.
    Files { tensors: &'a dyn TensorSource, writer: Option<PackedWriter> },
    /// What was packed before.
    Packed(PackedReader),
}

/// Part of a matrix: the tensor's name, its first column, its columns.
type Part = (String, usize, usize);

/// Reads tensors by name, checks their shapes and counts them.
struct Loader<'a> {
    config: &'a DecoderConfig,
    precision: Precision,
    origin: Origin<'a>,
    pool: &'a rayon::ThreadPool,
    progress: &'a mut dyn FnMut(usize, usize),
    done: usize,
    total: usize,
}

impl Loader<'_> {
    /// A matrix of so many columns that is packed from these parts.
    fn matrix(
        &mut self,
        (columns, depth): (usize, usize),
        parts: &[Part],
    ) -> Result<Weights, LoadError> {
        let name = &parts[0].0;
        if let Origin::Packed(reader) = &mut self.origin {
            let weights = reader.matrix(name, self.precision, (columns, depth))?;
            for _ in parts {
                self.count();
            }
            return Ok(weights);
        }
        let mut weights = Weights::zeros(self.precision, columns, depth);
        for (part, first, width) in parts {
            self.pack(&mut weights, part, *first..first + width)?;
        }
        self.keep(|writer| writer.matrix(name, &weights));
        Ok(weights)
    }

    /// A vector of this name.
    fn vector(&mut self, name: &str, width: usize) -> Result<Vec<f32>, LoadError> {
        if let Origin::Packed(reader) = &mut self.origin {
            let values = reader.vector(name, width)?;
            self.count();
            return Ok(values);
        }
        let values = self.tensor(name, &[width])?;
        self.keep(|writer| writer.vector(name, &values));
        Ok(values)
    }

    /// Fills columns of a matrix from a tensor that has a row for each, on the pool's threads.
    fn pack(
        &mut self,
        weights: &mut Weights,
        name: &str,
        columns: Range<usize>,
    ) -> Result<(), LoadError> {
        let depth = weights.depth();
        let tensors = self.source(name, &[columns.len(), depth])?;
        let read = |rows: Range<usize>, values: &mut Vec<f32>| {
            let shape = [rows.len(), depth];
            tensors.read_rows(name, rows, values)?;
            check_count(name, values.len(), &shape)
        };
        self.pool.install(|| weights.pack_from(&columns, read))?;
        self.count();
        Ok(())
    }

    fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, LoadError> {
        let values = self.source(name, shape)?.load(name)?.values;
        check_count(name, values.len(), shape)?;
        self.count();
        Ok(values)
    }

    /// The source of a tensor, which must have this shape.
    fn source(&self, name: &str, shape: &[usize]) -> Result<&dyn TensorSource, LoadError> {
        let Origin::Files { tensors, .. } = self.origin else {
            return Err(LoadError::Config(format!("{name} is not among the packed weights")));
        };
        let found = tensors.shape(name)?;
        if found == shape { Ok(tensors) } else { Err(misshapen(name, found, shape)) }
    }

    fn count(&mut self) {
        self.done += 1;
        (self.progress)(self.done, self.total);
    }

    /// Keeps something for the next start; a failure ends the keeping, not the loading.
    fn keep(&mut self, write: impl FnOnce(&mut PackedWriter) -> Result<(), PackedError>) {
        if let Origin::Files { writer: kept @ Some(_), .. } = &mut self.origin
            && let Some(writer) = kept
            && let Err(error) = write(writer)
        {
            not_kept(&error);
            *kept = None;
        }
    }

    /// Everything was read; gives back what was written, which has no name yet.
    fn finish(&mut self) -> Result<Option<PackedWriter>, LoadError> {
        match &mut self.origin {
            Origin::Files { writer, .. } => Ok(writer.take()),
            Origin::Packed(reader) => Ok(reader.finish().map(|()| None)?),
        }
    }

    /// The embedding where it is held apart, and the head.
    fn embedding(&mut self) -> Result<(Option<Weights>, Weights), LoadError> {
        let DecoderConfig { vocab, hidden, tied, .. } = *self.config;
        let name = if tied { "model.embed_tokens.weight" } else { "lm_head.weight" };
        let head = self.matrix((vocab, hidden), &[(name.to_owned(), 0, vocab)])?;
        let embedding = ("model.embed_tokens.weight".to_owned(), 0, vocab);
        let embedding = (!tied).then(|| self.matrix((vocab, hidden), &[embedding]));
        Ok((embedding.transpose()?, head))
    }

    fn layer(&mut self, index: usize) -> Result<Layer, LoadError> {
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
            attention: self.attention(index)?,
            attention_post_norm: after_attention,
            mlp_norm: self.norm(&name(before_mlp), hidden)?,
            mlp: self.mlp(index)?,
            mlp_post_norm: after_mlp.transpose()?,
            window: config.sliding_window.filter(|_| !is_full),
        })
    }

    fn attention(&mut self, index: usize) -> Result<Attention, LoadError> {
        let DecoderConfig { layers, hidden, heads, kv_heads, head_dim, .. } = *self.config;
        let prefix = format!("model.layers.{index}.self_attn");
        let part = |name: &str, first, heads| {
            (format!("{prefix}.{name}_proj.weight"), first * head_dim, heads * head_dim)
        };
        let columns = (heads + 2 * kv_heads) * head_dim;
        let parts = [
            part("q", 0, heads),
            part("k", heads, kv_heads),
            part("v", heads + kv_heads, kv_heads),
        ];
        let qkv = self.matrix((columns, hidden), &parts)?;
        let mut bias = vec![0.0; columns.next_multiple_of(PANEL_COLUMNS)];
        for (name, first, width) in parts.iter().filter(|_| self.config.qkv_bias) {
            let values = self.vector(&name.replace(".weight", ".bias"), *width)?;
            bias[*first..first + width].copy_from_slice(&values);
        }
        let norms = if self.config.qk_norm {
            let q_norm = self.norm(&format!("{prefix}.q_norm.weight"), head_dim)?;
            (Some(q_norm), Some(self.norm(&format!("{prefix}.k_norm.weight"), head_dim)?))
        } else {
            (None, None)
        };
        let out = part("o", 0, 0).0;
        Ok(Attention {
            heads,
            shape: PageShape {
                layers,
                kv_heads,
                head_dim,
                stored: StoredAs::under(self.precision),
            },
            scale: self.config.attention_scale,
            qkv,
            qkv_bias: self.config.qkv_bias.then_some(bias),
            q_norm: norms.0,
            k_norm: norms.1,
            out: self.matrix((hidden, heads * head_dim), &[(out, 0, hidden)])?,
        })
    }

    fn mlp(&mut self, index: usize) -> Result<Mlp, LoadError> {
        let DecoderConfig { hidden, intermediate, activation, .. } = *self.config;
        let name = |part: &str| format!("model.layers.{index}.mlp.{part}_proj.weight");
        let padded = intermediate.next_multiple_of(PANEL_COLUMNS);
        let parts = [(name("gate"), 0, intermediate), (name("up"), padded, intermediate)];
        let gate_up = self.matrix((padded + intermediate, hidden), &parts)?;
        let down = self.matrix((hidden, intermediate), &[(name("down"), 0, hidden)])?;
        Ok(Mlp { activation, gate_up, down })
    }

    fn norm(&mut self, name: &str, width: usize) -> Result<Norm, LoadError> {
        let mut weight = self.vector(name, width)?;
        if self.config.norm_plus_one {
            for value in &mut weight {
                *value += 1.0;
            }
        }
        Ok(Norm { weight, eps: self.config.norm_eps })
    }
}

fn check_count(name: &str, values: usize, shape: &[usize]) -> Result<(), LoadError> {
    let fits = values == shape.iter().product::<usize>();
    if fits { Ok(()) } else { Err(misshapen(name, vec![values], shape)) }
}

fn misshapen(name: &str, found: Vec<usize>, expected: &[usize]) -> LoadError {
    LoadError::Shape { name: name.to_owned(), found, expected: expected.to_vec() }
}

impl From<PackedError> for LoadError {
    fn from(error: PackedError) -> Self {
        Self::Packed(error.to_string())
    }
}
