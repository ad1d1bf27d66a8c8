//! Whether a server can be asked: that it has the model whose files are here, and gives what is read
//! out of its answers. Done at the start, and whenever a server comes back.
//!
//! What is checked:
//! * the context, which must not be shorter than what docket serves;
//! * the tokenizer: a few texts, tokenised by the server as plain text, must give the ids that the
//!   model's files give. A server that tokenises nothing by itself (an older `SGLang`) is asked how many
//!   tokens the texts have;
//! * the log-probabilities: of chosen tokens, over the whole vocabulary, and before anything is done to
//!   logits. The last is seen by raising one token's logit: its log-probability must stay what it was.
//!   `SGLang` takes its log-probabilities behind such a raise, which docket never asks for; there it is
//!   only seen that they are log-probabilities.
//!
//! What cannot be checked is that the weights are those of the files.

use std::time::Duration;

use thiserror::Error;

use super::endpoint::Endpoint;
use super::protocol::{
    Ask, Call, Introduction, Misread, Protocol, Reading, TOP, text_tokens, tokenized,
};
use super::wire::Answer;

/// By how much a logit is raised to see whether that shows.
const RAISE: f32 = 6.0;

/// How far two log-probabilities of one token may be apart that should be the same: servers compute a
/// prompt in other batches the second time.
const NOISE: f64 = 0.5;

/// Most of a server's answer that is repeated; it answers to docket's own texts here.
const SHOWN_CHARS: usize = 200;

/// How long a start waits between two tries.
pub(super) const TRY_EVERY: Duration = Duration::from_millis(500);

/// Most tokens whose log-probabilities are looked at.
const LABELS: usize = 4;

/// What a server must agree with.
#[derive(Debug, Clone)]
pub struct Expected {
    /// Texts and their ids by the model's files; the first is the prompt that is read. At least one, of
    /// a few tokens.
    pub texts: Vec<(String, Vec<u32>)>,
    /// Tokens of the vocabulary.
    pub vocab: u32,
    /// Longest prompt that is served, where that is set.
    pub context_tokens: Option<u32>,
    /// Bytes of keys and values for one position, by the model's configuration.
    pub kv_bytes_per_token: u64,
}

/// Why a server is not asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(super) enum CheckFault {
    /// It does not answer, or is not ready: it may be later.
    #[error("{0}")]
    Away(String),
    /// It is not what it should be.
    #[error("{0}")]
    Wrong(String),
}

/// Checks a server.
///
/// * `model`: how requests name the model, where the operator says.
pub(super) async fn check(
    endpoint: &Endpoint,
    expected: &Expected,
    model: Option<&str>,
) -> Result<Introduction, CheckFault> {
    let introduction = introduce(endpoint).await?;
    check_context(&introduction, expected)?;
    let model = model.or(introduction.model.as_deref()).unwrap_or_default();
    check_tokens(endpoint, expected, model).await?;
    check_logprobs(endpoint, expected, model).await?;
    Ok(introduction)
}

async fn introduce(endpoint: &Endpoint) -> Result<Introduction, CheckFault> {
    let mut known = Introduction::default();
    for (number, path) in endpoint.protocol.introduce().iter().enumerate() {
        let answer = answered(endpoint, &Call::get(path)).await?;
        if answer.status.is_success() {
            endpoint.protocol.introduced(path, &answer.body, &mut known);
        } else if number == 0 {
            return Err(of_status(&answer, path));
        }
    }
    if known.context_tokens.is_none() {
        let path = endpoint.protocol.introduce()[0];
        let name = endpoint.protocol.name();
        let message =
            format!("{path} does not tell how long a prompt may be: is it a {name} server?");
        return Err(CheckFault::Wrong(message));
    }
    Ok(known)
}

