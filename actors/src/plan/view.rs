//! What the scheduler publishes, drawn from its state.

use tokio::time::Instant;

use crate::engine::Segment;
use crate::plan::running::Running;
use crate::plan::scheduler::SchedulerCore;
use crate::snapshot::{EngineState, LoadView};

impl<S: Segment> SchedulerCore<S> {
    pub(crate) fn view(&self) -> LoadView {
        LoadView {
            engine: self.engine_state(),
            epoch: self.epoch,
            last_progress: Instant::from_std(self.last_progress),
            reads_waiting: self.queue.waiting(),
            reads_displaceable: self.untouched.reads(),
            reads_in_flight: self.running.as_ref().map_or(0, Running::reads),
            tokens_waiting: self.queue.tokens(),
            step_tokens: self.running.as_ref().map_or(0, |running| running.tokens),
            shares: self.shares.by_lane(),
            gap_tokens: self.queue.gap_tokens(),
            decisions_open: self.decisions.len(),
            wants_waiting: self.queue.wants(),
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
}
