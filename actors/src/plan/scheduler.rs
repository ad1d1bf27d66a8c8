//! The scheduler's decisions: events in, effects out.
//!
//! One step is in flight; when it ends, the next one is formed from whatever waits. A step is not
//! formed while an answer of the cache is outstanding, so that it is as full as memory allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{OrderConfig, SchedulerConfig};
use crate::engine::{Caps, EngineError, Epoch, Segment, Step, StepOutcome};
use crate::error::ReadError;
use crate::limits::Limits;
use crate::plan::counts::{Counts, Stage};
use crate::plan::displace::Untouched;
use crate::plan::draft::{Draft, Moment, StepLimits, form};
use crate::plan::ending::Drain;
use crate::plan::failures::Failures;
use crate::plan::pace::{Pace, Shares};
use crate::plan::path::{PathSegment, path_of};
use crate::plan::queue::{Asker, Lease, Queue};
use crate::plan::relief::Relief;
use crate::plan::residency::{Computed, LeaseReply, Reach};
use crate::plan::running::Running;
use crate::plan::segments::{Segments, Served};
use crate::plan::{DecisionId, ReadId};
use crate::read::{Lane, Prefix, ReadOutcome, ReadSpec, SegmentKey, TenantId};
use crate::snapshot::{DrainReport, StateCounts, StepLogEntry, Totals};
use crate::work::Work;

/// What happens to the scheduler.
#[derive(Debug)]
pub(crate) enum SchedulerEvent<S> {
    /// A decision was admitted.
    Open(Opening),
    /// Its next reads; `at` is when they were asked for, `first` the index of the first.
    Submit { decision: DecisionId, first: u32, reads: Vec<ReadSpec>, at: Instant },
    /// Nobody waits for its reads any more.
    Withdraw { decision: DecisionId },
    /// It is over.
    Close { decision: DecisionId },
    /// The cache has answered.
    Leased { key: SegmentKey, reply: LeaseReply<S> },
    /// The cache wants a state, `missing` of whose tokens are not resident.
    Want { prefix: Prefix, missing: u32, tenant: TenantId, lane: Lane, is_registration: bool },
    /// It does not any more.
    Unwant { key: SegmentKey },
    /// The engine is done with a step.
    Done { step: u64, epoch: Epoch, result: Result<StepOutcome<S>, EngineError> },
    /// These are the limits of tenants from now on.
    Limit(Arc<Limits>),
    /// Time has passed.
    Tick,
    /// Finish what was admitted.
    Drain,
}

/// A decision that was admitted.
#[derive(Debug, Clone)]
pub(crate) struct Opening {
    pub(crate) decision: DecisionId,
    pub(crate) tenant: TenantId,
    pub(crate) prefix: Prefix,
    /// Tokens of the prefix that were not resident at admission.
    pub(crate) missing: u32,
    pub(crate) lane: Lane,
    /// Reads for which lower lanes have to make room.
    pub(crate) displaces: usize,
    pub(crate) deadline: Option<Instant>,
}

/// What the scheduler actor is to do, in order.
#[derive(Debug)]
pub(crate) enum SchedulerEffect<S> {
    /// Ask the cache to lease a path to the state `key`; what is computed of that is its owner's.
    Lease { key: SegmentKey, path: Vec<PathSegment>, owner: Option<TenantId>, reach: Reach },
    /// Give a lease back, and say how many decisions it served.
    Release { path: Vec<SegmentKey>, served: Served },
    /// Hand a computed chunk to the cache.
    Commit(Computed<S>),
    /// Give the engine its next step.
    Run(Step<S>),
    /// Tell it that nobody waits for a row of the running step any more.
    Abandon { step: u64, row: usize },
    /// End a read.
    Reply { read: ReadId, lane: Lane, result: Result<ReadOutcome, ReadError> },
    /// Tell the cache that a wanted state is being computed.
    WantStarted { key: SegmentKey },
    /// Tell the cache how that ended: with so many tokens computed for it, and the state still leased,
    /// or with an error.
    WantEnded { key: SegmentKey, result: Result<u32, ReadError> },
    /// Note a step that ended.
    Log(StepLogEntry),
    /// Everything admitted has ended, or the drain timeout is over.
    Drained(DrainReport),
}

/// An open decision.
#[derive(Debug)]
pub(crate) struct Decision {
    pub(crate) prefix_tokens: u32,
    pub(crate) key: SegmentKey,
    /// Tokens of the prefix that were not resident when it came; `None` once they were counted.
    pub(super) missing: Option<u32>,
    tenant: TenantId,
    pub(super) lane: Lane,
    deadline: Option<Instant>,
    /// When its first reads came.
    since: Option<Instant>,
    pub(super) is_expired: bool,
}

