//! vLLM: `POST /v1/completions`.
//!
//! `logprob_token_ids` gives the log-probabilities of exactly these tokens over the whole vocabulary;
//! it needs `logprobs`, and gives the sampled token's as well. `prompt_logprobs` is never sent: with it
//! a prompt bypasses the prefix cache. Source: vllm-project/vllm,
//! `vllm/entrypoints/openai/completion/protocol.py` and `serving.py`, `vllm/sampling_params.py`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Ask, Call, Introduction, Misread, Reading, check_length, first_model, number, parse};

/// `MAX_LOGPROB_TOKEN_IDS` of vLLM.
pub(super) const LABELS_MAX: usize = 128;

/// How a token stands in an answer with `return_tokens_as_token_ids`.
const TOKEN: &str = "token_id:";

pub(super) fn ask(ask: &Ask<'_>) -> Call {
    let is_read = !ask.labels.is_empty();
    let body = Body {
        model: Some(ask.model).filter(|model| !model.is_empty()),
        prompt: ask.ids,
        max_tokens: 1,
        temperature: 0,
        logprobs: is_read.then_some(1),
        logprob_token_ids: is_read.then_some(ask.labels),
        return_tokens_as_token_ids: is_read.then_some(true),
        cache_salt: Some(ask.salt).filter(|salt| !salt.is_empty()),
        logit_bias: ask.bias.map(|bias| BTreeMap::from([bias])),
    };
    Call::post("/v1/completions", &body)
}

#[derive(Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    prompt: &'a [u32],
    max_tokens: u32,
    temperature: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprob_token_ids: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_tokens_as_token_ids: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_salt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logit_bias: Option<BTreeMap<u32, f32>>,
}

#[derive(Deserialize)]
struct Answer {
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    logprobs: Option<Logprobs>,
}

#[derive(Deserialize)]
struct Logprobs {
    tokens: Vec<String>,
    top_logprobs: Vec<Option<BTreeMap<String, Option<f64>>>>,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: Option<u64>,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u32>,
}

pub(super) fn read(ask: &Ask<'_>, body: &[u8]) -> Result<Reading, Misread> {
    let Answer { choices, usage } = parse(body)?;
    check_length(ask, usage.as_ref().and_then(|usage| usage.prompt_tokens))?;
    let cached = usage.and_then(|usage| usage.prompt_tokens_details?.cached_tokens);
    let choice = choices.into_iter().next();
    let choice = choice.ok_or_else(|| Misread::Form("there is no choice".to_owned()))?;
    if ask.labels.is_empty() {
        return Ok(Reading { logprobs: BTreeMap::new(), best: None, cached });
    }
    let none = || Misread::Missing { token: ask.labels[0] };
    let Logprobs { tokens, top_logprobs } = choice.logprobs.ok_or_else(none)?;
    let listed = top_logprobs.into_iter().next().flatten().ok_or_else(none)?;
    let mut logprobs = BTreeMap::new();
    for (name, value) in listed {
        logprobs.insert(token(&name)?, number(value));
    }
    // With temperature 0 the sampled token is the most probable one.
    let best = tokens.first().map(|name| token(name)).transpose()?;
    Ok(Reading { logprobs, best, cached })
}

fn token(name: &str) -> Result<u32, Misread> {
    let id = name.strip_prefix(TOKEN).and_then(|id| id.parse().ok());
    id.ok_or_else(|| {
        let shown: String = name.chars().take(40).collect();
        Misread::Form(format!("{shown:?} is no token by its id"))
    })
}

pub(super) fn tokenize(model: &str, text: &str) -> Call {
    let model = Some(model).filter(|model| !model.is_empty());
    Call::post("/tokenize", &TextBody { model, prompt: text, add_special_tokens: false })
}

#[derive(Serialize)]
struct TextBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    prompt: &'a str,
    add_special_tokens: bool,
}

pub(super) fn introduced(path: &str, body: &[u8], known: &mut Introduction) {
    if path == "/v1/models" {
        first_model(body, known);
    } else {
        known.kv_tokens = std::str::from_utf8(body).ok().and_then(cache_tokens);
    }
}

/// Token positions of the cache, from the labels of `vllm:cache_config_info`.
fn cache_tokens(metrics: &str) -> Option<u64> {
    let line = metrics.lines().find(|line| line.starts_with("vllm:cache_config_info{"))?;
    let label = |name: &str| -> Option<u64> {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        rest.split('"').next()?.parse().ok()
    };
    label("num_gpu_blocks")?.checked_mul(label("block_size")?)
}
