//! Gauges: drawn from what the actors publish at the moment when they are asked for.
//!
//! Nothing moves them on the way, so that they cost a read nothing, can leak nothing, and a wait
//! rises also while nothing happens.

use std::time::Duration;

use metrics::gauge;

use crate::config::{CacheConfig, Config};
use crate::read::Lane;
use crate::snapshot::{LoadView, RegistrationCounters, ResidencyView, Snapshot, StateCounts};

/// Shows a snapshot.
pub(crate) fn show(snapshot: &Snapshot, config: &Config) {
    let counts = |counts: [usize; 4]| counts.map(|count| count as f64);
    let seconds = |times: [Duration; 4]| times.map(|time| time.as_secs_f64());
    lanes("docket_queue_reads", counts(snapshot.load.reads_waiting));
    lanes("docket_queue_tokens", snapshot.load.tokens_waiting.map(|tokens| tokens as f64));
    lanes("docket_entering_reads", counts(snapshot.entering_reads));
    lanes("docket_oldest_wait_seconds", seconds(snapshot.oldest_wait));
    lanes("docket_predicted_wait_seconds", seconds(snapshot.predicted_wait));
    gauge!("docket_tenant_reads").set(snapshot.tenant_reads as f64);
    gauge!("docket_tenants").set(snapshot.tenants as f64);
    gauge!("docket_retries_expected").set(snapshot.retries_expected as f64);
    load(&snapshot.load);
    residency(&snapshot.residency, &config.cache);
    registrations(&snapshot.registration);
    limits(config);
}

fn lanes(name: &'static str, values: [f64; 4]) {
    for (lane, value) in Lane::ALL.into_iter().zip(values) {
        gauge!(name, "lane" => lane.as_str()).set(value);
    }
}

fn load(view: &LoadView) {
    gauge!("docket_fairness_gap_tokens").set(view.gap_tokens as f64);
    gauge!("docket_reads_in_flight").set(view.reads_in_flight as f64);
    gauge!("docket_decisions_open").set(view.decisions_open as f64);
    gauge!("docket_wants_waiting").set(view.wants_waiting as f64);
    gauge!("docket_engine_tokens_per_second").set(view.tokens_per_second);
    gauge!("docket_engine_epoch").set(view.epoch as f64);
    let StateCounts { resident, prefilling, paused, wanted } = view.states;
    let kinds = [
        ("resident", resident),
        ("prefilling", prefilling),
        ("paused", paused),
        ("wanted", wanted),
    ];
    for (kind, states) in kinds {
        gauge!("docket_states", "kind" => kind).set(states as f64);
    }
}

fn residency(view: &ResidencyView, config: &CacheConfig) {
    let kinds = [
        ("used", view.used),
        ("reserved", view.reserved),
        ("pinned", view.pinned),
        ("protected", view.protected),
        ("partial", view.partial),
        ("overflow", view.overflow),
        ("budget", view.budget),
        ("pinned_max", config.pin_bytes()),
        ("protected_max", config.protected_bytes()),
        ("overflow_max", config.overflow_bytes_max),
    ];
    for (kind, bytes) in kinds {
        gauge!("docket_residency_bytes", "kind" => kind).set(bytes as f64);
    }
    gauge!("docket_residency_segments").set(view.segments as f64);
    gauge!("docket_residency_leases").set(view.leased as f64);
    gauge!("docket_prewarms_waiting").set(view.prewarms_waiting as f64);
}

fn registrations(counters: &RegistrationCounters) {
    let waiting = counters.pending + counters.deferred + counters.running;
    gauge!("docket_registrations_pending").set(waiting as f64);
    gauge!("docket_registrations_deferred").set(counters.deferred as f64);
}

/// A histogram's limit is that of its values.
fn limits(config: &Config) {
    let Config { scheduler, cache, registration } = config;
    let limits = [
        ("docket_queue_reads", scheduler.reads_max as f64),
        ("docket_queue_tokens", scheduler.tokens_max as f64),
        ("docket_tenant_reads", scheduler.tenant_reads_max as f64),
        ("docket_retries_expected", scheduler.retry_claims_max as f64),
        ("docket_step_tokens", f64::from(scheduler.step_tokens_max)),
        ("docket_step_rows", f64::from(scheduler.rows_max)),
        ("docket_wants_waiting", cache.wants_max as f64),
        ("docket_registrations_pending", registration.pending_max as f64),
    ];
    for (metric, limit) in limits {
        gauge!("docket_limit", "metric" => metric).set(limit);
    }
    let waits = Lane::ALL.into_iter().filter_map(|lane| Some((lane, scheduler.wait_max(lane)?)));
    for (lane, wait) in waits {
        gauge!("docket_predicted_wait_limit_seconds", "lane" => lane.as_str())
            .set(wait.as_secs_f64());
    }
}
