//! Histograms of times: in microseconds, to three digits, in bounded memory.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Longest time that a histogram tells apart, microseconds: one hour.
pub(crate) const TIME_US_MAX: u64 = 3_600_000_000;

/// Times in microseconds, to three digits.
#[derive(Debug, Clone)]
pub(crate) struct Times(Histogram<u64>);

impl Default for Times {
    #[expect(clippy::expect_used, reason = "the bounds are constants that a histogram takes")]
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, TIME_US_MAX, 3).expect("constant bounds"))
    }
}

impl Times {
    /// Adds a time; one over the limit counts as the limit.
    pub(crate) fn add(&mut self, time: Duration) {
        self.add_us(whole_us(time));
    }

    /// Adds a time in microseconds, or in whatever unit the reader knows of.
    pub(crate) fn add_us(&mut self, time_us: u64) {
        self.0.saturating_record(time_us);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// The value in milliseconds below which this share of the values is; 1 is the largest.
    pub(crate) fn ms(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }

    /// The mean in milliseconds.
    pub(crate) fn mean_ms(&self) -> f64 {
        self.0.mean() / 1e3
    }

    /// The distribution as points of milliseconds and the share of the values that is not above
    /// them: every hundredth, and every thousandth of the last one. Empty where there are no
    /// values.
    pub(crate) fn cdf(&self) -> Vec<(f64, f64)> {
        if self.0.is_empty() {
            return Vec::new();
        }
        let shares = || {
            (0..=99).map(|n| f64::from(n) / 1e2).chain((991..=1_000).map(|n| f64::from(n) / 1e3))
        };
        let values = self.0.value_at_quantiles(shares());
        values.map(|time_us| time_us as f64 / 1e3).zip(shares()).collect()
    }
}

/// Few times, to about six percent, in under two kilobytes: for the bins of a series.
#[derive(Debug, Clone)]
pub(super) struct CoarseTimes(Histogram<u32>);

impl Default for CoarseTimes {
    #[expect(clippy::expect_used, reason = "the bounds are constants that a histogram takes")]
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, TIME_US_MAX, 1).expect("constant bounds"))
    }
}

impl CoarseTimes {
    pub(super) fn add(&mut self, time: Duration) {
        self.0.saturating_record(whole_us(time));
    }

    /// Adds all of another.
    #[expect(clippy::expect_used, reason = "both have the same constant bounds")]
    pub(super) fn merge(&mut self, other: &Self) {
        self.0.add(&other.0).expect("the same bounds");
    }

    /// As [`Times::count`].
    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// As [`Times::ms`].
    pub(super) fn ms(&self, share: f64) -> f64 {
        self.0.value_at_quantile(share) as f64 / 1e3
    }
}

/// A time in microseconds, at most the limit of the histograms.
pub(super) fn whole_us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(TIME_US_MAX).min(TIME_US_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_in_milliseconds_and_to_three_digits() {
        let mut times = Times::default();
        (1..=1_000).for_each(|ms| times.add(Duration::from_millis(ms)));
        for (share, expected) in [(0.5, 500.0), (0.99, 990.0), (1.0, 1_000.0)] {
            assert!((times.ms(share) / expected - 1.0).abs() < 0.002, "{}", times.ms(share));
        }
        times.add(Duration::from_hours(9));
        assert!((times.ms(1.0) / 3.6e6 - 1.0).abs() < 0.002);
    }

    #[test]
    fn a_distribution_rises_from_the_least_to_the_most_with_a_fine_tail() {
        assert!(Times::default().cdf().is_empty());
        let mut times = Times::default();
        (1..=10_000).for_each(|ms| times.add(Duration::from_millis(ms)));
        let cdf = times.cdf();
        assert!(cdf.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1), "{cdf:?}");
        assert_eq!((cdf.len(), cdf[0].1, cdf[109].1), (110, 0.0, 1.0));
        let at = |share: f64| cdf.iter().find(|point| (point.1 - share).abs() < 1e-9).unwrap().0;
        assert!((at(0.995) / 9_950.0 - 1.0).abs() < 0.002, "{}", at(0.995));
    }

    #[test]
    fn coarse_times_are_within_seven_percent_after_a_merge() {
        let (mut low, mut high) = (CoarseTimes::default(), CoarseTimes::default());
        (1..=500).for_each(|ms| low.add(Duration::from_millis(ms)));
        (501..=1_000).for_each(|ms| high.add(Duration::from_millis(ms)));
        low.merge(&high);
        assert!((low.ms(0.99) / 990.0 - 1.0).abs() < 0.07, "{}", low.ms(0.99));
    }
}
