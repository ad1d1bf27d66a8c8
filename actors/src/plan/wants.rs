//! States that the cache wants, for prewarms and registrations: taken in, given up, told when done.

use crate::engine::{EngineError, Segment};
use crate::error::ReadError;
use crate::plan::path::path_of;
use crate::plan::queue::{Lease, QueuedWant};
use crate::plan::scheduler::{SchedulerCore, SchedulerEffect};
use crate::read::{Lane, Prefix, SegmentKey, TenantId};

impl<S: Segment> SchedulerCore<S> {
    pub(super) fn want(
        &mut self,
        (prefix, missing): (&Prefix, u32),
        tenant: TenantId,
        lane: Lane,
        is_registration: bool,
    ) {
        let key = prefix.state.key;
        let is_over = self.drain.is_some_and(|drain| drain.is_over);
        if self.dead.is_some() || is_over {
            let error = self
                .dead
                .clone()
                .map_or(ReadError::Draining, |why| ReadError::Engine(EngineError::Dead(why)));
            self.effects.push(SchedulerEffect::WantEnded { key, result: Err(error) });
            return;
        }
        let place = self.queue.next_place(lane);
        // A prewarm of a state that is being computed has begun.
        let begins = !is_registration && self.is_computing(key);
        let group = self.queue.group_or_new(path_of(prefix), key, missing);
        let before = group.want.as_ref();
        let (has_started, computed) =
            before.map_or((false, 0), |want| (want.started, want.computed));
        let place = before.map_or(place, |want| (lane, want.place.1));
        let is_resident =
            group.lease == Lease::Granted && self.segments.remaining(&group.path) == 0;
        let started = has_started || begins;
        let want = QueuedWant { place, tenant, is_registration, started, computed };
        self.queue.set_want(key, Some(want));
        if started && !has_started {
            self.effects.push(SchedulerEffect::WantStarted { key });
        }
        if is_resident {
            self.end_want(key, Ok(()));
        }
    }

    pub(super) fn unwant(&mut self, key: SegmentKey) {
        self.queue.set_want(key, None);
        self.release_if_unused(key);
    }

    pub(super) fn end_want(&mut self, key: SegmentKey, result: Result<(), ReadError>) {
        let want = self.queue.group(key).and_then(|group| group.want.as_ref());
        let Some(computed) = want.map(|want| want.computed) else { return };
        self.queue.set_want(key, None);
        let result = result.map(|()| computed);
        self.effects.push(SchedulerEffect::WantEnded { key, result });
    }

    /// Whether the running step has a chunk of the path to `key`.
    pub(super) fn is_computing(&self, key: SegmentKey) -> bool {
        let Some(group) = self.queue.group(key) else { return false };
        let held = group.path.iter().filter_map(|segment| self.segments.get(segment.key));
        group.lease == Lease::Granted && held.into_iter().any(|held| held.in_step)
    }
}
