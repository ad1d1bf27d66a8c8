//! `POST /v1/systemone/batch`: one set of questions about many states.
//!
//! Each state is a decision of its own, with an answer or a refusal of its own; they share the
//! questions and the request's time. A few are open at a time, so that a batch neither fills the queue
//! nor is refused by it: what finds no room is sent again while there is time.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use actors::Lane;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use futures_util::StreamExt as _;
use futures_util::stream::{self, Stream};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::dialect::batch::{Members, blank, split, with_state};
use crate::dialect::problem::{Fault, ImageRefusal, Refusal, RequestFault};
use crate::dialect::{Dialect, Extras};
use crate::error::{DecideError, Problem, Step};
use crate::json::Json;
use crate::question::Decision;
use crate::service::{Caller, Decided};
use crate::traces::spans::{self, Work};

use super::decide::{Ignored, entitled, in_dialect, noting, request_id, sender, since};
use super::guard::Sender;
use super::headers::{self, Wishes};
use super::watch::{Told, named};
use super::{App, PathDialect, body, respond};

/// Most of them that are open at a time.
const OPEN_MAX: usize = 16;

/// Longest pause before a state that found no room is sent again.
const PAUSE_MAX: Duration = Duration::from_secs(2);

const NDJSON: HeaderValue = HeaderValue::from_static("application/x-ndjson");

pub(super) async fn batch(
    State(app): State<Arc<App>>,
    PathDialect(path): PathDialect,
    request: Request,
) -> Response {
    let shared = Arc::clone(&app);
    let answer = async |app: &App, dialect, parts: &Parts, body, ignored: &mut Ignored| {
        let batch = received(app, (dialect, parts), body, ignored).await?;
        let told = batch.told.clone();
        let results = answered(Arc::clone(&shared), batch);
        if wants_lines(&parts.headers) {
            let mut response = lines(results);
            app.note(&mut response, || told.streamed());
            return Ok(response);
        }
        let mut response = whole(app.service.served_name(), results.collect().await);
        app.note(&mut response, || told);
        Ok(response)
    };
    in_dialect(&app, path.as_deref(), request, answer).await
}

/// A batch, decoded.
struct Batch {
    dialect: Dialect,
    caller: Caller,
    sender: Sender,
    /// All of it but the state.
    decision: Decision,
    /// What was sent, without states.
    rest: Members,
    states: Vec<Json>,
    request_id: String,
    /// When the last of it must have ended.
    deadline: Instant,
    /// What became of its states, where that is told.
    told: Told,
}

/// What became of one state.
#[derive(Serialize)]
struct ItemResult {
    index: usize,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_ms: Option<u64>,
    /// What a request of its own would have been answered with.
    response: Box<RawValue>,
    #[serde(skip)]
    tokens: u64,
}

async fn received(
    app: &App,
    (dialect, parts): (Dialect, &Parts),
    body: Body,
    ignored: &mut Ignored,
) -> Result<Batch, Fault> {
    let sender = sender(parts)?;
    let limits = &app.config.limits;
    if dialect == Dialect::Openai {
        body::discard(&parts.headers, body).await;
        let message = "OpenAI's decisions have no batches; use another dialect".to_owned();
        return Err(DecideError::Unsupported(message).into());
    }
    if let Err(fault) = media(dialect, parts) {
        body::discard(&parts.headers, body).await;
        return Err(fault.into());
    }
    let wishes = Wishes::read(&parts.headers, limits)?;
    let (states, rest) = split(app.json(&parts.headers, body).await?)?;
    let decode = || dialect.decision(with_state(&rest, blank()), limits);
    let mut decision = noting(named(dialect, sender, decode), ignored)?;
    let salt = headers::joined(wishes.salt, decision.salt.take());
    let lane = decision.lane.or(wishes.lane).unwrap_or(Lane::Batch);
    let (caller, lane) =
        entitled(app, sender, decision.model.as_deref(), (Some(lane), lane), salt)?;
    decision.lane = lane;
    let timeout = decision.timeout.or(wishes.timeout).unwrap_or(limits.timeout_max);
    decision.timeout = None;
    decision.timeout_default = Some(timeout);
    let request_id = request_id(sender, decision.request_id.take());
    Ok(Batch {
        dialect,
        caller,
        sender: sender.clone(),
        decision,
        rest,
        states,
        request_id,
        deadline: Instant::from_std(sender.arrival.at) + timeout,
        told: Told::default(),
    })
}

/// How the body is sent: as a decision's, but for forms.
fn media(dialect: Dialect, parts: &Parts) -> Result<(), RequestFault> {
    if dialect.takes_undeclared() {
        return body::media_in(dialect, &parts.headers).map(|_| ());
    }
    body::media(&parts.headers, false).map(|_| ())
}

/// The results as they come; each decision is cancelled when the stream is dropped.
fn answered(app: Arc<App>, batch: Batch) -> impl Stream<Item = ItemResult> {
    let Batch { states, .. } = batch;
    let batch = Arc::new(Batch { states: Vec::new(), ..batch });
    let items = states.into_iter().enumerate().map(move |(index, state)| {
        let (app, batch) = (Arc::clone(&app), Arc::clone(&batch));
        async move { item(&app, &batch, index, state).await }
    });
    stream::iter(items).buffer_unordered(OPEN_MAX)
}

async fn item(app: &App, batch: &Batch, index: usize, state: Json) -> ItemResult {
    let mut work = Work::begun(index, since(&batch.sender));
    let result = result(app, batch, state, &mut work).await;
    if app.is_watched() {
        let (status, reason) = (result.status, result.reason);
        batch.told.add(Work { ended: since(&batch.sender), status, reason, ..work });
    }
    result
}

