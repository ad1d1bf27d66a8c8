//! What the actors publish about themselves, so that admission, health and tests read it without
//! sending a message.

mod details;
mod steps;
mod top;

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use crate::engine::Epoch;
use crate::links::Shared;
use crate::plan::admit::{Backlog, wait};
use crate::read::{Lane, TenantId};
use crate::restarts::Restarts;
use crate::tenants::Found;
pub use details::{
    QueueDetails, RUNS_MAX, ResidencyDetails, ResidentRun, STEP_PARTS_MAX, StepDetails, StepPart,
    WaitingDetails,
};
pub use steps::{ChunkLogEntry, StepFailure, StepKind, StepLogEntry, Then};
pub use top::TOP_TENANTS;
pub(crate) use top::Top;

/// Everything the actors publish, at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Queue, engine and totals.
    pub load: LoadView,
    /// Keys and values in memory.
    pub residency: ResidencyView,
    /// Boundary registrations.
    pub registration: RegistrationCounters,
    /// Whether new decisions are refused because the server stops.
    pub draining: bool,
    /// For how long the oldest read that waits has waited, by the lane in which it stands; zero where
    /// none waits.
    pub oldest_wait: [Duration; 4],
    /// The wait that a newcomer is predicted, by lane; zero while the speed is unknown.
    pub predicted_wait: [Duration; 4],
    /// Reads that were let in and that the scheduler has not seen yet, by lane.
    pub entering_reads: [usize; 4],
    /// Reads of the tenant of whom most wait or run.
    pub tenant_reads: usize,
    /// Tenants with something open, or with a bucket that is not full again.
    pub tenants: usize,
    /// The tenants of whom most reads wait or run, at most [`TOP_TENANTS`], the most first; sub-tenants
    /// are counted for their parent, here and below.
    pub top_reads: Vec<(TenantId, usize)>,
    /// Likewise those whose states have most bytes of keys and values; at most a few ticks old.
    pub top_bytes: Vec<(TenantId, u64)>,
    /// Actors that were lost and started again.
    pub restarts: Restarts,
    /// Refused decisions for which room is kept when they come back.
    pub retries_expected: usize,
    /// Decisions and prewarms that were refused since the process started, by reason.
    pub refusals: Vec<(&'static str, u64)>,
}

impl Snapshot {
    /// What is published now.
    pub(crate) fn of(shared: &Shared) -> Self {
        let load = LoadView::clone(&shared.load.load());
        let (now, entering) = (Instant::now(), shared.entering());
        let backlog = load.backlog(now);
        let tokens = std::array::from_fn(|lane| backlog.tokens[lane] + entering.tokens[lane]);
        let ahead = Backlog { tokens, ..backlog };
        let waited = |since: Option<Instant>| {
            since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
        };
        let top_reads = shared.tenants.most_reads();
        Self {
            oldest_wait: load.oldest.map(waited),
            predicted_wait: Lane::ALL.map(|lane| wait(ahead, lane)),
            entering_reads: entering.reads,
            tenant_reads: top_reads.first().map_or(0, |(_, reads)| *reads),
            tenants: shared.tenants.count(now),
            top_reads,
            top_bytes: shared.top_bytes.load().to_vec(),
            restarts: shared.restarts.read(),
            retries_expected: shared.retries_expected(),
            refusals: shared.meters.refusals.by_reason(),
            residency: **shared.residency.load(),
            registration: **shared.registration.load(),
            draining: shared.draining.load(Ordering::SeqCst),
            load,
        }
    }
}

/// States that open decisions or wants need, by how far they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StateCounts {
    /// Complete.
    pub resident: usize,
    /// Being computed in the running step.
    pub prefilling: usize,
    /// Computed in part, and not in the running step.
    pub paused: usize,
    /// Nothing of them is leased, or what is leased has yet to be computed from its beginning.
    pub wanted: usize,
}

/// State of the engine as the scheduler sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EngineState {
    /// It has no step.
    #[default]
    Ready,
    /// It runs a step.
    Busy,
    /// An actor panicked; scheduler and cache are being started again.
    Restarting,
    /// It is gone for good, with the reason.
    Dead(String),
}

