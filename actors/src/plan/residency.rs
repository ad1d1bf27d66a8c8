//! The ledger of keys and values: which blocks are held, their bytes, leases, pins and victims.
//!
//! What is held is a tree of blocks: the pieces of 64 absolute positions of all segments, and the rest
//! of a segment behind its last whole block. A block's parent is what lies before it. States that
//! begin alike have the same blocks as far as they do, so a grown, cut or diverging state finds what
//! it shares with another one, nothing is held or computed twice, and bytes are counted once. A lease
//! locks the blocks of its segment and all above them; nothing locked is dropped, and a block never
//! before those that stand on it. What was computed of a state stays though the state is not complete.
//!
//! `used + reserved <= budget` holds after every call; what the overflow allowance lets run beyond
//! is counted apart, is nobody else's beginning, and never outlives its lease.
//!
//! # Invariants and their tests
//!
//! Numbers are those of the scheduler's design; `tests` are those beside this file, `laws` those in
//! `plan/laws`.
//!
//! | invariant | test |
//! |---|---|
//! | 6 each block is computed once between two evictions, whoever shares it | `laws::everything_admitted_ends`, `laws::residency::states_that_begin_alike_are_computed_once` |
//! | 8 what is computed of a segment grows in order, without gap or overlap | `tests::the_ledger_keeps_its_promises`, `laws::everything_admitted_ends` |
//! | 9 bytes: `used + reserved <= budget`, sums over blocks and leases agree | `tests::the_ledger_keeps_its_promises` |
//! | 10 nothing leased or pinned is evicted; pins keep within their budgets | `tests::the_ledger_keeps_its_promises`, `tests::pins_keep_within_their_budgets_and_end_with_time` |
//! | 11 leaf first: what is held has all that lies before it | `tests::the_ledger_keeps_its_promises` |
//! | 12 key soundness; no tenant's states change another's hits | `prefix::chains_are_shared_as_far_as_tokens_are`, `tests::another_tenant_never_changes_what_is_found` |
//! | 25 a pin lasts from hit to hit and not longer; `unpin` ends it | `tests::pins_keep_within_their_budgets_and_end_with_time`, `decisions::prewarming` |
//! | what a tenant keeps is within its own limit, which takes nothing from others | `tests::limits::no_tenant_keeps_more_than_it_may`, `tests::limits::the_limits_of_some_change_nothing_for_others` |
//! | 26 nothing of another epoch is taken in, a new one begins empty | `tests::a_commit_of_another_epoch_is_dropped`, `decisions::failing` |

mod ages;
mod block;
mod details;
mod keeping;
mod owners;
mod pins;
mod queues;
mod reach;
mod room;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Instant;

use crate::config::CacheConfig;
use crate::engine::{Caps, Epoch, Segment};
use crate::plan::path::PathSegment;
use crate::plan::segments::Served;
use crate::read::{SegmentKey, TenantId};
use crate::snapshot::ResidencyView;
pub(crate) use ages::Age;
use ages::Ages;
use block::Block;
use owners::Owners;
use pins::Pin;
use queues::Queues;
pub(crate) use reach::Reach;

/// Answer to a lease that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum LeaseReply<S> {
    /// The path is leased; the parts that each of its segments has, in path order.
    Granted(Vec<Vec<S>>),
    /// There is no room now; nothing was changed.
    Deferred,
}

/// Why a block was dropped; the label of the eviction counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DropReason {
    /// Evicted to make room for another.
    Room,
    /// The last lease on it ended and nothing is to stay.
    Released,
    /// It ran beyond the budget.
    Overflow,
    /// Its tenant kept more than its own limit.
    Limit,
}

/// What happened to a block, for those who keep a copy of the ledger's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is held.
    Resident(SegmentKey),
    /// It is held no longer.
    Dropped(SegmentKey, DropReason),
}

/// A run of tokens of a leased segment that was computed.
#[derive(Debug, Clone)]
pub(crate) struct Computed<S> {
    pub(crate) key: SegmentKey,
    /// First token, counted from the segment's start.
    pub(crate) from: u32,
    pub(crate) segment: S,
    /// Whether it was computed for another segment that has the same blocks.
    pub(crate) is_adopted: bool,
    /// Epoch under which it was computed.
    pub(crate) epoch: Epoch,
}

/// The ledger.
#[derive(Debug)]
pub(crate) struct Residency<S> {
    caps: Caps,
    config: CacheConfig,
    budget: u64,
    epoch: Epoch,
    /// Whether what was computed stays when its lease ends.
    retains: bool,
    blocks: BTreeMap<SegmentKey, Block<S>>,
    /// Blocks that may be evicted now.
    queues: Queues,
    owners: Owners,
    leases: BTreeMap<SegmentKey, Lease>,
    pins: BTreeMap<SegmentKey, Pin>,
    bytes: Bytes,
    /// Of the pinned bytes, those of each tenant with all its subs.
    pinned_of: BTreeMap<TenantId, u64>,
    /// The state which runs beyond the budget.
    overflow_state: Option<SegmentKey>,
    evictions: u64,
    duplicate_tokens: u64,
    changes: Vec<Change>,
    ages: Ages,
}

