//! What the stubs take and how they answer: each protocol's fields, all of them and no others.

use std::collections::{BTreeMap, BTreeSet};

use docket::engine::remote::Protocol;
use docket::prompt::tokens::TextTokenizer as _;
use serde_json::{Value, json};

use super::stub::{Incoming, Nature, Record};
use super::truth::{VOCAB, best, biased, ids, logprobs};

/// A reading that was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) prompt: Vec<u32>,
    /// Tokens whose log-probabilities are asked for; of a llama-server as many as it is to list.
    pub(crate) labels: Vec<u32>,
    pub(crate) top: u64,
    pub(crate) salt: String,
    pub(crate) slot: Option<u64>,
    pub(crate) bias: Option<(u32, i64)>,
}

/// An answer, and the reading that it is to, if it is to one.
pub(crate) struct Replied {
    pub(crate) status: u16,
    pub(crate) body: Value,
    pub(crate) asked: Option<Asked>,
}

impl Replied {
    fn plain(body: Value) -> Self {
        Self { status: 200, body, asked: None }
    }

    fn status(status: u16) -> Self {
        Self { status, body: json!({"error": "no"}), asked: None }
    }
}

pub(crate) fn answer(incoming: &Incoming, nature: &Nature, record: &mut Record) -> Replied {
    let wanted = nature.key.map(|key| format!("Bearer {key}"));
    if wanted.is_some() && incoming.authorization != wanted {
        return Replied::status(401);
    }
    if wanted.is_none() && incoming.authorization.is_some() {
        record.faults.push("a key is sent that nobody asked for".to_owned());
    }
    let body: Value = serde_json::from_slice(&incoming.body).unwrap_or(Value::Null);
    let route = (incoming.method.as_str(), incoming.path.as_str());
    match (nature.protocol, route) {
        (_, ("GET", "/health")) => Replied::plain(json!({"status": "ok"})),
        (Protocol::Vllm | Protocol::Sglang, ("GET", "/v1/models")) => {
            Replied::plain(json!({"data": [{"id": "stub", "max_model_len": nature.context}]}))
        }
        (Protocol::Vllm, ("GET", "/metrics")) => Replied::plain(Value::String(
            "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"1000\"} 1.0\n".to_owned(),
        )),
        (Protocol::Sglang, ("GET", "/get_server_info")) => {
            Replied::plain(json!({"max_total_num_tokens": 16_000, "max_req_input_len": 10_000}))
        }
        (Protocol::LlamaServer, ("GET", "/props")) => Replied::plain(json!({
            "default_generation_settings": {"n_ctx": nature.context}, "total_slots": nature.slots,
            "model_alias": "stub",
        })),
        (_, ("POST", "/tokenize")) if nature.tokenizes => tokenize(&body, nature, record),
        (Protocol::Vllm, ("POST", "/v1/completions"))
        | (Protocol::Sglang, ("POST", "/generate"))
        | (Protocol::LlamaServer, ("POST", "/completion")) => read(&body, nature, record),
        _ => Replied::status(404),
    }
}

fn tokenize(body: &Value, nature: &Nature, record: &mut Record) -> Replied {
    let (text, fields) = match nature.protocol {
        Protocol::LlamaServer => ("content", vec!["content", "add_special", "parse_special"]),
        Protocol::Vllm | Protocol::Sglang => {
            ("prompt", vec!["model", "prompt", "add_special_tokens"])
        }
    };
    check(body, &fields, &[], record);
    let mut tokens = tokens_of(body[text].as_str().unwrap_or_default(), nature);
    if nature.is_foreign {
        tokens[3] += 1;
    }
    Replied::plain(json!({"count": tokens.len(), "tokens": tokens, "max_model_len": 1}))
}

/// A text's tokens.
fn tokens_of(text: &str, nature: &Nature) -> Vec<u32> {
    nature.tokenizer.as_ref().map_or_else(|| ids(text), |tokenizer| tokenizer.encode(text))
}

/// Notes fields that are missing, and those that nobody knows.
fn check(body: &Value, needed: &[&str], may: &[&str], record: &mut Record) {
    let Some(object) = body.as_object() else {
        record.faults.push(format!("{body} is no object"));
        return;
    };
    let found: BTreeSet<&str> = object.keys().map(String::as_str).collect();
    let missing = needed.iter().filter(|field| !found.contains(**field));
    record.faults.extend(missing.map(|field| format!("{field} is missing")));
    let known: BTreeSet<&str> = needed.iter().chain(may).copied().collect();
    record.faults.extend(found.difference(&known).map(|field| format!("{field} is unknown")));
}

