//! What the HTTP layer asks of the rest: one trait, so that routes are tested without a model.
//!
//! `http` knows this trait, the dialects and nothing behind them; the binary gives it an
//! implementation over prompt, actors and readout, the tests one of a few lines.

pub mod images;
mod prewarm;
mod served;

use std::time::Instant;

use actors::{Bucket, TenantId};
use futures_util::future::BoxFuture;

pub use self::prewarm::{Prefixes, Prewarm, Prewarmed, States, Warmed};
pub use self::served::{Decided, Health, ModelEntry};
pub use crate::decide::Estimate;
use crate::error::DecideError;
use crate::question::Decision;
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

/// The process ends with this code when the engine is gone for good.
pub const EXIT_CODE_DEAD: u8 = 70;

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

    /// What is left of a tenant's tokens a minute, with its sub-tenants; `None` where it has no
    /// limit of them.
    fn token_bucket(&self, _: &TenantId) -> Option<Bucket> {
        None
    }

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
    /// [`DecideError::Internal`] where it cannot be removed from disk, [`DecideError::StoreLost`] where
    /// it cannot be from a shared store.
    fn unregister<'a>(
        &'a self,
        caller: &'a Caller,
        kind: TaskKind,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, DecideError>>;

    /// Takes in records that were fitted before: all or none. They are read before this returns, which
    /// may take long; what it returns puts them into the store.
    ///
    /// # Errors
    /// [`DecideError::Invalid`] with what is wrong with the first that is refused,
    /// [`DecideError::Conflict`], [`DecideError::StoreLost`].
    fn import<'a>(
        &'a self,
        caller: &'a Caller,
        kind: TaskKind,
        records: Vec<serde_json::Value>,
    ) -> BoxFuture<'a, Result<Vec<String>, DecideError>>;

    /// What is served and how, in decisio's words: the body of its `/health` without the state of the
    /// server; cheap.
    fn settings(&self, caller: Option<&Caller>) -> serde_json::Value;
}
