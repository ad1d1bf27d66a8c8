//! When refused decisions are to come back: each at a time of its own, at which there is room for
//! it.
//!
//! By the estimate alone all that are refused in one moment wait equally long, come back together,
//! and find the room taken by newcomers. So a refused decision claims the time that its tokens take
//! at the measured speed, behind what its tenant claimed before, and is told to come back when that
//! begins. While claims are open, newcomers of the same tenant find half of the room only
//! ([`Newcomer::gives_way`](super::admit::Newcomer)); who comes back in time finds all of it. A
//! claim that nobody comes back for costs the engine nothing: newcomers use their half. Tenants
//! with claims have equal parts of the speed, so that one who asks for much neither delays the
//! others nor takes their room; where there are as many claims as there may be, those with most
//! lose some.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use crate::config::SchedulerConfig;
use crate::plan::admit::RETRY_AFTER_MAX;
use crate::read::{Lane, SegmentKey, TenantId};

/// How long after its time a claim is still good: `Retry-After` is in whole seconds, and networks
/// and batches (which ask again every 2 s) take their time.
const GRACE: Duration = Duration::from_secs(5);

/// Which part of all claims one tenant may have: one in so many.
const TENANT_PART: usize = 4;

/// A decision by which it is known again: the same questions about the same state.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Claimant {
    pub(crate) payer: TenantId,
    pub(crate) lane: Lane,
    pub(crate) state: SegmentKey,
    pub(crate) reads: usize,
    pub(crate) suffix_tokens: u64,
}

/// What refused decisions have claimed.
#[derive(Debug)]
pub(crate) struct Returns {
    /// Longest wait that is told where the estimate is not longer.
    spread_max: Duration,
    claims_max: usize,
    claims: BTreeMap<Claimant, Instant>,
    by_time: BTreeSet<(Instant, Claimant)>,
    tenants: BTreeMap<TenantId, Claimed>,
}

/// What one tenant has claimed.
#[derive(Debug, Default)]
struct Claimed {
    /// Open claims, by lane.
    open: [usize; 4],
    /// Up to when there are claims of a lane and of those above it.
    until: [Option<Instant>; 4],
}

impl Claimed {
    fn is_empty(&self) -> bool {
        self.open == [0; 4]
    }

    /// Claims `work` from `earliest` on, or from the end of what was claimed; when it begins,
    /// unless that is after `latest`.
    fn claim(
        &mut self,
        lane: Lane,
        (earliest, latest): (Instant, Instant),
        work: Duration,
    ) -> Option<Instant> {
        let lane = lane as usize;
        let at = self.until[lane].map_or(earliest, |until| until.max(earliest));
        if at > latest {
            return None;
        }
        for until in &mut self.until[lane..] {
            *until = Some(until.map_or(at, |until| until.max(at)) + work);
        }
        self.open[lane] += 1;
        Some(at)
    }
}

impl Returns {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        Self {
            spread_max: config.retry_spread_max.min(RETRY_AFTER_MAX),
            claims_max: config.retry_claims_max,
            claims: BTreeMap::new(),
            by_time: BTreeSet::new(),
            tenants: BTreeMap::new(),
        }
    }

    /// Whether others of its tenant, in its lane or above, are to come back before it may use the
    /// last room.
    pub(crate) fn gives_way(&mut self, who: &Claimant, now: Instant) -> bool {
        self.expire(now);
        let is_due = self.claims.get(who).is_some_and(|due| *due <= now);
        let own = self.tenants.get(&who.payer).filter(|_| !is_due);
        own.is_some_and(|own| own.open[..=who.lane as usize].iter().any(|open| *open > 0))
    }

    /// The same of one that comes now; a claim of its own that is due is used up.
    pub(crate) fn arrive(&mut self, who: &Claimant, now: Instant) -> bool {
        let gives_way = self.gives_way(who, now);
        if let Some(due) = self.claims.get(who).copied().filter(|due| *due <= now) {
            self.remove(due, who);
        }
        gives_way
    }

    /// The wait that a refused decision is told: at least `estimate`, and at most the longest of
    /// that and of the limit.
    ///
    /// * `work`: the engine's time for its own tokens; zero where no speed is known.
    pub(crate) fn refused(
        &mut self,
        who: Claimant,
        (estimate, work): (Duration, Duration),
        now: Instant,
    ) -> Duration {
        let work = work.min(self.spread_max);
        if work.is_zero() {
            return estimate;
        }
        let (earliest, latest) = (now + estimate, now + estimate.max(self.spread_max));
        if let Some(due) = self.claims.get(&who) {
            // It came too early: what it was told holds.
            return (*due).clamp(earliest, latest) - now;
        }
        let tenants = self.tenants.len() + usize::from(!self.tenants.contains_key(&who.payer));
        let work = work.saturating_mul(u32::try_from(tenants).unwrap_or(u32::MAX));
        let own_max = self.claims_max.div_ceil(TENANT_PART);
        let own: usize = self.tenants.get(&who.payer).map_or(0, |own| own.open.iter().sum());
        if own >= own_max || !self.has_room(own) {
            return latest - now;
        }
        let own = self.tenants.entry(who.payer.clone()).or_default();
        let work = work.min(self.spread_max);
        let Some(at) = own.claim(who.lane, (earliest, latest), work) else { return latest - now };
        self.by_time.insert((at, who.clone()));
        self.claims.insert(who, at);
        at - now
    }

    /// Whether one more fits, of a tenant that has `own`: where all are taken, the latest of the
    /// tenant that has the most makes room, so that the first to come do not keep others out.
    fn has_room(&mut self, own: usize) -> bool {
        if self.claims.len() < self.claims_max {
            return true;
        }
        let counted = |(payer, open): (_, &Claimed)| (open.open.iter().sum::<usize>(), payer);
        let Some((most, payer)) = self.tenants.iter().map(counted).max() else { return false };
        if most <= own + 1 {
            return false;
        }
        let latest = self.by_time.iter().rev().find(|(_, who)| who.payer == *payer).cloned();
        if let Some((due, who)) = latest {
            self.remove(due, &who);
        }
        true
    }

    /// Decisions for which room is kept.
    pub(crate) fn count(&mut self, now: Instant) -> usize {
        self.expire(now);
        self.claims.len()
    }

    /// Forgets claims for which nobody has come back.
    fn expire(&mut self, now: Instant) {
        while let Some((due, who)) = self.by_time.first().cloned()
            && now.saturating_duration_since(due) > GRACE
        {
            self.remove(due, &who);
        }
    }

    fn remove(&mut self, due: Instant, who: &Claimant) {
        self.claims.remove(who);
        self.by_time.remove(&(due, who.clone()));
        let Some(own) = self.tenants.get_mut(&who.payer) else { return };
        own.open[who.lane as usize] -= 1;
        if own.is_empty() {
            self.tenants.remove(&who.payer);
        }
    }
}

#[cfg(test)]
mod tests;
