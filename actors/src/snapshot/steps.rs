//! Steps that ended, as the step log keeps them.

use std::time::Duration;

use crate::engine::{EngineError, Epoch};
use crate::plan::ReadId;
use crate::read::{Lane, SegmentKey};

/// One step that ended, as kept in the step log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepLogEntry {
    /// Number of the step.
    pub step: u64,
    /// Epoch under which it ran.
    pub epoch: Epoch,
    /// The reads of each row, in row order; several where equal reads shared a row.
    pub rows: Vec<Vec<ReadId>>,
    /// The chunks, in order.
    pub chunks: Vec<ChunkLogEntry>,
    /// Tokens of the step.
    pub tokens: u32,
    /// States of which it had chunks or rows.
    pub states: usize,
    /// From its start to its end, as the scheduler saw it.
    pub elapsed: Duration,
    /// Whether it gave an outcome.
    pub succeeded: bool,
    /// What went wrong in it: with all of it, or where it gave an outcome, with rows of it.
    pub failure: Option<StepFailure>,
}

/// What went wrong in a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFailure {
    /// Of the step, or of the first row that failed.
    pub error: EngineError,
    /// Rows and chunks that it concerns.
    pub items: usize,
    /// What is done about it.
    pub then: Then,
}

/// What becomes of what failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// Memory was short: the next steps are half as large.
    Halved,
    /// Each of it runs once more, alone.
    Alone,
    /// It failed alone too.
    GivenUp,
}

impl Then {
    /// In the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Halved => "half of it is tried",
            Self::Alone => "each is tried alone",
            Self::GivenUp => "given up",
        }
    }
}

/// What was in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// Chunks of states only.
    Chunk,
    /// Reads only.
    Read,
    /// Both.
    Mixed,
    /// Chunks of states that only idle work wants.
    Idle,
}

impl StepKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Chunk, Self::Read, Self::Mixed, Self::Idle];

    /// Its name in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chunk => "chunk",
            Self::Read => "read",
            Self::Mixed => "mixed",
            Self::Idle => "idle",
        }
    }
}

impl StepLogEntry {
    /// Whether nothing came of it because what computes could not be reached, which is no failure of
    /// the engine.
    pub fn is_outage(&self) -> bool {
        !self.succeeded && self.failure.as_ref().is_some_and(|failure| failure.error.is_outage())
    }

    /// What was in it.
    pub fn kind(&self) -> StepKind {
        let is_idle = self.chunks.iter().all(|chunk| chunk.lane == Lane::Idle);
        match (self.chunks.is_empty(), self.rows.is_empty()) {
            (true, _) => StepKind::Read,
            (false, false) => StepKind::Mixed,
            (false, true) if is_idle => StepKind::Idle,
            (false, true) => StepKind::Chunk,
        }
    }
}

/// One chunk of a logged step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkLogEntry {
    /// The segment it belongs to.
    pub key: SegmentKey,
    /// First token, counted from the segment's start.
    pub from: u32,
    /// How many tokens.
    pub tokens: u32,
    /// Lane in which it was taken: the best of those waiting for it.
    pub lane: Lane,
}
