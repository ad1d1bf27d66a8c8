//! Forming a step: which chunks and rows run next, within the budgets of tokens and rows.
//!
//! Groups are taken in order; one that does not fit is passed over, a bounded number of times. A
//! state that is not resident gets at most one run of chunks a step, in the best lane of those that
//! wait for it; rows follow in the same step when it completes the state. Idle work is taken only
//! when no other lane has anything that could run. Where something has waited long, its lane goes by age
//! in every other step, and at times comes first of all, so that no order leaves it behind for ever.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::engine::{PAGE_TOKENS, Segment};
use crate::plan::ReadId;
use crate::plan::path::PathSegment;
use crate::plan::queue::{Group, Lease, Place, Queue};
use crate::plan::residency::Reach;
use crate::plan::segments::Segments;
use crate::read::{Lane, SegmentKey};

/// Groups that are looked at for one step. What is leased is found beyond them, if need be: it could
/// run, and the memory it holds may be what the others wait for.
pub(crate) const VISITS_MAX: usize = 256;

/// Limits of one step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepLimits {
    pub(crate) tokens: u32,
    pub(crate) rows: u32,
    pub(crate) chunk_tokens: u32,
    pub(crate) look_ahead: usize,
}

/// The least tokens that a step is held down to: below it, products no longer fill the machine.
const STEP_TOKENS_FLOOR: u32 = 2 * PAGE_TOKENS;

impl StepLimits {
    /// The limits of a step that goes by age: whatever is oldest leaves half of it to the next.
    pub(crate) fn shared(self) -> Self {
        let half = (self.tokens / 2 / PAGE_TOKENS * PAGE_TOKENS).max(PAGE_TOKENS);
        Self { chunk_tokens: self.chunk_tokens.min(half), ..self }
    }

    /// The limits with which a step at this speed ends within about `target`; all of them while the
    /// speed is unknown.
    pub(crate) fn at(self, tokens_per_second: f64, target: Duration) -> Self {
        let fitting = tokens_per_second * target.as_secs_f64();
        // A saturating cast: more than fits is cut to the limit.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let fitting = if fitting > 0.0 { fitting as u32 } else { self.tokens };
        let pages = |tokens: u32| (tokens / PAGE_TOKENS * PAGE_TOKENS).max(STEP_TOKENS_FLOOR);
        let tokens = self.tokens.min(pages(fitting));
        Self { tokens, chunk_tokens: self.chunk_tokens.min(pages(fitting)), ..self }
    }
}

/// A run of state tokens to compute.
#[derive(Debug, Clone)]
pub(crate) struct DraftChunk {
    pub(crate) key: SegmentKey,
    /// The group that asked for it.
    pub(crate) group: SegmentKey,
    /// First token, counted from the segment's start.
    pub(crate) from: u32,
    pub(crate) tokens: u32,
    pub(crate) lane: Lane,
    /// The read on whose account it is; `None` for a want.
    pub(crate) charged: Option<ReadId>,
    pub(crate) is_registration: bool,
}

/// A step that is being formed, and the leases that it lacks.
#[derive(Debug)]
pub(crate) struct Draft {
    limits: StepLimits,
    tokens: u32,
    pub(crate) chunks: Vec<DraftChunk>,
    pub(crate) rows: Vec<(SegmentKey, Place)>,
    /// Groups whose lease is to be asked for, and whether the overflow allowance may be used.
    pub(crate) asks: Vec<(SegmentKey, Reach)>,
    /// Tokens drafted for each segment.
    drafted: BTreeMap<SegmentKey, u32>,
    /// First blocks of the chunks: another state that needs one of them waits for it.
    blocks: BTreeSet<SegmentKey>,
    /// Whether its only item must run alone.
    sealed: bool,
}

/// What the ledger looked like when a lease is considered.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Raised whenever memory may have become free.
    pub(crate) generation: u64,
    /// Whether a step runs; then nothing is taken beyond the budget.
    pub(crate) is_busy: bool,
    pub(crate) turn: Turn,
}

/// What of a step is out of the usual order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The lane that comes ahead of the more urgent ones.
    pub(crate) first: Option<Lane>,
    /// Lanes, by number, whose states come by age.
    pub(crate) by_age: [bool; 4],
}

