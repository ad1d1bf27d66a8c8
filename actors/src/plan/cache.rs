//! The cache's decisions: the residency ledger and the states that are wanted without a read.
//!
//! A want is a state that is to become resident for a prewarm or a registration. Wants are joined
//! by state; the scheduler computes them in the best lane of their members.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::config::{CacheConfig, Register};
use crate::engine::{Caps, Epoch, Segment};
use crate::error::{ReadError, RejectReason};
use crate::plan::path::path_of;
use crate::plan::residency::Residency;
use crate::prewarm::{PinHandle, PrewarmOutcome};
use crate::read::{Lane, Prefix, SegmentKey, TenantId};
use crate::snapshot::ResidencyView;

/// A refused prewarm is told to come back after this.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What the registration actor is told of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Word {
    /// It is resident and stays.
    Registered,
    /// It has to be computed; that waits until the engine is idle.
    Deferred,
    /// Its computation has begun.
    Started,
    /// It will not be kept.
    Dropped,
    /// The engine failed on it.
    Failed,
}

/// What the cache actor is to do.
#[derive(Debug, Clone)]
pub(crate) enum CacheEffect {
    /// Have the scheduler compute a state, or raise the lane of one it was asked for.
    Want { prefix: Prefix, tenant: TenantId, lane: Lane, is_registration: bool },
    /// Nobody wants it any more.
    Unwant { key: SegmentKey },
    /// Answer the prewarm with this ticket.
    Answer { ticket: u64, result: Result<PrewarmOutcome, ReadError> },
    /// Tell the registration actor.
    Tell { key: SegmentKey, word: Word },
}

/// A prewarm that came in.
#[derive(Debug, Clone)]
pub(crate) struct PrewarmAsk {
    pub(crate) ticket: u64,
    pub(crate) tenant: TenantId,
    pub(crate) prefix: Prefix,
    pub(crate) lane: Lane,
    pub(crate) ttl: Option<Duration>,
    pub(crate) wait: bool,
    pub(crate) deadline: Option<Instant>,
}

#[derive(Debug)]
struct Want {
    prefix: Prefix,
    /// Who wanted it first.
    tenant: TenantId,
    lane: Lane,
    registration: bool,
    prewarms: Vec<Member>,
}

/// One prewarm that waits for a state.
#[derive(Debug)]
struct Member {
    /// `None` once it has been answered with "pending".
    ticket: Option<u64>,
    tenant: TenantId,
    ttl: Duration,
    since: Instant,
    deadline: Option<Instant>,
    outcome: PrewarmOutcome,
}

/// Ledger and wants.
#[derive(Debug)]
pub(crate) struct CacheCore<S> {
    pub(crate) residency: Residency<S>,
    wants: BTreeMap<SegmentKey, Want>,
    config: CacheConfig,
    draining: bool,
}

impl<S: Segment> CacheCore<S> {
    /// With registration on, what was computed stays when its last lease ends.
    pub(crate) fn new(caps: Caps, config: CacheConfig, when: Register, epoch: Epoch) -> Self {
        let retains = when == Register::After;
        let residency = Residency::new(caps, config.clone(), retains, epoch);
        Self { residency, wants: BTreeMap::new(), config, draining: false }
    }

    /// Pins a state that is resident, or wants one that is not.
    pub(crate) fn prewarm(&mut self, ask: PrewarmAsk, now: Instant) -> Vec<CacheEffect> {
        let ticket = ask.ticket;
        let answer = |result| vec![CacheEffect::Answer { ticket, result }];
        if self.draining {
            return answer(Err(ReadError::Draining));
        }
        let (key, path) = (ask.prefix.state.key, path_of(&ask.prefix));
        let absent = PrewarmOutcome {
            prompt_tokens: ask.prefix.tokens(),
            reused: self.residency.held(&path),
            stored: false,
            pinned: false,
            pending: false,
            expires_at: None,
            pin: PinHandle(key),
            tier: self.residency.tier(),
        };
        let ttl = ask.ttl.unwrap_or(self.config.prewarm_ttl).min(self.config.prewarm_ttl_max);
        if self.residency.keep(&path) {
            let until = self.residency.pin(&path, (&ask.tenant, ttl), now);
            return answer(Ok(absent.stored(until)));
        }
        if !self.residency.could_hold(&path) {
            return answer(Ok(absent));
        }
        if let Err(error) = self.has_room_for(key) {
            return answer(Err(error));
        }
        let (ticket, tenant) = (ask.wait.then_some(ticket), ask.tenant.clone());
        let (since, deadline) = (now, ask.deadline);
        let member = Member { ticket, tenant, ttl, since, deadline, outcome: absent };
        let mut effects = self.want(ask.prefix, ask.tenant, ask.lane, Some(member));
        if !ask.wait {
            effects.extend(answer(Ok(absent.pending())));
        }
        effects
    }