/// The scheduler without its actor.
#[derive(Debug)]
pub(crate) struct SchedulerCore<S> {
    pub(super) queue: Queue,
    pub(super) segments: Segments<S>,
    pub(super) decisions: BTreeMap<DecisionId, Decision>,
    pub(super) deadlines: BTreeSet<(Instant, DecisionId)>,
    pub(super) running: Option<Running>,
    pub(super) untouched: Untouched,
    /// Leases that were asked for and not answered.
    pub(super) asked: usize,
    pub(super) generation: u64,
    /// Chunk tokens that reads are charged for.
    pub(super) charges: BTreeMap<ReadId, u32>,
    pub(super) limits: StepLimits,
    pub(super) relief: Relief,
    /// Most reads that wait.
    pub(super) reads_max: usize,
    pub(super) order: OrderConfig,
    pub(super) tenant_limits: Arc<Limits>,
    /// After what wait something in each lane has waited long.
    pub(super) patience: [Duration; 4],
    /// Whether a lane came ahead of more urgent ones in the last step.
    pub(super) led: bool,
    /// Whether the engine holds what it computed; if not, each row computes its whole prompt.
    pub(super) keeps_segments: bool,
    pub(super) epoch: Epoch,
    pub(super) next_step: u64,
    pub(super) totals: Totals,
    pub(super) counts: Counts,
    pub(super) work: BTreeMap<TenantId, Work>,
    pub(super) states: StateCounts,
    /// When they were counted.
    pub(super) states_at: Instant,
    pub(super) pace: Pace,
    pub(super) shares: Shares,
    pub(super) failures: Failures,
    pub(super) last_failure: Option<EngineError>,
    /// How many steps in a row failed, where a probe is to tell whether the engine works.
    pub(super) doubt: Option<usize>,
    pub(super) dead: Option<String>,
    pub(super) drain: Option<Drain>,
    pub(super) drain_timeout: Duration,
    pub(super) steps: u64,
    pub(super) last_progress: Instant,
    /// When nothing waited or ran last.
    pub(super) last_idle: Instant,
    pub(super) effects: Vec<SchedulerEffect<S>>,
}

impl<S: Segment> SchedulerCore<S> {
    pub(crate) fn new(config: &SchedulerConfig, caps: &Caps, epoch: Epoch, now: Instant) -> Self {
        let (tokens, rows) = config.budget(caps);
        let limits = StepLimits {
            tokens,
            rows,
            chunk_tokens: config.chunk_tokens,
            look_ahead: config.look_ahead,
        };
        Self {
            queue: Queue::new(config.order.quantum_tokens, config.order.ranking),
            segments: Segments::new(),
            decisions: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            running: None,
            untouched: Untouched::default(),
            asked: 0,
            generation: 0,
            charges: BTreeMap::new(),
            limits,
            relief: Relief::default(),
            reads_max: config.reads_max,
            order: config.order.clone(),
            tenant_limits: Arc::default(),
            patience: config.patience(),
            led: false,
            keeps_segments: caps.keeps_segments,
            epoch,
            next_step: 0,
            totals: Totals::default(),
            counts: Counts::default(),
            work: BTreeMap::new(),
            states: StateCounts::default(),
            states_at: now,
            pace: Pace::default(),
            shares: Shares::default(),
            failures: Failures::new(config.failures_max, config.failure_window),
            last_failure: None,
            doubt: None,
            dead: None,
            drain: None,
            drain_timeout: config.drain_timeout,
            steps: 0,
            last_progress: now,
            last_idle: now,
            effects: Vec::new(),
        }
    }

    /// Takes in an event and says what follows from it.
    pub(crate) fn on(&mut self, event: SchedulerEvent<S>, now: Instant) -> Vec<SchedulerEffect<S>> {
        if !self.has_reads() {
            self.last_idle = now;
        }
        match event {
            SchedulerEvent::Open(opening) => self.open(opening),
            SchedulerEvent::Submit { decision, first, reads, at } => {
                self.submit(decision, first, reads, at);
            }
            SchedulerEvent::Withdraw { decision } => self.cancel(decision),
            SchedulerEvent::Close { decision } => self.close(decision),
            SchedulerEvent::Leased { key, reply } => self.leased(key, reply, now),
            SchedulerEvent::Want { prefix, missing, tenant, lane, is_registration } => {
                self.want((&prefix, missing), tenant, lane, is_registration);
            }
            SchedulerEvent::Unwant { key } => self.unwant(key),
            SchedulerEvent::Done { step, epoch, result } => self.done(step, epoch, result, now),
            SchedulerEvent::Limit(limits) => self.tenant_limits = limits,
            // Memory may have become free: pins end with time.
            SchedulerEvent::Tick => self.generation += 1,
            SchedulerEvent::Drain => self.begin_drain(now),
        }
        self.advance(now);
        self.count_states(now);
        std::mem::take(&mut self.effects)
    }

    /// What was counted since this was last asked.
    pub(crate) fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// By how many reads what waits of each tenant has grown since this was last asked.
    pub(crate) fn take_queue_changes(&mut self) -> BTreeMap<TenantId, isize> {
        self.queue.take_changes()
    }

