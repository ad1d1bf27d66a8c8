//! A group: everything that waits on one state, row by row, counted by lane and tenant.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pieces::Need;
use crate::config::Ranking;
use crate::plan::fair::Rank;
use crate::plan::path::{PathSegment, length};
use crate::plan::residency::Reach;
use crate::plan::{DecisionId, ReadId};
use crate::read::{Lane, ReadSpec, SegmentKey, TenantId};

/// Place of a row or a want: its lane, then its number of arrival, which is unique.
pub(crate) type Place = (Lane, u64);

/// One read that waits for a row.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    pub(crate) read: ReadId,
    pub(crate) tenant: TenantId,
    /// The lane that was asked for, and the number of arrival.
    pub(crate) place: Place,
    pub(crate) admitted: Instant,
    /// When work on it began.
    pub(crate) started: Option<Instant>,
    /// When its state was resident.
    pub(crate) ready: Option<Instant>,
    /// What its group's [`Group::state_time`] was when it came, and how much that grew until it was
    /// ready.
    pub(crate) state_from: Duration,
    pub(crate) state_time: Duration,
    pub(crate) behind_registration: bool,
}

/// One row that waits; at least one read asks for it.
#[derive(Debug, Clone)]
pub(crate) struct QueuedRow {
    pub(crate) spec: ReadSpec,
    pub(crate) askers: Vec<Asker>,
    /// Steps with it that failed; it runs alone once there was one.
    pub(crate) attempts: u8,
    /// Whether it has waited so long that it stands one lane higher than it was asked in.
    pub(crate) raised: bool,
}

impl Asker {
    /// Notes that its state is resident; `state_time` is its group's.
    pub(crate) fn is_ready(&mut self, now: Instant, state_time: Duration) {
        self.started.get_or_insert(now);
        if self.ready.is_none() {
            self.ready = Some(now);
            self.state_time = state_time.saturating_sub(self.state_from);
        }
    }
}

impl QueuedRow {
    /// The best place of those who ask for it.
    pub(crate) fn place(&self) -> Option<Place> {
        let lane = self.askers.iter().map(|asker| asker.place.0).min()?;
        let number = self.askers.iter().map(|asker| asker.place.1).min()?;
        Some((if self.raised { lane.raised() } else { lane }, number))
    }

    pub(crate) fn tokens(&self) -> u32 {
        length(&self.spec.suffix)
    }

    /// On whose account it runs: whoever asked first.
    pub(crate) fn tenant(&self) -> Option<&TenantId> {
        self.askers.first().map(|asker| &asker.tenant)
    }

    /// When the first of those who ask for it was admitted.
    pub(crate) fn admitted(&self) -> Option<Instant> {
        self.askers.iter().map(|asker| asker.admitted).min()
    }
}

/// A state that is wanted though no read needs it.
#[derive(Debug, Clone)]
pub(crate) struct QueuedWant {
    pub(crate) place: Place,
    pub(crate) tenant: TenantId,
    pub(crate) is_registration: bool,
    pub(crate) started: bool,
    /// Tokens that were computed on its account.
    pub(crate) computed: u32,
}

/// How a group stands with the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Lease {
    /// It has none.
    Absent,
    /// It has asked; which of its segments were held when it did.
    Asked(Vec<bool>),
    /// It was refused in this generation of the ledger.
    Deferred { generation: u64, reach: Reach },
    /// Its path is leased.
    Granted,
}

impl Lease {
    /// Whether asking may bring one: it was not refused as much since memory last became free.
    pub(crate) fn is_worth_asking(&self, now: u64, with: Reach) -> bool {
        match self {
            Self::Absent => true,
            Self::Deferred { generation, reach } => *generation != now || with.exceeds(*reach),
            Self::Asked(_) | Self::Granted => false,
        }
    }
}

/// What makes two reads of one state equal.
pub(super) type Question = (Arc<[u32]>, Arc<[u32]>, bool, bool);

/// What waits in one lane on one tenant's account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) reads: usize,
    pub(super) rows: usize,
    /// Suffix tokens.
    pub(super) tokens: u64,
}

/// Everything that waits on one state.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) path: Vec<PathSegment>,
    pub(crate) lease: Lease,
    /// Open decisions on the state; they hold its lease.
    pub(crate) decisions: BTreeSet<DecisionId>,
    pub(crate) rows: BTreeMap<Place, QueuedRow>,
    pub(crate) want: Option<QueuedWant>,
    /// Of what the last lease that was asked for might take its room.
    pub(crate) reach: Reach,
    /// Rows and chunks of it in the running step.
    pub(crate) in_step: usize,
    /// Time of all steps that had a chunk of its path.
    pub(crate) state_time: Duration,
    /// Prefix tokens that are to be computed, as far as is known.
    pub(super) missing: u32,
    /// Where rows are that a further equal read may join.
    pub(super) questions: BTreeMap<Question, Place>,
    pub(super) tally: BTreeMap<(Lane, TenantId), Tally>,
    /// Its entries in the lanes' orders.
    pub(super) ranks: BTreeMap<(Lane, TenantId), Rank>,
    /// Suffix tokens that it adds to each lane, as they are known to the queue.
    pub(super) suffixes: [u64; 4],
    /// What it needs of its prefix, as it is known to the queue.
    pub(super) need: Option<Need>,
}

