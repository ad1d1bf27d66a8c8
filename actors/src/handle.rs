//! The crate's public face: open a decision, prewarm a state, look, drain.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ractor::{ActorRef, ActorRuntime};
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::cache::CacheAsk;
use crate::config::{Config, Register};
use crate::engine::Caps;
use crate::error::ReadError;
use crate::forecast::Forecast;
use crate::limits::{Limits, TenantLimits};
use crate::links::Shared;
use crate::observe;
use crate::plan::DecisionId;
use crate::plan::admit::Admitted;
use crate::prewarm::{PinHandle, PrewarmOutcome, PrewarmSpec, Tier};
use crate::read::{Lane, Prefix, ReadOutcome, ReadSpec, SegmentKey, TenantId};
use crate::registration::RegistrationMessage;
use crate::request::{RequestActor, RequestArguments, RequestMessage};
use crate::scheduler::SchedulerAsk;
use crate::snapshot::{DrainReport, QueueDetails, ResidencyDetails, Snapshot, StepLogEntry};
use crate::supervise::SupervisorMessage;
use crate::tenants::Bucket;
use crate::work::Account;

/// What admission must know of a decision before its prompts are queued.
#[derive(Debug, Clone)]
pub struct DecisionMeta {
    /// Whose decision it is.
    pub tenant: TenantId,
    /// Its lane.
    pub lane: Lane,
    /// When its reads expire.
    pub deadline: Option<Instant>,
    /// Whether the caller asked for that time limit; then it is not let in if it cannot be met.
    pub deadline_is_asked: bool,
    /// Head and state, shared by all its reads.
    pub prefix: Prefix,
    /// Reads of its first stage; counted as at least one.
    pub first_reads: usize,
    /// Suffix tokens of its first stage, all reads together.
    pub first_tokens: u64,
    /// Tokens of its longest suffix, all stages included.
    pub suffix_tokens_max: u32,
}

