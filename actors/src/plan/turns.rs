//! Turns out of the usual order, so that nothing that was let in is left behind.
//!
//! The usual order puts the least work first and the urgent lane ahead of all others; under a load
//! that never ends it would keep long states and low lanes waiting until their time is over. So a lane
//! in which something has waited for a good part of its limit goes by age in every other step, and at
//! every so many steps the lane that has waited longest, by its limit, comes ahead of the more urgent
//! ones. The idle lane has no such turn; what waits there is raised into the batch lane in time.

use std::time::{Duration, Instant};

use crate::engine::Segment;
use crate::plan::draft::Turn;
use crate::plan::scheduler::SchedulerCore;
use crate::read::Lane;

impl<S: Segment> SchedulerCore<S> {
    /// The next step's turn.
    pub(super) fn turn(&self, now: Instant) -> Turn {
        let waits = Lane::ALL.map(|lane| self.longest_wait(lane, now));
        let is_long = |lane: Lane| waits[lane as usize] >= self.patience[lane as usize];
        let first = self.first(waits).filter(|lane| is_long(*lane));
        let is_second = self.next_step % 2 == 1;
        let by_age = Lane::ALL.map(|lane| is_long(lane) && (is_second || first == Some(lane)));
        Turn { first, by_age }
    }

    /// The lane that comes ahead of more urgent ones, if it has waited long: at every so many steps the
    /// one that has waited longest by its limit, and past the age cap any, but not twice in a row.
    fn first(&self, waits: [Duration; 4]) -> Option<Lane> {
        let lanes = [Lane::Normal, Lane::Batch].into_iter();
        let of_limit = |lane: &Lane| {
            let (wait, patience) = (waits[*lane as usize], self.patience[*lane as usize]);
            wait.as_secs_f64() / patience.as_secs_f64().max(1e-9)
        };
        let lane = lanes.max_by(|a, b| of_limit(a).total_cmp(&of_limit(b)))?;
        let is_turn = self.next_step % self.order.oldest_every == self.order.oldest_every - 1;
        let is_over = waits[lane as usize] >= self.order.age_max;
        (!self.led && (is_turn || is_over)).then_some(lane)
    }

    fn longest_wait(&self, lane: Lane, now: Instant) -> Duration {
        let oldest = self.queue.oldest_in(lane);
        oldest.map_or(Duration::ZERO, |admitted| now.saturating_duration_since(admitted))
    }
}
