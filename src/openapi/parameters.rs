//! Parameters of operations: headers of docket's own and decisio's, and what stands in paths.

use serde_json::{Map, Value, json};

use super::operation::parameter;
use super::{Served, usage};

/// The header that names a sub-tenant.
pub(super) const FAIRNESS_ID: &str = "x-gateway-inference-fairness-id";

/// Longest name in a path.
const NAME_CHARS_MAX: usize = 200;

/// All of them.
pub(super) fn all(served: &Served) -> Map<String, Value> {
    let most = u64::try_from(served.limits.timeout_max.as_millis()).unwrap_or(u64::MAX);
    let mut all = Map::new();
    for (name, header, description, schema) in [
        (
            "requestId",
            "x-request-id",
            "Comes back as x-typesafe-request-id",
            json!({"type": "string"}),
        ),
        (
            "traceparent",
            "traceparent",
            "The caller's span, by W3C Trace Context; what is none is ignored",
            json!({"type": "string"}),
        ),
        (
            "priority",
            "x-docket-priority",
            "The lane, where the body names none",
            json!({"$ref": "#/components/schemas/Lane"}),
        ),
        (
            "objective",
            "x-gateway-inference-objective",
            "A lane's name, where x-docket-priority is absent; what is none is ignored",
            json!({"type": "string"}),
        ),
        (
            "timeoutMs",
            "x-docket-timeout-ms",
            "Milliseconds from its first byte to the answer, where the body names none",
            json!({"type": "integer", "minimum": 1, "maximum": most}),
        ),
        (
            "salt",
            "x-docket-salt",
            "Narrows who shares the request's states within its tenant",
            json!({"type": "string", "maxLength": 256, "pattern": "^[\t -~]*$"}),
        ),
        (
            "stateKey",
            crate::state_key::HEADER,
            "The key that an answer about the state had, for routers in front of the server",
            json!({"type": "string", "pattern": "^[0-9a-f]{16}$"}),
        ),
        ("prefer", "prefer", "respond-async: the answer is 202 at once", json!({"type": "string"})),
        (
            "decisioRoute",
            "x-decisio-route",
            "How it is to be read",
            json!({"enum": if served.images_max > 0 { &["text", "image"][..] } else { &["text"][..] }}),
        ),
        (
            "decisioDebug",
            "x-decisio-debug",
            "What is wanted of the raw readout",
            json!({"enum": ["readout", "hidden"]}),
        ),
    ] {
        let parameter = json!({
            "name": header, "in": "header", "required": false,
            "description": description, "schema": schema,
        });
        all.insert(name.to_owned(), parameter);
    }
    if !served.debug_readout {
        all.remove("decisioDebug");
    }
    all.extend(served.needs_key.then(sub_tenant));
    all.extend(usage::parameters().map(|(name, parameter)| (name.to_owned(), parameter)));
    all.extend(of_paths());
    all
}

/// Of keys that may act for others.
fn sub_tenant() -> (String, Value) {
    let parameter = json!({
        "name": FAIRNESS_ID, "in": "header", "required": false,
        "description": "The sub-tenant that it is for; of keys that may act for others",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    });
    ("subTenant".to_owned(), parameter)
}

fn of_paths() -> Map<String, Value> {
    let named = |name: &str, description: &str, schema: Value| {
        json!({
            "name": name, "in": "path", "required": true, "description": description, "schema": schema,
        })
    };
    let flag = |name: &str, description: &str| {
        json!({
            "name": name, "in": "query", "required": false, "description": description,
            "schema": {"type": "string"},
        })
    };
    let text = json!({"type": "string", "minLength": 1, "maxLength": NAME_CHARS_MAX});
    // The path of the imports is not a task's.
    let mut id = text.clone();
    id["not"] = json!({"const": "import"});
    Map::from_iter([
        ("handle".to_owned(), named("handle", "What a prewarm has answered", text)),
        ("id".to_owned(), named("id", "The task's name", id)),
        ("full".to_owned(), flag("full", "1 or true: with the arrays of heads")),
        ("ready".to_owned(), flag("ready", "1 or true asks whether decisions are taken now")),
    ])
}

/// Headers of decisio's decisions.
pub(super) fn of_decisio(served: &Served) -> Vec<Value> {
    let debug = served.debug_readout.then(|| parameter("decisioDebug"));
    std::iter::once(parameter("decisioRoute")).chain(debug).collect()
}
