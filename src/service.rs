//! What the HTTP layer asks of the rest: one trait, so that routes are tested without a model.
//!
//! `http` knows this trait, the dialects and nothing behind them; the binary gives it an
//! implementation over prompt, actors and readout, the tests one of a few lines.

pub mod images;

use std::fmt;
use std::time::{Duration, Instant};

use actors::{Lane, TenantId, Tier};
use futures_util::future::BoxFuture;

pub use crate::decide::Estimate;
use crate::error::DecideError;
use crate::json::Json;
use crate::question::answer::{Answer, Cost};
use crate::question::{Decision, Manner};
use crate::tasks::order::{AbstentionOrder, TaskOrder};

use images::{Image, ImageLimits};

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

/// States to be read before their questions come.
#[derive(Debug, Clone, PartialEq)]
pub struct Prewarm {
    /// Which.
    pub states: States,
    /// The lane asked for.
    pub lane: Option<Lane>,
    /// Longest time from the request's first byte to its answer, where the caller set one.
    pub timeout: Option<Duration>,
    /// How long each state stays pinned without a hit, where the caller set it; cut to the server's
    /// limit.
    pub ttl: Option<Duration>,
    /// Whether to answer only when they are resident.
    pub wait: bool,
    /// By which of the server's settings they are shown.
    pub manner: Manner,
    /// The settings to show them by, where the request names some of the operator's.
    pub profile: Option<String>,
    /// What the prompts say ahead of the states, where the request says something.
    pub context: Option<String>,
    /// What the request gives the model's chat template beside the turns.
    pub template: Vec<(String, Json)>,
}

/// One state or a list of them; each a string, or any JSON but null.
#[derive(Debug, Clone, PartialEq)]
pub enum States {
    /// One: what fails it fails the request.
    One(Json),
    /// Several, at least one: each has an answer of its own.
    Many(Vec<Json>),
}

/// What a prewarm did.
#[derive(Debug, Clone, PartialEq)]
pub struct Prewarmed {
    /// The served model's name.
    pub model: String,
    /// What was read.
    pub prefixes: Prefixes,
    /// What it cost and waited for, all states together.
    pub cost: Cost,
}

/// What became of the states, as they were given.
#[derive(Debug, Clone, PartialEq)]
pub enum Prefixes {
    /// Of the one.
    One(Warmed),
    /// Of each, in order.
    Many(Vec<Result<Warmed, DecideError>>),
}

/// How the prefix of a state is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct Warmed {
    /// Length of the prefix (head and state) in tokens.
    pub prompt_tokens: u64,
    /// Whether the prefix was resident already.
    pub reused: bool,
    /// Whether it has been made resident now.
    pub stored: bool,
    /// How it is kept.
    pub tier: Tier,
    /// When its pin ends without a hit, in seconds since 1970; `None` where it is not pinned.
    pub expires_at: Option<u64>,
    /// By what the pin is given up; `None` where there is nothing to give up.
    pub handle: Option<String>,
}

impl Warmed {
    /// Whether the prefix is resident, or will be.
    pub fn is_ok(&self) -> bool {
        self.reused || self.stored || self.tier == Tier::Pending
    }
}

/// A decision's answers, with what became of it.
pub struct Decided {
    /// One answer a question, in the order of the questions.
    pub answers: Vec<Answer>,
    /// What it cost and waited for.
    pub cost: Cost,
    /// Ids of the registered tasks that match its questions, sorted; applied or not.
    pub tasks: Vec<String>,
    /// The served model's name.
    pub model: String,
    /// Ids of the questions that were read, stage after stage; a stage of which none was is left out.
    pub stages: Vec<Vec<String>>,
    /// Whether the state was resident when it came.
    pub reused: bool,
    /// How the state is kept from now on, as long as no room is needed for others.
    pub tier: Tier,
    /// The state's text as the model read it, where something was found in it.
    pub state_text: Option<String>,
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
            .field("tasks", &self.tasks)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// An entry of `GET /v1/models`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelEntry {
    /// A name under which the model is served.
    pub name: String,
    /// What it is, in a line.
    pub description: String,
    /// `YYYY-MM-DD`, or empty where it is not known.
    pub release_date: String,
    /// In which its weights are held, where it has any.
    pub precision: Option<String>,
    /// Longest prompt in tokens, where it is known.
    pub context_tokens: Option<u64>,
    /// Whether questions can be read from it.
    pub is_readable: bool,
}