    /// Gives up a tenant's pin, and its prewarms of the state that were answered with "pending"; says
    /// whether there was either.
    pub(crate) fn unpin(&mut self, tenant: &TenantId, pin: PinHandle) -> (bool, Vec<CacheEffect>) {
        let PinHandle(key) = pin;
        let was_pinned = self.residency.unpin(key, tenant);
        let Some(want) = self.wants.get_mut(&key) else { return (was_pinned, Vec::new()) };
        let before = want.prewarms.len();
        want.prewarms.retain(|member| member.ticket.is_some() || member.tenant != *tenant);
        let was_pending = want.prewarms.len() < before;
        (was_pinned || was_pending, self.forget_unwanted(key))
    }

    /// Keeps a state whose response is out, at no cost if its pages are still there.
    pub(crate) fn promote(&mut self, prefix: Prefix, tenant: TenantId) -> Vec<CacheEffect> {
        let key = prefix.state.key;
        let tell = |word| CacheEffect::Tell { key, word };
        let path = path_of(&prefix);
        if self.residency.keep(&path) {
            let mut effects = self.unregister(key);
            effects.push(tell(Word::Registered));
            return effects;
        }
        let hopeless = self.draining || !self.residency.could_hold(&path);
        if hopeless || self.has_room_for(key).is_err() {
            return vec![tell(Word::Dropped)];
        }
        let mut effects = self.want(prefix, tenant, Lane::Idle, None);
        effects.push(tell(Word::Deferred));
        effects
    }

    /// The registration actor has given a state up.
    pub(crate) fn unregister(&mut self, key: SegmentKey) -> Vec<CacheEffect> {
        if let Some(want) = self.wants.get_mut(&key) {
            want.registration = false;
        }
        self.forget_unwanted(key)
    }

    /// The scheduler has begun to compute a wanted state.
    pub(crate) fn want_started(&self, key: SegmentKey) -> Vec<CacheEffect> {
        let registering = self.wants.get(&key).is_some_and(|want| want.registration);
        if registering { vec![CacheEffect::Tell { key, word: Word::Started }] } else { Vec::new() }
    }

    /// The scheduler is done with a wanted state, which is still leased if it was computed.
    pub(crate) fn want_ended(
        &mut self,
        key: SegmentKey,
        result: &Result<(), ReadError>,
        now: Instant,
    ) -> Vec<CacheEffect> {
        let Some(want) = self.wants.remove(&key) else { return Vec::new() };
        let path = path_of(&want.prefix);
        let stored = result.is_ok() && self.residency.keep(&path);
        // A state is one tenant's: the longest time that any of its prewarms asked for holds for all.
        let longest = want.prewarms.iter().max_by_key(|member| member.ttl).filter(|_| stored);
        let until =
            longest.and_then(|member| self.residency.pin(&path, (&member.tenant, member.ttl), now));
        let outcome = |member: &Member| match result {
            Ok(()) if stored => Ok(member.outcome.stored(until)),
            Ok(()) => Ok(member.outcome),
            Err(error) => Err(error.clone()),
        };
        let answers = want.prewarms.iter().filter_map(|member| {
            let ticket = member.ticket?;
            Some(CacheEffect::Answer { ticket, result: outcome(member) })
        });
        let mut effects: Vec<_> = answers.collect();
        if want.registration {
            let word = match result {
                Ok(()) if stored => Word::Registered,
                Err(ReadError::Engine(_)) => Word::Failed,
                Ok(()) | Err(_) => Word::Dropped,
            };
            effects.push(CacheEffect::Tell { key, word });
        }
        effects
    }

