//! Limits of residency: how much is held, pinned, protected, and held beyond the budget.

use std::time::Duration;

use super::{ConfigProblem, Faults};

/// Settings of the cache.
#[derive(Debug, Clone, PartialEq)]
pub struct CacheConfig {
    /// Most bytes of keys and values that are held; 0 keeps nothing between steps. Default 1 GiB.
    /// One running state beyond it is allowed (see [`OVERFLOW_STATES`]).
    pub kv_bytes: u64,
    /// Most bytes that the state which runs beyond `kv_bytes` may take. A state that fits neither here
    /// nor into what pins leave of `kv_bytes` is refused at admission. Default 4 GiB.
    pub overflow_bytes_max: u64,
    /// Share of `kv_bytes` that prewarmed states may pin, 0 to 1. Default 0.25.
    pub pin_ratio: f64,
    /// Share of what may be pinned that one tenant may pin, 0 to 1. Default 0.5, so that one tenant
    /// never takes all; 1 where all callers are one tenant.
    pub pin_tenant_ratio: f64,
    /// Share of `kv_bytes` for what was used again by urgent or normal reads; what only batch and idle
    /// reads used, or was used once, is evicted before it. 0 to 1, default 0.8.
    pub protected_ratio: f64,
    /// How long a prewarmed state stays pinned without a hit. Default 300 s.
    pub prewarm_ttl: Duration,
    /// Longest time to live that a caller may ask for. Default one hour.
    pub prewarm_ttl_max: Duration,
    /// Most states that may wait for the engine for prewarms and registrations. Default 256.
    pub wants_max: usize,
    /// Of these, most that prewarms of one tenant wait for. Default 192: a quarter is left to others.
    pub wants_tenant_max: usize,
}

/// How many states may be held beyond [`CacheConfig::kv_bytes`]: the overflow allowance. It lets the
/// oldest waiting read run when the budget is zero, smaller than its state, or leased out; what it
/// holds is dropped at once after use.
pub const OVERFLOW_STATES: usize = 1;

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            kv_bytes: 1 << 30,
            overflow_bytes_max: 4 << 30,
            pin_ratio: 0.25,
            pin_tenant_ratio: 0.5,
            protected_ratio: 0.8,
            prewarm_ttl: Duration::from_mins(5),
            prewarm_ttl_max: Duration::from_hours(1),
            wants_max: 256,
            wants_tenant_max: 192,
        }
    }
}

impl CacheConfig {
    /// Checks these settings.
    ///
    /// # Errors
    /// Every fault.
    pub fn validate(&self) -> Result<(), Vec<ConfigProblem>> {
        let mut faults = Faults::default();
        let ratios = [
            (self.pin_ratio, "cache.pin_ratio"),
            (self.pin_tenant_ratio, "cache.pin_tenant_ratio"),
            (self.protected_ratio, "cache.protected_ratio"),
        ];
        for (ratio, field) in ratios {
            faults.require((0.0..=1.0).contains(&ratio), field, || {
                format!("{ratio} is given, 0 to 1 is needed")
            });
        }
        faults.positive(self.prewarm_ttl, "cache.prewarm_ttl");
        faults.require(self.prewarm_ttl <= self.prewarm_ttl_max, "cache.prewarm_ttl", || {
            format!(
                "{:?} is given, at most {:?} is allowed",
                self.prewarm_ttl, self.prewarm_ttl_max
            )
        });
        faults.at_least_one(self.wants_max, "cache.wants_max");
        faults.at_least_one(self.wants_tenant_max, "cache.wants_tenant_max");
        faults.into_result()
    }

    /// Bytes that pins may hold.
    pub(crate) fn pin_bytes(&self) -> u64 {
        share(self.kv_bytes, self.pin_ratio)
    }

    /// Bytes that the pins of one tenant may hold.
    pub(crate) fn pin_tenant_bytes(&self) -> u64 {
        share(self.pin_bytes(), self.pin_tenant_ratio)
    }

    /// Bytes of blocks that are evicted last.
    pub(crate) fn protected_bytes(&self) -> u64 {
        share(self.kv_bytes, self.protected_ratio)
    }

    /// Most bytes of a path that is sure to run once all others have ended: what pins leave of the
    /// budget, or the overflow allowance.
    pub(crate) fn path_bytes_max(&self) -> u64 {
        (self.kv_bytes - self.pin_bytes()).max(self.overflow_bytes_max)
    }
}

/// A share of so many bytes, or of anything else; the ratio is within 0 to 1.
pub(crate) fn share(bytes: u64, ratio: f64) -> u64 {
    let parts_per_million = (ratio * 1e6).round();
    // A ratio is within 0 to 1, so the cast neither truncates nor loses a sign.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1e6")]
    let parts = parts_per_million as u64;
    u64::try_from(u128::from(bytes) * u128::from(parts) / 1_000_000).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_may_hold_their_share_of_the_budget() {
        let config = CacheConfig { kv_bytes: 1_000, pin_ratio: 0.25, ..CacheConfig::default() };
        assert_eq!((config.pin_bytes(), config.pin_tenant_bytes()), (250, 125));
        assert_eq!(config.protected_bytes(), 800);
        assert_eq!(CacheConfig { pin_ratio: 1.0, ..config }.pin_bytes(), 1_000);
    }

    #[test]
    fn the_longest_path_is_what_pins_leave_or_the_overflow_allowance() {
        let config = CacheConfig { kv_bytes: 1_000, ..CacheConfig::default() };
        let with = |overflow_bytes_max| CacheConfig { overflow_bytes_max, ..config.clone() };
        assert_eq!(with(10).path_bytes_max(), 750);
        assert_eq!(with(2_000).path_bytes_max(), 2_000);
    }

    #[test]
    fn a_ratio_beyond_one_is_a_fault() {
        for ratio in [f64::NAN, -0.1, 1.1] {
            let config = CacheConfig {
                pin_ratio: ratio,
                pin_tenant_ratio: ratio,
                protected_ratio: ratio,
                ..CacheConfig::default()
            };
            assert_eq!(config.validate().unwrap_err().len(), 3);
        }
    }
}
