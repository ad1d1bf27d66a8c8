//! llama.cpp's server: `POST /completion`.
//!
//! With `post_sampling_probs` false it lists the `n_probs` most probable tokens with probabilities over
//! the whole vocabulary, taken before anything is sampled, and the sampled token's own. So a token that
//! is not listed can still be read exactly: its logit is raised until it is what is sampled
//! ([`Ask::bias`]). A token whose text is no whole character has no entry at all, which is why a label
//! is sampled in every request. Source: ggml-org/llama.cpp, `tools/server/server-context.cpp`
//! (`populate_token_probs`, `process_token`) and `server-task.cpp` (`probs_vector_to_json`).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Ask, Call, Introduction, Misread, Reading, check_length, count, parse};

/// What is wanted of an answer, which otherwise has the whole prompt and all settings in it.
const FIELDS: [&str; 5] = [
    "completion_probabilities",
    "tokens_evaluated",
    "truncated",
    "timings/cache_n",
    "timings/prompt_n",
];

pub(super) fn ask(ask: &Ask<'_>) -> Call {
    let body = Body {
        prompt: ask.ids,
        n_predict: 1,
        n_probs: if ask.labels.is_empty() { 0 } else { ask.top },
        cache_prompt: true,
        post_sampling_probs: false,
        temperature: 0,
        response_fields: FIELDS,
        id_slot: ask.slot,
        logit_bias: ask.bias.map(|bias| [bias]),
    };
    Call::post("/completion", &body)
}

#[derive(Serialize)]
struct Body<'a> {
    prompt: &'a [u32],
    n_predict: u32,
    n_probs: u32,
    cache_prompt: bool,
    post_sampling_probs: bool,
    temperature: u32,
    response_fields: [&'static str; 5],
    #[serde(skip_serializing_if = "Option::is_none")]
    id_slot: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logit_bias: Option<[(u32, f32); 1]>,
}

#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    completion_probabilities: Vec<Sampled>,
    tokens_evaluated: Option<u64>,
    #[serde(default)]
    truncated: bool,
    #[serde(rename = "timings/cache_n")]
    cached: Option<u32>,
    #[serde(rename = "timings/prompt_n")]
    computed: Option<u32>,
}

#[derive(Deserialize)]
struct Sampled {
    id: u32,
    logprob: Option<f64>,
    #[serde(default)]
    top_logprobs: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: u32,
    logprob: Option<f64>,
}

pub(super) fn read(ask: &Ask<'_>, body: &[u8]) -> Result<Reading, Misread> {
    let answer: Answer = parse(body)?;
    if answer.truncated {
        return Err(Misread::Form("the server cut the prompt".to_owned()));
    }
    check_length(ask, answer.tokens_evaluated)?;
    // Servers before the count of cached tokens tell how many they computed.
    let sent = u32::try_from(ask.ids.len()).unwrap_or(u32::MAX);
    let cached = answer.cached.or(answer.computed.map(|computed| sent.saturating_sub(computed)));
    let mut logprobs = BTreeMap::new();
    if ask.labels.is_empty() {
        return Ok(Reading { logprobs, best: None, cached });
    }
    let sampled = answer.completion_probabilities.into_iter().next();
    let sampled = sampled.ok_or(Misread::Missing { token: ask.labels[0] })?;
    let best = sampled.top_logprobs.first().map(|listed| listed.id);
    let own = Listed { id: sampled.id, logprob: sampled.logprob };
    for Listed { id, logprob } in sampled.top_logprobs.into_iter().chain([own]) {
        // The server has the lowest float for the logarithm of 0.
        logprobs.insert(id, logprob.map_or(f64::NAN, |logprob| logprob.max(LEAST)));
    }
    Ok(Reading { logprobs, best, cached })
}

/// Log-probabilities below are the same as none.
const LEAST: f64 = -9_999.0;

pub(super) fn tokenize(text: &str) -> Call {
    Call::post("/tokenize", &TextBody { content: text, add_special: false, parse_special: false })
}

#[derive(Serialize)]
struct TextBody<'a> {
    content: &'a str,
    add_special: bool,
    parse_special: bool,
}

pub(super) fn introduced(body: &[u8], known: &mut Introduction) {
    let Ok(props) = parse::<Value>(body) else { return };
    let context = count(&props["default_generation_settings"]["n_ctx"]);
    known.model = props["model_alias"].as_str().map(str::to_owned);
    // One position is left for the token that is sampled.
    known.context_tokens = context.map(|most| most.saturating_sub(1));
    known.slots = props["total_slots"].as_u64().and_then(|slots| usize::try_from(slots).ok());
    let slots = known.slots.unwrap_or(1) as u64;
    known.kv_tokens = context.map(|tokens| u64::from(tokens) * slots);
}
