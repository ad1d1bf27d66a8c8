//! The registration actor: makes a decision's state stay resident after its response.
//!
//! It holds the decision open until the cache has spoken, so that pages which are there are kept
//! at no cost. It never delays a client's read.

use std::collections::BTreeMap;
use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};

use crate::cache::CacheAsk;
use crate::config::Register;
use crate::links::{DecisionGuard, Shared};
use crate::plan::boundary::{Boundary, BoundaryEffect};
use crate::plan::cache::Word;
use crate::read::{Prefix, SegmentKey};
use crate::restarts::ActorKind;

/// What the registration actor is told.
pub(crate) enum RegistrationMessage {
    /// A response went out; the guard keeps the state's pages until the cache has spoken.
    Responded { prefix: Prefix, guard: DecisionGuard },
    /// The cache has spoken.
    Word { key: SegmentKey, word: Word },
    /// Time has passed.
    Tick,
    /// The cache was lost, and with it what it would have said.
    CacheLost,
    /// Take no more.
    Drain,
}

/// Registrations under way.
pub(crate) struct Registrations {
    shared: Arc<Shared>,
    core: Boundary,
    /// What each registration needs: its prefix, and the decision that holds the pages.
    held: BTreeMap<SegmentKey, (Prefix, DecisionGuard)>,
}

/// The registration actor.
pub(crate) struct RegistrationActor;

impl Actor for RegistrationActor {
    type Msg = RegistrationMessage;
    type State = Registrations;
    type Arguments = Arc<Shared>;

    async fn pre_start(
        &self,
        myself: ActorRef<RegistrationMessage>,
        shared: Arc<Shared>,
    ) -> Result<Registrations, ActorProcessingErr> {
        // The timer ends with the actor.
        drop(myself.send_interval(shared.config.scheduler.tick, || RegistrationMessage::Tick));
        let before = **shared.registration.load();
        let core = Boundary::new(shared.config.registration.clone(), before);
        let registrations = Registrations { shared, core, held: BTreeMap::new() };
        registrations.publish();
        Ok(registrations)
    }

    async fn handle(
        &self,
        _: ActorRef<RegistrationMessage>,
        message: RegistrationMessage,
        registrations: &mut Registrations,
    ) -> Result<(), ActorProcessingErr> {
        let now = tokio::time::Instant::now().into_std();
        let effects = match message {
            RegistrationMessage::Responded { prefix, guard } => {
                if registrations.shared.config.registration.when == Register::Off {
                    return Ok(());
                }
                registrations.shared.rehearse(ActorKind::Registration);
                let key = prefix.state.key;
                registrations.held.insert(key, (prefix, guard));
                registrations.core.responded(key, now)
            }
            RegistrationMessage::Word { key, word } => registrations.core.word(key, word),
            RegistrationMessage::Tick => registrations.core.tick(now),
            RegistrationMessage::CacheLost => registrations.core.cache_lost(),
            RegistrationMessage::Drain => registrations.core.drain(),
        };
        registrations.publish();
        for effect in effects {
            registrations.perform(effect);
        }
        Ok(())
    }
}

impl Registrations {
    fn perform(&mut self, effect: BoundaryEffect) {
        match effect {
            BoundaryEffect::Promote(key) => {
                if let Some((prefix, guard)) = self.held.get(&key) {
                    let (prefix, tenant) = (prefix.clone(), guard.tenant().clone());
                    self.shared.cache(CacheAsk::Promote { prefix, tenant });
                }
            }
            BoundaryEffect::LetGo(key) => drop(self.held.remove(&key)),
            BoundaryEffect::Unregister(key) => self.shared.cache(CacheAsk::Unregister { key }),
        }
    }

    fn publish(&self) {
        let counters = self.core.counters();
        let before = self.shared.registration.swap(Arc::new(counters));
        self.shared.meters.ledger.registrations(&before, &counters);
    }
}
