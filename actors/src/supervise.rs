//! The supervisor: starts the actors, starts them again after a panic, or gives up.
//!
//! Scheduler and cache know of each other's leases, so they live and die together; each pair has
//! its own epoch and begins with an empty table. What was in flight sees its reply port drop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use thiserror::Error;
use tokio::time::Instant;

use crate::cache::CacheActor;
use crate::config::{Config, ConfigProblem};
use crate::engine::{Engine, Epoch};
use crate::handle::Handle;
use crate::links::{Links, Shared};
use crate::log;
use crate::registration::{RegistrationActor, RegistrationMessage};
use crate::restarts::ActorKind;
use crate::scheduler::{SchedulerActor, SchedulerArguments};
use crate::snapshot::{EngineState, LoadView, ResidencyView};

/// Longest time for an actor that is replaced to end; it never waits for anything.
const END_MAX: Duration = Duration::from_secs(1);

/// Why the actors could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StartError {
    /// The configuration has faults.
    #[error("the configuration has {} faults, the first: {}", .0.len(), .0[0])]
    Config(Vec<ConfigProblem>),
    /// An actor did not start.
    #[error("an actor did not start: {0}")]
    Spawn(String),
}

/// What the supervisor is told: nothing, it only watches.
pub(crate) enum SupervisorMessage {}

/// The actors that are watched.
pub(crate) struct Supervisor<E> {
    shared: Arc<Shared>,
    engine: Arc<E>,
    epoch: Epoch,
    /// Cache and scheduler.
    pair: [ActorCell; 2],
    registration: ActorRef<RegistrationMessage>,
    restarts: VecDeque<Instant>,
}

struct SupervisorActor<E>(std::marker::PhantomData<fn() -> E>);

impl<E: Engine> Actor for SupervisorActor<E> {
    type Msg = SupervisorMessage;
    type State = Supervisor<E>;
    type Arguments = (Arc<Shared>, Arc<E>);

    async fn pre_start(
        &self,
        myself: ActorRef<SupervisorMessage>,
        (shared, engine): (Arc<Shared>, Arc<E>),
    ) -> Result<Supervisor<E>, ActorProcessingErr> {
        let registration = start_registration(&shared, &myself).await?;
        let pair = start_pair(&shared, &engine, &registration, (0, &myself)).await?;
        let restarts = VecDeque::new();
        Ok(Supervisor { shared, engine, epoch: 0, pair, registration, restarts })
    }

    async fn handle_supervisor_evt(
        &self,
        myself: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        supervisor: &mut Supervisor<E>,
    ) -> Result<(), ActorProcessingErr> {
        let (who, why) = match event {
            SupervisionEvent::ActorFailed(who, why) => (who.get_id(), why.to_string()),
            SupervisionEvent::ActorTerminated(who, _, why) => {
                (who.get_id(), why.unwrap_or_default())
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {
                return Ok(());
            }
        };
        supervisor.lost(&myself, who, &why).await;
        Ok(())
    }
}

impl<E: Engine> Supervisor<E> {
    /// Replaces what was lost; a member of a pair that was replaced already is nobody's loss.
    async fn lost(&mut self, myself: &ActorRef<SupervisorMessage>, who: ActorId, why: &str) {
        let Some(actor) = self.kind_of(who) else { return };
        if self.shared.is_dead() {
            return;
        }
        if self.is_given_up() {
            let times = self.restarts.len();
            let actor = actor.as_str();
            self.give_up(&format!("actors were lost {times} times, the last time {actor}: {why}"));
        } else if let Err(error) = self.restart(myself, actor).await {
            self.give_up(&format!("the actors do not start again: {error}"));
        } else {
            self.shared.restarts.raise(actor);
            self.shared.meters.restarted(actor);
            log::restarted(actor, why, self.epoch);
        }
    }

    fn kind_of(&self, who: ActorId) -> Option<ActorKind> {
        let [cache, scheduler] = &self.pair;
        let watched = [
            (cache.get_id(), ActorKind::Cache),
            (scheduler.get_id(), ActorKind::Scheduler),
            (self.registration.get_id(), ActorKind::Registration),
        ];
        watched.into_iter().find(|(id, _)| *id == who).map(|(_, actor)| actor)
    }

    /// Whether there were too many restarts within the window.
    fn is_given_up(&mut self) -> bool {
        let config = &self.shared.config.scheduler;
        let (now, window) = (Instant::now(), config.failure_window);
        self.restarts.retain(|at| now.duration_since(*at) < window);
        self.restarts.push_back(now);
        self.restarts.len() > config.restarts_max
    }

