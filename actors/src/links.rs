//! What all actors and handles share: addresses of the actors, published views, admission counts.
//!
//! Everything is read without a message. The addresses change when the supervisor starts scheduler
//! and cache again; a message to an actor that is gone is dropped, and with it its reply port, which
//! its asker sees at once.

mod life;
mod returning;

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use ractor::{ActorRef, DerivedActorRef};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::cache::CacheAsk;
use crate::config::Config;
use crate::engine::Caps;
use crate::error::{ReadError, RejectReason};
use crate::expected::{Expectation, Expected};
use crate::handle::DecisionMeta;
use crate::observe::Meters;
use crate::plan::DecisionId;
use crate::plan::admit::{Admitted, Backlog, Newcomer, admit, drain_time};
use crate::plan::path::length;
use crate::plan::returns::Returns;
use crate::prewarm::PrewarmSpec;
use crate::read::{Lane, Prefix, SegmentKey, SegmentSpec, TenantId};
use crate::registration::RegistrationMessage;
use crate::restarts::{ActorKind, RestartCounts};
use crate::scheduler::SchedulerAsk;
use crate::snapshot::{LoadView, RegistrationCounters, ResidencyView, Snapshot, StepLogEntry};
use crate::tenants::{Arrival, Found, TenantUse, Tenants};
use crate::watch::Watch;
use crate::work::Account;

/// Steps that the step log remembers.
pub(crate) const STEP_LOG_MAX: usize = 256;

/// Addresses of the actors that are there once.
#[derive(Clone)]
pub(crate) struct Links {
    pub(crate) scheduler: DerivedActorRef<SchedulerAsk>,
    pub(crate) cache: DerivedActorRef<CacheAsk>,
    pub(crate) registration: ActorRef<RegistrationMessage>,
}

/// What [`Engine::rehearse`](crate::Engine::rehearse) does.
pub(crate) type Rehearsal = Box<dyn Fn(ActorKind) + Send + Sync>;

/// What actors and handles share.
pub(crate) struct Shared {
    pub(crate) config: Config,
    pub(crate) caps: Caps,
    pub(crate) load: ArcSwap<LoadView>,
    pub(crate) residency: ArcSwap<ResidencyView>,
    /// The tenants whose states have most bytes; written by the cache actor.
    pub(crate) top_bytes: ArcSwap<Vec<(TenantId, u64)>>,
    pub(crate) registration: ArcSwap<RegistrationCounters>,
    pub(crate) watch: Watch,
    pub(crate) draining: AtomicBool,
    pub(crate) meters: Meters,
    pub(crate) restarts: RestartCounts,
    /// Why the engine is gone for good, once it is.
    death: watch::Sender<Option<String>>,
    rehearsal: Rehearsal,
    /// `None` before the first start and while actors are started again.
    links: ArcSwapOption<Links>,
    next_number: AtomicU64,
    /// Let in, but not seen by the scheduler yet, by lane.
    entering_reads: [AtomicUsize; 4],
    entering_tokens: [AtomicU64; 4],
    pub(crate) tenants: Arc<Tenants>,
    expected: Arc<Expected>,
    /// When refused decisions come back; a plain lock, since it is held for a look-up.
    returns: Mutex<Returns>,
    /// Blocks of heads and states that are resident; written by the cache actor.
    blocks_resident: RwLock<BTreeSet<SegmentKey>>,
    /// Who keeps accounts, once that is known.
    pub(crate) accounts: OnceLock<Arc<dyn Account>>,
    /// Written once a step; a plain lock, since it is held for a push.
    step_log: Mutex<VecDeque<StepLogEntry>>,
}

