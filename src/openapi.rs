//! The API's own description: an `OpenAPI` 3.1 document of every route.
//!
//! It is plain data beside the code that it describes: exact enough that a fuzzer which follows it is
//! answered, and one which breaks it is refused.

mod batch;
mod decisions;
mod found;
mod health;
mod prewarm;
mod schemas;
mod staged;
mod tasks;

use serde_json::{Value, json};

const DESCRIPTION: &str = "Typed questions about a state in, calibrated probabilities out.";

/// Default of `--timeout-max` in milliseconds.
const TIMEOUT_MAX_MS: u64 = 600_000;

/// What a request that is refused may be told; the body has the details.
const REFUSED: [(&str, &str, &str); 1] =
    [("x-docket-reason", "^[a-z_]+$", "Why it was refused, in a word")];

/// What a request is told for which it is too early, too late or too full.
const COME_BACK: [(&str, &str, &str); 3] = [
    ("retry-after", "^[0-9]+$", "Seconds until it may be sent again; absent where that is no use"),
    ("retry-after-ms", "^[0-9]+$", "The same in milliseconds"),
    (
        "x-docket-downgrade",
        "^(normal|batch)$",
        "A lower lane in which it would be let in now, where there is one",
    ),
];

const IGNORED: (&str, &str, &str) =
    ("x-docket-ignored", "^\\[.*\\]$", "Fields that were not understood, as a JSON array");

/// The document as JSON text.
pub fn document() -> String {
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "docket",
            "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{}, {"bearer": []}, {"key": []}],
        "paths": paths(),
        "components": {
            "schemas": schemas::all(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    });
    document.to_string()
}

fn paths() -> Value {
    let decide = |id: &str| {
        let answered = response("The answers", "Decided", &cost_headers());
        let summary = "Answers questions about a state";
        json!({"post": post(id, summary, "Decision", &answered)})
    };
    let prewarm = |id: &str| {
        let answered = response("What was read", "Prewarmed", &cost_headers());
        let summary = "Reads states before their questions come";
        json!({"post": post(id, summary, "Prewarm", &answered)})
    };
    let mut paths = json!({
        "/v1/systemone": decide("systemone"),
        "/v1/decide": decide("decide"),
        "/v1/prewarm": prewarm("prewarm"),
        "/v1/prewarm/{handle}": {"delete": unpin("unpin")},
        "/prewarm": prewarm("prewarm_short"),
        "/prewarm/{handle}": {"delete": unpin("unpin_short")},
        "/v1/models": {"get": {
            "operationId": "models",
            "summary": "Lists the served models",
            "parameters": [dialect()],
            "responses": with_failures(
                json!({"200": response("The models", "Models", &json!({}))}), &[400, 401, 414, 431, 500, 503]),
        }},
        "/health": {"get": health()},
        "/metrics": {"get": {
            "operationId": "metrics",
            "summary": "Metrics in Prometheus text format",
            "responses": with_failures(json!({"200": text("The metrics")}), &[401, 414, 431, 500, 503]),
        }},
        "/openapi.json": {"get": {
            "operationId": "openapi",
            "summary": "This document",
            "security": [{}],
            "responses": with_failures(json!({"200": {
                "description": "The document",
                "headers": request_id(),
                "content": {"application/json": {"schema": {"type": "object"}}},
            }}), &[414, 431, 503]),
        }},
    });
    if let Some(paths) = paths.as_object_mut() {
        paths.extend(batch::paths());
        paths.extend(tasks::paths());
        paths.extend(decisions::paths());
    }
    paths
}

fn unpin(id: &str) -> Value {
    json!({
        "operationId": id,
        "summary": "Gives up the pin of a prewarm",
        "parameters": [dialect(), {
            "name": "handle", "in": "path", "required": true, "schema": {"type": "string"},
        }],
        "responses": with_failures(json!({"200": {
            "description": "It was given up",
            "headers": request_id(),
            "content": {"application/json": {"schema": {"type": "object"}}},
        }}), &[400, 401, 404, 414, 431, 500, 503]),
    })
}

