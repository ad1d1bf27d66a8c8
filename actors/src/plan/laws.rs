//! Laws of the planner: scheduler and cache joined by queues of messages that are delivered in
//! order, at times that the test draws, over an engine that answers when told to.

mod acts;
mod checks;
mod residency;
mod states;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::config::{CacheConfig, OrderConfig, Register, SchedulerConfig};
use crate::engine::{EngineError, Step};
use crate::limits::{Limits, TenantLimits};
use crate::plan::DecisionId;
use crate::plan::cache::{CacheCore, CacheEffect, PrewarmAsk};
use crate::plan::draft::StepLimits;
use crate::plan::fixture::{Run, caps, length, run, spec, start_of_time};
use crate::plan::residency::{Change, Computed};
use crate::plan::scheduler::{Opening, SchedulerCore, SchedulerEffect, SchedulerEvent};
use crate::read::{Lane, SegmentKey, TenantId};
use acts::{Act, act};
use states::{segment_of, state, tokens_of};

/// Both cores, the messages between them, and the step that runs.
struct World {
    now: Instant,
    scheduler: SchedulerCore<Run>,
    cache: CacheCore<Run>,
    to_cache: VecDeque<SchedulerEffect<Run>>,
    to_scheduler: VecDeque<SchedulerEvent<Run>>,
    step: Option<Step<Run>>,
    /// Steps in a row without urgent work while some was ready.
    inversions: u32,
    /// Blocks that were computed since they were last dropped.
    computed: BTreeSet<SegmentKey>,
    answered: BTreeMap<crate::plan::ReadId, u32>,
    /// Reads that wait, by tenant, as the queue tells of them.
    queued: BTreeMap<TenantId, usize>,
    submitted: u64,
    decisions: Vec<(DecisionId, u32)>,
    next: u64,
    log: Vec<String>,
}

const LIMITS: StepLimits = StepLimits { tokens: 128, rows: 4, chunk_tokens: 64, look_ahead: 2 };

impl World {
    fn new(kv_bytes: u64) -> Self {
        let now = start_of_time();
        let config = SchedulerConfig {
            chunk_tokens: LIMITS.chunk_tokens,
            look_ahead: LIMITS.look_ahead,
            failures_max: usize::MAX / 8,
            order: OrderConfig {
                age_max: Duration::from_millis(300),
                raise_after: Duration::from_millis(150),
                oldest_every: 3,
                quantum_tokens: 100,
                ..OrderConfig::default()
            },
            ..SchedulerConfig::default()
        };
        let cache = CacheConfig { kv_bytes, ..CacheConfig::default() };
        Self {
            now,
            scheduler: SchedulerCore::new(&config, &caps(), 0, now),
            cache: CacheCore::new(caps(), cache, Register::After, 0),
            to_cache: VecDeque::new(),
            to_scheduler: VecDeque::new(),
            step: None,
            inversions: 0,
            computed: BTreeSet::new(),
            answered: BTreeMap::new(),
            queued: BTreeMap::new(),
            submitted: 0,
            decisions: Vec::new(),
            next: 0,
            log: Vec::new(),
        }
    }

    fn tell(&mut self, event: SchedulerEvent<Run>) {
        for effect in self.scheduler.on(event, self.now) {
            self.log.push(format!("{effect:?}"));
            match effect {
                SchedulerEffect::Run(step) => self.take_step(step),
                SchedulerEffect::Reply { read, .. } => {
                    *self.answered.entry(read).or_insert(0) += 1;
                }
                SchedulerEffect::Log(_)
                | SchedulerEffect::Abandon { .. }
                | SchedulerEffect::Drained(_) => {}
                effect @ (SchedulerEffect::Lease { .. }
                | SchedulerEffect::Release { .. }
                | SchedulerEffect::Commit(_)
                | SchedulerEffect::WantStarted { .. }
                | SchedulerEffect::WantEnded { .. }) => self.to_cache.push_back(effect),
            }
        }
        self.check();
    }

    /// Budgets hold, paths have no gap, rows stand on their whole prefix.
    fn take_step(&mut self, step: Step<Run>) {
        assert!(self.step.is_none(), "two steps at once");
        let items = step.chunks.len() + step.rows.len();
        assert!(items > 0 && step.tokens() > 0, "an empty step");
        assert!(step.tokens() <= LIMITS.tokens || items == 1, "{step:?}");
        assert!(step.rows.len() <= LIMITS.rows as usize);
        let chunks = run(&step).chunks;
        for row in &step.rows {
            let state = row.suffix[0] / 100;
            let expected = 10 + tokens_of(state);
            assert_eq!(length(&row.path, &chunks), expected, "a row without its state");
        }
        self.step = Some(step);
        self.check_inversion();
    }

