//! What the scheduler only counts: taken by its actor after each event, so that planning touches no
//! metric.

use crate::plan::queue::Asker;
use crate::read::{TENANT_BUCKETS, TenantId};

/// How far a read was when it ended without an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No work on it had begun.
    Queue,
    /// Its state was being computed.
    State,
    /// It was ready for its step, or in it.
    Engine,
}

impl Stage {
    /// All stages, in their order.
    pub(crate) const ALL: [Self; 3] = [Self::Queue, Self::State, Self::Engine];

    pub(crate) fn of(asker: &Asker) -> Self {
        match (asker.started, asker.ready) {
            (None, _) => Self::Queue,
            (Some(_), None) => Self::State,
            (Some(_), Some(_)) => Self::Engine,
        }
    }

    /// Its name in metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::State => "state",
            Self::Engine => "engine",
        }
    }
}

/// Counts since they were last taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    /// Reads that came in.
    pub(crate) admitted: u64,
    /// Reads whose caller went away, by [`Stage`].
    pub(crate) cancelled: [u64; 3],
    /// Reads whose deadline passed, by [`Stage`].
    pub(crate) expired: [u64; 3],
    /// Decisions that made room for more urgent work.
    pub(crate) displaced: u64,
    /// Prefix tokens of the decisions that were answered.
    pub(crate) lookup_tokens: u64,
    /// Of these, those that were resident when it came.
    pub(crate) resident_tokens: u64,
    /// Of these, those that were computed meanwhile for others.
    pub(crate) inflight_tokens: u64,
    /// Tokens run on each tenant's account, by [`TenantId::bucket`].
    pub(crate) served: [u64; TENANT_BUCKETS],
}

impl Counts {
    /// A decision was answered whose prefix has so many tokens; `missing` were not resident when it
    /// came, `charged` were computed on its account.
    pub(crate) fn looked_up(&mut self, tokens: u32, missing: u32, charged: u32) {
        let absent = missing.max(charged).min(tokens);
        self.lookup_tokens += u64::from(tokens);
        self.resident_tokens += u64::from(tokens - absent);
        self.inflight_tokens += u64::from(absent.saturating_sub(charged));
    }

    /// A tenant is served so many tokens.
    pub(crate) fn served(&mut self, tenant: &TenantId, tokens: u32) {
        self.served[tenant.bucket()] += u64::from(tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_computed_for_a_decision_was_resident_or_came_meanwhile() {
        let of = |tokens, missing, charged| {
            let mut counts = Counts::default();
            counts.looked_up(tokens, missing, charged);
            assert_eq!(counts.lookup_tokens, u64::from(tokens));
            (counts.resident_tokens, counts.inflight_tokens)
        };
        assert_eq!(of(100, 0, 0), (100, 0));
        assert_eq!(of(100, 100, 100), (0, 0));
        assert_eq!(of(100, 70, 64), (30, 6));
        assert_eq!(of(100, 10, 64), (36, 0), "evicted after it came");
    }
}
