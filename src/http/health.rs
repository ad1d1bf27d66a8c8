//! `GET /health`: liveness, and readiness with `?ready=1`.
//!
//! On a server with keys the details need an operator's; whether it is up and ready needs none.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use crate::service::{Caller, EXIT_CODE_DEAD};

use super::auth::Grant;
use super::guard::Sender;
use super::{App, PathDialect, respond};

pub(super) async fn health(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    RawQuery(query): RawQuery,
    Extension(sender): Extension<Sender>,
    headers: HeaderMap,
) -> Response {
    let dialect = match app.dialect(path.as_deref(), &headers) {
        Ok(dialect) => dialect,
        Err(fault) => return app.refuse(app.config.dialect, &fault),
    };
    let health = app.service.health();
    let is_alive = health.dead.is_none();
    let is_ready = is_alive && health.ready;
    let reason = health.dead.as_ref().or(health.reason.as_ref()).filter(|_| !is_ready);
    let mut body = json!({"ok": is_alive, "ready": is_ready, "reason": reason});
    if dialect.has_settings_in_health()
        && is_alive
        && let Some(teaching) = app.service.teaching()
    {
        let caller = sender.grant.as_ref();
        let caller = caller.map(|grant| Caller { tenant: grant.tenant.clone(), salt: None });
        merge(&mut body, teaching.settings(caller.as_ref()));
    }
    if let Some(more) = dialect.health(&health, app.service.served_name()) {
        merge(&mut body, more);
    }
    if !is_alive {
        body["engine"] = json!("dead");
        body["exit_code"] = json!(EXIT_CODE_DEAD);
    }
    if sender.grant.as_ref().is_some_and(Grant::is_operator) {
        body["details"] = health.details;
    }
    let is_asked = dialect.health_is_readiness() || asks_for_readiness(query.as_deref());
    let is_well = if is_asked { is_ready } else { is_alive };
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    respond::json(status, body.to_string())
}

fn merge(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

fn asks_for_readiness(query: Option<&str>) -> bool {
    query.unwrap_or_default().split('&').any(|pair| pair == "ready=1" || pair == "ready=true")
}
