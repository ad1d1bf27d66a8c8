//! The routes of tasks and of abstention.

mod records;

use serde_json::{Map, Value, json};

use super::faults::Stage;
use super::fields::{count, object, reference, text, visible, with};
use super::operation::{Operation, Place, parameter};
use super::title;
use crate::dialect::Dialect;
use crate::tasks::{EXAMPLES_MAX, ID_BYTES_MAX};

/// What a task's id is: see `tasks::order`.
const ID: &str = r#"^([!"$&-+\-.0->@-~]+|[0-9A-Za-z]+( [0-9A-Za-z]+)*)$"#;

/// Types of questions that a task can be about; the last of one that corrects answers only.
const TYPES: [&str; 4] = ["noul", "predicate", "choice", "score"];

/// The routes of a dialect.
pub(super) fn routes(place: Place<'_>) -> Vec<(&'static str, &'static str, Value)> {
    let tasks =
        Kind { place, name: "tasks", what: "a task that corrects answers", schema: "TaskOrder" };
    let abstention = Kind {
        place,
        name: "abstention_tasks",
        what: "a task that says when a question has no answer",
        schema: "AbstentionOrder",
    };
    let [list, register, import, remove, status] = tasks.operations();
    let mut routes = vec![
        ("/v1/tasks", "get", list),
        ("/v1/tasks", "post", register),
        ("/v1/tasks/import", "post", import),
        ("/v1/tasks/{id}", "delete", remove),
        ("/v1/tasks/{id}/status", "get", status),
    ];
    let [list, register, import, remove, status] = abstention.operations();
    routes.extend([
        ("/v1/abstention/tasks", "get", list),
        ("/v1/abstention/tasks", "post", register),
        ("/v1/abstention/tasks/import", "post", import),
        ("/v1/abstention/tasks/{id}", "delete", remove),
        ("/v1/abstention/tasks/{id}/status", "get", status),
    ]);
    routes
}

/// One of the two kinds of tasks.
struct Kind<'a> {
    place: Place<'a>,
    name: &'static str,
    what: &'static str,
    schema: &'static str,
}

impl Kind<'_> {
    /// Lists, registers, imports, removes, and says how far a registration is.
    fn operations(&self) -> [Value; 5] {
        let Self { name, what, .. } = self;
        let is_abstention = *name == "abstention_tasks";
        let (registered, import) = if is_abstention {
            ("abstention_registered", "AbstentionImport")
        } else {
            ("registered", "TaskImport")
        };
        let list = self.operation("list", "Lists the tasks of the key");
        let order = self.place.schema(self.schema);
        let register = self
            .operation("register", &format!("Learns {what}"))
            .parameters(vec![parameter("prefer")])
            .stages(&[Stage::Rules, Stage::Reads, Stage::Registers])
            .posting(&order)
            .answering_as(202, "accepted");
        let import = self
            .operation("import", "Takes records in")
            .stages(&[Stage::Registers])
            .posting(import);
        let by_id = |what: &str, summary: &str| {
            self.operation(what, summary).stages(&[Stage::Tasks]).parameters(vec![parameter("id")])
        };
        [
            list.stages(&[Stage::Teaches])
                .parameters(vec![parameter("full")])
                .answering(name)
                .value(),
            register.stages(&[Stage::Teaches]).answering(registered).value(),
            import.stages(&[Stage::Teaches]).answering("imported").value(),
            by_id("remove", "Removes a task")
                .stages(&[Stage::Reserved])
                .answering("removed")
                .value(),
            by_id("status", "How far a registration is").answering("registration").value(),
        ]
    }

    fn operation(&self, what: &str, summary: &str) -> Operation<'_> {
        Operation::new(self.place, &format!("{what}_{}", self.name), summary)
    }
}

