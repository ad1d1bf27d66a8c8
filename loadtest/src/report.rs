//! The report of a run: one set of numbers, as a table for people and as JSON for programs.

mod html;
mod json;
mod layout;
mod shares;
mod sweep;
mod table;
mod verdict;

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;

use crate::drivers::Driver;
use crate::exchange::Outcome;
use crate::machine::Machine;
use crate::measure::{Group, Measures};
use crate::retries::Retries;
use crate::server::Seen;

pub(crate) use json::times as times_json;
pub(crate) use layout::text as json_text;
pub(crate) use shares::Share;
pub(crate) use sweep::{STEP_TITLES, Sweep};
pub(crate) use verdict::{percent, short, time};

/// Lag of the 99th percentile above which the generator's own delay is no longer negligible, where it
/// is also over [`LAG_SHARE_MAX`] of the latency.
const LAG_MS_MAX: f64 = 1.0;
/// Share of the latency's 99th percentile.
const LAG_SHARE_MAX: f64 = 0.05;
/// Share of one core above which one thread is about to be too slow.
const CPU_SHARE_MAX: f64 = 0.8;
/// Share of the time without a processor above which connections may have run out for that.
const STARVED_SHARE_MAX: f64 = 0.2;

/// Load average for each core, before the run, above which the machine had other things to do.
const LOAD_PER_CORE_MAX: f64 = 2.0;

/// Which loop ran, and with what.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loop {
    Open { rate: f64, duration: Duration, connections: u32 },
    Closed { clients: u32 },
}

/// A run and its measures.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) kind: Loop,
    pub(crate) workload: String,
    pub(crate) about: String,
    pub(crate) url: String,
    pub(crate) driver: Driver,
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
    /// How long requests were started, and until the last end; both after the warm-up.
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
}

impl Default for Report {
    fn default() -> Self {
        Self {
            kind: Loop::Closed { clients: 0 },
            workload: String::new(),
            about: String::new(),
            url: String::new(),
            driver: Driver::default(),
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

    /// Whether the numbers are the server's, in words; nothing where there is no doubt.
    fn doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = self.unprepared().into_iter().collect();
        let Loop::Open { connections, .. } = self.kind else {
            doubts.push(
                "closed loop: a server that stalls is asked less, so percentiles look better than \
                 users' (coordinated omission); use it for capacity"
                    .to_owned(),
            );
            doubts.extend(self.busy().into_iter().chain(self.disturbed()));
            return doubts;
        };
        let waited = self.measures.connection_wait.count();
        let lag_ms = self.measures.lag.ms(0.99);
        if waited > 0 {
            doubts.push(format!(
                "{waited} requests found none of --connections {connections} free: their wait is in \
                 the latency, but the server did not see it"
            ));
        }
        // Late starts are then charged to the connections, but it is the machine that has no time.
        let starved = self.starved_share();
        if waited > 0 && starved > STARVED_SHARE_MAX {
            doubts.push(format!(
                "the generator is the bottleneck, its machine is too busy: it waited {:.0} % of \
                 the time for a processor",
                starved * 100.0
            ));
        }
        let latency_ms = self.measures.all.latency.ms(0.99);
        if lag_ms > LAG_MS_MAX.max(LAG_SHARE_MAX * latency_ms) {
            doubts.push(format!(
                "the generator is the bottleneck, or its machine is too busy: its start lag p99 is \
                 {lag_ms:.2} ms, and the latency's {latency_ms:.2} ms"
            ));
        }
        doubts.extend(self.busy().into_iter().chain(self.disturbed()));
        doubts
    }

    fn unprepared(&self) -> Option<String> {
        self.unwarmed.then(|| {
            format!(
                "--driver {} cannot read a state ahead of its questions: states that the workload wants \
                 resident or prewarmed were not",
                self.driver.as_str()
            )
        })
    }

    fn disturbed(&self) -> Option<String> {
        let (load, cores) = (self.machine.load_before?, self.machine.cores?);
        (load > LOAD_PER_CORE_MAX * cores as f64).then(|| {
            format!(
                "other work ran on the generator's machine: its load average was {load:.2} before \
                 the run, on {cores} cores"
            )
        })
    }

    fn busy(&self) -> Option<String> {
        let share = self.cpu_share();
        (share > CPU_SHARE_MAX).then(|| {
            format!(
                "the generator is the bottleneck: it used {:.0} % of its one core, over {:.0} %",
                share * 100.0,
                CPU_SHARE_MAX * 100.0
            )
        })
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
