//! Model files: what a GGUF file or a safetensors folder says about a model.
//!
//! This is the layer under both `engine` (which takes the configuration and the tensors) and
//! `prompt` (which takes the tokenizer's data and the chat template); neither reads a file itself.

mod check;
mod facts;
mod fingerprint;
mod folder;
mod gguf;
mod map;
mod nature;
mod printable;
mod regular;
mod witness;

pub use facts::PromptFacts;
pub use gguf::open_vocabulary;
pub(crate) use map::FileMap;
pub use nature::{FOREIGN_GGUF, Nature, nature};
pub(crate) use printable::Printable;
pub(crate) use regular::{regular, regular_if_there};
pub use witness::Witness;

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Opens a model: a `.gguf` file, or a folder with `config.json`, `tokenizer.json` and safetensors.
///
/// Reads headers only; every tensor that the decoder needs is known to be there, whole and of the
/// right shape when this returns.
///
/// # Errors
/// [`FilesError`], naming the file and what is wrong with it.
pub fn open(path: &Path) -> Result<ModelFiles, FilesError> {
    let metadata = std::fs::metadata(path).map_err(|error| FilesError::io(path, error))?;
    if metadata.is_dir() { folder::open(path) } else { gguf::open(path) }
}

/// Refuses a GGUF file of any architecture of which one weight is infinite or no number, for readers
/// that do not look. All of it is dequantised, a tensor a thread.
///
/// # Errors
/// [`FilesError`], naming the file and the tensor.
pub fn check_finite(path: &Path) -> Result<(), FilesError> {
    gguf::check_finite(path)
}

/// SHA-256 of all bytes of a model's weights, in lower-case hex.
///
/// # Errors
/// [`FilesError`] when a file cannot be read.
pub fn hash(path: &Path) -> Result<String, FilesError> {
    fingerprint::whole(path)
}

/// What prompts need of a model.
#[derive(Debug)]
pub struct PromptFiles {
    /// The tokenizer's data.
    pub tokenizer: TokenizerSource,
    /// Template and special tokens.
    pub prompt: PromptFacts,
    /// As [`ModelFiles::fingerprint`].
    pub fingerprint: String,
    /// Rows of the embedding, where the files say.
    pub rows: Option<usize>,
}

/// Opens what prompts need of a model whose architecture only the reference engine may know. A
/// folder's fingerprint covers `config.json` and the weight files' sizes.
///
/// # Errors
/// [`FilesError`], naming the file and what is wrong with it.
pub fn open_prompt(path: &Path) -> Result<PromptFiles, FilesError> {
    if path.is_dir() { folder::open_prompt(path) } else { gguf::open_prompt(path) }
}

/// What keys and values of one position are made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KvShape {
    /// Layers that have some.
    pub layers: u64,
    /// Heads of each.
    pub heads: u64,
    /// Numbers of a head.
    pub head_dim: u64,
}

impl KvShape {
    /// Bytes of keys and values of one position, in numbers of 16 bits.
    pub fn bytes_per_token(self) -> u64 {
        let numbers = self.layers.saturating_mul(self.heads).saturating_mul(self.head_dim);
        numbers.saturating_mul(2 * 2)
    }
}

/// The shape of keys and values by the usual settings of a model of any architecture; `None` where
/// they do not tell. No tensor is looked at.
///
/// # Errors
/// [`FilesError`] when the file cannot be read or is damaged.
pub fn kv_shape(path: &Path) -> Result<Option<KvShape>, FilesError> {
    if path.is_dir() { folder::kv_shape(path) } else { gguf::kv_shape(path) }
}

/// Architectures of the `cpu` engine. One decoder serves all; [`DecoderConfig`] has the differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// Llama 2/3, `SmolLM2` and their kin.
    Llama,
    /// Qwen2 and 2.5: biases on q, k and v.
    Qwen2,
    /// Qwen3: norms on q and k, no biases.
    Qwen3,
    /// Gemma 3: four norms a layer, scaled embedding, sliding windows, two rope bases.
    Gemma3,
}

