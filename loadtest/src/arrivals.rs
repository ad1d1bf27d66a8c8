//! Arrivals: when each request of an open loop starts, fixed before the run.
//!
//! A start does not wait for the answer before it. A client that waits leaves out the very requests
//! that a stalled server would have kept waiting, and its percentiles look good ("coordinated
//! omission").

mod clock;
mod pattern;
mod trace;

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};

use crate::random::Random;
use clock::Clock;
pub(crate) use pattern::{FORMS, Pattern};

/// Most requests of one run: their plan is held in memory.
pub(crate) const REQUESTS_MAX: u32 = 5_000_000;
/// Highest rate, requests a second.
pub(crate) const RATE_MAX: f64 = 1e6;
/// Rate where nothing says, requests a second.
const RATE_DEFAULT: f64 = 10.0;
/// Length of a schedule where nothing says.
const DURATION_DEFAULT: Duration = Duration::from_secs(30);
/// Longest schedule.
pub(crate) const DURATION_MAX: Duration = Duration::from_hours(24);

/// What is asked of a schedule.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arrivals {
    pub(crate) pattern: Pattern,
    /// Requests a second, on average; none is [`RATE_DEFAULT`], or a trace's own.
    pub(crate) rate: Option<f64>,
    /// Requests that start at the same moment.
    pub(crate) burst: u32,
    /// Length of the schedule; none is [`DURATION_DEFAULT`], or a trace's own.
    pub(crate) duration: Option<Duration>,
    /// Seed of the gaps.
    pub(crate) seed: u64,
}

/// The starts of a run: a pure function of the [`Arrivals`], and of the file of a trace.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Schedule {
    /// Microseconds from the beginning, ascending.
    pub(crate) starts_us: Vec<u64>,
    /// Requests a second, as asked for, or of a trace as it is.
    pub(crate) rate: f64,
    pub(crate) duration: Duration,
}

impl Schedule {
    /// Of starts that are given, for as long as is said, or as they last.
    pub(crate) fn of(starts_us: Vec<u64>, duration: Option<Duration>) -> Self {
        let last = Duration::from_micros(starts_us.last().copied().unwrap_or(0));
        let duration = duration.unwrap_or(last + Duration::from_micros(1));
        // Never zero, as it divides.
        let rate = starts_us.len() as f64 / duration.as_secs_f64().max(1e-6);
        Self { rate: (rate * 1e3).round() / 1e3, starts_us, duration }
    }
}

impl Arrivals {
    /// Fixes the starts.
    ///
    /// # Errors
    /// When the rate is out of range, there would be no request or over [`REQUESTS_MAX`], or a
    /// trace cannot be used.
    pub(crate) fn schedule(&self) -> anyhow::Result<Schedule> {
        if let Pattern::Trace { file, speed } = &self.pattern {
            return self.recorded(file, *speed);
        }
        let rate = self.rate.unwrap_or(RATE_DEFAULT);
        let duration = self.duration.unwrap_or(DURATION_DEFAULT);
        let starts_us = self.drawn(rate, duration)?;
        let bursts = match self.burst {
            1 => String::new(),
            burst => format!(": the workload starts {burst} at a time"),
        };
        ensure!(!starts_us.is_empty(), "--rate {rate} for {duration:?} gives no request{bursts}");
        Ok(Schedule { starts_us, rate, duration })
    }

    /// Gaps between bursts have a mean of `burst / rate` by the pattern's clock, so that the number
    /// of requests is itself random.
    fn drawn(&self, rate: f64, duration: Duration) -> anyhow::Result<Vec<u64>> {
        ensure!(
            rate > 0.0 && rate <= RATE_MAX,
            "--rate is {rate}, must be over 0 and at most {RATE_MAX}"
        );
        let clock = self.clock(duration)?;
        let expected = rate * clock.end();
        ensure!(
            expected <= f64::from(REQUESTS_MAX) * 0.99,
            "--rate {rate} for {duration:?} is about {expected:.0} requests, at most {REQUESTS_MAX}"
        );
        let mut random = Random::of(self.seed, &[STREAM]);
        let mean = f64::from(self.burst) / rate;
        let mut gap = || {
            if let Pattern::Gamma { burstiness } = self.pattern {
                random.gamma(burstiness, mean / burstiness)
            } else {
                random.exponential(mean)
            }
        };
        let (mut starts, mut at, mut start_us) = (Vec::new(), gap(), 0);
        while at < clock.end() {
            // Bending the clock rounds: no start may slip before the one ahead of it.
            start_us = whole_us(clock.second(at)).max(start_us);
            starts.extend((0..self.burst).map(|_| start_us));
            ensure!(starts.len() <= REQUESTS_MAX as usize, "more than {REQUESTS_MAX} requests");
            at += gap();
        }
        Ok(starts)
    }

    fn clock(&self, duration: Duration) -> anyhow::Result<Clock> {
        let seconds = duration.as_secs_f64();
        Ok(match self.pattern {
            Pattern::Ramp { from, to } => Clock::Ramp { from, to, seconds },
            Pattern::OnOff { times, on_s, period_s } => {
                ensure!(
                    period_s <= seconds,
                    "--duration is {duration:?}, must be at least the {period_s} s of one period \
                     of --arrivals {}",
                    self.pattern
                );
                Clock::on_off(times, on_s, period_s, seconds)
            }
            Pattern::Poisson {} | Pattern::Gamma { .. } | Pattern::Trace { .. } => {
                Clock::Even { seconds }
            }
        })
    }

    /// A trace's starts, as far as the duration goes.
    fn recorded(&self, file: &Path, speed: f64) -> anyhow::Result<Schedule> {
        ensure!(self.rate.is_none(), "--rate: a trace has its own rate; it has a speed instead");
        let seconds = trace::read(file)?.into_iter().map(|second| second / speed);
        let mut seconds: Vec<f64> = seconds.collect();
        let span = Duration::try_from_secs_f64(seconds.last().copied().unwrap_or(0.0))
            .context("the trace's last start")?;
        // The next whole millisecond, so that the last start is inside.
        let past = Duration::from_millis(u64::try_from(span.as_millis())? + 1);
        let duration = self.duration.unwrap_or(past);
        ensure!(
            duration <= DURATION_MAX,
            "trace {} is {:.1} h long, at most {} h; give --duration or a speed",
            file.display(),
            duration.as_secs_f64() / 3_600.0,
            DURATION_MAX.as_secs() / 3_600
        );
        seconds.retain(|second| *second < duration.as_secs_f64());
        let count = seconds.len() * self.burst as usize;
        ensure!(count > 0, "trace {} has no start in its first {duration:?}", file.display());
        ensure!(
            count <= REQUESTS_MAX as usize,
            "trace {} in bursts of {} is {count} requests, at most {REQUESTS_MAX}",
            file.display(),
            self.burst
        );
        let burst = |second: f64| (0..self.burst).map(move |_| whole_us(second));
        let starts_us = seconds.into_iter().flat_map(burst).collect();
        // To a thousandth: it is only told.
        let rate = (count as f64 / duration.as_secs_f64() * 1e3).round() / 1e3;
        Ok(Schedule { starts_us, rate, duration })
    }
}

/// Name of the arrivals' stream of random numbers.
const STREAM: u64 = 0xa441;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive and, by the limits on the schedule, far below 2^63"
)]
fn whole_us(seconds: f64) -> u64 {
    (seconds * 1e6) as u64
}

#[cfg(test)]
mod tests;
