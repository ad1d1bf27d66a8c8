//! Which actors are started again, and how often each was.

use std::sync::atomic::{AtomicU64, Ordering};

/// An actor that is there once and is started again after a panic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ActorKind {
    /// The queue and the running step.
    Scheduler,
    /// Keys and values.
    Cache,
    /// Boundary registration.
    Registration,
}

impl ActorKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Scheduler, Self::Cache, Self::Registration];

    /// Its name in `/health`, metrics and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scheduler => "scheduler",
            Self::Cache => "cache",
            Self::Registration => "registration",
        }
    }
}

/// How often each actor was lost and started again. Scheduler and cache start together; what is
/// counted is which of them was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Restarts([u64; 3]);

impl Restarts {
    /// Of one actor.
    pub fn of(&self, actor: ActorKind) -> u64 {
        self.0[actor as usize]
    }
}

/// The counts that the supervisor raises.
#[derive(Debug, Default)]
pub(crate) struct RestartCounts([AtomicU64; 3]);

impl RestartCounts {
    pub(crate) fn raise(&self, actor: ActorKind) {
        self.0[actor as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Restarts {
        Restarts([0, 1, 2].map(|actor| self.0[actor].load(Ordering::Relaxed)))
    }
}
