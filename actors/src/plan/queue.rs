//! What waits: rows grouped by state, groups ordered by lane and arrival.
//!
//! A group is everything that waits on one state, whichever decision it comes from. A row is one
//! forward pass of a suffix; equal reads share it. Groups of a lane go by the oldest row of that
//! lane in them, so that reads which join a waiting state ride along. Order between tenants belongs
//! into the key of `order`, once it exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use crate::plan::path::{PathSegment, length};
use crate::plan::{DecisionId, ReadId};
use crate::read::{Lane, ReadSpec, SegmentKey};

/// Place of a row or a want: its lane, then its number of arrival, which is unique.
pub(crate) type Place = (Lane, u64);

/// One read that waits for a row.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) read: ReadId,
    pub(crate) place: Place,
    pub(crate) admitted: Instant,
    /// When work on it began.
    pub(crate) started: Option<Instant>,
    /// When its state was resident.
    pub(crate) ready: Option<Instant>,
    pub(crate) behind_registration: bool,
}

/// One row that waits; at least one read asks for it.
#[derive(Debug, Clone)]
pub(crate) struct QueuedRow {
    pub(crate) spec: ReadSpec,
    pub(crate) askers: Vec<Asker>,
    /// Steps with it that failed; it runs alone once there was one.
    pub(crate) attempts: u8,
}

impl QueuedRow {
    /// The best place of those who ask for it.
    pub(crate) fn place(&self) -> Option<Place> {
        let lane = self.askers.iter().map(|asker| asker.place.0).min()?;
        let number = self.askers.iter().map(|asker| asker.place.1).min()?;
        Some((lane, number))
    }

    pub(crate) fn tokens(&self) -> u32 {
        length(&self.spec.suffix)
    }
}

/// A state that is wanted though no read needs it.
#[derive(Debug, Clone)]
pub(crate) struct QueuedWant {
    pub(crate) place: Place,
    pub(crate) is_registration: bool,
    pub(crate) started: bool,
}

/// How a group stands with the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lease {
    /// It has none.
    Absent,
    /// It has asked; which of its segments were held when it did.
    Asked(Vec<bool>),
    /// It was refused in this generation of the ledger.
    Deferred { generation: u64, with_overflow: bool },
    /// Its path is leased.
    Granted,
}

/// What makes two reads of one state equal.
type Question = (Arc<[u32]>, Arc<[u32]>, bool);

/// Everything that waits on one state.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) path: Vec<PathSegment>,
    pub(crate) lease: Lease,
    /// Open decisions on the state; they hold its lease.
    pub(crate) decisions: BTreeSet<DecisionId>,
    pub(crate) rows: BTreeMap<Place, QueuedRow>,
    pub(crate) want: Option<QueuedWant>,
    /// Whether the last lease was asked for with the overflow allowance.
    pub(crate) overflow_asked: bool,
    /// Rows and chunks of it in the running step.
    pub(crate) in_step: usize,
    /// Where rows are that a further equal read may join.
    questions: BTreeMap<Question, Place>,
    /// Its entries in the order.
    indexed: Vec<Place>,
}

impl Group {
    fn new(path: Vec<PathSegment>) -> Self {
        Self {
            path,
            lease: Lease::Absent,
            decisions: BTreeSet::new(),
            rows: BTreeMap::new(),
            want: None,
            overflow_asked: false,
            in_step: 0,
            questions: BTreeMap::new(),
            indexed: Vec::new(),
        }
    }

    /// Whether anything waits.
    pub(crate) fn has_work(&self) -> bool {
        !self.rows.is_empty() || self.want.is_some()
    }

    /// Whether nothing needs the state any more.
    pub(crate) fn is_unused(&self) -> bool {
        self.decisions.is_empty() && !self.has_work() && self.in_step == 0
    }

    /// Rows that wait in `lane`, oldest first.
    pub(crate) fn rows_in(&self, lane: Lane) -> impl Iterator<Item = (Place, &QueuedRow)> {
        self.rows.range((lane, 0)..=(lane, u64::MAX)).map(|(place, row)| (*place, row))
    }

    /// The read that has waited longest; `None` if a want has waited longer.
    pub(crate) fn first_waiter(&self) -> Option<ReadId> {
        let askers = self.rows.values().flat_map(|row| &row.askers);
        let first = askers.min_by_key(|asker| asker.place.1)?;
        let want = self.want.as_ref().map_or(u64::MAX, |want| want.place.1);
        (first.place.1 < want).then_some(first.read)
    }

    fn places(&self) -> Vec<Place> {
        let first = |lane| self.rows_in(lane).next().map(|(place, _)| place);
        let mut places: Vec<_> = Lane::ALL.into_iter().filter_map(first).collect();
        places.extend(self.want.as_ref().map(|want| want.place));
        places
    }
}

/// All groups.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    groups: BTreeMap<SegmentKey, Group>,
    order: BTreeMap<Place, SegmentKey>,
    arrivals: u64,
    /// Reads that wait, by lane.
    waiting: [usize; 4],
    /// Suffix tokens of all rows.
    suffix_tokens: u64,
}

impl Queue {
    pub(crate) fn group(&self, key: SegmentKey) -> Option<&Group> {
        self.groups.get(&key)
    }

    pub(crate) fn group_mut(&mut self, key: SegmentKey) -> Option<&mut Group> {
        self.groups.get_mut(&key)
    }

