//! What the HTTP layer asks of the rest: one trait, so that routes are tested without a model.
//!
//! `http` knows this trait, the dialects and nothing behind them; the binary gives it an
//! implementation over prompt, actors and readout, the tests one of a few lines.

use std::fmt;
use std::time::{Duration, Instant};

use actors::{Lane, TenantId};
use futures_util::future::BoxFuture;

use crate::error::DecideError;
use crate::json::Json;
use crate::question::Decision;
use crate::question::answer::{Answer, Cost};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// From the API key; `default` on a server without keys.
    pub tenant: TenantId,
    /// What the caller adds to its tenant's salt; never replaces it.
    pub salt: Option<String>,
}

/// When a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When its first byte was read; deadlines count from here.
    pub at: Instant,
}

/// A state to be read before its questions come.
#[derive(Debug, Clone, PartialEq)]
pub struct Prewarm {
    /// A string, or any JSON but null.
    pub state: Json,
    /// The lane asked for.
    pub lane: Option<Lane>,
    /// Longest time from the request's first byte to its answer, where the caller set one.
    pub timeout: Option<Duration>,
    /// How long the state stays pinned without a hit, where the caller set it; cut to the server's
    /// limit.
    pub ttl: Option<Duration>,
    /// Whether to answer only when the state is resident.
    pub wait: bool,
}

/// What a prewarm did.
#[derive(Debug, Clone, PartialEq)]
pub struct Prewarmed {
    /// The served model's name.
    pub model: String,
    /// Length of the prefix (head and state) in tokens.
    pub prompt_tokens: u64,
    /// Whether the prefix was resident already.
    pub reused: bool,
    /// Whether it has been made resident now.
    pub stored: bool,
    /// How it is kept: see [`actors::Tier`].
    pub tier: &'static str,
    /// When its pin ends without a hit, in seconds since 1970; `None` where it is not pinned.
    pub expires_at: Option<u64>,
    /// By what the pin is given up; `None` where there is nothing to give up.
    pub handle: Option<String>,
    /// What it cost and waited for.
    pub cost: Cost,
}

/// A decision's answers, with what became of it.
pub struct Decided {
    /// One answer a question, in the order of the questions.
    pub answers: Vec<Answer>,
    /// What it cost and waited for.
    pub cost: Cost,
    /// The served model's name.
    pub model: String,
    /// Called once the last byte of the response has been handed to the socket (that is when the
    /// registration of the state may begin); dropped uncalled where the client had gone.
    pub served: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Decided {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Decided")
            .field("answers", &self.answers)
            .field("cost", &self.cost)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// An entry of `GET /v1/models`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// A name under which the model is served.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// `YYYY-MM-DD`, or empty where it is not known.
    pub release_date: String,
}

/// How the server is.
#[derive(Debug, Clone, PartialEq)]
pub struct Health {
    /// Whether decisions are taken now.
    pub ready: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Why the engine is gone for good, where it is; the process should then be restarted.
    pub dead: Option<String>,
    /// Everything else, for operators; never a word of a request.
    pub details: serde_json::Value,
}

/// The decision server behind HTTP. A future that is dropped cancels its work.
pub trait Service: Send + Sync + 'static {
    /// Answers all questions of a decision.
    ///
    /// # Errors
    /// [`DecideError`] when it was refused, failed, or was not done in time.
    fn decide(
        &self,
        caller: Caller,
        decision: Decision,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Decided, DecideError>>;

    /// Makes a state's prefix resident.
    ///
    /// # Errors
    /// [`DecideError`] when it was refused, failed, or was not done in time.
    fn prewarm(
        &self,
        caller: Caller,
        request: Prewarm,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Prewarmed, DecideError>>;

    /// Gives up the pin of a prewarm of the same tenant; says whether there was one.
    ///
    /// # Errors
    /// [`DecideError`] while actors are started again.
    fn unpin(&self, caller: Caller, handle: String) -> BoxFuture<'_, Result<bool, DecideError>>;

    /// The names under which the model is served; at least one.
    fn models(&self) -> Vec<ModelEntry>;

    /// The first of them, which responses name.
    fn served_name(&self) -> &str;

    /// How the server is now; called often, so it must be cheap.
    fn health(&self) -> Health;

    /// All metrics in Prometheus text format.
    fn metrics(&self) -> String;
}