fn post(id: &str, summary: &str, schema: &str, answered: &Value) -> Value {
    let statuses = [400, 401, 408, 413, 414, 415, 422, 429, 431, 500, 502, 503, 504];
    json!({
        "operationId": id,
        "summary": summary,
        "parameters": [
            header("x-docket-priority", "The lane, where the body names none",
                   &json!({"$ref": "#/components/schemas/Lane"})),
            header("x-gateway-inference-objective", "A lane's name, where x-docket-priority is absent",
                   &json!({"type": "string"})),
            header("x-docket-timeout-ms",
                   "Milliseconds from its first byte to the answer, where the body names none; the \
                    maximum is the server's --timeout-max",
                   &json!({"type": "integer", "minimum": 1, "maximum": TIMEOUT_MAX_MS})),
            header("x-docket-salt", "Part of the caller's own salt of segment keys",
                   &json!({"type": "string", "maxLength": 256, "pattern": "^[!-~]*$"})),
            dialect(),
        ],
        "requestBody": {
            "required": true,
            "description": "May be compressed: Content-Encoding gzip or zstd.",
            "content": {"application/json": {"schema": reference(schema)}},
        },
        "responses": with_ignored(with_failures(json!({"200": answered}), &statuses)),
    })
}

/// The same responses, of a request whose body was looked at.
fn with_ignored(mut responses: Value) -> Value {
    for status in ["400", "422", "429", "500", "502", "503", "504"] {
        let header = &mut responses[status]["headers"];
        if let (Some(header), Some(more)) = (header.as_object_mut(), headers([IGNORED]).as_object())
        {
            header.extend(more.clone());
        }
    }
    responses
}

fn health() -> Value {
    json!({
        "operationId": "health",
        "summary": "Liveness, and readiness with ready=1",
        "security": [{}, {"bearer": []}, {"key": []}],
        "parameters": [{
            "name": "ready", "in": "query", "required": false,
            "description": "1 or true asks whether decisions are taken now",
            "schema": {"type": "string"},
        }],
        "responses": {
            "200": response("It is", "Health", &json!({})),
            "414": failure(414),
            "431": failure(431),
            "500": failure(500),
            // No refusal: nothing says why but the body, nor when to come back.
            "503": response("It is not", "Health", &json!({})),
        },
    })
}

fn dialect() -> Value {
    let schema = json!({"type": "string", "enum": ["systemone", "decisio"]});
    header("x-docket-dialect", "The wire format", &schema)
}

fn header(name: &str, description: &str, schema: &Value) -> Value {
    json!({
        "name": name, "in": "header", "required": false,
        "description": description, "schema": schema,
    })
}

fn reference(schema: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{schema}")})
}

fn request_id() -> Value {
    json!({"x-typesafe-request-id": {
        "description": "The id of the request: the client's x-request-id or a fresh one",
        "schema": {"type": "string"},
    }})
}

/// Response headers with costs, as plain decimals.
fn cost_headers() -> Value {
    let decimal = "^[0-9]+\\.[0-9]$";
    let count = "^[0-9]+$";
    headers([
        ("x-docket-queue-ms", decimal, "Waited for work on it to start and for its step"),
        ("x-docket-state-ms", decimal, "Waited for its state to be resident"),
        ("x-docket-engine-ms", decimal, "The step that read it"),
        ("x-docket-total-ms", decimal, "First byte in to the response's encoding"),
        ("x-docket-computed-tokens", count, "Tokens computed on its account"),
        ("x-docket-cached-tokens", count, "Tokens found resident or already being read"),
        ("x-docket-lane", "^[a-z]+$", "The lane it was served in"),
        ("x-docket-wait-behind", "^registration$", "What it waited behind"),
        IGNORED,
        ("server-timing", "total;dur=", "The same times by the standard's form"),
    ])
}

/// Response headers, each with the pattern of its value and its meaning.
fn headers<'a>(listed: impl IntoIterator<Item = (&'a str, &'a str, &'a str)>) -> Value {
    let entry = |(name, pattern, description): (&str, &str, &str)| {
        let schema = json!({"type": "string", "pattern": pattern});
        (name.to_owned(), json!({"description": description, "schema": schema}))
    };
    Value::Object(listed.into_iter().map(entry).collect())
}

fn response(description: &str, schema: &str, headers: &Value) -> Value {
    let mut all = request_id();
    if let (Some(all), Some(more)) = (all.as_object_mut(), headers.as_object()) {
        all.extend(more.clone());
    }
    json!({
        "description": description,
        "headers": all,
        "content": {"application/json": {"schema": reference(schema)}},
    })
}

