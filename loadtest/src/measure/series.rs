//! The series: what happened in each second of the run.
//!
//! A request counts as started in the second of its intended start, and as ended in that of its
//! end; latency and stages are those of the requests that ended in it. A long run has wider bins.

use std::time::Duration;

use tokio::time::Instant;

use super::group::Counts;
use super::stages::{Parts, StageSums};
use super::times::{CoarseTimes, whole_us};
use super::{Label, Stage};
use crate::exchange::{Exchange, Outcome};

/// Most bins; when they are used up, every two become one.
pub(crate) const BINS_MAX: usize = 3_600;
/// Width of a bin at first.
const WIDTH: Duration = Duration::from_secs(1);

/// What happened in one bin.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bin {
    pub(crate) started: u64,
    /// Those that ended, by how.
    pub(crate) ends: Counts,
    latency_us: u64,
    latency: CoarseTimes,
    stages: StageSums,
}

impl Bin {
    fn merge(&mut self, other: &Self) {
        self.started += other.started;
        self.ends.merge(&other.ends);
        self.latency_us += other.latency_us;
        self.latency.merge(&other.latency);
        self.stages.merge(&other.stages);
    }

    /// Mean latency of the answered whose clients would have waited; none where there are none.
    pub(crate) fn mean_ms(&self) -> Option<f64> {
        let count = self.latency.count();
        (count > 0).then(|| self.latency_us as f64 / count as f64 / 1e3)
    }

    /// The 99th percentile of the same, to about six percent.
    pub(crate) fn p99_ms(&self) -> Option<f64> {
        (self.latency.count() > 0).then(|| self.latency.ms(0.99))
    }

    /// Mean time of a stage; none where no answered request told it.
    pub(crate) fn stage_ms(&self, stage: Stage) -> Option<f64> {
        self.stages.mean_ms(stage)
    }
}

/// The bins of a run.
#[derive(Debug)]
pub(crate) struct Series {
    /// When the first bin begins: known once something is recorded, or told before.
    began: Option<Instant>,
    width: Duration,
    bins: Vec<Bin>,
}

impl Default for Series {
    fn default() -> Self {
        Self { began: None, width: WIDTH, bins: Vec::new() }
    }
}

impl Series {
    /// A series that begins at a moment: when the warm-up ends.
    pub(super) fn since(began: Instant) -> Self {
        Self { began: Some(began), ..Self::default() }
    }

    pub(super) fn record(&mut self, label: Label, exchange: &Exchange) {
        let Exchange { outcome, sent, ended, .. } = *exchange;
        if let Some(bin) = self.bin(label.intended) {
            bin.started += 1;
        }
        let Some(bin) = self.bin(ended) else { return };
        bin.ends.add(outcome);
        if outcome != Outcome::Answered || label.leaves {
            return;
        }
        let latency = ended.saturating_duration_since(label.intended);
        bin.latency.add(latency);
        bin.latency_us += whole_us(latency);
        if let Some(stages) = exchange.reply.as_ref().and_then(|reply| reply.stages) {
            bin.stages.record(&Parts::of(stages, label.first_sent, (sent, ended)));
        }
    }

    /// Width of a bin.
    pub(crate) fn width(&self) -> Duration {
        self.width
    }

    /// The bins from the beginning.
    pub(crate) fn bins(&self) -> &[Bin] {
        &self.bins
    }

    /// The same with at most so many bins, each the sum of neighbours: for a plot.
    pub(crate) fn thinned(&self, bins_max: usize) -> Self {
        let each = self.bins.len().div_ceil(bins_max.max(1)).max(1);
        let merged = self.bins.chunks(each).map(|bins| {
            let mut sum = Bin::default();
            for bin in bins {
                sum.merge(bin);
            }
            sum
        });
        let width = self.width.saturating_mul(u32::try_from(each).unwrap_or(u32::MAX));
        Self { began: self.began, width, bins: merged.collect() }
    }

    fn bin(&mut self, at: Instant) -> Option<&mut Bin> {
        let began = *self.began.get_or_insert(at);
        let since = at.saturating_duration_since(began);
        let index = |width: Duration| {
            usize::try_from(since.as_nanos() / width.as_nanos().max(1)).unwrap_or(usize::MAX)
        };
        while index(self.width) >= BINS_MAX {
            *self = self.halved();
        }
        let index = index(self.width);
        if self.bins.len() <= index {
            self.bins.resize_with(index + 1, Bin::default);
        }
        self.bins.get_mut(index)
    }

    /// Every two bins made one, of twice the width.
    fn halved(&self) -> Self {
        Self { width: self.width * 2, ..self.thinned(self.bins.len().div_ceil(2).max(1)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::{Reply, Stages};

    fn answered(series: &mut Series, began: Instant, from_ms: u64, took_ms: u64) {
        let sent = began + Duration::from_millis(from_ms);
        let ended = sent + Duration::from_millis(took_ms);
        let stages = Stages {
            queue_us: Some(took_ms * 500),
            total_us: took_ms * 1_000,
            ..Stages::default()
        };
        let reply = Some(Reply { stages: Some(stages), ..Reply::default() });
        let exchange = Exchange { reply, ..Exchange::bare(Outcome::Answered, sent, ended) };
        series.record(Label::of(sent), &exchange);
    }

    #[test]
    fn a_start_counts_in_its_second_and_an_end_in_its_own() {
        let began = Instant::now();
        let mut series = Series::since(began);
        answered(&mut series, began, 500, 100);
        answered(&mut series, began, 900, 1_300);
        let bins = series.bins();
        let counts: Vec<_> = bins.iter().map(|bin| (bin.started, bin.ends.sum())).collect();
        assert_eq!(counts, [(2, 1), (0, 0), (0, 1)]);
        assert_eq!((bins[0].mean_ms(), bins[1].mean_ms()), (Some(100.0), None));
        assert_eq!(bins[2].stage_ms(Stage::Queue), Some(650.0));
        assert!((bins[2].p99_ms().unwrap() / 1_300.0 - 1.0).abs() < 0.07);
    }

    #[test]
    fn a_long_run_widens_its_bins_and_loses_nothing() {
        let began = Instant::now();
        let mut series = Series::since(began);
        for second in 0..10_000 {
            answered(&mut series, began, second * 1_000, 1);
        }
        assert_eq!(series.width(), Duration::from_secs(4));
        assert_eq!(series.bins().len(), 2_500);
        assert!(series.bins().iter().all(|bin| (bin.started, bin.ends.sum()) == (4, 4)));
        let thin = series.thinned(100);
        assert_eq!((thin.bins().len(), thin.width()), (100, Duration::from_secs(100)));
        assert!(thin.bins().iter().all(|bin| bin.started == 100));
    }

    #[test]
    fn an_end_far_away_stays_within_the_bins() {
        let began = Instant::now();
        let mut series = Series::since(began);
        answered(&mut series, began, 0, 1);
        answered(&mut series, began, 86_400_000, 1);
        assert!(series.bins().len() <= BINS_MAX);
        assert_eq!(series.bins().iter().map(|bin| bin.started).sum::<u64>(), 2);
    }
}
