//! What a server says in its own `/openapi.json` of a request and of its answer.
//!
//! Goal: the document is true. Method: requests that are answered must be as it says they must be, and
//! every answer as it says it is, with no member that it does not know.

use serde_json::{Map, Value, json};

use crate::schema;
use crate::server::{Reply, Sending, Server};

/// The document of a server.
pub(crate) struct Document {
    /// As it was sent.
    open: Value,
    /// The same, where an object has no members but those that are described.
    closed: Value,
    /// How many requests and answers were compared.
    pub(crate) compared: usize,
}

impl Document {
    pub(crate) fn of(server: &Server) -> Self {
        let open = server.get("/openapi.json");
        let mut closed = open.clone();
        close(&mut closed["components"]);
        Self { open, closed, compared: 0 }
    }

    /// Everything that is otherwise than the document says; nothing of a route that it does not have.
    pub(crate) fn faults(&mut self, sending: &Sending<'_>, reply: &Reply) -> Vec<String> {
        let Some(place) = self.operation(sending) else { return Vec::new() };
        let operation = self.open.pointer(&place).cloned().unwrap_or_default();
        let Some(name) = operation["responses"][reply.status.to_string()]["$ref"].as_str() else {
            return vec![format!("the document has no status {} of {place}", reply.status)];
        };
        let place_of_response = name.trim_start_matches('#').to_owned();
        let response = self.open.pointer(&place_of_response).cloned().unwrap_or_default();
        let mut told = self.headers(&response, reply);
        let in_response = format!("{place_of_response}/content/application~1json/schema");
        if self.open.pointer(&in_response).is_some() {
            told.extend(self.invalid(true, &in_response, &reply.body, "the answer"));
        }
        let in_request = format!("{place}/requestBody/content/application~1json/schema");
        let body = sending.text.as_deref().and_then(|text| serde_json::from_str(text).ok());
        if let Some(body) = body.filter(|_| reply.status == 200)
            && self.open.pointer(&in_request).is_some()
        {
            told.extend(self.invalid(
                false,
                &in_request,
                &body,
                "the request, which was answered,",
            ));
        }
        told
    }

    /// Where the operation of a request is described.
    fn operation(&self, sending: &Sending<'_>) -> Option<String> {
        let path = sending.path.split('?').next().unwrap_or_default();
        let dialect = sending.headers.iter().find(|(name, _)| *name == "x-docket-dialect");
        let named = dialect.and_then(|(_, name)| Some(format!("/{}{path}", (*name)?)));
        // A dialect in the path wins, and so do paths that are one dialect's own.
        let is_own = ["/v1/decisions", "/v1/answer", "/v1/model"].contains(&path);
        let at_root = path.starts_with("/v1/") || path.starts_with("/prewarm") || path == "/health";
        let wanted = named.filter(|_| at_root && !is_own).unwrap_or_else(|| path.to_owned());
        let paths = self.open["paths"].as_object()?;
        // A path without a parameter comes before one that it would be the value of.
        let found = paths.keys().find(|path| **path == wanted);
        let found = found.or_else(|| paths.keys().find(|path| matches(path, &wanted)))?;
        let method = sending.method.to_lowercase();
        paths[found].get(&method)?;
        Some(format!("/paths/{}/{method}", found.replace('~', "~0").replace('/', "~1")))
    }

    fn headers(&self, response: &Value, reply: &Reply) -> Vec<String> {
        let none = Map::new();
        let mut told = Vec::new();
        for (name, header) in response["headers"].as_object().unwrap_or(&none) {
            let header = match header["$ref"].as_str() {
                Some(place) => self.open.pointer(place.trim_start_matches('#')).cloned(),
                None => Some(header.clone()),
            };
            let header = header.unwrap_or_default();
            match reply.text(name) {
                None if header["required"] == true => told.push(format!("there is no {name}")),
                None => {}
                Some(value) if schema::is_valid(&self.open, &header["schema"], &json!(value)) => {}
                Some(value) => told.push(format!("{name}: {value} is not as {}", header["schema"])),
            }
        }
        told
    }

    fn invalid(&mut self, is_closed: bool, place: &str, body: &Value, what: &str) -> Vec<String> {
        let root = if is_closed { &self.closed } else { &self.open };
        self.compared += 1;
        let faults = schema::faults(root, place, body);
        faults.into_iter().map(|fault| format!("{what} is not as {place}: {fault}")).collect()
    }
}

/// Whether a path has the form of a route.
fn matches(route: &str, path: &str) -> bool {
    let is_name = |segment: &str| segment.starts_with('{');
    route.split('/').count() == path.split('/').count()
        && route.split('/').zip(path.split('/')).all(|(one, other)| is_name(one) || one == other)
}