impl Shared {
    pub(crate) fn new(config: Config, caps: Caps, rehearsal: Rehearsal) -> Self {
        let idle = LoadView::idle(0, Instant::now());
        let tenants = Arc::new(Tenants::new(&config.scheduler));
        let returns = Mutex::new(Returns::new(&config.scheduler));
        Self {
            config,
            caps,
            load: ArcSwap::from_pointee(idle),
            residency: ArcSwap::default(),
            top_bytes: ArcSwap::default(),
            registration: ArcSwap::default(),
            watch: Watch::new(),
            draining: AtomicBool::new(false),
            meters: Meters::new(),
            restarts: RestartCounts::default(),
            death: watch::Sender::new(None),
            rehearsal,
            links: ArcSwapOption::empty(),
            next_number: AtomicU64::new(0),
            entering_reads: Default::default(),
            entering_tokens: Default::default(),
            tenants,
            expected: Arc::default(),
            returns,
            blocks_resident: RwLock::default(),
            accounts: OnceLock::new(),
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
        (arrival, tenant): (Arrival, Found),
    ) -> Result<(Permit, Admitted), RejectReason> {
        let lane = newcomer.lane as usize;
        let mut entering = self.entering();
        // Counted before the view is read: two newcomers at once may both be seen, never neither.
        entering.reads[lane] =
            self.entering_reads[lane].fetch_add(newcomer.reads, Ordering::SeqCst);
        entering.tokens[lane] =
            self.entering_tokens[lane].fetch_add(newcomer.tokens, Ordering::SeqCst);
        let permit = Permit { shared: Arc::clone(self), newcomer, _arrival: arrival };
        let backlog = self.backlog(entering, tenant);
        let admitted = admit(backlog, newcomer, &self.config.scheduler)?;
        Ok((permit, admitted))
    }

    /// What a newcomer of a tenant finds ahead of it, what is `entering` included.
    pub(crate) fn backlog(&self, entering: Backlog, tenant: Found) -> Backlog {
        let backlog = self.load.load().backlog(Instant::now());
        Backlog {
            reads: std::array::from_fn(|lane| backlog.reads[lane] + entering.reads[lane]),
            tokens: std::array::from_fn(|lane| backlog.tokens[lane] + entering.tokens[lane]),
            tenant,
            ..backlog
        }
    }

    /// What was let in and has not arrived yet.
    pub(crate) fn entering(&self) -> Backlog {
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
        let (expectation, prefix_tokens) = self.expect(&meta.prefix);
        let tokens = meta.first_tokens.saturating_add(prefix_tokens);
        let reads = meta.first_reads.max(1);
        let now = Instant::now();
        let (use_of_tenant, arrival, found) =
            self.tenants.enter(meta.tenant.clone(), (reads, tokens), now);
        let time_left = time_left(meta.deadline, meta.deadline_is_asked);
        let gives_way = self.arrives(meta);
        let newcomer = Newcomer { lane: meta.lane, reads, tokens, time_left, gives_way };
        let (permit, admitted) = match self.enter(newcomer, (arrival, found)) {
            Ok(entered) => entered,
            Err(reason) => {
                use_of_tenant.give_back();
                return Err(ReadError::Rejected(self.told_when(reason, meta, newcomer)));
            }
        };
        let decision = DecisionId(self.new_number());
        let shared = Arc::clone(self);
        let guard = DecisionGuard { decision, use_of_tenant, shared, _expectation: expectation };
        Ok(Entry { permit, guard, admitted })
    }

    /// Admission of a prewarm; the expectation is to be kept until its state is computed.
    pub(crate) fn enter_prewarm(
        self: &Arc<Self>,
        spec: &PrewarmSpec,
    ) -> Result<(Permit, Expectation), ReadError> {
        self.closed()?;
        self.fits(&spec.prefix, 1)?;
        let (expectation, tokens) = self.expect(&spec.prefix);
        let time_left = time_left(spec.deadline, spec.deadline_is_asked);
        let (lane, gives_way) = (spec.lane, false);
        let newcomer = Newcomer { lane, reads: 1, tokens, time_left, gives_way };
        let (use_of_tenant, arrival, found) =
            self.tenants.enter(spec.tenant.clone(), (1, tokens), Instant::now());
        // What makes room for a prewarm is nothing that was asked.
        let refused = match self.enter(newcomer, (arrival, found)) {
            Ok((permit, Admitted::AsIs)) => return Ok((permit, expectation)),
            Ok((_, Admitted::Displacing)) => self.queue_full(),
            Err(reason) => reason,
        };
        use_of_tenant.give_back();
        Err(ReadError::Rejected(refused))
    }

    fn queue_full(&self) -> RejectReason {
        let (reads_waiting, reads_max) =
            (self.load.load().waiting(), self.config.scheduler.reads_max);
        RejectReason::QueueFull { reads_waiting, reads_max, retry_after: self.drain_time() }
    }

    /// The time after which all that waits now is done.
    pub(crate) fn drain_time(&self) -> Duration {
        drain_time(self.load.load().backlog(Instant::now()), Lane::Idle)
    }

    pub(crate) fn new_number(&self) -> u64 {
        self.next_number.fetch_add(1, Ordering::Relaxed)
    }

    fn expect(&self, prefix: &Prefix) -> (Expectation, u64) {
        let resident = self.blocks_resident.read().unwrap_or_else(PoisonError::into_inner);
        self.expected.expect(prefix, |key| resident.contains(&key))
    }

    /// Prefix tokens that are not resident, and that nobody is about to have computed.
    pub(crate) fn unexpected(&self, prefix: &Prefix) -> u64 {
        let resident = self.blocks_resident.read().unwrap_or_else(PoisonError::into_inner);
        self.expected.unexpected(prefix, |key| resident.contains(&key))
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

    pub(crate) fn log_step(&self, entry: StepLogEntry) {
        let mut log = self.step_log.lock().unwrap_or_else(PoisonError::into_inner);
        if log.len() == STEP_LOG_MAX {
            log.pop_front();
        }
        log.push_back(entry);
    }

    pub(crate) fn last_steps<T>(&self, most: usize, of: impl Fn(&StepLogEntry) -> T) -> Vec<T> {
        let log = self.step_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().skip(log.len().saturating_sub(most)).map(of).collect()
    }

    pub(crate) fn step_log(&self) -> Vec<StepLogEntry> {
        let log = self.step_log.lock().unwrap_or_else(PoisonError::into_inner);
        log.iter().cloned().collect()
    }

    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot::of(self)
    }
}

/// What is left until a deadline, if its caller has set it.
pub(crate) fn time_left(deadline: Option<Instant>, is_asked: bool) -> Option<Duration> {
    Some(deadline.filter(|_| is_asked)?.saturating_duration_since(Instant::now()))
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
    _arrival: Arrival,
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Newcomer { lane, reads, tokens, .. } = self.newcomer;
        self.shared.entering_reads[lane as usize].fetch_sub(reads, Ordering::SeqCst);
        self.shared.entering_tokens[lane as usize].fetch_sub(tokens, Ordering::SeqCst);
    }
}

impl Permit {
    /// Tokens that it was let in with.
    pub(crate) fn tokens(&self) -> u64 {
        self.newcomer.tokens
    }
}

/// Keeps a decision open; dropping it, wherever it is, closes the decision: reads that wait are
/// cancelled and its hold on the state ends.
pub(crate) struct DecisionGuard {
    pub(crate) decision: DecisionId,
    use_of_tenant: TenantUse,
    shared: Arc<Shared>,
    _expectation: Expectation,
}

impl DecisionGuard {
    /// Whose decision it is.
    pub(crate) fn tenant(&self) -> &TenantId {
        self.use_of_tenant.tenant()
    }
}

impl Drop for DecisionGuard {
    fn drop(&mut self) {
        self.shared.scheduler(SchedulerAsk::Close { decision: self.decision });
    }
}
