//! What each tenant has open, and what it may still ask for: read at admission, without a message.
//!
//! A tenant is here while something of it is open or its bucket is not full again; full buckets of
//! tenants that are away are forgotten, so that the map is never larger than what is in use.

use std::sync::Arc;

use dashmap::DashMap;
use tokio::time::Instant;

use crate::config::SchedulerConfig;
use crate::read::TenantId;

/// Entries from which those with nothing open and a full bucket are looked for at each new one.
const SWEEP_FROM: usize = 1_024;

/// All tenants that are known now; point look-ups, never held across an await.
#[derive(Debug)]
pub(crate) struct Tenants {
    known: DashMap<TenantId, Tenant>,
    /// Tokens a second that flow into each bucket; 0 where there are none.
    rate: u64,
    /// Tokens that a bucket holds.
    burst: u64,
}

#[derive(Debug, Default)]
struct Tenant {
    /// Reads that wait or run.
    reads: usize,
    /// Tokens taken out of its bucket and not flowed back by `at`.
    owed: f64,
    at: Option<Instant>,
}

/// What a newcomer finds of its tenant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Found {
    /// Reads that wait or run.
    pub(crate) reads: usize,
    /// Its bucket, where tenants have one.
    pub(crate) bucket: Option<Bucket>,
}

/// A tenant's bucket as a newcomer finds it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Bucket {
    /// Tokens in it; below zero after a decision larger than the bucket.
    pub(crate) held: f64,
    /// Tokens that it holds when full.
    pub(crate) burst: u64,
    /// Tokens a second.
    pub(crate) rate: u64,
}

impl Tenants {
    pub(crate) fn new(config: &SchedulerConfig) -> Self {
        let (rate, burst) = (config.tenant_rate, config.tenant_burst);
        Self { known: DashMap::new(), rate, burst }
    }

    /// Counts `reads` of a tenant, and takes `tokens` out of its bucket, until the use is dropped or
    /// given back.
    pub(crate) fn enter(
        self: &Arc<Self>,
        tenant: TenantId,
        (reads, tokens): (usize, u64),
        now: Instant,
    ) -> (TenantUse, Found) {
        if self.known.len() >= SWEEP_FROM {
            self.known.retain(|_, tenant| !self.is_idle(tenant, now));
        }
        let mut known = self.known.entry(tenant.clone()).or_default();
        let found = Found { reads: known.reads, bucket: self.bucket(&known, now) };
        known.reads += reads;
        if let Some(bucket) = found.bucket {
            known.owed = self.burst as f64 - bucket.held + tokens as f64;
            known.at = Some(now);
        }
        drop(known);
        (TenantUse { tenants: Arc::clone(self), tenant, reads, tokens }, found)
    }

    /// A tenant as a newcomer would find it now.
    pub(crate) fn found(&self, tenant: &TenantId, now: Instant) -> Found {
        let known = self.known.get(tenant);
        let bucket = |known: &Tenant| self.bucket(known, now);
        match known {
            Some(known) => Found { reads: known.reads, bucket: bucket(&known) },
            None => Found { reads: 0, bucket: bucket(&Tenant::default()) },
        }
    }

    /// Puts tokens back into a tenant's bucket.
    pub(crate) fn refund(&self, tenant: &TenantId, tokens: u64) {
        if let Some(mut known) = self.known.get_mut(tenant) {
            known.owed -= if self.rate > 0 { tokens as f64 } else { 0.0 };
        }
    }

    /// Reads of the tenant that has the most.
    pub(crate) fn most_reads(&self) -> usize {
        self.known.iter().map(|tenant| tenant.reads).max().unwrap_or(0)
    }

    /// How many tenants have something open or a bucket that is not full; the others are forgotten.
    pub(crate) fn count(&self, now: Instant) -> usize {
        self.known.retain(|_, tenant| !self.is_idle(tenant, now));
        self.known.len()
    }