    pub(crate) fn group_or_new(&mut self, path: Vec<PathSegment>, key: SegmentKey) -> &mut Group {
        self.groups.entry(key).or_insert_with(|| Group::new(path))
    }

    pub(crate) fn groups(&self) -> impl Iterator<Item = (SegmentKey, &Group)> {
        self.groups.iter().map(|(key, group)| (*key, group))
    }

    pub(crate) fn groups_mut(&mut self) -> impl Iterator<Item = &mut Group> {
        self.groups.values_mut()
    }

    pub(crate) fn remove_group(&mut self, key: SegmentKey) -> Option<Group> {
        let group = self.groups.remove(&key)?;
        debug_assert!(group.indexed.is_empty(), "a group is removed while something waits in it");
        Some(group)
    }

    /// Groups with work, best first; a group comes once for each lane in which it has some.
    pub(crate) fn order(&self) -> impl Iterator<Item = (Lane, SegmentKey)> {
        self.order.iter().map(|((lane, _), key)| (*lane, *key))
    }

    pub(crate) fn waiting(&self) -> [usize; 4] {
        self.waiting
    }

    pub(crate) fn suffix_tokens(&self) -> u64 {
        self.suffix_tokens
    }

    pub(crate) fn next_place(&mut self, lane: Lane) -> Place {
        self.arrivals += 1;
        (lane, self.arrivals)
    }

    /// Adds a read; an equal one that waits takes it in.
    pub(crate) fn push(&mut self, key: SegmentKey, spec: ReadSpec, asker: Asker) {
        let Some(group) = self.groups.get_mut(&key) else { return };
        let question = question_of(&spec);
        let joined = group.questions.get(&question).and_then(|place| group.rows.remove(place));
        let mut row = joined.unwrap_or_else(|| {
            self.suffix_tokens += u64::from(length(&spec.suffix));
            QueuedRow { spec, askers: Vec::new(), attempts: 0 }
        });
        self.waiting[asker.place.0 as usize] += 1;
        let own = asker.place;
        row.askers.push(asker);
        let place = row.place().unwrap_or(own);
        group.questions.insert(question, place);
        group.rows.insert(place, row);
        self.reindex(key);
    }

    /// Puts back a row whose step failed, at its old place; it is to run alone.
    pub(crate) fn put_back(&mut self, key: SegmentKey, row: QueuedRow) {
        let Some(place) = row.place() else { return };
        let Some(group) = self.groups.get_mut(&key) else { return };
        for asker in &row.askers {
            self.waiting[asker.place.0 as usize] += 1;
        }
        self.suffix_tokens += u64::from(row.tokens());
        group.rows.insert(place, row);
        self.reindex(key);
    }

    /// Takes a row out, to run it or to end it.
    pub(crate) fn take(&mut self, key: SegmentKey, place: Place) -> Option<QueuedRow> {
        let group = self.groups.get_mut(&key)?;
        let row = group.rows.remove(&place)?;
        let question = question_of(&row.spec);
        if group.questions.get(&question) == Some(&place) {
            group.questions.remove(&question);
        }
        for asker in &row.askers {
            self.waiting[asker.place.0 as usize] -= 1;
        }
        self.suffix_tokens -= u64::from(row.tokens());
        self.reindex(key);
        Some(row)
    }

    /// Takes all rows of a group out.
    pub(crate) fn take_all(&mut self, key: SegmentKey) -> Vec<QueuedRow> {
        let places: Vec<_> = self
            .groups
            .get(&key)
            .map(|group| group.rows.keys().copied().collect())
            .unwrap_or_default();
        places.into_iter().filter_map(|place| self.take(key, place)).collect()
    }

    /// Takes the reads of one decision out; rows that others ask for stay.
    pub(crate) fn take_decision(&mut self, key: SegmentKey, decision: DecisionId) -> Vec<Asker> {
        let is_theirs = |asker: &Asker| asker.read.decision == decision;
        let Some(group) = self.groups.get(&key) else { return Vec::new() };
        let theirs = group.rows.iter().filter(|(_, row)| row.askers.iter().any(is_theirs));
        let places: Vec<_> = theirs.map(|(place, _)| *place).collect();
        let mut taken = Vec::new();
        for place in places {
            let Some(mut row) = self.take(key, place) else { continue };
            taken.extend(row.askers.extract_if(.., |asker| is_theirs(asker)));
            self.give_back(key, row);
        }
        taken
    }

    /// Puts a row back that was only taken to change it.
    fn give_back(&mut self, key: SegmentKey, row: QueuedRow) {
        let (question, place) = (question_of(&row.spec), row.place());
        let can_be_joined = row.attempts == 0;
        self.put_back(key, row);
        if let (true, Some(place), Some(group)) = (can_be_joined, place, self.groups.get_mut(&key))
        {
            group.questions.insert(question, place);
        }
    }

    /// Sets or clears a group's want.
    pub(crate) fn set_want(&mut self, key: SegmentKey, want: Option<QueuedWant>) {
        if let Some(group) = self.groups.get_mut(&key) {
            group.want = want;
            self.reindex(key);
        }
    }

    fn reindex(&mut self, key: SegmentKey) {
        let Some(group) = self.groups.get_mut(&key) else { return };
        for place in group.indexed.drain(..) {
            self.order.remove(&place);
        }
        group.indexed = group.places();
        for place in &group.indexed {
            self.order.insert(*place, key);
        }
    }
}

fn question_of(spec: &ReadSpec) -> Question {
    (Arc::clone(&spec.suffix), Arc::clone(&spec.labels), spec.want_hidden)
}
