//! `SGLang`: `POST /generate`.
//!
//! `token_ids_logprob` gives the log-probabilities of chosen tokens at each generated position, and
//! `logprob_start_len` -1 none of the prompt's, which would keep the radix cache from being used. At
//! temperature 0 they are those of the logits as they are. Source: sgl-project/sglang,
//! `python/sglang/srt/managers/io_struct.py`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    Ask, Call, Introduction, Misread, Reading, check_length, count, first_model, number, parse,
};

pub(super) fn ask(ask: &Ask<'_>) -> Call {
    let is_read = !ask.labels.is_empty();
    let body = Body {
        input_ids: Some(ask.ids),
        text: None,
        sampling_params: SAMPLING,
        return_logprob: is_read.then_some(true),
        token_ids_logprob: is_read.then_some(ask.labels),
        logprob_start_len: is_read.then_some(-1),
        extra_key: Some(ask.salt).filter(|salt| !salt.is_empty()),
    };
    Call::post("/generate", &body)
}

#[derive(Default, Serialize)]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    input_ids: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    sampling_params: Sampling,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_logprob: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_ids_logprob: Option<&'a [u32]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprob_start_len: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_key: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct Sampling {
    max_new_tokens: u32,
    temperature: u32,
    ignore_eos: bool,
}

/// One token, the most probable one, whatever it is.
const SAMPLING: Sampling = Sampling { max_new_tokens: 1, temperature: 0, ignore_eos: true };

pub(super) fn read(ask: &Ask<'_>, body: &[u8]) -> Result<Reading, Misread> {
    let answer: Value = parse(body)?;
    let meta = &answer["meta_info"];
    if !meta.is_object() {
        return Err(Misread::Form("there is no meta_info".to_owned()));
    }
    let reason = &meta["finish_reason"];
    if reason["type"] == "abort" {
        return Err(Misread::Form("the request was aborted by the server".to_owned()));
    }
    check_length(ask, meta["prompt_tokens"].as_u64())?;
    let cached = count(&meta["cached_tokens"]);
    if ask.labels.is_empty() {
        return Ok(Reading { logprobs: BTreeMap::new(), best: None, cached });
    }
    let listed = meta["output_token_ids_logprobs"][0].as_array();
    let listed = listed.ok_or(Misread::Missing { token: ask.labels[0] })?;
    let mut logprobs = BTreeMap::new();
    for entry in listed {
        let (token, logprob) = pair(entry)?;
        logprobs.insert(token, logprob);
    }
    let sampled = &meta["output_token_logprobs"][0];
    let best = if sampled.is_null() { None } else { Some(pair(sampled)?.0) };
    Ok(Reading { logprobs, best, cached })
}

/// `[log-probability, token, text or null]`.
fn pair(entry: &Value) -> Result<(u32, f64), Misread> {
    let token = count(&entry[1]);
    let token = token.ok_or_else(|| Misread::Form("an entry has no token".to_owned()))?;
    Ok((token, number(entry[0].as_f64())))
}

pub(super) fn introduced(path: &str, body: &[u8], known: &mut Introduction) {
    if path == "/v1/models" {
        first_model(body, known);
        return;
    }
    let Ok(server) = parse::<Value>(body) else { return };
    known.kv_tokens = server["max_total_num_tokens"].as_u64();
    if let Some(most) = count(&server["max_req_input_len"]) {
        let most = most.saturating_sub(1);
        known.context_tokens = Some(known.context_tokens.map_or(most, |known| known.min(most)));
    }
}

pub(super) fn read_text(text: &str) -> Call {
    let body = Body { text: Some(text), sampling_params: SAMPLING, ..Body::default() };
    Call::post("/generate", &body)
}

pub(super) fn prompt_tokens(body: &[u8]) -> Result<u64, Misread> {
    let answer: Value = parse(body)?;
    let tokens = answer["meta_info"]["prompt_tokens"].as_u64();
    tokens.ok_or_else(|| Misread::Form("there is no count of prompt tokens".to_owned()))
}
