//! Wire formats: which one a request speaks is chosen once, and nothing behind asks again.
//!
//! A dialect is request rules, answer shape and error shape. It decodes to the types of `question`
//! and encodes from those of `question::answer`; HTTP statuses are in `problem` only.

pub mod batch;
mod decisio;
pub mod decisions;
#[cfg(test)]
mod fuzz;
mod gmlx;
pub mod images;
pub mod loaded;
mod openai;
pub mod problem;
mod selfserve;
mod shapes;
mod staging;
mod systemone;
mod vllm;
pub(crate) mod words;

/// Headers of requests that the `decisio` dialect reads.
pub use decisio::headers::ALL as DECISIO_HEADERS;

use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::error::{DecideError, Problem};
use crate::json::Json;
use crate::question::Decision;
use crate::service::{Decided, Health, ModelEntry, Prewarm, Prewarmed};

use images::ImageRules;
use problem::{Fault, FullStatus, Refusal, RequestFault};

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
    /// decisio's server.
    Decisio,
    /// self's server; its name is `self`.
    SelfServe,
    /// vLLM's structured decisions.
    Vllm,
    /// gmlx's server.
    Gmlx,
    /// `OpenAI`'s decisions, whose route is its own.
    Openai,
}

/// A name that is no dialect's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "no dialect of this name is served; available: systemone, decisio, self, vllm, gmlx, openai"
)]
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

/// What the headers of a request's dialect say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headed {
    /// Whether images are to be looked at, where that is said.
    pub image_route: Option<bool>,
    /// Whether the raw readout is wanted.
    pub debug: Option<Debug>,
}

/// What is wanted of the raw readout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Debug {
    /// Probabilities before anything was made of them.
    Readout,
    /// The hidden states too.
    Hidden,
}

/// What an answer has beside its answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extras {
    /// How each question was read.
    pub diagnostics: bool,
    /// The raw readout.
    pub debug: Option<Debug>,
    /// The fields that answers to a request with images have.
    pub with_images: bool,
    /// The request's id, as `x-request-id` says it.
    pub request_id: String,
    /// From the request's first byte to now.
    pub total: Duration,
}

/// The letters route below System One, which has a body of its own.
pub mod letters {
    use std::time::Duration;

    use super::decisio::answer;
    use super::{RequestLimits, Undecoded};
    use crate::error::DecideError;
    use crate::json::Json;
    use crate::service::Decided;

    pub use super::decisio::answer::Lettered as Wanted;

    /// Reads a request.
    ///
    /// # Errors
    /// All faults found.
    pub fn decode(body: Json, limits: &RequestLimits) -> Result<Wanted, Undecoded> {
        answer::decode(body, limits)
    }

    /// The response; `total` is from the request's first byte to now.
    ///
    /// # Errors
    /// [`DecideError::Internal`] where a number is not finite.
    pub fn encode(
        wanted: &Wanted,
        decided: &Decided,
        total: Duration,
    ) -> Result<String, DecideError> {
        answer::encode(wanted, decided, total)
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
    pub const ALL: [Self; 6] =
        [Self::Systemone, Self::Decisio, Self::SelfServe, Self::Vllm, Self::Gmlx, Self::Openai];

    /// Its name in flags, paths and headers.
    pub fn name(self) -> &'static str {
        match self {
            Self::Systemone => "systemone",
            Self::Decisio => "decisio",
            Self::SelfServe => "self",
            Self::Vllm => "vllm",
            Self::Gmlx => "gmlx",
            Self::Openai => "openai",
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
            Self::Decisio => decisio::decode::decision(body, limits),
            Self::SelfServe => selfserve::decode::decision(body, limits),
            Self::Vllm => vllm::decode::decision(body, limits),
            Self::Gmlx => gmlx::decode::decision(body, limits),
            Self::Openai => openai::decode::decision(body, limits),
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
            Self::Systemone | Self::SelfServe | Self::Openai => {
                systemone::decode::prewarm(body, limits)
            }
            Self::Vllm => vllm::decode::prewarm(body, limits),
            Self::Decisio => decisio::decode::prewarm(body, limits),
            Self::Gmlx => gmlx::decode::prewarm(body, limits),
        }
    }

    /// Encodes a decision's answers.
    ///
    /// # Errors
    /// [`DecideError::Internal`] where a number is not finite, which JSON cannot carry.
    pub fn decided(self, decided: &Decided, extras: &Extras) -> Result<String, DecideError> {
        match self {
            Self::Systemone => systemone::encode::decided(decided, extras),
            Self::Decisio => decisio::encode::decided(decided, extras),
            Self::SelfServe => selfserve::encode::decided(decided),
            Self::Vllm => vllm::encode::decided(decided, extras),
            Self::Gmlx => gmlx::encode::decided(decided, extras),
            Self::Openai => openai::encode::decided(decided),
        }
    }

