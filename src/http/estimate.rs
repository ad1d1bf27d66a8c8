//! `POST /v1/estimate`: what a decision would cost and wait for, without making it.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::dialect::problem::Fault;
use crate::error::DecideError;
use crate::service::Estimate;

use super::decide::{Ignored, asked, in_dialect, sender};
use super::{App, PathDialect, respond};

/// A decision's body in its own dialect; the answer has one shape in all of them.
pub(super) async fn estimate(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    request: Request,
) -> Response {
    in_dialect(&app, path.as_deref(), request, answer).await
}

async fn answer(
    app: &App,
    dialect: Dialect,
    parts: &Parts,
    body: Body,
    ignored: &mut Ignored,
) -> Result<Response, Fault> {
    let sender = sender(parts)?;
    let asked = asked(app, dialect, parts, body, ignored).await?;
    let _ = app.seen(asked.images, asked.headed, asked.terms).await?;
    let estimate = app.service.estimate(asked.caller, asked.decision, sender.arrival).await?;
    let mut body = shown(&estimate);
    body["model"] = json!(app.service.served_name());
    if let Some(error) = estimate.refused {
        let refusal =
            dialect.refusal(&DecideError::from(error).into(), app.config.queue_full_status);
        body["status"] = json!(refusal.status);
        body["reason"] = json!(refusal.reason);
        body["retry_after_ms"] = json!(refusal.retry_after.map(|wait| wait.as_millis()));
    }
    Ok(respond::json(StatusCode::OK, body.to_string()))
}

fn shown(estimate: &Estimate) -> Value {
    let ms = |time: Duration| time.as_secs_f64() * 1e3;
    json!({
        "fits": estimate.longest_tokens <= estimate.context_tokens,
        "admitted": estimate.refused.is_none(),
        "reads": estimate.reads,
        "input_tokens": estimate.input_tokens,
        "prefix_tokens": estimate.prefix_tokens,
        "cached_tokens": estimate.cached_tokens,
        "computed_tokens": estimate.computed_tokens,
        "longest_prompt_tokens": estimate.longest_tokens,
        "context_tokens": estimate.context_tokens,
        "wait_ms": ms(estimate.wait),
        "engine_ms": estimate.engine.map(ms),
    })
}
