//! `POST /v1/systemone` and `/v1/decide`: one decision.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use tokio::time::Instant;

use crate::dialect::problem::{Fault, RequestFault};
use crate::dialect::{Debug, Decoded, Dialect, Extras, Headed, Undecoded};
use crate::error::DecideError;
use crate::service::{Caller, Decided};
use crate::telemetry;

use super::guard::Sender;
use super::headers::{self, Wishes};
use super::images::Image;
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
    let media = match body::media(&parts.headers, dialect.takes_forms()) {
        Ok(media) => media,
        Err(fault) => {
            body::discard(&parts.headers, body).await;
            return Err(fault.into());
        }
    };
    let wishes = Wishes::read(&parts.headers, limits)?;
    let headed = headed(app, dialect, parts)?;
    let sent = app.sent(&parts.headers, body, media).await?;
    let mut decision = noting(dialect.decision(sent.json, limits), ignored)?;
    check_images(&sent.images, headed)?;
    decision.images_form = sent.with_images;
    for question in &mut decision.questions {
        question.wants_hidden = headed.debug == Some(Debug::Hidden);
    }
    decision.lane = decision.lane.or(wishes.lane);
    decision.timeout = decision.timeout.or(wishes.timeout);
    let diagnostics = decision.diagnostics;
    let extras = Extras { diagnostics, debug: headed.debug, with_images: sent.with_images };
    let caller = caller(sender, wishes.salt)?;
    let decided = app.service.decide(caller, decision, sender.arrival).await?;
    let text = dialect.decided(&decided, extras)?;
    Ok(respond_decided(dialect, sender, decided, text))
}

/// The response of every route that decides: `text` as its body, with what the decision cost in its
/// headers and counted. What is to be done once it was served is done then.
pub(super) fn respond_decided(
    dialect: Dialect,
    sender: &Sender,
    decided: Decided,
    text: String,
) -> Response {
    let total = since(sender);
    let own = dialect.headers(&decided, total);
    let body = ServedBody::new(text, decided.served, sender.connection.clone());
    let mut response = respond::json(StatusCode::OK, Body::new(body));
    headers::add_cost(response.headers_mut(), &decided.cost, total);
    for (name, value) in own {
        headers::insert(response.headers_mut(), name, &value);
    }
    telemetry::decision_other(headers::other(&decided.cost, total));
    response
}

/// The time since the request's first byte was read.
pub(super) fn since(sender: &Sender) -> Duration {
    Instant::now().into_std().duration_since(sender.arrival.at)
}

/// Refuses what only an engine that sees images could answer.
pub(super) fn check_images(images: &[Image], headed: Headed) -> Result<(), Fault> {
    let message = match images.first() {
        Some(first) => format!(
            "the served model reads text only, and the request has {} image(s), the first {first}",
            images.len()
        ),
        None if headed.image_route == Some(true) => {
            "the served model reads text only, there is no route image".to_owned()
        }
        None => return Ok(()),
    };
    Err(DecideError::Unsupported(message).into())
}

/// What the headers of a request's dialect say.
pub(super) fn headed(app: &App, dialect: Dialect, parts: &Parts) -> Result<Headed, Fault> {
    let header = |name: &str| {
        let value = parts.headers.get(name)?;
        Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
    };
    Ok(dialect.headed(&header, app.config.debug_readout)?)
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
