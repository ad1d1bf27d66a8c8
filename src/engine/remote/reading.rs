//! One read: as many requests as it takes to know all its labels, and the outcome that they give.
//!
//! vLLM takes 128 chosen tokens a request. A llama-server lists the most probable tokens; a label that
//! is not among them is asked for by itself, or, where many are missing, with the whole vocabulary. So
//! a label's log-probability is always the server's own number, never a bound.

use std::collections::BTreeMap;

use actors::{EngineError, Origin, RowOutcome};

use super::fleet::Fleet;
use super::protocol::{Ask, Reading, TOP};
use crate::engine::narrow;
use crate::telemetry::RemoteCall;

/// Most labels that are asked for one by one; with more the whole vocabulary is listed.
const ONE_BY_ONE_MAX: usize = 8;

/// By how much a logit is raised so that its token is what a llama-server samples: more than logits
/// differ.
const RAISE: f32 = 1_000.0;

/// One read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Read<'a> {
    pub(super) origin: Origin,
    /// The whole prompt.
    pub(super) ids: &'a [u32],
    /// Tokens of it that are the state's.
    pub(super) prefix_tokens: u32,
    /// Distinct.
    pub(super) labels: &'a [u32],
    pub(super) salt: &'a str,
    /// Tokens of the model's vocabulary.
    pub(super) vocab: u32,
}

impl<'a> Read<'a> {
    fn ask(&self, labels: &'a [u32]) -> Ask<'a> {
        let (model, slot, bias) = ("", None, None);
        Ask { model, ids: self.ids, labels, salt: self.salt, slot, top: TOP, bias }
    }
}

/// What is known of a read so far.
#[derive(Debug, Default)]
struct Known {
    logprobs: BTreeMap<u32, f64>,
    best: Option<u32>,
}

impl Known {
    fn take(&mut self, reading: Reading) {
        self.logprobs.extend(reading.logprobs);
        self.best = self.best.or(reading.best);
    }

    fn missing(&self, labels: &[u32]) -> Vec<u32> {
        labels.iter().copied().filter(|label| !self.logprobs.contains_key(label)).collect()
    }
}

/// Asks for all labels of a read.
///
/// # Errors
/// As [`Fleet::ask`]; `Forward` where the server does not tell a label at all.
pub(super) async fn read(fleet: &Fleet, read: Read<'_>) -> Result<RowOutcome, EngineError> {
    let place = (read.origin, read.prefix_tokens);
    let mut known = Known::default();
    for labels in read.labels.chunks(fleet.protocol.labels_max()) {
        let mut ask = read.ask(labels);
        if !fleet.protocol.gives_all_labels() {
            ask.bias = labels.first().map(|label| (*label, RAISE));
        }
        known.take(fleet.ask(RemoteCall::Read, place, ask).await?);
    }
    let missing = known.missing(read.labels);
    if missing.len() > ONE_BY_ONE_MAX {
        let ask = Ask { top: read.vocab, ..read.ask(&missing) };
        known.take(fleet.ask(RemoteCall::More, place, ask).await?);
    } else {
        for label in &missing {
            let labels = std::slice::from_ref(label);
            let ask = Ask { top: 1, bias: Some((*label, RAISE)), ..read.ask(labels) };
            known.take(fleet.ask(RemoteCall::More, place, ask).await?);
        }
    }
    outcome(&known, read.labels)
}

fn outcome(known: &Known, labels: &[u32]) -> Result<RowOutcome, EngineError> {
    let logprob = |label: &u32| {
        known.logprobs.get(label).copied().ok_or_else(|| {
            EngineError::Forward(format!("the server does not tell token {label}, a label"))
        })
    };
    let logprobs: Vec<f64> = labels.iter().map(logprob).collect::<Result<_, _>>()?;
    Ok(RowOutcome {
        // They are over the whole vocabulary, so together they are the label mass.
        log_mass: Some(narrow(log_sum(&logprobs))),
        greedy_is_label: known.best.is_some_and(|best| labels.contains(&best)),
        logprobs: logprobs.into_iter().map(narrow).collect(),
        // None of the servers gives states of the network.
        hidden: None,
    })
}

/// The logarithm of the sum of probabilities, from their logarithms.
fn log_sum(logprobs: &[f64]) -> f64 {
    let highest = logprobs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logprobs.iter().map(|logprob| (logprob - highest).exp()).sum();
    highest + sum.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(logprobs: &[(u32, f64)], best: Option<u32>) -> Known {
        Known { logprobs: logprobs.iter().copied().collect(), best }
    }

    #[test]
    fn label_mass_is_the_sum_over_the_labels() {
        let known = known(&[(1, 0.25_f64.ln()), (2, 0.5_f64.ln()), (9, 0.1_f64.ln())], Some(9));
        let outcome = outcome(&known, &[2, 1]).unwrap();
        let probabilities: Vec<f32> = outcome.logprobs.iter().map(|l| l.exp()).collect();
        assert!((probabilities[0] - 0.5).abs() < 1e-6 && (probabilities[1] - 0.25).abs() < 1e-6);
        assert!((outcome.log_mass.unwrap().exp() - 0.75).abs() < 1e-6);
        assert!(!outcome.greedy_is_label && outcome.hidden.is_none());
    }

    #[test]
    fn labels_that_have_no_probability_have_no_mass_and_are_no_fault() {
        let outcome = outcome(&known(&[(1, -9_999.0)], Some(1)), &[1]).unwrap();
        assert!(outcome.log_mass.is_some_and(|mass| mass < -9_000.0));
        assert!(outcome.greedy_is_label);
    }

    #[test]
    fn a_label_that_is_not_told_is_an_error_and_not_a_guess() {
        let known = known(&[(1, -1.0)], None);
        assert_eq!(known.missing(&[1, 2]), [2]);
        assert!(matches!(outcome(&known, &[1, 2]), Err(EngineError::Forward(_))));
    }
}
