//! Admission: whether a decision may join what waits, and when to come back if not.
//!
//! All or nothing, by reads and by unique tokens. Limits by predicted wait belong here too, once
//! lanes have them.

use std::time::Duration;

use crate::config::SchedulerConfig;
use crate::error::RejectReason;

/// When nothing is known about the speed yet, this is what a refused caller is told to wait.
const RETRY_AFTER_UNKNOWN: Duration = Duration::from_secs(1);
/// Bounds of what a refused caller is told to wait.
const RETRY_AFTER_MIN: Duration = Duration::from_millis(100);
const RETRY_AFTER_MAX: Duration = Duration::from_mins(10);

/// What waits now, what has been let in but has not arrived included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Backlog {
    pub(crate) reads: usize,
    pub(crate) tokens: u64,
    pub(crate) tokens_per_second: f64,
}

/// What a newcomer adds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Newcomer {
    pub(crate) reads: usize,
    pub(crate) tokens: u64,
}

/// Accepts or refuses `newcomer`. With nothing waiting nothing is refused.
pub(crate) fn admit(
    backlog: Backlog,
    newcomer: Newcomer,
    limits: &SchedulerConfig,
) -> Result<(), RejectReason> {
    let retry_after = retry_after(backlog);
    if backlog.reads > 0 && backlog.reads + newcomer.reads > limits.reads_max {
        return Err(RejectReason::QueueFull {
            reads_waiting: backlog.reads,
            reads_max: limits.reads_max,
            retry_after,
        });
    }
    if backlog.tokens > 0 && backlog.tokens + newcomer.tokens > limits.tokens_max {
        return Err(RejectReason::TokensFull {
            tokens_waiting: backlog.tokens,
            tokens_max: limits.tokens_max,
            retry_after,
        });
    }
    Ok(())
}

/// The time after which, at the measured speed, all that waits is done.
pub(crate) fn retry_after(backlog: Backlog) -> Duration {
    if backlog.tokens_per_second <= 0.0 {
        return RETRY_AFTER_UNKNOWN;
    }
    let seconds = backlog.tokens as f64 / backlog.tokens_per_second;
    Duration::try_from_secs_f64(seconds)
        .unwrap_or(RETRY_AFTER_MAX)
        .clamp(RETRY_AFTER_MIN, RETRY_AFTER_MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMITS: fn() -> SchedulerConfig = SchedulerConfig::default;

    fn backlog(reads: usize, tokens: u64) -> Backlog {
        Backlog { reads, tokens, tokens_per_second: 500.0 }
    }

    #[test]
    fn nothing_is_refused_on_an_empty_queue() {
        let newcomer = Newcomer { reads: 100_000, tokens: u64::MAX };
        assert_eq!(admit(backlog(0, 0), newcomer, &LIMITS()), Ok(()));
    }

    #[test]
    fn a_full_queue_names_the_limit_and_the_predicted_drain() {
        let refused = admit(backlog(1_000, 5_000), Newcomer { reads: 25, tokens: 1 }, &LIMITS());
        let expected = RejectReason::QueueFull {
            reads_waiting: 1_000,
            reads_max: 1_024,
            retry_after: Duration::from_secs(10),
        };
        assert_eq!(refused, Err(expected));
    }

    #[test]
    fn too_many_tokens_are_refused() {
        let refused = admit(backlog(1, 262_000), Newcomer { reads: 1, tokens: 200 }, &LIMITS());
        assert!(matches!(refused, Err(RejectReason::TokensFull { tokens_waiting: 262_000, .. })));
    }

    proptest! {
        /// A larger limit never turns an accept into a reject, and an accept keeps the limits.
        #[test]
        fn capacity_is_monotone(
            reads in 0usize..3_000, tokens in 0u64..600_000,
            new_reads in 1usize..3_000, new_tokens in 0u64..600_000, more in 0usize..2_000,
        ) {
            let newcomer = Newcomer { reads: new_reads, tokens: new_tokens };
            let small = LIMITS();
            let mut large = LIMITS();
            large.reads_max += more;
            large.tokens_max += more as u64;
            if admit(backlog(reads, tokens), newcomer, &small).is_ok() {
                prop_assert!(admit(backlog(reads, tokens), newcomer, &large).is_ok());
                prop_assert!(reads == 0 || reads + new_reads <= small.reads_max);
                prop_assert!(tokens == 0 || tokens + new_tokens <= small.tokens_max);
            } else {
                prop_assert!(reads + new_reads > small.reads_max
                    || tokens + new_tokens > small.tokens_max);
            }
        }
    }
}
