//! Wiring: weights, engine, actors, router, and the order in which all of it stops.

mod model;
pub mod serving;
pub mod signal;
mod unreadable;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::config::{Config, SamplesDefault};
use crate::decide::{Decider, Limits};
use crate::dialect::{Dialect, RequestLimits};
use crate::files::FilesError;
use crate::http::serve::ServeConfig;
use crate::http::{ApiKeyError, AuthConfig, HttpConfig};
use crate::models::PullError;
use crate::prompt::PromptError;
use crate::service::Service;
use model::{Loaded, Opened};
use serving::Serving;
use unreadable::Unreadable;

/// Target of the line that says where the server listens. People and scripts wait for it, so the
/// binary writes it whatever the log level.
pub const LISTENING: &str = "docket::listening";

/// How often old values of the metrics are folded together.
const METRICS_UPKEEP: Duration = Duration::from_secs(5);

/// After the drain: longest time for the last responses to be handed out.
const LAST_RESPONSES: Duration = Duration::from_secs(2);

/// What the actors may take beyond the drain timeout to report.
const DRAIN_SLACK: Duration = Duration::from_millis(500);

/// Buckets of the metrics in seconds: fine where a decision spends its time.
const SECONDS_BUCKETS: [f64; 20] = [
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 7.5,
    10.0, 20.0, 40.0, 80.0,
];

/// Buckets of the metrics that count tokens and rows of a step.
const COUNT_BUCKETS: [f64; 11] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0];

