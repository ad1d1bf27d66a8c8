//! What a service says of decisions, models and itself, as dialects write it.

use std::fmt;

use actors::Tier;

use crate::question::answer::{Answer, Cost};
use crate::state_key::StateKey;

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
    /// By what a router finds the server that holds the state; `None` where none is to be told.
    pub state_key: Option<StateKey>,
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
