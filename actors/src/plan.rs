//! The pure core: what to run, what to keep, what to drop.
//!
//! Everything here is a plain structure: an event and `now` go in, effects come out. No clock, no
//! channel, no randomness, no `async`, and only ordered maps, so that one list of events always
//! gives one list of effects. The actors perform the effects and hold what a decision must not
//! depend on: reply ports, the engine, the clock.

mod account;
pub(crate) mod admit;
pub(crate) mod boundary;
pub(crate) mod cache;
pub(crate) mod counts;
mod details;
mod displace;
mod draft;
mod ending;
mod failures;
pub(crate) mod fair;
#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod laws;
mod leases;
mod pace;
pub(crate) mod path;
mod queue;
mod relief;
pub(crate) mod residency;
mod retry;
pub(crate) mod returns;
mod running;
pub(crate) mod scheduler;
pub(crate) mod segments;
mod settle;
mod turns;
mod view;
mod wants;

use std::fmt;

/// Number of a decision within one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId(pub u64);

/// One read of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId {
    /// The decision.
    pub decision: DecisionId,
    /// Counted from 0 over all stages of the decision.
    pub index: u32,
}

impl fmt::Display for DecisionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "d{}", self.0)
    }
}

impl fmt::Display for ReadId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.decision, self.index)
    }
}
