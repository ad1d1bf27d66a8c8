//! Whose the blocks are: what each tenant has, and of those with a limit of their own what they keep
//! beyond it and in which order they lose it.
//!
//! A block belongs to whoever had it computed, a sub-tenant's to its parent; template heads are
//! nobody's. A tenant without a block is forgotten.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::Segment;
use crate::limits::Limits;
use crate::plan::residency::queues::{Class, Place, Queues};
use crate::plan::residency::{DropReason, Residency};
use crate::read::{SegmentKey, TenantId};
use crate::snapshot::Top;

/// The place of a tenant that has blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slot(usize);

/// All tenants that have blocks.
#[derive(Debug, Default)]
pub(super) struct Owners {
    limits: Arc<Limits>,
    slots: Vec<Owner>,
    /// Slots of tenants that are forgotten.
    free: Vec<Slot>,
    by_name: BTreeMap<TenantId, Slot>,
    /// Those that keep more than they may.
    over: BTreeSet<Slot>,
}

#[derive(Debug)]
struct Owner {
    tenant: TenantId,
    blocks: usize,
    /// Bytes of its blocks.
    held: u64,
    /// Of these, what is within the budget and neither leased nor pinned.
    kept: u64,
    limit: Option<Own>,
}

/// A tenant's own limit of what it keeps, and its blocks that may be evicted.
#[derive(Debug)]
struct Own {
    bytes_max: u64,
    queues: Queues,
}

impl Own {
    fn of(tenant: &TenantId, limits: &Limits) -> Option<Self> {
        let bytes_max = limits.kv_bytes_max(tenant)?;
        Some(Self { bytes_max, queues: Queues::new() })
    }
}

impl Owners {
    pub(super) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// A block of so many bytes comes.
    pub(super) fn enter(&mut self, tenant: &TenantId, bytes: u64) -> Slot {
        let slot = self.by_name.get(tenant).copied().unwrap_or_else(|| self.new_slot(tenant));
        if let Some(owner) = self.slots.get_mut(slot.0) {
            owner.blocks += 1;
            owner.held += bytes;
        }
        slot
    }

    fn new_slot(&mut self, tenant: &TenantId) -> Slot {
        let limit = Own::of(tenant, &self.limits);
        let owner = Owner { tenant: tenant.clone(), blocks: 0, held: 0, kept: 0, limit };
        let slot = self.free.pop().unwrap_or(Slot(self.slots.len()));
        match self.slots.get_mut(slot.0) {
            Some(free) => *free = owner,
            None => self.slots.push(owner),
        }
        self.by_name.insert(tenant.clone(), slot);
        slot
    }

    /// A block of so many bytes is gone, which was not kept any more.
    pub(super) fn leave(&mut self, slot: Option<Slot>, bytes: u64) {
        let Some((slot, owner)) = self.owner(slot) else { return };
        owner.blocks -= 1;
        owner.held -= bytes;
        if owner.blocks == 0 {
            debug_assert!(owner.held == 0 && owner.kept == 0, "{owner:?} has no block");
            owner.limit = None;
            let tenant = owner.tenant.clone();
            self.by_name.remove(&tenant);
            self.over.remove(&slot);
            self.free.push(slot);
        }
    }

    /// Nothing leases or pins these bytes any more.
    pub(super) fn keep(&mut self, slot: Option<Slot>, bytes: u64) {
        let Some((slot, owner)) = self.owner(slot) else { return };
        owner.kept += bytes;
        if owner.is_over() {
            self.over.insert(slot);
        }
    }

    /// Something does again, or they are gone.
    pub(super) fn take(&mut self, slot: Option<Slot>, bytes: u64) {
        if let Some((_, owner)) = self.owner(slot) {
            owner.kept -= bytes;
        }
    }

    pub(super) fn push(&mut self, slot: Option<Slot>, key: SegmentKey, at: (Class, Place)) {
        if let Some(own) = self.own(slot) {
            own.queues.push(key, at.0, at.1);
        }
    }

    pub(super) fn remove(&mut self, slot: Option<Slot>, key: SegmentKey) {
        if let Some(own) = self.own(slot) {
            own.queues.remove(key);
        }
    }

    fn own(&mut self, slot: Option<Slot>) -> Option<&mut Own> {
        self.owner(slot)?.1.limit.as_mut()
    }

    /// Whose a block is.
    pub(super) fn tenant(&self, slot: Option<Slot>) -> Option<&TenantId> {
        Some(&self.slots.get(slot?.0)?.tenant)
    }

    fn owner(&mut self, slot: Option<Slot>) -> Option<(Slot, &mut Owner)> {
        let slot = slot?;
        Some((slot, self.slots.get_mut(slot.0)?))
    }