/// Forbids members that are not described, of objects of which some are.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.get("properties").is_some_and(Value::is_object)
                && members.get("type").is_some_and(|kind| kind == "object")
            {
                members.entry("additionalProperties").or_insert(Value::Bool(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn what_is_not_described_is_told() {
    let server = Server::start(&["--engine", "fake"]);
    let mut document = Document::of(&server);
    let text = json!({"state": "s", "questions": {"q": {"type": "noul"}}}).to_string();
    let sending = |path, text: &str| Sending {
        method: "POST",
        path,
        headers: Vec::new(),
        text: Some(text.to_owned()),
    };
    let reply = server.send(&sending("/v1/systemone", &text));
    assert_eq!(document.faults(&sending("/v1/systemone", &text), &reply), Vec::<String>::new());
    assert_eq!(document.compared, 2);
    assert_eq!(document.faults(&sending("/nowhere", &text), &reply), Vec::<String>::new());
    // Another dialect's answer, a request that should not have been answered, another status.
    let told = document.faults(&sending("/vllm/v1/systemone", &text), &reply);
    assert!(told.iter().any(|told| told.starts_with("the answer")), "{told:?}");
    let told = document.faults(&sending("/v1/systemone", r#"{"state": null}"#), &reply);
    assert!(told.iter().any(|told| told.starts_with("the request")), "{told:?}");
    let mut other = reply;
    other.status = 418;
    let told = document.faults(&sending("/v1/systemone", &text), &other);
    assert!(told[0].contains("no status 418"), "{told:?}");
}

/// The dialects without vectors: docket's own and decisio's.
#[test]
fn answers_of_both_own_dialects_are_described_whole() {
    let server = Server::start(&["--engine", "fake", "--fake-step-ms", "0"]);
    let mut document = Document::of(&server);
    let team = json!({"type": "choice", "criteria": {"billing": null, "access": "To log in"}});
    let asked = json!({
        "state": "I was charged 12 EUR twice. Please help.",
        "diagnostics": true,
        "state_text": true,
        "questions": {
            "team": team,
            "late": {"type": "noul", "ask_if": {"team": ["billing"]}},
            "early": {"type": "noul", "ask_if": {"team": ["access"]}},
            "mood": {"type": "score", "criteria": ["calm", "cross"], "cite": true},
            "amount": {"type": "number", "criteria": {"min": 1}},
            "wish": {"type": "excerpt"},
        },
    });
    let plain = json!({"state": "s", "questions": {"team": team, "late": {"type": "noul"}}});
    let example =
        json!({"request": {"state": "s", "questions": {"team": team}}, "answer": "access"});
    let order = json!({"id": "t", "examples": [example]});
    let abstention = json!({"id": "a", "option": {"key": "access"}, "examples": [example]});
    let letters = json!({"state": "s", "questions": [
        {"kind": "noul"}, {"options": ["a", "b"]}, {"derive": {"from": 1, "option": "a"}},
    ]});
    let batch = json!({"states": ["s", null], "questions": {"late": {"type": "noul"}}});
    let posts = [
        ("/v1/systemone", &asked),
        ("/v1/estimate", &asked),
        ("/v1/systemone/batch", &batch),
        ("/v1/prewarm", &json!({"state": "s"})),
        ("/prewarm", &json!({"states": ["s", "t"], "wait": false})),
        ("/v1/answer", &letters),
        ("/decisio/v1/systemone", &plain),
        ("/decisio/v1/systemone/batch", &batch),
        ("/v1/tasks", &order),
        ("/decisio/v1/abstention/tasks", &abstention),
        ("/decisio/v1/systemone", &plain),
        ("/v1/tasks", &json!({"id": "t"})),
        ("/v1/systemone", &json!({})),
        ("/decisio/v1/systemone", &json!({"state": 1, "questions": {"q": {}}})),
    ];
    let gets = ["/health", "/decisio/health", "/v1/models", "/v1/tasks", "/v1/tasks/t/status"];
    let gets = gets.map(|path| ("GET", path, None));
    let more = [("GET", "/v1/abstention/tasks", None), ("DELETE", "/v1/tasks/t", None)];
    let posts = posts.map(|(path, body)| ("POST", path, Some(body.to_string())));
    for (method, path, text) in posts.into_iter().chain(gets).chain(more) {
        let sending = Sending { method, path, headers: Vec::new(), text };
        let (before, reply) = (document.compared, server.send(&sending));
        assert_eq!(document.faults(&sending, &reply), Vec::<String>::new(), "{path}");
        assert!(document.compared > before, "{method} {path} is not in the document");
    }
}
