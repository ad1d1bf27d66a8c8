//! The reference engine: a candle-transformers model behind the same trait.
//!
//! It shares nothing: each row's whole prompt is computed by itself, so its segments carry just
//! their tokens. It exists to check the `cpu` engine against other people's code, and to serve
//! dense architectures which that engine does not know.

mod adapters;
mod folder;
mod quantised;
mod weights;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use actors::{
    Caps, Completion, Engine, EngineError, PathPart, Row, RowOutcome, Segment, Step, StepOutcome,
};

use candle_core::{Device, Tensor};

use super::thread::EngineThread;
use super::{EngineOptions, LoadError, caps, check_size, narrow};
use crate::files::{DecoderConfig, TensorSource};

/// Logits after the last of `ids`, `[1, tokens]`, over the whole vocabulary.
type Forward = Box<dyn FnMut(&Tensor) -> candle_core::Result<Tensor> + Send>;

/// A model ready to be asked, with its sizes.
struct Oracle {
    forward: Forward,
    vocab: usize,
    context: usize,
}

impl Oracle {
    /// Logits after the last of `tokens`, over the whole vocabulary.
    fn logits(&mut self, tokens: &[u32]) -> candle_core::Result<Vec<f32>> {
        let ids = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        (self.forward)(&ids)?.flatten_all()?.to_vec1()
    }
}

/// A candle-transformers model on a thread of its own.
#[derive(Debug)]
pub struct ReferenceEngine {
    caps: Caps,
    thread: EngineThread<TokenSegment>,
}

/// The tokens of a segment; nothing is kept of them.
#[derive(Debug, Clone)]
pub struct TokenSegment(Arc<[u32]>);

impl Segment for TokenSegment {
    fn tokens(&self) -> u32 {
        u32::try_from(self.0.len()).unwrap_or(u32::MAX)
    }

    fn bytes(&self) -> u64 {
        0
    }

    fn slice(&self, tokens: Range<u32>) -> Self {
        Self(self.0[tokens.start as usize..tokens.end as usize].into())
    }
}

impl ReferenceEngine {
    /// Builds candle's model of the architecture from the same parts as the `cpu` engine.
    ///
    /// # Errors
    /// [`LoadError::Config`] where candle's model lacks what the configuration asks for.
    pub fn load(
        config: &DecoderConfig,
        tensors: Arc<dyn TensorSource>,
        options: &EngineOptions,
    ) -> Result<Self, LoadError> {
        Self::start(adapters::from_config(config, tensors, options)?, options)
    }

    /// Opens a safetensors folder of any dense architecture in [`ReferenceEngine::MODEL_TYPES`].
    ///
    /// # Errors
    /// [`LoadError`] naming the file or the `model_type`.
    pub fn open_folder(path: &Path, options: &EngineOptions) -> Result<Self, LoadError> {
        Self::start(folder::open(path, options)?, options)
    }

    /// Opens a GGUF file of an architecture in [`crate::files::FOREIGN_GGUF`], on whose blocks
    /// candle's model computes as they are.
    ///
    /// # Errors
    /// [`LoadError`] naming the file and the setting or tensor that candle's model does not do.
    pub fn open_gguf(path: &Path, options: &EngineOptions) -> Result<Self, LoadError> {
        Self::start(quantised::open(path, options)?, options)
    }

    /// Longest prompt of a model that [`ReferenceEngine::open_folder`] or
    /// [`ReferenceEngine::open_gguf`] opens, by its settings: no weight is read.
    ///
    /// # Errors
    /// [`LoadError`] naming the file and the setting.
    pub fn context_tokens(path: &Path) -> Result<u32, LoadError> {
        let context = if path.is_dir() { folder::context(path) } else { quantised::context(path) };
        context.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX))
    }

    /// Values of `model_type` in `config.json` that [`ReferenceEngine::open_folder`] knows.
    pub const MODEL_TYPES: [&'static str; 9] =
        ["gemma", "gemma2", "gemma3_text", "llama", "mistral", "olmo", "phi3", "qwen2", "qwen3"];

    fn start(mut model: Oracle, options: &EngineOptions) -> Result<Self, LoadError> {
        let caps = caps("reference", model.context, options, 0);
        let limits = caps.clone();
        let thread = EngineThread::spawn(move |step| {
            check_size(step, &limits)?;
            Ok(run(&mut model, step, limits.context_tokens as usize))
        });
        let thread = thread.map_err(|error| LoadError::Threads(error.to_string()))?;
        Ok(Self { caps, thread })
    }
}

impl Engine for ReferenceEngine {
    type Segment = TokenSegment;

    fn caps(&self) -> Caps {
        self.caps.clone()
    }

    fn submit(&self, step: Step<TokenSegment>, done: Completion<TokenSegment>) {
        self.thread.submit(step, done);
    }
}

fn run(model: &mut Oracle, step: &Step<TokenSegment>, context: usize) -> StepOutcome<TokenSegment> {
    let started = std::time::Instant::now();
    let chunks = step.chunks.iter().map(|chunk| TokenSegment(Arc::clone(&chunk.tokens))).collect();
    let rows = step.rows.iter().map(|row| read(model, step, row, context)).collect();
    StepOutcome { chunks, rows, elapsed: started.elapsed() }
}

fn read(
    model: &mut Oracle,
    step: &Step<TokenSegment>,
    row: &Row<TokenSegment>,
    context: usize,
) -> Result<RowOutcome, EngineError> {
    let mut prompt = Vec::new();
    for part in &row.path {
        match part {
            PathPart::Segment(segment) => prompt.extend_from_slice(&segment.0),
            PathPart::Chunk(index) => {
                let chunk = step.chunks.get(*index).ok_or_else(|| {
                    EngineError::Forward(format!("chunk {index} in a path is not of this step"))
                })?;
                prompt.extend_from_slice(&chunk.tokens);
            }
        }
    }
    prompt.extend_from_slice(&row.suffix);
    if prompt.len() > context {
        let message = format!("the prompt is {} tokens, at most {context} fit", prompt.len());
        return Err(EngineError::Forward(message));
    }
    let ids = prompt.iter().chain(row.labels.iter());
    if let Some(id) = ids.into_iter().find(|id| **id as usize >= model.vocab) {
        let message = format!("token {id} is not below {}", model.vocab);
        return Err(EngineError::Forward(message));
    }
    let logits = model.logits(&prompt);
    read_out(&logits.map_err(|error| EngineError::Forward(error.to_string()))?, &row.labels)
}

/// Label log-probabilities by a plain `f64` log-softmax.
fn read_out(logits: &[f32], labels: &[u32]) -> Result<RowOutcome, EngineError> {
    if !logits.iter().all(|logit| logit.is_finite()) {
        return Err(EngineError::NonFinite);
    }
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: f32| (f64::from(logit) - f64::from(highest)).exp();
    let log_sum = f64::from(highest) + logits.iter().map(|l| weight(*l)).sum::<f64>().ln();
    let logprobs: Vec<f64> =
        labels.iter().map(|id| f64::from(logits[*id as usize]) - log_sum).collect();
    let best = logits.iter().position(|logit| *logit >= highest);
    Ok(RowOutcome {
        log_mass: Some(narrow(logprobs.iter().map(|logprob| logprob.exp()).sum::<f64>().ln())),
        greedy_is_label: labels.iter().any(|id| Some(*id as usize) == best),
        logprobs: logprobs.into_iter().map(narrow).collect(),
        // candle's models give logits only.
        hidden: None,
    })
}