/// The result of one state, with what is told of it noted in `work`.
async fn result(app: &App, batch: &Batch, state: Json, work: &mut Work) -> ItemResult {
    let index = work.state.unwrap_or_default();
    let fault = match decided(app, batch, state, work).await {
        Ok(decided) => match text(batch, &decided) {
            Ok(response) => {
                let tokens = decided.cost.input_tokens;
                app.count(&batch.caller.tenant, decided.answers.len());
                work.questions = decided.answers.len();
                work.cost = app.is_watched().then(|| spans::without_rows(&decided.cost));
                (decided.served)();
                let (reason, retry_after_ms) = (None, None);
                return ItemResult { index, status: 200, reason, retry_after_ms, response, tokens };
            }
            Err(error) => error.into(),
        },
        Err(fault) => fault,
    };
    let refusal = batch.dialect.refusal(&fault, app.config.queue_full_status);
    refused(index, refusal)
}

fn refused(index: usize, refusal: Refusal) -> ItemResult {
    let wait = refusal.retry_after.map(|wait| wait.as_millis().max(1));
    ItemResult {
        index,
        status: refusal.status,
        reason: Some(refusal.reason),
        retry_after_ms: wait.map(|wait| u64::try_from(wait).unwrap_or(u64::MAX)),
        response: raw(refusal.body),
        tokens: 0,
    }
}

/// A state by the rules of the dialect, and without images.
async fn checked(app: &App, batch: &Batch, mut state: Json) -> Result<Json, Fault> {
    if batch.dialect.finds_images() {
        app.without_images(batch.dialect, &mut state, None).await?;
    }
    // Every dialect takes a string; what else it takes is for it to say.
    if state.as_str().is_none() {
        let body = with_state(&batch.rest, state.clone());
        let decode = || batch.dialect.decision(body, &app.config.limits);
        let decoded = named(batch.dialect, &batch.sender, decode);
        decoded.map_err(|undecoded| DecideError::Invalid(undecoded.faults))?;
    }
    Ok(state)
}

/// The same fault, found in the state of this number.
fn of_state(index: usize, fault: Fault) -> Fault {
    let renamed = |path: Vec<Step>| {
        let is_state = path.first() == Some(&"state".into());
        let start: Vec<Step> = vec!["states".into(), index.into()];
        start.into_iter().chain(path.into_iter().skip(usize::from(is_state))).collect()
    };
    match fault {
        Fault::Decide(DecideError::Invalid(problems)) => {
            let renamed = |problem: Problem| Problem { path: renamed(problem.path), ..problem };
            DecideError::Invalid(problems.into_iter().map(renamed).collect()).into()
        }
        Fault::Image(refusal) => {
            Fault::Image(ImageRefusal { path: renamed(refusal.path), ..refusal })
        }
        other @ (Fault::Decide(_) | Fault::Request(_)) => other,
    }
}

/// Decides on one state; where there is no room, again while there is time.
async fn decided(app: &App, batch: &Batch, state: Json, work: &mut Work) -> Result<Decided, Fault> {
    let index = work.state.unwrap_or_default();
    let state = checked(app, batch, state).await.map_err(|fault| of_state(index, fault))?;
    let decision = Decision { state, ..batch.decision.clone() };
    loop {
        work.tried = since(&batch.sender);
        let (caller, arrival) = (batch.caller.clone(), batch.sender.arrival);
        let asked = app.service.decide(caller, decision.clone(), arrival);
        let fault = match asked.await {
            Ok(decided) => return Ok(decided),
            Err(error) => Fault::from(error),
        };
        let wait = batch.dialect.refusal(&fault, app.config.queue_full_status).retry_after;
        let Some(wait) = wait.filter(|_| fault.is_for_lack_of_room()) else { return Err(fault) };
        let wait = wait.min(PAUSE_MAX);
        if Instant::now() + wait >= batch.deadline {
            return Err(fault);
        }
        tokio::time::sleep(wait).await;
    }
}

fn text(batch: &Batch, decided: &Decided) -> Result<Box<RawValue>, DecideError> {
    let extras = Extras {
        diagnostics: batch.decision.diagnostics,
        request_id: batch.request_id.clone(),
        total: since(&batch.sender),
        ..Extras::default()
    };
    batch.dialect.decided(decided, &extras).map(raw)
}

fn raw(text: String) -> Box<RawValue> {
    // Whatever the dialects encode is JSON.
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Whether the client wants a line a result, as they come.
fn wants_lines(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepts.flat_map(|value| value.split(','));
    types.any(|kind| kind.split(';').next().unwrap_or_default().trim() == "application/x-ndjson")
}

fn lines(results: impl Stream<Item = ItemResult> + Send + 'static) -> Response {
    let line = |result: ItemResult| {
        let mut line = serde_json::to_string(&result).unwrap_or_default();
        line.push('\n');
        Ok::<_, Infallible>(line)
    };
    let mut response = Response::new(Body::from_stream(results.map(line)));
    response.headers_mut().insert(header::CONTENT_TYPE, NDJSON);
    response
}

#[derive(Serialize)]
struct Whole<'a> {
    model: &'a str,
    succeeded: usize,
    failed: usize,
    /// In the order of the states.
    results: Vec<ItemResult>,
    usage: Usage,
}

#[derive(Serialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

fn whole(model: &str, mut results: Vec<ItemResult>) -> Response {
    results.sort_unstable_by_key(|result| result.index);
    let succeeded = results.iter().filter(|result| result.status == 200).count();
    let input_tokens = results.iter().map(|result| result.tokens).sum();
    let usage = Usage { input_tokens, output_tokens: 0 };
    let failed = results.len() - succeeded;
    let whole = Whole { model, succeeded, failed, results, usage };
    respond::json(StatusCode::OK, serde_json::to_string(&whole).unwrap_or_default())
}
