//! Blocks of the ledger: how they come, are locked, used and dropped.

use crate::engine::{PAGE_TOKENS, Segment};
use crate::plan::path::PathSegment;
use crate::plan::residency::ages::Stamp;
use crate::plan::residency::owners::Slot;
use crate::plan::residency::queues::{Class, Place};
use crate::plan::residency::{Change, DropReason, Lease, Residency};
use crate::plan::segments::Served;
use crate::read::{SegmentKey, TenantId};

/// Keys and values of at most [`PAGE_TOKENS`] positions: a whole block, or the rest of a segment.
#[derive(Debug)]
pub(super) struct Block<S> {
    /// What lies before it.
    pub(super) parent: Option<SegmentKey>,
    pub(super) children: u32,
    /// Leases and pins that stand on it or on what comes after it.
    pub(super) locks: u32,
    /// Pins among these.
    pub(super) pins: u32,
    /// Whose it is.
    pub(super) owner: Option<Slot>,
    /// Whose pin budget it is counted in.
    pub(super) pinned_by: Option<TenantId>,
    pub(super) part: S,
    /// Absolute position of its first token.
    pub(super) start: u32,
    pub(super) bytes: u64,
    pub(super) is_head: bool,
    /// Stays when its last lock ends.
    pub(super) kept: bool,
    /// Held beyond the budget.
    pub(super) overflow: bool,
    /// Protected once it was used again in the foreground.
    pub(super) class: Class,
    /// Decisions that used it after it was there.
    pub(super) hits: u32,
    /// Evictions that passed it over, though it was older, since it was last used.
    pub(super) passed: u32,
    pub(super) stamp: Stamp,
}

impl<S: Segment> Block<S> {
    /// Absolute position after its last token.
    pub(super) fn end(&self) -> u32 {
        self.start + self.part.tokens()
    }

    /// What it takes of the budget.
    fn bytes_within(&self) -> u64 {
        if self.overflow { 0 } else { self.bytes }
    }

    /// What of it counts as protected.
    fn bytes_protected(&self) -> u64 {
        if self.class == Class::Protected { self.bytes } else { 0 }
    }
}

impl<S: Segment> Residency<S> {
    /// The parts of a segment that are held.
    pub(super) fn parts(&self, segment: &PathSegment) -> Vec<S> {
        let end = self.leases.get(&segment.key).and_then(|lease| lease.end);
        let blocks = self.up_from(end).map_while(|key| self.blocks.get(&key));
        let own = blocks.take_while(|block| block.start >= segment.start);
        let mut parts: Vec<_> = own.map(|block| block.part.clone()).collect();
        parts.reverse();
        parts
    }

    /// `end` and all that lies before it, in this order.
    pub(super) fn up_from(&self, end: Option<SegmentKey>) -> impl Iterator<Item = SegmentKey> {
        std::iter::successors(end, |key| self.blocks.get(key).and_then(|block| block.parent))
    }

    /// Takes in one piece of a leased segment: a new block, or one that another state has.
    pub(super) fn take_piece(
        &mut self,
        key: SegmentKey,
        piece: SegmentKey,
        part: S,
        is_adopted: bool,
    ) {
        let Some(lease) = self.leases.get(&key) else { return };
        let (start, is_first) = (lease.segment.start + lease.done, lease.end.is_none());
        let before = lease.parent.and_then(|parent| self.leases.get(&parent)?.end);
        let (parent, overflow, is_head, owner) =
            (lease.end.or(before), lease.overflow, lease.segment.is_head, &lease.owner);
        let tokens = part.tokens();
        if self.blocks.contains_key(&piece) {
            self.duplicate_tokens += if is_adopted { 0 } else { u64::from(tokens) };
            if !overflow {
                self.pay_for(piece);
            }
        } else {
            let kept = self.caps.keeps_segments && is_head || self.retains && !overflow;
            let stamp = self.ages.stamp();
            let block = new_block(parent, part, start);
            let owner = owner.as_ref().map(|tenant| self.owners.enter(tenant, block.bytes));
            self.insert(piece, Block { owner, is_head, kept, overflow, stamp, ..block });
        }
        if is_first {
            self.lock(Some(piece));
        } else {
            self.lock_one(piece);
        }
        self.advance(key, piece, (start, tokens));
    }

