//! Who comes next of a few by what each was served, with lift.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Counters of names that are compared with each other.
#[derive(Debug)]
pub(super) struct Level {
    remembered_max: usize,
    served: BTreeMap<Arc<str>, u64>,
    /// Names for which something waits, by what they were served.
    active: BTreeSet<(u64, Arc<str>)>,
    /// The others, by the same; none of them would be lifted.
    idle: BTreeSet<(u64, Arc<str>)>,
    /// What a name that comes is lifted to: what those had who were chosen last, at most what all
    /// have who wait. Not what these have: who asks for one thing after the other leaves and comes
    /// each time, and would lose what its weight gives it.
    clock: u64,
}

impl Level {
    /// * `remembered_max`: names whose counter is kept while nothing waits for them.
    pub(super) fn new(remembered_max: usize) -> Self {
        let (served, active, idle) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { remembered_max, served, active, idle, clock: 0 }
    }

    /// Something waits for a name for which nothing did: it gets no credit for that time.
    pub(super) fn enter(&mut self, name: &Arc<str>) {
        let served = self.served.entry(Arc::clone(name)).or_default();
        self.idle.remove(&(*served, Arc::clone(name)));
        *served = self.clock.max(*served);
        self.active.insert((*served, Arc::clone(name)));
    }

    /// Nothing waits for it any more; who is forgotten.
    pub(super) fn leave(&mut self, name: &str) -> Vec<Arc<str>> {
        let Some((name, served)) = self.served.get_key_value(name) else { return Vec::new() };
        let place = (*served, Arc::clone(name));
        self.active.remove(&place);
        self.idle.insert(place);
        self.forget_idle()
    }

    /// Counts service; who is forgotten.
    pub(super) fn charge(&mut self, name: &str, parts: u64) -> Vec<Arc<str>> {
        let Some((name, before)) = self.served.get_key_value(name) else { return Vec::new() };
        let (before, name) = (*before, Arc::clone(name));
        let after = before.saturating_add(parts);
        self.served.insert(Arc::clone(&name), after);
        let least = self.active.first().map_or(before, |(served, _)| before.min(*served));
        self.clock = self.clock.max(least);
        if self.active.remove(&(before, Arc::clone(&name))) {
            self.active.insert((after, name));
        } else {
            self.idle.remove(&(before, Arc::clone(&name)));
            self.idle.insert((after, name));
        }
        self.forget_idle()
    }

    /// Those for whom something waits, in groups between which lies a quantum, served least first.
    pub(super) fn quanta(
        &self,
        quantum: u64,
    ) -> impl Iterator<Item = impl Iterator<Item = &Arc<str>>> {
        let mut from = self.active.first().map(|(served, _)| served / quantum * quantum);
        std::iter::from_fn(move || {
            let (first, end) = (from?, from? + quantum);
            from = self.from(end).next().map(|(served, _)| served / quantum * quantum);
            let names = self.from(first).take_while(move |(served, _)| *served < end);
            Some(names.map(|(_, name)| name))
        })
    }

    /// The largest difference between what two, for whom something waits, were served.
    pub(super) fn gap(&self) -> u64 {
        let ends = self.active.first().zip(self.active.last());
        ends.map_or(0, |((least, _), (most, _))| most - least)
    }

    /// Names whose counter is known.
    #[cfg(test)]
    pub(super) fn known(&self) -> usize {
        self.served.len()
    }

    /// Those for whom something waits and who were served at least `parts`.
    fn from(&self, parts: u64) -> impl Iterator<Item = &(u64, Arc<str>)> {
        self.active.range((parts, Arc::from(""))..)
    }

    /// Forgets those for whom nothing waits and who would be lifted anyway, and of too many those
    /// who were served least.
    fn forget_idle(&mut self) -> Vec<Arc<str>> {
        let mut forgotten = Vec::new();
        while let Some((served, _)) = self.idle.first()
            && (*served <= self.clock || self.idle.len() > self.remembered_max)
            && let Some((_, name)) = self.idle.pop_first()
        {
            self.served.remove(&name);
            forgotten.push(name);
        }
        forgotten
    }
}