/// The way to the actors; cheap to clone.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
    supervisor: ActorRef<SupervisorMessage>,
}

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>, supervisor: ActorRef<SupervisorMessage>) -> Self {
        Self { shared, supervisor }
    }

    /// Admits a decision and starts its request actor; must be called within a tokio runtime.
    ///
    /// # Errors
    /// [`ReadError::Rejected`] when a limit is exceeded, a prompt is too long, the server stops or
    /// the engine is dead; [`ReadError::Unavailable`] while actors are started again.
    pub fn open(&self, meta: DecisionMeta) -> Result<DecisionHandle, ReadError> {
        let entry = self.shared.enter_decision(&meta);
        let entry = entry.inspect_err(|error| self.shared.meters.refusals.refused(error))?;
        let decision = entry.guard.decision;
        let prefix = meta.prefix.clone();
        let missing = self.shared.missing(&meta.prefix);
        let displaces = entry.admitted == Admitted::Displacing;
        self.shared.scheduler(SchedulerAsk::open(decision, &meta, missing, displaces));
        let arguments = RequestArguments { shared: Arc::clone(&self.shared), prefix, entry };
        let (request, _) = ActorRuntime::spawn_instant(None, RequestActor, arguments)
            .map_err(|_| ReadError::Unavailable)?;
        let DecisionMeta { prefix, tenant, .. } = meta;
        let shared = Arc::clone(&self.shared);
        Ok(DecisionHandle { decision, tenant, prefix, request, shared })
    }

    /// Makes a state resident and pins it for its time to live.
    ///
    /// Dropping the future of one that waits gives it up: its state is computed on only if a read, a
    /// registration or another prewarm needs it. One with `wait` false goes on by itself.
    ///
    /// # Errors
    /// As [`open`](Self::open); with `wait` also those of the computation, and
    /// [`ReadError::Expired`] at the deadline.
    pub async fn prewarm(&self, spec: PrewarmSpec) -> Result<PrewarmOutcome, ReadError> {
        let meters = &self.shared.meters;
        let entered = self.shared.enter_prewarm(&spec).inspect_err(|error| {
            meters.refusals.refused(error);
            meters.ledger.prewarmed(&Err(error.clone()));
        });
        let (permit, expectation) = entered?;
        let (tenant, tokens) = (spec.tenant.clone(), permit.tokens());
        let (ticket, key) = (self.shared.new_number(), spec.prefix.state.key);
        let (reply, outcome) = oneshot::channel();
        self.shared.cache(CacheAsk::Prewarm { ticket, spec, reply, permit, expectation });
        let mut guard = PrewarmGuard { shared: &self.shared, key, ticket, ended: false };
        let outcome = outcome.await.unwrap_or_else(|_| {
            let lost = Err(ReadError::Unavailable);
            meters.ledger.prewarmed(&lost);
            lost
        });
        guard.ended = true;
        if let Err(error @ ReadError::Rejected(_)) = &outcome {
            // What the cache refuses counts as what admission refuses.
            meters.refusals.refused(error);
            self.shared.tenants.refund(&tenant, tokens);
        }
        outcome
    }

    /// Replaces the limits of single tenants, all at once: a tenant that is not in `limits` has none of
    /// its own. Names are those of tenants, not of sub-tenants, which have their parent's.
    ///
    /// What was let in stays in. Newcomers are measured by the new limits at once, order and residency
    /// from their next event on, a tick ([`SchedulerConfig::tick`](crate::SchedulerConfig::tick)) later
    /// at most. Pins that are there keep their time.
    pub fn limit(&self, limits: BTreeMap<TenantId, TenantLimits>) {
        self.shared.tenants.limit(Limits::new(limits), Instant::now());
    }

    /// What is left of a tenant's tokens, counted for its parent; `None` where it has no limit of them.
    pub fn bucket(&self, tenant: &TenantId) -> Option<Bucket> {
        self.shared.tenants.found(&tenant.to_payer(), Instant::now()).bucket
    }

    /// Has all work told to `accounts` from now on; only the first that is named is told.
    pub fn account_to(&self, accounts: Arc<dyn Account>) {
        // Who came second is told nothing.
        let _ = self.shared.accounts.set(accounts);
    }

    /// What would become of a decision now; nothing is queued or counted, and a moment later it may be
    /// otherwise.
    pub fn forecast(&self, meta: &DecisionMeta) -> Forecast {
        self.shared.forecast(meta)
    }

    /// Whether all of a prefix is resident now.
    pub fn is_resident(&self, prefix: &Prefix) -> bool {
        self.shared.missing(prefix) == 0
    }

    /// Gives up the pin that a prewarm of `tenant` left, or a prewarm that is still to be computed
    /// and for which nobody waits. Says whether there was one. What is resident stays until room is
    /// needed.
    ///
    /// # Errors
    /// [`ReadError::Unavailable`] while actors are started again.
    pub async fn unpin(&self, tenant: TenantId, pin: PinHandle) -> Result<bool, ReadError> {
        let (reply, outcome) = oneshot::channel();
        self.shared.cache(CacheAsk::Unpin { tenant, pin, reply });
        outcome.await.map_err(|_| ReadError::Unavailable)
    }

    /// Everything the actors publish, without asking them.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// The same, shown in the gauges too; call it before metrics are rendered.
    pub fn show_gauges(&self) -> Snapshot {
        let snapshot = self.snapshot();
        observe::show(&snapshot, &self.shared.config);
        snapshot
    }

    /// The settings with which the actors were started.
    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    /// What the engine can do.
    pub fn caps(&self) -> &Caps {
        &self.shared.caps
    }

    /// Why the engine is gone for good, if it is: nothing will be answered any more.
    pub fn death(&self) -> Option<String> {
        self.shared.death().borrow().clone()
    }

    /// Waits until the engine is gone for good; why.
    pub async fn died(&self) -> String {
        let mut death = self.shared.death();
        // The sender lives as long as this handle.
        let known = death.wait_for(Option::is_some).await;
        known.ok().and_then(|known| known.clone()).unwrap_or_default()
    }

    /// Refuses new work, lets what was admitted end within the drain timeout, prewarms that somebody
    /// waits for included, fails the rest with [`ReadError::Draining`], then stops the actors.
    pub async fn drain(&self) -> DrainReport {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.shared.registration(RegistrationMessage::Drain);
        self.shared.cache(CacheAsk::Drain);
        // What was admitted before is with the scheduler then, and what is given up no longer.
        self.flush_cache().await;
        let (reply, report) = oneshot::channel();
        self.shared.scheduler(SchedulerAsk::Drain { reply });
        let report = report.await.unwrap_or_default();
        // The leases that the scheduler gave back are on their way to the cache.
        self.flush_cache().await;
        self.supervisor.stop(Some("drained".to_owned()));
        report
    }

    /// Waits until the cache has done what it was asked before.
    async fn flush_cache(&self) {
        let (reply, flushed) = oneshot::channel();
        self.shared.cache(CacheAsk::Flush { reply });
        // A cache that is gone has nothing left to do.
        let _ = flushed.await;
    }

    /// What `of` makes of the last steps that ended, oldest first; at most `most`, and 256. The log is
    /// held meanwhile, so `of` must be quick.
    pub fn last_steps<T>(&self, most: usize, of: impl Fn(&StepLogEntry) -> T) -> Vec<T> {
        self.shared.last_steps(most, of)
    }

    /// What waits and runs, and what is held, one by one: as of at most a few moments ago, or `None` where
    /// nobody has looked of late. Looking has the actors make more of it for two seconds.
    pub fn details(&self) -> (Option<Arc<QueueDetails>>, Option<Arc<ResidencyDetails>>) {
        self.shared.watch.look()
    }

    /// The last steps that ended, oldest first; at most 256.
    pub fn step_log(&self) -> Vec<StepLogEntry> {
        self.shared.step_log()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Handle")
            .field("load", &self.shared.load.load())
            .finish_non_exhaustive()
    }
}

