//! The scheduler's part of `/health`: what waits, what runs, what is held, what was refused, and the
//! limits of all that.

use actors::{ActorKind, Config, Lane, LoadView, Snapshot};
use serde_json::{Map, Value, json};

use crate::store::{Reach, Version};

/// `details.engine`.
pub(super) fn engine(load: &LoadView) -> Value {
    json!({
        "epoch": load.epoch,
        "steps": load.steps,
        "last_progress_s": load.last_progress.elapsed().as_secs_f64(),
        "tokens_per_second": load.tokens_per_second,
        "computed_tokens": load.totals.computed_tokens,
        "cached_tokens": load.totals.cached_tokens,
        "failures": load.totals.step_failures,
        "step": step(load),
    })
}

/// The running step, or null.
fn step(load: &LoadView) -> Value {
    if load.step_tokens == 0 {
        return Value::Null;
    }
    json!({
        "running_s": load.last_progress.elapsed().as_secs_f64(),
        "tokens": load.step_tokens,
        "reads": load.reads_in_flight,
        "chunks": load.step_chunks,
    })
}

/// `details.restarts`: actors that were lost and started again.
pub(super) fn restarts(snapshot: &Snapshot) -> Value {
    let count = |actor: ActorKind| (actor.as_str().to_owned(), snapshot.restarts.of(actor).into());
    Value::Object(ActorKind::ALL.into_iter().map(count).collect())
}

/// `details.tenants`: those of whom most is open, and most kept; only operators see it.
pub(super) fn tenants(snapshot: &Snapshot) -> Value {
    let reads = snapshot.top_reads.iter();
    let bytes = snapshot.top_bytes.iter();
    json!({
        "most_reads": reads
            .map(|(tenant, reads)| json!({"tenant": &*tenant.0, "reads": reads}))
            .collect::<Vec<_>>(),
        "most_bytes": bytes
            .map(|(tenant, bytes)| json!({"tenant": &*tenant.0, "bytes": bytes}))
            .collect::<Vec<_>>(),
    })
}

/// `details.queue`.
pub(super) fn queue(snapshot: &Snapshot, config: &Config) -> Value {
    let load = &snapshot.load;
    let waiting = by_lane(|lane| load.waiting_in(lane).into());
    let lanes = by_lane(|lane| {
        let at = lane as usize;
        json!({
            "reads_waiting": load.reads_waiting[at],
            "tokens_waiting": load.tokens_waiting[at],
            "entering_reads": snapshot.entering_reads[at],
            "oldest_wait_s": snapshot.oldest_wait[at].as_secs_f64(),
            "predicted_wait_s": snapshot.predicted_wait[at].as_secs_f64(),
            "predicted_wait_max_s":
                config.scheduler.wait_max(lane).map(|limit| limit.as_secs_f64()),
            "share": load.shares[at],
        })
    });
    json!({
        "reads_waiting": waiting,
        "reads_in_flight": load.reads_in_flight,
        "tokens_waiting": load.tokens(),
        "decisions_open": load.decisions_open,
        "wants_waiting": load.wants_waiting,
        "tenant_reads": snapshot.tenant_reads,
        "fairness_gap_tokens": load.gap_tokens,
        "lanes": lanes,
        "states": {
            "resident": load.states.resident,
            "prefilling": load.states.prefilling,
            "paused": load.states.paused,
            "wanted": load.states.wanted,
        },
        "reads": reads(load),
        "refusals": refusals(snapshot),
    })
}

/// Reads since the actors started, by how they ended.
fn reads(load: &LoadView) -> Value {
    let totals = &load.totals;
    json!({
        "admitted": totals.admitted,
        "done": totals.done,
        "failed": totals.failed,
        "expired": totals.expired,
        "cancelled": totals.cancelled,
        "drained": totals.drained,
        "displaced": totals.displaced,
    })
}

fn refusals(snapshot: &Snapshot) -> Value {
    let refusals = snapshot.refusals.iter();
    refusals
        .map(|(reason, count)| ((*reason).to_owned(), (*count).into()))
        .collect::<Map<_, _>>()
        .into()
}

/// `details.residency`.
pub(super) fn residency(snapshot: &Snapshot) -> Value {
    let residency = &snapshot.residency;
    json!({
        "budget_bytes": residency.budget,
        "used_bytes": residency.used,
        "reserved_bytes": residency.reserved,
        "pinned_bytes": residency.pinned,
        "protected_bytes": residency.protected,
        "partial_bytes": residency.partial,
        "overflow_bytes": residency.overflow,
        "segments": residency.segments,
        "leases": residency.leased,
        "evictions": residency.evictions,
        "prewarms_waiting": residency.prewarms_waiting,
    })
}

/// `details.state_boundary`.
pub(super) fn registration(snapshot: &Snapshot) -> Value {
    let counters = &snapshot.registration;
    json!({
        "submitted": counters.submitted,
        "pending": counters.pending,
        "deferred": counters.deferred,
        "running": counters.running,
        "registered": counters.registered,
        "dropped": counters.dropped,
        "failed": counters.failed,
        "coalesced": counters.coalesced,
    })
}

/// `details.limits`.
pub(super) fn limits(config: &Config) -> Value {
    let Config { scheduler, cache, registration } = config;
    json!({
        "reads": scheduler.reads_max,
        "tokens": scheduler.tokens_max,
        "tenant_reads": scheduler.tenant_reads_max,
        "step_tokens": scheduler.step_tokens_max,
        "step_rows": scheduler.rows_max,
        "chunk_tokens": scheduler.chunk_tokens,
        "wants": cache.wants_max,
        "registrations": registration.pending_max,
        "kv_bytes": cache.kv_bytes,
        "overflow_bytes": cache.overflow_bytes_max,
    })
}

/// `details.store`: the store that several servers share; null without one.
pub(super) fn store(reach: &Reach, version: Version) -> Value {
    json!({
        "address": reach.address,
        "reached": reach.lost.is_none(),
        "since_s": reach.since.as_secs_f64(),
        "reason": reach.lost,
        "heard_s": reach.heard.as_secs_f64(),
        "reconnects": reach.reconnects,
        "version": version.0,
    })
}

fn by_lane(of: impl Fn(Lane) -> Value) -> Value {
    let lanes = Lane::ALL.into_iter().map(|lane| (lane.to_string(), of(lane)));
    lanes.collect::<Map<_, _>>().into()
}
