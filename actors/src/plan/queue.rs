//! What waits: rows grouped by state, groups ordered by lane, tenant and work.
//!
//! A group is everything that waits on one state, whichever decision it comes from. A row is one
//! forward pass of a suffix; equal reads share it. A row that has waited long stands one lane higher
//! than it was asked in, but never in the urgent one.

mod group;
mod pieces;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::config::Ranking;
use crate::plan::DecisionId;
use crate::plan::fair::LaneOrder;
use crate::plan::path::PathSegment;
use crate::read::{Lane, ReadSpec, SegmentKey, TenantId};

use group::question_of;
pub(crate) use group::{Asker, Group, Lease, Place, QueuedRow, QueuedWant};
use pieces::Pieces;

/// All groups.
#[derive(Debug)]
pub(crate) struct Queue {
    ranking: Ranking,
    groups: BTreeMap<SegmentKey, Group>,
    lanes: [LaneOrder; 4],
    /// Groups that are leased; among them are all that could run now.
    leased: BTreeSet<SegmentKey>,
    /// Rows that are to be raised, by when they were admitted.
    rising: BTreeSet<(Instant, SegmentKey, u64)>,
    arrivals: u64,
    /// Reads that wait, by the lane that was asked for.
    waiting: [usize; 4],
    /// By how many reads each tenant's have grown since this was last taken.
    changes: BTreeMap<TenantId, isize>,
    /// Suffix tokens that wait, by lane.
    suffixes: [u64; 4],
    /// Prefix tokens that wait.
    prefixes: Pieces,
    wants: usize,
}

impl Queue {
    pub(crate) fn new(quantum_tokens: u64, ranking: Ranking) -> Self {
        Self {
            ranking,
            groups: BTreeMap::new(),
            lanes: std::array::from_fn(|_| LaneOrder::new(quantum_tokens)),
            leased: BTreeSet::new(),
            rising: BTreeSet::new(),
            arrivals: 0,
            waiting: [0; 4],
            changes: BTreeMap::new(),
            suffixes: [0; 4],
            prefixes: Pieces::default(),
            wants: 0,
        }
    }

    pub(crate) fn group(&self, key: SegmentKey) -> Option<&Group> {
        self.groups.get(&key)
    }

    pub(crate) fn group_mut(&mut self, key: SegmentKey) -> Option<&mut Group> {
        self.groups.get_mut(&key)
    }

