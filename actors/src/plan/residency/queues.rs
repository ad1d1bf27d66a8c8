//! The two queues of blocks that may be evicted: probation, for what was used once or in the
//! background only, and protected, for what foreground reads used again.
//!
//! A sweep over many states in the batch lane stays in probation and cannot drive out what is
//! protected as long as probation has anything to give.

use std::fmt;

use lru::LruCache;

use crate::read::SegmentKey;

/// Most candidates among which the cheapest to compute again is chosen.
pub(super) const WINDOW_MAX: usize = 8;
/// A window has one candidate for so many that wait: where few do, the oldest goes.
pub(super) const WINDOW_SHARE: usize = 8;

/// In which queue a block waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Probation,
    Protected,
}

/// Where in its queue a block is put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Newest,
    Oldest,
}

/// Blocks that nothing locks and on which none stands, by recency.
pub(super) struct Queues {
    probation: LruCache<SegmentKey, ()>,
    protected: LruCache<SegmentKey, ()>,
}

impl Queues {
    pub(super) fn new() -> Self {
        Self { probation: LruCache::unbounded(), protected: LruCache::unbounded() }
    }

    pub(super) fn push(&mut self, key: SegmentKey, class: Class, place: Place) {
        let queue = match class {
            Class::Probation => &mut self.probation,
            Class::Protected => &mut self.protected,
        };
        queue.put(key, ());
        if place == Place::Oldest {
            queue.demote(&key);
        }
    }

    pub(super) fn remove(&mut self, key: SegmentKey) {
        let queues = [&mut self.probation, &mut self.protected];
        for queue in queues {
            queue.pop(&key);
        }
    }

    /// The oldest blocks, of probation as long as it has any, oldest first.
    pub(super) fn candidates(&self) -> Vec<SegmentKey> {
        let queue = if self.probation.is_empty() { &self.protected } else { &self.probation };
        let window = (queue.len() / WINDOW_SHARE).clamp(1, WINDOW_MAX);
        queue.iter().rev().take(window).map(|(key, ())| *key).collect()
    }

    /// All blocks with their queue, those of each queue oldest first.
    pub(super) fn oldest_first(&self) -> Vec<(SegmentKey, Class)> {
        let of = |queue: &LruCache<SegmentKey, ()>, class| {
            queue.iter().rev().map(|(key, ())| (*key, class)).collect::<Vec<_>>()
        };
        let mut all = of(&self.probation, Class::Probation);
        all.extend(of(&self.protected, Class::Protected));
        all
    }

    /// Takes the oldest protected block out.
    pub(super) fn pop_protected(&mut self) -> Option<SegmentKey> {
        self.protected.pop_lru().map(|(key, ())| key)
    }

    #[cfg(test)]
    pub(super) fn contains(&self, key: SegmentKey, class: Class) -> bool {
        let (own, other) = match class {
            Class::Probation => (&self.probation, &self.protected),
            Class::Protected => (&self.protected, &self.probation),
        };
        assert!(!other.contains(&key), "{key:?} is in the wrong queue");
        own.contains(&key)
    }
}

impl fmt::Debug for Queues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let keys = |queue: &LruCache<SegmentKey, ()>| {
            queue.iter().map(|(key, ())| *key).collect::<Vec<_>>()
        };
        formatter
            .debug_struct("Queues")
            .field("probation", &keys(&self.probation))
            .field("protected", &keys(&self.protected))
            .finish()
    }
}
