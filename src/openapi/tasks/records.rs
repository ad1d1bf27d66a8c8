//! Records of tasks: what was fitted, what is applied, and why anything is not.

use serde_json::{Value, json};

use crate::openapi::fields::{count, object, text, with};
use crate::tasks::record::{ABSTENTION, TASK};

/// Of a task that corrects answers.
pub(super) fn task(id: &Value) -> Value {
    let record = object(json!({
        "format": {"enum": TASK},
        "id": id,
        "type": {"enum": ["noul", "choice", "score"]},
        "task_key": text(),
        "options": {"type": "array", "minItems": 1, "items": text()},
        "fingerprint": text(),
        "applied_to": {"description": "What a bias is added to", "type": "string"},
        "calibration": calibration(),
        "head": head(),
        "certificate": certificate(),
    }));
    let examples = json!({
        "type": "object",
        "properties": {
            "counts": {"type": "array", "items": count()},
            "confidences": {"type": "array", "items": {"type": "number"}},
        },
    });
    with(
        record,
        &json!({
            "n_examples": count(),
            "examples": examples,
            "created_at": count(),
            "inputs_sha256": text(),
        }),
    )
}

/// What was fitted, with the figures of its cross-validation where there was one.
fn fitted() -> Value {
    let mut fitted = json!({
        "type": "object",
        "properties": {
            "format": text(),
            "task_id": text(),
            "fingerprint": text(),
            "K": count(),
            "n_examples": count(),
            "applied": {"type": "boolean"},
            "reason": {"description": "Why it is applied or not", "type": "string"},
            "lambda": number(),
        },
    });
    for name in ["cv_logloss_plain", "cv_logloss_fitted", "cv_acc_plain", "cv_acc_fitted", "cv_t"] {
        fitted["properties"][name] = number();
    }
    fitted
}

fn number() -> Value {
    json!({"type": ["number", "null"]})
}

fn calibration() -> Value {
    let bias = json!({"type": "array", "items": {"type": "number"}});
    with(fitted(), &json!({"bias": bias}))
}

fn head() -> Value {
    let array = json!({
        "description": "Without full=1 its shape alone",
        "type": "object",
        "properties": {
            "dtype": text(),
            "shape": {"type": "array", "items": count()},
            "b64": text(),
        },
    });
    let more = json!({"T": number(), "A": array, "c": array, "cv": {"type": "array"}});
    let mut head = with(fitted(), &more);
    head["type"] = json!(["object", "null"]);
    head
}

fn certificate() -> Value {
    let mut certificate = json!({
        "type": ["object", "null"],
        "properties": {
            "procedure": text(),
            "certified": {"type": "boolean"},
            "reason": text(),
            "n": count(),
            "certified_n": count(),
            "errors_at_threshold": count(),
        },
    });
    for name in [
        "alpha",
        "delta",
        "accuracy",
        "empirical_share_at_alpha",
        "threshold",
        "certified_share",
        "error_rate_at_threshold",
        "upper_bound_at_threshold",
    ] {
        certificate["properties"][name] = number();
    }
    certificate
}

/// Of a task that says when a question has no answer.
pub(super) fn abstention(id: &Value) -> Value {
    let option = json!({
        "type": "object", "properties": {"key": text(), "append": text()},
    });
    let record = object(json!({
        "format": {"enum": ABSTENTION},
        "id": id,
        "option": option,
        "match": {"enum": ["option_set", "option_keys", "imajev_extension"]},
        "identity": text(),
        "fingerprint": text(),
    }));
    with(
        record,
        &json!({
            "n": count(),
            "n_unanswerable": count(),
            "applied": {"type": "boolean"},
            "threshold": number(),
            "fitted_threshold": number(),
            "loo_right_threshold": number(),
            "loo_false_threshold": number(),
            "right_plain": number(),
            "false_plain": number(),
            "reason": text(),
            "created_at": count(),
        }),
    )
}
