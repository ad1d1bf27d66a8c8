//! What is asked: a decision's state and its typed questions, free of any wire format.
//!
//! Every dialect decodes to these types and nothing behind the dialects knows which one was spoken.

pub mod answer;
pub mod correction;
pub mod stages;

use std::sync::Arc;
use std::time::Duration;

use actors::Lane;

use crate::json::Json;
use correction::Correction;

/// Most options a choice, or levels a score, may have.
pub const OPTIONS_MAX: usize = 255;

/// One decision: a state, and the questions about it.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the request's own")]
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
    /// Longest time where the caller set none, if that is not the server's own.
    pub timeout_default: Option<Duration>,
    /// Whether diagnostics are wanted in the response.
    pub diagnostics: bool,
    /// By which of the server's settings it is shown and read out.
    pub manner: Manner,
    /// Whether what was learned from registered examples is applied to its answers.
    pub applies_tasks: bool,
    /// Whether the request has the form of one with images, be there any or not.
    pub images_form: bool,
    /// What the prompts say ahead of the state, where the request says something.
    pub context: Option<String>,
    /// What the request gives the model's chat template beside the turns; an object's members.
    pub template: Vec<(String, Json)>,
    /// The settings to show and read it by, where the request names some of the operator's.
    pub profile: Option<String>,
    /// Whether a question is shown the answers of those that it depends on.
    pub stage_context: bool,
    /// Whether the state's text is wanted in the response, as the model read it.
    pub wants_state_text: bool,
    /// The model, where the request insists on one.
    pub model: Option<String>,
    /// What the request adds to its caller's salt; never replaces it.
    pub salt: Option<String>,
    /// The request's own name for itself, where its body has one.
    pub request_id: Option<String>,
}

impl Decision {
    /// A decision that asks for nothing beside its answers.
    pub fn new(state: Json, questions: Vec<Question>) -> Self {
        Self {
            state,
            questions,
            samples: None,
            lane: None,
            timeout: None,
            timeout_default: None,
            diagnostics: false,
            manner: Manner::default(),
            applies_tasks: true,
            images_form: false,
            context: None,
            template: Vec::new(),
            profile: None,
            stage_context: false,
            wants_state_text: false,
            model: None,
            salt: None,
            request_id: None,
        }
    }
}

/// One of the server's sets of settings by which questions are shown and read out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Manner {
    /// What was measured best for the model: its profile.
    #[default]
    Profile,
    /// What the operator composed by flags in decisio's names.
    Letters,
    /// State, question and options with little around them, as vLLM arranges its reads.
    Plain,
}

impl Manner {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Profile, Self::Letters, Self::Plain];
}

/// How many orders of the options are read and averaged (ARCHITECTURE D10).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Samples {
    /// As many as the model's profile says.
    Auto,
    /// This many, at least 1; lowered to the distinct orders and to `--samples-max`.
    Count(u32),
    /// One, and one more as long as their average is less certain than wanted.
    Adaptive(Adaptive),
}

/// When further orders are read.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Adaptive {
    /// While the entropy of the average is above this, in nats; not negative.
    pub entropy_max: f64,
    /// Most orders in all, at least 1; lowered to the distinct orders and to `--samples-max`.
    pub orders_max: u32,
}

impl Default for Adaptive {
    /// gmlx's `auto`: above .1 nats, up to 4 orders.
    fn default() -> Self {
        Self { entropy_max: 0.1, orders_max: 4 }
    }
}

/// One typed question.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the request's own")]
pub struct Question {
    /// The caller's name for it. It never reaches the prompt.
    pub id: String,
    /// Its type and criteria.
    pub kind: Kind,
    /// The question in words: a string or other JSON; absent or blank gives the type's default.
    pub instructions: Option<Json>,
    /// Orders to read, where this question says so itself.
    pub samples: Option<Samples>,
    /// Divisor of its log-probabilities, where it is not that of its kind.
    pub temperature: Option<f64>,
    /// What was learned about it.
    pub correction: Option<Arc<Correction>>,
    /// Whether its hidden state is wanted beside the answer.
    pub wants_hidden: bool,
    /// Whether the label mass is wanted of engines that read label rows only.
    pub wants_mass: bool,
    /// What its options are, where they are found in the state; it is then a choice without options
    /// until they have been.
    pub finds: Option<Finds>,
    /// Whether the passages that the answer rests on are wanted beside it.
    pub cites: bool,
    /// Whether what is found are the passages that the answer to another question rests on.
    pub is_citation: bool,
    /// Answers of other questions under which alone it is asked; all must have been given.
    pub ask_if: Vec<Condition>,
    /// Ids of questions that are to be answered before it, distinct; see [`Decision::stage_context`].
    pub depends_on: Vec<String>,
}

/// Options that are found in the state.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Finds {
    /// Numbers, of which one is the answer.
    Number(NumberCriteria),
    /// Passages, of which one or more are.
    Excerpt,
}

/// Which numbers may be the answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct NumberCriteria {
    /// The least; finite, not above `max`.
    pub min: Option<f64>,
    /// The greatest; finite.
    pub max: Option<f64>,
    /// Values are rounded to its multiples; 0 or `None`: not rounded. Finite, not negative.
    pub precision: Option<f64>,
}

/// An answer of another question under which alone a question is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Id of the other question, a noul, choice or score of the same decision.
    pub question: String,
    /// `yes` and `no`, keys of options, or texts of levels; one at least.
    pub answers: Vec<String>,
}

impl Question {
    /// A question that asks for nothing beside its answer.
    pub fn new(id: String, kind: Kind, instructions: Option<Json>) -> Self {
        Self {
            id,
            kind,
            instructions,
            samples: None,
            temperature: None,
            correction: None,
            wants_hidden: false,
            wants_mass: false,
            finds: None,
            cites: false,
            is_citation: false,
            ask_if: Vec::new(),
            depends_on: Vec::new(),
        }
    }

    /// A question whose options are found in the state.
    pub fn finding(id: String, finds: Finds, instructions: Option<Json>) -> Self {
        let kind = Kind::Choice { options: Vec::new() };
        Self { finds: Some(finds), ..Self::new(id, kind, instructions) }
    }

    /// Its type on the wire.
    pub fn type_name(&self) -> &'static str {
        match self.finds {
            Some(Finds::Number(_)) => "number",
            Some(Finds::Excerpt) => "excerpt",
            None => self.kind.name(),
        }
    }

    /// Whether the hidden state is to be read.
    pub fn needs_hidden(&self) -> bool {
        self.wants_hidden || self.correction.as_ref().is_some_and(|learned| learned.needs_hidden())
    }
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
    /// A level on an ordered scale, 1 to [`OPTIONS_MAX`] levels, lowest first; may repeat. Dialects that ask
    /// for two at least do so themselves.
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
