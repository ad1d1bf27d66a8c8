//! Displacement: who leaves a full queue for more urgent work.
//!
//! Only a decision none of whose reads has run leaves, and it leaves whole: nothing that was computed
//! for it is lost, and its caller can send it again as it is. The newest of the lowest lane goes
//! first.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::Segment;
use crate::error::{ReadError, RejectReason};
use crate::plan::DecisionId;
use crate::plan::admit::{Backlog, drain_time};
use crate::plan::running::Running;
use crate::plan::scheduler::SchedulerCore;
use crate::read::Lane;

/// Decisions that wait and none of whose reads has run.
#[derive(Debug, Default)]
pub(super) struct Untouched {
    /// With the number of their reads.
    decisions: BTreeMap<(Lane, DecisionId), usize>,
    /// Those that had a read in a step; they stay until they are over.
    touched: BTreeSet<DecisionId>,
    reads: [usize; 4],
}

impl Untouched {
    /// Reads of such decisions, by lane.
    pub(super) fn reads(&self) -> [usize; 4] {
        self.reads
    }

    /// One more read of a decision waits.
    pub(super) fn submitted(&mut self, lane: Lane, decision: DecisionId) {
        if !self.touched.contains(&decision) {
            *self.decisions.entry((lane, decision)).or_insert(0) += 1;
            self.reads[lane as usize] += 1;
        }
    }

    /// A read of a decision runs.
    pub(super) fn runs(&mut self, lane: Lane, decision: DecisionId) {
        if self.leave(lane, decision) {
            self.touched.insert(decision);
        }
    }

    /// A decision is over.
    pub(super) fn over(&mut self, lane: Lane, decision: DecisionId) {
        self.leave(lane, decision);
        self.touched.remove(&decision);
    }

    fn leave(&mut self, lane: Lane, decision: DecisionId) -> bool {
        let reads = self.decisions.remove(&(lane, decision));
        self.reads[lane as usize] -= reads.unwrap_or(0);
        reads.is_some()
    }

    /// The newest decision of the lowest lane below `lane`.
    fn last_below(&self, lane: Lane) -> Option<(Lane, DecisionId)> {
        let (last, _) = self.decisions.last_key_value()?;
        (last.0 > lane).then_some(*last)
    }
}

impl<S: Segment> SchedulerCore<S> {
    /// Lets decisions below `lane` leave until `reads` more fit into the queue, or none is left.
    pub(super) fn make_room(&mut self, lane: Lane, reads: usize) {
        let limit = self.reads_max.saturating_sub(reads);
        let is_full = |core: &Self| core.queue.waiting().iter().sum::<usize>() > limit;
        while reads > 0 && is_full(self) {
            let Some((lane, decision)) = self.untouched.last_below(lane) else { return };
            self.displace(lane, decision);
        }
    }

    fn displace(&mut self, lane: Lane, decision: DecisionId) {
        self.untouched.over(lane, decision);
        self.counts.displaced += 1;
        let waiting = Backlog {
            tokens: self.queue.tokens(),
            tokens_per_second: self.pace.tokens_per_second(),
            ..Backlog::default()
        };
        let retry_after = drain_time(waiting, Lane::Idle);
        for asker in self.take_askers(decision) {
            let displaced = ReadError::Rejected(RejectReason::Displaced { retry_after });
            self.end(asker.read, asker.place.0, Err(displaced));
        }
    }

    /// Notes whose reads a step has.
    pub(super) fn note_touched(&mut self, running: &Running) {
        let askers = running.rows.iter().flat_map(|row| &row.row.askers);
        for asker in askers {
            self.untouched.runs(asker.place.0, asker.read.decision);
        }
    }
}