    fn bucket(&self, tenant: &Tenant, now: Instant) -> Option<Bucket> {
        let (rate, burst) = (self.rate, self.burst);
        let held = burst as f64 - self.owed(tenant, now);
        (rate > 0).then_some(Bucket { held, burst, rate })
    }

    fn owed(&self, tenant: &Tenant, now: Instant) -> f64 {
        let since = tenant.at.map_or(0.0, |at| now.saturating_duration_since(at).as_secs_f64());
        (tenant.owed - self.rate as f64 * since).max(0.0)
    }

    fn is_idle(&self, tenant: &Tenant, now: Instant) -> bool {
        tenant.reads == 0 && self.owed(tenant, now) <= 0.0
    }
}

/// Counts an open decision's reads for its tenant.
#[derive(Debug)]
pub(crate) struct TenantUse {
    tenants: Arc<Tenants>,
    tenant: TenantId,
    reads: usize,
    tokens: u64,
}

impl TenantUse {
    /// Whose it is.
    pub(crate) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// What was refused takes nothing out of the bucket.
    pub(crate) fn give_back(self) {
        self.tenants.refund(&self.tenant, self.tokens);
    }
}

impl Drop for TenantUse {
    fn drop(&mut self) {
        if let Some(mut known) = self.tenants.known.get_mut(&self.tenant) {
            known.reads -= self.reads;
        }
        let now = Instant::now();
        self.tenants.known.remove_if(&self.tenant, |_, known| self.tenants.is_idle(known, now));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn tenants(rate: u64, burst: u64) -> Arc<Tenants> {
        let config = SchedulerConfig {
            tenant_rate: rate,
            tenant_burst: burst,
            ..SchedulerConfig::default()
        };
        Arc::new(Tenants::new(&config))
    }

    fn enter(tenants: &Arc<Tenants>, name: &str, tokens: u64, now: Instant) -> (TenantUse, Found) {
        tenants.enter(TenantId(name.into()), (2, tokens), now)
    }

    fn holds(held: f64) -> Bucket {
        Bucket { held, burst: 100, rate: 10 }
    }

    #[test]
    fn a_bucket_is_emptied_by_what_is_let_in_and_filled_by_time() {
        let (tenants, now) = (tenants(10, 100), Instant::now());
        assert_eq!(enter(&tenants, "a", 70, now).1.bucket, Some(holds(100.0)));
        assert_eq!(enter(&tenants, "b", 0, now).1.bucket, Some(holds(100.0)), "each has its own");
        let refused = enter(&tenants, "a", 50, now + Duration::from_secs(2));
        assert_eq!(refused.1.bucket, Some(holds(50.0)));
        refused.0.give_back();
        assert_eq!(
            enter(&tenants, "a", 0, now + Duration::from_secs(4)).1.bucket,
            Some(holds(70.0))
        );
        assert_eq!(
            enter(&tenants, "a", 0, now + Duration::from_hours(1)).1.bucket,
            Some(holds(100.0))
        );
    }

    #[test]
    fn reads_are_counted_while_they_are_open_and_the_tenant_is_then_forgotten() {
        let (tenants, now) = (tenants(0, 100), Instant::now());
        let first = enter(&tenants, "a", 70, now);
        let second = enter(&tenants, "a", 70, now);
        assert_eq!((first.1.reads, second.1.reads, tenants.count(now)), (0, 2, 1));
        assert_eq!(second.1.bucket, None, "no rate, no bucket");
        drop((first, second));
        assert_eq!(tenants.count(now), 0);
    }

    #[test]
    fn tenants_that_are_away_with_a_full_bucket_are_forgotten() {
        let (tenants, now) = (tenants(1, 100), Instant::now());
        for number in 0..SWEEP_FROM {
            drop(enter(&tenants, &number.to_string(), 50, now));
        }
        assert_eq!(tenants.count(now), SWEEP_FROM, "they owe something");
        drop(enter(&tenants, "new", 50, now + Duration::from_mins(1)));
        assert_eq!(tenants.known.len(), 1);
        assert_eq!(tenants.count(now + Duration::from_mins(2)), 0);
    }
}