    /// Reads the headers that a request of this dialect may have.
    ///
    /// # Errors
    /// A value that there is not.
    pub fn headed(
        self,
        header: &dyn Fn(&str) -> Option<String>,
        debug_allowed: bool,
    ) -> Result<Headed, RequestFault> {
        match self {
            Self::Systemone | Self::SelfServe | Self::Vllm | Self::Gmlx | Self::Openai => {
                Ok(Headed::default())
            }
            Self::Decisio => decisio::headers::read(header, debug_allowed),
        }
    }

    /// Whether `/health` says how questions are shown and read.
    pub fn has_settings_in_health(self) -> bool {
        match self {
            Self::Systemone | Self::SelfServe | Self::Vllm | Self::Gmlx | Self::Openai => false,
            Self::Decisio => true,
        }
    }

    /// Whether a decision may come as a form with files beside the JSON.
    pub fn takes_forms(self) -> bool {
        match self {
            Self::SelfServe | Self::Vllm | Self::Gmlx | Self::Openai => false,
            Self::Systemone | Self::Decisio => true,
        }
    }

    /// In which forms it takes images, and how large.
    pub fn image_rules(self) -> ImageRules {
        match self {
            Self::Systemone | Self::Vllm | Self::Gmlx | Self::Openai => ImageRules::ALL,
            Self::Decisio => ImageRules::DECISIO,
            Self::SelfServe => ImageRules::SELF,
        }
    }

    /// Whether a decision must be declared as `application/json` by that very name.
    pub fn insists_on_json(self) -> bool {
        match self {
            Self::Systemone | Self::Decisio | Self::SelfServe | Self::Gmlx | Self::Openai => false,
            Self::Vllm => true,
        }
    }

    /// Whether a body may be declared as a form or as text and is JSON all the same, or be not declared
    /// at all; never one that a browser sends for another site.
    pub fn takes_undeclared(self) -> bool {
        match self {
            Self::Systemone | Self::Decisio | Self::SelfServe | Self::Vllm | Self::Openai => false,
            Self::Gmlx => true,
        }
    }

    /// Whether images are looked for in requests; else they are for its decoder to refuse.
    pub fn finds_images(self) -> bool {
        match self {
            Self::Systemone | Self::Decisio | Self::SelfServe | Self::Vllm | Self::Openai => true,
            Self::Gmlx => false,
        }
    }

    /// Headers of an answer beside those that all dialects have; `total` is from the request's first
    /// byte to now.
    pub fn headers(self, decided: &Decided, total: Duration) -> Vec<(&'static str, String)> {
        match self {
            Self::Systemone | Self::SelfServe | Self::Vllm | Self::Gmlx | Self::Openai => {
                Vec::new()
            }
            Self::Decisio => decisio::headers::of(decided, total),
        }
    }

    /// The list of models; `None` where the dialect has none of its own.
    pub fn models(self, models: &[ModelEntry]) -> Option<String> {
        match self {
            Self::Systemone | Self::Decisio => None,
            Self::Gmlx => Some(gmlx::encode::models(models)),
            Self::Vllm => Some(vllm::encode::models(models)),
            Self::SelfServe => Some(selfserve::models::models(models)),
            Self::Openai => Some(openai::models::models(models)),
        }
    }

    /// What `/health` says in the dialect's own words beside docket's, an object; `None` where it has
    /// none. `model` is the served name.
    pub fn health(self, health: &Health, model: &str) -> Option<serde_json::Value> {
        match self {
            Self::Systemone | Self::Decisio | Self::Vllm | Self::Gmlx | Self::Openai => None,
            Self::SelfServe => Some(selfserve::models::health(health, model)),
        }
    }

    /// Whether `/health` fails where the server is not ready, though it was asked for life only.
    pub fn health_is_readiness(self) -> bool {
        match self {
            Self::Systemone | Self::Decisio | Self::Vllm | Self::Gmlx | Self::Openai => false,
            Self::SelfServe => true,
        }
    }

    /// Encodes what a prewarm did.
    pub fn prewarmed(self, prewarmed: &Prewarmed, full: FullStatus) -> String {
        match self {
            Self::Systemone | Self::Decisio | Self::SelfServe | Self::Vllm | Self::Openai => {
                systemone::encode::prewarmed(prewarmed, full)
            }
            Self::Gmlx => gmlx::encode::prewarmed(prewarmed),
        }
    }

    /// Status, headers and body for a request that was not answered.
    pub fn refusal(self, fault: &Fault, full: FullStatus) -> Refusal {
        match self {
            Self::Systemone => problem::systemone(fault, full),
            Self::Decisio => problem::decisio(fault, full),
            Self::SelfServe => problem::selfserve(fault, full),
            Self::Vllm => problem::vllm(fault, full),
            Self::Gmlx => problem::gmlx(fault, full),
            Self::Openai => problem::openai(fault, full),
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
