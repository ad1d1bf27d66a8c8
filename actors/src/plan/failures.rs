//! When failing steps mean that the engine is dead.
//!
//! A step failure counts for a while. Failures that bisection blamed on single items are suspended:
//! the next success proves that the engine works and forgets them. Without a success in between,
//! a longer run of blamed items is the engine's fault after all.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many times more failures blamed on items are borne than others, while nothing succeeds.
const BLAMED_PER_OTHER: usize = 4;

/// The recent step failures.
#[derive(Debug)]
pub(crate) struct Failures {
    max: usize,
    window: Duration,
    /// When, and whether a single item was blamed.
    recent: VecDeque<(Instant, bool)>,
}

impl Failures {
    pub(crate) fn new(max: usize, window: Duration) -> Self {
        Self { max, window, recent: VecDeque::new() }
    }

    /// Notes a step that failed.
    pub(crate) fn failed(&mut self, now: Instant) {
        self.recent.push_back((now, false));
    }

    /// The last failure, and the one before it that made the item run alone, are the item's.
    pub(crate) fn blame_item(&mut self) {
        for (_, blamed) in self.recent.iter_mut().rev().filter(|(_, blamed)| !blamed).take(2) {
            *blamed = true;
        }
    }

    /// Notes a step that succeeded.
    pub(crate) fn succeeded(&mut self) {
        self.recent.retain(|(_, blamed)| !blamed);
    }

    /// Whether the engine is to be given up.
    pub(crate) fn is_dead(&mut self, now: Instant) -> bool {
        let window = self.window;
        self.recent.retain(|(at, _)| now.saturating_duration_since(*at) < window);
        let blamed = self.recent.iter().filter(|(_, blamed)| *blamed).count();
        self.recent.len() - blamed > self.max || blamed > self.max * BLAMED_PER_OTHER
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixture::start_of_time;

    fn failures() -> Failures {
        Failures::new(3, Duration::from_mins(1))
    }

    #[test]
    fn more_than_three_failures_in_a_minute_are_death() {
        let (mut failures, now) = (failures(), start_of_time());
        for _ in 0..3 {
            failures.failed(now);
        }
        assert!(!failures.is_dead(now));
        failures.failed(now + Duration::from_secs(59));
        assert!(failures.is_dead(now + Duration::from_secs(59)));
        assert!(!failures.is_dead(now + Duration::from_mins(1)));
    }

    #[test]
    fn failures_of_single_items_are_forgotten_with_the_next_success() {
        let (mut failures, now) = (failures(), start_of_time());
        for _ in 0..10 {
            failures.failed(now);
            failures.failed(now);
            failures.blame_item();
            assert!(!failures.is_dead(now));
            failures.succeeded();
        }
    }

    #[test]
    fn blamed_items_without_a_success_are_death_in_the_end() {
        let (mut failures, now) = (failures(), start_of_time());
        for _ in 0..7 {
            failures.failed(now);
            failures.failed(now);
            failures.blame_item();
        }
        assert!(failures.is_dead(now));
    }
}
