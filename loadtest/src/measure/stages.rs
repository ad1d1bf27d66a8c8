//! Where a request's time went: the server's own stages, and what they leave of the client's time.

use std::time::Duration;

use super::times::{Times, whole_us};
use crate::exchange::Stages;

/// A part of the time from sending a request to its last byte; the parts add up to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
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
    pub(crate) const ALL: [Self; 6] =
        [Self::Queue, Self::State, Self::EngineWait, Self::Engine, Self::Other, Self::Unexplained];

    /// The word of reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
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

/// The parts of one request's time, microseconds, in the order of [`Stage::ALL`].
pub(super) fn parts_us(stages: Stages, service: Duration) -> [u64; Stage::ALL.len()] {
    let Stages { queue_us, state_us, engine_wait_us, engine_us, total_us } = stages;
    let told = queue_us + state_us + engine_wait_us + engine_us;
    let other_us = total_us.saturating_sub(told);
    let unexplained_us = whole_us(service).saturating_sub(total_us);
    [queue_us, state_us, engine_wait_us, engine_us, other_us, unexplained_us]
}

/// The stages of the answered requests that told them, as histograms.
#[derive(Debug, Default)]
pub(crate) struct StageTimes {
    parts: [Times; Stage::ALL.len()],
    /// The server's total.
    pub(crate) total: Times,
}

impl StageTimes {
    pub(super) fn record(&mut self, stages: Stages, service: Duration) {
        for (times, time_us) in self.parts.iter_mut().zip(parts_us(stages, service)) {
            times.add_us(time_us);
        }
        self.total.add_us(stages.total_us);
    }

    /// The times of one stage.
    pub(crate) fn of(&self, stage: Stage) -> &Times {
        &self.parts[stage as usize]
    }
}

/// The same as sums, where only means are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StageSums {
    count: u64,
    sums_us: [u64; Stage::ALL.len()],
}

impl StageSums {
    pub(super) fn record(&mut self, stages: Stages, service: Duration) {
        self.count += 1;
        for (sum, time_us) in self.sums_us.iter_mut().zip(parts_us(stages, service)) {
            *sum = sum.saturating_add(time_us);
        }
    }

    /// Adds all of another.
    pub(super) fn merge(&mut self, other: &Self) {
        self.count += other.count;
        for (sum, more) in self.sums_us.iter_mut().zip(other.sums_us) {
            *sum = sum.saturating_add(more);
        }
    }

    /// The mean of a stage; none where no request told its stages.
    pub(crate) fn mean_ms(&self, stage: Stage) -> Option<f64> {
        (self.count > 0).then(|| self.sums_us[stage as usize] as f64 / self.count as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAGES: Stages = Stages {
        queue_us: 1_000,
        state_us: 2_000,
        engine_wait_us: 300,
        engine_us: 4_000,
        total_us: 8_000,
    };

    #[test]
    fn parts_add_up_to_the_clients_time() {
        let parts = parts_us(STAGES, Duration::from_micros(9_500));
        assert_eq!(parts, [1_000, 2_000, 300, 4_000, 700, 1_500]);
        assert_eq!(parts.iter().sum::<u64>(), 9_500);
        // Clocks that disagree give no negative part.
        assert_eq!(parts_us(STAGES, Duration::from_millis(7))[5], 0);
    }

    #[test]
    fn sums_that_are_merged_give_the_mean_of_all() {
        let (mut all, mut more) = (StageSums::default(), StageSums::default());
        assert_eq!(all.mean_ms(Stage::Queue), None);
        all.record(STAGES, Duration::from_millis(9));
        more.record(Stages { queue_us: 4_000, ..STAGES }, Duration::from_millis(9));
        all.merge(&more);
        assert_eq!(all.mean_ms(Stage::Queue), Some(2.5));
        assert_eq!(all.mean_ms(Stage::Unexplained), Some(1.0));
    }
}
