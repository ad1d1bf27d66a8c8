//! decisio's letters route below System One, whose bodies are its own.

use serde_json::{Value, json};

use super::Served;
use super::fields::{count, images, object, probability, text};
use super::operation::{Operation, Place};
use super::schemas::Named;
use crate::dialect::Dialect;
use crate::question::OPTIONS_MAX;

/// The route.
pub(super) fn route(place: Place<'_>) -> Value {
    let operation = Operation::new(place, "answer", "Answers by letters, raw, with times");
    operation.deciding().posting("Letters").answering("lettered").value()
}

/// The same under the dialect's name.
pub(super) fn of_path(served: &Served) -> (Dialect, &'static str, &'static str, Value) {
    let dialect = Dialect::Decisio;
    (dialect, "/v1/answer", "post", route(Place { served, dialect, is_named: true }))
}

pub(super) fn schemas(served: &Served) -> Named {
    vec![("Letters", request(served)), ("Lettered", answered())]
}

fn request(served: &Served) -> Value {
    json!({
        "type": "object",
        "required": ["state", "questions"],
        "properties": {
            "state": {"type": ["string", "object", "array"]},
            "questions": {
                "type": "array",
                "minItems": 1,
                "maxItems": served.limits.questions_max,
                "items": {"anyOf": questions()},
            },
            "images": images(served, &text()),
        },
    })
}

fn questions() -> [Value; 3] {
    let options = |least: usize, kind: Value| {
        json!({
            "type": kind,
            "minItems": least,
            "maxItems": OPTIONS_MAX,
            "uniqueItems": true,
            "items": text(),
        })
    };
    let derive = object(json!({
        "from": {"type": "integer", "minimum": 0},
        "option": text(),
    }));
    let not_derived = json!({"type": "null"});
    [
        json!({
            "description": "Yes, as probable as an option of an earlier question",
            "type": "object",
            "required": ["derive"],
            "properties": {"derive": derive},
        }),
        json!({
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"const": "noul"},
                "options": options(0, json!(["array", "null"])),
                "instructions": {"description": "The question in words: any JSON"},
                "derive": not_derived,
            },
        }),
        json!({
            "type": "object",
            "required": ["options"],
            "properties": {
                "kind": {"description": "choice where it is absent", "enum": ["choice", "score"]},
                "options": options(1, json!("array")),
                "instructions": {"description": "The question in words: any JSON"},
                "derive": not_derived,
            },
        }),
    ]
}

fn answered() -> Value {
    let answer = object(json!({
        "options": {"type": "array", "items": text()},
        "probs": {"type": "array", "items": probability()},
    }));
    let ms = || json!({"type": "number", "minimum": 0});
    let counts = || json!({"type": "array", "items": count()});
    let timing = object(json!({
        "prepare_ms": ms(),
        "warm_ms": ms(),
        "questions_ms": ms(),
        "readout_ms": ms(),
        "server_ms": ms(),
        "waited_ms": ms(),
        "waited_behind_registration": {"type": "boolean"},
        "cached_tokens": counts(),
        "cached_tokens_mean": ms(),
        "prompt_tokens": counts(),
        "prompt_tokens_mean": ms(),
        "engine_prompt_tokens": count(),
        "engine_timing": object(json!({"queue_ms": ms(), "sched_to_token_ms": ms()})),
        "shared_prefix_tokens": count(),
        "questions": count(),
        "state_boundary": object(json!({
            "registered": {"type": "boolean"},
            "found": {"type": "boolean"},
            "deferred": {"type": "boolean"},
        })),
    }));
    object(json!({"answers": {"type": "array", "items": answer}, "timing": timing}))
}
