//! The API's own description: an `OpenAPI` 3.1 document of every route in every dialect.
//!
//! It is plain data beside the code that it describes: exact enough that a fuzzer which follows it is
//! answered, and one which breaks it is refused. What can be refused, and how, is not written down
//! here: it is asked of the code that refuses ([`failures`]).

mod answers;
mod batch;
mod codes;
mod decisio;
mod described;
mod failures;
mod faults;
mod fields;
mod found;
mod gmlx;
mod headers;
mod health;
mod letters;
mod models;
mod openai;
mod operation;
mod parameters;
mod prewarm;
mod schemas;
mod selfserve;
mod staged;
mod systemone;
mod tasks;
mod usage;
mod vllm;

use serde_json::{Map, Value, json};

use crate::dialect::problem::FullStatus;
use crate::dialect::{Dialect, RequestLimits};
use operation::{Operation, Place};

const DESCRIPTION: &str = "Typed questions about a state in, calibrated probabilities out.\n\n\
    Routes that begin with a dialect's name speak that dialect; those that do not speak the one that the \
    server was started with, and with the header `x-docket-dialect: NAME` they answer as the route \
    under `/NAME` does. Bodies may be compressed (`Content-Encoding: gzip` or `zstd`).";

/// What a document depends on: how the server was started that it describes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Served {
    /// The dialect of routes that name none.
    pub dialect: Dialect,
    /// What a request may ask for.
    pub limits: RequestLimits,
    /// Whether requests need a key.
    pub needs_key: bool,
    /// With which status a request is refused for which there is no room now.
    pub full: FullStatus,
    /// Most images of a request; 0 where the served model reads text only.
    pub images_max: usize,
    /// Names under which the model is served; empty where they are not known.
    pub names: Vec<String>,
    /// Whether requests of decisio may ask for the raw readout.
    pub debug_readout: bool,
}

/// The document as JSON text.
pub fn document(served: &Served) -> String {
    let document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "docket",
            "description": DESCRIPTION,
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "MIT OR Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": operation::security(served.needs_key),
        "paths": paths(served),
        "components": {
            "schemas": schemas::all(served),
            "parameters": parameters::all(served),
            "headers": headers::all(),
            "responses": responses(served),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
            },
        },
    });
    document.to_string()
}

/// The name that a dialect has in names of schemas.
fn title(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Systemone => "Systemone",
        Dialect::Decisio => "Decisio",
        Dialect::SelfServe => "Self",
        Dialect::Vllm => "Vllm",
        Dialect::Gmlx => "Gmlx",
        Dialect::Openai => "Openai",
    }
}

fn paths(served: &Served) -> Map<String, Value> {
    let mut paths = Map::new();
    let own = Place { served, dialect: served.dialect, is_named: false };
    for (path, method, operation) in of_dialect(own).into_iter().chain(of_one_dialect(served)) {
        insert(&mut paths, own, (path, method), &operation);
    }
    let short = Operation::new(own, "unpin_short", "Gives up the pin of a prewarm");
    insert(&mut paths, own, ("/prewarm/{handle}", "delete"), &prewarm::unpin(short));
    insert(&mut paths, own, ("/v1/usage", "get"), &usage::route(own));
    insert(&mut paths, own, ("/v1/live", "get"), &health::live(own));
    insert(&mut paths, own, ("/metrics", "get"), &metrics(own));
    insert(&mut paths, own, ("/openapi.json", "get"), &itself(own));
    for dialect in Dialect::ALL {
        let place = Place { served, dialect, is_named: true };
        for (path, method, operation) in of_dialect(place) {
            insert(&mut paths, place, (path, method), &operation);
        }
    }
    for (dialect, path, method, operation) in
        [openai::of_path(served), letters::of_path(served), models::of_path(served)]
    {
        let place = Place { served, dialect, is_named: true };
        insert(&mut paths, place, (path, method), &operation);
    }
    paths
}

fn insert(
    paths: &mut Map<String, Value>,
    place: Place<'_>,
    (path, method): (&str, &str),
    operation: &Value,
) {
    let path = place.path(path);
    let operations = paths.entry(path).or_insert_with(|| json!({}));
    operations[method] = operation.clone();
}

/// A path without its dialect, a method, and what they do.
type Route = (&'static str, &'static str, Value);

/// The routes that every dialect has.
fn of_dialect(place: Place<'_>) -> Vec<Route> {
    let decide = |name| {
        let operation = Operation::new(place, name, "Answers questions about a state");
        operation.decision().posting(&place.schema("Decision")).answering("decided").value()
    };
    let prewarm = |name| {
        let operation = Operation::new(place, name, "Reads states before their questions come");
        let body = prewarm::request_of(place.dialect);
        operation.prewarm().posting(&body).answering("prewarmed").value()
    };
    let mut routes = vec![
        ("/v1/systemone", "post", decide("systemone")),
        ("/v1/decide", "post", decide("decide")),
        ("/v1/estimate", "post", batch::estimate(place)),
        ("/v1/prewarm", "post", prewarm("prewarm")),
        ("/prewarm", "post", prewarm("prewarm_short")),
        (
            "/v1/prewarm/{handle}",
            "delete",
            prewarm::unpin(Operation::new(place, "unpin", "Gives up the pin of a prewarm")),
        ),
        ("/v1/models", "get", models::list(place)),
        ("/health", "get", health::route(place)),
    ];
    // OpenAI's decisions have no batches: what is sent there is refused.
    if place.dialect != Dialect::Openai {
        routes.push(("/v1/systemone/batch", "post", batch::batch(place)));
    }
    routes.extend(tasks::routes(place));
    routes
}

/// The routes at the root that are one dialect's own.
fn of_one_dialect(served: &Served) -> Vec<Route> {
    let of = |dialect| Place { served, dialect, is_named: false };
    vec![
        ("/v1/decisions", "post", openai::route(of(Dialect::Openai))),
        ("/v1/answer", "post", letters::route(of(Dialect::Decisio))),
        ("/v1/model", "get", models::model(of(Dialect::SelfServe))),
    ]
}

fn metrics(place: Place<'_>) -> Value {
    let operation = Operation::new(place, "metrics", "Metrics in Prometheus text format");
    operation.answering("metrics").value()
}

fn itself(place: Place<'_>) -> Value {
    Operation::new(place, "openapi", "This document").public().answering("openapi").value()
}

/// Everything that is answered, by name.
fn responses(served: &Served) -> Map<String, Value> {
    let mut responses = Map::new();
    for dialect in Dialect::ALL {
        responses.extend(answers::of(dialect));
        responses.extend(failures::of(dialect, served));
    }
    responses.extend(answers::of_all());
    responses
}

#[cfg(test)]
mod tests;