impl Group {
    pub(super) fn new(path: Vec<PathSegment>, missing: u32) -> Self {
        Self {
            path,
            lease: Lease::Absent,
            decisions: BTreeSet::new(),
            rows: BTreeMap::new(),
            want: None,
            reach: Reach::BUDGET,
            in_step: 0,
            state_time: Duration::ZERO,
            missing,
            questions: BTreeMap::new(),
            tally: BTreeMap::new(),
            ranks: BTreeMap::new(),
            suffixes: [0; 4],
            need: None,
        }
    }

    /// Whether anything waits.
    pub(crate) fn has_work(&self) -> bool {
        !self.rows.is_empty() || self.want.is_some()
    }

    /// Whether anything waits in `lane`.
    pub(crate) fn has_work_in(&self, lane: Lane) -> bool {
        self.tally.keys().any(|(tallied, _)| *tallied == lane)
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
        let firsts = Lane::ALL.into_iter().filter_map(|lane| self.rows_in(lane).next());
        let (place, row) = firsts.min_by_key(|(place, _)| place.1)?;
        let want = self.want.as_ref().map_or(u64::MAX, |want| want.place.1);
        let first = row.askers.iter().min_by_key(|asker| asker.place.1)?;
        (place.1 < want).then_some(first.read)
    }

    /// On whose account its state is computed: the tenant of what waits in its best lane.
    pub(crate) fn owner(&self) -> Option<&TenantId> {
        self.tally.first_key_value().map(|((_, tenant), _)| tenant)
    }

    /// Tenants on whose account something waits, each with its best lane.
    pub(crate) fn tenants(&self) -> BTreeMap<TenantId, Lane> {
        // A later entry takes the place of an earlier one, so the best lane comes last.
        let entries = self.tally.keys().rev();
        entries.map(|(lane, tenant)| (tenant.clone(), *lane)).collect()
    }

    /// Takes a row, or takes it away, in the count of what waits.
    pub(super) fn count_row(&mut self, place: Place, row: &QueuedRow, is_added: bool) {
        let Some(tenant) = row.tenant().cloned() else { return };
        let change = Tally { reads: row.askers.len(), rows: 1, tokens: row.tokens().into() };
        self.count(place.0, tenant, change, is_added);
    }

    /// Likewise a want, which counts as one read without a suffix.
    pub(super) fn count_want(&mut self, is_added: bool) {
        let Some(QueuedWant { place, tenant, .. }) = self.want.clone() else { return };
        self.count(place.0, tenant, Tally { reads: 1, rows: 1, tokens: 0 }, is_added);
    }

    fn count(&mut self, lane: Lane, tenant: TenantId, change: Tally, is_added: bool) {
        let at = (lane, tenant);
        let mut tally = self.tally.get(&at).copied().unwrap_or_default();
        if is_added {
            tally.reads += change.reads;
            tally.rows += change.rows;
            tally.tokens += change.tokens;
        } else {
            tally.reads -= change.reads;
            tally.rows -= change.rows;
            tally.tokens -= change.tokens;
        }
        if tally.rows == 0 {
            self.tally.remove(&at);
        } else {
            self.tally.insert(at, tally);
        }
    }

    /// What it is to be ordered by, in each lane and for each tenant that has something there.
    pub(super) fn ranks_now(
        &self,
        key: SegmentKey,
        ranking: Ranking,
    ) -> BTreeMap<(Lane, TenantId), Rank> {
        let rank = |(at, tally): (&(Lane, TenantId), &Tally)| {
            let tokens = match ranking {
                Ranking::Work => u64::from(self.missing) + tally.tokens,
                Ranking::Arrival => 0,
            };
            let rank = Rank::new(tokens, tally.reads, self.first_number(at.0), key);
            (at.clone(), rank)
        };
        self.tally.iter().map(rank).collect()
    }

    /// Suffix tokens that it adds to each lane.
    pub(super) fn suffixes_now(&self) -> [u64; 4] {
        let mut tokens = [0; 4];
        for ((lane, _), tally) in &self.tally {
            tokens[*lane as usize] += tally.tokens;
        }
        tokens
    }

    /// What it needs of its prefix while something waits.
    pub(super) fn need_now(&self) -> Option<Need> {
        let ((lane, _), _) = self.tally.first_key_value()?;
        Some(Need { lane: *lane, missing: self.missing })
    }

    fn first_number(&self, lane: Lane) -> u64 {
        let row = self.rows_in(lane).next().map_or(u64::MAX, |(place, _)| place.1);
        let want = self.want.as_ref().filter(|want| want.place.0 == lane);
        want.map_or(row, |want| want.place.1.min(row))
    }
}

pub(super) fn question_of(spec: &ReadSpec) -> Question {
    (Arc::clone(&spec.suffix), Arc::clone(&spec.labels), spec.want_hidden, spec.want_mass)
}
