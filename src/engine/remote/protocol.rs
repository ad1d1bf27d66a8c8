//! What is said to the servers and how they answer: JSON out of token ids, and readings out of JSON.
//!
//! Nothing here knows a socket. Each server has a file; what they have in common is an [`Ask`] and a
//! [`Reading`]. An answer is believed only as far as it can be checked: that as many tokens were read as
//! were sent, that the ids are those that were asked for, and that the numbers are log-probabilities.

mod llama;
mod sglang;
mod vllm;

use std::collections::BTreeMap;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

/// How much above zero a log-probability may be for rounding.
const ROUNDING: f64 = 1e-3;

/// How much above one the sum of probabilities may be: servers sum a whole vocabulary in `f32`.
const SUM_ROUNDING: f64 = 1e-2;

/// Most tokens that a llama-server is asked to list at first; labels beyond are asked for again.
pub(super) const TOP: u32 = 128;

/// Which server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// vLLM: `POST /v1/completions` with `logprob_token_ids`.
    Vllm,
    /// `SGLang`: `POST /generate` with `token_ids_logprob`.
    Sglang,
    /// llama.cpp's server: `POST /completion` with `n_probs`.
    LlamaServer,
}

/// A request to a server, whole but for its address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Call {
    /// Path from the server's root.
    pub(super) path: &'static str,
    /// JSON to post; a call without is a GET.
    pub(super) body: Option<Bytes>,
}

impl Call {
    pub(super) fn get(path: &'static str) -> Self {
        Self { path, body: None }
    }

    /// Written straight from its fields: a prompt may be many thousand numbers.
    fn post(path: &'static str, body: &impl Serialize) -> Self {
        // Numbers, texts and lists of them always serialise.
        let body = serde_json::to_vec(body).unwrap_or_default();
        Self { path, body: Some(body.into()) }
    }
}

/// One prompt, and what is wanted of the token behind it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ask<'a> {
    /// The server's name of the model; empty where it has not told one.
    pub(super) model: &'a str,
    /// The prompt.
    pub(super) ids: &'a [u32],
    /// Whose log-probabilities are wanted, distinct, at most [`Protocol::labels_max`]; none for a
    /// request that only has the prompt read.
    pub(super) labels: &'a [u32],
    /// What the server's cache must not share with other salts; empty shares with all that have none.
    pub(super) salt: &'a str,
    /// The slot of a llama-server.
    pub(super) slot: Option<usize>,
    /// Most tokens that a llama-server lists.
    pub(super) top: u32,
    /// A token whose logit is raised before the server samples, and by how much. Log-probabilities are
    /// to be those before; the check at the start sees whether they are.
    pub(super) bias: Option<(u32, f32)>,
}

/// What a server answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reading {
    /// Natural log-probabilities over the whole vocabulary, by token. A llama-server may leave labels
    /// out, and may list others.
    pub(super) logprobs: BTreeMap<u32, f64>,
    /// The most probable token, where it tells.
    pub(super) best: Option<u32>,
    /// Tokens of the prompt that it found in its cache, where it tells.
    pub(super) cached: Option<u32>,
}

/// Why an answer is not believed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum Misread {
    /// It is not what the server's protocol has.
    #[error("the answer is not what the protocol has: {0}")]
    Form(String),
    /// It lacks tokens that were asked for.
    #[error(
        "the answer has no log-probability of token {token}: the server is too old to give those of \
         chosen tokens, or gives none"
    )]
    Missing {
        /// The first of them.
        token: u32,
    },
    /// A number is no log-probability.
    #[error("{value} is no log-probability (of token {token})")]
    NotFinite {
        /// As answered.
        value: String,
        /// Of which token.
        token: u32,
    },
    /// It read another prompt than was sent.
    #[error("the server read {read} tokens of {sent} that were sent")]
    Length {
        /// By its own count.
        read: u64,
        /// Sent.
        sent: usize,
    },
}

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Introduction {
    /// Its name of the model.
    pub(super) model: Option<String>,
    /// Longest prompt that leaves room for one token.
    pub(super) context_tokens: Option<u32>,
    /// Slots, of a llama-server.
    pub(super) slots: Option<usize>,
    /// Token positions for which it has memory.
    pub(super) kv_tokens: Option<u64>,
}