    /// The group of a state; a new one is told how many prefix tokens are to be computed.
    pub(crate) fn group_or_new(
        &mut self,
        path: Vec<PathSegment>,
        key: SegmentKey,
        missing: u32,
    ) -> &mut Group {
        self.groups.entry(key).or_insert_with(|| Group::new(path, missing))
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (SegmentKey, &Group)> {
        self.groups.iter().map(|(key, group)| (*key, group))
    }

    /// Groups that are leased.
    pub(crate) fn leased(&self) -> impl Iterator<Item = (SegmentKey, &Group)> {
        self.leased.iter().filter_map(|key| Some((*key, self.groups.get(key)?)))
    }

    pub(crate) fn remove_group(&mut self, key: SegmentKey) -> Option<Group> {
        self.leased.remove(&key);
        let group = self.groups.remove(&key)?;
        debug_assert!(group.ranks.is_empty(), "a group is removed while something waits in it");
        Some(group)
    }

    /// Groups with work in `lane`, best first, or oldest first; a group may come once for each tenant.
    pub(crate) fn order_in(
        &self,
        lane: Lane,
        by_age: bool,
    ) -> impl Iterator<Item = (Lane, SegmentKey)> {
        let order = &self.lanes[lane as usize];
        let (aged, best) =
            if by_age { (Some(order.by_age()), None) } else { (None, Some(order.order())) };
        let keys = aged.into_iter().flatten().chain(best.into_iter().flatten());
        keys.map(move |key| (lane, key))
    }

    /// When the oldest row in `lane` was admitted.
    pub(crate) fn oldest_in(&self, lane: Lane) -> Option<Instant> {
        let group = self.groups.get(&self.lanes[lane as usize].by_age().next()?)?;
        group.rows_in(lane).next()?.1.admitted()
    }

    pub(crate) fn waiting(&self) -> [usize; 4] {
        self.waiting
    }

    /// By how many reads what waits of each tenant has grown since the last call.
    pub(crate) fn take_changes(&mut self) -> BTreeMap<TenantId, isize> {
        std::mem::take(&mut self.changes)
    }

    /// Reads that wait, wants among them, by the lane in which they stand and on whose account.
    pub(crate) fn waiting_by_tenant(&self) -> BTreeMap<(Lane, &TenantId), usize> {
        let mut waiting = BTreeMap::new();
        for ((lane, tenant), tally) in self.groups.values().flat_map(|group| &group.tally) {
            *waiting.entry((*lane, tenant)).or_insert(0) += tally.reads;
        }
        waiting
    }

    /// Unique tokens that wait, by lane: suffixes, and each block of a prefix once, in its best lane.
    pub(crate) fn tokens(&self) -> [u64; 4] {
        let prefixes = self.prefixes.tokens();
        std::array::from_fn(|lane| self.suffixes[lane] + prefixes[lane])
    }

    /// States that are wanted though no read may need them.
    pub(crate) fn wants(&self) -> usize {
        self.wants
    }

    /// The largest gap between two tenants in one lane, see [`LaneOrder::gap_tokens`].
    pub(crate) fn gap_tokens(&self) -> u64 {
        self.lanes.iter().map(LaneOrder::gap_tokens).max().unwrap_or(0)
    }

    pub(crate) fn next_place(&mut self, lane: Lane) -> Place {
        self.arrivals += 1;
        (lane, self.arrivals)
    }

    /// Counts tokens that a tenant is served in a lane.
    pub(crate) fn charge(&mut self, lane: Lane, tenant: &TenantId, tokens: u64, weight: u32) {
        self.lanes[lane as usize].charge(tenant, tokens, weight);
    }

    pub(crate) fn set_lease(&mut self, key: SegmentKey, lease: Lease) {
        let Some(group) = self.groups.get_mut(&key) else { return };
        if lease == Lease::Granted {
            self.leased.insert(key);
        } else {
            self.leased.remove(&key);
        }
        group.lease = lease;
    }

    /// Says how many prefix tokens of a group are to be computed.
    pub(crate) fn set_missing(&mut self, key: SegmentKey, missing: u32) {
        let changed = self.groups.get_mut(&key).filter(|group| group.missing != missing);
        if let Some(group) = changed {
            group.missing = missing;
            self.reindex(key);
        }
    }

    /// Adds a read; an equal one that waits takes it in.
    pub(crate) fn push(&mut self, key: SegmentKey, spec: ReadSpec, asker: Asker) {
        let Some(group) = self.groups.get_mut(&key) else { return };
        count(&mut self.changes, [&asker], 1);
        let question = question_of(&spec);
        let place = group.questions.get(&question).copied();
        let joined = place.and_then(|place| self.remove_row(key, place));
        let mut row = joined.unwrap_or_else(|| QueuedRow {
            spec,
            askers: Vec::new(),
            attempts: 0,
            raised: false,
        });
        row.askers.push(asker);
        self.give_back(key, row);
    }

    /// Puts back a row whose step failed, at its old place; it is to run alone, and is not joined.
    pub(crate) fn put_back(&mut self, key: SegmentKey, row: QueuedRow) {
        if self.groups.contains_key(&key) {
            count(&mut self.changes, &row.askers, 1);
        }
        self.insert_row(key, row);
    }

    fn insert_row(&mut self, key: SegmentKey, row: QueuedRow) {
        let Some(place) = row.place() else { return };
        let Some(group) = self.groups.get_mut(&key) else { return };
        for asker in &row.askers {
            self.waiting[asker.place.0 as usize] += 1;
        }
        if !row.raised && place.0 > place.0.raised() {
            self.rising.extend(row.admitted().map(|admitted| (admitted, key, place.1)));
        }
        group.count_row(place, &row, true);
        group.rows.insert(place, row);
        self.reindex(key);
    }

    /// Takes a row out, to run it, to end it or to change it.
    pub(crate) fn take(&mut self, key: SegmentKey, place: Place) -> Option<QueuedRow> {
        let row = self.remove_row(key, place)?;
        count(&mut self.changes, &row.askers, -1);
        self.reindex(key);
        Some(row)
    }

    fn remove_row(&mut self, key: SegmentKey, place: Place) -> Option<QueuedRow> {
        let group = self.groups.get_mut(&key)?;
        let row = group.rows.remove(&place)?;
        let question = question_of(&row.spec);
        if group.questions.get(&question) == Some(&place) {
            group.questions.remove(&question);
        }
        for asker in &row.askers {
            self.waiting[asker.place.0 as usize] -= 1;
        }
        if let Some(admitted) = row.admitted() {
            self.rising.remove(&(admitted, key, place.1));
        }
        group.count_row(place, &row, false);
        Some(row)
    }

    /// Takes all rows of a group out.
    pub(crate) fn take_all(&mut self, key: SegmentKey) -> Vec<QueuedRow> {
        let places: Vec<_> = self
            .groups
            .get(&key)
            .map(|group| group.rows.keys().copied().collect())
            .unwrap_or_default();
        let rows: Vec<_> =
            places.into_iter().filter_map(|place| self.remove_row(key, place)).collect();
        count(&mut self.changes, rows.iter().flat_map(|row| &row.askers), -1);
        self.reindex(key);
        rows
    }

    /// Takes the reads of one decision out; rows that others ask for stay.
    pub(crate) fn take_decision(&mut self, key: SegmentKey, decision: DecisionId) -> Vec<Asker> {
        let is_theirs = |asker: &Asker| asker.read.decision == decision;
        let Some(group) = self.groups.get(&key) else { return Vec::new() };
        let theirs = group.rows.iter().filter(|(_, row)| row.askers.iter().any(is_theirs));
        let places: Vec<_> = theirs.map(|(place, _)| *place).collect();
        let mut taken = Vec::new();
        for place in places {
            let Some(mut row) = self.remove_row(key, place) else { continue };
            taken.extend(row.askers.extract_if(.., |asker| is_theirs(asker)));
            self.give_back(key, row);
        }
        count(&mut self.changes, &taken, -1);
        self.reindex(key);
        taken
    }

    /// Puts a row back that was only taken to change it.
    fn give_back(&mut self, key: SegmentKey, row: QueuedRow) {
        let (question, place) = (question_of(&row.spec), row.place());
        let can_be_joined = row.attempts == 0;
        self.insert_row(key, row);
        if let (true, Some(place), Some(group)) = (can_be_joined, place, self.groups.get_mut(&key))
        {
            group.questions.insert(question, place);
        }
    }

    /// Raises rows that were admitted before `now - after` by one lane.
    pub(crate) fn raise(&mut self, after: Duration, now: Instant) {
        while let Some((admitted, key, number)) = self.rising.first().copied() {
            if now.saturating_duration_since(admitted) < after {
                return;
            }
            self.rising.pop_first();
            let places = [Lane::Batch, Lane::Idle].map(|lane| (lane, number));
            let mut rows = places.into_iter().filter_map(|place| self.remove_row(key, place));
            if let Some(mut row) = rows.next() {
                row.raised = true;
                self.give_back(key, row);
            }
        }
    }

    /// Sets or clears a group's want.
    pub(crate) fn set_want(&mut self, key: SegmentKey, want: Option<QueuedWant>) {
        if let Some(group) = self.groups.get_mut(&key) {
            self.wants += usize::from(want.is_some());
            group.count_want(false);
            self.wants -= usize::from(std::mem::replace(&mut group.want, want).is_some());
            group.count_want(true);
            self.reindex(key);
        }
    }

    fn reindex(&mut self, key: SegmentKey) {
        let Some(group) = self.groups.get_mut(&key) else { return };
        let mut old = std::mem::take(&mut group.ranks);
        let new = group.ranks_now(key, self.ranking);
        for (at, rank) in &new {
            self.lanes[at.0 as usize].replace(&at.1, old.remove(at), Some(*rank));
        }
        for ((lane, tenant), rank) in old {
            self.lanes[lane as usize].replace(&tenant, Some(rank), None);
        }
        group.ranks = new;

        let suffixes = group.suffixes_now();
        let before = std::mem::replace(&mut group.suffixes, suffixes);
        for ((total, new), old) in self.suffixes.iter_mut().zip(suffixes).zip(before) {
            *total = *total - old + new;
        }
        let need = group.need_now();
        let before = std::mem::replace(&mut group.need, need);
        self.prefixes.replace(&group.path, before, need);
    }
}

/// Counts reads that came or left for their tenants.
fn count<'a>(
    changes: &mut BTreeMap<TenantId, isize>,
    askers: impl IntoIterator<Item = &'a Asker>,
    by: isize,
) {
    for asker in askers {
        if let Some(change) = changes.get_mut(&asker.tenant) {
            *change += by;
        } else {
            changes.insert(asker.tenant.clone(), by);
        }
    }
}
