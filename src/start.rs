//! Wiring: weights, engine, actors, router, and the order in which all of it stops.

mod aliases;
mod certificates;
mod desk;
mod details;
mod keys;
mod metrics;
mod model;
mod open_files;
pub mod panics;
mod reread;
pub mod serving;
mod shared;
pub mod signal;
mod traces;
mod unreadable;
mod usage;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::config::{Config, DialectChoice, Fault, KeysFrom, SamplesDefault};
use crate::decide::{Decider, Limits};
use crate::dialect::{Dialect, RequestLimits};
use crate::files::FilesError;
use crate::http::serve::{Http2Config, ServeConfig, Tls};
use crate::http::{AuthConfig, HttpConfig, ImageFetching};
use crate::models::PullError;
use crate::prompt::PromptError;
use crate::service::{EXIT_CODE_DEAD, Service};
use crate::store::Follower;
use crate::tasks::desk::Desk;
use crate::tenants::Keyring;
use crate::traces::Traces;
use crate::usage::Meter;
use certificates::Certificates;
use keys::{Keys, OnChange, StoredKeys};
use model::{Loaded, Opened};
use serving::Serving;
use shared::Shared;
use unreadable::Unreadable;

/// Target of the line that says where the server listens. People and scripts wait for it, so the
/// binary writes it whatever the log level.
pub const LISTENING: &str = "docket::listening";

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
    if is_sound || config.http.keys.is_some() {
        faults.extend(Keys::check(&config.http));
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
    let (metrics, config) = (metrics::recorder()?, &open_files::fitted(config));
    model::check(config)?;
    let shared = Shared::open(&config.store).await?;
    let keys = Keys::load(&config.http, shared.as_ref().and_then(Shared::keys))?;
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
            tokio::spawn(metrics::upkeep(metrics.clone(), Arc::clone(&meter)));
            let (serving, desk) = assemble(config, *loaded, metrics, shared.as_ref()).await?;
            serving.decider().actors().account_to(Arc::clone(&meter) as _);
            let limited = Arc::clone(&serving);
            let limit = move |ring: &Keyring| limited.decider().actors().limit(keys::limits(ring));
            follow(config, (keys.as_ref(), Arc::new(limit)), (shared, Some(desk)))?;
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
            tokio::spawn(metrics::upkeep(metrics.clone(), Arc::clone(&meter)));
            let service = Arc::new(Unreadable::new(*facts, why, metrics));
            follow(config, (keys.as_ref(), Arc::new(|_: &Keyring| ())), (shared, None))?;
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

/// Has the keys of now in force and those that come, and tells the desk what other servers change.
fn follow(
    config: &Config,
    (keys, changed): (Option<&Keys>, OnChange),
    (shared, desk): (Option<Shared>, Option<Arc<Desk>>),
) -> Result<(), StartError> {
    if let Some(keys) = keys {
        changed(&keys.ring());
    }
    Keys::watch(keys.cloned(), Arc::clone(&changed))?;
    let Some(shared) = shared else { return Ok(()) };
    let mut told: Vec<Arc<dyn Follower>> = Vec::new();
    told.extend(desk.map(|desk| desk as Arc<dyn Follower>));
    if config.http.keys == Some(KeysFrom::Store) {
        let stored = keys.map(|keys| StoredKeys::new(keys.clone(), changed));
        told.extend(stored.map(|stored| Arc::new(stored) as Arc<dyn Follower>));
    }
    shared.follow(told);
    Ok(())
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
    shared: Option<&Shared>,
) -> Result<(Arc<Serving>, Arc<Desk>), StartError> {
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
    let mut secret = [0_u8; 32];
    getrandom::fill(&mut secret).map_err(|error| StartError::System(error.to_string()))?;
    let desk = Arc::new(desk::open(config, &prompters, &facts, shared)?);
    let settings = desk::settings(config, &prompters, &facts, context_tokens);
    let decider = Decider::new(prompters, handle, limits);
    let stall_after = config.http.stall_after;
    let own = (Arc::clone(&desk), settings);
    let serving = Serving::new(decider, own, (facts, metrics), secret, stall_after);
    Ok((Arc::new(serving), desk))
}

fn http(
    config: &Config,
    keys: Option<&Keys>,
    usage: &Arc<Meter>,
    traces: Option<&Traces>,
) -> HttpConfig {
    HttpConfig {
        dialect: match config.decision.dialect {
            DialectChoice::SystemOne => Dialect::Systemone,
            DialectChoice::Decisio => Dialect::Decisio,
            DialectChoice::SelfServe => Dialect::SelfServe,
            DialectChoice::Vllm => Dialect::Vllm,
            DialectChoice::Gmlx => Dialect::Gmlx,
            DialectChoice::Openai => Dialect::Openai,
        },
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