impl Protocol {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vllm",
            Self::Sglang => "sglang",
            Self::LlamaServer => "llama-server",
        }
    }

    /// Most labels of one request.
    pub(super) fn labels_max(self) -> usize {
        match self {
            Self::Vllm => vllm::LABELS_MAX,
            Self::Sglang | Self::LlamaServer => usize::MAX,
        }
    }

    /// Whether an answer has each label that was asked for.
    pub(super) fn gives_all_labels(self) -> bool {
        self != Self::LlamaServer
    }

    /// Whether a raised logit would show in log-probabilities that are not those before sampling.
    pub(super) fn shows_bias(self) -> bool {
        self != Self::Sglang
    }

    /// The call that asks for a reading.
    pub(super) fn ask(self, ask: &Ask<'_>) -> Call {
        match self {
            Self::Vllm => vllm::ask(ask),
            Self::Sglang => sglang::ask(ask),
            Self::LlamaServer => llama::ask(ask),
        }
    }

    /// Understands the answer to [`ask`](Self::ask).
    ///
    /// # Errors
    /// [`Misread`] where it cannot be believed.
    pub(super) fn read(self, ask: &Ask<'_>, body: &[u8]) -> Result<Reading, Misread> {
        let reading = match self {
            Self::Vllm => vllm::read(ask, body)?,
            Self::Sglang => sglang::read(ask, body)?,
            Self::LlamaServer => llama::read(ask, body)?,
        };
        check(ask, &reading, self.gives_all_labels())?;
        Ok(reading)
    }

    /// The calls by which a server introduces itself. The first must be answered.
    pub(super) fn introduce(self) -> &'static [&'static str] {
        match self {
            Self::Vllm => &["/v1/models", "/metrics"],
            Self::Sglang => &["/v1/models", "/get_server_info"],
            Self::LlamaServer => &["/props"],
        }
    }

    /// Adds what the answer to one of these says.
    pub(super) fn introduced(self, path: &str, body: &[u8], known: &mut Introduction) {
        match self {
            Self::Vllm => vllm::introduced(path, body, known),
            Self::Sglang => sglang::introduced(path, body, known),
            Self::LlamaServer => llama::introduced(body, known),
        }
    }

    /// The call that has a text tokenised, as plain text and without a token in front.
    pub(super) fn tokenize(self, model: &str, text: &str) -> Call {
        match self {
            Self::Vllm | Self::Sglang => vllm::tokenize(model, text),
            Self::LlamaServer => llama::tokenize(text),
        }
    }

    /// The call that has a text read, for servers that tokenise none by itself.
    pub(super) fn read_text(self, text: &str) -> Option<Call> {
        (self == Self::Sglang).then(|| sglang::read_text(text))
    }
}

/// The ids in the answer to [`Protocol::tokenize`].
///
/// # Errors
/// [`Misread::Form`].
pub(super) fn tokenized(body: &[u8]) -> Result<Vec<u32>, Misread> {
    #[derive(Deserialize)]
    struct Tokens {
        tokens: Vec<u32>,
    }
    parse::<Tokens>(body).map(|answer| answer.tokens)
}

/// Tokens of the text of [`Protocol::read_text`], by the server's count.
///
/// # Errors
/// [`Misread::Form`].
pub(super) fn text_tokens(body: &[u8]) -> Result<u64, Misread> {
    sglang::prompt_tokens(body)
}

fn check(ask: &Ask<'_>, reading: &Reading, gives_all: bool) -> Result<(), Misread> {
    for (token, value) in &reading.logprobs {
        if !value.is_finite() || *value > ROUNDING {
            return Err(Misread::NotFinite { value: value.to_string(), token: *token });
        }
    }
    let total: f64 = reading.logprobs.values().map(|logprob| logprob.exp()).sum();
    if total > 1.0 + SUM_ROUNDING {
        let message = format!("the probabilities of {} tokens are {total}", reading.logprobs.len());
        return Err(Misread::Form(message));
    }
    let missing = ask.labels.iter().find(|label| !reading.logprobs.contains_key(label));
    match missing {
        Some(token) if gives_all => Err(Misread::Missing { token: *token }),
        Some(_) | None => Ok(()),
    }
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Misread> {
    serde_json::from_slice(body).map_err(|error| Misread::Form(error.to_string()))
}

/// Refuses an answer to another prompt than was sent.
fn check_length(ask: &Ask<'_>, read: Option<u64>) -> Result<(), Misread> {
    match read {
        Some(read) if read != ask.ids.len() as u64 => {
            Err(Misread::Length { read, sent: ask.ids.len() })
        }
        Some(_) | None => Ok(()),
    }
}

/// A number that JSON may have as null where it is none.
fn number(value: Option<f64>) -> f64 {
    value.unwrap_or(f64::NAN)
}

fn count(value: &Value) -> Option<u32> {
    value.as_u64().and_then(|count| u32::try_from(count).ok())
}

/// The name and the context of the first model of an `OpenAI`-style list.
fn first_model(body: &[u8], known: &mut Introduction) {
    let Ok(list) = parse::<Value>(body) else { return };
    let model = &list["data"][0];
    known.model = model["id"].as_str().map(str::to_owned);
    // One position is left for the token that is sampled.
    known.context_tokens = count(&model["max_model_len"]).map(|most| most.saturating_sub(1));
}

#[cfg(test)]
mod tests;
