//! The engines that run a model: `cpu`, our own decoder, `cuda`, the same decoder on candle tensors,
//! and `reference`, candle-transformers'. The `remote` engine asks other servers that do.
//!
//! They implement [`actors::Engine`] and know no question; only the remote one knows JSON. The `cpu`
//! engine keeps keys and values of shared prefixes in segments, and gives a read the same bytes whoever
//! shares its step (ARCHITECTURE D6). The `cuda` engine shares as much, without that promise. The
//! `reference` engine shares nothing; it is the oracle of the golden tests and serves dense
//! architectures that the others do not know.

pub mod fake;
pub mod kernels;
mod model;
mod pack;
mod packed;
mod page;
pub mod reference;
pub mod remote;
mod segment;
mod tensors;
mod thread;

use actors::{Caps, Completion, Engine, EngineError, Step};

use crate::files::{DecoderConfig, TensorSource, Witness};

use kernels::{Level, Precision};
pub use model::LoadError;
use model::{Decoder, Scratch};
pub use packed::PackedFolder;
use packed::PackedWriter;
pub use reference::ReferenceEngine;
pub use segment::CpuSegment;
pub use tensors::{DeviceFacts, TensorDevice, TensorEngine, TensorSegment};
use thread::EngineThread;

/// How an engine is to be run.
#[derive(Debug, Clone)]
pub struct EngineOptions {
    /// Threads of the kernels; 0 counts as 1.
    pub threads: usize,
    /// Longest prompt in tokens; the model's own limit where absent or lower.
    pub context_tokens: Option<u32>,
    /// Most tokens of one step.
    pub step_tokens_max: u32,
    /// Tokens of a usual step: what [`Memory::scratch_bytes`] is stated for.
    pub step_tokens_usual: u32,
    /// Most rows of one step.
    pub rows_max: u32,
    /// Reads only the labels' rows of the output matrix: no label mass, and the log-probabilities
    /// are relative to the labels (`--readout rows`).
    pub readout_rows_only: bool,
    /// What matrix products are computed in, and keys and values stored as.
    pub precision: Precision,
    /// Where the packed weights of earlier starts are looked for and kept; nowhere where absent.
    pub packed: Option<Packed>,
    /// Instruction set of the kernels; the CPU's best where absent.
    pub level: Option<Level>,
}

/// Packed weights of one model on disk.
#[derive(Debug, Clone)]
pub struct Packed {
    /// Where they lie.
    pub folder: PackedFolder,
    /// SHA-256 of all bytes of the model's files, see [`crate::files::hash`].
    pub hash: String,
    /// What these files were before they were hashed and opened.
    pub witness: Witness,
}

impl Default for EngineOptions {
    fn default() -> Self {
        Self {
            threads: 1,
            context_tokens: None,
            step_tokens_max: 2048,
            step_tokens_usual: 512,
            rows_max: 256,
            readout_rows_only: false,
            precision: Precision::F32,
            packed: None,
            level: None,
        }
    }
}

/// Bytes that an engine takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Weights.
    pub weights_bytes: u64,
    /// Buffers of a step of [`EngineOptions::step_tokens_usual`].
    pub scratch_bytes: u64,
    /// Keys and values of one token position.
    pub kv_bytes_per_token: u64,
}

/// Our own decoder on the CPU, on a thread of its own.
#[derive(Debug)]
pub struct CpuEngine {
    caps: Caps,
    memory: Memory,
    features: String,
    kv_stored_as: &'static str,
    /// What was packed at this start and is not on disk under its name yet.
    unkept: Option<PackedWriter>,
    thread: EngineThread<CpuSegment>,
}

impl CpuEngine {
    /// Loads and packs the weights, then starts the engine's thread.
    ///
    /// `progress` is told how many tensors are done, of how many.
    ///
    /// # Errors
    /// [`LoadError`] naming the tensor or setting at fault.
    pub fn load(
        config: &DecoderConfig,
        tensors: &dyn TensorSource,
        options: &EngineOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, LoadError> {
        let (decoder, unkept) = Decoder::load(config, tensors, options, progress)?;
        let kv_bytes_per_token = decoder.page_shape().bytes_per_token() as u64;
        let caps = caps("cpu", config.context, options, kv_bytes_per_token);
        let memory = Memory {
            weights_bytes: decoder.weights_bytes(),
            scratch_bytes: decoder.scratch_bytes(options.step_tokens_usual as usize),
            kv_bytes_per_token,
        };
        let features = decoder.level().features();
        let kv_stored_as = decoder.page_shape().stored.name();
        let limits = caps.clone();
        let mut scratch = Scratch::new(options.precision);
        let thread = EngineThread::spawn(move |step| {
            check_size(step, &limits)?;
            decoder.run(step, limits.context_tokens as usize, &mut scratch)
        });
        let thread = thread.map_err(|error| LoadError::Threads(error.to_string()))?;
        Ok(Self { caps, memory, features, kv_stored_as, unkept, thread })
    }

    /// Bytes that it takes.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// Keeps what was packed for the next start. To be called when the model's files are known to
    /// be good: what was packed of damaged ones must never be found again.
    pub fn keep_packed(&mut self) {
        if let Some(Err(error)) = self.unkept.take().map(PackedWriter::finish) {
            model::not_kept(&error);
        }
    }

    /// What keys and values are stored as: `f32` or `bf16`.
    pub fn kv_stored_as(&self) -> &'static str {
        self.kv_stored_as
    }

    /// Instruction sets of its kernels: `avx512f` (`+vnni`, `+bf16`), `avx2+fma` or `portable`.
    pub fn features(&self) -> &str {
        &self.features
    }
}

impl Engine for CpuEngine {
    type Segment = CpuSegment;

    fn caps(&self) -> Caps {
        self.caps.clone()
    }

    fn submit(&self, step: Step<CpuSegment>, done: Completion<CpuSegment>) {
        self.thread.submit(step, done);
    }
}

/// Caps under `options` of a model with this context; no bytes per token means no segments.
fn caps(name: &str, context: usize, options: &EngineOptions, kv_bytes_per_token: u64) -> Caps {
    let context = u32::try_from(context).unwrap_or(u32::MAX);
    Caps {
        name: name.to_owned(),
        context_tokens: options.context_tokens.unwrap_or(context).min(context),
        step_tokens_max: options.step_tokens_max,
        rows_max: options.rows_max,
        kv_bytes_per_token,
        keeps_segments: kv_bytes_per_token > 0,
        sees_images: false,
    }
}

fn check_size<S>(step: &Step<S>, caps: &Caps) -> Result<(), EngineError> {
    let (tokens, rows) = (step.tokens(), step.rows.len());
    if tokens > caps.step_tokens_max || rows > caps.rows_max as usize {
        return Err(EngineError::Forward(format!(
            "the step has {tokens} tokens and {rows} rows, at most {} and {} fit",
            caps.step_tokens_max, caps.rows_max
        )));
    }
    Ok(())
}

/// To the nearest `f32`.
#[expect(clippy::cast_possible_truncation, reason = "rounding is what it is for")]
fn narrow(value: f64) -> f32 {
    value as f32
}
