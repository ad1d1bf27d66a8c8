//! Conformance vectors: recorded requests and what the running binary must answer to each.
//!
//! Goal: every dialect answers as the document that it follows. Method: each folder of
//! `tests/conformance/data` is a dialect, its `server.json` the flags of one server, every other file
//! a list of vectors. All mismatches of all dialects are told at once. A file that is an object
//! `{"args", "vectors"}` has a server of its own. Each request that is answered, and each answer, must
//! be as the server's own `/openapi.json` says too.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::document::Document;
use crate::server::{Sending, Server};

/// Fewest vectors of a dialect.
const VECTORS_MIN: usize = 40;

#[test]
fn every_dialect_answers_as_its_vectors_say() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/data");
    let is_dialect = |path: &PathBuf| path.join("server.json").is_file();
    let folders: Vec<PathBuf> = listed(&data).into_iter().filter(is_dialect).collect();
    assert!(!folders.is_empty(), "no vectors in {}", data.display());
    let mismatches: Vec<String> = folders.iter().flat_map(|folder| of_dialect(folder)).collect();
    assert!(mismatches.is_empty(), "{} mismatches:\n{}", mismatches.len(), mismatches.join("\n"));
}

/// Everything that one dialect answers otherwise than recorded.
fn of_dialect(folder: &Path) -> Vec<String> {
    let common = read(&folder.join("server.json"));
    let is_json = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json");
    let files = listed(folder).into_iter().filter(is_json);
    let files = files.filter(|path| !path.ends_with("server.json"));
    let shared = Server::start(&args(&common));
    let mut described = Document::of(&shared);
    let (mut mismatches, mut count) = (Vec::new(), 0);
    for file in files {
        let content = read(&file);
        let own = content.get("args").map(|_| Server::start(&args(&content)));
        let mut own_document = own.as_ref().map(Document::of);
        let vectors = content.get("vectors").unwrap_or(&content);
        let vectors = vectors.as_array().unwrap_or_else(|| panic!("{}: no list", file.display()));
        for vector in vectors {
            let document = own_document.as_mut().unwrap_or(&mut described);
            let told = of_vector(own.as_ref().unwrap_or(&shared), document, vector);
            let name = format!("{}: {}", file.display(), vector["name"]);
            mismatches.extend(told.into_iter().map(|told| format!("{name}: {told}")));
        }
        count += vectors.len();
    }
    assert!(count >= VECTORS_MIN, "{}: {count} vectors", folder.display());
    let compared = described.compared;
    assert!(compared >= VECTORS_MIN, "{}: {compared} bodies compared", folder.display());
    mismatches
}

/// Sends one request and compares what comes back, with the vector and with the server's document.
fn of_vector(server: &Server, document: &mut Document, vector: &Value) -> Vec<String> {
    let (request, response) = (&vector["request"], &vector["response"]);
    for (what, named) in [("name", vector), ("source", vector), ("path", request)] {
        assert!(named[what].is_string(), "no {what} in {vector}");
    }
    let none = Map::new();
    let headers = request["headers"].as_object().unwrap_or(&none);
    let text = match (&request["text"], request.get("body")) {
        (Value::String(text), None) => Some(text.clone()),
        (Value::Null, body) => body.map(Value::to_string),
        (other, _) => panic!("text is {other}, beside a body or no string"),
    };
    let sending = Sending {
        method: request["method"].as_str().unwrap_or("POST"),
        path: request["path"].as_str().unwrap_or_default(),
        headers: headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        text,
    };
    let reply = server.send(&sending);
    let mut told = document.faults(&sending, &reply);
    if response["status"] != reply.status {
        told.push(format!(
            "status {} and not {}: {}",
            reply.status, response["status"], reply.body
        ));
    }
    for (name, wanted) in response["headers"].as_object().unwrap_or(&none) {
        let found = reply.text(name).map_or(Value::Null, Value::from);
        compare(wanted, &found, &format!("header {name}"), &mut told);
    }
    compare(&response["body"], &reply.body, "body", &mut told);
    told
}

