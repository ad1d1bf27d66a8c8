//! The ledger of keys and values: which segments are held, their bytes, leases, pins and victims.
//!
//! `used + reserved <= budget` holds after every call; what the overflow allowance lets run beyond
//! is counted apart and never outlives its lease. A segment leaves only when nothing leases it,
//! children before parents. Entries that are not complete exist only while they are leased.

mod room;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::engine::{Caps, Segment};
use crate::plan::path::PathSegment;
use crate::read::SegmentKey;
use crate::snapshot::ResidencyView;

/// Answer to a lease that was asked for.
#[derive(Debug, Clone)]
pub(crate) enum LeaseReply<S> {
    /// The path is leased; the parts that each of its segments has, in path order.
    Granted(Vec<Vec<S>>),
    /// There is no room now; nothing was changed.
    Deferred,
}

/// Why a segment was dropped; the label of the eviction counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DropReason {
    /// Evicted to make room for another.
    Room,
    /// Its last lease ended and nothing had asked for it to stay.
    Released,
    /// It ran beyond the budget.
    Overflow,
}

/// What happened to a segment, for those who keep a copy of the ledger's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// All its tokens are held.
    Resident(SegmentKey),
    /// It is held no longer.
    Dropped(SegmentKey, DropReason),
}

/// A chunk that was computed.
#[derive(Debug, Clone)]
pub(crate) struct Computed<S> {
    pub(crate) key: SegmentKey,
    /// First token, counted from the segment's start.
    pub(crate) from: u32,
    pub(crate) segment: S,
}

/// The ledger.
#[derive(Debug)]
pub(crate) struct Residency<S> {
    caps: Caps,
    budget: u64,
    pin_budget: u64,
    entries: BTreeMap<SegmentKey, Entry<S>>,
    /// Entries without a lease, least recently used first.
    idle: BTreeSet<(u64, SegmentKey)>,
    /// Counts uses; the order of recency, independent of the clock.
    uses: u64,
    used: u64,
    reserved: u64,
    pinned: u64,
    overflow: u64,
    /// The state which runs beyond the budget.
    overflow_state: Option<SegmentKey>,
    evictions: u64,
    duplicate_tokens: u64,
    changes: Vec<Change>,
}

#[derive(Debug)]
struct Entry<S> {
    parent: Option<SegmentKey>,
    is_head: bool,
    start: u32,
    tokens: u32,
    parts: Vec<S>,
    done: u32,
    used: u64,
    reserved: u64,
    leases: u32,
    children: u32,
    /// Stays when its last lease ends: registered or prewarmed.
    kept: bool,
    pin: Option<Pin>,
    overflow: bool,
    last_use: u64,
}

#[derive(Debug, Clone, Copy)]
struct Pin {
    until: Instant,
    ttl: Duration,
}

impl<S> Entry<S> {
    fn is_complete(&self) -> bool {
        self.done == self.tokens
    }

    fn bytes(&self) -> u64 {
        self.used + self.reserved
    }

    fn is_victim(&self, now: Instant) -> bool {
        self.leases == 0 && self.children == 0 && self.pin.is_none_or(|pin| pin.until <= now)
    }
}

impl<S: Segment> Residency<S> {
    pub(crate) fn new(caps: Caps, budget: u64, pin_budget: u64) -> Self {
        // An engine that keeps nothing has nothing to hold beyond a step.
        let budget = if caps.keeps_segments { budget } else { 0 };
        Self {
            caps,
            budget,
            pin_budget: pin_budget.min(budget),
            entries: BTreeMap::new(),
            idle: BTreeSet::new(),
            uses: 0,
            used: 0,
            reserved: 0,
            pinned: 0,
            overflow: 0,
            overflow_state: None,
            evictions: 0,
            duplicate_tokens: 0,
            changes: Vec::new(),
        }
    }

    /// Leases all of `path` and reserves the bytes that it lacks, or changes nothing.
    ///
    /// With `may_overflow`, a path for which there is no room is granted beyond the budget if no
    /// other is.
    pub(crate) fn lease(
        &mut self,
        path: &[PathSegment],
        may_overflow: bool,
        now: Instant,
    ) -> LeaseReply<S> {
        // Leased first, so that what is there cannot be a victim of what is missing.
        for segment in path {
            self.add_lease(segment.key);
        }
        let missing: Vec<_> =
            path.iter().filter(|segment| !self.entries.contains_key(&segment.key)).collect();
        let bytes = missing.iter().map(|segment| self.bytes_of(segment)).sum();
        let fits = self.make_room(bytes, now);
        let overflow = !fits && may_overflow && self.overflow_state.is_none();
        if !fits && !overflow {
            for segment in path.iter().rev() {
                self.drop_lease(segment.key);
            }
            return LeaseReply::Deferred;
        }
        if overflow {
            self.overflow_state = path.last().map(|segment| segment.key);
        }
        let mut parent = None;
        for segment in path {
            if !self.entries.contains_key(&segment.key) {
                self.insert(segment, parent, overflow);
            }
            parent = Some(segment.key);
        }
        LeaseReply::Granted(path.iter().map(|segment| self.touch(segment.key, now)).collect())
    }

