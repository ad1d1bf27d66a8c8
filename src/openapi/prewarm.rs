//! Prewarms: their routes and schemas.

use serde_json::{Value, json};

use super::Served;
use super::faults::Stage;
use super::fields::{count, falsy, ignored, lane, lenient, object, reference, text, timeout_ms};
use super::operation::{Operation, parameter};
use super::schemas::Named;
use super::staged::profile;
use crate::dialect::Dialect;

/// The schema of a dialect's requests: docket's own, but where the dialect has rules of its own.
pub(super) fn request_of(dialect: Dialect) -> String {
    let name = match dialect {
        Dialect::Vllm => "VllmPrewarm",
        Dialect::Gmlx => "GmlxPrewarm",
        Dialect::Systemone | Dialect::Decisio | Dialect::SelfServe | Dialect::Openai => "Prewarm",
    };
    name.to_owned()
}

/// The route that gives a pin up.
pub(super) fn unpin(operation: Operation<'_>) -> Value {
    let operation = operation.stages(&[Stage::Handle]).parameters(vec![parameter("handle")]);
    operation.answering("unpinned").value()
}

pub(super) fn schemas(served: &Served) -> Named {
    vec![
        ("Prewarm", own(served)),
        ("VllmPrewarm", of_vllm(served)),
        ("GmlxPrewarm", of_gmlx()),
        ("Prewarmed", prewarmed()),
        ("GmlxPrewarmed", object(told())),
        ("Prefix", prefix()),
        ("Unread", unread()),
    ]
}

fn own(served: &Served) -> Value {
    json!({
        "type": "object",
        "oneOf": [{"required": ["state"]}, {"required": ["states"]}],
        "properties": {
            "state": reference("State"),
            "states": {
                "description": "Several states, in the place of one",
                "type": "array",
                "minItems": 1,
                "maxItems": served.limits.states_max,
                "items": reference("State"),
            },
            "model": ignored(),
            "priority": lane(),
            "timeout_ms": timeout_ms(served),
            "ttl_s": {
                "description": "Seconds for which the state stays pinned without a hit",
                "type": ["integer", "null"], "minimum": 1, "maximum": 604_800,
            },
            "context": {"description": "As in a decision", "type": ["string", "null"]},
            "profile": profile(),
            "wait": {
                "description": "Whether to answer only when the state is resident; true by default",
                "type": ["boolean", "null"],
            },
        },
    })
}

/// A state may be null there, and what a decision takes into its prefix is taken here too.
fn of_vllm(served: &Served) -> Value {
    let mut prewarm = own(served);
    prewarm["properties"]["state"] = json!({"description": "Any JSON"});
    prewarm["properties"]["instructions"] = json!({"type": ["string", "null"]});
    prewarm["properties"]["chat_template_kwargs"] = reference("VllmTemplate");
    prewarm
}

fn of_gmlx() -> Value {
    json!({
        "type": "object",
        "required": ["state"],
        "properties": {
            "state": reference("State"),
            "model": {"description": "Any; a text may end in `@` and the name of a profile"},
            "profile": profile(),
            "images": {"description": "There are none", "enum": falsy()},
            "priority": lenient("A lane"),
            "timeout_ms": lenient("A limit of time"),
            "ttl_s": lenient("Seconds for which the state stays pinned without a hit"),
        },
    })
}

/// What every dialect tells of one prefix.
fn told() -> Value {
    json!({
        "model": text(),
        "ok": {"type": "boolean"},
        "prompt_tokens": count(),
        "prefix": reference("Prefix"),
    })
}

fn prewarmed() -> Value {
    let one = json!({
        "ok": {"type": "boolean"},
        "prompt_tokens": count(),
        "prefix": reference("Prefix"),
        "expires_at": expires_at(),
        "handle": handle(),
    });
    let mut prewarmed = object(told());
    prewarmed["properties"]["expires_at"] = expires_at();
    prewarmed["properties"]["handle"] = handle();
    prewarmed["properties"]["prefixes"] = json!({
        "description": "Of several states, each in order",
        "type": "array",
        "minItems": 1,
        "items": {"oneOf": [object(one), reference("Unread")]},
    });
    prewarmed
}

fn expires_at() -> Value {
    json!({
        "description": "Seconds since 1970; null where nothing is pinned",
        "type": ["integer", "null"],
    })
}

fn handle() -> Value {
    json!({"description": "For DELETE /v1/prewarm/{handle}", "type": ["string", "null"]})
}

pub(super) fn prefix() -> Value {
    object(json!({
        "reused": {"type": "boolean"},
        "stored": {"type": "boolean"},
        "tier": {"enum": ["exact", "pending", "unsupported", "off"]},
    }))
}

fn unread() -> Value {
    let mut error = object(json!({
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "reason": text(),
        "detail": {"type": ["object", "array"]},
    }));
    error["properties"]["retry_after_ms"] = json!({"type": "integer", "minimum": 1});
    let mut unread = object(json!({"ok": {"const": false}, "error": error}));
    unread["description"] = json!(
        "One of several states that was not read, with what it alone would have been refused with"
    );
    unread
}