/// Notes a field that is not as it must be.
fn must(body: &Value, field: &str, value: &Value, record: &mut Record) {
    if body.pointer(field) != Some(value) {
        record.faults.push(format!("{field} is not {value} in {body}"));
    }
}

fn numbers(value: &Value) -> Vec<u32> {
    let numbers = value.as_array().into_iter().flatten();
    numbers.map(|number| u32::try_from(number.as_u64().unwrap()).unwrap()).collect()
}

fn asked(body: &Value, nature: &Nature, record: &mut Record) -> Asked {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match nature.protocol {
        Protocol::Vllm => {
            let labels = numbers(&body["logprob_token_ids"]);
            let of_reads = ["logprobs", "logprob_token_ids", "return_tokens_as_token_ids"];
            let needed = ["model", "prompt", "max_tokens", "temperature"];
            let needed = [&needed[..], if labels.is_empty() { &[] } else { &of_reads }].concat();
            check(body, &needed, &["cache_salt", "logit_bias"], record);
            must(body, "/model", &json!("stub"), record);
            must(body, "/max_tokens", &json!(1), record);
            must(body, "/temperature", &json!(0), record);
            if !labels.is_empty() {
                must(body, "/logprobs", &json!(1), record);
                must(body, "/return_tokens_as_token_ids", &json!(true), record);
            }
            let bias = body["logit_bias"].as_object().and_then(|bias| {
                let (token, raise) = bias.iter().next()?;
                #[expect(clippy::cast_possible_truncation, reason = "it is a small whole number")]
                Some((token.parse().ok()?, raise.as_f64()? as i64))
            });
            let (prompt, salt) = (numbers(&body["prompt"]), text(&body["cache_salt"]));
            Asked { prompt, labels, top: 0, salt, slot: None, bias }
        }
        Protocol::Sglang => {
            let labels = numbers(&body["token_ids_logprob"]);
            let of_reads = ["return_logprob", "token_ids_logprob", "logprob_start_len"];
            let needed = ["input_ids", "sampling_params"];
            let needed = [&needed[..], if labels.is_empty() { &[] } else { &of_reads }].concat();
            check(body, &needed, &["extra_key"], record);
            let sampling = json!({"max_new_tokens": 1, "temperature": 0, "ignore_eos": true});
            must(body, "/sampling_params", &sampling, record);
            if !labels.is_empty() {
                must(body, "/return_logprob", &json!(true), record);
                must(body, "/logprob_start_len", &json!(-1), record);
            }
            let (prompt, salt) = (numbers(&body["input_ids"]), text(&body["extra_key"]));
            Asked { prompt, labels, top: 0, salt, slot: None, bias: None }
        }
        Protocol::LlamaServer => {
            let needed = [
                "prompt",
                "n_predict",
                "n_probs",
                "cache_prompt",
                "post_sampling_probs",
                "temperature",
                "response_fields",
            ];
            check(body, &needed, &["id_slot", "logit_bias"], record);
            must(body, "/n_predict", &json!(1), record);
            must(body, "/cache_prompt", &json!(true), record);
            must(body, "/post_sampling_probs", &json!(false), record);
            must(body, "/temperature", &json!(0), record);
            let bias = body["logit_bias"][0].as_array().and_then(|bias| {
                #[expect(clippy::cast_possible_truncation, reason = "it is a small whole number")]
                Some((u32::try_from(bias[0].as_u64()?).ok()?, bias[1].as_f64()? as i64))
            });
            let (prompt, top) = (numbers(&body["prompt"]), body["n_probs"].as_u64().unwrap_or(0));
            let slot = body["id_slot"].as_u64();
            Asked { prompt, labels: Vec::new(), top, salt: String::new(), slot, bias }
        }
    }
}

