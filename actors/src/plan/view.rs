//! What the scheduler publishes, drawn from its state.

use std::time::{Duration, Instant};

use crate::engine::Segment;
use crate::plan::queue::{Group, Lease};
use crate::plan::running::Running;
use crate::plan::scheduler::SchedulerCore;
use crate::read::Lane;
use crate::snapshot::{EngineState, LoadView, StateCounts};

/// How often states are counted, which looks at each of them.
const STATES_EVERY: Duration = Duration::from_millis(500);

impl<S: Segment> SchedulerCore<S> {
    pub(crate) fn view(&self) -> LoadView {
        LoadView {
            engine: self.engine_state(),
            epoch: self.epoch,
            last_progress: tokio::time::Instant::from_std(self.last_progress),
            stuck_since: self.stuck_since().map(tokio::time::Instant::from_std),
            reads_waiting: self.queue.waiting(),
            reads_displaceable: self.untouched.reads(),
            reads_in_flight: self.running.as_ref().map_or(0, Running::reads),
            tokens_waiting: self.queue.tokens(),
            oldest: Lane::ALL.map(|lane| self.oldest_in(lane).map(tokio::time::Instant::from_std)),
            states: self.states,
            step_chunks: self.running.as_ref().map_or(0, |running| running.chunks.len()),
            step_tokens: self.running.as_ref().map_or(0, |running| running.tokens),
            step_lanes: self.running.as_ref().map_or([0; 4], Running::tokens_by_lane),
            shares: self.shares.by_lane(),
            gap_tokens: self.queue.gap_tokens(),
            decisions_open: self.decisions.len(),
            wants_waiting: self.queue.wants(),
            steps: self.steps,
            tokens_per_second: self.pace.tokens_per_second(),
            totals: self.totals,
        }
    }

    /// When the oldest read that stands in `lane` was admitted.
    fn oldest_in(&self, lane: Lane) -> Option<Instant> {
        let mut groups = self.queue.order_in(lane, true);
        groups.find_map(|(_, key)| self.queue.group(key)?.rows_in(lane).next()?.1.admitted())
    }

    /// Counts the states that something needs, now and then, and at once where none is left.
    pub(super) fn count_states(&mut self, now: Instant) {
        let is_new = now.saturating_duration_since(self.states_at) < STATES_EVERY;
        if self.queue.groups().next().is_none() {
            self.states = StateCounts::default();
        } else if !is_new {
            self.states_at = now;
            self.states = self.states_now();
        }
    }

    fn states_now(&self) -> StateCounts {
        let mut counts = StateCounts::default();
        for (_, group) in self.queue.groups() {
            *self.count_of(group, &mut counts) += 1;
        }
        counts
    }

    /// Where a group's state is counted.
    fn count_of<'c>(&self, group: &Group, counts: &'c mut StateCounts) -> &'c mut usize {
        if group.lease != Lease::Granted {
            return &mut counts.wanted;
        }
        let held = || group.path.iter().filter_map(|segment| self.segments.get(segment.key));
        if held().all(|held| held.remaining() == 0) {
            &mut counts.resident
        } else if held().any(|held| held.in_step) {
            &mut counts.prefilling
        } else if held().any(|held| held.remaining() > 0 && held.done > 0) {
            &mut counts.paused
        } else {
            &mut counts.wanted
        }
    }

    /// Whether a read waits or a step runs.
    pub(super) fn has_reads(&self) -> bool {
        self.running.is_some() || self.queue.waiting().iter().any(|reads| *reads > 0)
    }

    fn stuck_since(&self) -> Option<Instant> {
        self.has_reads().then(|| self.last_progress.max(self.last_idle))
    }

    fn engine_state(&self) -> EngineState {
        match (&self.dead, &self.running) {
            (Some(why), _) => EngineState::Dead(why.clone()),
            (None, Some(_)) => EngineState::Busy,
            (None, None) => EngineState::Ready,
        }
    }
}
