//! Every way a decision can fail, free of HTTP.
//!
//! `dialect/problem.rs` alone turns these into statuses and bodies.

use thiserror::Error;

/// One fault in a request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Where: object keys and array indexes from the body's root.
    pub path: Vec<Step>,
    /// What kind of fault, for programs: `missing`, `json_invalid`, `duplicate_key`, ...
    pub code: &'static str,
    /// What is wrong, with the offending value and the limit.
    pub message: String,
    /// The same for programs, where the dialect has fields for it.
    pub facts: Vec<(&'static str, Fact)>,
}

/// A value in [`Problem::facts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A text.
    Text(String),
    /// A number.
    Count(usize),
    /// Not known.
    Unknown,
}

impl Problem {
    /// A fault that says no more than its message.
    pub fn new(path: Vec<Step>, code: &'static str, message: String) -> Self {
        Self { path, code, message, facts: Vec::new() }
    }
}

/// One step of a [`Problem`]'s path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A member of an object.
    Key(String),
    /// An element of an array.
    Index(usize),
}

impl From<&str> for Step {
    fn from(key: &str) -> Self {
        Self::Key(key.to_owned())
    }
}

impl From<usize> for Step {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Names, as a message tells them.
fn served(names: &[String]) -> String {
    match names {
        [] => "nor any other to this key".to_owned(),
        names => format!("there is {}", names.join(", ")),
    }
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "there is none (the server reads them from its --config)".to_owned(),
        names => format!("there is {}", names.join(", ")),
    }
}

/// Why a decision was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DecideError {
    /// The request breaks the rules; all faults found.
    #[error("the request is invalid: {}", .0.first().map_or("", |p| p.message.as_str()))]
    Invalid(Vec<Problem>),
    /// The request is understood, but the engine or model cannot do it.
    #[error("{0}")]
    Unsupported(String),
    /// The request asks for something that the served model has not, as its capabilities say.
    #[error("{0}")]
    Capability(String),
    /// What the request gives the chat template cannot be used.
    #[error("{0}")]
    Template(String),
    /// No model of this name is served.
    #[error("no model {name} is served, {}", served(.available))]
    UnknownModel {
        /// As sent, cut.
        name: String,
        /// Names that are.
        available: Vec<String>,
    },
    /// No profile of this name is configured.
    #[error("no profile {name} is configured, {}", listed(.available))]
    UnknownProfile {
        /// As sent, cut.
        name: String,
        /// Names that are.
        available: Vec<String>,
    },
    /// No question can be read from the served model at all: it is not causal, or its vocabulary has
    /// no two labels of one token each. A dialect with a status for a model that does not support
    /// decisions (501) gives that one.
    #[error("the served model answers no questions: {0}")]
    NoReadStrategy(String),
    /// The reads were refused or failed.
    #[error(transparent)]
    Read(#[from] actors::ReadError),
    /// There is no room for another registration of a task now.
    #[error(transparent)]
    RegistrationsFull(#[from] RegistrationsFull),
    /// Somebody else changed a record meanwhile.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// What several servers share cannot be changed now. `detail` goes to the log only.
    #[error(
        "the store that tasks are kept in cannot be reached now: what is registered is applied, and \
         nothing can be changed"
    )]
    StoreLost {
        /// For the log.
        detail: String,
    },
    /// Our own fault. `detail` goes to the log only.
    #[error("internal error")]
    Internal {
        /// For the log.
        detail: String,
    },
}

/// The limit that another registration of a task would break now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RegistrationsFull {
    /// Too many of one key are under way.
    #[error("{count} registrations of this tenant are under way, at most {count_max} may be")]
    OfKey {
        /// Under way.
        count: usize,
        /// The limit.
        count_max: usize,
    },
    /// Those of all keys hold too much.
    #[error(
        "the registrations under way hold {held} bytes of examples; with this one's {bytes} it would \
         be more than {bytes_max}"
    )]
    Bytes {
        /// Of the one that is refused.
        bytes: usize,
        /// Of those under way.
        held: usize,
        /// The limit.
        bytes_max: usize,
    },
}

/// A change of a record that somebody else changed after what the change is based on.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{record} was changed meanwhile: this change is based on version {based_on}, and version {current} \
     is there now; nothing was changed, look at it and send the change again if it is still wanted"
)]
pub struct Conflict {
    /// Which, as its owner is told of it.
    pub record: String,
    /// Up to which version of the store whoever wanted the change had seen it.
    pub based_on: u64,
    /// Its version now.
    pub current: u64,
}
