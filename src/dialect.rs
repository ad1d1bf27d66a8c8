//! Wire formats: which one a request speaks is chosen once, and nothing behind asks again.
//!
//! A dialect is request rules, answer shape and error shape. It decodes to the types of `question`
//! and encodes from those of `question::answer`; HTTP statuses are in `problem` only.

pub mod problem;
mod systemone;

use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::error::{DecideError, Problem};
use crate::json::Json;
use crate::question::Decision;
use crate::service::{Decided, Prewarm, Prewarmed};

use problem::{Fault, FullStatus, Refusal};

/// Default of [`RequestLimits::questions_max`].
pub const QUESTIONS_MAX: usize = 64;

/// Default of [`RequestLimits::states_max`].
pub const STATES_MAX: usize = 64;

/// Default of [`RequestLimits::timeout_max`].
pub const TIMEOUT_MAX: Duration = Duration::from_mins(10);

/// Most faults of one body that are reported.
pub const FAULTS_MAX: usize = 10;

/// Longest piece of a request, in characters, that a message or a `loc` repeats.
pub const ECHO_CHARS_MAX: usize = 100;

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// The official System One contract.
    #[default]
    Systemone,
}

/// A name that is no dialect's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("no dialect of this name is served; available: systemone")]
pub struct UnknownDialect;

/// What a request may ask for, whatever its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestLimits {
    /// Most questions of one decision (`--max-questions`).
    pub questions_max: usize,
    /// Most states of one prewarm.
    pub states_max: usize,
    /// Longest deadline that a caller may set (`--timeout-max`).
    pub timeout_max: Duration,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let (questions_max, states_max) = (QUESTIONS_MAX, STATES_MAX);
        Self { questions_max, states_max, timeout_max: TIMEOUT_MAX }
    }
}

/// A request, with the fields that were not understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded<T> {
    /// What was asked.
    pub request: T,
    /// Names of ignored fields, as dotted paths; the first few.
    pub ignored: Vec<String>,
}

/// Why a request could not be decoded, with the fields that were not understood: one of these is
/// often the field that is missing, misspelt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecoded {
    /// All faults found, at most [`FAULTS_MAX`].
    pub faults: Vec<Problem>,
    /// Names of ignored fields, as dotted paths; the first few.
    pub ignored: Vec<String>,
}

impl Dialect {
    /// All dialects.
    pub const ALL: [Self; 1] = [Self::Systemone];

    /// Its name in flags, paths and headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Systemone => "systemone",
        }
    }

    /// Decodes a decision.
    ///
    /// # Errors
    /// All faults found, at most [`FAULTS_MAX`].
    pub fn decision(
        self,
        body: Json,
        limits: &RequestLimits,
    ) -> Result<Decoded<Decision>, Undecoded> {
        match self {
            Self::Systemone => systemone::decode::decision(body, limits),
        }
    }

    /// Decodes a prewarm request.
    ///
    /// # Errors
    /// All faults found, at most [`FAULTS_MAX`].
    pub fn prewarm(
        self,
        body: Json,
        limits: &RequestLimits,
    ) -> Result<Decoded<Prewarm>, Undecoded> {
        match self {
            Self::Systemone => systemone::decode::prewarm(body, limits),
        }
    }

    /// Encodes a decision's answers.
    ///
    /// # Errors
    /// [`DecideError::Internal`] where a number is not finite, which JSON cannot carry.
    pub fn decided(self, decided: &Decided, diagnostics: bool) -> Result<String, DecideError> {
        match self {
            Self::Systemone => systemone::encode::decided(decided, diagnostics),
        }
    }

    /// Encodes what a prewarm did.
    pub fn prewarmed(self, prewarmed: &Prewarmed, full: FullStatus) -> String {
        match self {
            Self::Systemone => systemone::encode::prewarmed(prewarmed, full),
        }
    }

    /// Status, headers and body for a request that was not answered.
    pub fn refusal(self, fault: &Fault, full: FullStatus) -> Refusal {
        match self {
            Self::Systemone => problem::systemone(fault, full),
        }
    }
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, UnknownDialect> {
        Self::ALL.into_iter().find(|dialect| dialect.name() == name).ok_or(UnknownDialect)
    }
}

/// `text`, cut after [`ECHO_CHARS_MAX`] characters.
fn echo(text: &str) -> String {
    match text.char_indices().nth(ECHO_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
