//! The HTTP layer: routes, what every request passes on its way in, and what every response carries.
//!
//! It knows dialects and the [`Service`] behind them, and neither tokens nor logits. A route's
//! handler returns an answer or a [`Fault`]; only `respond` makes a failure a response.

mod answer;
mod auth;
mod batch;
mod body;
mod decide;
mod decisions;
mod encoding;
mod estimate;
mod guard;
mod headers;
mod health;
mod images;
mod once;
mod pages;
mod path;
mod prewarm;
mod respond;
pub mod serve;
mod served;
mod slots;
mod state_key;
mod tasks;
mod texts;
mod usage;
mod watch;
mod wire;

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequestParts, MatchedPath, Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::middleware;
use axum::response::Response;
use axum::routing::{delete, get, post};
use tokio::sync::Semaphore;

use crate::dialect::problem::{Fault, FullStatus, RequestFault};
use crate::dialect::{Dialect, RequestLimits};
use crate::service::Service;
use crate::traces::Traces;
use crate::usage::Meter;

pub use crate::dialect::batch::STATES_MAX as BATCH_STATES_MAX;
pub(crate) use body::{Held, discard, off_the_runtime, receive_in_time};
pub(crate) use encoding::Encoding;
pub(crate) use guard::{harmless, new_id};
pub(crate) use once::value as one_value;
pub(crate) use respond::{json as json_response, refuse};

pub use auth::{AuthConfig, KEYS_MAX};
pub use body::{BODIES_BYTES_MAX, BODY_BYTES_MAX, BODY_TIMEOUT};
pub use images::{IMAGE_FETCH_TIMEOUT, IMAGE_FETCHES_MAX, IMAGES_MAX, ImageFetching};
pub use watch::ACCESS;

/// Most bodies that are decompressed and parsed at one time outside the runtime's own turn.
const PARSERS_MAX: usize = 4;

/// What the routes need to know.
#[derive(Debug, Clone)]
pub struct HttpConfig {
    /// The dialect of requests which name none.
    pub dialect: Dialect,
    /// Who may ask.
    pub auth: AuthConfig,
    /// What a request may ask for.
    pub limits: RequestLimits,
    /// Most bytes of a body, compressed and decompressed alike; default [`BODY_BYTES_MAX`].
    pub body_bytes_max: usize,
    /// Most bytes of all bodies that are held before they are parsed; default
    /// [`BODIES_BYTES_MAX`]. Beyond it requests are refused with 503.
    pub bodies_bytes_max: usize,
    /// Longest time that a body may take to arrive; default [`BODY_TIMEOUT`].
    pub body_timeout: Duration,
    /// With which status a request is refused for which there is no room now.
    pub queue_full_status: FullStatus,
    /// Whether a request may ask for the raw readout. Default no.
    pub debug_readout: bool,
    /// Where it is counted what each tenant asked for; by default in memory only.
    pub usage: Arc<Meter>,
    /// Where traces of requests go; by default none are made.
    pub traces: Option<Traces>,
    /// Whether the metrics need no key, where others do. Default no.
    pub open_metrics: bool,
    /// Whether each request has a line in the log. Default no.
    pub access_log: bool,
    /// Whether connections are over TLS, for what is told of requests. Default no.
    pub is_tls: bool,
    /// From where images may be fetched; by default from public addresses, with TLS.
    pub images: ImageFetching,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            dialect: Dialect::default(),
            auth: AuthConfig::default(),
            limits: RequestLimits::default(),
            body_bytes_max: BODY_BYTES_MAX,
            bodies_bytes_max: BODIES_BYTES_MAX,
            body_timeout: BODY_TIMEOUT,
            queue_full_status: FullStatus::default(),
            debug_readout: false,
            usage: Arc::new(Meter::in_memory()),
            traces: None,
            open_metrics: false,
            access_log: false,
            is_tls: false,
            images: ImageFetching::default(),
        }
    }
}

/// What the handlers share.
struct App {
    service: Arc<dyn Service>,
    config: HttpConfig,
    bodies: body::Held,
    parsers: Semaphore,
    fetcher: images::Fetcher,
    /// The API's description, once it was asked for.
    document: OnceLock<Bytes>,
}

