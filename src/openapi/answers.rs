//! What is answered where nothing fails, by name: that of each dialect, and what is the same in all.

use serde_json::{Map, Value, json};

use super::fields::{object, reference, text};
use super::{headers, title};
use crate::dialect::Dialect;

/// Names of what every dialect answers alike.
const OF_ALL: [&str; 16] = [
    "seen",
    "used",
    "estimated",
    "unpinned",
    "metrics",
    "openapi",
    "model",
    "lettered",
    "tasks",
    "registered",
    "accepted",
    "removed",
    "imported",
    "registration",
    "abstention_tasks",
    "abstention_registered",
];

/// The component's name of what a dialect answers by the name `name`.
pub(super) fn name(dialect: Dialect, name: &str) -> String {
    if OF_ALL.contains(&name) { name.to_owned() } else { format!("{}_{name}", dialect.name()) }
}

/// The components of a dialect.
pub(super) fn of(dialect: Dialect) -> Map<String, Value> {
    let schema = |what: &str| reference(&format!("{}{what}", title(dialect)));
    let mut costs = headers::costs();
    let prewarmed = if dialect == Dialect::Gmlx { "GmlxPrewarmed" } else { "Prewarmed" };
    let mut prewarmed = response("What was read", &reference(prewarmed), &costs);
    if dialect != Dialect::Gmlx {
        let unpin = format!("{}_unpin", dialect.name());
        prewarmed["links"] = links(&[("unpin", &unpin, "handle", "/handle")]);
    }
    if dialect == Dialect::Decisio {
        costs.extend(headers::of_decisio());
    }
    let mut all = vec![
        ("decided", response("The answers", &schema("Decided"), &costs)),
        ("prewarmed", prewarmed),
        ("models", plain("The models", &schema("Models"))),
        ("health", plain("It is", &schema("Health"))),
        // No refusal: nothing says why but the body, nor when to come back.
        ("unwell", plain("It is not", &schema("Health"))),
    ];
    if dialect != Dialect::Openai {
        let mut batched = headed("A result for each state", &schema("BatchDecided"));
        batched["content"]["application/x-ndjson"] = json!({
            "schema": {"description": "A result a line, as they come", "type": "string"},
        });
        all.push(("batched", batched));
    }
    all.into_iter().map(|(short, response)| (name(dialect, short), response)).collect()
}

/// Those that are the same in all of them.
pub(super) fn of_all() -> Map<String, Value> {
    let id = || object(json!({"ok": {"const": true}}));
    let mut accepted = plain("It is worked on", &reference("Registration"));
    if let Some(all) = accepted["headers"].as_object_mut() {
        all.extend(headers::optional(&["Location", "PreferenceApplied"]));
    }
    let mut costs = headers::costs();
    costs.extend(headers::of_decisio());
    let lettered = response("Raw probabilities and times", &reference("Lettered"), &costs);
    let imported = object(json!({"loaded": {"type": "array", "items": text()}}));
    let openapi =
        object(json!({"openapi": text(), "info": {"type": "object"}, "paths": {"type": "object"}}));
    let all = [
        ("estimated", headed("What it would cost", &reference("Estimate"))),
        ("unpinned", plain("It was given up", &id())),
        ("seen", plain("What it does at the moment", &reference("Live"))),
        ("metrics", of_text("The metrics")),
        ("openapi", plain("The document", &openapi)),
        ("model", plain("The model", &reference("Model"))),
        ("lettered", lettered),
        ("tasks", plain("The tasks of the key", &reference("Tasks"))),
        ("registered", registered("TaskRecord", "tasks")),
        ("accepted", accepted),
        ("removed", plain("It was removed", &object(json!({"removed": text()})))),
        ("imported", plain("What was taken in", &imported)),
        ("registration", plain("How far it is", &reference("Registration"))),
        ("abstention_tasks", plain("The tasks of the key", &reference("AbstentionTasks"))),
        ("used", plain("What was counted", &reference("Usage"))),
        ("abstention_registered", registered("AbstentionRecord", "abstention_tasks")),
    ];
    all.into_iter().map(|(name, response)| (name.to_owned(), response)).collect()
}

/// What can be done with an answer: by which operation, with which member of it as which parameter.
fn links(listed: &[(&str, &str, &str, &str)]) -> Value {
    let link = |(name, operation, parameter, place): &(&str, &str, &str, &str)| {
        let parameters = json!({*parameter: format!("$response.body#{place}")});
        ((*name).to_owned(), json!({"operationId": operation, "parameters": parameters}))
    };
    Value::Object(listed.iter().map(link).collect())
}

/// A record, of which the routes about a task can be asked.
fn registered(schema: &str, name: &str) -> Value {
    let mut registered = plain("The record", &reference(schema));
    let [status, remove] = ["status", "remove"].map(|what| format!("{what}_{name}"));
    registered["links"] =
        links(&[("status", &status, "id", "/id"), ("remove", &remove, "id", "/id")]);
    registered
}

/// A response that says nothing in its headers but the request's id.
fn plain(description: &str, schema: &Value) -> Value {
    response(description, schema, &headers::request_id())
}

/// One that lists ignored fields too.
fn headed(description: &str, schema: &Value) -> Value {
    let ignored = headers::optional(&["Ignored"]);
    response(description, schema, &headers::request_id().into_iter().chain(ignored).collect())
}

fn response(description: &str, schema: &Value, headers: &Map<String, Value>) -> Value {
    let content = json!({"application/json": {"schema": schema}});
    json!({"description": description, "headers": headers, "content": content})
}

fn of_text(description: &str) -> Value {
    json!({
        "description": description,
        "headers": headers::request_id(),
        "content": {"text/plain": {"schema": text()}},
    })
}
