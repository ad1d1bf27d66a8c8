//! `POST /v1/prewarm` and `/prewarm`: states that are read before their questions come.

use std::sync::Arc;

use actors::Lane;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;

use crate::dialect::Dialect;
use crate::dialect::problem::{Fault, RequestFault};
use crate::json::Json;

use super::decide::{Ignored, caller, entitled, in_dialect, noting, sender, since};
use super::headers::{self, Wishes};
use super::path::PathName;
use super::watch::{Told, named};
use super::{App, PathDialect, body, respond, state_key};

/// The content type is looked at only where the dialect has a rule of its own, or the request is that of
/// a page in a browser: the documented example of this route is a bare `curl -d`, which declares a form.
pub(super) async fn prewarm(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    request: Request,
) -> Response {
    in_dialect(&app, path.as_deref(), request, answer).await
}

/// `DELETE /v1/prewarm/{handle}` and `/prewarm/{handle}`: the pin of a prewarm is given up.
pub(super) async fn unpin(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    PathName(handle): PathName,
    request: Request,
) -> Response {
    in_dialect(
        &app,
        path.as_deref(),
        request,
        async |app: &App, _, parts: &Parts, body, _: &mut Ignored| {
            body::discard(&parts.headers, body).await;
            let caller = caller(sender(parts)?, None)?;
            let name = respond::excerpt(&handle);
            if app.service.unpin(caller, handle).await? {
                return Ok(respond::json(StatusCode::OK, r#"{"ok":true}"#));
            }
            Err(RequestFault::NoPrewarm { handle: name }.into())
        },
    )
    .await
}

async fn answer(
    app: &App,
    dialect: Dialect,
    parts: &Parts,
    body: Body,
    ignored: &mut Ignored,
) -> Result<Response, Fault> {
    let sender = sender(parts)?;
    let limits = &app.config.limits;
    let is_of_page = parts.headers.contains_key(header::ORIGIN);
    let media = if dialect.takes_undeclared() {
        body::media_in(dialect, &parts.headers).map(|_| ())
    } else if is_of_page {
        body::media(&parts.headers, false).map(|_| ())
    } else {
        Ok(())
    };
    if let Err(fault) = media {
        body::discard(&parts.headers, body).await;
        return Err(fault.into());
    }
    let wishes = Wishes::read(&parts.headers, limits)?;
    let mut json = app.json(&parts.headers, body).await?;
    if dialect.finds_images()
        && let Json::Object(members) = &mut json
    {
        let listed = members.iter().position(|(name, _)| name == "images");
        let listed = listed.map(|at| members.remove(at).1);
        for (_, state) in
            members.iter_mut().filter(|(name, _)| ["state", "states"].contains(&name.as_str()))
        {
            app.without_images(dialect, state, listed.as_ref()).await?;
        }
    }
    let decode = || dialect.prewarm(json, limits);
    let mut request = noting(named(dialect, sender, decode), ignored)?;
    let lane = (request.lane.or(wishes.lane), Lane::Batch);
    let (caller, lane) = entitled(app, sender, None, lane, wishes.salt)?;
    request.lane = lane;
    request.timeout = request.timeout.or(wishes.timeout);
    let tenant = caller.tenant.clone();
    let prewarmed = app.service.prewarm(caller, request, sender.arrival).await?;
    app.count_found(&tenant, &prewarmed.cost);
    let text = dialect.prewarmed(&prewarmed, app.config.queue_full_status);
    let mut response = respond::json(StatusCode::OK, text);
    headers::add_cost(response.headers_mut(), &prewarmed.cost, since(sender));
    state_key::add(response.headers_mut(), prewarmed.state_key);
    app.note(&mut response, || Told::one(sender, &prewarmed.cost, 0));
    Ok(response)
}