    fn open(&mut self, opening: Opening) {
        let Opening { decision, tenant, prefix, missing, lane, displaces, deadline } = opening;
        self.make_room(lane, displaces);
        let key = prefix.state.key;
        let found_missing = Some(self.missing(key).unwrap_or(missing));
        let group = self.queue.group_or_new(path_of(&prefix), key, missing);
        group.decisions.insert(decision);
        if let Some(deadline) = deadline {
            self.deadlines.insert((deadline, decision));
        }
        let prefix_tokens = prefix.tokens();
        let (since, is_expired) = (None, false);
        let entry = Decision {
            prefix_tokens,
            key,
            missing: found_missing,
            tenant,
            lane,
            deadline,
            since,
            is_expired,
        };
        self.decisions.insert(decision, entry);
    }

    /// Tokens that are missing of the path to `key`, if it is leased.
    fn missing(&self, key: SegmentKey) -> Option<u32> {
        let group = self.queue.group(key).filter(|group| group.lease == Lease::Granted)?;
        Some(self.segments.remaining(&group.path))
    }

    fn submit(&mut self, decision: DecisionId, first: u32, reads: Vec<ReadSpec>, at: Instant) {
        let behind_registration =
            self.running.as_ref().is_some_and(|running| running.is_registration);
        let refusal = self.refusal(decision, at);
        let known = self.decisions.get_mut(&decision).map(|entry| {
            entry.since.get_or_insert(at);
            (entry.key, entry.lane, entry.tenant.clone())
        });
        if let Some(ReadError::Expired { .. }) = &refusal {
            self.counts.expired[Stage::Queue as usize] += reads.len() as u64;
        }
        for (index, spec) in (first..).zip(reads) {
            let read = ReadId { decision, index };
            self.totals.admitted += 1;
            self.counts.admitted += 1;
            if let (None, Some((key, lane, tenant))) = (&refusal, &known) {
                let asker = Asker {
                    read,
                    tenant: tenant.clone(),
                    place: self.queue.next_place(*lane),
                    admitted: at,
                    started: self.is_computing(*key).then_some(at),
                    ready: None,
                    state_from: self.queue.group(*key).map_or(Duration::ZERO, |g| g.state_time),
                    state_time: Duration::ZERO,
                    behind_registration,
                };
                self.queue.push(*key, spec, asker);
                self.untouched.submitted(*lane, decision);
            } else {
                let lane = known.as_ref().map_or(Lane::Normal, |(_, lane, _)| *lane);
                self.end(read, lane, Err(refusal.clone().unwrap_or(ReadError::Unavailable)));
            }
        }
    }

    /// Why a decision's reads cannot be queued, if so.
    fn refusal(&self, decision: DecisionId, at: Instant) -> Option<ReadError> {
        if let Some(why) = &self.dead {
            return Some(ReadError::Engine(EngineError::Dead(why.clone())));
        }
        if self.drain.is_some_and(|drain| drain.is_over) {
            return Some(ReadError::Draining);
        }
        match self.decisions.get(&decision) {
            // It was opened before scheduler and cache were started again.
            None => Some(ReadError::Unavailable),
            Some(entry) if entry.is_expired => {
                let since = entry.since.unwrap_or(at);
                let waited = at.saturating_duration_since(since);
                Some(ReadError::Expired { waited, spent: None })
            }
            Some(_) => None,
        }
    }

    fn close(&mut self, decision: DecisionId) {
        self.cancel(decision);
        let Some(entry) = self.decisions.remove(&decision) else { return };
        self.untouched.over(entry.lane, decision);
        if let Some(deadline) = entry.deadline {
            self.deadlines.remove(&(deadline, decision));
        }
        if let Some(group) = self.queue.group_mut(entry.key) {
            group.decisions.remove(&decision);
        }
        self.release_if_unused(entry.key);
    }

    /// What follows from any event: expiry, the next step, the end of a drain.
    fn advance(&mut self, now: Instant) {
        self.queue.raise(self.order.raise_after, now);
        self.expire(now);
        self.check_drain(now);
        self.plan(now);
    }

    /// Asks for leases and, when no answer is outstanding, starts a step.
    fn plan(&mut self, now: Instant) {
        if self.asked > 0 || self.dead.is_some() {
            return;
        }
        let is_busy = self.running.is_some();
        if self.doubt.is_some() && !is_busy {
            self.start_probe(now);
            return;
        }
        let mut draft = self.draft(is_busy, now);
        if draft.is_stuck() && !is_busy && self.give_back_idle_leases() {
            draft = self.draft(is_busy, now);
        }
        for (key, reach) in &draft.asks {
            self.ask(*key, *reach);
        }
        if self.asked == 0 && !is_busy && !draft.is_empty() {
            self.led = self.turn(now).first.is_some();
            self.start(draft, now);
        }
    }

    fn draft(&self, is_busy: bool, now: Instant) -> Draft {
        let turn = self.turn(now);
        let moment = Moment { generation: self.generation, is_busy, turn };
        let limits = self.limits.at(self.pace.tokens_per_second(), self.order.step_target);
        let limits = if turn.by_age == [false; 4] { limits } else { limits.shared() };
        form(&self.queue, &self.segments, self.relief.apply(limits), moment)
    }
}
