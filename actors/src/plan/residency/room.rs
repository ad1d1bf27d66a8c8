//! Room in the ledger: what may be evicted, in which order, and what moves into the budget.

use crate::engine::Segment;
use crate::plan::path::PathSegment;
use crate::plan::residency::block::Block;
use crate::plan::residency::queues::{Class, Place};
use crate::plan::residency::{DropReason, Residency};
use crate::read::SegmentKey;

/// Position at which attention makes a token twice as dear as one at position 0: it takes
/// `4 * layers * heads * head_dim` operations a position, all else about twice the weights. 17,000
/// for a model of 1.5 billion weights, 4,000 for one of 135 million; this is between them.
const ATTENTION_PARITY_TOKENS: u32 = 8_192;

impl<S: Segment> Residency<S> {
    /// Whether `bytes` more would fit if all were evicted that may be, but `spared` and what lies
    /// before it.
    pub(super) fn could_fit(&self, bytes: u64, spared: Option<SegmentKey>) -> bool {
        let (excess, idle) = (self.excess(bytes), self.bytes.used - self.bytes.locked);
        excess == 0 || excess <= idle - self.idle_before(spared, |_| true)
    }

    /// The same if nothing protected were evicted.
    pub(super) fn could_fit_unprotected(&self, bytes: u64, spared: Option<SegmentKey>) -> bool {
        let idle = self.bytes.used - self.bytes.locked - self.bytes.protected_idle;
        let is_probation = |block: &Block<S>| block.class == Class::Probation;
        let excess = self.excess(bytes);
        excess == 0 || excess <= idle - self.idle_before(spared, is_probation)
    }

    /// What has to be evicted for `bytes` more.
    fn excess(&self, bytes: u64) -> u64 {
        (self.bytes.used + self.bytes.reserved + bytes).saturating_sub(self.budget)
    }

    /// Bytes of a piece and of what lies before it, where nothing locks it and `counts` says so.
    fn idle_before(&self, end: Option<SegmentKey>, counts: impl Fn(&Block<S>) -> bool) -> u64 {
        let blocks = self.up_from(end).map_while(|key| self.blocks.get(&key));
        let idle = blocks.take_while(|block| block.locks == 0);
        idle.filter(|block| counts(block)).map(|block| block.bytes).sum()
    }

    /// Evicts until `bytes` more fit; evicts nothing if that cannot be reached.
    pub(super) fn make_room(&mut self, bytes: u64) -> bool {
        if !self.could_fit(bytes, None) {
            return false;
        }
        while self.bytes.used + self.bytes.reserved + bytes > self.budget {
            let Some(victim) = self.victim() else { return false };
            self.remove(victim, DropReason::Room);
        }
        true
    }

    /// The block to evict next: among the oldest, the one whose loss costs least for its bytes.
    ///
    /// What is older than the victim is passed over, which counts against it, so that nothing stays
    /// for its cost alone.
    fn victim(&mut self) -> Option<SegmentKey> {
        let candidates = self.queues.candidates();
        self.least_of(&candidates)
    }

    /// The one of these, the oldest first, whose loss costs least for its bytes.
    pub(super) fn least_of(&mut self, candidates: &[SegmentKey]) -> Option<SegmentKey> {
        let worth = |key: &SegmentKey| self.blocks.get(key).map_or(0.0, worth_of);
        let ranked = candidates.iter().enumerate();
        let least = ranked.min_by(|(_, one), (_, other)| worth(one).total_cmp(&worth(other)));
        let (rank, victim) = least?;
        for key in &candidates[..rank] {
            if let Some(block) = self.blocks.get_mut(key) {
                block.passed += 1;
            }
        }
        Some(*victim)
    }

    /// Moves the oldest protected blocks into probation until the rest is within its share.
    pub(super) fn rebalance(&mut self) {
        let protected_max = self.config.protected_bytes();
        while self.bytes.protected > protected_max {
            let Some(key) = self.queues.pop_protected() else { return };
            if let Some(block) = self.blocks.get_mut(&key) {
                block.class = Class::Probation;
                self.bytes.protected -= block.bytes;
                self.bytes.protected_idle -= block.bytes;
                self.owners.remove(block.owner, key);
            }
            self.enqueue(key, Place::Newest);
        }
    }

    /// Moves a block that ran beyond the budget into it, if there is room; nothing locks it.
    pub(super) fn adopt(&mut self, key: SegmentKey) -> bool {
        let bytes = self.blocks.get(&key).map_or(0, |block| block.bytes);
        if !self.make_room(bytes) {
            return false;
        }
        if let Some(block) = self.blocks.get_mut(&key) {
            block.overflow = false;
            self.bytes.overflow -= bytes;
            self.bytes.used += bytes;
            self.owners.keep(block.owner, bytes);
        }
        true
    }

    /// Moves what a complete path has beyond the budget into it, if there is room for all of it.
    pub(super) fn move_into_budget(&mut self, path: &[PathSegment], end: SegmentKey) -> bool {
        let beyond: Vec<_> =
            self.up_from(Some(end)).filter(|key| self.is_beyond_budget(Some(*key))).collect();
        let bytes: u64 = beyond.iter().map(|key| self.blocks[key].bytes).sum();
        if !self.make_room(bytes) {
            return false;
        }
        for key in beyond {
            if let Some(block) = self.blocks.get_mut(&key) {
                // The lease that runs beyond the budget locks it.
                block.overflow = false;
            }
        }
        self.bytes.overflow -= bytes;
        self.bytes.used += bytes;
        self.bytes.locked += bytes;
        for segment in path {
            let lease = self.leases.get_mut(&segment.key);
            if let Some(lease) = lease.filter(|lease| lease.done == lease.segment.len()) {
                lease.overflow = false;
            }
        }
        if self.overflow_state == path.last().map(|segment| segment.key) {
            self.overflow_state = None;
        }
        true
    }

    pub(super) fn is_beyond_budget(&self, key: Option<SegmentKey>) -> bool {
        key.and_then(|key| self.blocks.get(&key)).is_some_and(|block| block.overflow)
    }
}

/// What a byte of a block is worth: the cost of computing its tokens again, attention's share grown
/// with their position, times its uses; less for each time that it was passed over.
fn worth_of<S: Segment>(block: &Block<S>) -> f64 {
    let position = f64::from(block.start + block.part.tokens() / 2);
    let cost =
        f64::from(block.part.tokens()) * (1.0 + position / f64::from(ATTENTION_PARITY_TOKENS));
    let uses = f64::from(block.hits) + 1.0;
    cost * uses / (block.bytes.max(1) as f64 * (f64::from(block.passed) + 1.0))
}
