//! What all actors and handles share: addresses of the actors, published views, admission counts.
//!
//! Everything is read without a message. The addresses change when the supervisor starts scheduler
//! and cache again; a message to an actor that is gone is dropped, and with it its reply port, which
//! its asker sees at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use arc_swap::{ArcSwap, ArcSwapOption};
use ractor::{ActorRef, DerivedActorRef};
use tokio::time::Instant;

use crate::cache::CacheAsk;
use crate::config::Config;
use crate::engine::Caps;
use crate::error::{ReadError, RejectReason};
use crate::handle::DecisionMeta;
use crate::plan::DecisionId;
use crate::plan::admit::{Backlog, Newcomer, admit};
use crate::plan::path::length;
use crate::read::{Prefix, SegmentKey, SegmentSpec};
use crate::registration::RegistrationMessage;
use crate::scheduler::SchedulerAsk;
use crate::snapshot::{
    EngineState, LoadView, RegistrationCounters, ResidencyView, Snapshot, StepLogEntry,
};

/// Steps that the step log remembers.
pub(crate) const STEP_LOG_MAX: usize = 256;

/// Addresses of the actors that are there once.
#[derive(Clone)]
pub(crate) struct Links {
    pub(crate) scheduler: DerivedActorRef<SchedulerAsk>,
    pub(crate) cache: DerivedActorRef<CacheAsk>,
    pub(crate) registration: ActorRef<RegistrationMessage>,
}

/// What actors and handles share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) caps: Caps,
    pub(crate) load: ArcSwap<LoadView>,
    pub(crate) residency: ArcSwap<ResidencyView>,
    pub(crate) registration: ArcSwap<RegistrationCounters>,
    pub(crate) draining: AtomicBool,
    /// `None` before the first start and while actors are started again.
    links: ArcSwapOption<Links>,
    next_decision: AtomicU64,
    /// Let in, but not seen by the scheduler yet.
    entering_reads: AtomicUsize,
    entering_tokens: AtomicU64,
    /// How many open decisions stand on each state; point look-ups only, hence a plain lock.
    states_open: Mutex<BTreeMap<SegmentKey, usize>>,
    /// Blocks of heads and states that are resident; written by the cache actor.
    blocks_resident: RwLock<BTreeSet<SegmentKey>>,
    /// Written once a step; a plain lock, since it is held for a push.
    step_log: Mutex<VecDeque<StepLogEntry>>,
}

impl Shared {
    pub(crate) fn new(config: Config, caps: Caps) -> Self {
        let idle = LoadView::idle(0, Instant::now());
        Self {
            config,
            caps,
            load: ArcSwap::from_pointee(idle),
            residency: ArcSwap::default(),
            registration: ArcSwap::default(),
            draining: AtomicBool::new(false),
            links: ArcSwapOption::empty(),
            next_decision: AtomicU64::new(0),
            entering_reads: AtomicUsize::new(0),
            entering_tokens: AtomicU64::new(0),
            states_open: Mutex::default(),
            blocks_resident: RwLock::default(),
            step_log: Mutex::default(),
        }
    }

    pub(crate) fn set_links(&self, links: Option<Links>) {
        self.links.store(links.map(Arc::new));
    }

    /// Puts a new registration actor in the place of the one that is gone.
    pub(crate) fn set_registration(&self, registration: &ActorRef<RegistrationMessage>) {
        self.links.rcu(|links| {
            let links = links.as_deref()?;
            Some(Arc::new(Links { registration: registration.clone(), ..links.clone() }))
        });
    }

    /// Sends to the scheduler; what cannot be sent is dropped, its reply port included.
    pub(crate) fn scheduler(&self, ask: SchedulerAsk) {
        if let Some(links) = self.links.load().as_ref() {
            // A dead scheduler drops the message, and with it the port that the asker watches.
            let _ = links.scheduler.cast(ask);
        }
    }

    /// Sends to the cache, likewise.
    pub(crate) fn cache(&self, ask: CacheAsk) {
        if let Some(links) = self.links.load().as_ref() {
            // A dead cache drops the message, as above.
            let _ = links.cache.cast(ask);
        }
    }

    /// Sends to the registration actor, likewise.
    pub(crate) fn registration(&self, message: RegistrationMessage) {
        if let Some(links) = self.links.load().as_ref() {
            // A dead registration actor drops the message and with it the decision's guard.
            let _ = links.registration.cast(message);
        }
    }

    /// Why no new work is taken now, if so.
    pub(crate) fn closed(&self) -> Result<(), ReadError> {
        if self.draining.load(Ordering::SeqCst) {
            return Err(ReadError::Rejected(RejectReason::Draining));
        }
        match &self.load.load().engine {
            EngineState::Ready | EngineState::Busy => Ok(()),
            EngineState::Restarting => Err(ReadError::Unavailable),
            EngineState::Dead(why) => {
                Err(ReadError::Rejected(RejectReason::EngineDead(why.clone())))
            }
        }
    }

    /// Refuses a prompt that does not fit the context, and a prefix that could never be held.
    pub(crate) fn fits(&self, prefix: &Prefix, suffix_tokens: u32) -> Result<(), ReadError> {
        let tokens = prefix.tokens().saturating_add(suffix_tokens);
        let tokens_max = self.caps.context_tokens;
        if tokens > tokens_max {
            return Err(ReadError::Rejected(RejectReason::TooLong { tokens, tokens_max }));
        }
        let (bytes, bytes_max) = (self.bytes_of(prefix), self.config.cache.path_bytes_max());
        if bytes > bytes_max {
            return Err(ReadError::Rejected(RejectReason::Oversize { bytes, bytes_max }));
        }
        Ok(())
    }

