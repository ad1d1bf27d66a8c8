//! What the model of the stubs says: a distribution over its vocabulary, from a hash of the prompt.

use docket::engine::remote::Expected;
use sha2::{Digest, Sha256};

/// Tokens of the vocabulary; a llama-server lists 128 at first.
pub(crate) const VOCAB: u32 = 400;

/// Longest prompt of the stubs, with the token that is sampled.
pub(crate) const CONTEXT: u32 = 512;

/// Natural log-probabilities behind a prompt: `[VOCAB]`.
pub(crate) fn logprobs(prompt: &[u32]) -> Vec<f64> {
    biased(prompt, None)
}

/// The same with one logit raised.
pub(crate) fn biased(prompt: &[u32], bias: Option<(u32, f64)>) -> Vec<f64> {
    let mut hash = Sha256::new();
    for token in prompt {
        hash.update(token.to_le_bytes());
    }
    let hash = hash.finalize();
    let mut logits: Vec<f64> = (0..VOCAB).map(|token| logit(&hash, token)).collect();
    if let Some((token, raise)) = bias {
        logits[token as usize] += raise;
    }
    let highest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|logit| (logit - highest).exp()).sum();
    let total = highest + sum.ln();
    logits.iter().map(|logit| logit - total).collect()
}

/// Uniform in -6 to 2, so that tokens differ as they do behind a prompt.
fn logit(prompt: &[u8], token: u32) -> f64 {
    let digest = Sha256::new().chain_update(prompt).chain_update(token.to_le_bytes()).finalize();
    let word = u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]]);
    f64::from(word) / f64::from(u32::MAX) * 8.0 - 6.0
}

/// The most probable token.
pub(crate) fn best(logprobs: &[f64]) -> u32 {
    let order = |one: &(usize, &f64), other: &(usize, &f64)| one.1.total_cmp(other.1);
    let best = logprobs.iter().enumerate().max_by(order).map(|(token, _)| token);
    u32::try_from(best.unwrap()).unwrap()
}

/// A text's tokens are its bytes.
pub(crate) fn ids(text: &str) -> Vec<u32> {
    text.bytes().map(u32::from).collect()
}

/// What the engine expects of a server that has this model.
pub(crate) fn expected() -> Expected {
    let texts = ["The first text.", "and another"].map(|text| (text.to_owned(), ids(text)));
    Expected { texts: texts.into(), vocab: VOCAB, context_tokens: None, kv_bytes_per_token: 100 }
}
