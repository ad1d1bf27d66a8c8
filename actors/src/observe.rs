//! Metric emission: every name of this crate, once.
//!
//! Only this file calls the `metrics` macros. Label values are bounded: lanes, reasons and results,
//! never a tenant.

use std::time::Duration;

use metrics::{counter, gauge, histogram};

use crate::error::{ReadError, RejectReason};
use crate::plan::residency::DropReason;
use crate::prewarm::PrewarmOutcome;
use crate::read::{Lane, ReadOutcome};
use crate::snapshot::{LoadView, RegistrationCounters, ResidencyView, StepLogEntry};

/// Every metric: name, kind (`counter`, `gauge`, `histogram`), help.
pub const METRICS: &[(&str, &str, &str)] = &[
    (
        "docket_admission_rejections_total",
        "counter",
        "Decisions and prewarms refused at admission, by reason",
    ),
    ("docket_reads_total", "counter", "Reads that ended, by outcome"),
    ("docket_computed_tokens_total", "counter", "Tokens that the engine ran"),
    (
        "docket_cached_tokens_total",
        "counter",
        "Prompt tokens of answered reads that were not computed for them",
    ),
    (
        "docket_state_duplicate_prefill_tokens_total",
        "counter",
        "State tokens computed again while they were resident; must stay 0",
    ),
    ("docket_queue_reads", "gauge", "Reads that wait, by lane"),
    ("docket_queue_tokens", "gauge", "Unique tokens that wait, by lane"),
    (
        "docket_fairness_gap_tokens",
        "gauge",
        "Largest gap in served tokens between two tenants of a lane",
    ),
    ("docket_plan_duration_seconds", "histogram", "Time to plan a step and begin it"),
    ("docket_reads_in_flight", "gauge", "Reads in the running step"),
    ("docket_decisions_open", "gauge", "Decisions that are open"),
    ("docket_engine_tokens_per_second", "gauge", "Smoothed speed of the engine"),
    ("docket_step_duration_seconds", "histogram", "Time of a step as the scheduler sees it"),
    ("docket_step_tokens", "histogram", "Tokens of a step"),
    ("docket_step_rows", "histogram", "Rows of a step"),
    (
        "docket_queue_wait_seconds",
        "histogram",
        "From admission of a read until work on it begins, by lane",
    ),
    ("docket_state_wait_seconds", "histogram", "From then until its state is resident, by lane"),
    (
        "docket_engine_wait_seconds",
        "histogram",
        "From ready to run until the step of a read begins, by lane",
    ),
    ("docket_residency_bytes", "gauge", "Bytes of keys and values, by kind"),
    ("docket_residency_segments", "gauge", "Blocks of at most 64 tokens that are held"),
    (
        "docket_evictions_total",
        "counter",
        "Blocks of at most 64 tokens that were dropped, by reason",
    ),
    ("docket_registrations_total", "counter", "Boundary registrations that ended, by result"),
    ("docket_registrations_pending", "gauge", "Boundary registrations that wait or run"),
    ("docket_prewarms_total", "counter", "Prewarms that were answered, by result"),
    ("docket_engine_failures_total", "counter", "Steps that failed as a whole"),
    ("docket_engine_epoch", "gauge", "Generation; raised at each restart of the actors"),
];

/// Every counter with all values of its label, so that each is there from the start, at 0: a rate
/// over a counter that appears with its first event misses that event.
const COUNTERS: &[(&str, &str, &[&str])] = &[
    (
        "docket_admission_rejections_total",
        "reason",
        &[
            "queue_full",
            "tokens",
            "wait",
            "tenant",
            "displaced",
            "too_long",
            "oversize",
            "draining",
            "engine",
            "restarting",
        ],
    ),
    (
        "docket_reads_total",
        "outcome",
        &[
            "done",
            "displaced",
            "rejected",
            "failed",
            "expired",
            "cancelled",
            "draining",
            "unavailable",
        ],
    ),
    ("docket_computed_tokens_total", "", &[]),
    ("docket_cached_tokens_total", "", &[]),
    ("docket_state_duplicate_prefill_tokens_total", "", &[]),
    ("docket_evictions_total", "reason", &["room", "released", "overflow"]),
    ("docket_registrations_total", "result", &["registered", "dropped", "failed"]),
    (
        "docket_prewarms_total",
        "result",
        &["pending", "stored", "not_stored", "rejected", "expired", "failed", "unavailable"],
    ),
    ("docket_engine_failures_total", "", &[]),
];