    /// Ends pins and prewarms whose time is over.
    pub(crate) fn tick(&mut self, now: Instant) -> Vec<CacheEffect> {
        self.residency.expire_pins(now);
        let mut effects = Vec::new();
        let keys: Vec<_> = self.wants.keys().copied().collect();
        for key in keys {
            if let Some(want) = self.wants.get_mut(&key) {
                effects.extend(want.expire(now));
            }
            effects.extend(self.forget_unwanted(key));
        }
        effects
    }

    /// Gives up all wants and takes no more.
    pub(crate) fn drain(&mut self) -> Vec<CacheEffect> {
        self.draining = true;
        let mut effects = Vec::new();
        for (key, want) in std::mem::take(&mut self.wants) {
            let tickets = want.prewarms.iter().filter_map(|member| member.ticket);
            effects.extend(
                tickets
                    .map(|ticket| CacheEffect::Answer { ticket, result: Err(ReadError::Draining) }),
            );
            if want.registration {
                effects.push(CacheEffect::Tell { key, word: Word::Dropped });
            }
            effects.push(CacheEffect::Unwant { key });
        }
        effects
    }

    pub(crate) fn view(&self) -> ResidencyView {
        let prewarms_waiting = self.wants.values().map(|want| want.prewarms.len()).sum();
        ResidencyView { prewarms_waiting, ..self.residency.view() }
    }

    fn has_room_for(&self, key: SegmentKey) -> Result<(), ReadError> {
        let (reads_waiting, reads_max) = (self.wants.len(), self.config.wants_max);
        if reads_waiting < reads_max || self.wants.contains_key(&key) {
            return Ok(());
        }
        let retry_after = RETRY_AFTER;
        Err(ReadError::Rejected(RejectReason::QueueFull { reads_waiting, reads_max, retry_after }))
    }

    /// Adds a prewarm, or without one a registration, to the want for a state.
    fn want(
        &mut self,
        prefix: Prefix,
        tenant: TenantId,
        lane: Lane,
        member: Option<Member>,
    ) -> Vec<CacheEffect> {
        let key = prefix.state.key;
        let is_new = !self.wants.contains_key(&key);
        let want = self.wants.entry(key).or_insert_with(|| Want {
            prefix,
            tenant,
            lane,
            registration: false,
            prewarms: Vec::new(),
        });
        let was_registration = want.prewarms.is_empty();
        want.registration |= member.is_none();
        want.prewarms.extend(member);
        let is_registration = want.prewarms.is_empty();
        let changed = lane < want.lane || was_registration != is_registration;
        want.lane = want.lane.min(lane);
        if !is_new && !changed {
            return Vec::new();
        }
        let (prefix, tenant) = (want.prefix.clone(), want.tenant.clone());
        vec![CacheEffect::Want { prefix, tenant, lane: want.lane, is_registration }]
    }

    fn forget_unwanted(&mut self, key: SegmentKey) -> Vec<CacheEffect> {
        let unwanted =
            self.wants.get(&key).is_some_and(|want| !want.registration && want.prewarms.is_empty());
        if !unwanted {
            return Vec::new();
        }
        self.wants.remove(&key);
        vec![CacheEffect::Unwant { key }]
    }
}

impl Want {
    /// Removes the prewarms whose deadline has passed, and answers those that wait.
    fn expire(&mut self, now: Instant) -> Vec<CacheEffect> {
        let is_over = |member: &Member| member.deadline.is_some_and(|deadline| deadline <= now);
        let over = self.prewarms.iter().filter(|member| is_over(member));
        let answers = over.filter_map(|member| {
            let waited = now.saturating_duration_since(member.since);
            let result = Err(ReadError::Expired { waited, spent: None });
            Some(CacheEffect::Answer { ticket: member.ticket?, result })
        });
        let effects = answers.collect();
        self.prewarms.retain(|member| !is_over(member));
        effects
    }
}
