//! The engine boundary: what a model runtime is asked to do in one step, and what it gives back.
//!
//! Nothing here knows a tensor. A [`Step`] is a set of chunks (runs of state tokens whose keys and
//! values are to be kept) and rows (reads, whose keys and values die with the step), packed without
//! padding. The scheduler plans a step, an [`Engine`] runs it, a [`Completion`] brings the outcome.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::read::SegmentKey;
use crate::restarts::ActorKind;

/// Generation of the engine: raised at each restart; nothing of an older epoch is ever used.
pub type Epoch = u64;

/// Token positions per key/value page, and the block in which keys are walked (ARCHITECTURE D6).
pub const PAGE_TOKENS: u32 = 64;

/// A model runtime which answers one [`Step`] at a time.
///
/// Calls return at once and report through [`Completion`], so that the same actors run over a
/// dedicated thread in production and over virtual time in simulation.
pub trait Engine: Send + Sync + 'static {
    /// Keys and values of one run of tokens, shared by its clones and freed with the last of them.
    type Segment: Segment;

    /// What this engine can do and how much it can hold.
    fn caps(&self) -> Caps;

    /// Starts `step`. `done` is finished exactly once, from any thread.
    fn submit(&self, step: Step<Self::Segment>, done: Completion<Self::Segment>);

    /// Nobody waits for row number `row` of step `step` any more. The step goes on; an engine that can
    /// may leave the row out, and then answers it with any error.
    fn abandon(&self, _step: u64, _row: usize) {}

    /// Told by an actor before it acts: by the scheduler before each step that it hands over, by the
    /// cache before each chunk that it takes in, by the registration actor before each response that
    /// it is told of. It is for engines that pretend: what panics here is that actor.
    fn rehearse(&self, _: ActorKind) {}
}

/// Keys and values of one run of tokens at fixed absolute positions; immutable once made.
pub trait Segment: Clone + fmt::Debug + Send + Sync + 'static {
    /// How many tokens it holds.
    fn tokens(&self) -> u32;
    /// Bytes of memory it occupies, shared by all its clones.
    fn bytes(&self) -> u64;
    /// Some of its tokens, counted from its first, as a segment of their own.
    ///
    /// It is cut at absolute multiples of [`PAGE_TOKENS`] and at its ends only. The memory is shared
    /// page by page: a page is counted in [`bytes`](Self::bytes) of each segment that has it, and is
    /// freed with the last of them.
    #[must_use]
    fn slice(&self, tokens: Range<u32>) -> Self;
}

/// What an engine can do and how much it can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caps {
    /// Name shown in `/health`: `cpu`, `reference`, `fake`, ...
    pub name: String,
    /// Longest prompt in tokens (prefix and suffix together).
    pub context_tokens: u32,
    /// Most tokens (chunks and suffixes together) of one step.
    pub step_tokens_max: u32,
    /// Most rows of one step.
    pub rows_max: u32,
    /// Bytes of keys and values for one token position.
    pub kv_bytes_per_token: u64,
    /// Whether segments are kept at all; `false` for an engine that computes each row from scratch.
    pub keeps_segments: bool,
    /// Whether prompts may have images among their tokens. What of an image stands in a prompt is the
    /// engine's; a state with images is told apart from others by its key (`Prefix`).
    pub sees_images: bool,
}

impl Caps {
    /// Bytes that a segment of `tokens` positions from absolute position `start` will occupy, in
    /// whole pages of [`PAGE_TOKENS`] aligned to absolute positions.
    pub fn segment_bytes(&self, start: u32, tokens: u32) -> u64 {
        if tokens == 0 {
            return 0;
        }
        let first = start / PAGE_TOKENS;
        let last = (start + tokens - 1) / PAGE_TOKENS;
        u64::from(last - first + 1) * u64::from(PAGE_TOKENS) * self.kv_bytes_per_token
    }
}

/// One forward pass.
#[derive(Debug, Clone)]
pub struct Step<S> {
    /// Number of the step; strictly increasing within one scheduler.
    pub id: u64,
    /// Epoch under which the step was planned.
    pub epoch: Epoch,
    /// Runs of tokens to be computed and kept, in causal order: a chunk's path may name an earlier
    /// chunk of the same step.
    pub chunks: Vec<Chunk<S>>,
    /// Reads. A row's path may name any chunk of the same step.
    pub rows: Vec<Row<S>>,
}

impl<S> Step<S> {
    /// Tokens that the step computes: all chunks and all suffixes.
    pub fn tokens(&self) -> u32 {
        let chunks: usize = self.chunks.iter().map(|chunk| chunk.tokens.len()).sum();
        let rows: usize = self.rows.iter().map(|row| row.suffix.len()).sum();
        u32::try_from(chunks + rows).unwrap_or(u32::MAX)
    }
}

/// One piece of what lies before a chunk or a row; pieces follow each other without a gap.
#[derive(Debug, Clone)]
pub enum PathPart<S> {
    /// A segment that is already held.
    Segment(S),
    /// The segment that chunk number `usize` of this step will make.
    Chunk(usize),
}

