//! Routes that only show something: the models, the metrics and the API's description.

use std::sync::{Arc, LazyLock};

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use crate::dialect::loaded;

use super::{App, PathDialect, respond};

/// Prometheus text format.
const PROMETHEUS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) async fn models(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    request: Request,
) -> Response {
    let dialect = match app.dialect(path.as_deref(), request.headers()) {
        Ok(dialect) => dialect,
        Err(fault) => return app.refuse(app.config.dialect, &fault),
    };
    let models = app.service.models();
    if let Some(list) = dialect.models(&models) {
        return respond::json(StatusCode::OK, list);
    }
    let entry = |model: &crate::service::ModelEntry| {
        json!({
            "name": model.name,
            "description": model.description,
            "release_date": model.release_date,
        })
    };
    let models: Vec<serde_json::Value> = models.iter().map(entry).collect();
    respond::json(StatusCode::OK, json!({"models": models}).to_string())
}

/// Told in self's words: the route is its own.
pub(super) async fn model(State(app): State<Arc<App>>) -> Response {
    let models = app.service.models();
    let body = models.first().map_or_else(String::new, loaded::encode);
    respond::json(StatusCode::OK, body)
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut response = Response::new(app.service.metrics().into());
    response.headers_mut().insert(header::CONTENT_TYPE, PROMETHEUS);
    response
}

pub(super) async fn openapi() -> Response {
    static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| crate::openapi::document().into());
    respond::json(StatusCode::OK, DOCUMENT.clone())
}