    /// Urgent work that is ready is in the next step, or in the one after if the oldest led.
    fn check_inversion(&mut self) {
        let Some(running) = &self.scheduler.running else { return };
        let chunks = running.chunks.iter().map(|chunk| chunk.lane);
        let rows = running.rows.iter().filter_map(|row| row.row.place()).map(|place| place.0);
        let has_urgent = chunks.chain(rows).any(|lane| lane == Lane::Urgent);
        let is_left =
            self.scheduler.queue.leased().any(|(_, group)| group.has_work_in(Lane::Urgent));
        self.inversions = if is_left && !has_urgent { self.inversions + 1 } else { 0 };
        assert!(self.inversions <= 1, "urgent work is passed over twice");
    }

    fn deliver_to_cache(&mut self) {
        let Some(effect) = self.to_cache.pop_front() else { return };
        let now = self.now;
        let effects = match effect {
            SchedulerEffect::Lease { key, path, owner, reach } => {
                let lease = (path.as_slice(), owner.as_ref());
                let reply = self.cache.residency.lease(lease, reach, now);
                self.to_scheduler.push_back(SchedulerEvent::Leased { key, reply });
                Vec::new()
            }
            SchedulerEffect::Release { path, served } => {
                self.cache.residency.release(&path, served);
                Vec::new()
            }
            SchedulerEffect::Commit(computed) => {
                self.note_computed(&computed);
                self.cache.residency.commit(computed);
                Vec::new()
            }
            SchedulerEffect::WantStarted { key } => self.cache.want_started(key, now),
            SchedulerEffect::WantEnded { key, result } => self.cache.want_ended(key, &result, now),
            SchedulerEffect::Run(_)
            | SchedulerEffect::Abandon { .. }
            | SchedulerEffect::Reply { .. }
            | SchedulerEffect::Log(_)
            | SchedulerEffect::Drained(_) => panic!("not for the cache"),
        };
        self.take_cache_effects(effects);
    }

    fn take_cache_effects(&mut self, effects: Vec<CacheEffect>) {
        for effect in effects {
            let event = match effect {
                CacheEffect::Want { prefix, missing, tenant, lane, is_registration } => {
                    SchedulerEvent::Want { prefix, missing, tenant, lane, is_registration }
                }
                CacheEffect::Unwant { key } => SchedulerEvent::Unwant { key },
                CacheEffect::Answer { .. } | CacheEffect::Tell { .. } => continue,
            };
            self.to_scheduler.push_back(event);
        }
        for change in self.cache.residency.take_changes() {
            if let Change::Dropped(key, _) = change {
                self.computed.remove(&key);
            }
        }
        self.check_residency();
    }

    /// Each block is computed once between two drops. What is taken over was computed, and dropped
    /// since at most.
    fn note_computed(&mut self, computed: &Computed<Run>) {
        let segment = segment_of(computed.key);
        let (mut done, end) = (computed.from, computed.from + computed.segment.tokens);
        while done < end {
            let (key, next) = segment.piece(done);
            let is_new = self.computed.insert(key);
            assert!(is_new || computed.is_adopted, "a block is computed twice");
            done = next;
        }
        assert_eq!(done, end, "a chunk ends within a block");
    }

    fn deliver_to_scheduler(&mut self) {
        if let Some(event) = self.to_scheduler.pop_front() {
            self.tell(event);
        }
    }

    fn finish_step(&mut self, succeeds: bool) {
        let Some(step) = self.step.take() else { return };
        let failure = || EngineError::Forward("drawn".to_owned());
        let result = if succeeds { Ok(run(&step)) } else { Err(failure()) };
        self.tell(SchedulerEvent::Done { step: step.id, epoch: step.epoch, result });
    }

    fn submit(&mut self, name: u32, lane: Lane, reads: u32) {
        let decision = DecisionId(self.next);
        self.next += 1;
        self.decisions.push((decision, name));
        let prefix = state(name);
        let deadline = (self.next.is_multiple_of(5)).then(|| self.now + Duration::from_millis(900));
        let missing = prefix.tokens();
        let tenant = tenant(name);
        let displaces = 0;
        let opening = Opening { decision, tenant, prefix, missing, lane, displaces, deadline };
        self.tell(SchedulerEvent::Open(opening));
        let reads: Vec<_> =
            (0..reads).map(|read| spec(name, 1 + (read * 37 + lane as u32) % 99)).collect();
        self.submitted += reads.len() as u64;
        self.tell(SchedulerEvent::Submit { decision, first: 0, reads, at: self.now });
    }

    fn close(&mut self, index: usize) {
        if index < self.decisions.len() {
            let (decision, _) = self.decisions.remove(index);
            self.tell(SchedulerEvent::Close { decision });
        }
    }

    fn prewarm(&mut self, name: u32, lane: Lane) {
        let prefix = state(name);
        let (tenant, ttl, deadline) = (tenant(name), None, None);
        let (ticket, wait, retry_after) = (0, false, Duration::ZERO);
        let ask = PrewarmAsk { ticket, tenant, prefix, lane, ttl, wait, deadline, retry_after };
        let effects = self.cache.prewarm(ask, self.now);
        self.take_cache_effects(effects);
    }

