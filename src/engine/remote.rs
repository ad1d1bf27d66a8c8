//! The remote engine: the model runs on other servers (vLLM, `SGLang`, llama.cpp's), which are asked
//! over HTTP.
//!
//! docket keeps what is its own (order, fairness, admission, prompts, readout) and takes label
//! log-probabilities from servers that already run on many devices. Prompts are token ids, one token is
//! asked for, and nothing is held here: a segment is a memory of what a server was made to compute
//! ([`RemoteSegment`]), and a state whose keys and values the server has dropped costs time, never a
//! different answer. Each state belongs to one server; reads of one state find it there. What was
//! certainly not executed is sent again, everything else ends with an error, and an outage of all
//! servers makes docket unready, never dead.

mod affinity;
mod check;
mod endpoint;
mod fleet;
mod hints;
mod keeper;
mod latency;
mod plan;
mod protocol;
mod reading;
mod segment;
mod slots;
mod standing;
mod step;
mod target;
mod wire;

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actors::{Caps, Completion, Engine, EngineError, Step};
use futures_util::FutureExt as _;
use hyper::header::HeaderValue;
use thiserror::Error;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::thread::panic_message;
pub use check::Expected;
use endpoint::Endpoint;
use fleet::{Fleet, Patience};
pub use protocol::Protocol;
pub use segment::RemoteSegment;
use step::Ground;
pub use target::Target;
use wire::{Wire, WireLimits};

/// Longest time to connect to a server.
const CONNECT_MAX: Duration = Duration::from_secs(2);

/// How servers are asked.
#[derive(Debug, Clone)]
pub struct RemoteOptions {
    /// Which server it is.
    pub protocol: Protocol,
    /// Where they are; at least one, all different.
    pub targets: Vec<Target>,
    /// The key that lets docket in, where they want one. Never shown.
    pub key: Option<HeaderValue>,
    /// How requests name the model; what each server calls it where absent.
    pub model: Option<String>,
    /// Certificates in PEM that are believed instead of the public ones.
    pub authorities: Option<PathBuf>,
    /// Requests to one server that may be under way.
    pub window: usize,
    /// Longest time of one request.
    pub timeout: Duration,
    /// How long what was not executed is tried again, and an outage waited out.
    pub retry_for: Duration,
    /// How long a start waits for a server.
    pub wait: Duration,
}

/// Why a remote engine does not start.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RemoteError {
    /// A file of the options cannot be used.
    #[error("--engine-ca {0}")]
    Authorities(String),
    /// No server answers.
    #[error("no server answered within {} s: {why}", .waited.as_secs())]
    Away {
        /// How long that was tried.
        waited: Duration,
        /// What each said last.
        why: String,
    },
    /// A server answers and is not what it should be.
    #[error("{server}: {why}")]
    Wrong {
        /// Its address.
        server: String,
        /// What is the matter, and what helps.
        why: String,
    },
}

/// How the servers stand.
#[derive(Clone)]
pub struct RemoteStatus(Arc<Fleet>);

/// One server, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerView {
    /// Its address.
    pub url: String,
    /// Why it is not asked, if so.
    pub down: Option<String>,
    /// For how long it has been so.
    pub since: Duration,
    /// States that it is believed to hold.
    pub states: usize,
    /// Its name of the model.
    pub model: Option<String>,
    /// Longest prompt.
    pub context_tokens: Option<u32>,
}

impl RemoteStatus {
    /// Why nothing can be read now, for everybody; `None` while a server can be asked.
    pub fn outage(&self) -> Option<String> {
        let (since, _) = self.0.outage()?;
        let (count, seconds) = (self.0.endpoints.len(), since.elapsed().as_secs_f64());
        Some(format!("none of {count} servers behind the engine has answered for {seconds:.1} s"))
    }

    /// All servers, in the order in which they were named.
    pub fn servers(&self) -> Vec<ServerView> {
        let view = |endpoint: &Arc<Endpoint>| {
            let (standing, introduction) = (endpoint.standing(), endpoint.introduction());
            ServerView {
                url: endpoint.name().to_owned(),
                down: standing.why,
                since: standing.since.elapsed(),
                states: endpoint.states_held(),
                model: introduction.model,
                context_tokens: introduction.context_tokens,
            }
        };
        self.0.endpoints.iter().map(view).collect()
    }
}

impl fmt::Debug for RemoteStatus {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("RemoteStatus").field(&self.servers()).finish()
    }
}

/// A model on other servers.
pub struct RemoteEngine {
    caps: Caps,
    ground: Arc<Ground>,
    runtime: Handle,
    /// Token positions for which the servers have memory, where they tell.
    kv_tokens: Option<u64>,
    /// The step under way; a plain lock, since it is held for a look-up.
    running: Mutex<Option<Running>>,
    /// What looks after the servers.
    keepers: Vec<AbortHandle>,
}

/// The step under way.
struct Running {
    step: u64,
    /// `[rows]`, each rings when nobody waits for its row.
    abandoned: Vec<Arc<Notify>>,
    task: AbortHandle,
}

