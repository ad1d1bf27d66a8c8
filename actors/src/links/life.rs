//! Whether work is taken: how the engine is, and its death, which is told once and for good.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::Shared;
use crate::error::{ReadError, RejectReason};
use crate::log;
use crate::restarts::ActorKind;
use crate::snapshot::{EngineState, LoadView};

impl Shared {
    /// Makes known how queue and engine are. Death is for good.
    pub(crate) fn publish(&self, view: LoadView) {
        if let EngineState::Dead(why) = &view.engine {
            self.note_death(why);
        }
        self.load.store(Arc::new(view));
    }

    fn note_death(&self, why: &str) {
        let is_new = self.death.send_if_modified(|death| {
            let is_new = death.is_none();
            death.get_or_insert_with(|| why.to_owned());
            is_new
        });
        if is_new {
            log::dead(why);
        }
    }

    /// Why the engine is gone for good, once it is.
    pub(crate) fn death(&self) -> watch::Receiver<Option<String>> {
        self.death.subscribe()
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.death.borrow().is_some()
    }

    /// See [`Engine::rehearse`](crate::Engine::rehearse).
    pub(crate) fn rehearse(&self, actor: ActorKind) {
        (self.rehearsal)(actor);
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
}
