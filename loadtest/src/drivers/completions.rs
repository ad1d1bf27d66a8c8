//! `OpenAI`'s `POST /v1/completions` with `logprobs`, as vLLM, `SGLang` and others have it.

use std::collections::BTreeMap;

use anyhow::Context as _;
use hyper::{HeaderMap, Uri};
use serde::Deserialize;

use super::letters::Part;
use super::llama_server::{Timings, Token};
use super::settings::Settings;
use super::{escaped, excerpt};
use crate::client::http::Http;
use crate::exchange::tokens;

/// Likeliest tokens that are asked for where nothing else is said: the most that vLLM gives without
/// being told to.
const TOP: u32 = 20;

/// The members of a body beside its prompt.
pub(super) fn members(settings: &Settings, model: &str) -> String {
    let (model, top) = (escaped(model), settings.top.unwrap_or(TOP));
    format!(",\"model\":\"{model}\",\"max_tokens\":1,\"temperature\":0,\"logprobs\":{top}")
}

/// The first model that the server lists.
///
/// # Errors
/// When it lists none.
pub(super) async fn model(http: &Http, uri: &Uri, headers: &HeaderMap) -> anyhow::Result<String> {
    #[derive(Deserialize)]
    struct List {
        data: Vec<Entry>,
    }
    #[derive(Deserialize)]
    struct Entry {
        id: String,
    }
    let response = http.get(uri, headers).await?;
    let list = serde_json::from_slice::<List>(&response.body).ok();
    let first = list.and_then(|list| list.data.into_iter().next());
    let first = first.with_context(|| {
        format!("{uri} lists no model, so --model must name it: {}", excerpt(&response.body))
    })?;
    Ok(first.id)
}

#[derive(Deserialize)]
struct Body {
    choices: Vec<Choice>,
    usage: Option<Usage>,
    /// llama-server's.
    timings: Option<Timings>,
}

#[derive(Deserialize)]
struct Choice {
    logprobs: Option<Logprobs>,
}

/// A map by token for each step; llama-server's has lists, as the chat form.
#[derive(Deserialize)]
struct Logprobs {
    top_logprobs: Option<Vec<Option<BTreeMap<String, f64>>>>,
    content: Option<Vec<Step>>,
}

#[derive(Deserialize)]
struct Step {
    top_logprobs: Vec<Token>,
}

#[derive(Deserialize)]
struct Usage {
    #[serde(default)]
    prompt_tokens: u64,
    prompt_tokens_details: Option<Details>,
}

#[derive(Deserialize)]
struct Details {
    cached_tokens: Option<u64>,
}

impl Logprobs {
    fn first(self) -> Vec<(String, f64)> {
        let by_token = self.top_logprobs.and_then(|steps| steps.into_iter().next().flatten());
        if let Some(by_token) = by_token {
            return by_token.into_iter().collect();
        }
        let step = self.content.and_then(|steps| steps.into_iter().next());
        let tokens = step.into_iter().flat_map(|step| step.top_logprobs);
        tokens.filter_map(Token::into_pair).collect()
    }
}

/// Reads a response. Where it does not tell what was found of a prompt, neither that nor what was
/// computed is known, and both are 0.
///
/// # Errors
/// When it is none, or has no probabilities.
pub(super) fn read(body: &[u8]) -> Result<Part, String> {
    let fault = || format!("200 OK without logprobs: {}", excerpt(body));
    let Body { choices, usage, timings } = serde_json::from_slice(body).map_err(|_| fault())?;
    let mut part = Part::default();
    let prompt_tokens = tokens(usage.as_ref().map(|usage| usage.prompt_tokens));
    let details = usage.and_then(|usage| usage.prompt_tokens_details);
    if let Some(timings) = timings {
        timings.fill(&mut part, prompt_tokens);
    } else if let Some(cached) = details.and_then(|details| details.cached_tokens) {
        part.cached_tokens = cached.min(prompt_tokens);
        part.computed_tokens = prompt_tokens - part.cached_tokens;
    }
    let logprobs = choices.into_iter().next().and_then(|choice| choice.logprobs);
    part.tokens = logprobs.map_or(Vec::new(), Logprobs::first);
    if part.tokens.is_empty() { Err(fault()) } else { Ok(part) }
}
