//! Order within a lane: tenants by what they were served, states by work a waiting read.
//!
//! Tenants are served by a virtual token counter with lift, on two levels: first those with a key,
//! each by its weight, then the sub-tenants of one among themselves in equal parts. So naming more
//! sub-tenants, or a new one for each request, gives no more of the engine. Counters are compared by
//! whole quanta; within a quantum the best state wins, whosever it is, so that fairness does not
//! cost locality at each step.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use itertools::{Either, Itertools};

use crate::read::{SegmentKey, TenantId};

use level::Level;

mod level;

/// Tenants whose counter is remembered while nothing of theirs waits.
pub(crate) const REMEMBERED_MAX: usize = 4_096;

/// The same of the sub-tenants of one.
const SUBS_REMEMBERED_MAX: usize = 256;

/// Parts of a token in which service is counted, so that a weight divides it finely.
const PARTS: u64 = 1_000;

/// What a state is ordered by within a tenant: the least work a waiting read first, then the oldest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    /// Unique tokens to compute a waiting read, in parts.
    pub(crate) work: u64,
    /// Number of arrival of the oldest that waits.
    pub(crate) number: u64,
    pub(crate) key: SegmentKey,
}

impl Rank {
    pub(crate) fn new(tokens: u64, reads: usize, number: u64, key: SegmentKey) -> Self {
        let work = tokens.saturating_mul(PARTS) / (reads as u64).max(1);
        Self { work, number, key }
    }
}

/// All that waits in one lane, in order.
#[derive(Debug)]
pub(crate) struct LaneOrder {
    quantum_tokens: u64,
    /// Tenants with a key: what they were served, divided by their weight.
    level: Level,
    /// What waits for them, by the same names, and what is remembered of their sub-tenants.
    payers: BTreeMap<Arc<str>, Payer>,
    /// States, by the oldest that waits for each.
    ages: BTreeSet<(u64, SegmentKey, TenantId)>,
}

/// What waits for a tenant with a key.
#[derive(Debug)]
struct Payer {
    /// Its sub-tenants and itself, each as one of them.
    level: Level,
    /// States of those of them for whom something waits.
    groups: BTreeMap<Arc<str>, BTreeSet<Rank>>,
}

impl Payer {
    fn new() -> Self {
        Self { level: Level::new(SUBS_REMEMBERED_MAX), groups: BTreeMap::new() }
    }

    /// All of its states that wait, best first.
    fn order(&self, quantum: u64) -> impl Iterator<Item = &Rank> {
        if let (1, Some(only)) = (self.groups.len(), self.groups.values().next()) {
            return Either::Left(only.iter());
        }
        let quanta = self.level.quanta(quantum);
        Either::Right(
            quanta.flat_map(|names| names.filter_map(|name| self.groups.get(name)).kmerge()),
        )
    }
}

impl LaneOrder {
    pub(crate) fn new(quantum_tokens: u64) -> Self {
        let level = Level::new(REMEMBERED_MAX);
        Self { quantum_tokens, level, payers: BTreeMap::new(), ages: BTreeSet::new() }
    }

    /// Puts `new` in the place of `old`.
    pub(crate) fn replace(&mut self, tenant: &TenantId, old: Option<Rank>, new: Option<Rank>) {
        if old == new {
            return;
        }
        if let Some(old) = old {
            self.ages.remove(&(old.number, old.key, tenant.clone()));
        }
        if let Some(new) = new {
            self.ages.insert((new.number, new.key, tenant.clone()));
            self.insert(tenant, new);
        }
        if let Some(old) = old {
            self.remove(tenant, &old);
        }
    }

    /// Counts service: for the tenant with the key by its weight, and among its sub-tenants.
    pub(crate) fn charge(&mut self, tenant: &TenantId, tokens: u64, weight: u32) {
        let parts = tokens.saturating_mul(PARTS);
        if let Some(payer) = self.payers.get_mut(tenant.payer()) {
            payer.level.charge(&tenant.0, parts);
        }
        let forgotten = self.level.charge(tenant.payer(), parts / u64::from(weight.max(1)));
        self.forget(&forgotten);
    }

    /// All states that wait, best first.
    pub(crate) fn order(&self) -> impl Iterator<Item = SegmentKey> {
        let quantum = self.quantum_tokens * PARTS;
        let ranks = move |name| self.payers.get(name).map(|payer: &Payer| payer.order(quantum));
        let quanta = self.level.quanta(quantum);
        quanta.flat_map(move |names| names.filter_map(ranks).kmerge()).map(|rank| rank.key)
    }

    /// All states that wait, the oldest first; one comes once for each tenant.
    pub(crate) fn by_age(&self) -> impl Iterator<Item = SegmentKey> {
        self.ages.iter().map(|(_, key, _)| *key)
    }

    /// The largest difference, in tokens, between what two tenants with a key, for whom something
    /// waits, were served.
    pub(crate) fn gap_tokens(&self) -> u64 {
        self.level.gap() / PARTS
    }

    fn insert(&mut self, tenant: &TenantId, rank: Rank) {
        if !self.payers.contains_key(tenant.payer()) {
            self.payers.insert(tenant.to_payer().0, Payer::new());
        }
        let Some(payer) = self.payers.get_mut(tenant.payer()) else { return };
        if payer.groups.is_empty() {
            self.level.enter(&tenant.to_payer().0);
        }
        let groups = payer.groups.entry(Arc::clone(&tenant.0)).or_default();
        if groups.is_empty() {
            payer.level.enter(&tenant.0);
        }
        groups.insert(rank);
    }

    fn remove(&mut self, tenant: &TenantId, rank: &Rank) {
        let Some(payer) = self.payers.get_mut(tenant.payer()) else { return };
        let Some(groups) = payer.groups.get_mut(&tenant.0) else { return };
        groups.remove(rank);
        if !groups.is_empty() {
            return;
        }
        payer.groups.remove(&tenant.0);
        payer.level.leave(&tenant.0);
        if payer.groups.is_empty() {
            let forgotten = self.level.leave(tenant.payer());
            self.forget(&forgotten);
        }
    }

    /// Forgets the sub-tenants of those that are forgotten.
    fn forget(&mut self, payers: &[Arc<str>]) {
        for payer in payers {
            self.payers.remove(payer);
        }
    }
}

#[cfg(test)]
mod tests;
