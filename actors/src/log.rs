//! Log lines of the actors: numbers and kinds, and what the engine or a panic says; nothing that was
//! asked.

use crate::engine::{EngineError, Epoch};
use crate::restarts::ActorKind;
use crate::snapshot::{StepLogEntry, Then};

/// A step, or rows of it, failed.
pub(crate) fn step_failed(entry: &StepLogEntry) {
    let Some(failure) = &entry.failure else { return };
    let (step, epoch, items) = (entry.step, entry.epoch, failure.items);
    let (rows, chunks) = (entry.rows.len(), entry.chunks.len());
    let (kind, then) = (failure.error.kind(), failure.then.as_str());
    // The thread that panicked has said with what.
    let said = match &failure.error {
        EngineError::Panic(_) => None,
        error @ (EngineError::NonFinite
        | EngineError::Forward(_)
        | EngineError::OutOfMemory(_)
        | EngineError::Unavailable(_)
        | EngineError::Dead(_)) => Some(error.to_string()),
    };
    let error = said.as_deref();
    match failure.then {
        Then::Halved | Then::Alone | Then::GivenUp if failure.error.is_outage() => {
            // Whoever reaches out has said what is away; this is one more that met it.
            tracing::warn!(step, epoch, kind, items, rows, chunks, error, then, "a step failed");
        }
        Then::Halved | Then::Alone => {
            tracing::warn!(step, epoch, kind, items, rows, chunks, error, then, "a step failed");
        }
        Then::GivenUp => {
            tracing::error!(step, epoch, kind, items, rows, chunks, error, then, "a step failed");
        }
    }
}

/// An actor was lost and was started again, in this epoch.
pub(crate) fn restarted(actor: ActorKind, why: &str, epoch: Epoch) {
    let actor = actor.as_str();
    tracing::error!(actor, why, epoch, "an actor was lost and started again");
}

/// The engine is given up.
pub(crate) fn dead(why: &str) {
    tracing::error!(why, "the engine is dead");
}