fn read(body: &Value, nature: &Nature, record: &mut Record) -> Replied {
    if nature.protocol == Protocol::Sglang && body["text"].is_string() {
        let mut tokens = tokens_of(body["text"].as_str().unwrap(), nature);
        tokens.truncate(if nature.is_foreign { 2 } else { usize::MAX });
        return Replied::plain(json!({"meta_info": {"prompt_tokens": tokens.len()}}));
    }
    let asked = asked(body, nature, record);
    if asked.prompt.is_empty() || asked.prompt.len() >= nature.context as usize {
        return Replied { asked: Some(asked), ..Replied::status(400) };
    }
    let cached = cached(&asked, nature.protocol, record);
    let place = (asked.salt.clone(), asked.slot, asked.prompt.clone());
    if nature.protocol == Protocol::LlamaServer {
        // A slot holds what it read last.
        record.cache.retain(|(_, slot, _)| *slot != asked.slot);
    }
    record.cache.push(place);
    let bias = asked.bias.map(|(token, raise)| (token, raise as f64));
    let raw = logprobs(&asked.prompt);
    let sampled = best(&biased(&asked.prompt, bias));
    let shown = if nature.is_processed { biased(&asked.prompt, bias) } else { raw };
    let body = match nature.protocol {
        Protocol::Vllm => vllm(&asked, &shown, sampled, cached),
        Protocol::Sglang => sglang(&asked, &shown, sampled, cached),
        Protocol::LlamaServer => llama(&asked, &shown, sampled, cached),
    };
    Replied { status: 200, body, asked: Some(asked) }
}

/// Tokens of the prompt that were read before, under the same salt and on the same slot.
fn cached(asked: &Asked, protocol: Protocol, record: &Record) -> usize {
    let common = |prompt: &Vec<u32>| {
        prompt.iter().zip(&asked.prompt).take_while(|(one, other)| one == other).count()
    };
    let held =
        record.cache.iter().filter(|(salt, slot, _)| (salt, slot) == (&asked.salt, &asked.slot));
    let longest = held.map(|(_, _, prompt)| common(prompt)).max().unwrap_or(0);
    let longest = longest.min(asked.prompt.len() - 1);
    if protocol == Protocol::Vllm { longest / 16 * 16 } else { longest }
}

fn vllm(asked: &Asked, shown: &[f64], sampled: u32, cached: usize) -> Value {
    let named = |token: u32| (format!("token_id:{token}"), shown[token as usize]);
    let listed: BTreeMap<String, f64> =
        asked.labels.iter().copied().chain([sampled]).map(named).collect();
    let logprobs = json!({
        "text_offset": [0], "token_logprobs": [shown[sampled as usize]],
        "tokens": [format!("token_id:{sampled}")], "top_logprobs": [listed],
    });
    let logprobs = if asked.labels.is_empty() { Value::Null } else { logprobs };
    let prompt = asked.prompt.len();
    json!({
        "id": "cmpl-1", "object": "text_completion", "created": 1, "model": "stub",
        "choices": [{"index": 0, "text": "x", "logprobs": logprobs, "finish_reason": "length"}],
        "usage": {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1,
                  "prompt_tokens_details": {"cached_tokens": cached}},
    })
}

fn sglang(asked: &Asked, shown: &[f64], sampled: u32, cached: usize) -> Value {
    let entry = |token: &u32| json!([shown[*token as usize], token, null]);
    let listed: Vec<Value> = asked.labels.iter().map(entry).collect();
    json!({
        "text": "x", "output_ids": [sampled],
        "meta_info": {
            "id": "1", "finish_reason": {"type": "length", "length": 1},
            "prompt_tokens": asked.prompt.len(), "completion_tokens": 1, "cached_tokens": cached,
            "output_token_logprobs": [entry(&sampled)], "output_token_ids_logprobs": [listed],
        },
    })
}

fn llama(asked: &Asked, shown: &[f64], sampled: u32, cached: usize) -> Value {
    let mut order: Vec<u32> = (0..VOCAB).collect();
    order.sort_by(|one, other| shown[*other as usize].total_cmp(&shown[*one as usize]));
    order.truncate(usize::try_from(asked.top).unwrap());
    let entry = |token: u32| json!({"id": token, "token": "x", "bytes": [120], "logprob": shown[token as usize]});
    let mut own = entry(sampled);
    own["top_logprobs"] = order.into_iter().map(entry).collect();
    let probabilities = if asked.top == 0 { json!([]) } else { json!([own]) };
    json!({
        "completion_probabilities": probabilities, "tokens_evaluated": asked.prompt.len(),
        "truncated": false, "timings/cache_n": cached,
        "timings/prompt_n": asked.prompt.len() - cached,
    })
}

/// The answer with one token less of the prompt.
pub(crate) fn one_less(body: &Value) -> Value {
    let mut body = body.clone();
    for place in ["/usage/prompt_tokens", "/meta_info/prompt_tokens", "/tokens_evaluated"] {
        if let Some(count) = body.pointer_mut(place) {
            *count = (count.as_u64().unwrap() - 1).into();
        }
    }
    body
}
