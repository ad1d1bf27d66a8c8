//! Metrics of tenants: the key file, and usage that is not written.

use std::sync::LazyLock;
use std::time::Duration;

use metrics::{Gauge, gauge};

pub(super) const TENANTS: &str = "docket_tenants_configured";
pub(super) const FAILED: &str = "docket_keys_reload_failed";
pub(super) const UNWRITTEN: &str = "docket_usage_flush_age_seconds";

static METERS: LazyLock<Meters> = LazyLock::new(|| Meters {
    tenants: gauge!(TENANTS),
    failed: gauge!(FAILED),
    unwritten: gauge!(UNWRITTEN),
});

struct Meters {
    tenants: Gauge,
    failed: Gauge,
    unwritten: Gauge,
}

/// Registers them.
pub(super) fn start() {
    LazyLock::force(&METERS);
}

/// The keys of so many tenants are in force.
pub(crate) fn keys_loaded(tenants: usize) {
    METERS.tenants.set(tenants as f64);
    METERS.failed.set(0.0);
}

/// The file could not be used when it was read again.
pub(crate) fn keys_failed() {
    METERS.failed.set(1.0);
}

/// Usage that was counted this long ago is not written yet; zero where writing succeeds.
pub(crate) fn usage_unwritten(age: Duration) {
    METERS.unwritten.set(age.as_secs_f64());
}
