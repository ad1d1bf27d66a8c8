//! `POST /v1/systemone` and `/v1/decide`: one decision.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use tokio::time::Instant;

use crate::dialect::problem::{Fault, RequestFault};
use crate::dialect::{Decoded, Dialect, Undecoded};
use crate::error::DecideError;
use crate::service::Caller;
use crate::telemetry;

use super::guard::Sender;
use super::headers::{self, Wishes};
use super::served::ServedBody;
use super::{App, PathDialect, body, respond};

/// Names of ignored fields.
pub(super) type Ignored = Vec<String>;

pub(super) async fn decide(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    request: Request,
) -> Response {
    in_dialect(&app, path.as_deref(), request, answer).await
}

/// Answers in the dialect that the request speaks; failures too, or in the server's if it names
/// none that is known. What `answer` notes as ignored is listed whatever comes of it, since a name
/// that was misspelt is often why a request fails.
pub(super) async fn in_dialect<F>(
    app: &App,
    path: Option<&str>,
    request: Request,
    answer: F,
) -> Response
where
    F: AsyncFnOnce(&App, Dialect, &Parts, Body, &mut Ignored) -> Result<Response, Fault>,
{
    let (parts, body) = request.into_parts();
    let dialect = match app.dialect(path, &parts.headers) {
        Ok(dialect) => dialect,
        Err(fault) => return app.refuse(app.config.dialect, &fault),
    };
    let mut ignored = Ignored::new();
    let answered = answer(app, dialect, &parts, body, &mut ignored).await;
    let mut response = answered.unwrap_or_else(|fault| app.refuse(dialect, &fault));
    headers::add_ignored(response.headers_mut(), &ignored);
    response
}

/// What was decoded, with the names that were not understood noted in `ignored`; also where nothing
/// was decoded.
pub(super) fn noting<T>(
    decoded: Result<Decoded<T>, Undecoded>,
    ignored: &mut Ignored,
) -> Result<T, DecideError> {
    match decoded {
        Ok(decoded) => {
            *ignored = decoded.ignored;
            Ok(decoded.request)
        }
        Err(undecoded) => {
            *ignored = undecoded.ignored;
            Err(DecideError::Invalid(undecoded.faults))
        }
    }
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
    if let Err(fault) = body::check_media_type(&parts.headers) {
        body::discard(&parts.headers, body).await;
        return Err(fault.into());
    }
    let wishes = Wishes::read(&parts.headers, limits)?;
    let json = app.json(&parts.headers, body).await?;
    let mut decision = noting(dialect.decision(json, limits), ignored)?;
    decision.lane = decision.lane.or(wishes.lane);
    decision.timeout = decision.timeout.or(wishes.timeout);
    let diagnostics = decision.diagnostics;
    let caller = caller(sender, wishes.salt)?;
    let decided = app.service.decide(caller, decision, sender.arrival).await?;
    let text = dialect.decided(&decided, diagnostics)?;
    let total = Instant::now().into_std().duration_since(sender.arrival.at);
    let body = ServedBody::new(text, decided.served, sender.connection.clone());
    let mut response = respond::json(StatusCode::OK, Body::new(body));
    headers::add_cost(response.headers_mut(), &decided.cost, total);
    telemetry::decision_other(headers::other(&decided.cost, total));
    Ok(response)
}

/// Who sent the request; the guard has put it there.
pub(super) fn sender(parts: &Parts) -> Result<&Sender, Fault> {
    let missing = || DecideError::Internal { detail: "a request without a sender".to_owned() };
    Ok(parts.extensions.get::<Sender>().ok_or_else(missing)?)
}

/// The caller whom the service sees.
pub(super) fn caller(sender: &Sender, salt: Option<String>) -> Result<Caller, Fault> {
    let tenant = sender.tenant.clone().ok_or(RequestFault::Unauthorized)?;
    Ok(Caller { tenant, salt })
}