/// The process ends with this code when the engine is gone for good.
pub const EXIT_CODE_DEAD: u8 = 70;

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

    /// What a decision would cost and wait for now; nothing is queued.
    ///
    /// # Errors
    /// [`DecideError`] of a decision that would be refused whatever else there is to do.
    fn estimate(
        &self,
        caller: Caller,
        decision: Decision,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Estimate, DecideError>>;

    /// What of images the served model sees; `None` where it reads text only, as all do today
    /// (`actors::Caps::sees_images`). Then no
    /// image of a request is fetched, and every request with one is refused.
    fn images(&self) -> Option<ImageLimits> {
        None
    }

    /// Answers all questions of a decision about images, at least one, beside its state; called only
    /// where [`Service::images`] says that there can be.
    ///
    /// # Errors
    /// As [`Service::decide`].
    fn decide_seeing(
        &self,
        _: Caller,
        _: Decision,
        images: Vec<Image>,
        _: Arrival,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        let count = images.len();
        let message = format!("the served model reads text only, and there are {count} images");
        Box::pin(async move { Err(DecideError::Unsupported(message)) })
    }

    /// Makes the prefixes of states resident.
    ///
    /// # Errors
    /// [`DecideError`] when it was refused, failed, or was not done in time; of several states, when
    /// that is so of all.
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

    /// Why the engine is gone for good, if it is; asked with every request.
    fn dead(&self) -> Option<String> {
        self.health().dead
    }

    /// All metrics in Prometheus text format.
    fn metrics(&self) -> String;

    /// Learning from labelled examples, where the server can.
    fn teaching(&self) -> Option<&dyn Teaching> {
        None
    }
}

/// Which kind of task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaskKind {
    /// One that corrects answers.
    Correction,
    /// One that says when a question counts as unanswered.
    Abstention,
}

/// A task to be registered.
#[derive(Debug, Clone)]
pub enum Order {
    /// One that corrects answers.
    Correction(TaskOrder),
    /// One that says when a question counts as unanswered.
    Abstention(AbstentionOrder),
}

/// What came of an order.
#[derive(Debug, Clone, PartialEq)]
pub enum Registered {
    /// The task's record.
    Record(serde_json::Value),
    /// The order is worked on; how far it is.
    Accepted(serde_json::Value),
}

/// Learning from labelled examples, behind HTTP.
pub trait Teaching: Send + Sync {
    /// Registers a task; in the background where that is asked for.
    ///
    /// # Errors
    /// [`DecideError`] of an example, of the fit, or where there is no room.
    fn register(
        &self,
        caller: Caller,
        order: Order,
        in_background: bool,
    ) -> BoxFuture<'_, Result<Registered, DecideError>>;

    /// A caller's tasks, in decisio's shape of the list; `full` with the arrays of heads.
    fn tasks(&self, caller: &Caller, kind: TaskKind, full: bool) -> serde_json::Value;

    /// How far the registration of this kind and name is; `None` where there is none.
    fn registration(&self, caller: &Caller, kind: TaskKind, id: &str) -> Option<serde_json::Value>;

    /// Removes a task; says whether there was one.
    ///
    /// # Errors
    /// [`DecideError::Internal`] where it cannot be removed from disk.
    fn unregister(&self, caller: &Caller, kind: TaskKind, id: &str) -> Result<bool, DecideError>;

    /// Takes in records that were fitted before: all or none.
    ///
    /// # Errors
    /// [`DecideError::Invalid`] with what is wrong with the first that is refused.
    fn import(
        &self,
        caller: &Caller,
        kind: TaskKind,
        records: Vec<serde_json::Value>,
    ) -> Result<Vec<String>, DecideError>;

    /// What is served and how, in decisio's words: the body of its `/health` without the state of the
    /// server; cheap.
    fn settings(&self, caller: Option<&Caller>) -> serde_json::Value;
}