/// All routes over `service`.
pub fn router(service: Arc<dyn Service>, config: HttpConfig) -> Router {
    let bodies = body::Held::new(config.bodies_bytes_max);
    crate::telemetry::bodies_max(config.bodies_bytes_max, PARSERS_MAX);
    let (parsers, fetcher) = (Semaphore::new(PARSERS_MAX), images::Fetcher::new(config.images));
    let app =
        Arc::new(App { service, config, bodies, parsers, fetcher, document: OnceLock::new() });
    let routes = Router::new()
        .route("/v1/systemone", post(decide::decide))
        .route("/v1/decide", post(decide::decide))
        .route("/v1/systemone/batch", post(batch::batch))
        .route("/{dialect}/v1/systemone/batch", post(batch::batch))
        .route("/v1/estimate", post(estimate::estimate))
        .route("/{dialect}/v1/estimate", post(estimate::estimate))
        .route("/v1/answer", post(answer::answer))
        .route("/v1/tasks", post(tasks::register).get(tasks::list))
        .route("/v1/tasks/import", post(tasks::import))
        .route("/v1/tasks/{id}", delete(tasks::remove))
        .route("/v1/tasks/{id}/status", get(tasks::status))
        .route("/v1/abstention/tasks", post(tasks::register).get(tasks::list))
        .route("/v1/abstention/tasks/import", post(tasks::import))
        .route("/v1/abstention/tasks/{id}", delete(tasks::remove))
        .route("/v1/abstention/tasks/{id}/status", get(tasks::status))
        .route("/{dialect}/v1/tasks", post(tasks::register).get(tasks::list))
        .route("/{dialect}/v1/tasks/import", post(tasks::import))
        .route("/{dialect}/v1/tasks/{id}", delete(tasks::remove))
        .route("/{dialect}/v1/tasks/{id}/status", get(tasks::status))
        .route("/{dialect}/v1/abstention/tasks", post(tasks::register).get(tasks::list))
        .route("/{dialect}/v1/abstention/tasks/import", post(tasks::import))
        .route("/{dialect}/v1/abstention/tasks/{id}", delete(tasks::remove))
        .route("/{dialect}/v1/abstention/tasks/{id}/status", get(tasks::status))
        .route("/{dialect}/health", get(health::health))
        .route("/v1/prewarm", post(prewarm::prewarm))
        .route("/v1/prewarm/{handle}", delete(prewarm::unpin))
        .route("/prewarm", post(prewarm::prewarm))
        .route("/prewarm/{handle}", delete(prewarm::unpin))
        .route("/v1/usage", get(usage::usage))
        .route("/v1/models", get(texts::models))
        .route("/v1/model", get(texts::model))
        .route("/self/v1/model", get(texts::model))
        .route("/v1/decisions", post(decisions::decisions))
        .route("/openai/v1/decisions", post(decisions::decisions))
        .route("/{dialect}/v1/systemone", post(decide::decide))
        .route("/{dialect}/v1/decide", post(decide::decide))
        .route("/decisio/v1/answer", post(answer::answer))
        .route("/{dialect}/v1/prewarm", post(prewarm::prewarm))
        .route("/{dialect}/v1/prewarm/{handle}", delete(prewarm::unpin))
        .route("/{dialect}/prewarm", post(prewarm::prewarm))
        .route("/{dialect}/v1/models", get(texts::models))
        .route("/health", get(health::health))
        .route("/", get(pages::page))
        .route("/play/{file}", get(pages::page))
        .route("/docs", get(pages::page))
        .route("/docs/reference.css", get(pages::page))
        .route("/docs/reference.js", get(pages::page))
        .route("/docs/try.js", get(pages::page))
        .route("/metrics", get(texts::metrics))
        .route("/openapi.json", get(texts::openapi))
        .fallback(not_found)
        .method_not_allowed_fallback(method_not_allowed)
        .layer(middleware::from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app);
    // Around all of it, since the router itself names the methods of a route to whoever missed them.
    Router::new().fallback_service(routes).layer(middleware::map_response(guard::without_methods))
}

