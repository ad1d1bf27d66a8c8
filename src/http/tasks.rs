//! `/v1/tasks` and `/v1/abstention/tasks`: learning from labelled examples.

use std::sync::Arc;

use actors::Lane;
use axum::body::Body;
use axum::extract::{MatchedPath, RawQuery, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use crate::dialect::Dialect;
use crate::dialect::problem::{Fault, RequestFault};
use crate::error::{DecideError, Problem};
use crate::json::Json;
use crate::question::Decision;
use crate::service::{Caller, Order, Registered, TaskKind, Teaching};
use crate::tasks::order;

use super::decide::{Ignored, entitled, in_dialect, sender};
use super::path::PathName;
use super::{App, PathDialect, body, images, respond};

/// Most records of one import.
const IMPORTS_MAX: usize = 256;

/// `POST`: a task is registered.
pub(super) async fn register(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    request: Request,
) -> Response {
    let kind = kind_of(&request);
    let answer = async |app: &App, dialect, parts: &Parts, body, _: &mut Ignored| {
        let (teaching, caller) = teaching(app, parts)?;
        let json = json(app, parts, body).await?;
        // What the order was read from is not kept while it is worked on.
        let order = body::off_the_runtime(move || read(app, dialect, kind, &json))?;
        let in_background = prefers_async(&parts.headers);
        match teaching.register(caller, order, in_background).await? {
            Registered::Record(record) => Ok(respond::json(StatusCode::OK, record.to_string())),
            Registered::Accepted(shown) => {
                let mut response = respond::json(StatusCode::ACCEPTED, shown.to_string());
                // An id is ASCII without what a path gives a meaning to.
                let id = shown["id"].as_str().unwrap_or_default().replace(' ', "%20");
                let place = format!("{}/{id}/status", parts.uri.path());
                let headers = response.headers_mut();
                super::headers::insert(headers, "location", &place);
                super::headers::insert(headers, "preference-applied", "respond-async");
                Ok(response)
            }
        }
    };
    in_dialect(&app, path.as_deref(), request, answer).await
}

/// `GET`: the caller's tasks.
pub(super) async fn list(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    RawQuery(query): RawQuery,
    request: Request,
) -> Response {
    let kind = kind_of(&request);
    let full =
        query.unwrap_or_default().split('&').any(|pair| pair == "full=1" || pair == "full=true");
    let answer = async |app: &App, _, parts: &Parts, body, _: &mut Ignored| {
        body::discard(&parts.headers, body).await;
        let (teaching, caller) = teaching(app, parts)?;
        let listed = teaching.tasks(&caller, kind, full);
        Ok(respond::json(StatusCode::OK, listed.to_string()))
    };
    in_dialect(&app, path.as_deref(), request, answer).await
}

/// `DELETE`: a task is removed.
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    PathName(id): PathName,
    request: Request,
) -> Response {
    let kind = kind_of(&request);
    let answer = async |app: &App, _, parts: &Parts, body, _: &mut Ignored| {
        body::discard(&parts.headers, body).await;
        let (teaching, caller) = teaching(app, parts)?;
        if teaching.unregister(&caller, kind, &id).await? {
            return Ok(respond::json(StatusCode::OK, json!({"removed": id}).to_string()));
        }
        Err(RequestFault::NoTask { id: respond::excerpt(&id) }.into())
    };
    in_dialect(&app, path.as_deref(), request, answer).await
}

/// `GET .../{id}/status`: how far a registration is.
pub(super) async fn status(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    PathName(id): PathName,
    request: Request,
) -> Response {
    let kind = kind_of(&request);
    let answer = async |app: &App, _, parts: &Parts, body, _: &mut Ignored| {
        body::discard(&parts.headers, body).await;
        let (teaching, caller) = teaching(app, parts)?;
        let shown = teaching.registration(&caller, kind, &id);
        let missing = || RequestFault::NoTask { id: respond::excerpt(&id) };
        Ok(respond::json(StatusCode::OK, shown.ok_or_else(missing)?.to_string()))
    };
    in_dialect(&app, path.as_deref(), request, answer).await
}