/// Why the server does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The model is not there, cannot be pulled, or is damaged.
    #[error(transparent)]
    Model(#[from] PullError),
    /// The model's files cannot be used.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The engine cannot hold the model.
    #[error("the model does not load: {0}")]
    Engine(String),
    /// No prompts can be made for the model.
    #[error(transparent)]
    Prompt(#[from] PromptError),
    /// A setting that only the model could refuse.
    #[error("{flag}: {message}")]
    Setting {
        /// The flag.
        flag: &'static str,
        /// Value and limit.
        message: String,
    },
    /// The actors do not start.
    #[error(transparent)]
    Actors(#[from] actors::StartError),
    /// A key cannot be used.
    #[error("--api-key: {0}")]
    ApiKey(#[from] ApiKeyError),
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Host and port.
        address: String,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The system gave no thread, signal or random numbers.
    #[error("the system refuses: {0}")]
    System(String),
}

/// Serves the model, pulling it first if it is absent, until `shutdown` is done, then finishes what
/// was admitted. A shutdown before the model is loaded ends it at once.
///
/// # Errors
/// [`StartError`]; nothing is left running then.
pub async fn serve(config: &Config, shutdown: impl Future<Output = ()>) -> Result<(), StartError> {
    let metrics = recorder()?;
    model::check(config)?;
    let address = (config.http.host.as_str(), config.http.port);
    let listen = |source| StartError::Listen {
        address: format!("{}:{}", config.http.host, config.http.port),
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let local = listener.local_addr().map_err(listen)?;
    let listening = || tracing::info!(target: LISTENING, "listening on http://{local}");
    let mut shutdown = pin!(shutdown);
    let opened = tokio::select! {
        biased;
        () = &mut shutdown => {
            tracing::info!("stopped before the model was loaded");
            return Ok(());
        }
        opened = load(config) => opened?,
    };
    match opened {
        Opened::Readable(loaded) => {
            let serving = Arc::new(assemble(config, *loaded, metrics).await?);
            let service = Arc::clone(&serving) as Arc<dyn Service>;
            let router = crate::http::router(service, http(config)?);
            listening();
            let stop = async {
                shutdown.await;
                drain(config, &serving).await;
            };
            answer_until(config, listener, router, stop).await;
        }
        Opened::Unreadable { facts, why } => {
            tokio::spawn(upkeep(metrics.clone()));
            let service = Arc::new(Unreadable::new(facts, why, metrics));
            let router = crate::http::router(service, http(config)?);
            listening();
            answer_until(config, listener, router, shutdown).await;
        }
    }
    Ok(())
}

/// Takes no new decision while admitted ones end, within the drain timeout; what is still open then
/// is refused. Until this is over clients and probes get answers, not a closed port.
async fn drain(config: &Config, serving: &Serving) {
    tracing::info!("stopping: no new decisions, finishing what was admitted");
    let drain = serving.decider().actors().drain();
    let limit = config.http.drain_timeout + DRAIN_SLACK;
    if let Ok(report) = tokio::time::timeout(limit, drain).await {
        tracing::info!(
            "drained in {:.1?}: {} reads answered, {} refused",
            report.elapsed,
            report.finished,
            report.failed
        );
    } else {
        tracing::warn!("the time to finish is over, and a step still runs");
    }
    serving.decider().close();
}

/// Runs the server loop until `stop` is done, then closes the connections.
async fn answer_until(
    config: &Config,
    listener: TcpListener,
    router: axum::Router,
    stop: impl Future<Output = ()>,
) {
    let limits = ServeConfig {
        connections_max: config.http.connections_max as usize,
        grace: LAST_RESPONSES,
        ..ServeConfig::default()
    };
    let cut = crate::http::serve::serve(listener, router, limits, stop).await;
    if cut > 0 {
        tracing::warn!("{cut} connections were cut, their requests had not ended in time");
    }
    tracing::info!("stopped");
}

/// Loads on a thread of its own, which nobody waits for when a signal comes meanwhile.
async fn load(config: &Config) -> Result<Opened, StartError> {
    let (done, opened) = oneshot::channel();
    let config = config.clone();
    let work = move || {
        // The receiver is gone only when the process is ending.
        let _ = done.send(model::load(&config));
    };
    let thread = std::thread::Builder::new().name("load".to_owned()).spawn(work);
    thread.map_err(|error| StartError::System(error.to_string()))?;
    let lost = |_| StartError::Engine("the loading thread panicked".to_owned());
    opened.await.map_err(lost)?
}

/// Starts the actors over the engine and joins everything that a decision needs.
async fn assemble(
    config: &Config,
    loaded: Loaded,
    metrics: PrometheusHandle,
) -> Result<Serving, StartError> {
    let Loaded { engine, prompter, facts, context_tokens } = loaded;
    let actors = model::actor_config(config, engine.kv_bytes());
    let handle = engine.start(actors).await?;
    let limits = Limits {
        timeout: config.decision.timeout,
        timeout_max: config.decision.timeout_max,
        samples: match config.decision.samples {
            SamplesDefault::Profile => None,
            SamplesDefault::Count(count) => Some(count),
        },
        samples_max: config.decision.samples_max,
        context_tokens,
        suffix_tokens: config.scheduler.step_tokens,
    };
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|error| StartError::System(error.to_string()))?;
    let decider = Decider::new(Arc::new(prompter), handle, limits);
    tokio::spawn(upkeep(metrics.clone()));
    Ok(Serving::new(decider, facts, metrics, secret))
}

fn http(config: &Config) -> Result<HttpConfig, StartError> {
    let keys: Vec<String> = config
        .http
        .api_keys
        .iter()
        .map(|key| format!("{}={}", key.tenant, key.secret.reveal()))
        .collect();
    Ok(HttpConfig {
        dialect: Dialect::Systemone,
        auth: AuthConfig::from_texts(&keys)?,
        limits: RequestLimits {
            questions_max: config.decision.questions_max as usize,
            timeout_max: config.decision.timeout_max,
        },
        body_bytes_max: usize::try_from(config.http.body_limit_bytes).unwrap_or(usize::MAX),
        ..HttpConfig::default()
    })
}

/// Installs the metrics recorder, with buckets for all histograms.
fn recorder() -> Result<PrometheusHandle, StartError> {
    let refused = |error: metrics_exporter_prometheus::BuildError| {
        StartError::System(format!("metrics recorder: {error}"))
    };
    let full = |name: &str| Matcher::Full(name.to_owned());
    let handle = PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), &SECONDS_BUCKETS)
        .and_then(|b| b.set_buckets_for_metric(full("docket_step_tokens"), &COUNT_BUCKETS))
        .and_then(|b| b.set_buckets_for_metric(full("docket_step_rows"), &COUNT_BUCKETS))
        .map_err(refused)?
        .install_recorder()
        .map_err(refused)?;
    crate::telemetry::describe();
    Ok(handle)
}

/// Keeps the histograms from growing while nobody scrapes.
async fn upkeep(metrics: PrometheusHandle) {
    let mut tick = tokio::time::interval(METRICS_UPKEEP);
    loop {
        tick.tick().await;
        metrics.run_upkeep();
    }
}
