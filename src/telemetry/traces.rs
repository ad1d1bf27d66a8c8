//! Metrics of traces: spans that were sent, and that were not.

use std::sync::LazyLock;

use metrics::{Counter, counter};

pub(super) const SENT: &str = "docket_traces_sent_total";
pub(super) const DROPPED: &str = "docket_traces_dropped_total";

static METERS: LazyLock<Meters> =
    LazyLock::new(|| Meters { sent: counter!(SENT), dropped: counter!(DROPPED) });

struct Meters {
    sent: Counter,
    dropped: Counter,
}

/// Registers them.
pub(super) fn start() {
    LazyLock::force(&METERS);
}

/// A collector took so many spans.
pub(crate) fn spans_sent(count: u64) {
    METERS.sent.increment(count);
}

/// So many spans were lost: too many waited, or no collector took them.
pub(crate) fn spans_dropped(count: u64) {
    METERS.dropped.increment(count);
}