/// Whose tokens they are, for engines that spread work over servers: what is of one state belongs on
/// one of them, and what is of different salts must not be shared by its cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The state, by its key. A chunk of a head has that of a state which needs it.
    pub state: SegmentKey,
    /// The same for all states of one head and one salt, and for no others. It cannot be guessed where
    /// the salt cannot.
    pub salt: SegmentKey,
}

impl Origin {
    /// Of what belongs to no request: probes, measurements.
    pub const NONE: Self = Self { state: SegmentKey([0; 32]), salt: SegmentKey([0; 32]) };
}

/// A run of tokens whose keys and values are kept.
#[derive(Debug, Clone)]
pub struct Chunk<S> {
    /// Whose it is.
    pub origin: Origin,
    /// Everything before it, from position 0.
    pub path: Vec<PathPart<S>>,
    /// Its tokens; never empty.
    pub tokens: Arc<[u32]>,
}

/// One read: a suffix after a path, and the labels whose log-probabilities are wanted.
#[derive(Debug, Clone)]
pub struct Row<S> {
    /// Whose it is.
    pub origin: Origin,
    /// Everything before the suffix, from position 0.
    pub path: Vec<PathPart<S>>,
    /// Its own tokens; never empty. Its last token is the read position.
    pub suffix: Arc<[u32]>,
    /// Token ids of the labels, distinct.
    pub labels: Arc<[u32]>,
    /// Whether the last hidden state is wanted too.
    pub want_hidden: bool,
    /// Whether the probability of all labels over the whole vocabulary is wanted, where the engine reads
    /// label rows only.
    pub want_mass: bool,
}

/// What one row gave.
#[derive(Debug, Clone, PartialEq)]
pub struct RowOutcome {
    /// Natural log-probabilities over the whole vocabulary, at the read position: `[labels]`.
    pub logprobs: Vec<f32>,
    /// Log of the probability of all labels together; `None` where the engine reads label rows only and
    /// the row did not ask for it.
    pub log_mass: Option<f32>,
    /// Whether the most probable token of the vocabulary is one of the labels.
    pub greedy_is_label: bool,
    /// Last hidden state, where the row asked for it: `[width]`.
    pub hidden: Option<Vec<f32>>,
}

/// What one step gave: one entry for each chunk and row, in the step's order.
#[derive(Debug, Clone)]
pub struct StepOutcome<S> {
    /// The segments made, one a chunk.
    pub chunks: Vec<S>,
    /// The rows' readings; a row can fail alone.
    pub rows: Vec<Result<RowOutcome, EngineError>>,
    /// Time the engine spent on the step.
    pub elapsed: Duration,
}

/// Why a step, or one row of it, gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum EngineError {
    /// The logits of this row were not finite.
    #[error("the logits are not finite")]
    NonFinite,
    /// The forward pass failed; the engine can go on.
    #[error("the forward pass failed: {0}")]
    Forward(String),
    /// The forward pass panicked; the engine can go on.
    #[error("the forward pass panicked: {0}")]
    Panic(String),
    /// There was not enough memory for the step; a smaller one may succeed.
    #[error("out of memory: {0}")]
    OutOfMemory(String),
    /// What computes the model cannot be reached now, or was lost on the way. It is the fault neither
    /// of what was asked nor of the engine, says nothing of either, and is not tried again here.
    #[error("the engine cannot be reached: {0}")]
    Unavailable(String),
    /// The engine is gone for good.
    #[error("the engine is dead: {0}")]
    Dead(String),
}

impl EngineError {
    /// Whether what computes the model could not be reached.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Unavailable(_))
    }

    /// Its kind in a word, for the log.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NonFinite => "non_finite",
            Self::Forward(_) => "error",
            Self::Panic(_) => "panic",
            Self::OutOfMemory(_) => "out_of_memory",
            Self::Unavailable(_) => "unavailable",
            Self::Dead(_) => "dead",
        }
    }
}

/// The way back for a step's outcome; finishing consumes it, so it happens once.
///
/// A completion that is dropped unfinished reports [`EngineError::Dead`].
pub struct Completion<S>(Option<Report<S>>);

/// Takes the outcome of a step.
type Report<S> = Box<dyn FnOnce(Result<StepOutcome<S>, EngineError>) + Send>;

impl<S> Completion<S> {
    /// Makes a completion which hands the outcome to `report`.
    pub fn new(report: impl FnOnce(Result<StepOutcome<S>, EngineError>) + Send + 'static) -> Self {
        Self(Some(Box::new(report)))
    }

    /// Reports the outcome.
    pub fn finish(mut self, outcome: Result<StepOutcome<S>, EngineError>) {
        if let Some(report) = self.0.take() {
            report(outcome);
        }
    }
}

impl<S> Drop for Completion<S> {
    fn drop(&mut self) {
        if let Some(report) = self.0.take() {
            report(Err(EngineError::Dead("the step was dropped unanswered".to_owned())));
        }
    }
}

impl<S> fmt::Debug for Completion<S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Completion").field("open", &self.0.is_some()).finish()
    }
}
