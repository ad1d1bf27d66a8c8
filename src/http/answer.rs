//! `POST /v1/answer`: decisio's letters route below System One.

use std::sync::Arc;

use actors::Lane;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::response::Response;

use crate::dialect::problem::Fault;
use crate::dialect::{Dialect, Headed, letters};
use crate::error::DecideError;

use super::decide::{Ignored, entitled, in_dialect, respond_decided, sender, since};
use super::headers::Wishes;
use super::{App, body};

/// Failures are told in decisio's shape: the route is its own.
pub(super) async fn answer(State(app): State<Arc<App>>, request: Request) -> Response {
    in_dialect(&app, Some(Dialect::Decisio.name()), request, answered).await
}

async fn answered(
    app: &App,
    dialect: Dialect,
    parts: &Parts,
    body: Body,
    _: &mut Ignored,
) -> Result<Response, Fault> {
    let sender = sender(parts)?;
    let limits = &app.config.limits;
    if let Err(fault) = body::media(&parts.headers, false) {
        body::discard(&parts.headers, body).await;
        return Err(fault.into());
    }
    let wishes = Wishes::read(&parts.headers, limits)?;
    let terms = app.image_terms(dialect);
    let sent = app.sent(&parts.headers, body, body::Media::Json, terms).await?;
    let wanted = letters::decode(sent.json, limits)
        .map_err(|undecoded| DecideError::Invalid(undecoded.faults))?;
    let mut decision = wanted.decision.clone();
    let lane = (wishes.lane, Lane::Normal);
    let (caller, lane) = entitled(app, sender, decision.model.as_deref(), lane, wishes.salt)?;
    decision.lane = lane;
    decision.timeout = wishes.timeout;
    let images = app.seen(sent.images, Headed::default(), terms).await?;
    let decided = app.decided(caller, decision, images, sender.arrival).await?;
    let text = letters::encode(&wanted, &decided, since(sender))?;
    Ok(respond_decided(app, dialect, sender, (decided, text)))
}