/// Forms the best step for what waits now.
pub(crate) fn form<S: Segment>(
    queue: &Queue,
    segments: &Segments<S>,
    limits: StepLimits,
    moment: Moment,
) -> Draft {
    let mut draft = Draft::new(limits);
    let mut search = Search::default();
    for (lane, key) in candidates(queue, moment.turn).take(VISITS_MAX) {
        let idle_must_wait = lane == Lane::Idle
            && (search.foreground_left || draft.has_foreground() || draft.has_asks());
        // While nothing is found, the search goes on: what could run never waits for what cannot.
        let has_looked = search.passed >= limits.look_ahead && !draft.is_empty();
        if draft.is_full() || has_looked || idle_must_wait {
            break;
        }
        let Some(group) = queue.group(key).filter(|_| search.seen.insert((lane, key))) else {
            continue;
        };
        if !group.rows.is_empty() {
            search.first_with_rows.get_or_insert(key);
        }
        if group.lease == Lease::Granted {
            let placed = draft.place(group, key, lane, segments);
            search.passed += usize::from(!placed);
            search.foreground_left |= !placed && lane != Lane::Idle;
        } else {
            let is_first = search.first_with_rows == Some(key);
            let may_overflow = is_first && !moment.is_busy && !group.rows.is_empty();
            let reach = Reach { evicts_protected: lane <= Lane::Normal, may_overflow };
            draft.consider_lease(&group.lease, (key, reach), moment.generation);
        }
    }
    if draft.is_empty() && search.seen.len() >= VISITS_MAX {
        draft.place_any(queue, segments);
    }
    draft
}

/// What a search for work has come upon.
#[derive(Default)]
struct Search {
    seen: BTreeSet<(Lane, SegmentKey)>,
    /// Groups that could not run.
    passed: usize,
    foreground_left: bool,
    first_with_rows: Option<SegmentKey>,
}

/// Groups in the order in which they are looked at.
fn candidates(queue: &Queue, turn: Turn) -> impl Iterator<Item = (Lane, SegmentKey)> {
    let lanes = turn.first.into_iter().chain(Lane::ALL);
    lanes.flat_map(move |lane| queue.order_in(lane, turn.by_age[lane as usize]))
}

