//! llama-server's own form: `POST /completion` with the likeliest tokens of one step.

use hyper::{HeaderMap, Uri};
use serde::Deserialize;

use super::letters::Part;
use super::prompt::{MARK, Template};
use super::settings::Settings;
use super::{escaped, excerpt};
use crate::client::http::Http;
use crate::exchange::tokens;

/// Likeliest tokens that are asked for where nothing else is said.
const TOP: u32 = 64;

/// What is read of a response; the rest, which repeats the request, need not be sent.
const FIELDS: &str =
    r#"["content","completion_probabilities","tokens_evaluated","tokens_cached","timings"]"#;

/// The members of a body beside its prompt: of a question and of a prewarm.
pub(super) fn members(settings: &Settings) -> (String, String) {
    let model = settings.model.as_deref();
    let model = model.map_or(String::new(), |model| format!(",\"model\":\"{}\"", escaped(model)));
    let top = settings.top.unwrap_or(TOP);
    let shared = format!(
        "\"cache_prompt\":true,\"temperature\":0,\"stream\":false,\"response_fields\":{FIELDS}{model}"
    );
    let ask = format!(",\"n_predict\":1,\"n_probs\":{top},\"post_sampling_probs\":false,{shared}");
    (ask, format!(",\"n_predict\":0,{shared}"))
}

/// The server's own template; none where it tells none that a text can be put into.
///
/// # Errors
/// When there is no connection.
pub(super) async fn template(
    http: &Http,
    uri: &Uri,
    headers: &HeaderMap,
) -> anyhow::Result<Option<Template>> {
    #[derive(Deserialize)]
    struct Filled {
        prompt: String,
    }
    // Where a template lets a model think first, its first token would be no letter.
    let body = format!(
        "{{\"messages\":[{{\"role\":\"user\",\"content\":\"{MARK}\"}}],\
         \"chat_template_kwargs\":{{\"enable_thinking\":false}}}}"
    );
    let response = http.post(uri, headers, body.into()).await?;
    let filled = serde_json::from_slice::<Filled>(&response.body);
    let filled = filled.ok().filter(|_| response.status == 200);
    Ok(filled.and_then(|filled| Template::around(&filled.prompt)))
}

/// One response. Versions differ in how they name the tokens.
#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    completion_probabilities: Vec<Step>,
    tokens_evaluated: Option<u64>,
    tokens_cached: Option<u64>,
    timings: Option<Timings>,
}

/// One generated token.
#[derive(Deserialize)]
struct Step {
    #[serde(alias = "top_probs", alias = "probs")]
    top_logprobs: Vec<Token>,
}

/// One of the likeliest tokens.
#[derive(Deserialize)]
pub(super) struct Token {
    #[serde(rename = "token", alias = "tok_str")]
    text: String,
    logprob: Option<f64>,
    prob: Option<f64>,
}

impl Token {
    /// The token and the logarithm of its probability.
    pub(super) fn into_pair(self) -> Option<(String, f64)> {
        let logarithm = self.logprob.or(self.prob.map(f64::ln))?;
        Some((self.text, logarithm))
    }
}

/// What the model did.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Timings {
    /// Tokens of the prompt that were computed.
    prompt_n: Option<u64>,
    /// Tokens of the prompt that were found.
    cache_n: Option<u64>,
    prompt_ms: Option<f64>,
    predicted_ms: Option<f64>,
}

impl Timings {
    /// Adds to `part` what they tell of a prompt of so many tokens. `tokens_cached` of a response
    /// is what its slot holds in the end, and so not what was found.
    pub(super) fn fill(self, part: &mut Part, prompt_tokens: u64) {
        part.computed_tokens = tokens(self.prompt_n);
        let found = prompt_tokens.saturating_sub(part.computed_tokens);
        part.cached_tokens = tokens(self.cache_n.or(Some(found)));
        part.engine_ms = match (self.prompt_ms, self.predicted_ms) {
            (None, None) => None,
            (prompt, predicted) => Some(prompt.unwrap_or(0.0) + predicted.unwrap_or(0.0)),
        };
    }
}

/// Reads a response.
///
/// # Errors
/// When it is none, or has no probabilities though they are wanted.
pub(super) fn read(body: &[u8], wants_tokens: bool) -> Result<Part, String> {
    let fault = || format!("200 OK without probabilities of tokens: {}", excerpt(body));
    let Body { completion_probabilities, tokens_evaluated, tokens_cached, timings } =
        serde_json::from_slice(body).map_err(|_| fault())?;
    let mut part = Part::default();
    let prompt_tokens = tokens(tokens_evaluated);
    if let Some(timings) = timings {
        timings.fill(&mut part, prompt_tokens);
    } else {
        part.cached_tokens = tokens_cached.unwrap_or(0).min(prompt_tokens);
        part.computed_tokens = prompt_tokens - part.cached_tokens;
    }
    let step = completion_probabilities.into_iter().next();
    let likeliest = step.into_iter().flat_map(|step| step.top_logprobs);
    part.tokens = likeliest.filter_map(Token::into_pair).collect();
    if wants_tokens && part.tokens.is_empty() { Err(fault()) } else { Ok(part) }
}