/// The schemas.
pub(super) fn schemas() -> Map<String, Value> {
    let mut schemas = Map::new();
    for title in Dialect::ALL.map(title) {
        schemas.insert(format!("{title}TaskOrder"), order(title));
        schemas.insert(format!("{title}AbstentionOrder"), abstention(title));
    }
    for (name, schema) in [
        ("TaskImport", import("TaskRecord")),
        ("AbstentionImport", import("AbstentionRecord")),
        ("TaskRecord", records::task(&id())),
        ("AbstentionRecord", records::abstention(&id())),
        ("Tasks", tasks("TaskRecord")),
        ("AbstentionTasks", tasks("AbstentionRecord")),
        ("Registration", registration()),
    ] {
        schemas.insert(name.to_owned(), schema);
    }
    schemas
}

fn id() -> Value {
    json!({
        "type": "string", "minLength": 1, "maxLength": ID_BYTES_MAX, "pattern": ID, "not": {"const": "import"},
    })
}

/// Labelled examples. All must ask one question, with an answer that it has.
fn examples(title: &str, answer: &Value, types: &[&str]) -> Value {
    let given = json!({"properties": {"type": {"enum": types}}});
    let questions = if title == "Openai" {
        json!({"maxItems": 1, "items": given})
    } else {
        json!({"maxProperties": 1, "additionalProperties": given})
    };
    let one = json!({"properties": {"questions": questions}});
    let request = json!({"allOf": [reference(&format!("{title}Decision")), one]});
    json!({
        "description": "All ask one question",
        "type": "array",
        "minItems": 1,
        "maxItems": EXAMPLES_MAX,
        "items": object(json!({"request": request, "answer": answer})),
    })
}

fn answer() -> Value {
    json!({
        "description": "A choice's key, yes, no, true or false of a noul, the index of a score's level",
        "type": ["string", "boolean", "integer"],
    })
}

fn order(title: &str) -> Value {
    let order = object(json!({"id": id(), "examples": examples(title, &answer(), &TYPES)}));
    let rate = json!({"type": ["number", "null"], "exclusiveMinimum": 0, "exclusiveMaximum": 1});
    let mut held = examples(title, &answer(), &TYPES);
    held["type"] = json!(["array", "null"]);
    let certify = json!({
        "description": "How answers are to be certified, if they are",
        "type": "object",
        "properties": {
            "alpha": rate, "delta": rate, "holdout": rate,
            "min_examples": {"type": ["integer", "null"], "minimum": 0, "maximum": u64::MAX},
            "examples": held,
        },
    });
    with(order, &json!({"certify": {"anyOf": [{"enum": [null, false]}, certify]}}))
}

fn abstention(title: &str) -> Value {
    let mut answer = answer();
    answer["type"] = json!(["string", "boolean", "integer", "null"]);
    let option = json!({
        "description": "An option of the request's own, or a text that the server appends",
        "type": "object",
        "oneOf": [
            {"required": ["key"], "properties": {"key": text()}},
            {"required": ["append"], "properties": {"append": {"type": "string", "pattern": visible()}}},
        ],
    });
    let order =
        json!({"id": id(), "option": option, "examples": examples(title, &answer, &TYPES[..3])});
    let matches = json!({"enum": [null, "option_set", "option_keys", "imajev_extension"]});
    with(object(order), &json!({"match": matches}))
}

fn import(record: &str) -> Value {
    object(json!({"tasks": {
        "description": "Records as the list with full=1 has them, of this server's fingerprint",
        "type": "array", "maxItems": 256, "items": reference(record),
    }}))
}

fn tasks(record: &str) -> Value {
    let tasks = object(json!({
        "enabled": {"type": "boolean"},
        "tasks": {"type": "array", "items": reference(record)},
    }));
    let fingerprints = object(json!({"profile": text(), "letters": text()}));
    with(
        tasks,
        &json!({
            "head_engine": {"type": "boolean", "description": "Whether heads can be fitted"},
            "fingerprint": text(),
            "fingerprints": fingerprints,
        }),
    )
}

fn registration() -> Value {
    let registration = object(json!({
        "id": text(),
        "state": {"enum": ["running", "done", "failed"]},
    }));
    let record = json!({"anyOf": [reference("TaskRecord"), reference("AbstentionRecord")]});
    let more = json!({"record": record, "error": text(), "done": count(), "of": count()});
    with(registration, &more)
}