    async fn restart(
        &mut self,
        myself: &ActorRef<SupervisorMessage>,
        actor: ActorKind,
    ) -> Result<(), ActorProcessingErr> {
        if actor == ActorKind::Registration {
            self.registration = start_registration(&self.shared, myself).await?;
            self.shared.set_registration(&self.registration);
            return Ok(());
        }
        self.shared.set_links(None);
        let last = self.shared.load.load_full();
        self.publish(EngineState::Restarting);
        for cell in &self.pair {
            // One that does not end in time is of an older epoch: nothing that it says counts.
            let _ = cell.kill_and_wait(Some(END_MAX)).await;
        }
        self.shared.meters.pair_lost(&last);
        // If it is gone too, the next event tells.
        let _ = self.registration.cast(RegistrationMessage::CacheLost);
        self.epoch += 1;
        let at = (self.epoch, myself);
        self.pair = start_pair(&self.shared, &self.engine, &self.registration, at).await?;
        Ok(())
    }

    fn give_up(&self, why: &str) {
        self.shared.set_links(None);
        for cell in &self.pair {
            cell.kill();
        }
        // If it is gone too, nothing waits there.
        let _ = self.registration.cast(RegistrationMessage::CacheLost);
        self.publish(EngineState::Dead(why.to_owned()));
    }

    /// Makes known that neither scheduler nor cache is there; what waited has ended, what was held is
    /// free.
    fn publish(&self, engine: EngineState) {
        let budget = self.shared.residency.load().budget;
        let empty = ResidencyView { budget, ..ResidencyView::default() };
        self.shared.residency.store(Arc::new(empty));
        self.shared.tenants.queue_lost();
        let idle = LoadView::idle(self.epoch, Instant::now());
        self.shared.publish(LoadView { engine, ..idle });
    }
}

async fn start_registration(
    shared: &Arc<Shared>,
    supervisor: &ActorRef<SupervisorMessage>,
) -> Result<ActorRef<RegistrationMessage>, ActorProcessingErr> {
    let cell = supervisor.get_cell();
    let (actor, _) = Actor::spawn_linked(None, RegistrationActor, Arc::clone(shared), cell).await?;
    Ok(actor)
}

/// Starts cache and scheduler and makes them known.
async fn start_pair<E: Engine>(
    shared: &Arc<Shared>,
    engine: &Arc<E>,
    registration: &ActorRef<RegistrationMessage>,
    (epoch, supervisor): (Epoch, &ActorRef<SupervisorMessage>),
) -> Result<[ActorCell; 2], ActorProcessingErr> {
    let actor = CacheActor::<E::Segment>::new();
    let (cache, _) =
        Actor::spawn_linked(None, actor, (Arc::clone(shared), epoch), supervisor.get_cell())
            .await?;
    let arguments = SchedulerArguments {
        shared: Arc::clone(shared),
        engine: Arc::clone(engine),
        cache: cache.clone(),
        epoch,
    };
    let actor = SchedulerActor::<E>::new();
    let (scheduler, _) = Actor::spawn_linked(None, actor, arguments, supervisor.get_cell()).await?;
    let pair = [cache.get_cell(), scheduler.get_cell()];
    shared.set_links(Some(Links {
        scheduler: scheduler.get_derived(),
        cache: cache.get_derived(),
        registration: registration.clone(),
    }));
    Ok(pair)
}

/// Starts the actors over `engine`.
///
/// # Errors
/// Faults of `config`, or an actor that does not start.
pub async fn start<E: Engine>(engine: Arc<E>, config: Config) -> Result<Handle, StartError> {
    config.validate().map_err(StartError::Config)?;
    // Weak, so that the engine's memory is free once the actors have ended.
    let rehearsed = Arc::downgrade(&engine);
    let rehearsal = move |actor| {
        if let Some(engine) = rehearsed.upgrade() {
            engine.rehearse(actor);
        }
    };
    let shared = Arc::new(Shared::new(config, engine.caps(), Box::new(rehearsal)));
    let actor = SupervisorActor(std::marker::PhantomData);
    let (supervisor, _) = Actor::spawn(None, actor, (Arc::clone(&shared), engine))
        .await
        .map_err(|error| StartError::Spawn(error.to_string()))?;
    Ok(Handle::new(shared, supervisor))
}
