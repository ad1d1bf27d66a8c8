//! Limits of single tenants, which are replaced all at once while the actors run.
//!
//! Admission reads them without a message. Scheduler and cache are told of new ones by an event, so
//! that what they decide depends on their events alone.

use std::collections::BTreeMap;

use crate::read::TenantId;

/// What one tenant may ask for and keep; the default has no limit of its own.
///
/// A sub-tenant has the limits of its parent, counted for the parent with all its subs together; of the
/// weight those that wait at the same time have equal parts.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantLimits {
    /// Share of what is served while others wait too: 2 gets twice the tokens of 1. Default 1; 0 counts
    /// as 1.
    pub weight: u32,
    /// Tokens a minute that it may ask for on average, and at once after a minute's pause, counted as
    /// they would be computed when it is let in. It takes the place of
    /// [`tenant_rate`](crate::SchedulerConfig::tenant_rate) and of
    /// [`tenant_burst`](crate::SchedulerConfig::tenant_burst). 0 counts as 1.
    pub tokens_per_minute: Option<u64>,
    /// Most reads that may wait or run, in the place of
    /// [`tenant_reads_max`](crate::SchedulerConfig::tenant_reads_max).
    pub reads_max: Option<usize>,
    /// Which part of [`reads_max`](crate::SchedulerConfig::reads_max) its reads that wait may be, 0 to
    /// 1; what is beyond counts as the nearer end. Default 1, no limit. While none waits, nothing is
    /// refused for it.
    pub queue_share: f64,
    /// Most bytes of keys and values that stay though nothing leases or pins them. What its reads use
    /// may be more while they run.
    pub kv_bytes_max: Option<u64>,
    /// Most bytes that its pins may hold, in the place of the server's limit for one tenant
    /// ([`pin_tenant_ratio`](crate::CacheConfig::pin_tenant_ratio)); that for all holds besides.
    pub pin_bytes_max: Option<u64>,
}

impl Default for TenantLimits {
    fn default() -> Self {
        Self {
            weight: 1,
            tokens_per_minute: None,
            reads_max: None,
            queue_share: 1.0,
            kv_bytes_max: None,
            pin_bytes_max: None,
        }
    }
}

/// The limits of all tenants that have any.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Limits(BTreeMap<TenantId, TenantLimits>);

impl Limits {
    pub(crate) fn new(given: BTreeMap<TenantId, TenantLimits>) -> Self {
        Self(given)
    }

    /// The limits of a tenant: those of its parent, if it is a sub-tenant.
    pub(crate) fn of(&self, tenant: &TenantId) -> Option<&TenantLimits> {
        if self.0.is_empty() { None } else { self.0.get(tenant.payer()) }
    }

    /// At least 1.
    pub(crate) fn weight(&self, tenant: &TenantId) -> u32 {
        self.of(tenant).map_or(1, |limits| limits.weight.max(1))
    }

    /// Tokens a minute, if it has a limit of its own; at least 1.
    pub(crate) fn tokens_per_minute(&self, tenant: &TenantId) -> Option<u64> {
        self.of(tenant)?.tokens_per_minute.map(|tokens| tokens.max(1))
    }

    /// Which part of the queue it may have, 0 to 1, if that is not all of it.
    pub(crate) fn queue_share(&self, tenant: &TenantId) -> Option<f64> {
        let share = self.of(tenant)?.queue_share;
        (share < 1.0).then_some(share.max(0.0))
    }

    pub(crate) fn kv_bytes_max(&self, tenant: &TenantId) -> Option<u64> {
        self.of(tenant)?.kv_bytes_max
    }

    pub(crate) fn pin_bytes_max(&self, tenant: &TenantId) -> Option<u64> {
        self.of(tenant)?.pin_bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(given: TenantLimits) -> Limits {
        Limits::new(BTreeMap::from([(TenantId("acme".into()), given)]))
    }

    #[test]
    fn a_sub_tenant_has_the_limits_of_its_parent() {
        let limits = limits(TenantLimits { weight: 3, ..TenantLimits::default() });
        let weights = ["acme", "acme/a", "acm", "other/acme"];
        assert_eq!(weights.map(|name| limits.weight(&TenantId(name.into()))), [3, 3, 1, 1]);
    }

    #[test]
    fn what_is_out_of_range_counts_as_the_nearest_that_is_not() {
        let acme = TenantId("acme".into());
        let given = TenantLimits { weight: 0, tokens_per_minute: Some(0), ..Default::default() };
        let odd = limits(given);
        assert_eq!((odd.weight(&acme), odd.tokens_per_minute(&acme)), (1, Some(1)));
        let share = |queue_share| {
            limits(TenantLimits { queue_share, ..TenantLimits::default() }).queue_share(&acme)
        };
        assert_eq!(
            [-1.0, 0.25, 1.0, 7.0, f64::NAN].map(share),
            [Some(0.0), Some(0.25), None, None, None]
        );
    }
}