    /// Moves a lease on to its next piece and takes that off its reservation.
    fn advance(&mut self, key: SegmentKey, piece: SegmentKey, (start, tokens): (u32, u32)) {
        let before = self.leases.get(&key).map_or(0, |lease| self.partial_bytes(lease));
        let Some(lease) = self.leases.get_mut(&key) else { return };
        lease.done += tokens;
        lease.end = Some(piece);
        let is_complete = lease.done == lease.segment.len();
        let predicted = self.caps.segment_bytes(start, tokens).min(lease.reserved);
        let freed = if is_complete { lease.reserved } else { predicted };
        lease.reserved -= freed;
        if lease.overflow {
            self.bytes.overflow -= freed;
        } else {
            self.bytes.reserved -= freed;
        }
        let now = self.leases.get(&key).map_or(0, |lease| self.partial_bytes(lease));
        self.bytes.partial = self.bytes.partial - before + now;
    }

    /// Bytes that a lease has of a segment that is not complete.
    pub(super) fn partial_bytes(&self, lease: &Lease) -> u64 {
        let is_complete = lease.done == lease.segment.len();
        if is_complete { 0 } else { self.caps.segment_bytes(lease.segment.start, lease.done) }
    }

    fn insert(&mut self, key: SegmentKey, block: Block<S>) {
        debug_assert!(block.part.tokens() <= PAGE_TOKENS, "a block is longer than a page");
        if let Some(parent) = block.parent.and_then(|parent| self.blocks.get_mut(&parent)) {
            parent.children += 1;
        }
        self.bytes.used += block.bytes_within();
        self.bytes.overflow += block.bytes - block.bytes_within();
        // Until it is locked.
        self.owners.keep(block.owner, block.bytes_within());
        self.blocks.insert(key, block);
        self.changes.push(Change::Resident(key));
    }

    /// A lease within the budget has reserved the bytes of a block that runs beyond it.
    fn pay_for(&mut self, key: SegmentKey) {
        let retains = self.retains;
        let Some(block) = self.blocks.get_mut(&key).filter(|block| block.overflow) else { return };
        block.overflow = false;
        block.kept |= retains;
        let (bytes, is_locked) = (block.bytes, block.locks > 0);
        debug_assert!(is_locked, "nothing locks a block beyond the budget");
        self.bytes.overflow -= bytes;
        self.bytes.used += bytes;
        self.bytes.locked += if is_locked { bytes } else { 0 };
    }

    /// Locks a piece and all that lies before it.
    pub(super) fn lock(&mut self, end: Option<SegmentKey>) {
        let mut at = end;
        while let Some(key) = at {
            at = self.lock_one(key);
        }
    }

    /// Locks one block more, whose parent has this lock already; returns the parent.
    fn lock_one(&mut self, key: SegmentKey) -> Option<SegmentKey> {
        let block = self.blocks.get_mut(&key)?;
        block.locks += 1;
        if block.locks == 1 {
            let (owner, bytes) = (block.owner, block.bytes_within());
            let parent = block.parent;
            self.bytes.locked += bytes;
            self.bytes.protected_idle -= block.bytes_protected();
            self.owners.take(owner, bytes);
            self.dequeue(key, owner);
            return parent;
        }
        block.parent
    }

    /// Puts a block among those that may be evicted.
    pub(super) fn enqueue(&mut self, key: SegmentKey, place: Place) {
        let Some(block) = self.blocks.get(&key) else { return };
        self.queues.push(key, block.class, place);
        self.owners.push(block.owner, key, (block.class, place));
    }

    fn dequeue(&mut self, key: SegmentKey, owner: Option<Slot>) {
        self.queues.remove(key);
        self.owners.remove(owner, key);
    }

    /// Takes a lock off a piece and all that lies before it, and drops what nothing keeps.
    pub(super) fn unlock(&mut self, end: Option<SegmentKey>) {
        let mut at = end;
        while let Some(key) = at {
            let Some(block) = self.blocks.get_mut(&key) else { return };
            assert!(block.locks > 0, "{key:?} is unlocked more often than locked");
            block.locks -= 1;
            at = block.parent;
            if block.locks == 0 {
                self.bytes.locked -= block.bytes_within();
                self.bytes.protected_idle += block.bytes_protected();
                self.owners.keep(block.owner, block.bytes_within());
                self.settle(key);
            }
        }
    }

