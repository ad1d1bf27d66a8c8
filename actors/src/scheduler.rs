//! The scheduler actor: the queue, and the step that runs.
//!
//! It performs what [`SchedulerCore`] decides and holds the reply ports. It never waits: leases and
//! steps come back as messages.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::oneshot;

use crate::cache::CacheMessage;
use crate::engine::{Completion, Engine, EngineError, Epoch, Step, StepOutcome};
use crate::handle::DecisionMeta;
use crate::limits::Limits;
use crate::links::{Permit, Shared};
use crate::log;
use crate::plan::residency::LeaseReply;
use crate::plan::scheduler::{Opening, SchedulerCore, SchedulerEffect, SchedulerEvent};
use crate::plan::{DecisionId, ReadId};
use crate::read::{Lane, Prefix, ReadSpec, SegmentKey, TenantId};
use crate::request::{ReadPort, ReadResult};
use crate::restarts::ActorKind;
use crate::snapshot::DrainReport;

/// What handles, request actors and the cache ask of the scheduler.
pub(crate) enum SchedulerAsk {
    /// A decision was admitted.
    Open(Opening),
    /// Read these.
    Submit {
        decision: DecisionId,
        first: u32,
        reads: Vec<ReadSpec>,
        at: Instant,
        port: ReadPort,
        permit: Option<Permit>,
    },
    /// Cancel what waits of a decision.
    Withdraw { decision: DecisionId },
    /// The decision is over.
    Close { decision: DecisionId },
    /// Compute a state, or change how urgently.
    Want { prefix: Prefix, missing: u32, tenant: TenantId, lane: Lane, is_registration: bool },
    /// It is not wanted any more.
    Unwant { key: SegmentKey },
    /// Finish and stop.
    Drain { reply: oneshot::Sender<DrainReport> },
}

impl SchedulerAsk {
    /// * `missing`: tokens of the prefix that are not resident.
    /// * `displaces`: whether lower lanes have to make room for its reads.
    pub(crate) fn open(
        decision: DecisionId,
        meta: &DecisionMeta,
        missing: u64,
        displaces: bool,
    ) -> Self {
        Self::Open(Opening {
            decision,
            tenant: meta.tenant.clone(),
            prefix: meta.prefix.clone(),
            missing: u32::try_from(missing).unwrap_or(u32::MAX),
            lane: meta.lane,
            displaces: if displaces { meta.first_reads.max(1) } else { 0 },
            deadline: meta.deadline.map(tokio::time::Instant::into_std),
        })
    }
}

/// Everything the scheduler is told.
pub(crate) enum SchedulerMessage<S> {
    /// By those who do not know the engine's type.
    Ask(SchedulerAsk),
    /// The cache answers.
    Leased { key: SegmentKey, reply: LeaseReply<S> },
    /// The engine is done.
    Done { step: u64, epoch: Epoch, result: Result<StepOutcome<S>, EngineError> },
    /// Time has passed.
    Tick,
}

impl<S> From<SchedulerAsk> for SchedulerMessage<S> {
    fn from(ask: SchedulerAsk) -> Self {
        Self::Ask(ask)
    }
}

impl<S> TryFrom<SchedulerMessage<S>> for SchedulerAsk {
    type Error = ();

    fn try_from(message: SchedulerMessage<S>) -> Result<Self, ()> {
        match message {
            SchedulerMessage::Ask(ask) => Ok(ask),
            SchedulerMessage::Leased { .. }
            | SchedulerMessage::Done { .. }
            | SchedulerMessage::Tick => Err(()),
        }
    }
}

/// What a scheduler starts with.
pub(crate) struct SchedulerArguments<E: Engine> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) engine: Arc<E>,
    pub(crate) cache: ActorRef<CacheMessage<E::Segment>>,
    pub(crate) epoch: Epoch,
}

/// The scheduler at work.
pub(crate) struct Scheduler<E: Engine> {
    shared: Arc<Shared>,
    engine: Arc<E>,
    cache: ActorRef<CacheMessage<E::Segment>>,
    core: SchedulerCore<E::Segment>,
    /// The limits of tenants that the core was told of.
    limits: Arc<Limits>,
    /// Where outcomes go; one stage of a decision at a time.
    ports: BTreeMap<DecisionId, ReadPort>,
    drains: Vec<oneshot::Sender<DrainReport>>,
    drained: Option<DrainReport>,
    /// The next deadline for which a tick is under way.
    alarm: Option<Instant>,
}

