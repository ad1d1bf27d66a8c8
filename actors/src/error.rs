//! Why a read, or a whole decision, ended without an outcome.

use std::time::Duration;

use thiserror::Error;

use crate::engine::EngineError;

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
    #[error("not answered within {waited:?}")]
    Expired {
        /// From admission to expiry.
        waited: Duration,
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
            Self::QueueFull { retry_after, .. } | Self::TokensFull { retry_after, .. } => {
                Some(*retry_after)
            }
            Self::TooLong { .. } | Self::Oversize { .. } | Self::Draining | Self::EngineDead(_) => {
                None
            }
        }
    }

    /// Its name in metrics and logs.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::QueueFull { .. } => "queue_full",
            Self::TokensFull { .. } => "tokens",
            Self::TooLong { .. } => "too_long",
            Self::Oversize { .. } => "oversize",
            Self::Draining => "draining",
            Self::EngineDead(_) => "engine",
        }
    }
}