/// `POST .../import`: tasks that were fitted before are taken in.
pub(super) async fn import(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    request: Request,
) -> Response {
    let kind = kind_of(&request);
    let answer = async |app: &App, _, parts: &Parts, body, _: &mut Ignored| {
        let (teaching, caller) = teaching(app, parts)?;
        let json = json(app, parts, body).await?;
        let records = records(&json)?;
        let taken = body::off_the_runtime(|| teaching.import(&caller, kind, records));
        let loaded = taken.await?;
        Ok(respond::json(StatusCode::OK, json!({"loaded": loaded}).to_string()))
    };
    in_dialect(&app, path.as_deref(), request, answer).await
}

fn kind_of(request: &Request) -> TaskKind {
    let route = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
    if route.is_some_and(|route| route.contains("/abstention/")) {
        TaskKind::Abstention
    } else {
        TaskKind::Correction
    }
}

fn teaching<'a>(app: &'a App, parts: &Parts) -> Result<(&'a dyn Teaching, Caller), Fault> {
    let sender = sender(parts)?;
    let (caller, _) = entitled(app, sender, None, (None, Lane::Batch), None)?;
    let message = || DecideError::Unsupported("the served model learns no tasks".to_owned());
    Ok((app.service.teaching().ok_or_else(message)?, caller))
}

async fn json(app: &App, parts: &Parts, body: Body) -> Result<Json, Fault> {
    if let Err(fault) = body::media(&parts.headers, false) {
        body::discard(&parts.headers, body).await;
        return Err(fault.into());
    }
    app.json(&parts.headers, body).await
}

/// Reads an order; the requests of its examples by the rules of the dialect.
fn read(app: &App, dialect: Dialect, kind: TaskKind, json: &Json) -> Result<Order, Fault> {
    let decode = |request: Json| decoded(app, dialect, request);
    let order = match kind {
        TaskKind::Correction => Order::Correction(order::task(json, &decode)?),
        TaskKind::Abstention => Order::Abstention(order::abstention(json, &decode)?),
    };
    Ok(order)
}

fn decoded(app: &App, dialect: Dialect, mut request: Json) -> Result<Decision, DecideError> {
    let mut images_form = false;
    if dialect.finds_images()
        && let Json::Object(members) = &mut request
    {
        let explicit = members.iter().position(|(name, _)| name == "images");
        let explicit = explicit.map(|at| members.remove(at).1);
        images_form = explicit.is_some();
        let state = members.iter_mut().find(|(name, _)| name == "state");
        let terms = app.image_terms(dialect);
        let found = state
            .map(|(_, state)| images::found_after(Vec::new(), state, explicit.as_ref(), terms));
        let found = found.unwrap_or_else(|| Ok(Default::default())).map_err(|fault| {
            let problem = Problem::new(fault.path().to_vec(), "image_invalid", fault.to_string());
            DecideError::Invalid(vec![problem])
        })?;
        if !found.0.is_empty() {
            let message = "the served model reads text only, and an example has images";
            return Err(DecideError::Unsupported(message.to_owned()));
        }
    }
    let decoded = dialect.decision(request, &app.config.limits);
    let decision = decoded.map_err(|undecoded| DecideError::Invalid(undecoded.faults))?.request;
    Ok(Decision { images_form, ..decision })
}

fn records(json: &Json) -> Result<Vec<Value>, Fault> {
    let fault = |message: &str| {
        let problem = Problem::new(vec!["tasks".into()], "tasks_invalid", message.to_owned());
        Fault::Decide(DecideError::Invalid(vec![problem]))
    };
    let Some(Json::Array(items)) = json.get("tasks") else {
        return Err(fault("tasks must be a list of records, as GET /v1/tasks?full=1 gives them"));
    };
    if items.len() > IMPORTS_MAX {
        let message = format!("tasks has {} records, at most {IMPORTS_MAX} are taken", items.len());
        return Err(fault(&message));
    }
    let record = |item: &Json| serde_json::from_str(&item.compact());
    items.iter().map(record).collect::<Result<_, _>>().map_err(|error| fault(&error.to_string()))
}

/// Whether the caller would rather ask again than wait.
fn prefers_async(headers: &HeaderMap) -> bool {
    let named = |value: &str| {
        value.split([',', ';']).any(|name| name.trim().eq_ignore_ascii_case("respond-async"))
    };
    headers.get_all("prefer").iter().any(|value| value.to_str().is_ok_and(named))
}
