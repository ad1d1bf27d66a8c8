//! How reads end other than by an outcome: cancelled, expired, drained, failed together.

use std::time::Instant;

use crate::engine::Segment;
use crate::error::{ReadError, RejectReason, Spent};
use crate::plan::counts::Stage;
use crate::plan::queue::Asker;
use crate::plan::scheduler::{SchedulerCore, SchedulerEffect};
use crate::plan::{DecisionId, ReadId};
use crate::read::{Lane, ReadOutcome, SegmentKey};
use crate::snapshot::DrainReport;

/// How far a drain is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Drain {
    since: Instant,
    done_before: u64,
    pub(super) is_over: bool,
    is_reported: bool,
}

impl<S: Segment> SchedulerCore<S> {
    /// Ends a read.
    pub(super) fn end(&mut self, read: ReadId, lane: Lane, result: Result<ReadOutcome, ReadError>) {
        let totals = &mut self.totals;
        match &result {
            Ok(outcome) => {
                totals.done += 1;
                totals.cached_tokens += u64::from(outcome.cached_tokens);
            }
            Err(ReadError::Expired { .. }) => totals.expired += 1,
            Err(ReadError::Cancelled) => totals.cancelled += 1,
            Err(ReadError::Draining) => totals.drained += 1,
            Err(ReadError::Rejected(RejectReason::Displaced { .. })) => totals.displaced += 1,
            Err(ReadError::Rejected(_) | ReadError::Engine(_) | ReadError::Unavailable) => {
                totals.failed += 1;
            }
        }
        self.charges.remove(&read);
        self.effects.push(SchedulerEffect::Reply { read, lane, result });
    }

    /// Cancels what waits of a decision; what runs is let finish, its result dropped.
    pub(super) fn cancel(&mut self, decision: DecisionId) {
        for asker in self.take_askers(decision) {
            self.counts.cancelled[Stage::of(&asker) as usize] += 1;
            self.end(asker.read, asker.place.0, Err(ReadError::Cancelled));
        }
    }

    /// Takes a decision's reads out of the queue and of the running step.
    pub(super) fn take_askers(&mut self, decision: DecisionId) -> Vec<Asker> {
        let Some(key) = self.decisions.get(&decision).map(|entry| entry.key) else {
            return Vec::new();
        };
        let mut askers = self.queue.take_decision(key, decision);
        if let Some(running) = &mut self.running {
            let (taken, abandoned) = running.take_decision(decision);
            let step = running.step;
            askers.extend(taken);
            let told = abandoned.into_iter().map(|row| SchedulerEffect::Abandon { step, row });
            self.effects.extend(told);
        }
        askers
    }

    /// When a decision next expires.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    pub(super) fn expire(&mut self, now: Instant) {
        while let Some((deadline, decision)) = self.deadlines.first().copied() {
            if deadline > now {
                return;
            }
            self.deadlines.pop_first();
            self.expire_decision(decision, now);
        }
    }

    fn expire_decision(&mut self, decision: DecisionId, now: Instant) {
        let Some(entry) = self.decisions.get_mut(&decision) else { return };
        entry.is_expired = true;
        let key = entry.key;
        for asker in self.take_askers(decision) {
            let expired = ReadError::Expired {
                waited: now.saturating_duration_since(asker.admitted),
                spent: Some(spent(&asker, now)),
            };
            self.counts.expired[Stage::of(&asker) as usize] += 1;
            self.end(asker.read, asker.place.0, Err(expired));
        }
        // What runs is let finish, its result dropped; the hold on the state ends with the step.
        if let Some(group) = self.queue.group_mut(key) {
            group.decisions.remove(&decision);
        }
        self.release_if_unused(key);
    }

    pub(super) fn begin_drain(&mut self, now: Instant) {
        if self.drain.is_some() {
            return;
        }
        // What is wanted still, somebody waits for: the cache has given up the rest.
        let done_before = self.totals.done;
        self.drain = Some(Drain { since: now, done_before, is_over: false, is_reported: false });
    }

    pub(super) fn check_drain(&mut self, now: Instant) {
        let Some(mut drain) = self.drain.filter(|drain| !drain.is_reported) else { return };
        let elapsed = now.saturating_duration_since(drain.since);
        if elapsed >= self.drain_timeout {
            drain.is_over = true;
            // Every time: a step that fails meanwhile puts its rows back.
            self.fail_waiting(&ReadError::Draining);
        }
        let is_idle = self.decisions.is_empty() && self.queue.wants() == 0;
        let is_done = is_idle || drain.is_over;
        if is_done && self.running.is_none() {
            drain.is_reported = true;
            drain.is_over = true;
            let finished = self.totals.done - drain.done_before;
            let failed = self.totals.drained;
            let report = DrainReport { finished, failed, elapsed };
            self.effects.push(SchedulerEffect::Drained(report));
        }
        self.drain = Some(drain);
    }

    /// Ends everything that waits.
    pub(super) fn fail_waiting(&mut self, error: &ReadError) {
        let keys: Vec<_> = self.queue.groups().map(|(key, _)| key).collect();
        for key in keys {
            self.fail_group(key, error);
        }
    }

    /// Ends everything that waits on one state.
    pub(super) fn fail_group(&mut self, key: SegmentKey, error: &ReadError) {
        for row in self.queue.take_all(key) {
            for asker in row.askers {
                self.end(asker.read, asker.place.0, Err(error.clone()));
            }
        }
        self.end_want(key, Err(error.clone()));
        self.release_if_unused(key);
    }
}

/// Where the time of a read went that waits still.
fn spent(asker: &Asker, now: Instant) -> Spent {
    let (started, ready) = (asker.started.unwrap_or(now), asker.ready.unwrap_or(now));
    Spent {
        queue: started.saturating_duration_since(asker.admitted),
        state: ready.saturating_duration_since(started),
        engine: now.saturating_duration_since(ready),
    }
}
