//! Why a read, or a whole decision, ended without an outcome.

use std::fmt;
use std::time::Duration;

use thiserror::Error;

use crate::engine::EngineError;
use crate::read::Lane;

/// How a decision's reads ended other than done. Each is final.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Refused at admission; nothing was changed.
    #[error("rejected: {0}")]
    Rejected(RejectReason),
    /// The engine failed on it (after one retry alone).
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// Its deadline passed while it waited.
    #[error("not answered within {}{}", in_ms(*.waited), .spent.map(|spent| spent.to_string()).unwrap_or_default())]
    Expired {
        /// From admission to expiry.
        waited: Duration,
        /// Where that time went, if it waited for the engine at all.
        spent: Option<Spent>,
    },
    /// The caller went away.
    #[error("cancelled")]
    Cancelled,
    /// The server is stopping and its grace period is over.
    #[error("the server is stopping")]
    Draining,
    /// An actor died; the request may be sent again.
    #[error("the scheduler is restarting")]
    Unavailable,
}

/// Where the time of a read went that was not answered in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// From admission until work on it began.
    pub queue: Duration,
    /// From then until its state was resident.
    pub state: Duration,
    /// From then on.
    pub engine: Duration,
}

/// A duration as people read it: in whole milliseconds, below ten with one decimal.
fn in_ms(time: Duration) -> String {
    let milliseconds = time.as_secs_f64() * 1e3;
    // What would be rounded up to ten is ten.
    let decimals = usize::from(milliseconds < 9.95);
    format!("{milliseconds:.decimals$} ms")
}

impl fmt::Display for Spent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [queue, state, engine] =
            [self.queue, self.state, self.engine].map(|time| time.as_millis());
        write!(
            formatter,
            ": {queue} ms until its turn, {state} ms until its state was read, {engine} ms for the engine"
        )
    }
}

/// Why a decision was refused before anything was queued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RejectReason {
    /// Too many reads wait.
    #[error("{reads_waiting} reads wait, at most {reads_max} may")]
    QueueFull {
        /// Waiting now.
        reads_waiting: usize,
        /// The limit.
        reads_max: usize,
        /// When to come back.
        retry_after: Duration,
    },
    /// Too many unique tokens wait.
    #[error("{tokens_waiting} tokens wait, at most {tokens_max} may")]
    TokensFull {
        /// Waiting now.
        tokens_waiting: u64,
        /// The limit.
        tokens_max: u64,
        /// When to come back.
        retry_after: Duration,
    },
    /// What is ahead of it would take longer than its lane allows.
    #[error(
        "the wait in the {lane} lane would be {} ms, at most {} ms are allowed",
        .wait.as_millis(), .limit.as_millis()
    )]
    WaitTooLong {
        /// Its lane.
        lane: Lane,
        /// The predicted wait.
        wait: Duration,
        /// The lane's limit.
        limit: Duration,
        /// The next lower lane, if it would be let in there as it is.
        downgrade: Option<Lane>,
        /// When to come back.
        retry_after: Duration,
    },
    /// It could not be answered within the time that its caller gave it.
    #[error(
        "an answer would take {} ms, the request allows {} ms more: allow at least {} ms{}",
        .wait.as_millis(), .left.as_millis(), .wait.as_millis(),
        .downgrade.map(|lane| format!(", or ask in the {lane} lane with the time that lane allows")).unwrap_or_default()
    )]
    PastDeadline {
        /// The predicted wait, its own tokens included.
        wait: Duration,
        /// What is left until the deadline.
        left: Duration,
        /// The next lower lane, if it would be let in there with that lane's own time limit.
        downgrade: Option<Lane>,
        /// When to come back.
        retry_after: Duration,
    },
    /// Too many reads of its tenant wait or run.
    #[error("{reads_waiting} reads of this tenant wait, at most {reads_max} may")]
    TenantFull {
        /// Waiting or running now.
        reads_waiting: usize,
        /// The limit.
        reads_max: usize,
        /// When to come back.
        retry_after: Duration,
    },
    /// Its tenant has asked for more tokens than it may on average.
    #[error(
        "{tokens} tokens are asked for, {rate} a minute are allowed to this tenant on average and \
         {burst} at once after a pause; what it was given before counts until that time has passed"
    )]
    TenantRate {
        /// What it would compute.
        tokens: u64,
        /// Tokens a minute.
        rate: u64,
        /// Tokens at once after a pause.
        burst: u64,
        /// When to come back.
        retry_after: Duration,
    },
    /// Too many states wait to be read for prewarms and registrations.
    #[error(
        "{waiting} states {}wait to be prewarmed, at most {waiting_max} may",
        if *.of_tenant { "of this tenant " } else { "" }
    )]
    PrewarmsFull {
        /// Waiting now.
        waiting: usize,
        /// The limit.
        waiting_max: usize,
        /// Whether it is the limit of one tenant.
        of_tenant: bool,
        /// When to come back.
        retry_after: Duration,
    },
    /// It was let in, but had to make room for more urgent work before any of it had run.
    #[error("displaced by more urgent work")]
    Displaced {
        /// When to come back.
        retry_after: Duration,
    },
    /// A prompt is longer than the context.
    #[error("the prompt is {tokens} tokens, at most {tokens_max} fit")]
    TooLong {
        /// Prefix and suffix together.
        tokens: u32,
        /// The context.
        tokens_max: u32,
    },
    /// Its keys and values are larger than what can ever be held.
    #[error("the state needs {bytes} bytes of keys and values, at most {bytes_max} can be held")]
    Oversize {
        /// Of head and state.
        bytes: u64,
        /// What pins leave of the budget, or the overflow allowance.
        bytes_max: u64,
    },
    /// No new work is taken.
    #[error("the server is stopping")]
    Draining,
    /// The engine is gone.
    #[error("the engine is dead: {0}")]
    EngineDead(String),
}