/// How rope frequencies are stretched.
#[derive(Debug, Clone, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    None,
    /// Positions divided by this factor.
    Linear(f32),
    /// Each of the `head_dim / 2` frequencies divided by its own factor (llama 3's rule, or a
    /// GGUF file's `rope_freqs.weight`).
    PerFrequency(Vec<f32>),
}

/// One rope table.
#[derive(Debug, Clone, PartialEq)]
pub struct RopeConfig {
    /// Base of the frequencies.
    pub theta: f32,
    /// Stretch.
    pub scaling: RopeScaling,
}

/// The MLP's activation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// `x * sigmoid(x)`.
    Silu,
    /// Gelu by its tanh form.
    GeluTanh,
}

/// A dense decoder as data. Tensors go by their Hugging Face names and forms (half-split rope,
/// gemma norms stored as weight - 1), whatever file they came from.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one independent difference of a family")]
pub struct DecoderConfig {
    /// Which family.
    pub architecture: Architecture,
    /// Width of the residual stream.
    pub hidden: usize,
    /// Width of the MLP.
    pub intermediate: usize,
    /// Decoder layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key/value heads; divides `heads`.
    pub kv_heads: usize,
    /// Width of one head; even.
    pub head_dim: usize,
    /// Rows of the embedding.
    pub vocab: usize,
    /// Longest sequence in tokens.
    pub context: usize,
    /// Epsilon of all RMS norms.
    pub norm_eps: f32,
    /// Whether norm weights are stored as `weight - 1` (gemma).
    pub norm_plus_one: bool,
    /// Biases on q, k, v.
    pub qkv_bias: bool,
    /// RMS norms on each head of q and k.
    pub qk_norm: bool,
    /// Norms after attention and after the MLP, before the residual sum (gemma).
    pub post_norms: bool,
    /// Factor on the embedding, already rounded the way the family does; 1 for most.
    pub embedding_scale: f32,
    /// Factor on q . k.
    pub attention_scale: f32,
    /// MLP activation.
    pub activation: Activation,
    /// Whether the output head is the embedding.
    pub tied: bool,
    /// Rope of full-attention layers.
    pub rope: RopeConfig,
    /// Rope of sliding layers, where it differs.
    pub rope_local: Option<RopeConfig>,
    /// Sliding window in tokens: a query sees keys at distance less than this.
    pub sliding_window: Option<usize>,
    /// With a window: layer `i` is full attention iff `(i + 1) % pattern == 0`.
    pub sliding_pattern: usize,
}

/// A tensor on the host, dequantised: row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct HostTensor {
    /// Dimensions, outermost first.
    pub shape: Vec<usize>,
    /// `[product of shape]`.
    pub values: Vec<f32>,
}

/// Where tensors come from, by Hugging Face name (`model.layers.0.self_attn.q_proj.weight`) and
/// in Hugging Face form.
pub trait TensorSource: Send + Sync + fmt::Debug {
    /// Dimensions of a tensor, outermost first.
    ///
    /// # Errors
    /// [`FilesError`] naming file and tensor when it is missing.
    fn shape(&self, name: &str) -> Result<Vec<usize>, FilesError>;

    /// Dequantises some rows (of the outermost dimension) and appends them to `values`, so that a
    /// large tensor need not be in memory as a whole.
    ///
    /// # Errors
    /// [`FilesError`] naming file and tensor when it is missing or damaged, and when `rows` lies
    /// outside the tensor.
    fn read_rows(
        &self,
        name: &str,
        rows: Range<usize>,
        values: &mut Vec<f32>,
    ) -> Result<(), FilesError>;

    /// Dequantises one tensor as a whole.
    ///
    /// # Errors
    /// As [`TensorSource::read_rows`].
    fn load(&self, name: &str) -> Result<HostTensor, FilesError> {
        let shape = self.shape(name)?;
        let mut values = Vec::new();
        self.read_rows(name, 0..shape.first().copied().unwrap_or(0), &mut values)?;
        Ok(HostTensor { shape, values })
    }

    /// Whether a tensor is there.
    fn contains(&self, name: &str) -> bool {
        self.shape(name).is_ok()
    }
}