/// Sums over blocks and leases.
#[derive(Debug, Default)]
struct Bytes {
    /// Of all blocks within the budget.
    used: u64,
    /// Promised to leases within the budget.
    reserved: u64,
    /// Of `used`, what leases and pins lock.
    locked: u64,
    /// Of `used`, what was used again in the foreground.
    protected: u64,
    /// Of `protected`, what nothing locks.
    protected_idle: u64,
    /// Of `used`, what pins keep.
    pinned: u64,
    /// What leases that are not complete have.
    partial: u64,
    /// Held and promised beyond the budget.
    overflow: u64,
}

/// A segment that is leased.
#[derive(Debug)]
struct Lease {
    segment: PathSegment,
    /// Whose the blocks are that are made under it, unless they are a head's.
    owner: Option<TenantId>,
    /// The segment before it.
    parent: Option<SegmentKey>,
    count: u32,
    /// Tokens that are held.
    done: u32,
    /// Its last piece that is held.
    end: Option<SegmentKey>,
    /// Absolute position up to which it was held when it was leased.
    found_to: u32,
    reserved: u64,
    overflow: bool,
}

/// What is there of a segment that is asked for.
#[derive(Debug, Clone, Copy)]
struct Found {
    is_leased: bool,
    tokens: u32,
    end: Option<SegmentKey>,
    /// Bytes of what is missing; none if it is leased.
    missing_bytes: u64,
}

impl<S: Segment> Residency<S> {
    /// * `retains`: whether what was computed stays when its last lease ends.
    pub(crate) fn new(caps: Caps, config: CacheConfig, retains: bool, epoch: Epoch) -> Self {
        // An engine that keeps nothing has nothing to hold beyond a step.
        let keeps = caps.keeps_segments;
        Self {
            budget: if keeps { config.kv_bytes } else { 0 },
            retains: retains && keeps,
            caps,
            config,
            epoch,
            blocks: BTreeMap::new(),
            queues: Queues::new(),
            owners: Owners::default(),
            leases: BTreeMap::new(),
            pins: BTreeMap::new(),
            bytes: Bytes::default(),
            pinned_of: BTreeMap::new(),
            overflow_state: None,
            evictions: 0,
            duplicate_tokens: 0,
            changes: Vec::new(),
            ages: Ages::default(),
        }
    }

    /// Leases all of `path` and reserves the bytes that it lacks, or changes nothing but pins whose
    /// time is over. What other states have of it is part of what is granted.
    ///
    /// What is computed of it is the owner's.
    pub(crate) fn lease(
        &mut self,
        (path, owner): (&[PathSegment], Option<&TenantId>),
        reach: Reach,
        now: Instant,
    ) -> LeaseReply<S> {
        let reply = self.try_lease((path, owner), reach, now);
        // What pins kept whose time is over may be more than its tenant may keep.
        self.trim();
        reply
    }

    fn try_lease(
        &mut self,
        (path, owner): (&[PathSegment], Option<&TenantId>),
        reach: Reach,
        now: Instant,
    ) -> LeaseReply<S> {
        let found: Vec<_> = path.iter().map(|segment| self.find(segment)).collect();
        if found.iter().any(|found| !found.is_leased && self.is_beyond_budget(found.end)) {
            return LeaseReply::Deferred;
        }
        let missing = found.iter().map(|found| found.missing_bytes).sum();
        let deepest = found.iter().rev().find_map(|found| found.end);
        let mut fits = self.could_fit(missing, deepest);
        if !fits {
            self.end_old_pins(now);
            fits = self.could_fit(missing, deepest);
        }
        let is_sparing = !reach.evicts_protected && !self.leases.is_empty();
        if fits && is_sparing && !self.could_fit_unprotected(missing, deepest) {
            return LeaseReply::Deferred;
        }
        let overflow = !fits
            && reach.may_overflow
            && self.overflow_state.is_none()
            && missing <= self.config.overflow_bytes_max;
        if !fits && !overflow {
            return LeaseReply::Deferred;
        }
        for found in found.iter().filter(|found| !found.is_leased) {
            self.lock(found.end);
        }
        self.note_reuse(found.last());
        if overflow {
            self.overflow_state = path.last().map(|segment| segment.key);
        } else {
            let has_room = self.make_room(missing);
            debug_assert!(has_room, "{missing} bytes were found to fit and do not");
        }
        let mut parent = None;
        for (segment, found) in path.iter().zip(found) {
            self.note_lease((segment, parent, owner), found, overflow);
            parent = Some(segment.key);
        }
        self.extend_pin(path, now);
        LeaseReply::Granted(path.iter().map(|segment| self.parts(segment)).collect())
    }

