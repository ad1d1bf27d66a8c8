//! The report of a run: one set of numbers, as a table for people and as JSON for programs.

mod doubts;
mod html;
mod json;
mod layout;
mod run;
mod shares;
mod sweep;
mod table;
mod verdict;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use crate::drivers::Settings;
use crate::exchange::Outcome;
use crate::load::Until;
use crate::machine::Machine;
use crate::measure::{Group, Measures};
use crate::retries::Retries;
use crate::server::Seen;

pub(crate) use json::times as times_json;
pub(crate) use layout::text as json_text;
pub(crate) use shares::Share;
pub(crate) use sweep::{STEP_TITLES, Sweep};
pub(crate) use verdict::{percent, short, time};

/// Which loop ran, and with what.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loop {
    Open { rate: f64, duration: Duration, connections: u32 },
    Closed { clients: u32, until: Until },
}

/// A run and its measures.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) kind: Loop,
    pub(crate) workload: String,
    pub(crate) about: String,
    pub(crate) url: String,
    pub(crate) driver: Settings,
    /// What tells the work from another of the same name, and the limits of its kinds of request.
    pub(crate) digest: u64,
    pub(crate) limits_ms: Vec<Option<u32>>,
    /// Whether the workload wants prewarms and the driver has none.
    pub(crate) unwarmed: bool,
    pub(crate) seed: u64,
    pub(crate) warm_up: Duration,
    /// Names of the tenants, by number.
    pub(crate) tenants: Vec<String>,
    /// Their weights, where fairness is to be by weight.
    pub(crate) weights: Vec<f64>,
    pub(crate) measures: Measures,
    pub(crate) retries: Retries,
    /// The pattern of the arrivals, as the command line has it; empty in a closed loop.
    pub(crate) arrivals: String,
    /// For how long requests started, and until the last end; both after the warm-up.
    pub(crate) load: Duration,
    pub(crate) whole: Duration,
    /// What the generator used of a processor.
    pub(crate) cpu: Duration,
    /// What was seen of the server from outside.
    pub(crate) server: Seen,
    /// The generator's machine.
    pub(crate) machine: Machine,
    /// How long the generator was ready to run and had no processor, in an open loop.
    pub(crate) starved: Duration,
    /// When Ctrl-C ended it, from its beginning.
    pub(crate) stopped: Option<Duration>,
}

impl Default for Report {
    fn default() -> Self {
        Self {
            kind: Loop::Closed { clients: 0, until: Until::default() },
            workload: String::new(),
            about: String::new(),
            url: String::new(),
            driver: Settings::default(),
            digest: 0,
            limits_ms: Vec::new(),
            unwarmed: false,
            seed: 0,
            warm_up: Duration::ZERO,
            tenants: Vec::new(),
            weights: Vec::new(),
            measures: Measures::default(),
            retries: Retries::default(),
            arrivals: String::new(),
            load: Duration::ZERO,
            whole: Duration::ZERO,
            cpu: Duration::ZERO,
            server: Seen::default(),
            machine: Machine::default(),
            starved: Duration::ZERO,
            stopped: None,
        }
    }
}

impl Report {
    /// Decisions that were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.measures.all.counts.sum()
    }

    /// Decisions that were answered.
    pub(crate) fn answered(&self) -> u64 {
        self.measures.all.counts.of(Outcome::Answered)
    }

    /// Requests a second that started.
    fn offered_rate(&self) -> f64 {
        self.sent() as f64 / seconds(self.load)
    }

    /// Decisions a second that were answered while requests started.
    fn achieved_rate(&self) -> f64 {
        self.measures.all.loaded_answered as f64 / seconds(self.load)
    }

    /// Questions a second that were answered while requests started.
    fn answers_rate(&self) -> f64 {
        self.measures.loaded_answers as f64 / seconds(self.load)
    }

    /// Share of one core that the generator used, its warm-up included.
    fn cpu_share(&self) -> f64 {
        self.cpu.as_secs_f64() / seconds(self.whole + self.warm_up)
    }

    /// Processor cores that the server kept busy; none where that is not known.
    fn server_cores(&self) -> Option<f64> {
        self.server.usage.as_ref().map(crate::server::Usage::cores)
    }

    /// Milliseconds of a core that the server used for each answered decision.
    fn server_cpu_ms(&self) -> Option<f64> {
        let usage = self.server.usage.as_ref().filter(|_| self.answered() > 0)?;
        Some(usage.cpu.as_secs_f64() * 1e3 / self.answered() as f64)
    }

    /// Share of the time in which the generator had to wait for a processor.
    fn starved_share(&self) -> f64 {
        self.starved.as_secs_f64() / seconds(self.whole + self.warm_up)
    }

    /// Lanes and tenants, each with its kind and name.
    fn groups(&self) -> impl Iterator<Item = (&'static str, &str, &Group)> {
        let lanes = self.measures.lanes.iter().map(|(lane, group)| ("lane", *lane, group));
        let tenants = self.tenants.iter().zip(&self.measures.tenants);
        lanes.chain(tenants.map(|(name, group)| ("tenant", name.as_str(), group)))
    }
}

/// Writes a report's file.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(path, text).with_context(|| format!("{} cannot be written", path.display()))
}

/// Never zero, as it divides.
fn seconds(time: Duration) -> f64 {
    time.as_secs_f64().max(1e-9)
}

#[cfg(test)]
mod tests;
