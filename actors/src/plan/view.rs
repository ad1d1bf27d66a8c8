//! What the scheduler publishes, drawn from its state.

use std::collections::BTreeSet;

use tokio::time::Instant;

use crate::engine::Segment;
use crate::plan::queue::Lease;
use crate::plan::running::Running;
use crate::plan::scheduler::SchedulerCore;
use crate::plan::segments::Held;
use crate::snapshot::{EngineState, LoadView};

impl<S: Segment> SchedulerCore<S> {
    pub(crate) fn view(&self) -> LoadView {
        LoadView {
            engine: self.engine_state(),
            epoch: self.epoch,
            last_progress: Instant::from_std(self.last_progress),
            reads_waiting: self.queue.waiting(),
            reads_in_flight: self.running.as_ref().map_or(0, Running::reads),
            tokens_waiting: self.tokens_waiting(),
            decisions_open: self.decisions.len(),
            wants_waiting: self.queue.groups().filter(|(_, group)| group.want.is_some()).count(),
            steps: self.steps,
            tokens_per_second: self.pace.tokens_per_second(),
            totals: self.totals,
        }
    }

    fn engine_state(&self) -> EngineState {
        match (&self.dead, &self.running) {
            (Some(why), _) => EngineState::Dead(why.clone()),
            (None, Some(_)) => EngineState::Busy,
            (None, None) => EngineState::Ready,
        }
    }

    /// Unique tokens that wait: suffixes, and each segment once, as far as it is not computed.
    fn tokens_waiting(&self) -> u64 {
        let mut seen = BTreeSet::new();
        let working = self.queue.groups().filter(|(_, group)| group.has_work());
        let mut tokens = self.queue.suffix_tokens();
        for (_, group) in working {
            let is_leased = group.lease == Lease::Granted;
            for segment in group.path.iter().filter(|segment| seen.insert(segment.key)) {
                let held = self.segments.get(segment.key).filter(|_| is_leased);
                tokens += u64::from(held.map_or(segment.len(), Held::remaining));
            }
        }
        tokens
    }
}
