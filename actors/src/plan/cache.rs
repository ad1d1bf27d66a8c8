//! The cache's decisions: the residency ledger and the states that are wanted without a read.
//!
//! A want is a state that is to become resident for a prewarm or a registration. Wants are joined
//! by state; the scheduler computes them in the best lane of their members.

mod want;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::{CacheConfig, Register};
use crate::engine::{Caps, Epoch, Segment};
use crate::error::{ReadError, RejectReason};
use crate::limits::Limits;
use crate::plan::path::path_of;
use crate::plan::residency::Residency;
use crate::prewarm::{PinHandle, PrewarmOutcome};
use crate::read::{Lane, Prefix, SegmentKey, TenantId};
use crate::snapshot::{ResidencyDetails, ResidencyView};
use want::{Member, Want};

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
    Want { prefix: Prefix, missing: u32, tenant: TenantId, lane: Lane, is_registration: bool },
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
    /// When to come back, should it be refused.
    pub(crate) retry_after: Duration,
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

    /// These are the limits of tenants from now on.
    pub(crate) fn limit(&mut self, limits: Arc<Limits>) {
        self.residency.limit(limits);
    }

    /// Pins a state that is resident, or wants one that is not.
    pub(crate) fn prewarm(&mut self, ask: PrewarmAsk, now: Instant) -> Vec<CacheEffect> {
        let ticket = ask.ticket;
        let answer = |result| vec![CacheEffect::Answer { ticket, result }];
        let (key, path) = (ask.prefix.state.key, path_of(&ask.prefix));
        let absent = PrewarmOutcome {
            prompt_tokens: ask.prefix.tokens(),
            reused: self.residency.held(&path),
            computed: 0,
            queue_wait: Duration::ZERO,
            stored: false,
            pinned: false,
            pending: false,
            expires_at: None,
            pin: PinHandle(key),
            tier: self.residency.tier(&path, &ask.tenant),
        };
        let ttl = ask.ttl.unwrap_or(self.config.prewarm_ttl).min(self.config.prewarm_ttl_max);
        if !self.residency.could_hold(&path, &ask.tenant) {
            return answer(Ok(absent));
        }
        if self.residency.keep(&path) {
            let until = self.residency.pin(&path, (&ask.tenant, ttl), now);
            return answer(Ok(absent.stored(until)));
        }
        if self.draining && !ask.wait {
            // Nobody will be there to use it.
            return answer(Err(ReadError::Draining));
        }
        if let Err(reason) = self.has_room_for(&ask) {
            return answer(Err(ReadError::Rejected(reason)));
        }
        let member = Member {
            ticket: ask.wait.then_some(ticket),
            tenant: ask.tenant.clone(),
            lane: ask.lane,
            ttl,
            since: now,
            deadline: ask.deadline,
            outcome: absent,
        };
        self.want(ask.prefix, ask.tenant).join(member);
        let mut effects = self.settle(key);
        if !ask.wait {
            effects.extend(answer(Ok(absent.pending())));
        }
        effects
    }

    /// The caller of a prewarm has gone; its state is computed on only if somebody else wants it.
    pub(crate) fn leave(&mut self, key: SegmentKey, ticket: u64) -> Vec<CacheEffect> {
        if let Some(want) = self.wants.get_mut(&key) {
            want.leave(ticket);
        }
        self.settle(key)
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
        (was_pinned || was_pending, self.settle(key))
    }

    /// Keeps a state whose response is out, at no cost if its pages are still there.
    pub(crate) fn promote(&mut self, prefix: Prefix, tenant: TenantId) -> Vec<CacheEffect> {
        let key = prefix.state.key;
        let tell = |word| CacheEffect::Tell { key, word };
        let path = path_of(&prefix);
        let could_stay = self.residency.could_stay(&path, &tenant);
        if could_stay && self.residency.keep(&path) {
            let mut effects = self.unregister(key);
            effects.push(tell(Word::Registered));
            return effects;
        }
        let is_full = !self.wants.contains_key(&key) && self.wants.len() >= self.config.wants_max;
        if self.draining || is_full || !could_stay {
            return vec![tell(Word::Dropped)];
        }
        self.want(prefix, tenant).registration = true;
        let mut effects = self.settle(key);
        effects.push(tell(Word::Deferred));
        effects
    }

    /// The registration actor has given a state up.
    pub(crate) fn unregister(&mut self, key: SegmentKey) -> Vec<CacheEffect> {
        if let Some(want) = self.wants.get_mut(&key) {
            want.registration = false;
        }
        self.settle(key)
    }

    /// The scheduler has begun to compute a wanted state.
    pub(crate) fn want_started(&mut self, key: SegmentKey, now: Instant) -> Vec<CacheEffect> {
        let Some(want) = self.wants.get_mut(&key) else { return Vec::new() };
        want.started.get_or_insert(now);
        let tell = want.registration.then_some(CacheEffect::Tell { key, word: Word::Started });
        tell.into_iter().collect()
    }

    /// The scheduler is done with a wanted state, which is still leased if it was computed, with so
    /// many tokens on its account.
    pub(crate) fn want_ended(
        &mut self,
        key: SegmentKey,
        result: &Result<u32, ReadError>,
        now: Instant,
    ) -> Vec<CacheEffect> {
        let Some(want) = self.wants.remove(&key) else { return Vec::new() };
        let path = path_of(&want.prefix);
        let stored = result.is_ok() && self.residency.keep(&path);
        // A state is one tenant's: the longest time that any of its prewarms asked for holds for all.
        let longest = want.prewarms.iter().max_by_key(|member| member.ttl).filter(|_| stored);
        let until =
            longest.and_then(|member| self.residency.pin(&path, (&member.tenant, member.ttl), now));
        let mut effects = match result {
            Ok(tokens) => want.outcomes(*tokens, stored, until, now),
            Err(error) => want.refusals(error),
        };
        if want.registration {
            let word = match result {
                Ok(_) if stored => Word::Registered,
                Err(ReadError::Engine(_)) => Word::Failed,
                Ok(_) | Err(_) => Word::Dropped,
            };
            effects.push(CacheEffect::Tell { key, word });
        }
        effects
    }

    /// Whether a state is still to be computed.
    pub(crate) fn is_wanted(&self, key: SegmentKey) -> bool {
        self.wants.contains_key(&key)
    }

    /// When a prewarm next expires.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let members = self.wants.values().flat_map(|want| &want.prewarms);
        members.filter_map(|member| member.deadline).min()
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
            effects.extend(self.settle(key));
        }
        effects
    }

    /// Gives up all wants for which nobody waits, and takes no more of them.
    pub(crate) fn drain(&mut self) -> Vec<CacheEffect> {
        self.draining = true;
        let mut effects = Vec::new();
        let keys: Vec<_> = self.wants.keys().copied().collect();
        for key in keys {
            let Some(want) = self.wants.get_mut(&key) else { continue };
            if want.registration {
                effects.push(CacheEffect::Tell { key, word: Word::Dropped });
            }
            want.keep_awaited();
            effects.extend(self.settle(key));
        }
        effects
    }

    pub(crate) fn view(&self) -> ResidencyView {
        let prewarms_waiting = self.wants.values().map(|want| want.prewarms.len()).sum();
        ResidencyView { prewarms_waiting, ..self.residency.view() }
    }

    /// What is held, in detail.
    pub(crate) fn details(&self) -> ResidencyDetails {
        self.residency.details()
    }

    /// Whether one more state may be wanted, by anybody and by this tenant.
    fn has_room_for(&self, ask: &PrewarmAsk) -> Result<(), RejectReason> {
        if self.wants.contains_key(&ask.prefix.state.key) {
            return Ok(());
        }
        let payer = ask.tenant.payer();
        let theirs = |want: &&Want| want.tenant.payer() == payer && !want.prewarms.is_empty();
        let of_tenant = self.wants.values().filter(theirs).count();
        let (all_max, tenant_max) = (self.config.wants_max, self.config.wants_tenant_max);
        let retry_after = ask.retry_after;
        let full = |waiting, waiting_max, of_tenant| {
            Err(RejectReason::PrewarmsFull { waiting, waiting_max, of_tenant, retry_after })
        };
        if self.wants.len() >= all_max {
            return full(self.wants.len(), all_max, false);
        }
        if of_tenant >= tenant_max { full(of_tenant, tenant_max, true) } else { Ok(()) }
    }

    /// The want for a state, which is new if there is none.
    fn want(&mut self, prefix: Prefix, tenant: TenantId) -> &mut Want {
        let key = prefix.state.key;
        self.wants.entry(key).or_insert_with(|| Want::new(prefix, tenant))
    }

    /// Tells the scheduler how a want stands now, if that has changed; one that nobody has any more
    /// is given up.
    fn settle(&mut self, key: SegmentKey) -> Vec<CacheEffect> {
        let Some(want) = self.wants.get_mut(&key) else { return Vec::new() };
        let Some(standing) = want.standing() else {
            self.wants.remove(&key);
            return vec![CacheEffect::Unwant { key }];
        };
        if want.told.replace(standing) == Some(standing) {
            return Vec::new();
        }
        let (prefix, tenant) = (want.prefix.clone(), want.tenant.clone());
        let (lane, is_registration) = standing;
        let missing = prefix.tokens().saturating_sub(self.residency.held(&path_of(&prefix)));
        vec![CacheEffect::Want { prefix, missing, tenant, lane, is_registration }]
    }
}