    /// Takes in what was computed of a leased segment; anything of another epoch is dropped.
    pub(crate) fn commit(&mut self, computed: Computed<S>) {
        let Computed { key, from, segment, is_adopted, epoch } = computed;
        if epoch != self.epoch {
            return;
        }
        let Some(lease) = self.leases.get(&key) else { return };
        let tokens = segment.tokens();
        if from != lease.done || tokens > lease.segment.len() - lease.done {
            self.duplicate_tokens += u64::from(tokens);
            return;
        }
        let (mut done, mut pieces) = (from, Vec::new());
        while done < from + tokens {
            let (piece, end) = lease.segment.piece(done);
            debug_assert!(end <= from + tokens, "a chunk ends within a block");
            pieces.push((piece, done - from..end.min(from + tokens) - from));
            done = end;
        }
        for (piece, range) in pieces {
            let is_whole = range.len() == tokens as usize;
            let part = if is_whole { segment.clone() } else { segment.slice(range) };
            self.take_piece(key, piece, part, is_adopted);
        }
    }

    /// Ends one lease on each segment of `path`, which served so many decisions, and drops what
    /// nothing keeps.
    pub(crate) fn release(&mut self, path: &[SegmentKey], served: Served) {
        for (index, key) in path.iter().enumerate().rev() {
            let Some(lease) = self.leases.get_mut(key) else { continue };
            assert!(lease.count > 0, "a lease on {key:?} is returned that was not given");
            lease.count -= 1;
            if lease.count > 0 {
                continue;
            }
            let Some(lease) = self.leases.remove(key) else { continue };
            self.free_reserved(&lease);
            self.bytes.partial -= self.partial_bytes(&lease);
            if self.overflow_state == Some(*key) {
                self.overflow_state = None;
            }
            if index + 1 == path.len() {
                self.note_use(&lease, served);
            }
            self.unlock(lease.end);
        }
        self.rebalance();
        self.trim();
    }

    /// What changed since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    pub(crate) fn view(&self) -> ResidencyView {
        ResidencyView {
            budget: self.budget,
            used: self.bytes.used,
            reserved: self.bytes.reserved,
            pinned: self.bytes.pinned,
            protected: self.bytes.protected,
            partial: self.bytes.partial,
            overflow: self.bytes.overflow,
            segments: self.blocks.len(),
            leased: self.leases.len(),
            evictions: self.evictions,
            duplicate_tokens: self.duplicate_tokens,
            prewarms_waiting: 0,
        }
    }

    fn find(&self, segment: &PathSegment) -> Found {
        if let Some(lease) = self.leases.get(&segment.key) {
            let (tokens, end) = (lease.done, lease.end);
            return Found { is_leased: true, tokens, end, missing_bytes: 0 };
        }
        let len = segment.len();
        let is_held = |key| self.blocks.contains_key(&key);
        let tokens = segment.blocks.held((segment.key, len), is_held);
        let end = if tokens < len {
            segment.blocks.last_of(segment.blocks.blocks_in(tokens))
        } else {
            Some(segment.end()).filter(|_| len > 0)
        };
        let missing_bytes = self.caps.segment_bytes(segment.start + tokens, len - tokens);
        Found { is_leased: false, tokens, end, missing_bytes }
    }

    /// Counts a lease on one segment of a path; its blocks are locked and there is room.
    fn note_lease(
        &mut self,
        (segment, parent, owner): (&PathSegment, Option<SegmentKey>, Option<&TenantId>),
        found: Found,
        overflow: bool,
    ) {
        if let Some(lease) = self.leases.get_mut(&segment.key) {
            lease.count += 1;
            return;
        }
        let Found { tokens: done, end, missing_bytes: reserved, .. } = found;
        if overflow {
            self.bytes.overflow += reserved;
        } else {
            self.bytes.reserved += reserved;
        }
        let owner = owner.filter(|_| !segment.is_head).map(TenantId::to_payer);
        let (segment, found_to, count) = (segment.clone(), segment.start + done, 1);
        let lease =
            Lease { segment, owner, parent, count, done, end, found_to, reserved, overflow };
        self.bytes.partial += self.partial_bytes(&lease);
        self.leases.insert(lease.segment.key, lease);
    }

    fn free_reserved(&mut self, lease: &Lease) {
        if lease.overflow {
            self.bytes.overflow -= lease.reserved;
        } else {
            self.bytes.reserved -= lease.reserved;
        }
    }
}