    /// Takes in a chunk of a leased segment.
    pub(crate) fn commit(&mut self, computed: Computed<S>) {
        let Computed { key, from, segment } = computed;
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let tokens = segment.tokens();
        if from != entry.done || tokens > entry.tokens - entry.done {
            self.duplicate_tokens += u64::from(tokens);
            return;
        }
        let predicted = self.caps.segment_bytes(entry.start + from, tokens).min(entry.reserved);
        let bytes = segment.bytes();
        entry.done += tokens;
        entry.parts.push(segment);
        entry.used += bytes;
        let complete = entry.is_complete();
        let freed = if complete { entry.reserved } else { predicted };
        entry.reserved -= freed;
        if entry.overflow {
            self.overflow = self.overflow + bytes - freed;
        } else {
            self.used += bytes;
            self.reserved -= freed;
        }
        if complete {
            self.changes.push(Change::Resident(key));
        }
    }

    /// Ends one lease on each segment of `path`, and drops what nothing keeps.
    pub(crate) fn release(&mut self, path: &[SegmentKey], now: Instant) {
        for key in path.iter().rev() {
            if self.overflow_state == Some(*key) && self.leases(*key) == 1 {
                self.overflow_state = None;
            }
            if self.drop_lease(*key) {
                self.settle(*key, now);
            }
        }
    }

    /// Keeps a complete segment beyond its last lease; says whether it is there and may stay.
    pub(crate) fn keep(&mut self, key: SegmentKey, now: Instant) -> bool {
        let Some(entry) = self.entries.get(&key).filter(|entry| entry.is_complete()) else {
            return false;
        };
        let parent = entry.parent;
        if !self.caps.keeps_segments {
            return false;
        }
        if !parent.is_none_or(|parent| self.adopt(parent, now)) || !self.adopt(key, now) {
            return false;
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.kept = true;
        }
        true
    }

    /// Pins a kept segment until its time to live ends; a longer pin stays. Says whether the pin
    /// budget allowed it.
    pub(crate) fn pin(&mut self, key: SegmentKey, ttl: Duration, now: Instant) -> bool {
        self.expire_pins(now);
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        let (until, bytes) = (now + ttl, entry.used);
        match &mut entry.pin {
            Some(pin) => {
                pin.until = pin.until.max(until);
                pin.ttl = pin.ttl.max(ttl);
            }
            None if self.pinned + bytes > self.pin_budget => return false,
            None => {
                entry.pin = Some(Pin { until, ttl });
                self.pinned += bytes;
            }
        }
        true
    }

    /// Unpins what has outlived its time; it stays until room is needed.
    pub(crate) fn expire_pins(&mut self, now: Instant) {
        for entry in self.entries.values_mut() {
            if entry.pin.is_some_and(|pin| pin.until <= now) {
                entry.pin = None;
                self.pinned -= entry.used;
            }
        }
    }

    /// Tokens of `key` that are held.
    pub(crate) fn done(&self, key: SegmentKey) -> u32 {
        self.entries.get(&key).map_or(0, |entry| entry.done)
    }

    /// Whether a path of these segments could be kept within the budget at all.
    pub(crate) fn could_hold(&self, path: &[PathSegment]) -> bool {
        let bytes: u64 = path.iter().map(|segment| self.bytes_of(segment)).sum();
        self.caps.keeps_segments && bytes <= self.budget
    }

    /// What changed since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    pub(crate) fn view(&self) -> ResidencyView {
        ResidencyView {
            budget: self.budget,
            used: self.used,
            reserved: self.reserved,
            pinned: self.pinned,
            overflow: self.overflow,
            segments: self.entries.len(),
            leased: self.entries.len() - self.idle.len(),
            evictions: self.evictions,
            duplicate_tokens: self.duplicate_tokens,
            prewarms_waiting: 0,
        }
    }

    fn bytes_of(&self, segment: &PathSegment) -> u64 {
        self.caps.segment_bytes(segment.start, segment.len())
    }

    fn leases(&self, key: SegmentKey) -> u32 {
        self.entries.get(&key).map_or(0, |entry| entry.leases)
    }

    fn add_lease(&mut self, key: SegmentKey) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.leases += 1;
            self.idle.remove(&(entry.last_use, key));
        }
    }

    /// Returns whether it was the last lease.
    fn drop_lease(&mut self, key: SegmentKey) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        assert!(entry.leases > 0, "a lease on {key:?} is returned that was not given");
        entry.leases -= 1;
        if entry.leases == 0 {
            self.idle.insert((entry.last_use, key));
        }
        entry.leases == 0
    }

    /// Makes `key` the most recently used and returns its parts.
    fn touch(&mut self, key: SegmentKey, now: Instant) -> Vec<S> {
        self.uses += 1;
        let Some(entry) = self.entries.get_mut(&key) else { return Vec::new() };
        entry.last_use = self.uses;
        if let Some(pin) = &mut entry.pin {
            pin.until = pin.until.max(now + pin.ttl);
        }
        entry.parts.clone()
    }

    fn insert(&mut self, segment: &PathSegment, parent: Option<SegmentKey>, overflow: bool) {
        let reserved = self.bytes_of(segment);
        if overflow {
            self.overflow += reserved;
        } else {
            self.reserved += reserved;
        }
        if let Some(parent) = parent.and_then(|key| self.entries.get_mut(&key)) {
            parent.children += 1;
        }
        let entry = Entry {
            parent,
            is_head: segment.is_head,
            start: segment.start,
            tokens: segment.len(),
            parts: Vec::new(),
            done: 0,
            used: 0,
            reserved,
            leases: 1,
            children: 0,
            kept: false,
            pin: None,
            overflow,
            last_use: 0,
        };
        self.entries.insert(segment.key, entry);
    }
}