/// Shows all counters at 0; called once, when the recorder is there.
pub fn start() {
    for (name, label, values) in COUNTERS {
        for value in *values {
            counter!(*name, *label => *value).increment(0);
        }
        if values.is_empty() {
            counter!(*name).increment(0);
        }
    }
}

/// A decision or prewarm was refused.
pub(crate) fn refused(error: &ReadError) {
    let reason = match error {
        ReadError::Rejected(reason) => reason.as_str(),
        ReadError::Unavailable => "restarting",
        ReadError::Engine(_)
        | ReadError::Expired { .. }
        | ReadError::Cancelled
        | ReadError::Draining => return,
    };
    counter!("docket_admission_rejections_total", "reason" => reason).increment(1);
}

/// A read ended.
pub(crate) fn read_ended(lane: Lane, result: &Result<ReadOutcome, ReadError>) {
    counter!("docket_reads_total", "outcome" => outcome_of(result)).increment(1);
    let Ok(outcome) = result else { return };
    let (timing, lane) = (&outcome.timing, lane.as_str());
    counter!("docket_cached_tokens_total").increment(u64::from(outcome.cached_tokens));
    histogram!("docket_queue_wait_seconds", "lane" => lane).record(timing.queue_wait);
    histogram!("docket_state_wait_seconds", "lane" => lane).record(timing.state_wait);
    histogram!("docket_engine_wait_seconds", "lane" => lane).record(timing.engine_wait);
}

fn outcome_of(result: &Result<ReadOutcome, ReadError>) -> &'static str {
    match result {
        Ok(_) => "done",
        Err(ReadError::Rejected(RejectReason::Displaced { .. })) => "displaced",
        Err(ReadError::Rejected(_)) => "rejected",
        Err(ReadError::Engine(_)) => "failed",
        Err(ReadError::Expired { .. }) => "expired",
        Err(ReadError::Cancelled) => "cancelled",
        Err(ReadError::Draining) => "draining",
        Err(ReadError::Unavailable) => "unavailable",
    }
}

/// A step ended.
pub(crate) fn step_ended(step: &StepLogEntry) {
    if step.succeeded {
        counter!("docket_computed_tokens_total").increment(u64::from(step.tokens));
    } else {
        counter!("docket_engine_failures_total").increment(1);
    }
    histogram!("docket_step_duration_seconds").record(step.elapsed);
    histogram!("docket_step_tokens").record(f64::from(step.tokens));
    histogram!("docket_step_rows").record(step.rows.len() as f64);
}

/// A step was planned and begun, which took so long by the real clock.
pub(crate) fn planned(took: Duration) {
    histogram!("docket_plan_duration_seconds").record(took);
}

/// The scheduler has published.
pub(crate) fn load(view: &LoadView) {
    for lane in Lane::ALL {
        let waiting = view.waiting_in(lane) as f64;
        gauge!("docket_queue_reads", "lane" => lane.as_str()).set(waiting);
    }
    for (lane, tokens) in Lane::ALL.into_iter().zip(view.tokens_waiting) {
        gauge!("docket_queue_tokens", "lane" => lane.as_str()).set(tokens as f64);
    }
    gauge!("docket_fairness_gap_tokens").set(view.gap_tokens as f64);
    gauge!("docket_reads_in_flight").set(view.reads_in_flight as f64);
    gauge!("docket_decisions_open").set(view.decisions_open as f64);
    gauge!("docket_engine_tokens_per_second").set(view.tokens_per_second);
    gauge!("docket_engine_epoch").set(view.epoch as f64);
}