    fn promote(&mut self, name: u32) {
        let effects = self.cache.promote(state(name), tenant(name));
        self.take_cache_effects(effects);
    }

    /// Tenant `a` may keep so many bytes from now on, if there is a limit, and has this weight.
    fn limit(&mut self, kv_bytes_max: Option<u64>, weight: u32) {
        let own = TenantLimits { weight, kv_bytes_max, ..TenantLimits::default() };
        let limits = Arc::new(Limits::new(BTreeMap::from([(tenant(0), own)])));
        self.cache.limit(Arc::clone(&limits));
        self.take_cache_effects(Vec::new());
        self.tell(SchedulerEvent::Limit(limits));
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        let effects = self.cache.tick(self.now);
        self.take_cache_effects(effects);
        self.tell(SchedulerEvent::Tick);
    }

    /// Delivers all messages and lets the engine finish until nothing moves.
    fn settle(&mut self) {
        for _ in 0..10_000 {
            if !self.to_cache.is_empty() {
                self.deliver_to_cache();
            } else if !self.to_scheduler.is_empty() {
                self.deliver_to_scheduler();
            } else if self.step.is_some() {
                self.finish_step(true);
            } else {
                return;
            }
        }
        panic!("it never comes to rest");
    }
}

/// Two tenants, whose states are their own.
fn tenant(name: u32) -> TenantId {
    TenantId(["a", "b"][name as usize % 2].into())
}

fn play(kv_bytes: u64, acts: &[Act]) -> World {
    let mut world = World::new(kv_bytes);
    for act in acts {
        match *act {
            Act::Submit(name, lane, reads) => world.submit(name, Lane::ALL[lane], reads),
            Act::Close(index) => world.close(index),
            Act::Finish(succeeds) => world.finish_step(succeeds),
            Act::ToCache => world.deliver_to_cache(),
            Act::ToScheduler => world.deliver_to_scheduler(),
            Act::Prewarm(name, lane) => world.prewarm(name, Lane::ALL[lane]),
            Act::Promote(name) => world.promote(name),
            Act::Pass(millis) => world.pass(Duration::from_millis(millis)),
            Act::Limit(bytes, weight) => world.limit(bytes, weight),
            Act::Withdraw(index) => {
                if let Some((decision, _)) = world.decisions.get(index).copied() {
                    world.tell(SchedulerEvent::Withdraw { decision });
                }
            }
        }
    }
    world
}

proptest! {
    /// Every read ends exactly once, every lease comes back, no state token is computed twice.
    #[test]
    fn everything_admitted_ends(
        kv_bytes in prop_oneof![Just(0u64), 64u64..2_000, Just(100_000)],
        acts in prop::collection::vec(act(), 1..150),
    ) {
        let mut world = play(kv_bytes, &acts);
        // Decisions end when their reads have, so that memory goes round.
        for _ in 0..200 {
            world.settle();
            if world.decisions.is_empty() {
                break;
            }
            world.close(0);
            world.pass(Duration::from_millis(1));
        }
        // A want may wait for the room that pins hold.
        world.pass(Duration::from_mins(10));
        world.settle();
        prop_assert_eq!(world.answered.len() as u64, world.submitted);
        let (load, residency) = (world.scheduler.view(), world.cache.view());
        prop_assert_eq!((load.waiting(), load.decisions_open, load.wants_waiting), (0, 0, 0));
        prop_assert_eq!((residency.leased, residency.reserved, residency.overflow), (0, 0, 0));
    }

    /// One list of events gives one list of effects.
    #[test]
    fn a_plan_is_deterministic(acts in prop::collection::vec(act(), 1..100)) {
        prop_assert_eq!(play(900, &acts).log, play(900, &acts).log);
    }
}

#[test]
fn an_answer_of_another_epoch_or_step_is_void() {
    let mut world = World::new(10_000);
    world.submit(1, Lane::Normal, 1);
    while world.step.is_none() {
        world.deliver_to_cache();
        world.deliver_to_scheduler();
    }
    let step = world.step.clone().unwrap();
    for (id, epoch) in [(step.id, 7), (step.id + 1, step.epoch)] {
        let result = Ok(run(&step));
        world.tell(SchedulerEvent::Done { step: id, epoch, result });
        assert!(world.answered.is_empty());
    }
    world.finish_step(true);
    assert_eq!(world.answered.len(), 1);
}

#[test]
fn a_prefill_takes_the_best_lane_of_its_waiters() {
    let mut world = World::new(10_000);
    world.submit(4, Lane::Batch, 1);
    world.submit(3, Lane::Normal, 1);
    world.submit(4, Lane::Urgent, 1);
    while world.step.is_none() {
        world.deliver_to_cache();
        world.deliver_to_scheduler();
    }
    let running = world.scheduler.running.as_ref().unwrap();
    let state = state(4).state.key;
    assert!(running.chunks.iter().any(|chunk| chunk.group == state && chunk.lane == Lane::Urgent));
}
