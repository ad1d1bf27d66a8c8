//! Metrics of the store that several servers share; without one they stay 0.

use std::sync::LazyLock;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{Held, LIMIT, limit};
use crate::config::StoreConfig;
use crate::store::postgres::{CHANGES_WAITING_MAX, CONNECTIONS_MAX};
use crate::store::{TENANT_BYTES_MAX, TENANT_RECORDS_MAX};

pub(super) const LOST: &str = "docket_store_lost";
pub(super) const VERSION: &str = "docket_store_version";
pub(super) const RECORDS: &str = "docket_store_records";
pub(super) const BYTES: &str = "docket_store_bytes";
pub(super) const TENANT_RECORDS: &str = "docket_store_tenant_records";
pub(super) const TENANT_BYTES: &str = "docket_store_tenant_bytes";
pub(super) const CONNECTIONS: &str = "docket_store_connections";
pub(super) const WAITING: &str = "docket_store_changes_waiting";
pub(super) const CHANGES: &str = "docket_store_changes_total";
pub(super) const ASKED: &str = "docket_store_asked_total";
pub(super) const RECONNECTS: &str = "docket_store_reconnects_total";
pub(super) const STATEMENT_SECONDS: &str = "docket_store_statement_duration_seconds";
pub(super) const POLL_SECONDS: &str = "docket_store_poll_seconds";

static METERS: LazyLock<Meters> = LazyLock::new(|| Meters {
    lost: gauge!(LOST),
    version: gauge!(VERSION),
    records: gauge!(RECORDS),
    bytes: gauge!(BYTES),
    tenant_records: gauge!(TENANT_RECORDS),
    tenant_bytes: gauge!(TENANT_BYTES),
    connections: gauge!(CONNECTIONS),
    waiting: gauge!(WAITING),
    changes: ChangeEnd::ALL.map(|end| counter!(CHANGES, "end" => end.name())),
    asked: ["told", "poll"].map(|by| counter!(ASKED, "by" => by)),
    reconnects: counter!(RECONNECTS),
    statement: histogram!(STATEMENT_SECONDS),
    poll: gauge!(POLL_SECONDS),
});

struct Meters {
    lost: Gauge,
    version: Gauge,
    records: Gauge,
    bytes: Gauge,
    tenant_records: Gauge,
    tenant_bytes: Gauge,
    connections: Gauge,
    waiting: Gauge,
    /// In the order of [`ChangeEnd::ALL`].
    changes: [Counter; 4],
    /// Because of a notification, and because it was time.
    asked: [Counter; 2],
    reconnects: Counter,
    statement: Histogram,
    poll: Gauge,
}

/// How a change ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeEnd {
    /// It was made.
    Made,
    /// What it was based on had changed.
    Conflict,
    /// There was no room.
    Full,
    /// The store could not be reached, or not in time.
    Unavailable,
}

impl ChangeEnd {
    const ALL: [Self; 4] = [Self::Made, Self::Conflict, Self::Full, Self::Unavailable];

    fn name(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Conflict => "conflict",
            Self::Full => "full",
            Self::Unavailable => "unavailable",
        }
    }
}

/// What is known of a shared store's records here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct StoreSize {
    /// All changes up to this one are in.
    pub(crate) version: u64,
    /// Records of all tenants.
    pub(crate) records: usize,
    /// Their bytes.
    pub(crate) bytes: usize,
    /// Records of one kind of the tenant that has most.
    pub(crate) tenant_records: usize,
    /// Bytes of the tenant that has most.
    pub(crate) tenant_bytes: usize,
}

/// Registers them.
pub(super) fn start() {
    LazyLock::force(&METERS);
}

/// Shows the limits of a store.
pub(crate) fn store_limits(config: &StoreConfig) {
    limit(RECORDS, config.records_max as usize);
    limit(BYTES, usize::try_from(config.bytes_max).unwrap_or(usize::MAX));
    limit(TENANT_RECORDS, TENANT_RECORDS_MAX);
    limit(TENANT_BYTES, usize::try_from(TENANT_BYTES_MAX).unwrap_or(usize::MAX));
    limit(CONNECTIONS, CONNECTIONS_MAX);
    limit(WAITING, CHANGES_WAITING_MAX);
    gauge!(LIMIT, "metric" => STATEMENT_SECONDS).set(config.timeout.as_secs_f64());
    METERS.poll.set(config.poll.as_secs_f64());
}

/// The store cannot be reached, or can.
pub(crate) fn store_lost(is_lost: bool) {
    METERS.lost.set(f64::from(u8::from(is_lost)));
}

/// It was found again.
pub(crate) fn store_found() {
    METERS.reconnects.increment(1);
}

/// Shows what of it is known here.
pub(crate) fn store_size(size: StoreSize) {
    METERS.version.set(size.version as f64);
    METERS.records.set(size.records as f64);
    METERS.bytes.set(size.bytes as f64);
    METERS.tenant_records.set(size.tenant_records as f64);
    METERS.tenant_bytes.set(size.tenant_bytes as f64);
}

/// It is asked, since it said that something changed or since it was time.
pub(crate) fn store_asked(is_told: bool) {
    METERS.asked[usize::from(!is_told)].increment(1);
}

/// A change of it ended.
pub(crate) fn store_changed(end: ChangeEnd) {
    METERS.changes[end as usize].increment(1);
}

/// A statement was answered, or given up.
pub(crate) fn store_statement(took: Duration) {
    METERS.statement.record(took);
}

/// A connection to it is open.
pub(crate) fn store_connection() -> Held {
    Held::by(&METERS.connections)
}

/// A change waits for those before it, or is made.
pub(crate) fn store_change() -> Held {
    Held::by(&METERS.waiting)
}
