//! Codes of faults of bodies, which nobody lists but the places that find them: a test compares this
//! list with those.

use crate::dialect::{Dialect, words};

/// Of the JSON text.
pub(super) const JSON: &[&str] = &[
    "json_invalid",
    "json_depth",
    "json_size",
    "duplicate_key",
    "lone_surrogate",
    "encoding_invalid",
];

/// Of docket's own rules; every dialect's prewarms and prompts have them.
const OWN: &[&str] = &[
    "missing",
    "wrong_type",
    "unknown_type",
    "too_few",
    "too_many",
    "too_long",
    "oversize",
    "duplicate_key",
    "id_empty",
    "option_blank",
    "image_invalid",
    "samples_invalid",
    "ask_if_invalid",
    "unknown_question",
    "cycle",
    "ask_incomplete",
    "priority_invalid",
    "timeout_invalid",
    "ttl_invalid",
    "range_empty",
    "precision_negative",
    "number_invalid",
    "too_many_numbers",
    "unsupported_capability",
];

/// Of decisio's, as a pydantic model names them, and docket's.
const DECISIO: &[&str] = &[
    "missing",
    "string_type",
    "dict_type",
    "list_type",
    "model_type",
    "model_attributes_type",
    "union_tag_not_found",
    "union_tag_invalid",
    "literal_error",
    "value_error",
    "too_short",
    "too_long",
    "oversize",
    "wrong_type",
    "too_few",
    "too_many",
    "duplicate_key",
    "priority_invalid",
    "timeout_invalid",
    "ttl_invalid",
    "image_invalid",
    "json_invalid",
];

/// Of `OpenAI`'s, and docket's.
const OPENAI: &[&str] = &[
    "missing_required_parameter",
    "unknown_parameter",
    "invalid_type",
    "invalid_value",
    "array_below_min_length",
    "array_above_max_length",
    "string_above_max_length",
    "unsupported_capability",
    "too_long",
    "oversize",
    "missing",
    "wrong_type",
    "too_few",
    "too_many",
    "duplicate_key",
    "priority_invalid",
    "timeout_invalid",
    "ttl_invalid",
    "image_invalid",
];

/// Of orders to register tasks, and of what is imported.
pub(super) const TASKS: &[&str] = &[
    "missing",
    "id_invalid",
    "examples_invalid",
    "examples_differ",
    "questions_invalid",
    "unknown_answer",
    "unknown_option",
    "unknown_match",
    "option_invalid",
    "certify_invalid",
    "tasks_full",
    "tasks_invalid",
    "task_refused",
    "image_invalid",
];

/// Those of a dialect's requests.
pub(super) fn of(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Systemone | Dialect::SelfServe => OWN,
        Dialect::Decisio => DECISIO,
        Dialect::Vllm => words::VLLM,
        Dialect::Gmlx => words::GMLX,
        Dialect::Openai => OPENAI,
    }
}
