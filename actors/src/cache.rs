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
use crate::links::{Permit, Shared};
use crate::observe;
use crate::plan::cache::{CacheCore, CacheEffect, PrewarmAsk};
use crate::plan::path::PathSegment;
use crate::plan::residency::{Change, Computed};
use crate::plan::segments::Served;
use crate::prewarm::{PinHandle, PrewarmOutcome, PrewarmSpec};
use crate::read::{Prefix, SegmentKey, TenantId};
use crate::registration::RegistrationMessage;
use crate::scheduler::{SchedulerAsk, SchedulerMessage};

/// How a prewarm ended.
type PrewarmResult = Result<PrewarmOutcome, ReadError>;

/// What handles and the registration actor ask of the cache.
pub(crate) enum CacheAsk {
    /// Make a state resident and pin it.
    Prewarm { spec: PrewarmSpec, reply: oneshot::Sender<PrewarmResult>, permit: Permit },
    /// Give up a tenant's pin; answers whether there was one.
    Unpin { tenant: TenantId, pin: PinHandle, reply: oneshot::Sender<bool> },
    /// Keep a state whose response is out.
    Promote { prefix: Prefix, tenant: TenantId },
    /// It need not be kept any more.
    Unregister { key: SegmentKey },
    /// Give up what waits.
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
        may_overflow: bool,
        from: ActorRef<SchedulerMessage<S>>,
    },
    /// A chunk of a leased segment was computed.
    Commit(Computed<S>),
    /// A lease is given back, which served so many decisions.
    Release { path: Vec<SegmentKey>, served: Served },
    /// The scheduler computes a wanted state.
    WantStarted { key: SegmentKey },
    /// It is done with it.
    WantEnded { key: SegmentKey, result: Result<(), ReadError> },
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
    tickets: u64,
    duplicates_seen: u64,
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
        let prewarms = BTreeMap::new();
        let mut cache = Cache { shared, core, prewarms, tickets: 0, duplicates_seen: 0 };
        cache.publish();
        Ok(cache)
    }

    async fn handle(
        &self,
        _: ActorRef<CacheMessage<S>>,
        message: CacheMessage<S>,
        cache: &mut Cache<S>,
    ) -> Result<(), ActorProcessingErr> {
        let effects = cache.take(message, tokio::time::Instant::now().into_std());
        // Published before anybody is told, as in the scheduler.
        cache.publish();
        for effect in effects {
            cache.perform(effect);
        }
        Ok(())
    }
}

impl<S: Segment> Cache<S> {
    fn take(&mut self, message: CacheMessage<S>, now: Instant) -> Vec<CacheEffect> {
        match message {
            CacheMessage::Ask(ask) => return self.take_ask(ask, now),
            CacheMessage::Lease { key, path, may_overflow, from } => {
                let reply = self.core.residency.lease(&path, may_overflow, now);
                // A scheduler that is gone takes this actor along.
                let _ = from.cast(SchedulerMessage::Leased { key, reply });
            }
            CacheMessage::Commit(computed) => self.core.residency.commit(computed),
            CacheMessage::Release { path, served } => self.core.residency.release(&path, served),
            CacheMessage::WantStarted { key } => return self.core.want_started(key),
            CacheMessage::WantEnded { key, result } => {
                return self.core.want_ended(key, &result, now);
            }
            CacheMessage::Tick => return self.core.tick(now),
        }
        Vec::new()
    }

    fn take_ask(&mut self, ask: CacheAsk, now: Instant) -> Vec<CacheEffect> {
        match ask {
            CacheAsk::Prewarm { spec, reply, permit } => {
                let effects = self.prewarm(spec, reply, now);
                // The scheduler counts the want from now on.
                drop(permit);
                effects
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

    fn prewarm(
        &mut self,
        spec: PrewarmSpec,
        reply: oneshot::Sender<PrewarmResult>,
        now: Instant,
    ) -> Vec<CacheEffect> {
        self.tickets += 1;
        self.prewarms.insert(self.tickets, reply);
        let PrewarmSpec { tenant, prefix, lane, ttl, wait, deadline } = spec;
        let deadline = deadline.map(tokio::time::Instant::into_std);
        let ticket = self.tickets;
        self.core.prewarm(PrewarmAsk { ticket, tenant, prefix, lane, ttl, wait, deadline }, now)
    }

    fn perform(&mut self, effect: CacheEffect) {
        match effect {
            CacheEffect::Want { prefix, tenant, lane, is_registration } => {
                self.shared.scheduler(SchedulerAsk::Want { prefix, tenant, lane, is_registration });
            }
            CacheEffect::Unwant { key } => self.shared.scheduler(SchedulerAsk::Unwant { key }),
            CacheEffect::Answer { ticket, result } => {
                observe::prewarmed(&result);
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
        for change in self.core.residency.take_changes() {
            match change {
                Change::Resident(key) => self.shared.set_resident(key, true),
                Change::Dropped(key, reason) => {
                    self.shared.set_resident(key, false);
                    observe::dropped(reason);
                }
            }
        }
        let view = self.core.view();
        observe::duplicate_tokens(view.duplicate_tokens - self.duplicates_seen);
        self.duplicates_seen = view.duplicate_tokens;
        observe::residency(&view);
        self.shared.residency.store(Arc::new(view));
    }
}