/// The cache has published.
pub(crate) fn residency(view: &ResidencyView) {
    let kinds = [
        ("used", view.used),
        ("reserved", view.reserved),
        ("pinned", view.pinned),
        ("protected", view.protected),
        ("overflow", view.overflow),
        ("budget", view.budget),
    ];
    for (kind, bytes) in kinds {
        gauge!("docket_residency_bytes", "kind" => kind).set(bytes as f64);
    }
    gauge!("docket_residency_segments").set(view.segments as f64);
}

/// State tokens were computed again although they were resident.
pub(crate) fn duplicate_tokens(tokens: u64) {
    counter!("docket_state_duplicate_prefill_tokens_total").increment(tokens);
}

/// A block was dropped.
pub(crate) fn dropped(reason: DropReason) {
    let reason = match reason {
        DropReason::Room => "room",
        DropReason::Released => "released",
        DropReason::Overflow => "overflow",
    };
    counter!("docket_evictions_total", "reason" => reason).increment(1);
}

/// A prewarm was answered.
pub(crate) fn prewarmed(result: &Result<PrewarmOutcome, ReadError>) {
    let result = match result {
        Ok(PrewarmOutcome { pending: true, .. }) => "pending",
        Ok(PrewarmOutcome { stored: true, .. }) => "stored",
        Ok(_) => "not_stored",
        Err(ReadError::Rejected(_)) => "rejected",
        Err(ReadError::Expired { .. }) => "expired",
        Err(ReadError::Engine(_)) => "failed",
        Err(ReadError::Cancelled | ReadError::Draining | ReadError::Unavailable) => "unavailable",
    };
    counter!("docket_prewarms_total", "result" => result).increment(1);
}

/// The registration actor has published; `before` is what it published last.
pub(crate) fn registrations(before: &RegistrationCounters, now: &RegistrationCounters) {
    let ended = [
        ("registered", before.registered, now.registered),
        ("dropped", before.dropped, now.dropped),
        ("failed", before.failed, now.failed),
    ];
    for (result, before, now) in ended {
        let more = now.saturating_sub(before);
        counter!("docket_registrations_total", "result" => result).increment(more);
    }
    let waiting = now.pending + now.deferred + now.running;
    gauge!("docket_registrations_pending").set(waiting as f64);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::METRICS;

    /// Names in quotes which follow one of the macros.
    fn emitted() -> BTreeSet<&'static str> {
        let source = include_str!("observe.rs");
        let calls = ["counter!(\"", "gauge!(\"", "histogram!(\""];
        let names = calls.into_iter().flat_map(|call| source.split(call).skip(1));
        names.filter_map(|rest| rest.split('"').next()).filter(|name| !name.is_empty()).collect()
    }

    #[test]
    fn every_metric_is_listed_once() {
        let listed: BTreeSet<_> = METRICS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(listed.len(), METRICS.len());
        let emitted: BTreeSet<_> =
            emitted().into_iter().filter(|name| name.starts_with("docket_")).collect();
        assert_eq!(emitted, listed);
    }

    #[test]
    fn every_counter_starts_at_zero() {
        let counters: BTreeSet<_> = METRICS
            .iter()
            .filter(|(_, kind, _)| *kind == "counter")
            .map(|(name, ..)| *name)
            .collect();
        let started: BTreeSet<_> = super::COUNTERS.iter().map(|(name, ..)| *name).collect();
        assert_eq!(started, counters);
    }

    #[test]
    fn names_tell_the_kind() {
        for (name, kind, help) in METRICS {
            assert_eq!(*kind == "counter", name.ends_with("_total"), "{name}");
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}");
        }
    }
}
