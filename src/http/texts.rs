//! Routes that only show something: the models, the metrics and the API's description.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde_json::json;

use crate::dialect::problem::{Fault, RequestFault};
use crate::dialect::{Dialect, loaded};
use crate::openapi::{self, Served};
use crate::service::ModelEntry;

use super::guard::Sender;
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
    let models = match visible(&app, &request) {
        Ok(models) => models,
        Err(fault) => return app.refuse(dialect, &fault),
    };
    if let Some(list) = dialect.models(&models) {
        return respond::json(StatusCode::OK, list);
    }
    let entry = |model: &ModelEntry| {
        json!({
            "name": model.name,
            "description": model.description,
            "release_date": model.release_date,
        })
    };
    let models: Vec<serde_json::Value> = models.iter().map(entry).collect();
    respond::json(StatusCode::OK, json!({"models": models}).to_string())
}

/// The models that a caller may ask for; at least one.
///
/// # Errors
/// [`Fault`] of an unknown model where the caller may ask for none of those that are served.
fn visible(app: &App, request: &Request) -> Result<Vec<ModelEntry>, Fault> {
    let sender = request.extensions().get::<Sender>();
    let grant =
        sender.and_then(|sender| sender.grant.as_ref()).ok_or(RequestFault::Unauthorized)?;
    let mut models = app.service.models();
    models.retain(|model| grant.sees(&model.name));
    if models.is_empty() {
        grant.check_model(None, || app.service.models())?;
    }
    Ok(models)
}

/// Told in self's words: the route is its own.
pub(super) async fn model(State(app): State<Arc<App>>, request: Request) -> Response {
    let models = match visible(&app, &request) {
        Ok(models) => models,
        Err(fault) => return app.refuse(Dialect::SelfServe, &fault),
    };
    let body = models.first().map_or_else(String::new, loaded::encode);
    respond::json(StatusCode::OK, body)
}

pub(super) async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut response = Response::new(app.service.metrics().into());
    response.headers_mut().insert(header::CONTENT_TYPE, PROMETHEUS);
    response
}

/// Described as this server is: with its dialect, limits, names and keys.
pub(super) async fn openapi(State(app): State<Arc<App>>) -> Response {
    let document = || Bytes::from(openapi::document(&described(&app)));
    respond::json(StatusCode::OK, app.document.get_or_init(document).clone())
}

fn described(app: &App) -> Served {
    let App { config, service, .. } = app;
    let images = service.images();
    Served {
        dialect: config.dialect,
        limits: config.limits,
        needs_key: !config.auth.is_open(),
        full: config.queue_full_status,
        images_max: images.map_or(0, |limits| limits.count_max.min(super::IMAGES_MAX)),
        names: service.models().into_iter().map(|model| model.name).collect(),
        debug_readout: config.debug_readout,
    }
}
