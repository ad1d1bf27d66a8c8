//! What is asked: a decision's state and its typed questions, free of any wire format.
//!
//! Every dialect decodes to these types and nothing behind the dialects knows which one was spoken.

pub mod answer;

use std::time::Duration;

use actors::Lane;

use crate::json::Json;

/// Most options a choice, or levels a score, may have.
pub const OPTIONS_MAX: usize = 255;

/// One decision: a state, and the questions about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What the questions are about; a string, or any JSON but null.
    pub state: Json,
    /// The questions in the order they were sent; ids are distinct.
    pub questions: Vec<Question>,
    /// How many orders of its options each question is read in, unless it says itself.
    pub samples: Option<Samples>,
    /// The lane asked for.
    pub lane: Option<Lane>,
    /// Longest time from the request's first byte to its answer, where the caller set one.
    pub timeout: Option<Duration>,
    /// Whether diagnostics are wanted in the response.
    pub diagnostics: bool,
}

/// How many orders of the options are read and averaged (ARCHITECTURE D10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Samples {
    /// As many as the model's profile says.
    Auto,
    /// This many, at least 1; lowered to the distinct orders and to `--samples-max`.
    Count(u32),
}

/// One typed question.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The caller's name for it. It never reaches the prompt.
    pub id: String,
    /// Its type and criteria.
    pub kind: Kind,
    /// The question in words: a string or other JSON; absent or blank gives the type's default.
    pub instructions: Option<Json>,
    /// Orders to read, where this question says so itself.
    pub samples: Option<Samples>,
}

/// The type of a question, with its criteria.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// Yes or no.
    Noul {
        /// What yes means, where said.
        when_true: Option<Json>,
        /// What no means, where said.
        when_false: Option<Json>,
    },
    /// One of several named options, 1 to [`OPTIONS_MAX`], in request order; keys are distinct.
    Choice {
        /// The options.
        options: Vec<ChoiceOption>,
    },
    /// A level on an ordered scale, 2 to [`OPTIONS_MAX`] levels, lowest first; may repeat.
    Score {
        /// The levels' descriptions.
        levels: Vec<Json>,
    },
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq)]
pub struct ChoiceOption {
    /// The key the answer uses.
    pub key: String,
    /// When to choose it: a string or other JSON; `None` for null.
    pub description: Option<Json>,
}

/// The options of one read in the order they are displayed: label `i` stands for option
/// `options[i]`. A noul's option 0 is no and its option 1 yes; a choice's and a score's go by their
/// place in the request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Option indexes, distinct; all of the question's, or the chunk of them that is read.
    pub options: Vec<usize>,
}

impl Kind {
    /// How many answers there are to choose from.
    pub fn options(&self) -> usize {
        match self {
            Self::Noul { .. } => 2,
            Self::Choice { options } => options.len(),
            Self::Score { levels } => levels.len(),
        }
    }

    /// How many different orders its options may be read in (ARCHITECTURE D10): the rotations of a
    /// choice; both directions of a score and of a noul.
    pub fn orders_max(&self) -> usize {
        match self {
            Self::Noul { .. } | Self::Score { .. } => self.options().min(2),
            Self::Choice { options } => options.len(),
        }
    }

    /// Its name on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Noul { .. } => "noul",
            Self::Choice { .. } => "choice",
            Self::Score { .. } => "score",
        }
    }
}