impl RemoteEngine {
    /// Checks the servers, waiting for the first that answers, and looks after them from then on. To be
    /// called outside the runtime's own threads: it blocks.
    ///
    /// * `runtime`: what requests run on.
    ///
    /// # Errors
    /// [`RemoteError`]: none answers in time, or one that does is not what it should be.
    pub fn connect(
        options: RemoteOptions,
        expected: Expected,
        runtime: &Handle,
    ) -> Result<Self, RemoteError> {
        let wait = options.wait;
        let (vocab, kv_bytes_per_token) = (expected.vocab, expected.kv_bytes_per_token);
        let (name, window) = (options.protocol.name(), options.window);
        let fleet = Arc::new(fleet_of(options)?);
        runtime.block_on(keeper::first_checks(&fleet, &expected, wait))?;
        let known: Vec<_> =
            fleet.endpoints.iter().map(|endpoint| endpoint.introduction()).collect();
        let context = known.iter().filter_map(|server| server.context_tokens).min().unwrap_or(0);
        let context_tokens = expected.context_tokens.unwrap_or(context);
        let expected = Expected { context_tokens: Some(context_tokens), ..expected };
        let caps = Caps {
            name: name.to_owned(),
            context_tokens,
            // A step is as many requests as its rows; the scheduler keeps it to its own budget.
            step_tokens_max: u32::MAX,
            rows_max: u32::try_from(window * fleet.endpoints.len()).unwrap_or(u32::MAX),
            kv_bytes_per_token,
            keeps_segments: true,
            sees_images: false,
        };
        crate::telemetry::remote_calls_max(window * fleet.endpoints.len());
        let told: Vec<u64> = known.iter().filter_map(|server| server.kv_tokens).collect();
        let kv_tokens = kv_tokens(&told, known.len());
        let expected = Arc::new(expected);
        let keep = |index| keeper::keep(Arc::clone(&fleet), index, Arc::clone(&expected));
        let keepers = (0..fleet.endpoints.len()).map(|index| runtime.spawn(keep(index)));
        let keepers = keepers.map(|task| task.abort_handle()).collect();
        let latency = Mutex::default();
        let ground = Ground { fleet, context_tokens, vocab, kv_bytes_per_token, latency };
        let ground = Arc::new(ground);
        let (runtime, running) = (runtime.clone(), Mutex::default());
        Ok(Self { caps, ground, runtime, kv_tokens, running, keepers })
    }

    /// Bytes of keys and values for which the servers have memory, where they tell.
    pub fn kv_bytes(&self) -> Option<u64> {
        self.kv_tokens.map(|tokens| tokens.saturating_mul(self.caps.kv_bytes_per_token))
    }

    /// How the servers stand; follows them as long as it is held.
    pub fn status(&self) -> RemoteStatus {
        RemoteStatus(Arc::clone(&self.ground.fleet))
    }

    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The servers of the options, none of them asked yet.
fn fleet_of(options: RemoteOptions) -> Result<Fleet, RemoteError> {
    let RemoteOptions {
        protocol,
        targets,
        key,
        model,
        authorities,
        window,
        timeout,
        retry_for,
        ..
    } = options;
    let needs_tls = authorities.is_some() || targets.iter().any(|target| target.tls.is_some());
    let tls = needs_tls.then(|| wire::connector(authorities.as_deref())).transpose();
    let tls = tls.map_err(RemoteError::Authorities)?;
    let limits = WireLimits { connect: CONNECT_MAX.min(timeout), request: timeout };
    let endpoint = |target| {
        let wire = Wire::new(target, tls.clone(), key.clone(), limits);
        Arc::new(Endpoint::new(wire, protocol, window))
    };
    let endpoints = targets.into_iter().map(endpoint).collect();
    Ok(Fleet::new(protocol, endpoints, model, Patience { retry_for }))
}

/// Positions of all servers, where some tell theirs: the others are taken to have as many.
fn kv_tokens(told: &[u64], servers: usize) -> Option<u64> {
    let sum: u64 = told.iter().sum();
    (!told.is_empty()).then(|| sum.saturating_mul(servers as u64) / told.len() as u64)
}

impl Engine for RemoteEngine {
    type Segment = RemoteSegment;

    fn caps(&self) -> Caps {
        self.caps.clone()
    }

    fn submit(&self, step: Step<RemoteSegment>, done: Completion<RemoteSegment>) {
        let number = step.id;
        let abandoned: Vec<_> = step.rows.iter().map(|_| Arc::<Notify>::default()).collect();
        let (ground, rings) = (Arc::clone(&self.ground), abandoned.clone());
        let task = self.runtime.spawn(async move {
            let outcome = AssertUnwindSafe(step::run(&ground, &step, &rings)).catch_unwind().await;
            done.finish(outcome.unwrap_or_else(|panic| {
                crate::telemetry::engine_panicked();
                Err(EngineError::Panic(panic_message(&*panic)))
            }));
        });
        let running = Running { step: number, abandoned, task: task.abort_handle() };
        if let Some(last) = self.running().replace(running) {
            // It has ended, or whoever waited for it was replaced.
            last.task.abort();
        }
    }

    fn abandon(&self, step: u64, row: usize) {
        let running = self.running();
        let running = running.as_ref().filter(|running| running.step == step);
        if let Some(abandoned) = running.and_then(|running| running.abandoned.get(row)) {
            abandoned.notify_one();
        }
    }
}

impl Drop for RemoteEngine {
    fn drop(&mut self) {
        if let Some(running) = self.running().take() {
            running.task.abort();
        }
        for keeper in &self.keepers {
            keeper.abort();
        }
    }
}

impl fmt::Debug for RemoteEngine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RemoteEngine").field("caps", &self.caps).finish_non_exhaustive()
    }
}