    /// Decides over a block whose last lock has ended.
    fn settle(&mut self, key: SegmentKey) {
        let Some(block) = self.blocks.get(&key) else { return };
        let stays = block.kept && (!block.overflow || self.adopt(key));
        if !stays {
            let reason = if self.blocks[&key].overflow {
                DropReason::Overflow
            } else {
                DropReason::Released
            };
            self.remove_with_children(key, reason);
            return;
        }
        if self.blocks[&key].children == 0 {
            self.enqueue(key, Place::Newest);
        }
    }

    /// Counts the decisions that a lease has served as uses of its blocks. Whoever had them computed
    /// does not use them again.
    pub(super) fn note_use(&mut self, lease: &Lease, served: Served) {
        let (all, now) = (served.foreground + served.background, self.ages.now());
        let mut at = lease.end;
        while let Some(key) = at {
            let Some(block) = self.blocks.get_mut(&key) else { return };
            at = block.parent;
            block.stamp.used = now;
            let is_found = block.end() <= lease.found_to;
            let hits = if is_found { all } else { all.saturating_sub(1) };
            if hits == 0 || block.overflow {
                continue;
            }
            block.hits = block.hits.saturating_add(hits);
            block.passed = 0;
            if served.foreground > 0 && block.class == Class::Probation {
                block.class = Class::Protected;
                self.bytes.protected += block.bytes;
            }
        }
    }

    /// Keeps a piece and all that lies before it when the last lock ends.
    pub(super) fn mark_kept(&mut self, end: SegmentKey) -> bool {
        let mut at = Some(end);
        while let Some(block) = at.and_then(|key| self.blocks.get_mut(&key)) {
            block.kept = true;
            at = block.parent;
        }
        true
    }

    /// Drops a block with all that stands on it; nothing of that is locked.
    fn remove_with_children(&mut self, key: SegmentKey, reason: DropReason) {
        let mut doomed = vec![key];
        let mut seen = 0;
        while let Some(parent) = doomed.get(seen).copied() {
            seen += 1;
            if self.blocks.get(&parent).is_some_and(|block| block.children > 0) {
                let children = self.blocks.iter().filter(|(_, block)| block.parent == Some(parent));
                doomed.extend(children.map(|(key, _)| *key));
            }
        }
        for key in doomed.into_iter().rev() {
            self.remove(key, reason);
        }
    }

    /// Drops a block that is neither locked nor has others standing on it.
    pub(super) fn remove(&mut self, key: SegmentKey, reason: DropReason) {
        let Some(block) = self.blocks.remove(&key) else { return };
        assert!(block.locks == 0, "{key:?} is dropped while it is leased or pinned");
        assert!(block.children == 0, "{key:?} is dropped before what stands on it");
        self.dequeue(key, block.owner);
        self.owners.take(block.owner, block.bytes_within());
        self.owners.leave(block.owner, block.bytes);
        self.bytes.used -= block.bytes_within();
        self.bytes.overflow -= block.bytes - block.bytes_within();
        self.bytes.protected -= block.bytes_protected();
        self.bytes.protected_idle -= block.bytes_protected();
        if reason == DropReason::Room {
            self.evictions += 1;
            self.ages.evicted(block.stamp);
        }
        self.changes.push(Change::Dropped(key, reason));
        let Some(parent_key) = block.parent else { return };
        let Some(parent) = self.blocks.get_mut(&parent_key) else { return };
        parent.children -= 1;
        if parent.children == 0 && parent.locks == 0 && !parent.overflow {
            // It was used when its child was, so it is as old.
            self.enqueue(parent_key, Place::Oldest);
        }
    }
}

fn new_block<S: Segment>(parent: Option<SegmentKey>, part: S, start: u32) -> Block<S> {
    Block {
        parent,
        children: 0,
        locks: 0,
        pins: 0,
        owner: None,
        pinned_by: None,
        bytes: part.bytes(),
        part,
        start,
        is_head: false,
        kept: false,
        overflow: false,
        class: Class::Probation,
        hits: 0,
        passed: 0,
        stamp: Stamp::default(),
    }
}
