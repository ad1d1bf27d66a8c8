//! What all actors and handles share: addresses of the actors, published views, admission counts.
//!
//! Everything is read without a message. The addresses change when the supervisor starts scheduler
//! and cache again; a message to an actor that is gone is dropped, and with it its reply port, which
//! its asker sees at once.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use dashmap::DashMap;
use ractor::{ActorRef, DerivedActorRef};
use tokio::time::Instant;

use crate::cache::CacheAsk;
use crate::config::Config;
use crate::engine::Caps;
use crate::error::{ReadError, RejectReason};
use crate::handle::DecisionMeta;
use crate::plan::DecisionId;
use crate::plan::admit::{Admitted, Backlog, Newcomer, admit};
use crate::plan::path::length;
use crate::prewarm::PrewarmSpec;
use crate::read::{Prefix, SegmentKey, SegmentSpec, TenantId};
use crate::registration::RegistrationMessage;
use crate::scheduler::SchedulerAsk;
use crate::snapshot::{
    EngineState, LoadView, RegistrationCounters, ResidencyView, Snapshot, StepLogEntry,
};

/// When a prewarm that found the queue full is told to come back.
const RETRY_PREWARM_AFTER: Duration = Duration::from_secs(1);

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
    /// Let in, but not seen by the scheduler yet, by lane.
    entering_reads: [AtomicUsize; 4],
    entering_tokens: [AtomicU64; 4],
    /// Reads of each tenant that wait or run; point look-ups, never held across an await.
    tenants: DashMap<TenantId, usize>,
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
            entering_reads: Default::default(),
            entering_tokens: Default::default(),
            tenants: DashMap::new(),
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
    fn enter(
        self: &Arc<Self>,
        newcomer: Newcomer,
        tenant_reads: usize,
    ) -> Result<(Permit, Admitted), RejectReason> {
        let lane = newcomer.lane as usize;
        let mut entering = self.entering();
        // Counted before the view is read: two newcomers at once may both be seen, never neither.
        entering.reads[lane] =
            self.entering_reads[lane].fetch_add(newcomer.reads, Ordering::SeqCst);
        entering.tokens[lane] =
            self.entering_tokens[lane].fetch_add(newcomer.tokens, Ordering::SeqCst);
        let permit = Permit { shared: Arc::clone(self), newcomer };
        let load = self.load.load();
        let backlog = load.backlog(Instant::now());
        let sum = |waiting: usize, lane: usize| waiting + entering.reads[lane];
        let backlog = Backlog {
            reads: std::array::from_fn(|lane| sum(backlog.reads[lane], lane)),
            tokens: std::array::from_fn(|lane| backlog.tokens[lane] + entering.tokens[lane]),
            tenant_reads,
            ..backlog
        };
        let admitted = admit(backlog, newcomer, &self.config.scheduler)?;
        Ok((permit, admitted))
    }

    /// What was let in and has not arrived yet.
    fn entering(&self) -> Backlog {
        Backlog {
            reads: std::array::from_fn(|lane| self.entering_reads[lane].load(Ordering::SeqCst)),
            tokens: std::array::from_fn(|lane| self.entering_tokens[lane].load(Ordering::SeqCst)),
            ..Backlog::default()
        }
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
        let reads = meta.first_reads.max(1);
        let use_of_tenant = TenantUse::new(self, meta.tenant.clone(), reads);
        let deadline = meta.deadline.filter(|_| meta.deadline_is_asked);
        let time_left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let newcomer = Newcomer { lane: meta.lane, reads, tokens, time_left };
        let entered = self.enter(newcomer, use_of_tenant.before);
        let (permit, admitted) = entered.map_err(ReadError::Rejected)?;
        let guard = DecisionGuard { decision: self.number(), use_of_tenant, use_of_state };
        Ok(Entry { permit, guard, admitted })
    }

    /// Admission of a prewarm.
    pub(crate) fn enter_prewarm(self: &Arc<Self>, spec: &PrewarmSpec) -> Result<Permit, ReadError> {
        self.closed()?;
        self.fits(&spec.prefix, 1)?;
        let (lane, tokens) = (spec.lane, self.missing(&spec.prefix));
        let newcomer = Newcomer { lane, reads: 1, tokens, time_left: None };
        let tenant_reads = self.tenants.get(&spec.tenant).map_or(0, |reads| *reads);
        // What makes room for a prewarm is nothing that was asked.
        match self.enter(newcomer, tenant_reads).map_err(ReadError::Rejected)? {
            (permit, Admitted::AsIs) => Ok(permit),
            (_, Admitted::Displacing) => Err(ReadError::Rejected(self.queue_full())),
        }
    }

    fn queue_full(&self) -> RejectReason {
        let (reads_waiting, reads_max) =
            (self.load.load().waiting(), self.config.scheduler.reads_max);
        RejectReason::QueueFull { reads_waiting, reads_max, retry_after: RETRY_PREWARM_AFTER }
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
    pub(crate) admitted: Admitted,
}

/// Reads and tokens that were let in and are not queued yet.
pub(crate) struct Permit {
    shared: Arc<Shared>,
    newcomer: Newcomer,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Newcomer { lane, reads, tokens, .. } = self.newcomer;
        self.shared.entering_reads[lane as usize].fetch_sub(reads, Ordering::SeqCst);
        self.shared.entering_tokens[lane as usize].fetch_sub(tokens, Ordering::SeqCst);
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

/// Counts an open decision's reads for its tenant.
struct TenantUse {
    shared: Arc<Shared>,
    tenant: TenantId,
    reads: usize,
    /// Reads of the tenant that were counted before.
    before: usize,
}

impl TenantUse {
    fn new(shared: &Arc<Shared>, tenant: TenantId, reads: usize) -> Self {
        let mut count = shared.tenants.entry(tenant.clone()).or_insert(0);
        let before = *count;
        *count += reads;
        drop(count);
        Self { shared: Arc::clone(shared), tenant, reads, before }
    }
}

impl Drop for TenantUse {
    fn drop(&mut self) {
        if let Some(mut count) = self.shared.tenants.get_mut(&self.tenant) {
            *count -= self.reads;
        }
        self.shared.tenants.remove_if(&self.tenant, |_, count| *count == 0);
    }
}

/// Keeps a decision open; dropping it, wherever it is, closes the decision: reads that wait are
/// cancelled and its hold on the state ends.
pub(crate) struct DecisionGuard {
    pub(crate) decision: DecisionId,
    use_of_tenant: TenantUse,
    use_of_state: StateUse,
}

impl DecisionGuard {
    /// Whose decision it is.
    pub(crate) fn tenant(&self) -> &TenantId {
        &self.use_of_tenant.tenant
    }
}

impl Drop for DecisionGuard {
    fn drop(&mut self) {
        self.use_of_state.shared.scheduler(SchedulerAsk::Close { decision: self.decision });
    }
}
