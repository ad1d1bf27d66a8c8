//! Ages of blocks, for those who size the budget: how long one lived, lay idle before it was evicted,
//! and after what time a state was used again.

use std::time::{Duration, Instant};

use crate::engine::Segment;
use crate::plan::residency::{Found, Residency};

/// A time that is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Age {
    /// A block was evicted for room.
    Evicted {
        /// Since it was computed.
        lifetime: Duration,
        /// Since it was last used.
        idle: Duration,
    },
    /// A state was used again.
    Reused {
        /// Since its last block was last used.
        gap: Duration,
    },
}

/// When a block came and was last used; `None` where the ledger was never told the time.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamp {
    born: Option<Instant>,
    pub(super) used: Option<Instant>,
}

/// The time of the event that is being taken in, and the ages that it told of.
#[derive(Debug, Default)]
pub(super) struct Ages {
    now: Option<Instant>,
    told: Vec<Age>,
}

impl Ages {
    pub(super) fn now(&self) -> Option<Instant> {
        self.now
    }

    /// The stamp of a block that comes now.
    pub(super) fn stamp(&self) -> Stamp {
        Stamp { born: self.now, used: self.now }
    }

    pub(super) fn evicted(&mut self, stamp: Stamp) {
        if let (Some(lifetime), Some(idle)) = (self.since(stamp.born), self.since(stamp.used)) {
            self.told.push(Age::Evicted { lifetime, idle });
        }
    }

    /// Since when a block is there, and since when it was last used.
    pub(super) fn of(&self, stamp: Stamp) -> (Option<Duration>, Option<Duration>) {
        (self.since(stamp.born), self.since(stamp.used))
    }

    fn since(&self, then: Option<Instant>) -> Option<Duration> {
        Some(self.now?.saturating_duration_since(then?))
    }
}

impl<S: Segment> Residency<S> {
    /// Says what time it is; what happens until this is called again happens then.
    pub(crate) fn set_now(&mut self, now: Instant) {
        self.ages.now = Some(now);
    }

    /// The ages that were told of since the last call.
    pub(crate) fn take_ages(&mut self) -> Vec<Age> {
        std::mem::take(&mut self.ages.told)
    }

    /// Tells after what time a state, the last part of a path that is leased, is used again.
    pub(super) fn note_reuse(&mut self, state: Option<&Found>) {
        let found = state.filter(|state| !state.is_leased && state.tokens > 0);
        let block = found.and_then(|state| self.blocks.get(&state.end?));
        let gap = block.and_then(|block| self.ages.since(block.stamp.used));
        self.ages.told.extend(gap.map(|gap| Age::Reused { gap }));
    }
}

#[cfg(test)]
mod tests {
    use crate::config::CacheConfig;
    use crate::plan::fixture::{caps, prefix, start_of_time};
    use crate::plan::path::path_of;
    use crate::plan::residency::{Computed, LeaseReply};
    use crate::plan::segments::Served;

    use super::*;
    use crate::plan::fixture::Run;
    use crate::plan::residency::Reach;

    const READ: Served = Served { foreground: 1, background: 0 };

    /// Leases a state of 118 tokens behind the head of 10, computes what is missing and gives it back.
    fn use_state(ledger: &mut Residency<Run>, name: u32, now: Instant) {
        ledger.set_now(now);
        let path = path_of(&prefix(name, 118));
        let LeaseReply::Granted(parts) = ledger.lease((&path, None), Reach::BUDGET, now) else {
            panic!("no room")
        };
        for (segment, parts) in path.iter().zip(parts) {
            let from: u32 = parts.iter().map(Segment::tokens).sum();
            if from < segment.len() {
                let run = Run { start: segment.start + from, tokens: segment.len() - from };
                let (key, is_adopted, epoch) = (segment.key, false, 3);
                ledger.commit(Computed { key, from, segment: run, is_adopted, epoch });
            }
        }
        let keys: Vec<_> = path.iter().map(|segment| segment.key).collect();
        ledger.release(&keys, READ);
    }

    #[test]
    fn ages_are_told_of_states_used_again_and_of_blocks_evicted() {
        let config = CacheConfig { kv_bytes: 256, ..CacheConfig::default() };
        let mut ledger = Residency::new(caps(), config, true, 3);
        let (now, second) = (start_of_time(), Duration::from_secs(1));
        use_state(&mut ledger, 1, now);
        assert_eq!(ledger.take_ages(), [], "nothing was there");
        use_state(&mut ledger, 1, now + 3 * second);
        assert_eq!(ledger.take_ages(), [Age::Reused { gap: 3 * second }]);
        use_state(&mut ledger, 2, now + 10 * second);
        let evicted = Age::Evicted { lifetime: 10 * second, idle: 7 * second };
        let ages = ledger.take_ages();
        assert!(!ages.is_empty() && ages.iter().all(|age| *age == evicted), "{ages:?}");
    }

    #[test]
    fn a_ledger_without_a_clock_tells_nothing() {
        let mut ledger = Residency::<Run>::new(caps(), CacheConfig::default(), true, 3);
        let path = path_of(&prefix(1, 118));
        ledger.lease((&path, None), Reach::BUDGET, start_of_time());
        assert_eq!(ledger.take_ages(), []);
    }
}
