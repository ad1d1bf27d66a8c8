//! The cache actor: residency of keys and values, leases, pins, prewarm.
//!
//! It alone owns segments; the scheduler holds clones under lease. It performs what [`CacheCore`]
//! decides and never runs the model.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use crate::engine::{Epoch, Segment};
use crate::error::ReadError;
use crate::expected::Expectation;
use crate::limits::Limits;
use crate::links::{Permit, Shared};
use crate::plan::cache::{CacheCore, CacheEffect, PrewarmAsk};
use crate::plan::path::PathSegment;
use crate::plan::residency::{Change, Computed, Reach};
use crate::plan::segments::Served;
use crate::prewarm::{PinHandle, PrewarmOutcome, PrewarmSpec};
use crate::read::{Prefix, SegmentKey, TenantId};
use crate::registration::RegistrationMessage;
use crate::restarts::ActorKind;
use crate::scheduler::{SchedulerAsk, SchedulerMessage};
use crate::watch::Turn;

/// How a prewarm ended.
type PrewarmResult = Result<PrewarmOutcome, ReadError>;

/// What handles and the registration actor ask of the cache.
pub(crate) enum CacheAsk {
    /// Make a state resident and pin it; `ticket` is its own.
    Prewarm {
        ticket: u64,
        spec: PrewarmSpec,
        reply: oneshot::Sender<PrewarmResult>,
        permit: Permit,
        expectation: Expectation,
    },
    /// The caller of a prewarm of the state `key` has gone.
    Leave { key: SegmentKey, ticket: u64 },
    /// Give up a tenant's pin; answers whether there was one.
    Unpin { tenant: TenantId, pin: PinHandle, reply: oneshot::Sender<bool> },
    /// Keep a state whose response is out.
    Promote { prefix: Prefix, tenant: TenantId },
    /// It need not be kept any more.
    Unregister { key: SegmentKey },
    /// Give up what nobody waits for, and take no more of it.
    Drain,
    /// Answer; what was sent before has been done then.
    Flush { reply: oneshot::Sender<()> },
}

/// Everything the cache is told.
pub(crate) enum CacheMessage<S> {
    /// By those who do not know the engine's type.
    Ask(CacheAsk),
    /// Lease a path to the state `key`, and answer to `from`.
    Lease {
        key: SegmentKey,
        path: Vec<PathSegment>,
        owner: Option<TenantId>,
        reach: Reach,
        from: ActorRef<SchedulerMessage<S>>,
    },
    /// A chunk of a leased segment was computed.
    Commit(Computed<S>),
    /// A lease is given back, which served so many decisions.
    Release { path: Vec<SegmentKey>, served: Served },
    /// The scheduler computes a wanted state.
    WantStarted { key: SegmentKey },
    /// It is done with it, after so many tokens.
    WantEnded { key: SegmentKey, result: Result<u32, ReadError> },
    /// Time has passed.
    Tick,
}

impl<S> From<CacheAsk> for CacheMessage<S> {
    fn from(ask: CacheAsk) -> Self {
        Self::Ask(ask)
    }
}

impl<S> TryFrom<CacheMessage<S>> for CacheAsk {
    type Error = ();

    fn try_from(message: CacheMessage<S>) -> Result<Self, ()> {
        match message {
            CacheMessage::Ask(ask) => Ok(ask),
            CacheMessage::Lease { .. }
            | CacheMessage::Commit(_)
            | CacheMessage::Release { .. }
            | CacheMessage::WantStarted { .. }
            | CacheMessage::WantEnded { .. }
            | CacheMessage::Tick => Err(()),
        }
    }
}

/// The cache at work.
pub(crate) struct Cache<S> {
    shared: Arc<Shared>,
    core: CacheCore<S>,
    /// Callers that wait for their prewarm, by ticket.
    prewarms: BTreeMap<u64, oneshot::Sender<PrewarmResult>>,
    /// What is counted for states that prewarms want, by state.
    expectations: BTreeMap<SegmentKey, Expectation>,
    duplicates_seen: u64,
    /// The limits of tenants that the core was told of.
    limits: Arc<Limits>,
    /// The next deadline for which a tick is under way.
    alarm: Option<Instant>,
    /// When details are next made.
    turn: Turn,
}