    /// Bytes of keys and values of a prefix.
    fn bytes_of(&self, prefix: &Prefix) -> u64 {
        let head = length(&prefix.head.tokens);
        self.caps.segment_bytes(0, head)
            + self.caps.segment_bytes(head, length(&prefix.state.tokens))
    }

    /// Admits `newcomer` or says why not. What it adds stays counted until the permit is dropped.
    pub(crate) fn enter(self: &Arc<Self>, newcomer: Newcomer) -> Result<Permit, RejectReason> {
        // Counted before the view is read: two newcomers at once may both be seen, never neither.
        let reads = self.entering_reads.fetch_add(newcomer.reads, Ordering::SeqCst);
        let tokens = self.entering_tokens.fetch_add(newcomer.tokens, Ordering::SeqCst);
        let permit = Permit { shared: Arc::clone(self), newcomer };
        let load = self.load.load();
        let backlog = Backlog {
            reads: load.waiting() + load.wants_waiting + reads,
            tokens: load.tokens_waiting + tokens,
            tokens_per_second: load.tokens_per_second,
        };
        admit(backlog, newcomer, &self.config.scheduler)?;
        Ok(permit)
    }

    /// Admission of a decision, by its first stage.
    pub(crate) fn enter_decision(
        self: &Arc<Self>,
        meta: &DecisionMeta,
    ) -> Result<Entry, ReadError> {
        self.closed()?;
        self.fits(&meta.prefix, meta.suffix_tokens_max)?;
        let use_of_state = StateUse::new(self, meta.prefix.state.key);
        let prefix_tokens = if use_of_state.first { self.missing(&meta.prefix) } else { 0 };
        let tokens = meta.first_tokens.saturating_add(prefix_tokens);
        let newcomer = Newcomer { reads: meta.first_reads.max(1), tokens };
        let permit = self.enter(newcomer).map_err(ReadError::Rejected)?;
        Ok(Entry { permit, guard: DecisionGuard { decision: self.number(), use_of_state } })
    }

    /// Admission of a prewarm.
    pub(crate) fn enter_prewarm(self: &Arc<Self>, prefix: &Prefix) -> Result<Permit, ReadError> {
        self.closed()?;
        self.fits(prefix, 1)?;
        let newcomer = Newcomer { reads: 1, tokens: self.missing(prefix) };
        self.enter(newcomer).map_err(ReadError::Rejected)
    }

    fn number(&self) -> DecisionId {
        DecisionId(self.next_decision.fetch_add(1, Ordering::Relaxed))
    }

    /// Prefix tokens that are not resident.
    pub(crate) fn missing(&self, prefix: &Prefix) -> u64 {
        let resident = self.blocks_resident.read().unwrap_or_else(PoisonError::into_inner);
        let missing = |part: &SegmentSpec| part.missing(|key| resident.contains(&key));
        u64::from(missing(&prefix.head)) + u64::from(missing(&prefix.state))
    }

    /// Notes that a block is resident, or no longer.
    pub(crate) fn set_resident(&self, key: SegmentKey, resident: bool) {
        let mut blocks = self.blocks_resident.write().unwrap_or_else(PoisonError::into_inner);
        if resident {
            blocks.insert(key);
        } else {
            blocks.remove(&key);
        }
    }

    /// Forgets all residency: a new cache starts empty.
    pub(crate) fn clear_resident(&self) {
        self.blocks_resident.write().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn states_open(&self) -> MutexGuard<'_, BTreeMap<SegmentKey, usize>> {
        self.states_open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn log_step(&self, entry: StepLogEntry) {
        let mut log = self.step_log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == STEP_LOG_MAX {
            log.pop_front();
        }
        log.push_back(entry);
    }

    pub(crate) fn step_log(&self) -> Vec<StepLogEntry> {
        let log = self.step_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().cloned().collect()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot {
            load: LoadView::clone(&self.load.load()),
            residency: **self.residency.load(),
            registration: **self.registration.load(),
            draining: self.draining.load(Ordering::SeqCst),
        }
    }
}

/// What an admitted decision holds until its first reads are queued, and until it ends.
pub(crate) struct Entry {
    pub(crate) permit: Permit,
    pub(crate) guard: DecisionGuard,
}

/// Reads and tokens that were let in and are not queued yet.
pub(crate) struct Permit {
    shared: Arc<Shared>,
    newcomer: Newcomer,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.entering_reads.fetch_sub(self.newcomer.reads, Ordering::SeqCst);
        self.shared.entering_tokens.fetch_sub(self.newcomer.tokens, Ordering::SeqCst);
    }
}

/// Counts an open decision on a state.
struct StateUse {
    shared: Arc<Shared>,
    state: SegmentKey,
    /// Whether no other decision on the state was open.
    first: bool,
}

impl StateUse {
    fn new(shared: &Arc<Shared>, state: SegmentKey) -> Self {
        let mut open = shared.states_open();
        let count = open.entry(state).or_insert(0);
        *count += 1;
        Self { shared: Arc::clone(shared), state, first: *count == 1 }
    }
}

impl Drop for StateUse {
    fn drop(&mut self) {
        let mut open = self.shared.states_open();
        if let Some(count) = open.get_mut(&self.state) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.state);
            }
        }
    }
}

/// Keeps a decision open; dropping it, wherever it is, closes the decision: reads that wait are
/// cancelled and its hold on the state ends.
pub(crate) struct DecisionGuard {
    pub(crate) decision: DecisionId,
    use_of_state: StateUse,
}

impl Drop for DecisionGuard {
    fn drop(&mut self) {
        self.use_of_state.shared.scheduler(SchedulerAsk::Close { decision: self.decision });
    }
}
