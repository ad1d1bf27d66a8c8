//! Wiring: weights, engine, actors, router, and the order in which all of it stops.

mod aliases;
mod certificates;
mod desk;
mod details;
pub mod gateway;
mod keys;
mod model;
mod open_files;
pub mod panics;
mod reread;
mod secret;
pub mod serving;
pub mod signal;
mod traces;
mod unreadable;
mod usage;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::config::{Config, Fault, SamplesDefault};
use crate::decide::{Decider, Limits};
use crate::dialect::RequestLimits;
use crate::files::FilesError;
use crate::http::serve::{Http2Config, ServeConfig, Tls};
use crate::http::{AuthConfig, HttpConfig, ImageFetching};
use crate::models::PullError;
use crate::prompt::PromptError;
use crate::service::{EXIT_CODE_DEAD, Service};
use crate::state_key::Secret;
use crate::tenants::Keyring;
use crate::traces::Traces;
use crate::usage::Meter;
use certificates::Certificates;
use keys::Keys;
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

/// After the engine's death: how long the server still says why, to callers and probes, unless the
/// drain timeout is shorter.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What the actors may take beyond the drain timeout to report.
const DRAIN_SLACK: Duration = Duration::from_millis(500);

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

/// Why a server that had started ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// It was told to.
    Stopped,
    /// Its engine is gone for good.
    Dead,
}

/// Finds, without pulling or loading anything, what a start would refuse: settings that parts of the
/// server refuse, and the key file.
///
/// * `is_sound`: whether no fault is known yet. Otherwise a part would tell known ones in its own
///   words, and without keys it would be said that everybody is let in, though one may be the fault.
pub fn check(config: &Config, is_sound: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    if is_sound && let Err(error) = model::check(config) {
        faults.push(if let StartError::Setting { flag, message } = error {
            Fault { flag, message }
        } else {
            Fault { flag: "the server", message: error.to_string() }
        });
    }
    let secret = secret::load(config.http.state_key_secret.as_deref());
    if let Err(StartError::Setting { flag, message }) = secret {
        faults.push(Fault { flag, message });
    }
    if is_sound || config.http.keys.is_some() {
        faults.extend(Keys::read(&config.http).err().unwrap_or_default());
    }
    faults
}

/// Serves the model, pulling it first if it is absent, until `shutdown` is done or the engine is gone
/// for good, then finishes what was admitted. A shutdown before the model is loaded ends it at once.
///
/// * `shown`: the settings in effect, for `/health`.
///
/// # Errors
/// [`StartError`]; nothing is left running then.
pub async fn serve(
    config: &Config,
    shown: Value,
    shutdown: impl Future<Output = ()>,
) -> Result<Ended, StartError> {
    let (metrics, config) = (recorder()?, &open_files::fitted(config));
    model::check(config)?;
    let (keys, secret) =
        (Keys::load(&config.http)?, secret::load(config.http.state_key_secret.as_deref())?);
    let meter = usage::open(config)?;
    let traces = traces::start(&config.traces)?;
    let certificates = Certificates::load(config.http.wire.tls.as_ref()).await?;
    let tls = certificates.map(Certificates::watched).transpose()?;
    let address = (config.http.host.as_str(), config.http.port);
    let listen = |source| StartError::Listen {
        address: format!("{}:{}", config.http.host, config.http.port),
        source,
    };
    let listener = TcpListener::bind(address).await.map_err(listen)?;
    let local = listener.local_addr().map_err(listen)?;
    let scheme = if tls.is_some() { "https" } else { "http" };
    let listening = || tracing::info!(target: LISTENING, "listening on {scheme}://{local}");
    let mut shutdown = pin!(shutdown);
    let opened = tokio::select! {
        biased;
        () = &mut shutdown => {
            tracing::info!("stopped before the model was loaded");
            return Ok(Ended::Stopped);
        }
        opened = load(config) => opened?,
    };
    let mut ended = Ended::Stopped;
    match opened {
        Opened::Readable(mut loaded) => {
            loaded.facts.settings = shown;
            tokio::spawn(upkeep(metrics.clone(), Arc::clone(&meter)));
            let serving = Arc::new(assemble(config, *loaded, metrics, secret).await?);
            serving.decider().actors().account_to(Arc::clone(&meter) as _);
            let limited = Arc::clone(&serving);
            let limit = move |ring: &Keyring| limited.decider().actors().limit(keys::limits(ring));
            if let Some(keys) = &keys {
                limit(&keys.ring());
            }
            Keys::watch(keys.clone(), limit)?;
            let service = Arc::clone(&serving) as Arc<dyn Service>;
            let router =
                crate::http::router(service, http(config, keys.as_ref(), &meter, traces.as_ref()));
            listening();
            let stop = async {
                ended = end(config, &serving, shutdown).await;
                drain(config, &serving).await;
                if serving.decider().actors().death().is_some() {
                    ended = Ended::Dead;
                }
            };
            answer_until(config, (listener, tls), router, stop).await;
        }
        Opened::Unreadable { mut facts, why } => {
            facts.settings = shown;
            tokio::spawn(upkeep(metrics.clone(), Arc::clone(&meter)));
            let service = Arc::new(Unreadable::new(*facts, why, metrics));
            Keys::watch(keys.clone(), |_| ())?;
            let router =
                crate::http::router(service, http(config, keys.as_ref(), &meter, traces.as_ref()));
            listening();
            answer_until(config, (listener, tls), router, shutdown).await;
        }
    }
    usage::close(&meter);
    traces.iter().for_each(Traces::stop);
    if ended == Ended::Dead {
        tracing::error!(exit_code = EXIT_CODE_DEAD, "ended, since the engine is dead");
    }
    Ok(ended)
}