    /// Some tenant that keeps more than it may, with the oldest blocks of which it may lose one.
    fn excess(&mut self) -> Option<Vec<SegmentKey>> {
        while let Some(slot) = self.over.first().copied() {
            let owner = self.slots.get(slot.0).filter(|owner| owner.is_over());
            let own = owner.and_then(|owner| owner.limit.as_ref());
            let candidates = own.map(|own| own.queues.candidates()).unwrap_or_default();
            if !candidates.is_empty() {
                return Some(candidates);
            }
            self.over.remove(&slot);
        }
        None
    }

    /// Takes limits in; returns whether any tenant that has blocks has one.
    fn limit(&mut self, limits: Arc<Limits>) -> bool {
        self.limits = limits;
        for (tenant, slot) in &self.by_name {
            let Some(owner) = self.slots.get_mut(slot.0) else { continue };
            owner.limit = Own::of(tenant, &self.limits);
            if owner.is_over() {
                self.over.insert(*slot);
            }
        }
        self.slots.iter().any(|owner| owner.limit.is_some())
    }

    /// The tenants whose blocks have most bytes.
    fn most_bytes(&self) -> Vec<(TenantId, u64)> {
        let mut top = Top::new();
        for (tenant, slot) in &self.by_name {
            top.offer(tenant, self.slots.get(slot.0).map_or(0, |owner| owner.held));
        }
        top.into_vec()
    }

    /// What is known of each tenant: blocks, bytes, and of these what it keeps and may keep.
    #[cfg(test)]
    fn accounts(&self) -> BTreeMap<&TenantId, (usize, u64, u64, Option<u64>)> {
        let account = |owner: &Owner| {
            (owner.blocks, owner.held, owner.kept, owner.limit.as_ref().map(|own| own.bytes_max))
        };
        self.by_name.iter().map(|(name, slot)| (name, account(&self.slots[slot.0]))).collect()
    }
}

impl Owner {
    fn is_over(&self) -> bool {
        self.limit.as_ref().is_some_and(|own| self.kept > own.bytes_max)
    }
}

impl<S: Segment> Residency<S> {
    /// These are the limits of tenants from now on: who keeps more loses it. Pins keep their time.
    pub(crate) fn limit(&mut self, limits: Arc<Limits>) {
        if self.owners.limit(limits) {
            for (key, class) in self.queues.oldest_first() {
                let owner = self.blocks.get(&key).and_then(|block| block.owner);
                self.owners.push(owner, key, (class, Place::Newest));
            }
        }
        self.trim();
    }

    /// Takes from each tenant what it keeps beyond its own limit: its own blocks, the least useful
    /// first.
    pub(super) fn trim(&mut self) {
        while let Some(candidates) = self.owners.excess() {
            let Some(victim) = self.least_of(&candidates) else { return };
            self.remove(victim, DropReason::Limit);
        }
    }

    /// The tenants whose blocks have most bytes.
    pub(crate) fn most_bytes(&self) -> Vec<(TenantId, u64)> {
        self.owners.most_bytes()
    }
}

#[cfg(test)]
impl<S: Segment> Residency<S> {
    /// Whose a block is.
    pub(super) fn owner_of(&self, key: SegmentKey) -> Option<&TenantId> {
        Some(&self.owners.slots[self.blocks.get(&key)?.owner?.0].tenant)
    }

    /// What is known of tenants is the sum over their blocks; none keeps more than it may, and those
    /// with a limit have all that they may lose in order.
    pub(crate) fn check_owners(&self) {
        let mut sums = BTreeMap::new();
        for (key, block) in &self.blocks {
            let Some(tenant) = self.owner_of(*key) else { continue };
            let limit = self.owners.limits.kv_bytes_max(tenant);
            let (blocks, held, kept, _) = sums.entry(tenant).or_insert((0, 0, 0, limit));
            *blocks += 1;
            *held += block.bytes;
            let is_kept = block.locks == 0 && !block.overflow;
            *kept += if is_kept { block.bytes } else { 0 };
            let own = self.owners.slots[block.owner.unwrap().0].limit.as_ref();
            let may_go = block.locks == 0 && block.children == 0;
            let is_queued = own.is_some_and(|own| own.queues.contains(*key, block.class));
            assert_eq!(is_queued, own.is_some() && may_go, "{key:?} of {tenant:?}");
        }
        assert_eq!(self.owners.accounts(), sums);
        for (tenant, (_, _, kept, limit)) in sums {
            assert!(limit.is_none_or(|limit| kept <= limit), "{tenant:?}: {kept} of {limit:?}");
        }
        let used = self.owners.slots.len() - self.owners.free.len();
        assert_eq!(used, self.owners.by_name.len(), "a tenant without a block is forgotten");
    }
}