/// The scheduler actor.
pub(crate) struct SchedulerActor<E>(std::marker::PhantomData<fn() -> E>);

impl<E> SchedulerActor<E> {
    pub(crate) fn new() -> Self {
        Self(std::marker::PhantomData)
    }
}

impl<E: Engine> Actor for SchedulerActor<E> {
    type Msg = SchedulerMessage<E::Segment>;
    type State = Scheduler<E>;
    type Arguments = SchedulerArguments<E>;

    async fn pre_start(
        &self,
        myself: ActorRef<Self::Msg>,
        arguments: SchedulerArguments<E>,
    ) -> Result<Scheduler<E>, ActorProcessingErr> {
        let SchedulerArguments { shared, engine, cache, epoch } = arguments;
        let config = &shared.config.scheduler;
        let core = SchedulerCore::new(config, &shared.caps, epoch, now());
        let (ports, drains) = (BTreeMap::new(), Vec::new());
        // The timer ends with the actor.
        drop(myself.send_interval(config.tick, || SchedulerMessage::Tick));
        // What waited with the scheduler before this one is gone.
        shared.tenants.queue_lost();
        let limits = Arc::default();
        let (drained, alarm) = (None, None);
        let scheduler =
            Scheduler { shared, engine, cache, core, limits, ports, drains, drained, alarm };
        scheduler.publish();
        Ok(scheduler)
    }

    async fn handle(
        &self,
        myself: ActorRef<Self::Msg>,
        message: Self::Msg,
        scheduler: &mut Scheduler<E>,
    ) -> Result<(), ActorProcessingErr> {
        let (event, permit) = match message {
            SchedulerMessage::Ask(ask) => scheduler.event_of(ask),
            SchedulerMessage::Leased { key, reply } => {
                (SchedulerEvent::Leased { key, reply }, None)
            }
            SchedulerMessage::Done { step, epoch, result } => {
                (SchedulerEvent::Done { step, epoch, result }, None)
            }
            SchedulerMessage::Tick => (SchedulerEvent::Tick, None),
        };
        let mut effects = scheduler.take_limits();
        effects.extend(scheduler.decide(event));
        // Published before replies go out, so that who has an outcome sees its consequences.
        scheduler.publish();
        drop(permit);
        for effect in effects {
            scheduler.perform(&myself, effect);
        }
        scheduler.set_alarm(&myself);
        Ok(())
    }
}

impl<E: Engine> Scheduler<E> {
    /// Takes ports and permits out of a message; the rest is the core's business.
    fn event_of(&mut self, ask: SchedulerAsk) -> (SchedulerEvent<E::Segment>, Option<Permit>) {
        let event = match ask {
            SchedulerAsk::Open(opening) => SchedulerEvent::Open(opening),
            SchedulerAsk::Submit { decision, first, reads, at, port, permit } => {
                self.ports.insert(decision, port);
                return (SchedulerEvent::Submit { decision, first, reads, at }, permit);
            }
            SchedulerAsk::Withdraw { decision } => SchedulerEvent::Withdraw { decision },
            SchedulerAsk::Close { decision } => SchedulerEvent::Close { decision },
            SchedulerAsk::Want { prefix, missing, tenant, lane, is_registration } => {
                SchedulerEvent::Want { prefix, missing, tenant, lane, is_registration }
            }
            SchedulerAsk::Unwant { key } => SchedulerEvent::Unwant { key },
            SchedulerAsk::Drain { reply } => {
                self.wait_for_drain(reply);
                SchedulerEvent::Drain
            }
        };
        (event, None)
    }

    /// Tells the core of new limits of tenants, if there are any.
    fn take_limits(&mut self) -> Vec<SchedulerEffect<E::Segment>> {
        let limits = self.shared.tenants.limits();
        if Arc::ptr_eq(&limits, &self.limits) {
            return Vec::new();
        }
        self.limits = Arc::clone(&limits);
        self.decide(SchedulerEvent::Limit(limits))
    }