impl HostTensor {
    /// A copy of some rows of the outermost dimension; `None` outside the tensor.
    pub fn rows(&self, rows: Range<usize>) -> Option<Self> {
        let width: usize = self.shape.get(1..)?.iter().product();
        let values = self.values.get(rows.start * width..rows.end * width)?.to_vec();
        let mut shape = self.shape.clone();
        *shape.first_mut()? = rows.len();
        Some(Self { shape, values })
    }
}

fn rows_error(path: &Path, name: &str, rows: &Range<usize>) -> FilesError {
    FilesError::format(path, format!("tensor {name} has no rows {}..{}", rows.start, rows.end))
}

/// Refuses values of which one is infinite or no number: every answer would be too.
pub(crate) fn finite(path: &Path, name: &str, values: &[f32]) -> Result<(), FilesError> {
    // Without an early end, so that it compiles to a few instructions for many values.
    if values.iter().fold(true, |all, value| all & value.is_finite()) {
        return Ok(());
    }
    let found = values.iter().find(|value| !value.is_finite()).unwrap_or(&f32::NAN);
    let message = format!("tensor {name} is damaged: one of its values is {found}");
    Err(FilesError::format(path, message))
}

/// The tokenizer's data, before a tokenizer is built from it.
#[derive(Debug, Clone)]
pub enum TokenizerSource {
    /// From GGUF metadata.
    Gguf(Box<GgufVocabulary>),
    /// A `tokenizer.json`.
    Json(PathBuf),
}

/// `tokenizer.ggml.*` of a GGUF file.
#[derive(Debug, Clone, Default)]
pub struct GgufVocabulary {
    /// `model`: `gpt2` (byte-level BPE) or `llama` (sentencepiece).
    pub model: String,
    /// `pre`: which pre-tokenizer; absent in old files.
    pub pre: Option<String>,
    /// `tokens`.
    pub tokens: Vec<String>,
    /// `token_type`: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte.
    pub types: Vec<i32>,
    /// `scores` (sentencepiece).
    pub scores: Vec<f32>,
    /// `merges` (BPE).
    pub merges: Vec<String>,
    /// `add_space_prefix`.
    pub add_space_prefix: bool,
    /// Whether control tokens swallow the white space behind them, as phi 3's do. No key says so:
    /// llama.cpp goes by `general.name`.
    pub controls_strip: bool,
}

/// A model's files, opened.
#[derive(Debug)]
pub struct ModelFiles {
    /// Where they are.
    pub path: PathBuf,
    /// The network's shape.
    pub config: DecoderConfig,
    /// The tokenizer's data.
    pub tokenizer: TokenizerSource,
    /// Template and special tokens.
    pub prompt: PromptFacts,
    /// The tensors.
    pub tensors: Box<dyn TensorSource>,
    /// SHA-256 over what identifies the weights (names, shapes, types, sizes, header), hex; part of
    /// every segment key and fingerprint.
    pub fingerprint: String,
}

/// Why a model's files cannot be used.
#[derive(Debug, Error)]
pub enum FilesError {
    /// The file system said no.
    #[error("{}: {source}", Printable(.path.display()))]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is not what it should be.
    #[error("{}: {}", Printable(.path.display()), Printable(.message))]
    Format {
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        message: String,
    },
    /// An architecture, tensor type or tokenizer that is not supported.
    #[error("{}: {}", Printable(.path.display()), Printable(.message))]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What was found and what is supported.
        message: String,
    },
    /// A tensor is missing.
    #[error("{}: tensor {} is missing", Printable(.path.display()), Printable(.name))]
    MissingTensor {
        /// The file.
        path: PathBuf,
        /// Hugging Face name.
        name: String,
    },
}

impl FilesError {
    pub(crate) fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(crate) fn format(path: &Path, message: impl Into<String>) -> Self {
        Self::Format { path: path.to_owned(), message: message.into() }
    }

    pub(crate) fn unsupported(path: &Path, message: impl Into<String>) -> Self {
        Self::Unsupported { path: path.to_owned(), message: message.into() }
    }

    pub(crate) fn missing(path: &Path, name: &str) -> Self {
        Self::MissingTensor { path: path.to_owned(), name: name.to_owned() }
    }
}
