//! What comes back: one distribution a question, and what the whole decision cost.

use std::time::Duration;

use actors::Lane;

/// A decided question.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The question's id, as sent.
    pub id: String,
    /// The distribution and what follows from it.
    pub value: Value,
    /// How the reading went.
    pub diagnostics: Diagnostics,
    /// The distribution before corrections and temperature: `[options]` (a noul's no, then yes).
    pub raw: Vec<f64>,
    /// The hidden state before the output head, in the first order of the options, where it was
    /// wanted.
    pub hidden: Option<Vec<f32>>,
    /// What registered examples say of it.
    pub learned: Learned,
    /// The passages that the answer rests on, most probable first, where they were wanted.
    pub citations: Option<Vec<Citation>>,
}

/// A passage of the state that an answer rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Citation {
    /// The passage.
    pub part: Part,
    /// That it is the one.
    pub probability: f64,
}

/// A passage of the state's text as the model read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The passage.
    pub text: String,
    /// Where it begins, in Unicode code points of the text.
    pub start: usize,
    /// Where it ends, not included.
    pub end: usize,
}

/// What tasks that were registered from labelled examples say of an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Learned {
    /// Of one whose question has an option for not knowing.
    pub abstention: Option<Abstention>,
    /// Of one whose task certifies answers.
    pub certified: Option<Certified>,
}

/// How an option for not knowing fared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Abstention {
    /// Its probability among all options, it included; 0 where none was offered.
    pub unknown: f64,
    /// Whether the question counts as unanswered.
    pub abstained: bool,
}

/// Whether an answer is one of those that a certificate speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certified {
    /// It is.
    pub is_certified: bool,
    /// Why not, in words.
    pub reason: Option<String>,
}

/// An answer by type. Probabilities are f64, unrounded, and sum to 1 within 1e-12.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Probability of yes.
    Noul {
        /// Between 0 and 1.
        yes: f64,
    },
    /// A distribution over the options.
    Choice {
        /// Index of the chosen option; ties go to the key first in code-point order.
        chosen: usize,
        /// The options' keys, in request order.
        keys: Vec<String>,
        /// `[options]`, in request order.
        probabilities: Vec<f64>,
        /// Top probability rescaled from uniform: `(max - 1/n) / (1 - 1/n)`; 1 for one option.
        confidence: f64,
    },
    /// A distribution over the levels.
    Score {
        /// Probability-weighted mean of the level indexes.
        mean: f64,
        /// The levels' texts, lowest first.
        legend: Vec<String>,
        /// `[levels]`.
        probabilities: Vec<f64>,
        /// Concentration at the mode: `max(0, 1 - d / u)`.
        confidence: f64,
    },
    /// A number that the state states.
    Number(NumberFound),
    /// A passage of the state.
    Excerpt(ExcerptFound),
    /// None: the question was not asked, because of the answer of another.
    Skipped {
        /// The id of the other.
        because: String,
        /// Its answer; `None` where it was skipped itself.
        was: Option<String>,
        /// The answers under which the question would have been asked.
        wanted: Vec<String>,
    },
}

/// A number that a state states, or that it states none.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberFound {
    /// The number; `None` where that none is stated is more probable than any.
    pub value: Option<f64>,
    /// Of what is answered: the number, or that there is none.
    pub probability: f64,
    /// That none is stated.
    pub not_stated: f64,
    /// Probability rescaled from uniform, as a choice's; `None` where there was nothing to choose.
    pub confidence: Option<f64>,
    /// The numbers that were looked at, most probable first.
    pub candidates: Vec<NumberRead>,
}

/// A number in a state.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberRead {
    /// Its value, rounded as asked for.
    pub value: f64,
    /// That it is the answer.
    pub probability: f64,
    /// The text around the place where it first stands.
    pub context: String,
}

/// A passage of a state, or that there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct ExcerptFound {
    /// From the first to the last of the parts; `None` where that there is none is more probable.
    pub found: Option<Part>,
    /// Of what is answered.
    pub probability: f64,
    /// That there is none.
    pub not_stated: f64,
    /// The parts in the order of the text, where they do not follow each other; else empty.
    pub parts: Vec<Part>,
}

/// How a question was read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Diagnostics {
    /// Mean probability of all labels together over the whole vocabulary; `None` where the engine
    /// reads label rows only and the question did not ask for it.
    pub label_mass: Option<f64>,
    /// Whether the most probable token was a label in every read.
    pub argmax_is_label: bool,
    /// Entropy of the distribution in nats.
    pub entropy: f64,
    /// Orders of the options that were read.
    pub orders: u32,
    /// Share of the orders whose top option is that of the average.
    pub order_consistency: f64,
    /// Reads that it took (orders, chunks and rounds).
    pub reads: u32,
}

/// What a decision cost and what it waited for.
#[derive(Debug, Clone, PartialEq)]
pub struct Cost {
    /// The lane it was served in.
    pub lane: Lane,
    /// Tokens of the state and of each question's own text, the state once.
    pub input_tokens: u64,
    /// Tokens of all prompts, the state counted for each.
    pub prompt_tokens: u64,
    /// Tokens computed on this decision's account.
    pub computed_tokens: u64,
    /// Tokens found resident or already being read for others.
    pub cached_tokens: u64,
    /// From the request's first byte to its first read, and between rounds of reads: parsing,
    /// rendering and tokenising.
    pub prepare: Duration,
    /// Times of the read that finished last (ARCHITECTURE D15).
    pub queue_wait: Duration,
    /// See [`actors::ReadTiming`].
    pub state_wait: Duration,
    /// See [`actors::ReadTiming`].
    pub state_time: Duration,
    /// See [`actors::ReadTiming`].
    pub engine_wait: Duration,
    /// See [`actors::ReadTiming`].
    pub engine_time: Duration,
    /// All steps that read one of its questions, each once.
    pub steps_time: Duration,
    /// Whether it waited behind a boundary registration.
    pub behind_registration: bool,
    /// How many times the state was tokenised for it: 0 where its tokens were cached, else 1.
    pub state_tokenisations: u32,
    /// Tokens of each read's prompt, and how many of them were found resident or being read.
    pub rows: Vec<RowTokens>,
    /// Tokens of head and state, which all its reads share.
    pub prefix_tokens: u32,
    /// Runs of the model that it took: steps that read one of its questions.
    pub runs: u32,
}

/// Tokens of one read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowTokens {
    /// Of the whole prompt.
    pub prompt: u64,
    /// Of these, found.
    pub cached: u64,
}
