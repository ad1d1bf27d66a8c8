//! Room in the ledger: victims, what stays after its last lease, what leaves.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::engine::Segment;
use crate::plan::residency::{Change, DropReason, Entry, Residency};
use crate::read::SegmentKey;

impl<S: Segment> Residency<S> {
    /// Evicts until `bytes` more fit; evicts nothing if that cannot be reached.
    pub(super) fn make_room(&mut self, bytes: u64, now: Instant) -> bool {
        let held = self.used + self.reserved;
        let Some(excess) = (held + bytes).checked_sub(self.budget).filter(|excess| *excess > 0)
        else {
            return true;
        };
        let Some(victims) = self.victims(excess, now) else { return false };
        for key in victims {
            self.remove(key, DropReason::Room);
        }
        true
    }

    /// The least recently used entries which together free `bytes`, children before parents.
    fn victims(&self, bytes: u64, now: Instant) -> Option<Vec<SegmentKey>> {
        let (mut victims, mut freed) = (Vec::new(), 0);
        let mut orphaned: BTreeMap<SegmentKey, u32> = BTreeMap::new();
        for (_, key) in &self.idle {
            if freed >= bytes {
                break;
            }
            let Some(entry) = self.entries.get(key).filter(|entry| !entry.overflow) else {
                continue;
            };
            let gone = orphaned.get(key).copied().unwrap_or(0);
            let childless = entry.children == gone;
            if !childless || entry.pin.is_some_and(|pin| pin.until > now) {
                continue;
            }
            debug_assert!(gone > 0 || entry.is_victim(now));
            freed += entry.bytes();
            victims.push(*key);
            if let Some(parent) = entry.parent {
                *orphaned.entry(parent).or_insert(0) += 1;
            }
        }
        (freed >= bytes).then_some(victims)
    }

    /// Decides over an entry whose last lease has ended.
    pub(super) fn settle(&mut self, key: SegmentKey, now: Instant) {
        let Some(entry) = self.entries.get(&key) else { return };
        let wanted = entry.kept || entry.is_head || entry.pin.is_some();
        let wanted = wanted && self.caps.keeps_segments;
        let overflow = entry.overflow;
        if !entry.is_complete() || !wanted {
            let reason = if overflow { DropReason::Overflow } else { DropReason::Released };
            self.remove_with_children(key, reason);
        } else if overflow && !self.adopt(key, now) {
            self.remove_with_children(key, DropReason::Overflow);
        }
    }

    /// Moves an entry that ran beyond the budget into it, if there is room.
    pub(super) fn adopt(&mut self, key: SegmentKey, now: Instant) -> bool {
        let Some(entry) = self.entries.get(&key) else { return false };
        if !entry.overflow {
            return true;
        }
        let bytes = entry.bytes();
        if !self.make_room(bytes, now) {
            return false;
        }
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.overflow = false;
            self.overflow -= bytes;
            self.used += entry.used;
            self.reserved += entry.reserved;
        }
        true
    }

    fn remove_with_children(&mut self, key: SegmentKey, reason: DropReason) {
        let is_child = |entry: &Entry<S>| entry.parent == Some(key);
        let children: Vec<_> =
            self.entries.iter().filter(|(_, entry)| is_child(entry)).map(|(key, _)| *key).collect();
        for child in children {
            self.remove(child, reason);
        }
        self.remove(key, reason);
    }

    fn remove(&mut self, key: SegmentKey, reason: DropReason) {
        let Some(entry) = self.entries.remove(&key) else { return };
        assert!(entry.leases == 0, "{key:?} is dropped while it is leased");
        self.idle.remove(&(entry.last_use, key));
        if entry.overflow {
            self.overflow -= entry.bytes();
        } else {
            self.used -= entry.used;
            self.reserved -= entry.reserved;
        }
        if entry.pin.is_some() {
            self.pinned -= entry.used;
        }
        if let Some(parent) = entry.parent.and_then(|parent| self.entries.get_mut(&parent)) {
            parent.children -= 1;
        }
        self.evictions += u64::from(reason == DropReason::Room);
        self.changes.push(Change::Dropped(key, reason));
    }
}
