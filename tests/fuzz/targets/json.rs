//! The strict parser: whatever is sent is a value within the limits, which is written and read back the
//! same, or a fault that says where.

use docket::json::{DEPTH_MAX, Json, Limits, VALUES_MAX};

use super::repeated;

/// What a fault of the text can be.
const CODES: [&str; 5] =
    ["json_invalid", "json_depth", "json_size", "duplicate_key", "lone_surrogate"];

/// Longest message of a fault, in bytes.
const MESSAGE_BYTES_MAX: usize = 1_000;

const SMALL: Limits = Limits { depth_max: 3, values_max: 8 };

/// See the module.
pub fn run(input: &[u8]) {
    if let Some(text) = repeated(input) {
        let _ = Json::parse(&text, Limits::default());
        let quoted = [b"[\"", text.as_slice(), b"\"]"].concat();
        let _ = Json::parse(&quoted, Limits::default());
        return;
    }
    let serde = serde_json::from_slice::<serde_json::Value>(input);
    match Json::parse(input, Limits::default()) {
        Ok(value) => {
            assert!(serde.is_ok(), "taken, and serde_json says {serde:?}");
            whole(&value, input);
        }
        Err(fault) => {
            assert!(CODES.contains(&fault.code), "{fault:?}");
            assert!(fault.message.len() < MESSAGE_BYTES_MAX, "{fault:?}");
            assert!(fault.path.len() <= DEPTH_MAX, "{fault:?}");
            assert!(
                serde.is_err() || fault.code != "json_invalid",
                "serde_json takes it: {fault:?}"
            );
        }
    }
}

fn whole(value: &Json, input: &[u8]) {
    let (depth, values) = (depth(value), values(value));
    assert!(depth <= DEPTH_MAX && values <= VALUES_MAX, "{depth} deep, {values} values");
    for text in [value.compact(), value.spaced()] {
        let again = Json::parse(text.as_bytes(), Limits::default());
        assert_eq!(again.as_ref(), Ok(value), "written as {text}");
    }
    let is_small = depth <= SMALL.depth_max && values <= SMALL.values_max;
    assert_eq!(Json::parse(input, SMALL).is_ok(), is_small, "{depth} deep, {values} values");
    assert!(value.excerpt(20).chars().count() <= 23);
    assert!(value.heap_bytes() < 300 * (input.len() + 1), "{} bytes", value.heap_bytes());
}

fn depth(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => 0,
        Json::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => {
            1 + members.iter().map(|(_, member)| depth(member)).max().unwrap_or(0)
        }
    }
}

fn values(value: &Json) -> usize {
    match value {
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => 1,
        Json::Array(items) => 1 + items.iter().map(values).sum::<usize>(),
        Json::Object(members) => {
            1 + members.iter().map(|(_, member)| values(member)).sum::<usize>()
        }
    }
}
