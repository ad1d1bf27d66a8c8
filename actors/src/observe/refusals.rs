//! Refusals by reason: counted for the metrics, and kept readable for `/health`.

use std::sync::atomic::{AtomicU64, Ordering};

use metrics::{Counter, counter};

use crate::error::ReadError;

/// Reasons of refusals, those of [`RejectReason::as_str`](crate::RejectReason::as_str) and one for a
/// restart; on the wire each has the same name.
const REASONS: [&str; 11] = [
    "queue_full",
    "tokens",
    "wait",
    "tenant",
    "tokens_per_minute",
    DISPLACED,
    "too_long",
    "oversize",
    "draining",
    "engine_dead",
    UNAVAILABLE,
];

const DISPLACED: &str = "displaced";
const UNAVAILABLE: &str = "unavailable";

/// Refusals since the process started.
pub(crate) struct Refusals([(AtomicU64, Counter); REASONS.len()]);

impl Refusals {
    pub(super) fn new() -> Self {
        let counted = |reason| counter!("docket_admission_rejections_total", "reason" => reason);
        Self(REASONS.map(|reason| (AtomicU64::new(0), counted(reason))))
    }

    /// A decision or prewarm was refused.
    pub(crate) fn refused(&self, error: &ReadError) {
        match error {
            ReadError::Rejected(reason) => self.add(reason.as_str(), 1),
            ReadError::Unavailable => self.add(UNAVAILABLE, 1),
            ReadError::Engine(_)
            | ReadError::Expired { .. }
            | ReadError::Cancelled
            | ReadError::Draining => {}
        }
    }

    /// Decisions that waited made room for more urgent ones.
    pub(super) fn displaced(&self, decisions: u64) {
        self.add(DISPLACED, decisions);
    }

    /// Each reason with its count.
    pub(crate) fn by_reason(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|(count, _)| count.load(Ordering::Relaxed));
        REASONS.into_iter().zip(counts).collect()
    }

    fn add(&self, reason: &str, count: u64) {
        let found = REASONS.iter().zip(&self.0).find(|(known, _)| **known == reason);
        let Some((_, (sum, counter))) = found else { return };
        sum.fetch_add(count, Ordering::Relaxed);
        counter.increment(count);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::error::RejectReason;

    #[test]
    fn a_refusal_is_counted_under_its_own_name() {
        let refusals = Refusals::new();
        let retry_after = Duration::from_secs(1);
        let reasons = [
            RejectReason::TokensFull { tokens_waiting: 2, tokens_max: 1, retry_after },
            RejectReason::Oversize { bytes: 2, bytes_max: 1 },
            RejectReason::EngineDead("x".to_owned()),
            RejectReason::TenantRate { tokens: 2, rate: 1, burst: 1, retry_after },
        ];
        for reason in reasons {
            refusals.refused(&ReadError::Rejected(reason));
        }
        refusals.refused(&ReadError::Unavailable);
        let counted = refusals.by_reason().into_iter().filter(|(_, count)| *count == 1);
        let counted: Vec<_> = counted.map(|(reason, _)| reason).collect();
        assert_eq!(
            counted,
            ["tokens", "tokens_per_minute", "oversize", "engine_dead", "unavailable"]
        );
    }
}
