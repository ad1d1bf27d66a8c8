//! Fields that say which questions are asked, after which, and in how many orders.
//!
//! What they name must be there (a question, its answers, a profile), which a schema cannot say: what
//! names nothing is refused with 422.

use serde_json::{Map, Value, json};

use super::fields::{members as fields, reference};
use super::found::cite;

/// Fields of a decision.
pub(super) fn of_decision() -> Map<String, Value> {
    fields(json!({
        "ask": {
            "description": "Ids of the questions that are answered: these and all that they wait for",
            "type": ["array", "null"],
            "minItems": 1,
            "items": {"type": "string"},
        },
        "stage_context": {
            "description": "Whether a question is shown the answers of those that it waits for",
            "type": ["boolean", "null"],
        },
        "auto_threshold": {
            "description": "Entropy in nats above which a question is read in one more order",
            "type": ["number", "null"], "minimum": 0,
        },
        "auto_max": {
            "description": "Most orders that a question is then read in",
            "type": ["integer", "null"], "minimum": 1,
        },
        "profile": profile(),
    }))
}

/// The settings to show and read by.
pub(super) fn profile() -> Value {
    json!({"description": "A name of the server's profiles", "type": ["string", "null"]})
}

/// Fields that questions of all types have, but for their type and criteria.
pub(super) fn of_question() -> Map<String, Value> {
    fields(json!({
        "ask_if": {
            "description": "Answers of other questions under which alone it is asked, by their ids",
            "type": ["object", "null"],
            "additionalProperties": {"type": "array", "minItems": 1, "items": {"type": "string"}},
        },
        "depends_on": {
            "description": "Ids of questions that it is asked after, where stage_context is true",
            "type": ["array", "null"],
            "items": {"type": "string"},
        },
        "instructions": {"description": "The question in words: any JSON"},
        "samples": reference("Samples"),
        "cite": cite(),
    }))
}
