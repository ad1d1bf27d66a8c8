//! A want: a state that is to become resident though no read needs it, and who waits for it.
//!
//! Prewarms and a registration of one state are one want, so that it is computed once, in the best
//! lane of those who want it.

use std::time::{Duration, Instant};

use crate::error::{ReadError, Spent};
use crate::plan::cache::CacheEffect;
use crate::prewarm::PrewarmOutcome;
use crate::read::{Lane, Prefix, TenantId};

/// A state that is wanted.
#[derive(Debug)]
pub(super) struct Want {
    pub(super) prefix: Prefix,
    /// Who wanted it first.
    pub(super) tenant: TenantId,
    pub(super) registration: bool,
    pub(super) prewarms: Vec<Member>,
    /// When work on it began.
    pub(super) started: Option<Instant>,
    /// How the scheduler was last told to treat it.
    pub(super) told: Option<Standing>,
}

/// How a want is to be treated: its lane, and whether it is a registration only.
pub(super) type Standing = (Lane, bool);

/// One prewarm that waits for a state.
#[derive(Debug)]
pub(super) struct Member {
    /// `None` once it has been answered with "pending".
    pub(super) ticket: Option<u64>,
    pub(super) tenant: TenantId,
    pub(super) lane: Lane,
    pub(super) ttl: Duration,
    pub(super) since: Instant,
    pub(super) deadline: Option<Instant>,
    pub(super) outcome: PrewarmOutcome,
}

impl Want {
    pub(super) fn new(prefix: Prefix, tenant: TenantId) -> Self {
        let prewarms = Vec::new();
        Self { prefix, tenant, registration: false, prewarms, started: None, told: None }
    }

    /// `None` where nobody wants it any more.
    pub(super) fn standing(&self) -> Option<Standing> {
        let lane = self.prewarms.iter().map(|member| member.lane).min();
        match (lane, self.registration) {
            (Some(lane), _) => Some((lane, false)),
            (None, true) => Some((Lane::Idle, true)),
            (None, false) => None,
        }
    }

    /// Adds a prewarm. Those that nobody waits for are one, however many there were, so that their
    /// number has a limit.
    pub(super) fn join(&mut self, member: Member) {
        let is_like = |other: &&mut Member| {
            other.ticket.is_none() && member.ticket.is_none() && other.tenant == member.tenant
        };
        let Some(same) = self.prewarms.iter_mut().find(is_like) else {
            return self.prewarms.push(member);
        };
        same.lane = same.lane.min(member.lane);
        same.ttl = same.ttl.max(member.ttl);
        same.deadline = same.deadline.zip(member.deadline).map(|(one, other)| one.max(other));
    }

    /// Takes a prewarm out whose caller has gone.
    pub(super) fn leave(&mut self, ticket: u64) {
        self.prewarms.retain(|member| member.ticket != Some(ticket));
    }

    /// Takes out what nobody waits for.
    pub(super) fn keep_awaited(&mut self) {
        self.registration = false;
        self.prewarms.retain(|member| member.ticket.is_some());
    }

    /// Removes the prewarms whose deadline has passed, and answers those that wait.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<CacheEffect> {
        let is_over = |member: &Member| member.deadline.is_some_and(|deadline| deadline <= now);
        let over = self.prewarms.iter().filter(|member| is_over(member));
        let answers = over.filter_map(|member| {
            let waited = now.saturating_duration_since(member.since);
            let queue = self.queue_wait(member, now);
            let spent =
                Spent { queue, state: waited.saturating_sub(queue), engine: Duration::ZERO };
            let result = Err(ReadError::Expired { waited, spent: Some(spent) });
            Some(CacheEffect::Answer { ticket: member.ticket?, result })
        });
        let effects = answers.collect();
        self.prewarms.retain(|member| !is_over(member));
        effects
    }

    /// How the prewarms that wait are answered once the state was computed, with `tokens` on its
    /// account, and is pinned until then; `until` is `None` where it could not stay.
    pub(super) fn outcomes(
        &self,
        tokens: u32,
        stored: bool,
        until: Option<Instant>,
        now: Instant,
    ) -> Vec<CacheEffect> {
        let answers = self.prewarms.iter().enumerate().filter_map(|(rank, member)| {
            let computed = if rank == 0 { tokens } else { 0 };
            let queue_wait = self.queue_wait(member, now);
            let outcome = PrewarmOutcome { computed, queue_wait, ..member.outcome };
            let outcome = if stored { outcome.stored(until) } else { outcome.not_kept() };
            Some(CacheEffect::Answer { ticket: member.ticket?, result: Ok(outcome) })
        });
        answers.collect()
    }

    /// Ends the prewarms that wait with an error.
    pub(super) fn refusals(&self, error: &ReadError) -> Vec<CacheEffect> {
        let tickets = self.prewarms.iter().filter_map(|member| member.ticket);
        let answer = |ticket| CacheEffect::Answer { ticket, result: Err(error.clone()) };
        tickets.map(answer).collect()
    }

    /// How long a prewarm waited until work on it began.
    fn queue_wait(&self, member: &Member, now: Instant) -> Duration {
        let started = self.started.map_or(now, |started| started.max(member.since));
        started.saturating_duration_since(member.since)
    }
}
