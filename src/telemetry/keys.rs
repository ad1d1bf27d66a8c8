//! Metrics of the key file.

use std::sync::LazyLock;

use metrics::{Gauge, gauge};

pub(super) const TENANTS: &str = "docket_tenants_configured";
pub(super) const FAILED: &str = "docket_keys_reload_failed";

static METERS: LazyLock<Meters> =
    LazyLock::new(|| Meters { tenants: gauge!(TENANTS), failed: gauge!(FAILED) });

struct Meters {
    tenants: Gauge,
    failed: Gauge,
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
