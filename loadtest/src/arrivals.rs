//! Arrivals: when each request of an open loop starts, fixed before the run.
//!
//! A start does not wait for the answer before it. A client that waits leaves out the very requests
//! that a stalled server would have kept waiting, and its percentiles look good ("coordinated
//! omission").

use std::time::Duration;

use anyhow::ensure;

use crate::random::Random;

/// Most requests of one run: their plan is held in memory.
pub(crate) const REQUESTS_MAX: u32 = 5_000_000;
/// Highest rate, requests a second.
pub(crate) const RATE_MAX: f64 = 1e6;

/// A Poisson process, of single requests or of bursts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Arrivals {
    /// Requests a second, on average.
    pub(crate) rate: f64,
    /// Requests that start at the same moment.
    pub(crate) burst: u32,
    /// Length of the schedule.
    pub(crate) duration: Duration,
    /// Seed of the gaps.
    pub(crate) seed: u64,
}

impl Arrivals {
    /// The starts, in microseconds from the beginning, ascending.
    ///
    /// Gaps between bursts are exponential with a mean of `burst / rate`, so that the number of
    /// requests is itself random: `rate * duration` on average.
    ///
    /// # Errors
    /// When the rate is out of range, or there would be no request or over [`REQUESTS_MAX`].
    pub(crate) fn starts_us(&self) -> anyhow::Result<Vec<u64>> {
        let Self { rate, duration, .. } = *self;
        ensure!(
            rate > 0.0 && rate <= RATE_MAX,
            "--rate is {rate}, must be over 0 and at most {RATE_MAX}"
        );
        let expected = rate * duration.as_secs_f64();
        ensure!(
            expected <= f64::from(REQUESTS_MAX) * 0.99,
            "--rate {rate} for {duration:?} is about {expected:.0} requests, at most {REQUESTS_MAX}"
        );
        let mut random = Random::of(self.seed, &[STREAM]);
        let mean = f64::from(self.burst) / rate;
        let mut starts = Vec::new();
        let mut at = random.exponential(mean);
        while at < duration.as_secs_f64() {
            let start = whole_us(at);
            starts.extend((0..self.burst).map(|_| start));
            at += random.exponential(mean);
        }
        ensure!(!starts.is_empty(), "--rate {rate} for {duration:?} gives no request");
        Ok(starts)
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
mod tests {
    use super::*;

    fn arrivals(rate: f64, seconds: u64, seed: u64) -> Arrivals {
        Arrivals { rate, burst: 1, duration: Duration::from_secs(seconds), seed }
    }

    #[test]
    fn a_seed_gives_one_schedule() {
        let starts = arrivals(100.0, 10, 1).starts_us().unwrap();
        assert_eq!(starts, arrivals(100.0, 10, 1).starts_us().unwrap());
        assert_ne!(starts, arrivals(100.0, 10, 2).starts_us().unwrap());
        assert!(starts.is_sorted() && starts.last().unwrap() < &10_000_000);
    }

    #[test]
    fn the_rate_is_met() {
        // The count is Poisson with mean 100,000 and deviation 316.
        let count = arrivals(1_000.0, 100, 3).starts_us().unwrap().len();
        assert!((98_500..101_500).contains(&count), "{count}");
    }

    #[test]
    fn gaps_are_exponential() {
        let starts = arrivals(1_000.0, 100, 4).starts_us().unwrap();
        let mut gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e3).collect();
        gaps.sort_by(f64::total_cmp);
        // Kolmogorov-Smirnov distance to 1 - exp(-gap); the .1 % bound is 1.95 / sqrt(n).
        let n = gaps.len() as f64;
        let distance = gaps
            .iter()
            .enumerate()
            .map(|(i, gap)| (i as f64 / n - (1.0 - (-gap).exp())).abs())
            .fold(0.0, f64::max);
        assert!(distance < 1.95 / n.sqrt(), "{distance}");
    }

    #[test]
    fn counts_of_a_second_vary_as_much_as_their_mean() {
        let starts = arrivals(50.0, 2_000, 5).starts_us().unwrap();
        let mut counts = vec![0.0; 2_000];
        for start in &starts {
            counts[usize::try_from(start / 1_000_000).unwrap()] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 2_000.0;
        let variance = counts.iter().map(|c| (c - mean) * (c - mean)).sum::<f64>() / 2_000.0;
        assert!((variance / mean - 1.0).abs() < 0.15, "mean {mean}, variance {variance}");
    }

    #[test]
    fn a_burst_starts_at_one_moment_and_keeps_the_rate() {
        let burst = Arrivals { burst: 50, ..arrivals(500.0, 100, 6) };
        let starts = burst.starts_us().unwrap();
        assert!(starts.chunks(50).all(|burst| burst.len() == 50 && burst[0] == burst[49]));
        assert!((40_000..60_000).contains(&starts.len()), "{}", starts.len());
    }

    #[test]
    fn impossible_schedules_name_the_value_and_the_limit() {
        let text = |arrivals: Arrivals| arrivals.starts_us().unwrap_err().to_string();
        assert_eq!(text(arrivals(0.0, 1, 1)), "--rate is 0, must be over 0 and at most 1000000");
        assert!(text(arrivals(1e6, 100, 1)).ends_with("100000000 requests, at most 5000000"));
        assert!(text(arrivals(1e-9, 1, 1)).ends_with("gives no request"));
        assert!(text(arrivals(f64::NAN, 1, 1)).starts_with("--rate is NaN"));
    }
}