fn text(description: &str) -> Value {
    json!({
        "description": description,
        "headers": request_id(),
        "content": {"text/plain": {"schema": {"type": "string"}}},
    })
}

fn with_failures(mut responses: Value, statuses: &[u16]) -> Value {
    for status in statuses {
        responses[status.to_string()] = failure(*status);
    }
    responses
}

fn failure(status: u16) -> Value {
    let (description, schema) = match status {
        400 => ("The engine or a header cannot do it", "Failure"),
        401 => ("No key, or an unknown one", "Failure"),
        408 => ("The body did not arrive in time", "Failure"),
        413 => ("The body is too large", "Failure"),
        414 => ("The URI is too long", "Failure"),
        415 => ("The body's type or encoding is not supported", "Failure"),
        422 => ("Every fault of the body, or that the model answers no questions", "Invalid"),
        429 => ("Too much waits; come back after Retry-After", "Failure"),
        431 => ("There are too many headers", "Failure"),
        502 => ("An image could not be fetched", "Failure"),
        503 => ("Not now; come back", "Failure"),
        504 => ("Not answered within the deadline", "Failure"),
        _ => ("Our own fault", "Failure"),
    };
    let waits = COME_BACK.into_iter().filter(|_| matches!(status, 429 | 503));
    response(description, schema, &headers(REFUSED.into_iter().chain(waits)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reference_is_defined() {
        let text = document();
        let document: Value = serde_json::from_str(&text).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let references: Vec<&str> = text
            .split("#/components/schemas/")
            .skip(1)
            .map(|rest| rest.split('"').next().unwrap())
            .collect();
        assert!(references.len() > 20);
        for name in &references {
            assert!(schemas.contains_key(*name), "{name}");
        }
        for name in schemas.keys() {
            assert!(references.contains(&name.as_str()), "{name} is not used");
        }
    }

    #[test]
    fn a_refusal_for_lack_of_room_lists_what_it_tells() {
        let document: Value = serde_json::from_str(&document()).unwrap();
        let told = |route: &str, status: &str| {
            let method = document["paths"][route].as_object().unwrap().values().next().unwrap();
            let headers = method["responses"][status]["headers"].as_object().unwrap();
            headers.keys().cloned().collect::<BTreeSet<_>>()
        };
        let names = |listed: &[&str]| listed.iter().map(|name| (*name).to_owned()).collect();
        let full = [
            "retry-after",
            "retry-after-ms",
            "x-docket-downgrade",
            "x-docket-ignored",
            "x-docket-reason",
            "x-typesafe-request-id",
        ];
        for status in ["429", "503"] {
            assert_eq!(told("/v1/systemone", status), names(&full), "{status}");
        }
        let faulty = ["x-docket-ignored", "x-docket-reason", "x-typesafe-request-id"];
        assert_eq!(told("/prewarm", "422"), names(&faulty));
        let refused = ["x-docket-reason", "x-typesafe-request-id"];
        assert_eq!(told("/v1/models", "401"), names(&refused));
        assert_eq!(told("/health", "503"), names(&["x-typesafe-request-id"]));
    }

    #[test]
    fn a_deadline_is_a_parameter_and_a_field() {
        let document: Value = serde_json::from_str(&document()).unwrap();
        let of = |route: &str| document["paths"][route]["post"]["parameters"].clone();
        for route in ["/v1/systemone", "/v1/decide", "/v1/prewarm", "/prewarm"] {
            let named = |entry: &&Value| entry["name"] == "x-docket-timeout-ms";
            let parameters = of(route);
            let header = parameters.as_array().unwrap().iter().find(named).unwrap();
            assert_eq!(
                (&header["in"], &header["schema"]["minimum"]),
                (&json!("header"), &json!(1))
            );
        }
        for schema in ["Decision", "Prewarm"] {
            let fields = &document["components"]["schemas"][schema]["properties"];
            assert_eq!(fields["timeout_ms"]["maximum"], 600_000, "{schema}");
        }
        let most = crate::config::DecisionConfig::default().timeout_max;
        assert_eq!(most.as_millis(), u128::from(TIMEOUT_MAX_MS));
    }
}
