//! Schemas of prewarms, in JSON Schema 2020-12.

use serde_json::{Value, json};

use super::schemas::{nullable, reference, timeout_ms};
use super::staged::profile;
use crate::dialect::STATES_MAX;

pub(super) fn prewarm() -> Value {
    json!({
        "type": "object",
        "oneOf": [{"required": ["state"]}, {"required": ["states"]}],
        "properties": {
            "state": reference("State"),
            "states": {
                "description": "Several states, in the place of one",
                "type": "array",
                "minItems": 1,
                "maxItems": STATES_MAX,
                "items": reference("State"),
            },
            "model": {"description": "Any name; the served model is used"},
            "priority": nullable(&reference("Lane")),
            "timeout_ms": timeout_ms(),
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

pub(super) fn prewarmed() -> Value {
    json!({
        "type": "object",
        "required": ["model", "ok", "prompt_tokens", "prefix"],
        "properties": {
            "model": {"type": "string"},
            "ok": {"type": "boolean"},
            "prompt_tokens": {"type": "integer", "minimum": 0},
            "prefix": reference("Prefix"),
            "expires_at": expires_at(),
            "handle": handle(),
            "prefixes": {
                "description": "Of several states, each in order",
                "type": "array",
                "minItems": 1,
                "items": {"oneOf": [
                    {
                        "type": "object",
                        "required": ["ok", "prompt_tokens", "prefix", "expires_at", "handle"],
                        "properties": {
                            "ok": {"type": "boolean"},
                            "prompt_tokens": {"type": "integer", "minimum": 0},
                            "prefix": reference("Prefix"),
                            "expires_at": expires_at(),
                            "handle": handle(),
                        },
                    },
                    reference("Unread"),
                ]},
            },
        },
    })
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
    json!({
        "type": "object",
        "required": ["reused", "stored", "tier"],
        "properties": {
            "reused": {"type": "boolean"},
            "stored": {"type": "boolean"},
            "tier": {"enum": ["exact", "pending", "unsupported", "off"]},
        },
    })
}

pub(super) fn unread() -> Value {
    json!({
        "description": "One of several states that was not read, with what it alone would have been refused with",
        "type": "object",
        "required": ["ok", "error"],
        "properties": {
            "ok": {"const": false},
            "error": {
                "type": "object",
                "required": ["status", "reason", "detail"],
                "properties": {
                    "status": {"type": "integer"},
                    "reason": {"type": "string"},
                    "detail": {"type": ["object", "array"]},
                    "retry_after_ms": {"type": "integer", "minimum": 1},
                },
            },
        },
    })
}
