//! One decision as every driver gets it: a state, and questions about it, in no server's form.

use std::rc::Rc;

use super::texts::Text;

/// A state and the questions that are asked about it. Cheap to clone: its parts are shared.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) state: State,
    /// What is to be answered, in this order; none of a prewarm.
    pub(crate) questions: Vec<Rc<Question>>,
    /// Orders of the options that are read, as JSON: a whole number or `"auto"`.
    pub(crate) samples: Option<Rc<str>>,
    /// What else the user's own body says, for servers that take it as it is.
    pub(crate) given: Option<Rc<Given>>,
}

/// What a question is answered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The probability of yes.
    Noul,
    /// One of the options.
    Choice,
    /// A level, the lowest first.
    Score,
    /// What only some servers know: it can be passed on, but its answer is not a distribution.
    Other,
}

/// One question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Question {
    /// Its id in a body; by its position where there is none.
    pub(crate) id: Option<String>,
    pub(crate) kind: Kind,
    /// The question in words.
    pub(crate) instructions: String,
    /// Yes and no of a noul, the options of a choice, the levels of a score.
    pub(crate) options: Vec<Answer>,
    /// The question as System One has it.
    pub(crate) json: String,
}

/// One of the answers that a question may have.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) name: String,
    pub(crate) description: Option<String>,
}

impl Answer {
    /// An answer that explains itself.
    pub(crate) fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), description: None }
    }
}

/// The parts of the user's own body that are passed on as they came.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Given {
    /// The state as text: a string's characters, anything else as compact JSON.
    pub(crate) text: String,
    /// The state as JSON.
    pub(crate) state: String,
    /// The value of `questions`.
    pub(crate) questions: String,
    /// All other members, each with a comma before it.
    pub(crate) rest: String,
    /// Whether `model` is among them.
    pub(crate) has_model: bool,
}

/// What the questions are about.
#[derive(Debug, Clone)]
pub(crate) struct State(Source);

#[derive(Debug, Clone)]
enum Source {
    /// A version of a text that is its own JSON between the quotes.
    Prose(Rc<Text>, u32),
    Given(Rc<Given>),
}

impl State {
    /// A version of a seeded text.
    pub(super) fn prose(text: Rc<Text>, version: u32) -> Self {
        Self(Source::Prose(text, version))
    }

    /// The state of the user's own body.
    pub(super) fn given(given: Rc<Given>) -> Self {
        Self(Source::Given(given))
    }

    /// As text.
    pub(crate) fn text(&self) -> &str {
        match &self.0 {
            Source::Prose(text, version) => text.version(*version),
            Source::Given(given) => &given.text,
        }
    }

    /// Appends it as JSON.
    pub(crate) fn push_json(&self, body: &mut Vec<u8>) {
        match &self.0 {
            Source::Prose(text, version) => {
                body.push(b'"');
                body.extend_from_slice(text.version(*version).as_bytes());
                body.push(b'"');
            }
            Source::Given(given) => body.extend_from_slice(given.state.as_bytes()),
        }
    }
}
