//! The registration actor: makes a decision's state stay resident after its response.

use crate::links::DecisionGuard;
use crate::read::Prefix;

/// What the registration actor is told.
pub(crate) enum RegistrationMessage {
    /// A response went out; the guard keeps the state's pages until the cache has spoken.
    Responded { prefix: Prefix, guard: DecisionGuard },
    /// Take no more.
    Drain,
}
