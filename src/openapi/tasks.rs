//! The routes of tasks, of abstention, and decisio's own.

use serde_json::{Map, Value, json};

use super::{dialect, request_id, with_failures};

/// Statuses of a route whose body is read.
const POSTED: [u16; 12] = [400, 401, 408, 413, 414, 415, 422, 429, 431, 500, 503, 504];
/// Of one without.
const ASKED: [u16; 7] = [400, 401, 404, 414, 431, 500, 503];

/// All of them.
pub(super) fn paths() -> Map<String, Value> {
    let mut paths = Map::new();
    for (base, name, what) in [
        ("/v1/tasks", "tasks", "a task that corrects answers"),
        (
            "/v1/abstention/tasks",
            "abstention_tasks",
            "a task that says when a question has no answer",
        ),
    ] {
        let list = json!({
            "operationId": format!("list_{name}"),
            "summary": "Lists the tasks of the key",
            "parameters": [dialect(), {
                "name": "full", "in": "query", "required": false,
                "description": "1 or true: with the arrays of heads",
                "schema": {"type": "string"},
            }],
            "responses": with_failures(json!({"200": object("The tasks")}), &ASKED),
        });
        let register =
            post(&format!("register_{name}"), &format!("Learns {what}"), &order_schema(), true);
        paths.insert(base.to_owned(), json!({"get": list, "post": register}));
        let import = post(&format!("import_{name}"), "Takes records in", &import_schema(), false);
        paths.insert(format!("{base}/import"), json!({"post": import}));
        let remove = by_id(&format!("remove_{name}"), "Removes a task", "It was removed");
        paths.insert(format!("{base}/{{id}}"), json!({"delete": remove}));
        let status = by_id(&format!("status_{name}"), "How far a registration is", "How far it is");
        paths.insert(format!("{base}/{{id}}/status"), json!({"get": status}));
    }
    let answer = post("answer", "Answers by letters, raw, with times", &answer_schema(), false);
    paths.insert("/v1/answer".to_owned(), json!({"post": answer}));
    paths
}

fn post(id: &str, summary: &str, schema: &Value, in_background: bool) -> Value {
    let mut answered = json!({"200": object("What came of it")});
    if in_background {
        answered["202"] = object("It is worked on");
    }
    json!({
        "operationId": id,
        "summary": summary,
        "parameters": [dialect()],
        "requestBody": {
            "required": true,
            "description": "May be compressed: Content-Encoding gzip or zstd.",
            "content": {"application/json": {"schema": schema}},
        },
        "responses": with_failures(answered, &POSTED),
    })
}

fn by_id(id: &str, summary: &str, answered: &str) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "parameters": [dialect(), {
            "name": "id", "in": "path", "required": true, "schema": {"type": "string"},
        }],
        "responses": with_failures(json!({"200": object(answered)}), &ASKED),
    })
}

fn object(description: &str) -> Value {
    json!({
        "description": description,
        "headers": request_id(),
        "content": {"application/json": {"schema": {"type": "object"}}},
    })
}

fn order_schema() -> Value {
    let example = json!({
        "type": "object",
        "required": ["request", "answer"],
        "properties": {"request": {"type": "object"}, "answer": {}},
    });
    json!({
        "type": "object",
        "required": ["id", "examples"],
        "properties": {
            "id": {"type": "string", "minLength": 1, "maxLength": crate::tasks::ID_BYTES_MAX},
            "examples": {
                "type": "array", "minItems": 1, "maxItems": crate::tasks::EXAMPLES_MAX, "items": example,
            },
        },
    })
}

fn import_schema() -> Value {
    let tasks = json!({"type": "array", "items": {"type": "object"}});
    json!({"type": "object", "required": ["tasks"], "properties": {"tasks": tasks}})
}

fn answer_schema() -> Value {
    let questions = json!({"type": "array", "minItems": 1, "items": {"type": "object"}});
    json!({
        "type": "object",
        "required": ["state", "questions"],
        "properties": {"state": {"type": ["string", "object", "array"]}, "questions": questions},
    })
}