/// Notes where `found` is not as `wanted`, which may have placeholders (tests/conformance/README.md).
fn compare(wanted: &Value, found: &Value, at: &str, told: &mut Vec<String>) {
    let is_it = match wanted {
        Value::String(text) => match text.strip_prefix('$') {
            Some(kind) => is_of_kind(kind, found),
            None => wanted == found,
        },
        Value::Object(members) if members.contains_key("$contains") => {
            let piece = members["$contains"].as_str().expect("$contains is a string");
            found.as_str().is_some_and(|text| text.contains(piece))
        }
        Value::Object(members) if members.contains_key("$one_of") => {
            members["$one_of"].as_array().expect("$one_of is a list").contains(found)
        }
        Value::Object(members) => return compare_members(members, found, at, told),
        Value::Array(items) => match found.as_array() {
            Some(others) if others.len() == items.len() => {
                for (index, (item, other)) in items.iter().zip(others).enumerate() {
                    compare(item, other, &format!("{at}[{index}]"), told);
                }
                true
            }
            Some(_) | None => false,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => wanted == found,
    };
    if !is_it {
        told.push(format!("{at} is {found} and not {wanted}"));
    }
}

fn compare_members(wanted: &Map<String, Value>, found: &Value, at: &str, told: &mut Vec<String>) {
    let Some(others) = found.as_object() else {
        return told.push(format!("{at} is {found} and no object"));
    };
    for (key, value) in wanted.iter().filter(|(key, _)| *key != "$more") {
        match others.get(key) {
            Some(other) => compare(value, other, &format!("{at}.{key}"), told),
            None => told.push(format!("{at} has no {key}: {found}")),
        }
    }
    if wanted.contains_key("$more") {
        return;
    }
    let surplus = others.keys().filter(|key| !wanted.contains_key(*key));
    told.extend(surplus.map(|key| format!("{at} has {key}: {found}")));
}

/// Whether a value is what a placeholder stands for.
fn is_of_kind(kind: &str, found: &Value) -> bool {
    match kind {
        "any" => true,
        "number" => found.is_number(),
        "string" => found.is_string(),
        "id" => found.as_str().is_some_and(|text| !text.is_empty()),
        "probability" => found.as_f64().is_some_and(|number| (0.0..=1.0).contains(&number)),
        _ => panic!("no placeholder ${kind}"),
    }
}

fn args(settings: &Value) -> Vec<&str> {
    let args = settings["args"].as_array().expect("args is a list");
    args.iter().map(|arg| arg.as_str().expect("an argument is a string")).collect()
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// What is in a folder, by name.
fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_placeholder_stands_for_its_kind_only() {
    let told = |wanted: &str, found: &str| {
        let mut told = Vec::new();
        let [wanted, found] = [wanted, found].map(|text| serde_json::from_str(text).unwrap());
        compare(&wanted, &found, "body", &mut told);
        told.len()
    };
    for (wanted, found) in [
        (r#""$number""#, "1.5"),
        (r#""$probability""#, "1"),
        (r#""$string""#, r#""""#),
        (r#""$id""#, r#""x""#),
        (r#"{"$contains": "b"}"#, r#""abc""#),
        (r#"{"$one_of": ["a", true]}"#, "true"),
        (r#"{"a": "$any", "$more": true}"#, r#"{"a": null, "b": 1}"#),
        ("[1, 2]", "[1, 2]"),
    ] {
        assert_eq!(told(wanted, found), 0, "{wanted} {found}");
    }
    for (wanted, found) in [
        (r#""$number""#, r#""1""#),
        (r#""$probability""#, "1.01"),
        (r#""$id""#, r#""""#),
        (r#"{"$contains": "b"}"#, r#""ac""#),
        (r#"{"$one_of": ["a", true]}"#, "false"),
        (r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#),
        (r#"{"a": 1}"#, "{}"),
        (r#"{"a": 1}"#, "null"),
        ("[1, 2]", "[1]"),
        ("[1, 2]", "[1, 3]"),
        ("1", "1.0"),
        ("\"a\"", "\"b\""),
    ] {
        assert_eq!(told(wanted, found), 1, "{wanted} {found}");
    }
}
