//! `POST /v1/systemone` and `/v1/decide`: one decision.

use std::sync::Arc;
use std::time::Duration;

use actors::Lane;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use tokio::time::Instant;

use crate::dialect::problem::{Fault, RequestFault};
use crate::dialect::{Debug, Decoded, Dialect, Extras, Headed, Undecoded};
use crate::error::DecideError;
use crate::question::Decision;
use crate::service::{Caller, Decided};
use crate::telemetry;

use super::auth::Grant;
use super::body::Media;
use super::guard::{self, Sender};
use super::headers::{self, Wishes};
use super::images::{Found, Terms};
use super::served::ServedBody;
use super::watch::{Spoken, Told, named};
use super::{App, PathDialect, body, decisions, respond, state_key};

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
    app.note(&mut response, || Spoken(dialect));
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

/// A decision as it was sent, with what its headers say.
pub(super) struct Asked {
    pub(super) decision: Decision,
    pub(super) headed: Headed,
    pub(super) caller: Caller,
    pub(super) with_images: bool,
    /// Its images, none of them fetched yet.
    pub(super) images: Vec<Found>,
    pub(super) terms: Terms,
}

/// Receives and decodes a decision.
pub(super) async fn asked(
    app: &App,
    dialect: Dialect,
    parts: &Parts,
    body: Body,
    ignored: &mut Ignored,
) -> Result<Asked, Fault> {
    let limits = &app.config.limits;
    let media = match media(dialect, parts) {
        Ok(media) => media,
        Err(fault) => {
            body::discard(&parts.headers, body).await;
            return Err(fault.into());
        }
    };
    let wishes = Wishes::read(&parts.headers, limits)?;
    let headed = headed(app, dialect, parts)?;
    let terms = app.image_terms(dialect);
    let sent = if dialect.finds_images() {
        app.sent(&parts.headers, body, media, terms).await?
    } else {
        app.sent_as_text(&parts.headers, body).await?
    };
    let decode = || dialect.decision(sent.json, limits);
    let decoded = noting(named(dialect, sender(parts)?, decode), ignored);
    ignored.extend(sent.ignored);
    let mut decision = decoded?;
    decision.images_form = sent.with_images;
    for question in &mut decision.questions {
        question.wants_hidden = headed.debug == Some(Debug::Hidden);
    }
    let salt = headers::joined(wishes.salt, decision.salt.take());
    let lane = (decision.lane.or(wishes.lane), Lane::Normal);
    let (caller, lane) = entitled(app, sender(parts)?, decision.model.as_deref(), lane, salt)?;
    decision.lane = lane;
    decision.timeout = decision.timeout.or(wishes.timeout);
    let with_images = sent.with_images;
    Ok(Asked { decision, headed, caller, with_images, images: sent.images, terms })
}

async fn answer(
    app: &App,
    dialect: Dialect,
    parts: &Parts,
    body: Body,
    ignored: &mut Ignored,
) -> Result<Response, Fault> {
    if dialect == Dialect::Openai {
        return decisions::answered(app, dialect, parts, body, ignored).await;
    }
    let sender = sender(parts)?;
    let Asked { mut decision, headed, caller, with_images, images, terms } =
        asked(app, dialect, parts, body, ignored).await?;
    let diagnostics = decision.diagnostics;
    let request_id = request_id(sender, decision.request_id.take());
    let images = app.seen(images, headed, terms).await?;
    let decided = app.decided(caller, decision, images, sender.arrival).await?;
    let total = since(sender);
    let extras = Extras { diagnostics, debug: headed.debug, with_images, request_id, total };
    let text = dialect.decided(&decided, &extras)?;
    Ok(respond_decided(app, dialect, sender, (decided, text)))
}

/// The response of every route that decides: `text` as its body, with what the decision cost in its
/// headers and counted, for its tenant too. What is to be done once it was served is done then.
pub(super) fn respond_decided(
    app: &App,
    dialect: Dialect,
    sender: &Sender,
    (decided, text): (Decided, String),
) -> Response {
    let total = since(sender);
    if let Some(grant) = &sender.grant {
        app.count(&grant.tenant, decided.answers.len());
    }
    let own = dialect.headers(&decided, total);
    let body = ServedBody::new(text, decided.served, sender.connection.clone());
    let mut response = respond::json(StatusCode::OK, Body::new(body));
    headers::add_cost(response.headers_mut(), &decided.cost, total);
    state_key::add(response.headers_mut(), decided.state_key);
    for (name, value) in own {
        headers::insert(response.headers_mut(), name, &value);
    }
    telemetry::decision_other(headers::other(&decided.cost, total));
    app.note(&mut response, || Told::one(sender, &decided.cost, decided.answers.len()));
    response
}

/// The time since the request's first byte was read.
pub(super) fn since(sender: &Sender) -> Duration {
    now().duration_since(sender.arrival.at)
}

/// By the clock of the runtime, which tests may turn.
pub(super) fn now() -> std::time::Instant {
    Instant::now().into_std()
}

/// How the body is sent.
fn media(dialect: Dialect, parts: &Parts) -> Result<Media, RequestFault> {
    if dialect.insists_on_json() {
        body::declared(&parts.headers)?;
    }
    body::media_in(dialect, &parts.headers)
}

/// The request's name: that of its header, else of its body, else ours.
pub(super) fn request_id(sender: &Sender, in_body: Option<String>) -> String {
    let in_body = in_body.filter(|_| !sender.names_itself);
    let named = in_body.and_then(|id| guard::harmless(id.as_bytes()));
    named.unwrap_or_else(|| sender.request_id.clone())
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

/// The caller for whom something is computed, and its lane, by the rights of its key: a model that its
/// tenant may not ask for is not served, and its lane is at most the tenant's.
///
/// * `model`: the name asked for, if any.
/// * `lane`: the lane asked for, if any; the usual one.
pub(super) fn entitled(
    app: &App,
    sender: &Sender,
    model: Option<&str>,
    (lane, usual): (Option<Lane>, Lane),
    salt: Option<String>,
) -> Result<(Caller, Option<Lane>), Fault> {
    let grant = grant(sender)?;
    grant.check_model(model, || app.service.models())?;
    Ok((caller(sender, salt)?, grant.lane(lane, usual)))
}

/// The caller whom the service sees; where anything is computed for it, [`entitled`] makes it.
pub(super) fn caller(sender: &Sender, salt: Option<String>) -> Result<Caller, Fault> {
    Ok(Caller { tenant: grant(sender)?.tenant.clone(), salt })
}

/// What the sender may.
pub(super) fn grant(sender: &Sender) -> Result<&Grant, Fault> {
    Ok(sender.grant.as_ref().ok_or(RequestFault::Unauthorized)?)
}