/// Gives a prewarm up when the future that waits for it is dropped.
struct PrewarmGuard<'a> {
    shared: &'a Shared,
    key: SegmentKey,
    ticket: u64,
    ended: bool,
}

impl Drop for PrewarmGuard<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let (key, ticket) = (self.key, self.ticket);
            self.shared.cache(CacheAsk::Leave { key, ticket });
        }
    }
}

/// An open decision. Dropping it without [`responded`](Self::responded) means that the caller went
/// away: its waiting reads are cancelled and nothing is registered.
pub struct DecisionHandle {
    decision: DecisionId,
    tenant: TenantId,
    prefix: Prefix,
    request: ActorRef<RequestMessage>,
    shared: Arc<Shared>,
}

impl DecisionHandle {
    /// Number of the decision, as in the step log.
    pub fn id(&self) -> DecisionId {
        self.decision
    }

    /// How its state is kept once it has been read, as long as no room is needed for others;
    /// [`Tier::Off`] also where states do not outlive the decisions on them, or where this one is larger
    /// than what its tenant may keep.
    pub fn tier(&self) -> Tier {
        let (caps, config) = (&self.shared.caps, &self.shared.config);
        let head = u32::try_from(self.prefix.head.tokens.len()).unwrap_or(u32::MAX);
        let state = self.prefix.tokens().saturating_sub(head);
        let own = caps.segment_bytes(head, state);
        let bytes = caps.segment_bytes(0, head).saturating_add(own);
        let own_max = self.shared.tenants.limits().kv_bytes_max(&self.tenant).unwrap_or(u64::MAX);
        let fits = bytes <= config.cache.kv_bytes && own <= own_max;
        match config.registration.when {
            _ if !caps.keeps_segments => Tier::Unsupported,
            Register::After if fits => Tier::Exact,
            Register::After | Register::Off => Tier::Off,
        }
    }

    /// Submits one stage, all reads together, and returns their outcomes in order.
    ///
    /// The state stays leased until the decision ends, so that later stages find it resident.
    /// Dropping the future cancels the stage's reads that have not started.
    ///
    /// # Errors
    /// [`RejectReason::TooLong`](crate::RejectReason::TooLong) when one prompt does not fit the context (nothing is queued then),
    /// [`ReadError::Unavailable`] when an actor died. Each read has its own error besides.
    pub async fn read(
        &mut self,
        reads: Vec<ReadSpec>,
    ) -> Result<Vec<Result<ReadOutcome, ReadError>>, ReadError> {
        if reads.is_empty() {
            return Ok(Vec::new());
        }
        let longest = reads.iter().map(|read| read.suffix.len()).max().unwrap_or(0);
        self.shared.fits(&self.prefix, u32::try_from(longest).unwrap_or(u32::MAX))?;
        let (reply, outcomes) = oneshot::channel();
        let at = Instant::now().into_std();
        self.send(RequestMessage::Read { reads, at, reply })?;
        let mut stage = StageGuard { request: &self.request, ended: false };
        let outcomes = outcomes.await.map_err(|_| ReadError::Unavailable);
        stage.ended = true;
        outcomes
    }

    /// Tells that the response's last byte was handed over, so that the state may be registered.
    pub fn responded(self) {
        // A request actor that is gone has closed the decision already.
        let _ = self.send(RequestMessage::Responded);
    }

    fn send(&self, message: RequestMessage) -> Result<(), ReadError> {
        self.request.cast(message).map_err(|_| ReadError::Unavailable)
    }
}

impl Drop for DecisionHandle {
    fn drop(&mut self) {
        // After `responded` the actor has stopped and this goes nowhere.
        let _ = self.send(RequestMessage::Gone);
    }
}

impl fmt::Debug for DecisionHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("DecisionHandle").field(&self.decision).finish()
    }
}

/// Cancels a stage's waiting reads when the future that waits for them is dropped.
struct StageGuard<'a> {
    request: &'a ActorRef<RequestMessage>,
    ended: bool,
}

impl Drop for StageGuard<'_> {
    fn drop(&mut self) {
        if !self.ended {
            // A request actor that is gone has closed the decision already.
            let _ = self.request.cast(RequestMessage::Withdraw);
        }
    }
}
