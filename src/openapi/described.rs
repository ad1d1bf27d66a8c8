//! The schema of JSON values of which one of each kind is at hand.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::dialect::FAULTS_MAX;

/// Members whose values are words of the API, each of which is listed.
const WORDS: [&str; 3] = ["type", "error_type", "code"];

/// Members whose own members depend on what is told.
const OPEN: [&str; 1] = ["ctx"];

/// The schema that all of `samples` have.
pub(super) fn schema(samples: &[Value]) -> Value {
    of("", &samples.iter().collect::<Vec<_>>())
}

fn of(name: &str, samples: &[&Value]) -> Value {
    let mut kinds = Vec::new();
    if samples.iter().any(|sample| sample.is_null()) {
        kinds.push(json!({"type": "null"}));
    }
    let texts: BTreeSet<&str> = samples.iter().filter_map(|sample| sample.as_str()).collect();
    if !texts.is_empty() {
        kinds.push(with_words(name, "string", &json!(texts)));
    }
    let numbers: BTreeSet<i64> = samples.iter().filter_map(|sample| sample.as_i64()).collect();
    if !numbers.is_empty() {
        kinds.push(with_words(name, "integer", &json!(numbers)));
    }
    let lists: Vec<&Vec<Value>> = samples.iter().filter_map(|sample| sample.as_array()).collect();
    if !lists.is_empty() {
        kinds.push(list(name, &lists));
    }
    let objects: Vec<&Map<String, Value>> =
        samples.iter().filter_map(|sample| sample.as_object()).collect();
    if !objects.is_empty() {
        kinds.push(object(name, &objects));
    }
    if kinds.len() == 1 { kinds.remove(0) } else { json!({"anyOf": kinds}) }
}

fn with_words(name: &str, kind: &str, words: &Value) -> Value {
    if WORDS.contains(&name) { json!({"type": kind, "enum": words}) } else { json!({"type": kind}) }
}

fn list(name: &str, lists: &[&Vec<Value>]) -> Value {
    let items: Vec<&Value> = lists.iter().flat_map(|list| list.iter()).collect();
    let mut schema = json!({"type": "array", "items": of(name, &items)});
    if name == "detail" {
        schema["minItems"] = 1.into();
        schema["maxItems"] = FAULTS_MAX.into();
    }
    schema
}

fn object(name: &str, objects: &[&Map<String, Value>]) -> Value {
    if OPEN.contains(&name) {
        return json!({"type": "object"});
    }
    let mut names: Vec<&String> = Vec::new();
    for name in objects.iter().flat_map(|object| object.keys()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let has_all = |name: &&&String| objects.iter().all(|object| object.contains_key(name.as_str()));
    let required: Vec<&&String> = names.iter().filter(has_all).collect();
    let member = |name: &&String| {
        let values: Vec<&Value> =
            objects.iter().filter_map(|object| object.get(name.as_str())).collect();
        ((*name).clone(), of(name, &values))
    };
    let properties: Map<String, Value> = names.iter().map(member).collect();
    json!({"type": "object", "required": required, "properties": properties})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_all_samples_have_is_required_and_words_are_listed() {
        let samples = [
            json!({"error": {"type": "b", "message": "x", "code": 400, "param": null}}),
            json!({"error": {"type": "a", "message": "y", "code": 404, "param": "p", "more": 1}}),
            json!({"error": "text"}),
        ];
        let error = &schema(&samples)["properties"]["error"]["anyOf"];
        assert_eq!(error[0], json!({"type": "string"}));
        assert_eq!(error[1]["required"], json!(["type", "message", "code", "param"]));
        let properties = &error[1]["properties"];
        assert_eq!(properties["type"], json!({"type": "string", "enum": ["a", "b"]}));
        assert_eq!(properties["code"], json!({"type": "integer", "enum": [400, 404]}));
        assert_eq!(properties["param"], json!({"anyOf": [{"type": "null"}, {"type": "string"}]}));
        assert_eq!(properties["more"], json!({"type": "integer"}));
    }

    #[test]
    fn lists_have_the_items_of_all() {
        let samples = [json!({"detail": ["a", 1]}), json!({"detail": []})];
        let detail = &schema(&samples)["properties"]["detail"];
        assert_eq!(detail["maxItems"], FAULTS_MAX);
        assert_eq!(detail["items"]["anyOf"], json!([{"type": "string"}, {"type": "integer"}]));
    }
}
