//! Where a request's time went: the server's own stages, and what they leave of the client's time.

use tokio::time::Instant;

use super::times::{Times, whole_us};
use crate::exchange::Stages;

/// A part of the time from first sending a request to its last byte; the parts add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// From the first sending of a refused request to its last one.
    Retry,
    Queue,
    State,
    EngineWait,
    Engine,
    /// The server's total without the four above.
    Other,
    /// The client's time without the server's total.
    Unexplained,
}

impl Stage {
    /// All of them, in the order in which a request goes through them.
    pub(crate) const ALL: [Self; 7] = [
        Self::Retry,
        Self::Queue,
        Self::State,
        Self::EngineWait,
        Self::Engine,
        Self::Other,
        Self::Unexplained,
    ];

    /// The word of reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Retry => "retry_wait",
            Self::Queue => "queue_wait",
            Self::State => "state_wait",
            Self::EngineWait => "engine_wait",
            Self::Engine => "engine_time",
            Self::Other => "other",
            Self::Unexplained => "unexplained",
        }
    }

    /// The words for people.
    pub(crate) fn title(self) -> String {
        self.as_str().replace('_', " ")
    }
}

/// The parts of one request's time, microseconds, in the order of [`Stage::ALL`]; none of what its
/// server does not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts([Option<u64>; Stage::ALL.len()]);

impl Parts {
    /// Of a request that was sent first, and last sent and ended.
    pub(super) fn of(
        stages: Stages,
        first_sent: Instant,
        (sent, ended): (Instant, Instant),
    ) -> Self {
        let Stages { queue_us, state_us, engine_wait_us, engine_us, total_us } = stages;
        let told = [queue_us, state_us, engine_wait_us, engine_us];
        let other_us = total_us.saturating_sub(told.iter().flatten().sum());
        let since = |from: Instant, to: Instant| whole_us(to.saturating_duration_since(from));
        let unexplained_us = since(sent, ended).saturating_sub(total_us);
        let [queue, state, engine_wait, engine] = told;
        let (retry, rest) = (Some(since(first_sent, sent)), [Some(other_us), Some(unexplained_us)]);
        Self([retry, queue, state, engine_wait, engine, rest[0], rest[1]])
    }
}

/// The stages of the answered requests that told them, as histograms.
#[derive(Debug, Default)]
pub(crate) struct StageTimes {
    parts: [Times; Stage::ALL.len()],
    /// The server's total.
    pub(crate) total: Times,
}

impl StageTimes {
    pub(super) fn record(&mut self, parts: &Parts, total_us: u64) {
        for (times, time_us) in self.parts.iter_mut().zip(parts.0) {
            if let Some(time_us) = time_us {
                times.add_us(time_us);
            }
        }
        self.total.add_us(total_us);
    }

    /// Stages that are worth a place: those that some request told, and of retries only where there
    /// were any.
    pub(crate) fn told(&self) -> impl Iterator<Item = Stage> {
        let has_any = |stage: &Stage| {
            let times = self.of(*stage);
            times.count() > 0 && (*stage != Stage::Retry || times.ms(1.0) > 0.0)
        };
        Stage::ALL.into_iter().filter(has_any)
    }

    /// The times of one stage.
    pub(crate) fn of(&self, stage: Stage) -> &Times {
        &self.parts[stage as usize]
    }
}

/// The same as sums, where only means are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StageSums {
    counts: [u64; Stage::ALL.len()],
    sums_us: [u64; Stage::ALL.len()],
}

impl StageSums {
    pub(super) fn record(&mut self, parts: &Parts) {
        let sums = self.counts.iter_mut().zip(&mut self.sums_us);
        for ((count, sum), time_us) in sums.zip(parts.0) {
            *count += u64::from(time_us.is_some());
            *sum = sum.saturating_add(time_us.unwrap_or(0));
        }
    }

    /// Adds all of another.
    pub(super) fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(other.counts).for_each(|(count, more)| *count += more);
        for (sum, more) in self.sums_us.iter_mut().zip(other.sums_us) {
            *sum = sum.saturating_add(more);
        }
    }

    /// The mean of a stage; none where no request told it.
    pub(crate) fn mean_ms(&self, stage: Stage) -> Option<f64> {
        let (count, sum_us) = (self.counts[stage as usize], self.sums_us[stage as usize]);
        (count > 0).then(|| sum_us as f64 / count as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const STAGES: Stages = Stages {
        queue_us: Some(1_000),
        state_us: Some(2_000),
        engine_wait_us: Some(300),
        engine_us: Some(4_000),
        total_us: 8_000,
    };

    /// Sent again after so long, and ended so long after that.
    fn parts(stages: Stages, retry_us: u64, service_us: u64) -> Parts {
        let first = Instant::now();
        let sent = first + Duration::from_micros(retry_us);
        Parts::of(stages, first, (sent, sent + Duration::from_micros(service_us)))
    }

    #[test]
    fn parts_add_up_to_the_clients_time() {
        let Parts(found) = parts(STAGES, 70_000, 9_500);
        assert_eq!(found, [70_000, 1_000, 2_000, 300, 4_000, 700, 1_500].map(Some));
        assert_eq!(found.into_iter().flatten().sum::<u64>(), 79_500);
        // Clocks that disagree give no negative part.
        assert_eq!(parts(STAGES, 0, 7_000).0[6], Some(0));
    }

    #[test]
    fn what_a_server_does_not_tell_is_not_nought() {
        let stages = Stages { engine_us: Some(4_000), total_us: 4_000, ..Stages::default() };
        let (mut sums, mut times) = (StageSums::default(), StageTimes::default());
        let told = parts(stages, 0, 9_000);
        sums.record(&told);
        times.record(&told, stages.total_us);
        let means = Stage::ALL.map(|stage| sums.mean_ms(stage));
        let whole = [Some(0.0), None, None, None, Some(4.0), Some(0.0), Some(5.0)];
        assert_eq!(means, whole);
        let worth: Vec<Stage> = times.told().collect();
        assert_eq!(worth, [Stage::Engine, Stage::Other, Stage::Unexplained]);
        times.record(&parts(STAGES, 70_000, 9_500), STAGES.total_us);
        assert_eq!(times.told().count(), Stage::ALL.len());
    }

    #[test]
    fn sums_that_are_merged_give_the_mean_of_all() {
        let (mut all, mut more) = (StageSums::default(), StageSums::default());
        assert_eq!(all.mean_ms(Stage::Queue), None);
        all.record(&parts(STAGES, 0, 9_000));
        more.record(&parts(Stages { queue_us: Some(4_000), ..STAGES }, 0, 9_000));
        all.merge(&more);
        assert_eq!(all.mean_ms(Stage::Queue), Some(2.5));
        assert_eq!(all.mean_ms(Stage::Unexplained), Some(1.0));
    }
}
