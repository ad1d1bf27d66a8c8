//! The schema of `/health`: how the server is, and what its scheduler does at the moment.

use serde_json::{Map, Value, json};

use super::fields::{count, milliseconds as seconds, object, reference, text, with};
use super::operation::{Operation, Place, parameter};
use super::schemas::Named;

/// The route of a dialect.
pub(super) fn route(place: Place<'_>) -> Value {
    let operation = Operation::new(place, "health", "Liveness, and readiness with ready=1");
    let operation = operation.public().parameters(vec![parameter("ready")]);
    operation.answering("health").answering_as(503, "unwell").value()
}

pub(super) fn schemas() -> Named {
    let of_self = json!({
        "status": {"enum": ["ok", "unavailable"]},
        "model": text(),
        "runner": {"enum": ["ready", "stopping", "crashed"]},
    });
    let mut own = with(health(), &of_self);
    own["required"] = json!(["ok", "ready", "reason", "status", "model", "runner"]);
    let mut of_decisio = health();
    of_decisio["description"] = json!("Members beside these say how questions are shown and read");
    of_decisio["additionalProperties"] = true.into();
    vec![
        ("SystemoneHealth", health()),
        ("DecisioHealth", of_decisio),
        ("SelfHealth", own),
        ("VllmHealth", health()),
        ("GmlxHealth", health()),
        ("OpenaiHealth", health()),
        ("HealthDetails", details()),
    ]
}

fn health() -> Value {
    let health = object(json!({
        "ok": {"type": "boolean"},
        "ready": {"type": "boolean"},
        "reason": {"type": ["string", "null"]},
    }));
    with(
        health,
        &json!({
            "engine": {"const": "dead", "description": "Only where the engine is gone for good"},
            "exit_code": {"const": 70, "description": "With which the process ends then"},
            "details": reference("HealthDetails"),
        }),
    )
}

/// Of its `details`. A model that answers no questions has the first four and `config` only.
fn details() -> Value {
    let text = json!({"type": "string"});
    json!({
        "description": "For operators; with a key where the server has keys",
        "type": "object",
        "required": ["served_names", "model", "version", "uptime_s"],
        "properties": {
            "served_names": {"type": "array", "minItems": 1, "items": text},
            "model": {"type": "object", "description": "What is served; its members depend on the engine"},
            "version": text,
            "uptime_s": count(),
            "engine": engine(),
            "restarts": counts(&["scheduler", "cache", "registration"]),
            "queue": queue(),
            "residency": counts(&[
                "budget_bytes", "used_bytes", "reserved_bytes", "pinned_bytes", "protected_bytes",
                "partial_bytes", "overflow_bytes", "segments", "leases", "evictions",
                "prewarms_waiting",
            ]),
            "tenants": tenants(),
            "state_boundary": counts(&[
                "submitted", "pending", "deferred", "running", "registered", "dropped", "failed",
                "coalesced",
            ]),
            "config": {
                "type": "object",
                "description": "Settings in effect: the tables of the configuration file, without secrets",
                "additionalProperties": {"type": "object"},
            },
            "store": store(),
            "limits": counts(&[
                "reads", "tokens", "tenant_reads", "step_tokens", "step_rows", "chunk_tokens",
                "wants", "registrations", "kv_bytes", "overflow_bytes",
            ]),
        },
    })
}

/// The store that several servers share.
fn store() -> Value {
    let mut store = counts(&["version", "reconnects"]);
    store["properties"]["address"] = text();
    store["properties"]["reached"] = json!({"type": "boolean"});
    store["properties"]["since_s"] = seconds();
    store["properties"]["heard_s"] = seconds();
    store["properties"]["reason"] = json!({"type": ["string", "null"]});
    store["type"] = json!(["object", "null"]);
    store["description"] =
        json!("The store that tasks are shared in, and since when it can be reached or cannot");
    store
}

/// The tenants of whom most is open, and most kept.
fn tenants() -> Value {
    let most = |what: &str| {
        let member = object(json!({"tenant": text(), what: count()}));
        json!({"type": "array", "maxItems": actors::TOP_TENANTS, "items": member})
    };
    object(json!({"most_reads": most("reads"), "most_bytes": most("bytes")}))
}

fn engine() -> Value {
    let mut engine = counts(&["epoch", "steps", "computed_tokens", "cached_tokens", "failures"]);
    let mut step = counts(&["tokens", "reads", "chunks"]);
    step["properties"]["running_s"] = seconds();
    step["type"] = json!(["object", "null"]);
    step["description"] = json!("The running step");
    engine["properties"]["last_progress_s"] = seconds();
    engine["properties"]["tokens_per_second"] = seconds();
    engine["properties"]["step"] = step;
    engine
}

fn queue() -> Value {
    let mut lane = counts(&["reads_waiting", "tokens_waiting", "entering_reads"]);
    for name in ["oldest_wait_s", "predicted_wait_s", "share"] {
        lane["properties"][name] = seconds();
    }
    lane["properties"]["predicted_wait_max_s"] = json!({"type": ["number", "null"], "minimum": 0});
    let mut queue = counts(&[
        "reads_in_flight",
        "tokens_waiting",
        "decisions_open",
        "wants_waiting",
        "tenant_reads",
        "fairness_gap_tokens",
    ]);
    queue["properties"]["reads_waiting"] = by_lane(&count());
    queue["properties"]["lanes"] = by_lane(&lane);
    queue["properties"]["states"] = counts(&["resident", "prefilling", "paused", "wanted"]);
    queue["properties"]["reads"] =
        counts(&["admitted", "done", "failed", "expired", "cancelled", "drained", "displaced"]);
    queue["properties"]["refusals"] = counts(&[
        "queue_full",
        "tokens",
        "wait",
        "tenant",
        "tokens_per_minute",
        "displaced",
        "too_long",
        "oversize",
        "draining",
        "engine_dead",
        "unavailable",
    ]);
    queue
}

fn by_lane(schema: &Value) -> Value {
    let lanes = ["urgent", "normal", "batch", "idle"];
    let lanes = lanes.map(|lane| (lane.to_owned(), schema.clone()));
    let lanes: Map<_, _> = lanes.into_iter().collect();
    json!({"type": "object", "properties": lanes})
}

/// An object of whole numbers.
fn counts(names: &[&str]) -> Value {
    let members: Map<_, _> = names.iter().map(|name| ((*name).to_owned(), count())).collect();
    json!({"type": "object", "properties": members})
}