/// What the scheduler publishes after each event.
#[derive(Debug, Clone)]
pub struct LoadView {
    /// The engine.
    pub engine: EngineState,
    /// Generation; raised at each restart of scheduler and cache.
    pub epoch: Epoch,
    /// When a step last began or ended, or when the scheduler started.
    pub last_progress: Instant,
    /// Since when reads have waited, or a step has run, while no step began or ended; `None` where
    /// there is neither.
    pub stuck_since: Option<Instant>,
    /// Reads that wait, by lane in the order of [`Lane::ALL`].
    pub reads_waiting: [usize; 4],
    /// Of these, reads of decisions none of whose reads has run: more urgent work may take their
    /// place when the queue is full.
    pub reads_displaceable: [usize; 4],
    /// Reads in the running step.
    pub reads_in_flight: usize,
    /// Unique tokens that wait, by lane: each state once, in the best lane of those that wait for it,
    /// resident tokens not at all.
    pub tokens_waiting: [u64; 4],
    /// When the oldest read that waits was admitted, by the lane in which it stands.
    pub oldest: [Option<Instant>; 4],
    /// States by how far they are; at most half a second old, but where none is left.
    pub states: StateCounts,
    /// Chunks of the running step.
    pub step_chunks: usize,
    /// Tokens of the running step; it began at `last_progress`.
    pub step_tokens: u32,
    /// Of these, by the lane in which they were taken.
    pub step_lanes: [u64; 4],
    /// Which part of the engine's time each lane had of late.
    pub shares: [f64; 4],
    /// The largest difference, in computed tokens by weight, between what two tenants that wait in
    /// one lane were served.
    pub gap_tokens: u64,
    /// Decisions that are open.
    pub decisions_open: usize,
    /// Prewarms and registrations that wait for the engine.
    pub wants_waiting: usize,
    /// Steps that ended.
    pub steps: u64,
    /// Smoothed speed; 0 until the first step ended.
    pub tokens_per_second: f64,
    /// Counts since the scheduler started.
    pub totals: Totals,
}

/// Counts which only rise. `admitted` is the sum of the six endings and of what waits or runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Reads that came in.
    pub admitted: u64,
    /// Reads with an outcome.
    pub done: u64,
    /// Reads that the engine failed on.
    pub failed: u64,
    /// Reads whose deadline passed.
    pub expired: u64,
    /// Reads whose caller went away.
    pub cancelled: u64,
    /// Reads that a drain ended.
    pub drained: u64,
    /// Reads that made room for more urgent work.
    pub displaced: u64,
    /// Tokens that the engine ran, for whatever reason.
    pub computed_tokens: u64,
    /// Of these, state tokens run for a prewarm or a registration, with no read waiting first.
    pub want_tokens: u64,
    /// Prompt tokens of answered reads that were not computed for them.
    pub cached_tokens: u64,
    /// Steps that failed as a whole.
    pub step_failures: u64,
}

impl Totals {
    /// Reads that ended, however.
    pub fn ended(&self) -> u64 {
        self.done + self.failed + self.expired + self.cancelled + self.drained + self.displaced
    }
}

impl LoadView {
    /// Nothing waits, nothing was run yet.
    pub fn idle(epoch: Epoch, now: Instant) -> Self {
        Self {
            engine: EngineState::Ready,
            epoch,
            last_progress: now,
            stuck_since: None,
            reads_waiting: [0; 4],
            reads_displaceable: [0; 4],
            reads_in_flight: 0,
            tokens_waiting: [0; 4],
            oldest: [None; 4],
            states: StateCounts::default(),
            step_chunks: 0,
            step_tokens: 0,
            step_lanes: [0; 4],
            shares: [0.0; 4],
            gap_tokens: 0,
            decisions_open: 0,
            wants_waiting: 0,
            steps: 0,
            tokens_per_second: 0.0,
            totals: Totals::default(),
        }
    }

