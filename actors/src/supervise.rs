//! The supervisor: starts the actors, starts them again, or gives up.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use thiserror::Error;

use crate::config::{Config, ConfigProblem};
use crate::engine::Engine;
use crate::handle::Handle;
use crate::links::Shared;

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

/// What the supervisor is told.
pub(crate) enum SupervisorMessage {}

struct SupervisorActor;

impl Actor for SupervisorActor {
    type Msg = SupervisorMessage;
    type State = ();
    type Arguments = ();

    async fn pre_start(
        &self,
        _: ActorRef<SupervisorMessage>,
        (): (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// Starts the actors over `engine`.
///
/// # Errors
/// Faults of `config`, or an actor that does not start.
pub async fn start<E: Engine>(engine: Arc<E>, config: Config) -> Result<Handle, StartError> {
    config.validate().map_err(StartError::Config)?;
    let shared = Arc::new(Shared::new(config, engine.caps()));
    let (supervisor, _) = Actor::spawn(None, SupervisorActor, ())
        .await
        .map_err(|error| StartError::Spawn(error.to_string()))?;
    Ok(Handle::new(shared, supervisor))
}
