//! What waits, runs and is held, one by one: for operators who look at it.
//!
//! Nothing here is text of a state. A state is named by its key, which a tenant's salt is part of.

use std::time::Duration;

use crate::read::{Lane, SegmentKey, TenantId};

/// Most entries of a step that details name.
pub const STEP_PARTS_MAX: usize = 64;

/// Most runs of blocks that details name.
pub const RUNS_MAX: usize = 200;

/// What waits and what runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueDetails {
    /// The running step.
    pub step: Option<StepDetails>,
    /// Who waits, by lane in the order of [`Lane::ALL`].
    pub waiting: [WaitingDetails; 4],
}

/// Who waits in a lane.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingDetails {
    /// Tenants and sub-tenants of whom something waits.
    pub tenants: usize,
    /// Those of whom most reads wait, at most [`TOP_TENANTS`](super::TOP_TENANTS), the most first;
    /// a state that is wanted without a read counts as one.
    pub most: Vec<(TenantId, usize)>,
}

/// What is in the running step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepDetails {
    /// Its number.
    pub step: u64,
    /// For how long it has run.
    pub elapsed: Duration,
    /// Its parts, at most [`STEP_PARTS_MAX`], those with most tokens first.
    pub parts: Vec<StepPart>,
    /// Parts that are not named.
    pub parts_left_out: usize,
}

/// What a step computes of one state on one tenant's account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepPart {
    /// The state.
    pub state: SegmentKey,
    /// On whose account; `None` where all who asked have left.
    pub tenant: Option<TenantId>,
    /// In which lane it was taken; `None` likewise.
    pub lane: Option<Lane>,
    /// Forward passes of a suffix.
    pub rows: usize,
    /// Reads that these answer.
    pub reads: usize,
    /// Tokens of these.
    pub row_tokens: u64,
    /// Tokens of the state itself.
    pub state_tokens: u64,
}

/// Keys and values that are held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ResidencyDetails {
    /// Runs of blocks, at most [`RUNS_MAX`], those with most bytes first.
    pub runs: Vec<ResidentRun>,
    /// Runs that are not named.
    pub runs_left_out: usize,
    /// Bytes of these.
    pub bytes_left_out: u64,
}

/// Blocks that follow each other without a branch and stand alike.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResidentRun {
    /// Its last block.
    pub key: SegmentKey,
    /// Whose it is, a sub-tenant's its parent's; `None` for what all share.
    pub tenant: Option<TenantId>,
    /// Position of its first token in the prompt.
    pub start: u32,
    /// How many tokens it holds.
    pub tokens: u32,
    /// Bytes of its keys and values.
    pub bytes: u64,
    /// Runs that stand on it.
    pub branches: u32,
    /// Leases on it or on what stands on it; of what all share, pins too.
    pub leases: u32,
    /// Pins likewise.
    pub pins: u32,
    /// For how long a pin that ends with this run still lasts.
    pub pinned_for: Option<Duration>,
    /// Whether it was used again in the foreground, and is evicted last.
    pub is_protected: bool,
    /// Decisions that used it after it was there.
    pub hits: u32,
    /// Since its last block was computed.
    pub age: Option<Duration>,
    /// Since that was last used.
    pub idle: Option<Duration>,
}
