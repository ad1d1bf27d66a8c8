//! Leases of groups on their states: asked for, answered, given back.

use std::time::Instant;

use crate::engine::Segment;
use crate::plan::queue::{Group, Lease};
use crate::plan::residency::{LeaseReply, Reach};
use crate::plan::scheduler::{SchedulerCore, SchedulerEffect};
use crate::read::SegmentKey;

impl<S: Segment> SchedulerCore<S> {
    pub(super) fn leased(&mut self, key: SegmentKey, reply: LeaseReply<S>, now: Instant) {
        let Some(group) = self.queue.group_mut(key) else { return };
        let Lease::Asked(counted) = &group.lease else { return };
        let counted = counted.clone();
        self.asked -= 1;
        match reply {
            LeaseReply::Granted(parts) => {
                self.segments.granted(&group.path, &counted, parts);
                let missing = self.segments.remaining(&group.path);
                self.queue.set_lease(key, Lease::Granted);
                self.queue.set_missing(key, missing);
                self.settle_resident(key, now, false);
            }
            LeaseReply::Deferred => {
                self.segments.deferred(&group.path, &counted);
                let generation = self.generation;
                let reach = group.reach;
                self.queue.set_lease(key, Lease::Deferred { generation, reach });
            }
        }
        self.release_if_unused(key);
    }

    /// Gives a group's lease back and forgets the group when nothing needs it.
    pub(super) fn release_if_unused(&mut self, key: SegmentKey) {
        let Some(group) = self.queue.group(key).filter(|group| group.is_unused()) else { return };
        if matches!(group.lease, Lease::Asked(_)) {
            // Its answer will come here again.
            return;
        }
        let Some(group) = self.queue.remove_group(key) else { return };
        if group.lease == Lease::Granted {
            let served = self.segments.released(&group.path);
            self.generation += 1;
            let path = group.path.iter().map(|segment| segment.key).collect();
            self.effects.push(SchedulerEffect::Release { path, served });
        }
    }

    /// Gives back what open decisions hold between two stages, where reads wait and none could run for
    /// want of memory: they would wait for each other. Says whether there was any.
    pub(super) fn give_back_idle_leases(&mut self) -> bool {
        if self.queue.waiting() == [0; 4] {
            return false;
        }
        let is_idle = |group: &Group| !group.has_work() && group.in_step == 0;
        let groups = self.queue.leased().filter(|(_, group)| is_idle(group));
        let idle: Vec<_> = groups.map(|(key, group)| (key, group.path.clone())).collect();
        for (key, path) in &idle {
            let served = self.segments.released(path);
            self.queue.set_lease(*key, Lease::Absent);
            self.generation += 1;
            let path = path.iter().map(|segment| segment.key).collect();
            self.effects.push(SchedulerEffect::Release { path, served });
        }
        !idle.is_empty()
    }

    pub(super) fn ask(&mut self, key: SegmentKey, reach: Reach) {
        let Some(group) = self.queue.group_mut(key) else { return };
        group.reach = reach;
        let (path, owner) = (group.path.clone(), group.owner().cloned());
        let asked = self.segments.asked(&path);
        self.queue.set_lease(key, Lease::Asked(asked));
        self.asked += 1;
        self.effects.push(SchedulerEffect::Lease { key, path, owner, reach });
    }
}