/// Waits for the shutdown, or for the engine's death; that is told for a while.
async fn end(
    config: &Config,
    serving: &Serving,
    mut shutdown: impl Future<Output = ()> + Unpin,
) -> Ended {
    tokio::select! {
        biased;
        () = &mut shutdown => return Ended::Stopped,
        _ = serving.decider().actors().died() => {}
    }
    let told = tokio::time::sleep(LAST_WORDS.min(config.http.drain_timeout));
    tokio::select! {
        () = shutdown => {}
        () = told => {}
    }
    Ended::Dead
}

/// Takes no new decision while admitted ones end, within the drain timeout; what is still open then
/// is refused. Until this is over clients and probes get answers, not a closed port.
async fn drain(config: &Config, serving: &Serving) {
    tracing::info!("stopping: no new decisions, finishing what was admitted");
    let drain = serving.decider().actors().drain();
    let limit = config.http.drain_timeout + DRAIN_SLACK;
    if let Ok(report) = tokio::time::timeout(limit, drain).await {
        tracing::info!(
            "drained in {:.1} s: {} reads answered, {} refused",
            report.elapsed.as_secs_f64(),
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
    (listener, tls): (TcpListener, Option<Arc<Tls>>),
    router: axum::Router,
    stop: impl Future<Output = ()>,
) {
    let (all, wire) = (config.http.connections_max, &config.http.wire);
    let limits = ServeConfig {
        connections_max: all as usize,
        connections_per_address: wire.per_address(all) as usize,
        grace: LAST_RESPONSES,
        http2: Http2Config { streams_max: wire.http2_streams_max, ..Http2Config::default() },
        ..ServeConfig::default()
    };
    crate::telemetry::connections_max(limits.connections_max);
    let cut = crate::http::serve::serve(listener, router, limits, tls, stop).await;
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
    secret: Secret,
) -> Result<Serving, StartError> {
    let Loaded { engine, prompters, facts, context_tokens } = loaded;
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
    let desk = desk::open(config, &prompters, &facts)?;
    let settings = desk::settings(config, &prompters, &facts, context_tokens);
    let decider = Decider::new(prompters, handle, limits);
    let stall_after = config.http.stall_after;
    Ok(Serving::new(decider, (desk, settings), (facts, metrics), secret, stall_after))
}

fn http(
    config: &Config,
    keys: Option<&Keys>,
    usage: &Arc<Meter>,
    traces: Option<&Traces>,
) -> HttpConfig {
    HttpConfig {
        dialect: config.decision.dialect.into(),
        debug_readout: config.letters.debug_readout,
        auth: match keys {
            Some(keys) => keys.auth(),
            None if config.http.insecure_open => AuthConfig::default(),
            None => AuthConfig::local(),
        },
        limits: RequestLimits {
            questions_max: config.decision.questions_max as usize,
            timeout_max: config.decision.timeout_max,
            ..RequestLimits::default()
        },
        usage: Arc::clone(usage),
        traces: traces.cloned(),
        open_metrics: config.http.open_metrics,
        access_log: config.traces.access_log,
        is_tls: config.http.wire.tls.is_some(),
        queue_full_status: config.http.queue_full_status,
        images: ImageFetching {
            allow_http: config.images.allow_http,
            allow_private: config.images.allow_private,
            timeout: config.images.fetch_timeout,
        },
        body_bytes_max: usize::try_from(config.http.body_limit_bytes).unwrap_or(usize::MAX),
        ..HttpConfig::default()
    }
}

/// Installs the metrics recorder, with buckets for all histograms.
fn recorder() -> Result<PrometheusHandle, StartError> {
    let handle = recorder_with(crate::telemetry::buckets())?;
    crate::telemetry::describe();
    Ok(handle)
}

fn recorder_with(
    buckets: impl Iterator<Item = (&'static str, &'static [f64])>,
) -> Result<PrometheusHandle, StartError> {
    let refused = |error: metrics_exporter_prometheus::BuildError| {
        StartError::System(format!("metrics recorder: {error}"))
    };
    let mut builder = PrometheusBuilder::new();
    for (name, bounds) in buckets {
        let named = Matcher::Full(name.to_owned());
        builder = builder.set_buckets_for_metric(named, bounds).map_err(refused)?;
    }
    builder.install_recorder().map_err(refused)
}

/// Keeps the histograms from growing while nobody scrapes, and shows what nobody else does.
async fn upkeep(metrics: PrometheusHandle, meter: Arc<Meter>) {
    let mut tick = tokio::time::interval(METRICS_UPKEEP);
    loop {
        tick.tick().await;
        metrics.run_upkeep();
        usage::show(&meter);
    }
}