fn check_context(introduction: &Introduction, expected: &Expected) -> Result<(), CheckFault> {
    match (introduction.context_tokens, expected.context_tokens) {
        (Some(has), Some(needs)) if has < needs => Err(CheckFault::Wrong(format!(
            "its prompts may have {has} tokens, {needs} are served: lower --context, or raise the \
             server's"
        ))),
        _ => Ok(()),
    }
}

async fn check_tokens(
    endpoint: &Endpoint,
    expected: &Expected,
    model: &str,
) -> Result<(), CheckFault> {
    for (text, ids) in &expected.texts {
        let answer = answered(endpoint, &endpoint.protocol.tokenize(model, text)).await?;
        if answer.status.is_success() {
            let theirs = tokenized(&answer.body);
            compare(text, ids, &theirs.map_err(|misread| wrong(&misread))?)?;
            continue;
        }
        match endpoint.protocol.read_text(text) {
            Some(call) if matches!(answer.status.as_u16(), 404 | 405 | 501) => {
                let answer = success(endpoint, &call).await?;
                let count = text_tokens(&answer.body);
                compare_count(text, ids, count.map_err(|misread| wrong(&misread))?)?;
            }
            Some(_) | None => return Err(of_status(&answer, "/tokenize")),
        }
    }
    Ok(())
}

fn compare(text: &str, ours: &[u32], theirs: &[u32]) -> Result<(), CheckFault> {
    if ours == theirs {
        return Ok(());
    }
    let at = ours.iter().zip(theirs).take_while(|(our, their)| our == their).count();
    let named = |ids: &[u32]| ids.get(at).map_or_else(|| "none".to_owned(), u32::to_string);
    Err(CheckFault::Wrong(format!(
        "it has another tokenizer than the model's files here: of {text:?} token {at} is {} by the \
         server and {} by the files; give docket the files of the model that the server runs",
        named(theirs),
        named(ours)
    )))
}

/// A text that is read has the token in front that some models begin with.
fn compare_count(text: &str, ours: &[u32], theirs: u64) -> Result<(), CheckFault> {
    let ours = ours.len() as u64;
    if theirs == ours || theirs == ours + 1 {
        return Ok(());
    }
    Err(CheckFault::Wrong(format!(
        "it has another tokenizer than the model's files here: {text:?} has {theirs} tokens by the \
         server and {ours} by the files; give docket the files of the model that the server runs"
    )))
}

async fn check_logprobs(
    endpoint: &Endpoint,
    expected: &Expected,
    model: &str,
) -> Result<(), CheckFault> {
    let Some((_, ids)) = expected.texts.first() else { return Ok(()) };
    let mut labels = ids.clone();
    labels.sort_unstable();
    labels.dedup();
    labels.truncate(LABELS);
    let (salt, slot, bias) = ("", None, None);
    let ask = Ask { model, ids, labels: &labels, salt, slot, top: TOP, bias };
    let plain = reading(endpoint, &ask).await?;
    if !endpoint.protocol.shows_bias() {
        return Ok(());
    }
    let Some((token, before)) = unlikely(&plain) else { return Ok(()) };
    let labels = [token];
    let raised = Ask { labels: &labels, bias: Some((token, RAISE)), ..ask };
    let after = reading(endpoint, &raised).await?.logprobs.get(&token).copied();
    match after {
        Some(after) if (after - before).abs() < NOISE => Ok(()),
        after => {
            let after = after.map_or_else(|| "none".to_owned(), |after| format!("{after:.3}"));
            Err(CheckFault::Wrong(format!(
                "its log-probabilities are taken after logits are changed: with its logit raised by \
                 {RAISE}, token {token} has {after} instead of {before:.3}; {}",
                remedy(endpoint.protocol)
            )))
        }
    }
}

fn remedy(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Vllm => "start the server with --logprobs-mode raw_logprobs",
        Protocol::Sglang | Protocol::LlamaServer => "a build that gives those before is needed",
    }
}

