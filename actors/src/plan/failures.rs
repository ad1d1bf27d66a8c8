//! When failing steps mean that the engine is dead.
//!
//! A step that failed is an open case against its items, which run once more, alone. The one that
//! fails alone as well is to blame. If all succeed alone, the engine is. An engine that gives nothing
//! at all, a few times in a row, is asked for something that no request has a part in (a probe) before
//! it is given up: a request that spoils every step must not end the server.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::plan::running::{Running, RunningRow};
use crate::read::SegmentKey;

/// Most failed steps whose items are still to be tried alone; the oldest is forgotten for a newer one.
const OPEN_MAX: usize = 1_024;

/// Something in a step that may be why it failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Suspect {
    /// A piece of this segment.
    Chunk(SegmentKey),
    /// A read of this state, by its suffix and labels.
    Row(SegmentKey, Arc<[u32]>, Arc<[u32]>),
}

impl Suspect {
    /// A row of a step.
    pub(crate) fn row(running: &RunningRow) -> Self {
        let spec = &running.row.spec;
        Self::Row(running.group, Arc::clone(&spec.suffix), Arc::clone(&spec.labels))
    }

    /// All items of a step.
    pub(crate) fn all_of(running: &Running) -> BTreeSet<Self> {
        let chunks = running.chunks.iter().map(|chunk| Self::Chunk(chunk.key));
        chunks.chain(running.rows.iter().map(Self::row)).collect()
    }
}

/// What the recent failures say of the engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It works, as far as is known.
    Sound,
    /// So many steps in a row gave nothing: a probe has to tell.
    Doubtful(usize),
    /// So many steps failed for no item's fault.
    Dead(usize),
}

/// The recent failures.
#[derive(Debug)]
pub(crate) struct Failures {
    max: usize,
    window: Duration,
    /// Steps whose items are still to be tried alone, all or some, by when they failed.
    open: VecDeque<(Instant, BTreeSet<Suspect>)>,
    /// When steps failed whose items all succeeded alone.
    engines: VecDeque<Instant>,
    /// When steps failed since the last one that gave something.
    in_a_row: VecDeque<Instant>,
}

impl Failures {
    /// * `max`: how many failures are borne within `window`.
    pub(crate) fn new(max: usize, window: Duration) -> Self {
        let (open, engines, in_a_row) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Self { max, window, open, engines, in_a_row }
    }

    pub(crate) fn window(&self) -> Duration {
        self.window
    }

    /// A step failed whose items get another try.
    pub(crate) fn failed(&mut self, suspects: BTreeSet<Suspect>, now: Instant) {
        if self.open.len() == OPEN_MAX {
            self.open.pop_front();
        }
        self.open.push_back((now, suspects));
        self.in_a_row.push_back(now);
    }

    /// An item failed once more, alone: it is to blame for every step that failed with it.
    pub(crate) fn blamed(&mut self, item: &Suspect, now: Instant) {
        self.open.retain(|(_, suspects)| !suspects.contains(item));
        self.in_a_row.push_back(now);
    }

    /// A step succeeded, and no row in it gave anything.
    pub(crate) fn gave_nothing(&mut self, now: Instant) {
        self.in_a_row.push_back(now);
    }

    /// An item succeeded.
    pub(crate) fn cleared(&mut self, item: &Suspect) {
        for (at, suspects) in &mut self.open {
            if suspects.remove(item) && suspects.is_empty() {
                self.engines.push_back(*at);
            }
        }
        self.open.retain(|(_, suspects)| !suspects.is_empty());
    }

    /// Whether anything is still to be cleared.
    pub(crate) fn has_suspects(&self) -> bool {
        !self.open.is_empty()
    }

    /// A step gave something.
    pub(crate) fn succeeded(&mut self) {
        self.in_a_row.clear();
    }

    /// What all this says at `now`.
    pub(crate) fn verdict(&mut self, now: Instant) -> Verdict {
        let window = self.window;
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < window;
        self.open.retain(|(at, _)| is_recent(at));
        self.engines.retain(is_recent);
        self.in_a_row.retain(is_recent);
        let (engines, in_a_row) = (self.engines.len(), self.in_a_row.len());
        if engines > self.max {
            Verdict::Dead(engines)
        } else if in_a_row > self.max {
            Verdict::Doubtful(in_a_row)
        } else {
            Verdict::Sound
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::fixture::start_of_time;

    fn failures() -> Failures {
        Failures::new(3, Duration::from_mins(1))
    }

    fn item(name: u8) -> Suspect {
        Suspect::Chunk(SegmentKey::root(&[name]))
    }

    fn step(names: &[u8]) -> BTreeSet<Suspect> {
        names.iter().map(|name| item(*name)).collect()
    }

    #[test]
    fn more_than_three_failures_in_a_minute_that_no_item_caused_are_death() {
        let (mut failures, start) = (failures(), start_of_time());
        for second in 0..4 {
            let now = start + Duration::from_secs(second);
            assert_eq!(failures.verdict(now), Verdict::Sound);
            failures.failed(step(&[1, 2]), now);
            failures.cleared(&item(1));
            failures.succeeded();
            assert_eq!(failures.verdict(now), Verdict::Sound, "the other one may be to blame");
            failures.cleared(&item(2));
        }
        assert_eq!(failures.verdict(start + Duration::from_secs(59)), Verdict::Dead(4));
        assert_eq!(failures.verdict(start + Duration::from_mins(1)), Verdict::Sound);
    }

    #[test]
    fn a_step_that_one_item_spoilt_is_never_the_engines_fault() {
        let (mut failures, now) = (failures(), start_of_time());
        for _ in 0..100 {
            failures.failed(step(&[1, 2, 3]), now);
            failures.cleared(&item(1));
            failures.succeeded();
            failures.blamed(&item(2), now);
            failures.cleared(&item(3));
            failures.succeeded();
            assert_eq!(failures.verdict(now), Verdict::Sound);
        }
        assert!(!failures.has_suspects());
    }

    #[test]
    fn items_that_wait_long_for_their_second_try_are_not_the_engines_fault() {
        let (mut failures, now) = (failures(), start_of_time());
        for name in 0..100 {
            failures.failed(step(&[name, 200]), now);
            failures.cleared(&item(200));
            failures.succeeded();
            assert_eq!(failures.verdict(now), Verdict::Sound);
        }
    }

    #[test]
    fn failures_in_a_row_are_doubtful_until_something_succeeds() {
        let (mut failures, now) = (failures(), start_of_time());
        failures.failed(step(&[1]), now);
        failures.blamed(&item(1), now);
        failures.gave_nothing(now);
        assert_eq!(failures.verdict(now), Verdict::Sound);
        failures.failed(step(&[2]), now);
        assert_eq!(failures.verdict(now), Verdict::Doubtful(4));
        failures.succeeded();
        assert_eq!(failures.verdict(now), Verdict::Sound);
    }
}
