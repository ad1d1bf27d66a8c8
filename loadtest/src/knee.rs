//! The knee: the highest rate at which enough of what is offered is answered in time.
//!
//! Below it a server keeps up, and latency hardly depends on the rate; above it a queue grows for
//! as long as the load lasts. Every step is an open loop of its own: a closed loop cannot offer too
//! much.

use std::time::Duration;

use anyhow::{bail, ensure};

use crate::arrivals::{RATE_MAX, REQUESTS_MAX};
use crate::exchange::Outcome;
use crate::interrupt::Interrupt;
use crate::printed;
use crate::random::Random;
use crate::report::{Report, STEP_TITLES, Sweep};

/// Fewest requests that a step expects to measure: with fewer, one bad one decides.
const REQUESTS_MIN: f64 = 20.0;
/// Times that a rate is tried before it is too much: a step is a sample, and one of them may be bad
/// by chance.
const TRIES_MAX: usize = 2;
/// Most steps. From the lowest to the highest rate there are under thirty rates.
const STEPS_MAX: usize = 40 * TRIES_MAX;
/// Name of the seeds' stream of random numbers.
const STREAM: u64 = 0x6e_ee;

/// What is looked for, and where.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Aim {
    /// First rate, requests a second.
    pub(crate) from: f64,
    /// Share of the offered requests that must be good.
    pub(crate) goodput: f64,
    /// Largest ratio, less one, between a rate that fails and the knee.
    pub(crate) precision: f64,
    /// Requests that start at one moment.
    pub(crate) burst: u32,
    /// Length of a step, and the part of it that is not measured.
    pub(crate) duration: Duration,
    pub(crate) warm_up: Duration,
    /// Quiet time between two steps.
    pub(crate) pause: Duration,
    /// Seed of the steps' seeds.
    pub(crate) seed: u64,
}

/// One run of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Step {
    pub(crate) rate: f64,
    /// Another one for each step, so that it finds no state resident from a step before.
    pub(crate) seed: u64,
}

/// The search: rates double until one fails, or halve until one holds, and then close in.
#[derive(Debug, Clone, PartialEq)]
struct Search {
    from: f64,
    precision: f64,
    lowest: f64,
    highest: f64,
    held: Option<f64>,
    failed: Option<f64>,
}

impl Search {
    /// # Errors
    /// When the first rate is too low for a step, or too high for one.
    fn new(aim: &Aim) -> anyhow::Result<Self> {
        let Aim { from, duration, warm_up, burst, .. } = *aim;
        ensure!(warm_up < duration, "--warm-up {warm_up:?} must be below --duration {duration:?}");
        let requests_min = REQUESTS_MIN * f64::from(burst);
        let lowest = requests_min / duration.saturating_sub(warm_up).as_secs_f64();
        let highest = RATE_MAX.min(f64::from(REQUESTS_MAX) * 0.9 / duration.as_secs_f64());
        ensure!(
            (lowest..=highest).contains(&from),
            "--from is {from}, must be from {lowest:.3} to {highest:.0}; with fewer than \
             {requests_min} requests after the warm-up a step says nothing, a longer --duration \
             has more"
        );
        let precision = aim.precision;
        Ok(Self { from, precision, lowest, highest, held: None, failed: None })
    }

    /// The rate of the next step; none at the end.
    fn next(&self) -> Option<f64> {
        match (self.held, self.failed) {
            (None, None) => Some(self.from),
            (Some(held), None) => (held < self.highest).then(|| (held * 2.0).min(self.highest)),
            (None, Some(failed)) => (failed > self.lowest).then(|| (failed / 2.0).max(self.lowest)),
            (Some(held), Some(failed)) => {
                let middle = four_digits((held * failed).sqrt());
                let is_near = failed <= held * (1.0 + self.precision);
                (!is_near && held < middle && middle < failed).then_some(middle)
            }
        }
    }

    fn record(&mut self, rate: f64, holds: bool) {
        if holds { &mut self.held } else { &mut self.failed }.replace(rate);
    }
}

/// Searches, with `run` for each step. Each step is printed when it has ended. A rate holds where
/// one try does, and is too much where [`TRIES_MAX`] were.
///
/// # Errors
/// When the first rate cannot be used, a step cannot run, or a server answers nothing but errors.
pub(crate) async fn search(
    aim: &Aim,
    mut interrupt: Interrupt,
    mut run: impl AsyncFnMut(Step) -> anyhow::Result<Report>,
) -> anyhow::Result<Sweep> {
    let (mut search, mut tries) = (Search::new(aim)?, 0);
    let mut sweep = Sweep { aim: aim.clone(), ..Sweep::default() };
    printed::line(STEP_TITLES)?;
    while let Some(rate) = search.next().filter(|_| sweep.steps.len() < STEPS_MAX) {
        if !sweep.steps.is_empty() {
            // A step ends when all of its requests have; what they left behind may still go on.
            interrupt.sleep(aim.pause).await;
        }
        let seed = step_seed(aim.seed, sweep.steps.len());
        if interrupt.is_pressed() {
            break;
        }
        let report = match run(Step { rate, seed }).await {
            Err(_) if interrupt.is_pressed() => break,
            report => report?,
        };
        if report.stopped.is_some() {
            // It is no whole step.
            break;
        }
        check(&report)?;
        let holds = report.offered_goodput() >= aim.goodput;
        tries += 1;
        let is_tried_again = !holds && tries < TRIES_MAX;
        printed::line(report.step_row(aim.goodput, is_tried_again))?;
        sweep.steps.push(report);
        if !is_tried_again {
            search.record(rate, holds);
            tries = 0;
        }
    }
    (sweep.knee, sweep.failed) = (search.held, search.failed);
    sweep.is_interrupted = interrupt.is_pressed();
    Ok(sweep)
}

/// A rate is no reason for errors: a server that answers nothing else has another fault.
fn check(report: &Report) -> anyhow::Result<()> {
    let counts = &report.measures.all.counts;
    let errors = counts.of(Outcome::Failed) + counts.of(Outcome::ConnectionError);
    if errors > 0 && errors == report.sent() {
        let fault = report.measures.first_fault.as_deref().unwrap_or_default();
        bail!("all {errors} requests of a step failed: {fault}");
    }
    ensure!(
        report.measures.all.offered_goodput().is_some(),
        "none of {} requests of a step had a limit; --limit gives every kind one",
        report.sent()
    );
    Ok(())
}

/// Below 2^32, so that it is easy to type again.
fn step_seed(seed: u64, step: usize) -> u64 {
    Random::of(seed, &[STREAM, step as u64]).bits() >> 32
}

/// To four digits: the search is no more precise than that, and a rate is easy to type again.
fn four_digits(rate: f64) -> f64 {
    let scale = 10_f64.powf(3.0 - rate.log10().floor());
    (rate * scale).round() / scale
}

#[cfg(test)]
mod tests;