/// The token that a raised logit would change most of those with a usual probability.
fn unlikely(reading: &Reading) -> Option<(u32, f64)> {
    let usual = reading.logprobs.iter().filter(|(_, logprob)| **logprob > -30.0);
    usual.min_by(|one, other| one.1.total_cmp(other.1)).map(|(token, logprob)| (*token, *logprob))
}

async fn reading(endpoint: &Endpoint, ask: &Ask<'_>) -> Result<Reading, CheckFault> {
    let answer = success(endpoint, &endpoint.protocol.ask(ask)).await?;
    endpoint.protocol.read(ask, &answer.body).map_err(|misread| match misread {
        Misread::NotFinite { .. } => {
            CheckFault::Wrong(format!("{misread}; {}", remedy(endpoint.protocol)))
        }
        misread @ (Misread::Form(_) | Misread::Missing { .. } | Misread::Length { .. }) => {
            wrong(&misread)
        }
    })
}

fn wrong(misread: &Misread) -> CheckFault {
    CheckFault::Wrong(misread.to_string())
}

/// The answer to a call that must succeed.
async fn success(endpoint: &Endpoint, call: &Call) -> Result<Answer, CheckFault> {
    let answer = answered(endpoint, call).await?;
    if answer.status.is_success() { Ok(answer) } else { Err(of_status(&answer, call.path)) }
}

async fn answered(endpoint: &Endpoint, call: &Call) -> Result<Answer, CheckFault> {
    endpoint.call(call).await.map_err(|fault| CheckFault::Away(fault.to_string()))
}

fn of_status(answer: &Answer, path: &str) -> CheckFault {
    let status = answer.status;
    let body = String::from_utf8_lossy(&answer.body);
    let shown: String = body.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect();
    let message = format!("it answers {status} to {path}: {shown}");
    match status.as_u16() {
        401 | 403 => CheckFault::Wrong(format!("{message} (see --engine-key-file)")),
        408 | 429 | 500..=599 => CheckFault::Away(message),
        _ => CheckFault::Wrong(message),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_first_token_that_differs_is_told() {
        assert_eq!(compare("a b", &[1, 2], &[1, 2]), Ok(()));
        let told = compare("a b", &[1, 2, 3], &[1, 9, 3]).unwrap_err().to_string();
        assert!(told.contains("token 1 is 9 by the server and 2 by the files"), "{told}");
        let told = compare("a b", &[1, 2], &[1]).unwrap_err().to_string();
        assert!(told.contains("token 1 is none by the server"), "{told}");
    }

    #[test]
    fn a_count_may_have_the_token_that_models_begin_with() {
        assert_eq!(compare_count("a", &[1, 2], 2), Ok(()));
        assert_eq!(compare_count("a", &[1, 2], 3), Ok(()));
        assert!(compare_count("a", &[1, 2], 4).is_err() && compare_count("a", &[1, 2], 1).is_err());
    }

    #[test]
    fn a_context_that_is_too_short_is_told_with_both_numbers() {
        let expected = |context_tokens| Expected {
            texts: Vec::new(),
            vocab: 10,
            context_tokens,
            kv_bytes_per_token: 1,
        };
        let server = Introduction { context_tokens: Some(100), ..Introduction::default() };
        assert_eq!(check_context(&server, &expected(None)), Ok(()));
        assert_eq!(check_context(&server, &expected(Some(100))), Ok(()));
        let told = check_context(&server, &expected(Some(101))).unwrap_err().to_string();
        assert!(told.contains("100 tokens, 101 are served"), "{told}");
    }

    #[test]
    fn the_token_that_is_raised_is_the_least_likely_usual_one() {
        let logprobs = BTreeMap::from([(1, -0.1), (2, -9.0), (3, -9_999.0), (4, -4.0)]);
        let reading = Reading { logprobs, best: None, cached: None };
        assert_eq!(unlikely(&reading).map(|(token, _)| token), Some(2));
    }
}