impl RejectReason {
    /// When to come back, where that helps.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::QueueFull { retry_after, .. }
            | Self::TokensFull { retry_after, .. }
            | Self::WaitTooLong { retry_after, .. }
            | Self::PastDeadline { retry_after, .. }
            | Self::TenantFull { retry_after, .. }
            | Self::TenantRate { retry_after, .. }
            | Self::PrewarmsFull { retry_after, .. }
            | Self::Displaced { retry_after } => Some(*retry_after),
            Self::TooLong { .. } | Self::Oversize { .. } | Self::Draining | Self::EngineDead(_) => {
                None
            }
        }
    }

    /// The wait until there may be room again, where the engine's own backlog is the reason.
    pub(crate) fn backlog_wait(&mut self) -> Option<&mut Duration> {
        match self {
            Self::QueueFull { retry_after, .. }
            | Self::TokensFull { retry_after, .. }
            | Self::WaitTooLong { retry_after, .. } => Some(retry_after),
            Self::PastDeadline { .. }
            | Self::TenantFull { .. }
            | Self::TenantRate { .. }
            | Self::PrewarmsFull { .. }
            | Self::Displaced { .. }
            | Self::TooLong { .. }
            | Self::Oversize { .. }
            | Self::Draining
            | Self::EngineDead(_) => None,
        }
    }

    /// A lower lane that would take it, where there is one.
    pub fn downgrade(&self) -> Option<Lane> {
        match self {
            Self::WaitTooLong { downgrade, .. } | Self::PastDeadline { downgrade, .. } => {
                *downgrade
            }
            Self::QueueFull { .. }
            | Self::TokensFull { .. }
            | Self::TenantFull { .. }
            | Self::TenantRate { .. }
            | Self::PrewarmsFull { .. }
            | Self::Displaced { .. }
            | Self::TooLong { .. }
            | Self::Oversize { .. }
            | Self::Draining
            | Self::EngineDead(_) => None,
        }
    }

    /// Its name on the wire, in metrics and in logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::QueueFull { .. } | Self::PrewarmsFull { of_tenant: false, .. } => "queue_full",
            Self::TokensFull { .. } => "tokens",
            Self::WaitTooLong { .. } | Self::PastDeadline { .. } => "wait",
            Self::TenantFull { .. } | Self::PrewarmsFull { of_tenant: true, .. } => "tenant",
            Self::TenantRate { .. } => "tokens_per_minute",
            Self::Displaced { .. } => "displaced",
            Self::TooLong { .. } => "too_long",
            Self::Oversize { .. } => "oversize",
            Self::Draining => "draining",
            Self::EngineDead(_) => "engine_dead",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_told_in_milliseconds_without_false_precision() {
        let told = |us| {
            let waited = Duration::from_micros(us);
            ReadError::Expired { waited, spent: None }.to_string()
        };
        assert_eq!(told(300_722), "not answered within 301 ms");
        assert_eq!(told(60_000_000), "not answered within 60000 ms");
        assert_eq!(told(1_250), "not answered within 1.2 ms");
        assert_eq!(told(9_970), "not answered within 10 ms");
    }
}
