//! What is held, run by run, for those who look.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;

use crate::engine::Segment;
use crate::plan::residency::Residency;
use crate::plan::residency::block::Block;
use crate::plan::residency::pins::Pin;
use crate::plan::residency::queues::Class;
use crate::read::SegmentKey;
use crate::snapshot::{RUNS_MAX, ResidencyDetails, ResidentRun};

impl<S: Segment> Residency<S> {
    /// What is held, in detail; walks over all of it.
    pub(crate) fn details(&self) -> ResidencyDetails {
        let mut runs = Vec::new();
        for (key, block) in &self.blocks {
            if block.children != 1 {
                self.runs_up_from(*key, &mut runs);
            }
        }
        runs.sort_by_key(|run| Reverse(run.bytes));
        let left_out = runs.get(RUNS_MAX..).unwrap_or_default();
        let (runs_left_out, bytes_left_out) =
            (left_out.len(), left_out.iter().map(|run| run.bytes).sum());
        runs.truncate(RUNS_MAX);
        let ends = self.pin_ends();
        for run in &mut runs {
            let until = ends.get(&run.key).copied();
            let pinned = until.zip(self.ages.now());
            run.pinned_for = pinned.map(|(until, now)| until.saturating_duration_since(now));
        }
        ResidencyDetails { runs, runs_left_out, bytes_left_out }
    }

    /// The runs from a block on which none or several stand up to the next such block.
    fn runs_up_from(&self, tip: SegmentKey, runs: &mut Vec<ResidentRun>) {
        let mut open: Option<(ResidentRun, &Block<S>)> = None;
        for key in self.up_from(Some(tip)) {
            let Some(block) = self.blocks.get(&key) else { break };
            if key != tip && block.children != 1 {
                break;
            }
            match &mut open {
                Some((run, last)) if last.stands_like(block) => {
                    run.start = block.start;
                    run.tokens += block.part.tokens();
                    run.bytes += block.bytes;
                }
                _ => {
                    let next = (self.run_of(key, block), block);
                    runs.extend(open.replace(next).map(|(run, _)| run));
                }
            }
        }
        runs.extend(open.map(|(run, _)| run));
    }

    fn run_of(&self, key: SegmentKey, block: &Block<S>) -> ResidentRun {
        let (age, idle) = self.ages.of(block.stamp);
        ResidentRun {
            key,
            tenant: self.owners.tenant(block.owner).cloned(),
            start: block.start,
            tokens: block.part.tokens(),
            bytes: block.bytes,
            branches: block.children,
            leases: block.locks - block.pins,
            pins: block.pins,
            pinned_for: None,
            is_protected: block.class == Class::Protected,
            hits: block.hits,
            age,
            idle,
        }
    }

    /// When the pins end whose last block this is.
    fn pin_ends(&self) -> BTreeMap<SegmentKey, Instant> {
        let mut ends = BTreeMap::new();
        for (end, until) in self.pins.values().map(Pin::ends) {
            let latest = ends.entry(end).or_insert(until);
            *latest = until.max(*latest);
        }
        ends
    }
}

impl<S> Block<S> {
    /// Whether two blocks, one after the other, differ in nothing that details tell.
    fn stands_like(&self, other: &Self) -> bool {
        let told = |block: &Self| {
            (block.owner, block.is_head, block.locks, block.pins, block.class, block.overflow)
        };
        told(self) == told(other)
    }
}