/// The cache actor.
pub(crate) struct CacheActor<S>(std::marker::PhantomData<fn() -> S>);

impl<S> CacheActor<S> {
    pub(crate) fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<S: Segment> Actor for CacheActor<S> {
    type Msg = CacheMessage<S>;
    type State = Cache<S>;
    type Arguments = (Arc<Shared>, Epoch);

    async fn pre_start(
        &self,
        myself: ActorRef<CacheMessage<S>>,
        (shared, epoch): (Arc<Shared>, Epoch),
    ) -> Result<Cache<S>, ActorProcessingErr> {
        let when = shared.config.registration.when;
        let core = CacheCore::new(shared.caps.clone(), shared.config.cache.clone(), when, epoch);
        // The timer ends with the actor.
        drop(myself.send_interval(shared.config.scheduler.tick, || CacheMessage::Tick));
        shared.clear_resident();
        let (prewarms, expectations) = (BTreeMap::new(), BTreeMap::new());
        let turn = Turn::new(&shared.meters.details[ActorKind::Cache as usize]);
        let mut cache = Cache {
            shared,
            core,
            prewarms,
            expectations,
            duplicates_seen: 0,
            limits: Arc::default(),
            alarm: None,
            turn,
        };
        cache.publish();
        cache.publish_top();
        Ok(cache)
    }

    async fn handle(
        &self,
        myself: ActorRef<CacheMessage<S>>,
        message: CacheMessage<S>,
        cache: &mut Cache<S>,
    ) -> Result<(), ActorProcessingErr> {
        let now = tokio::time::Instant::now().into_std();
        let moves_deadlines =
            matches!(message, CacheMessage::Tick | CacheMessage::Ask(CacheAsk::Prewarm { .. }));
        let effects = cache.take(message, now);
        // Published before anybody is told, as in the scheduler.
        cache.publish();
        for effect in effects {
            cache.perform(effect);
        }
        if moves_deadlines {
            cache.set_alarm(&myself, now);
        }
        Ok(())
    }
}

impl<S: Segment> Cache<S> {
    fn take(&mut self, message: CacheMessage<S>, now: Instant) -> Vec<CacheEffect> {
        self.core.residency.set_now(now);
        self.take_limits();
        match message {
            CacheMessage::Ask(ask) => return self.take_ask(ask, now),
            CacheMessage::Lease { key, path, owner, reach, from } => {
                let residency = &mut self.core.residency;
                let reply = residency.lease((&path, owner.as_ref()), reach, now);
                // A scheduler that is gone takes this actor along.
                let _ = from.cast(SchedulerMessage::Leased { key, reply });
            }
            CacheMessage::Commit(computed) => {
                self.shared.rehearse(ActorKind::Cache);
                self.core.residency.commit(computed);
            }
            CacheMessage::Release { path, served } => self.core.residency.release(&path, served),
            CacheMessage::WantStarted { key } => return self.core.want_started(key, now),
            CacheMessage::WantEnded { key, result } => {
                self.expectations.remove(&key);
                return self.core.want_ended(key, &result, now);
            }
            CacheMessage::Tick => {
                let effects = self.core.tick(now);
                self.publish_top();
                self.shared.watch.show_residency(&mut self.turn, || self.core.details());
                return effects;
            }
        }
        Vec::new()
    }

    /// Tells the core of new limits of tenants, if there are any.
    fn take_limits(&mut self) {
        let limits = self.shared.tenants.limits();
        if !Arc::ptr_eq(&limits, &self.limits) {
            self.limits = Arc::clone(&limits);
            self.core.limit(limits);
        }
    }

