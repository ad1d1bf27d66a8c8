//! What must hold after every event of a law.

use super::*;
use crate::plan::draft::{Moment, Turn, form};
use crate::plan::queue::Lease;

impl World {
    pub(super) fn check(&mut self) {
        let view = self.scheduler.view();
        let open = (view.waiting() + view.reads_in_flight) as u64;
        assert_eq!(view.totals.admitted, view.totals.ended() + open, "a read is lost");
        assert!(self.answered.values().all(|count| *count == 1), "a read is answered twice");
        self.check_work_conservation();
        self.check_order();
        self.check_queue_changes();
        self.check_details();
    }

    /// When all messages are delivered and nothing runs, nothing that could run is left.
    fn check_work_conservation(&self) {
        let quiet = self.to_cache.is_empty() && self.to_scheduler.is_empty();
        if !quiet || self.step.is_some() || self.scheduler.running.is_some() {
            return;
        }
        let mut groups = self.scheduler.queue.groups();
        let idle_ready =
            groups.find(|(_, group)| group.has_work() && group.lease == Lease::Granted);
        assert!(idle_ready.is_none(), "{idle_ready:?} is ready and nothing runs");
    }

    /// The best group that could run is always in the step that would be formed.
    fn check_order(&self) {
        let (queue, segments) = (&self.scheduler.queue, &self.scheduler.segments);
        if self.scheduler.running.is_some() {
            return;
        }
        let moment = Moment { generation: 0, is_busy: true, turn: Turn::default() };
        let draft = form(queue, segments, LIMITS, moment);
        let is_granted = |key| queue.group(key).is_some_and(|group| group.lease == Lease::Granted);
        let lanes = Lane::ALL.into_iter().filter(|lane| *lane != Lane::Idle);
        let best =
            lanes.flat_map(|lane| queue.order_in(lane, false)).find(|(_, key)| is_granted(*key));
        if let Some((_, best)) = best {
            let first_chunk = draft.chunks.first().map(|chunk| chunk.group);
            let first_row = draft.rows.first().map(|(key, _)| *key);
            assert!(first_chunk == Some(best) || first_row == Some(best), "{draft:?}");
            let idle = draft.chunks.iter().filter(|chunk| chunk.lane == Lane::Idle).count();
            assert_eq!(idle, 0, "idle work beside other work");
        }
    }

    /// What the queue says of each tenant's reads adds up to what waits.
    fn check_queue_changes(&mut self) {
        for (tenant, change) in self.scheduler.take_queue_changes() {
            let waiting = self.queued.entry(tenant).or_insert(0);
            *waiting = waiting.checked_add_signed(change).expect("more left than came");
        }
        let waiting = self.scheduler.view().waiting();
        assert_eq!(self.queued.values().sum::<usize>(), waiting, "{:?}", self.queued);
    }

    /// What is shown to those who look adds up to what is published.
    fn check_details(&self) {
        let (view, queue) = (self.scheduler.view(), &self.scheduler.queue);
        let details = self.scheduler.details(start_of_time());
        let named: usize = details.waiting.iter().flat_map(|lane| &lane.most).map(|of| of.1).sum();
        assert_eq!(named, view.waiting() + queue.wants(), "{details:?}");
        assert_eq!(details.step.is_some(), self.scheduler.running.is_some());
        let parts = details.step.map(|step| step.parts).unwrap_or_default();
        let reads: usize = parts.iter().map(|part| part.reads).sum();
        assert_eq!(reads, view.reads_in_flight, "{parts:?}");
        let tokens: u64 = parts.iter().map(|part| part.row_tokens + part.state_tokens).sum();
        let is_probe = self.scheduler.running.as_ref().is_some_and(|running| running.is_probe);
        assert!(is_probe || tokens == u64::from(view.step_tokens), "{parts:?}");
    }

    /// No tenant keeps more than it may, and what is known of tenants is the sum over their blocks.
    pub(super) fn check_residency(&self) {
        let view = self.cache.view();
        assert!(view.used + view.reserved <= view.budget, "{view:?}");
        assert_eq!(view.duplicate_tokens, 0);
        self.cache.residency.check_owners();
        let held = self.cache.details();
        let bytes: u64 = held.runs.iter().map(|run| run.bytes).sum();
        assert_eq!(held.runs_left_out, 0, "the laws' worlds are small");
        assert!((view.used..=view.used + view.overflow).contains(&bytes), "{held:?}");
        let pinned = held.runs.iter().filter(|run| run.pins > 0);
        assert_eq!(pinned.map(|run| run.bytes).sum::<u64>(), view.pinned, "{held:?}");
    }
}
