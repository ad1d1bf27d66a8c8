//! The cache actor: residency of keys and values.

use tokio::sync::oneshot;

use crate::error::ReadError;
use crate::handle::{PrewarmOutcome, PrewarmSpec};
use crate::links::Permit;

/// What handles and the registration actor ask of the cache.
pub(crate) enum CacheAsk {
    /// Make a state resident and pin it.
    Prewarm {
        spec: PrewarmSpec,
        reply: oneshot::Sender<Result<PrewarmOutcome, ReadError>>,
        permit: Permit,
    },
    /// Give up what waits.
    Drain,
}
