//! A gateway: one address in front of many dockets, which sends the requests on one state to one of them.
//!
//! It reads of a request what it needs to route it, and passes everything else on as it is: keys of clients, which
//! it does not know, dialects, and answers as they come. What it decides is pure code: `rank` has the
//! order in which a key prefers the backends, `fleet` and `health` say who of them is given a request, `retry`
//! whether it is sent once more. `forward` does it, `probe` asks the backends how they are.

mod answer;
mod fleet;
mod forward;
mod health;
mod hygiene;
mod key;
mod pool;
mod probe;
mod rank;
mod retry;
mod route;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use axum::routing::get;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::config::GatewayConfig;
use crate::dialect::Dialect;
use crate::http::{BODIES_BYTES_MAX, Held, json_response};
use crate::state_key::Secret;
use crate::telemetry;

use self::pool::Pool;

/// Most connections to one backend that are kept while nothing is asked on them.
const IDLE_CONNECTIONS_MAX: usize = 64;

/// For how long: less than the 75 s after which a docket closes one, so that none is closed while a
/// request is on its way.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// Most long bodies that are decompressed and parsed at one time.
const PARSERS_MAX: usize = 4;

/// Prometheus text format.
const PROMETHEUS: HeaderValue =
    HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

/// Renders all metrics of the process.
pub type Render = Arc<dyn Fn() -> String + Send + Sync>;

/// A gateway, shared by all requests.
pub struct Gateway {
    config: GatewayConfig,
    dialect: Dialect,
    secret: Secret,
    pool: Arc<Pool>,
    client: Client<HttpConnector, Full<Bytes>>,
    bodies: Held,
    parsers: Semaphore,
    requests: Arc<Semaphore>,
    retrying: Semaphore,
    is_draining: AtomicBool,
}

impl fmt::Debug for Gateway {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Gateway").field("config", &self.config).finish_non_exhaustive()
    }
}

impl Gateway {
    /// One that knows nothing of its backends yet: [`Self::probe`] asks them.
    ///
    /// * `config`: valid.
    pub fn new(config: GatewayConfig, dialect: Dialect, secret: Secret) -> Arc<Self> {
        telemetry::gateway_limits(config.requests.max, config.retries.at_once);
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(config.requests.connect_timeout));
        // Without it the second of two small writes waits for the backend's delayed acknowledgement.
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
            .build(connector);
        Arc::new(Self {
            dialect,
            secret,
            pool: Arc::new(Pool::new(&config)),
            client,
            bodies: Held::new(BODIES_BYTES_MAX),
            parsers: Semaphore::new(PARSERS_MAX),
            requests: Arc::new(Semaphore::new(config.requests.max as usize)),
            retrying: Semaphore::new(config.retries.at_once as usize),
            is_draining: AtomicBool::new(false),
            config,
        })
    }

    /// Says from now on that it is not ready; what comes all the same is answered.
    pub fn begin_drain(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    fn body_bytes_max(&self) -> usize {
        usize::try_from(self.config.requests.body_bytes_max).unwrap_or(usize::MAX)
    }

    /// Why nothing should be asked now, if so.
    fn unready(&self) -> Option<&'static str> {
        if self.is_draining.load(Ordering::Relaxed) {
            return Some("draining");
        }
        self.pool.taking().is_empty().then_some("no backend takes requests")
    }
}

/// The routes of clients.
///
/// * `metrics`: renders the metrics, where they are on the same address.
pub fn router(gateway: Arc<Gateway>, metrics: Option<Render>) -> Router {
    let own = Router::new().route("/health", get(health).fallback(forward::forward));
    let own = match metrics {
        Some(render) => {
            let shown = get(move || std::future::ready(shown(&render)));
            own.route("/metrics", shown.fallback(forward::forward))
        }
        None => own,
    };
    own.fallback(forward::forward).with_state(gateway)
}

/// The routes of operators, on an address of their own.
pub fn operators(gateway: Arc<Gateway>, metrics: Render) -> Router {
    let shown = get(move || std::future::ready(shown(&metrics)));
    Router::new().route("/health", get(health)).route("/metrics", shown).with_state(gateway)
}

fn shown(render: &Render) -> Response {
    let mut response = Response::new(telemetry::shown_by_gateway(&render()).into());
    response.headers_mut().insert(header::CONTENT_TYPE, PROMETHEUS);
    response
}

/// Alive, and, with `?ready=1`, ready: as a docket says it.
async fn health(State(gateway): State<Arc<Gateway>>, RawQuery(query): RawQuery) -> Response {
    let reason = gateway.unready();
    let (ready, all) = (gateway.pool.taking().len(), gateway.pool.len());
    let body = json!({
        "ok": true,
        "ready": reason.is_none(),
        "reason": reason,
        "backends": {"ready": ready, "all": all},
    });
    let mut asked = query.as_deref().unwrap_or_default().split('&');
    let is_asked = asked.any(|pair| pair == "ready=1" || pair == "ready=true");
    let is_well = reason.is_none() || !is_asked;
    let status = if is_well { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_response(status, body.to_string())
}
