//! One operation of the document, put together from what it takes and what can come of it.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::faults::Stage;
use super::fields::reference;
use super::{Served, failures, title};
use crate::dialect::Dialect;

/// Where an operation is: at the root or under a dialect's name, and in which dialect it speaks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) served: &'a Served,
    pub(super) dialect: Dialect,
    /// Whether the path names the dialect.
    pub(super) is_named: bool,
}

impl Place<'_> {
    /// `path` with the dialect in front, where it has one.
    pub(super) fn path(self, path: &str) -> String {
        if self.is_named { format!("/{}{path}", self.dialect.name()) } else { path.to_owned() }
    }

    /// The name of an operation, distinct in the whole document.
    pub(super) fn id(self, name: &str) -> String {
        if self.is_named { format!("{}_{name}", self.dialect.name()) } else { name.to_owned() }
    }

    /// The name of the dialect's schema for `what`.
    pub(super) fn schema(self, what: &str) -> String {
        format!("{}{what}", title(self.dialect))
    }
}

/// An operation that is being put together.
#[derive(Debug, Clone)]
pub(super) struct Operation<'a> {
    place: Place<'a>,
    value: Value,
    parameters: Vec<Value>,
    stages: Vec<Stage>,
    responses: Map<String, Value>,
    is_public: bool,
}

impl<'a> Operation<'a> {
    pub(super) fn new(place: Place<'a>, name: &str, summary: &str) -> Self {
        Self {
            place,
            value: json!({
                "operationId": place.id(name),
                "summary": summary,
                "tags": [place.dialect.name()],
            }),
            parameters: vec![parameter("requestId"), parameter("traceparent")],
            stages: vec![Stage::Head],
            responses: Map::new(),
            is_public: false,
        }
    }

    /// It never needs a key.
    pub(super) fn public(mut self) -> Self {
        self.is_public = true;
        self
    }

    /// It can also fail in these.
    pub(super) fn stages(mut self, stages: &[Stage]) -> Self {
        self.stages.extend_from_slice(stages);
        self
    }

    pub(super) fn parameters(mut self, parameters: Vec<Value>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// It decides: by the headers of decisions, and whatever can be wrong with one.
    pub(super) fn decision(self) -> Self {
        let own = if self.place.dialect == Dialect::Decisio {
            super::parameters::of_decisio(self.place.served)
        } else {
            Vec::new()
        };
        self.deciding().parameters(own)
    }

    /// The same, of a route that has no headers of a dialect's own.
    pub(super) fn deciding(self) -> Self {
        self.wishing().stages(&[Stage::Headers, Stage::Rules, Stage::Reads, Stage::Images])
    }

    /// It reads ahead.
    pub(super) fn prewarm(self) -> Self {
        self.wishing().stages(&[Stage::Headers, Stage::Rules, Stage::Reads])
    }

    fn wishing(self) -> Self {
        let names = ["priority", "objective", "timeoutMs", "salt", "stateKey"];
        self.parameters(names.map(parameter).to_vec())
    }

    /// It takes a body of this schema.
    pub(super) fn posting(self, schema: &str) -> Self {
        let takes_forms = self.place.dialect.takes_forms();
        let is_decision = schema.ends_with("Decision");
        let mut content = json!({"application/json": {"schema": reference(schema)}});
        if takes_forms && is_decision {
            content["multipart/form-data"] = form(schema);
        }
        let mut operation = self.stages(&[Stage::Body]);
        operation.value["requestBody"] = json!({"required": true, "content": content});
        operation
    }

    /// What is answered with 200, by its name among the dialect's responses or all.
    pub(super) fn answering(self, name: &str) -> Self {
        self.answering_as(200, name)
    }

    pub(super) fn answering_as(mut self, status: u16, name: &str) -> Self {
        let name = super::answers::name(self.place.dialect, name);
        self.responses.insert(status.to_string(), response(&name));
        self
    }

    /// The operation with every status that it can give.
    pub(super) fn value(self) -> Value {
        let Self { place, mut value, mut parameters, mut stages, mut responses, is_public } = self;
        if !is_public {
            stages.push(Stage::Key);
            parameters.extend(place.served.needs_key.then(|| parameter("subTenant")));
        }
        for status in failures::statuses(place.dialect, place.served, &stages) {
            let name = failures::name(place.dialect, status);
            responses.entry(status.to_string()).or_insert_with(|| response(&name));
        }
        let sorted: BTreeSet<String> = responses.keys().cloned().collect();
        let sorted = sorted.into_iter().map(|status| {
            let response = responses[&status].clone();
            (status, response)
        });
        value["parameters"] = parameters.into();
        value["responses"] = Value::Object(sorted.collect());
        if is_public {
            value["security"] = security(false);
        }
        value
    }
}

/// How a request says whose it is.
pub(super) fn security(needs_key: bool) -> Value {
    if needs_key {
        json!([{"bearer": []}, {"key": []}])
    } else {
        json!([{}, {"bearer": []}, {"key": []}])
    }
}

/// The parameter of this name.
pub(super) fn parameter(name: &str) -> Value {
    json!({"$ref": format!("#/components/parameters/{name}")})
}

fn response(name: &str) -> Value {
    json!({"$ref": format!("#/components/responses/{name}")})
}

/// The same body in the field `request` of a form.
fn form(schema: &str) -> Value {
    json!({
        "schema": {
            "description": "The body in its field request; every other part with a file name is an image",
            "type": "object",
            "required": ["request"],
            "properties": {"request": reference(schema)},
        },
        "encoding": {"request": {"contentType": "application/json"}},
    })
}