impl Draft {
    fn new(limits: StepLimits) -> Self {
        Self {
            limits,
            tokens: 0,
            chunks: Vec::new(),
            rows: Vec::new(),
            asks: Vec::new(),
            drafted: BTreeMap::new(),
            blocks: BTreeSet::new(),
            sealed: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty() && self.rows.is_empty()
    }

    /// Whether there is neither a step nor a lease to ask for.
    pub(crate) fn is_stuck(&self) -> bool {
        self.is_empty() && !self.has_asks()
    }

    fn has_asks(&self) -> bool {
        !self.asks.is_empty()
    }

    fn has_foreground(&self) -> bool {
        let idle = Lane::Idle;
        self.chunks.iter().any(|chunk| chunk.lane != idle)
            || self.rows.iter().any(|(_, (lane, _))| *lane != idle)
    }

    fn room(&self) -> u32 {
        self.limits.tokens.saturating_sub(self.tokens)
    }

    fn has_row_room(&self) -> bool {
        self.rows.len() < self.limits.rows as usize
    }

    fn is_full(&self) -> bool {
        self.sealed || self.room() == 0
    }

    /// Notes that a group's lease is to be asked for, unless it was refused and nothing changed.
    fn consider_lease(&mut self, lease: &Lease, ask: (SegmentKey, Reach), generation: u64) {
        if self.asks.len() >= self.limits.look_ahead {
            return;
        }
        let is_new = self.asks.iter().all(|(asked, _)| *asked != ask.0);
        if is_new && lease.is_worth_asking(generation, ask.1) {
            self.asks.push(ask);
        }
    }

    /// Takes something that is leased, wherever it stands in the order.
    fn place_any<S: Segment>(&mut self, queue: &Queue, segments: &Segments<S>) {
        let lanes = |(key, group)| Lane::ALL.into_iter().map(move |lane| (lane, key, group));
        for (lane, key, group) in queue.leased().flat_map(lanes) {
            if group.has_work_in(lane) && self.place(group, key, lane, segments) {
                return;
            }
        }
    }

    /// Takes what fits of a group in one lane; says whether anything did.
    fn place<S: Segment>(
        &mut self,
        group: &Group,
        key: SegmentKey,
        lane: Lane,
        segments: &Segments<S>,
    ) -> bool {
        let mut open = Vec::new();
        for segment in &group.path {
            let Some(held) = segments.get(segment.key) else { return false };
            let drafted = self.drafted.get(&segment.key).copied().unwrap_or(0);
            let remaining = held.remaining() - drafted;
            let next = held.next_block().filter(|_| remaining > 0);
            if remaining > 0 && drafted > 0 || next.is_some_and(|next| self.blocks.contains(&next))
            {
                return false;
            }
            if remaining > 0 {
                let (done, alone) = (held.done, held.attempts > 0);
                open.push(Open { segment, next, done, remaining, alone });
            }
        }
        if open.is_empty() {
            return self.place_rows(group, key, lane);
        }
        let account = Account::of(group, key, lane);
        if !self.place_chunks(&open, group, &account) {
            return false;
        }
        let completed = open.iter().all(|open| self.completes(open));
        if completed && !self.sealed {
            self.place_rows(group, key, lane);
        }
        true
    }

    fn completes(&self, open: &Open<'_>) -> bool {
        self.drafted.get(&open.segment.key) == Some(&open.remaining)
    }

    /// Takes chunks of the segments that are not complete; says whether there was room for one.
    fn place_chunks(&mut self, open: &[Open<'_>], group: &Group, account: &Account) -> bool {
        let alone = open.first().is_some_and(|open| open.alone);
        if alone && !self.is_empty() {
            return false;
        }
        let was_empty = self.is_empty();
        let mut left = self.chunk_limit(open, group, account.lane);
        let mut placed = false;
        for open in open {
            let tokens = open.cut(left, was_empty && !placed);
            if tokens == 0 || (open.alone && placed) {
                break;
            }
            self.take_chunk(open, tokens, account);
            placed = true;
            left = left.saturating_sub(tokens);
            if alone {
                self.sealed = true;
            }
            if alone || tokens < open.remaining {
                break;
            }
        }
        placed
    }

    /// How much of a state may run now: all of it if a row (or the room) allows to finish, else a
    /// chunk.
    fn chunk_limit(&self, open: &[Open<'_>], group: &Group, lane: Lane) -> u32 {
        let remaining: u32 = open.iter().map(|open| open.remaining).sum();
        let row = group.rows_in(lane).find(|(_, row)| row.attempts == 0);
        let suffix = row.map_or(0, |(_, row)| row.tokens());
        // A want in the idle lane stays small, so that a newcomer waits for one chunk at most.
        let may_finish = match row {
            Some(_) => self.has_row_room(),
            None => lane != Lane::Idle,
        };
        if may_finish && remaining.saturating_add(suffix) <= self.room() {
            return remaining;
        }
        self.limits.chunk_tokens.min(self.room())
    }

    fn take_chunk(&mut self, open: &Open<'_>, tokens: u32, account: &Account) {
        self.tokens += tokens;
        self.drafted.insert(open.segment.key, tokens);
        self.blocks.extend(open.next);
        self.chunks.push(DraftChunk {
            key: open.segment.key,
            group: account.group,
            from: open.done,
            tokens,
            lane: account.lane,
            charged: account.read,
            is_registration: account.is_registration,
        });
    }

    /// Takes the rows of one lane that fit; says whether any did.
    fn place_rows(&mut self, group: &Group, key: SegmentKey, lane: Lane) -> bool {
        let before = self.rows.len();
        for (place, row) in group.rows_in(lane) {
            if !self.has_row_room() || self.is_full() {
                break;
            }
            let alone = row.attempts > 0;
            let fits = !alone && row.tokens() <= self.room();
            if fits || self.is_empty() {
                self.tokens = self.tokens.saturating_add(row.tokens());
                self.rows.push((key, place));
                self.sealed = alone;
            }
        }
        self.rows.len() > before
    }
}

/// A segment that is not complete.
struct Open<'a> {
    segment: &'a PathSegment,
    /// The whole block that comes next.
    next: Option<SegmentKey>,
    done: u32,
    remaining: u32,
    /// Whether a step with it failed, so that it runs alone.
    alone: bool,
}

impl Open<'_> {
    /// Tokens of the next chunk, at most `left`: all that remain, or up to a page's end.
    ///
    /// With `forced`, one page is taken even when `left` is less: some step must go on.
    fn cut(&self, left: u32, forced: bool) -> u32 {
        if self.remaining <= left {
            return self.remaining;
        }
        let position = self.segment.start + self.done;
        let last_page_end = (position + left) / PAGE_TOKENS * PAGE_TOKENS;
        if last_page_end > position {
            return last_page_end - position;
        }
        let page_end = (position / PAGE_TOKENS + 1) * PAGE_TOKENS;
        if forced { self.remaining.min(page_end - position) } else { 0 }
    }
}

/// On whose account a chunk runs.
struct Account {
    group: SegmentKey,
    lane: Lane,
    read: Option<ReadId>,
    is_registration: bool,
}

impl Account {
    fn of(group: &Group, key: SegmentKey, lane: Lane) -> Self {
        let is_registration =
            group.rows.is_empty() && group.want.as_ref().is_some_and(|want| want.is_registration);
        Self { group: key, lane, read: group.first_waiter(), is_registration }
    }
}