    /// What follows from an event; if a step does, the real time that took is noted.
    #[expect(
        clippy::disallowed_methods,
        reason = "what planning costs is real also in paused time"
    )]
    fn decide(&mut self, event: SchedulerEvent<E::Segment>) -> Vec<SchedulerEffect<E::Segment>> {
        let began = Instant::now();
        let effects = self.core.on(event, now());
        self.shared.meters.count(&self.core.take_counts());
        self.shared.tenants.queued(self.core.take_queue_changes());
        self.shared.account(self.core.take_work());
        if effects.iter().any(|effect| matches!(effect, SchedulerEffect::Run(_))) {
            self.shared.meters.steps.planned(began.elapsed());
        }
        effects
    }

    fn perform(
        &mut self,
        myself: &ActorRef<SchedulerMessage<E::Segment>>,
        effect: SchedulerEffect<E::Segment>,
    ) {
        match effect {
            SchedulerEffect::Lease { key, path, owner, reach } => {
                let from = myself.clone();
                self.tell_cache(CacheMessage::Lease { key, path, owner, reach, from });
            }
            SchedulerEffect::Release { path, served } => {
                self.tell_cache(CacheMessage::Release { path, served });
            }
            SchedulerEffect::Commit(computed) => self.tell_cache(CacheMessage::Commit(computed)),
            SchedulerEffect::Run(step) => self.run(myself, step),
            SchedulerEffect::Abandon { step, row } => self.engine.abandon(step, row),
            SchedulerEffect::Reply { read, lane, result } => self.reply(read, lane, result),
            SchedulerEffect::WantStarted { key } => {
                self.tell_cache(CacheMessage::WantStarted { key });
            }
            SchedulerEffect::WantEnded { key, result } => {
                self.tell_cache(CacheMessage::WantEnded { key, result });
            }
            SchedulerEffect::Log(step) => {
                self.shared.meters.steps.ended(&step);
                log::step_failed(&step);
                self.shared.log_step(step);
            }
            SchedulerEffect::Drained(report) => self.end_drain(report),
        }
    }

    /// Has a tick come at the next deadline, so that what expires is told at once.
    fn set_alarm(&mut self, myself: &ActorRef<SchedulerMessage<E::Segment>>) {
        let (next, now) = (self.core.next_deadline(), now());
        let is_set = self.alarm.is_some_and(|alarm| alarm > now && Some(alarm) <= next);
        if let (Some(next), false) = (next, is_set) {
            self.alarm = Some(next);
            // A tick too many does no harm.
            drop(myself.send_after(next.saturating_duration_since(now), || SchedulerMessage::Tick));
        }
    }

    /// A cache that is gone takes this actor along: the supervisor starts both again.
    fn tell_cache(&self, message: CacheMessage<E::Segment>) {
        let _ = self.cache.cast(message);
    }

    fn run(&self, myself: &ActorRef<SchedulerMessage<E::Segment>>, step: Step<E::Segment>) {
        self.engine.rehearse(ActorKind::Scheduler);
        let (id, epoch, scheduler) = (step.id, step.epoch, myself.clone());
        let done = Completion::new(move |result| {
            // A scheduler that was replaced has no use for the outcome.
            let _ = scheduler.cast(SchedulerMessage::Done { step: id, epoch, result });
        });
        self.engine.submit(step, done);
    }

    fn reply(&mut self, read: ReadId, lane: Lane, result: ReadResult) {
        self.shared.meters.reads.ended(lane, &result);
        let Some(port) = self.ports.get_mut(&read.decision) else { return };
        if port.send(read.index, result) {
            self.ports.remove(&read.decision);
        }
    }

    fn wait_for_drain(&mut self, reply: oneshot::Sender<DrainReport>) {
        match self.drained {
            // Whoever asked may have gone; then nobody needs the report.
            Some(report) => drop(reply.send(report)),
            None => self.drains.push(reply),
        }
    }

    fn end_drain(&mut self, report: DrainReport) {
        self.drained = Some(report);
        for reply in self.drains.drain(..) {
            // As above.
            let _ = reply.send(report);
        }
    }

    fn publish(&self) {
        self.shared.publish(self.core.view());
    }
}

/// The runtime's clock, which tests can pause.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