    fn take_ask(&mut self, ask: CacheAsk, now: Instant) -> Vec<CacheEffect> {
        match ask {
            CacheAsk::Prewarm { ticket, spec, reply, permit, expectation } => {
                self.prewarms.insert(ticket, reply);
                let key = spec.prefix.state.key;
                let effects = self.prewarm(ticket, spec, now);
                if self.core.is_wanted(key) {
                    self.expectations.entry(key).or_insert(expectation);
                }
                // The scheduler counts the want from now on.
                drop(permit);
                effects
            }
            CacheAsk::Leave { key, ticket } => {
                self.prewarms.remove(&ticket);
                self.core.leave(key, ticket)
            }
            CacheAsk::Unpin { tenant, pin, reply } => {
                let (was_there, effects) = self.core.unpin(&tenant, pin);
                // Whoever asked may have gone.
                let _ = reply.send(was_there);
                effects
            }
            CacheAsk::Promote { prefix, tenant } => self.core.promote(prefix, tenant),
            CacheAsk::Unregister { key } => self.core.unregister(key),
            CacheAsk::Drain => self.core.drain(),
            CacheAsk::Flush { reply } => {
                self.publish();
                // Whoever asked may have gone.
                let _ = reply.send(());
                Vec::new()
            }
        }
    }

    fn prewarm(&mut self, ticket: u64, spec: PrewarmSpec, now: Instant) -> Vec<CacheEffect> {
        let PrewarmSpec { tenant, prefix, lane, ttl, wait, deadline, .. } = spec;
        let deadline = deadline.map(tokio::time::Instant::into_std);
        let retry_after = self.shared.drain_time();
        let ask = PrewarmAsk { ticket, tenant, prefix, lane, ttl, wait, deadline, retry_after };
        self.core.prewarm(ask, now)
    }

    /// Has a tick come at the next deadline, so that what expires is told at once, and where its time
    /// went.
    fn set_alarm(&mut self, myself: &ActorRef<CacheMessage<S>>, now: Instant) {
        let Some(next) = self.core.next_deadline() else { return };
        if self.alarm.is_some_and(|alarm| alarm > now && alarm <= next) {
            return;
        }
        self.alarm = Some(next);
        // A tick too many does no harm.
        drop(myself.send_after(next.saturating_duration_since(now), || CacheMessage::Tick));
    }

    fn perform(&mut self, effect: CacheEffect) {
        match effect {
            CacheEffect::Want { prefix, missing, tenant, lane, is_registration } => {
                let ask = SchedulerAsk::Want { prefix, missing, tenant, lane, is_registration };
                self.shared.scheduler(ask);
            }
            CacheEffect::Unwant { key } => {
                self.expectations.remove(&key);
                self.shared.scheduler(SchedulerAsk::Unwant { key });
            }
            CacheEffect::Answer { ticket, result } => {
                self.shared.meters.ledger.prewarmed(&result);
                if let Some(reply) = self.prewarms.remove(&ticket) {
                    // The caller may have gone.
                    let _ = reply.send(result);
                }
            }
            CacheEffect::Tell { key, word } => {
                self.shared.registration(RegistrationMessage::Word { key, word });
            }
        }
    }

    fn publish(&mut self) {
        let meters = &self.shared.meters.ledger;
        for change in self.core.residency.take_changes() {
            match change {
                Change::Resident(key) => self.shared.set_resident(key, true),
                Change::Dropped(key, reason) => {
                    self.shared.set_resident(key, false);
                    meters.dropped(reason);
                }
            }
        }
        for age in self.core.residency.take_ages() {
            meters.aged(&age);
        }
        let view = self.core.view();
        meters.duplicate_tokens(view.duplicate_tokens - self.duplicates_seen);
        self.duplicates_seen = view.duplicate_tokens;
        self.shared.residency.store(Arc::new(view));
    }

    /// Looks at all tenants that have something, and so is for ticks only.
    fn publish_top(&self) {
        self.shared.top_bytes.store(Arc::new(self.core.residency.most_bytes()));
    }
}