/// Patterns of the routes above: the only values of the metrics' `route` label beside `other`.
pub const ROUTES: [&str; 50] = [
    "/",
    "/play/{file}",
    "/docs",
    "/docs/reference.css",
    "/docs/reference.js",
    "/docs/try.js",
    "/v1/usage",
    "/{dialect}/v1/prewarm/{handle}",
    "/v1/systemone/batch",
    "/{dialect}/v1/systemone/batch",
    "/v1/estimate",
    "/{dialect}/v1/estimate",
    "/v1/systemone",
    "/v1/decide",
    "/v1/answer",
    "/decisio/v1/answer",
    "/v1/tasks",
    "/v1/tasks/import",
    "/v1/tasks/{id}",
    "/v1/tasks/{id}/status",
    "/v1/abstention/tasks",
    "/v1/abstention/tasks/import",
    "/v1/abstention/tasks/{id}",
    "/v1/abstention/tasks/{id}/status",
    "/{dialect}/v1/tasks",
    "/{dialect}/v1/tasks/import",
    "/{dialect}/v1/tasks/{id}",
    "/{dialect}/v1/tasks/{id}/status",
    "/{dialect}/v1/abstention/tasks",
    "/{dialect}/v1/abstention/tasks/import",
    "/{dialect}/v1/abstention/tasks/{id}",
    "/{dialect}/v1/abstention/tasks/{id}/status",
    "/{dialect}/health",
    "/v1/prewarm",
    "/v1/prewarm/{handle}",
    "/prewarm",
    "/prewarm/{handle}",
    "/v1/models",
    "/v1/model",
    "/self/v1/model",
    "/v1/decisions",
    "/openai/v1/decisions",
    "/{dialect}/v1/systemone",
    "/{dialect}/v1/decide",
    "/{dialect}/v1/prewarm",
    "/{dialect}/prewarm",
    "/{dialect}/v1/models",
    "/health",
    "/metrics",
    "/openapi.json",
];

/// Routes that need no key on a server which has keys.
const PUBLIC_ROUTES: [&str; 9] = [
    "/health",
    "/{dialect}/health",
    "/openapi.json",
    "/",
    "/play/{file}",
    "/docs",
    "/docs/reference.css",
    "/docs/reference.js",
    "/docs/try.js",
];

/// Routes that show what concerns all tenants.
const OPERATOR_ROUTES: [&str; 1] = ["/metrics"];

async fn not_found(State(app): State<Arc<App>>, request: Request) -> Response {
    let method = respond::excerpt(request.method().as_str());
    let path = respond::excerpt(request.uri().path());
    let dialect = app.dialect_of_unknown(&request);
    app.refuse(dialect, &RequestFault::NotFound { method, path }.into())
}

async fn method_not_allowed(State(app): State<Arc<App>>, request: Request) -> Response {
    let method = respond::excerpt(request.method().as_str());
    let dialect = app.dialect_of_unknown(&request);
    app.refuse(dialect, &RequestFault::MethodNotAllowed { method }.into())
}

/// The dialect in a request's path, where its route has one: the first segment as it was sent, so
/// that one which is no text is an unknown dialect like any other.
struct PathDialect(Option<String>);

impl<S: Sync> FromRequestParts<S> for PathDialect {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let route = parts.extensions.get::<MatchedPath>();
        let has_one = route.is_some_and(|route| route.as_str().starts_with("/{dialect}/"));
        let segment = parts.uri.path().split('/').nth(1).filter(|_| has_one);
        Ok(Self(segment.map(str::to_owned)))
    }
}

impl App {
    /// The response to a request that was not answered.
    fn refuse(&self, dialect: Dialect, fault: &Fault) -> Response {
        respond::refuse(dialect.refusal(fault, self.config.queue_full_status), fault)
    }

    /// The dialect of a request that has no route, or does not get to it: that of its path's first
    /// segment or of a path that is one dialect's own, else of its header, else the server's.
    fn dialect_of_unknown(&self, request: &Request) -> Dialect {
        match request.uri().path() {
            "/v1/decisions" => return Dialect::Openai,
            "/v1/model" => return Dialect::SelfServe,
            "/v1/answer" => return Dialect::Decisio,
            _ => {}
        }
        let first = request.uri().path().split('/').nth(1).and_then(|name| name.parse().ok());
        let named = || self.dialect(None, request.headers()).unwrap_or(self.config.dialect);
        first.unwrap_or_else(named)
    }

    /// The dialect a request speaks: that of its path, else of its header, else the server's.
    fn dialect(&self, path: Option<&str>, headers: &HeaderMap) -> Result<Dialect, Fault> {
        let (name, in_path) = match (path, once::value(headers, headers::DIALECT)?) {
            (Some(name), _) => (name, true),
            (None, Some(value)) => (value.to_str().unwrap_or("?"), false),
            (None, None) => return Ok(self.config.dialect),
        };
        name.parse().map_err(|_| {
            RequestFault::UnknownDialect { name: respond::excerpt(name), in_path }.into()
        })
    }
}