    /// What admission sees of it at `now`.
    pub(crate) fn backlog(&self, now: Instant) -> Backlog {
        let ran = now.saturating_duration_since(self.last_progress).as_secs_f64();
        // A saturating cast: a step that runs late has nothing left.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let ran_tokens = (ran * self.tokens_per_second) as u64;
        let step_tokens = u64::from(self.step_tokens).saturating_sub(ran_tokens);
        // All of a step ends together, so that each lane has as much of the rest as of the whole.
        let whole: u64 = self.step_lanes.iter().sum::<u64>().max(1);
        let mut reads = self.reads_waiting;
        reads[Lane::Idle as usize] += self.wants_waiting;
        Backlog {
            reads,
            displaceable: self.reads_displaceable,
            tokens: self.tokens_waiting,
            step_tokens,
            step_lanes: self.step_lanes.map(|tokens| step_tokens * tokens / whole),
            shares: self.shares,
            tokens_per_second: self.tokens_per_second,
            tenant: Found::default(),
        }
    }

    /// Unique tokens that wait, in all lanes.
    pub fn tokens(&self) -> u64 {
        self.tokens_waiting.iter().sum()
    }

    /// Reads that wait, in all lanes.
    pub fn waiting(&self) -> usize {
        self.reads_waiting.iter().sum()
    }

    /// Reads that wait in `lane`.
    pub fn waiting_in(&self, lane: Lane) -> usize {
        self.reads_waiting[lane as usize]
    }
}

/// What the cache publishes after each change; bytes of keys and values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResidencyView {
    /// The limit of `used` and `reserved` together.
    pub budget: u64,
    /// Held.
    pub used: u64,
    /// Promised to leased states that are not complete.
    pub reserved: u64,
    /// Of `used`, what prewarm pins keep from eviction.
    pub pinned: u64,
    /// Of `used`, what urgent or normal reads used again; evicted last.
    pub protected: u64,
    /// Of `used` and `overflow`, what is there of leased states that are not complete; what several
    /// of them share counts for each.
    pub partial: u64,
    /// Held or promised beyond the budget by the overflow allowance.
    pub overflow: u64,
    /// Blocks of at most 64 tokens that are held.
    pub segments: usize,
    /// Heads and states that something uses now.
    pub leased: usize,
    /// Blocks evicted for room since start.
    pub evictions: u64,
    /// Tokens computed again although they were resident; must stay 0.
    pub duplicate_tokens: u64,
    /// Prewarms that wait for the engine.
    pub prewarms_waiting: usize,
}

/// Counts of boundary registration:
/// `submitted = pending + deferred + running + registered + dropped + failed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RegistrationCounters {
    /// Registrations that came in, those joined to a waiting one for the same state left out.
    pub submitted: u64,
    /// Waiting for the cache's word.
    pub pending: u64,
    /// Waiting until the engine is idle.
    pub deferred: u64,
    /// Being computed.
    pub running: u64,
    /// Resident when they ended.
    pub registered: u64,
    /// Given up: queue full, too old, no room, drain, or an actor was lost.
    pub dropped: u64,
    /// The engine failed.
    pub failed: u64,
    /// Joined to a waiting one for the same state; not part of `submitted`.
    pub coalesced: u64,
}

impl RegistrationCounters {
    /// Whether every registration is accounted for.
    pub fn balance(&self) -> bool {
        self.submitted
            == self.pending
                + self.deferred
                + self.running
                + self.registered
                + self.dropped
                + self.failed
    }

    /// The counts after whoever worked on registrations was lost with all of them.
    pub(crate) fn lost(self) -> Self {
        let under_way = self.pending + self.deferred + self.running;
        let dropped = self.dropped + under_way;
        Self { pending: 0, deferred: 0, running: 0, dropped, ..self }
    }
}

/// How a drain went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DrainReport {
    /// Reads that got their outcome after the drain began.
    pub finished: u64,
    /// Reads that were failed with [`ReadError::Draining`](crate::ReadError::Draining).
    pub failed: u64,
    /// How long it took.
    pub elapsed: Duration,
}
