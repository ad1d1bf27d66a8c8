//! Metric emission: every name of this crate, once.

use metrics::counter;

use crate::error::RejectReason;

/// Every metric: name, kind (`counter`, `gauge`, `histogram`), help.
pub const METRICS: &[(&str, &str, &str)] = &[(
    "docket_admission_rejections_total",
    "counter",
    "Decisions and prewarms refused at admission, by reason",
)];

/// A decision or prewarm was refused.
pub(crate) fn rejected(reason: &RejectReason) {
    counter!("docket_admission_rejections_total", "reason" => reason.as_str()).increment(1);
}
