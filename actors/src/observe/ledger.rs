//! Meters of the cache and of what keeps states: drops, ages, prewarms, registrations.

use metrics::{Counter, Histogram, counter, histogram};

use crate::error::ReadError;
use crate::plan::residency::{Age, DropReason};
use crate::prewarm::PrewarmOutcome;
use crate::snapshot::RegistrationCounters;

/// Handles of the metrics of residency.
pub(crate) struct LedgerMeters {
    duplicate_tokens: Counter,
    room: Counter,
    released: Counter,
    overflow: Counter,
    limit: Counter,
    lifetime: Histogram,
    idle: Histogram,
    reuse_gap: Histogram,
    prewarms: Prewarms,
    registered: Counter,
    dropped: Counter,
    failed: Counter,
}

/// Counters of prewarms that were answered, by result.
struct Prewarms {
    pending: Counter,
    stored: Counter,
    not_stored: Counter,
    rejected: Counter,
    expired: Counter,
    failed: Counter,
    unavailable: Counter,
}

impl LedgerMeters {
    pub(super) fn new() -> Self {
        let evicted = |reason| counter!("docket_evictions_total", "reason" => reason);
        let registration = |result| counter!("docket_registrations_total", "result" => result);
        Self {
            duplicate_tokens: counter!("docket_state_duplicate_prefill_tokens_total"),
            room: evicted("room"),
            released: evicted("released"),
            overflow: evicted("overflow"),
            limit: evicted("limit"),
            lifetime: histogram!("docket_block_lifetime_seconds"),
            idle: histogram!("docket_block_idle_seconds"),
            reuse_gap: histogram!("docket_block_reuse_gap_seconds"),
            prewarms: Prewarms::new(),
            registered: registration("registered"),
            dropped: registration("dropped"),
            failed: registration("failed"),
        }
    }

    /// State tokens were computed again although they were resident.
    pub(crate) fn duplicate_tokens(&self, tokens: u64) {
        self.duplicate_tokens.increment(tokens);
    }

    /// A block was dropped.
    pub(crate) fn dropped(&self, reason: DropReason) {
        let counter = match reason {
            DropReason::Room => &self.room,
            DropReason::Released => &self.released,
            DropReason::Overflow => &self.overflow,
            DropReason::Limit => &self.limit,
        };
        counter.increment(1);
    }

    /// A block was evicted, or a state used again.
    pub(crate) fn aged(&self, age: &Age) {
        match age {
            Age::Evicted { lifetime, idle } => {
                self.lifetime.record(*lifetime);
                self.idle.record(*idle);
            }
            Age::Reused { gap } => self.reuse_gap.record(*gap),
        }
    }

    /// A prewarm was answered.
    pub(crate) fn prewarmed(&self, result: &Result<PrewarmOutcome, ReadError>) {
        self.prewarms.of(result).increment(1);
    }

    /// The registration actor has published; `before` is what it published last.
    pub(crate) fn registrations(&self, before: &RegistrationCounters, now: &RegistrationCounters) {
        let ended = [
            (&self.registered, before.registered, now.registered),
            (&self.dropped, before.dropped, now.dropped),
            (&self.failed, before.failed, now.failed),
        ];
        for (counter, before, now) in ended {
            counter.increment(now.saturating_sub(before));
        }
    }
}

impl Prewarms {
    fn new() -> Self {
        let answered = |result| counter!("docket_prewarms_total", "result" => result);
        Self {
            pending: answered("pending"),
            stored: answered("stored"),
            not_stored: answered("not_stored"),
            rejected: answered("rejected"),
            expired: answered("expired"),
            failed: answered("failed"),
            unavailable: answered("unavailable"),
        }
    }

    fn of(&self, result: &Result<PrewarmOutcome, ReadError>) -> &Counter {
        match result {
            Ok(PrewarmOutcome { pending: true, .. }) => &self.pending,
            Ok(PrewarmOutcome { stored: true, .. }) => &self.stored,
            Ok(_) => &self.not_stored,
            Err(ReadError::Rejected(_)) => &self.rejected,
            Err(ReadError::Expired { .. }) => &self.expired,
            Err(ReadError::Engine(_)) => &self.failed,
            Err(ReadError::Cancelled | ReadError::Draining | ReadError::Unavailable) => {
                &self.unavailable
            }
        }
    }
}
