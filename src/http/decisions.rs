//! `POST /v1/decisions`: one decision in `OpenAI`'s form.

use std::sync::Arc;

use actors::Lane;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;

use crate::dialect::problem::Fault;
use crate::dialect::{Dialect, decisions};
use crate::error::DecideError;
use crate::question::Decision;

use super::decide::{Ignored, entitled, in_dialect, respond_decided, sender};
use super::headers::{self, Wishes};
use super::{App, body};

/// Failures are told in `OpenAI`'s shape: the route is its own.
pub(super) async fn decisions(State(app): State<Arc<App>>, request: Request) -> Response {
    in_dialect(&app, Some(Dialect::Openai.name()), request, answered).await
}

/// The same on the routes of all dialects.
pub(super) async fn answered(
    app: &App,
    _: Dialect,
    parts: &Parts,
    body: Body,
    ignored: &mut Ignored,
) -> Result<Response, Fault> {
    let sender = sender(parts)?;
    let limits = &app.config.limits;
    if let Err(fault) = body::media(&parts.headers, false) {
        body::discard(&parts.headers, body).await;
        return Err(fault.into());
    }
    let wishes = Wishes::read(&parts.headers, limits)?;
    let json = app.json(&parts.headers, body).await?;
    let asked = decisions::decode(json, limits).map_err(|undecoded| {
        *ignored = undecoded.ignored;
        DecideError::Invalid(undecoded.faults)
    })?;
    *ignored = asked.ignored;
    let mut decision = Decision { timeout: wishes.timeout, ..asked.decision };
    let salt = headers::joined(wishes.salt, decision.salt.take());
    // Clients send names of models that are not served here: any will do.
    let (caller, lane) = entitled(app, sender, None, (wishes.lane, Lane::Normal), salt)?;
    decision.lane = lane;
    let decided = app.service.decide(caller, decision, sender.arrival).await?;
    let text = decisions::encode(&asked.wanted, &decided)?;
    Ok(respond_decided(app, Dialect::Openai, sender, (decided, text)))
}
