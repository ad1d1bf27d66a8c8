//! Requests a minute: a bucket for each tenant that has a limit, full at first, which time fills.
//!
//! A bucket holds one minute's requests, so in any time `t` at most `limit + limit * t / 60 s` are let
//! in. What is owed is counted in whole units, as in the generic cell rate algorithm (ITU-T I.371,
//! Annex A), so that nothing is lost or won by rounding.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use actors::TenantId;

use super::TENANTS_MAX;

/// Most buckets. More than a file has tenants and a command line keys: tenants of a file that is no
/// longer there fade within a minute.
const BUCKETS_MAX: usize = 4 * TENANTS_MAX;

/// Buckets from which full ones are looked for, and again whenever there are twice as many as were left.
const SWEEP_FROM: usize = 1_024;

/// What one request owes. Time pays off `limit` units a nanosecond, so that `limit` requests are paid
/// off in a minute.
const REQUEST: u128 = Duration::from_mins(1).as_nanos();

/// What is left of a tenant's requests after one came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Requests a minute.
    pub limit: u64,
    /// Requests that would be let in at once now.
    pub remaining: u64,
    /// Seconds until all are back, rounded up.
    pub reset_s: u64,
    /// Whether this one may go on.
    pub allowed: bool,
    /// After what time one would be let in if none other came; zero where this one was.
    pub retry_after: Duration,
}

/// The buckets of all tenants.
#[derive(Debug, Default)]
pub struct Rates {
    /// A plain lock: it is held for a look-up, and for a sweep once in many.
    buckets: Mutex<Buckets>,
}

#[derive(Debug)]
struct Buckets {
    of: HashMap<TenantId, Bucket>,
    /// So many are there when full ones are looked for next.
    sweep_at: usize,
}

impl Default for Buckets {
    fn default() -> Self {
        Self { of: HashMap::new(), sweep_at: SWEEP_FROM }
    }
}

#[derive(Debug, Clone, Copy)]
struct Bucket {
    /// Units not paid off at `at`.
    owed: u128,
    at: Instant,
    /// Units a nanosecond, as of the last request.
    limit: u64,
}

impl Bucket {
    fn owed(&self, now: Instant) -> u128 {
        let paid = now.saturating_duration_since(self.at).as_nanos();
        self.owed.saturating_sub(paid.saturating_mul(u128::from(self.limit)))
    }
}

impl Rates {
    /// Takes a request of a tenant's, or refuses it, which takes nothing.
    ///
    /// * `tenant`: the parent, for all its sub-tenants together.
    /// * `limit`: requests a minute, at least 1; 0 is taken as 1. When it has changed since the last
    ///   request, no more than the new bucket is owed.
    pub fn take(&self, tenant: &TenantId, limit: u64, now: Instant) -> Quota {
        let limit = limit.max(1);
        let most = REQUEST * u128::from(limit);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let known = buckets.of.get(tenant);
        let owed = known.map_or(0, |bucket| bucket.owed(now)).min(most);
        let allowed = owed + REQUEST <= most;
        let after = if allowed { owed + REQUEST } else { owed };
        // Threads do not come in the order of their clocks; time is never paid twice.
        let at = known.map_or(now, |bucket| bucket.at.max(now));
        if known.is_none() {
            buckets.make_room(now);
        }
        buckets.of.insert(tenant.clone(), Bucket { owed: after, at, limit });
        quota(limit, after, allowed)
    }

    /// How many tenants have a bucket that is not full; the others are forgotten.
    pub fn count(&self, now: Instant) -> usize {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        buckets.sweep(now);
        buckets.of.len()
    }
}

impl Buckets {
    fn sweep(&mut self, now: Instant) {
        self.of.retain(|_, bucket| bucket.owed(now) > 0);
        self.sweep_at = SWEEP_FROM.max(2 * self.of.len());
    }

    /// Forgets full buckets, and where all are in use the one whose forgetting gives back least.
    fn make_room(&mut self, now: Instant) {
        if self.of.len() >= self.sweep_at.min(BUCKETS_MAX) {
            self.sweep(now);
        }
        if self.of.len() >= BUCKETS_MAX {
            let fullest = self.of.iter().min_by_key(|(_, bucket)| bucket.owed(now));
            if let Some(tenant) = fullest.map(|(tenant, _)| tenant.clone()) {
                self.of.remove(&tenant);
            }
        }
    }
}

fn quota(limit: u64, owed: u128, allowed: bool) -> Quota {
    let rate = u128::from(limit);
    let most = REQUEST * rate;
    let nanoseconds = |units: u128| u64::try_from(units.div_ceil(rate)).unwrap_or(u64::MAX);
    let second = Duration::from_secs(1).as_nanos();
    let wait = if allowed { 0 } else { nanoseconds((owed + REQUEST).saturating_sub(most)) };
    Quota {
        limit,
        remaining: u64::try_from(most.saturating_sub(owed) / REQUEST).unwrap_or(u64::MAX),
        reset_s: u64::try_from(owed.div_ceil(rate * second)).unwrap_or(u64::MAX),
        allowed,
        retry_after: Duration::from_nanos(wait),
    }
}
