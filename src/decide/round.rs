//! One round of a decision's reads: rendered together, checked together, given back together.

use std::sync::Arc;

use actors::{DecisionMeta, EngineError, Prefix, ReadError, ReadOutcome, ReadSpec};

use super::asked::Asked;
use crate::error::{DecideError, Problem};
use crate::prompt::Prompter;
use crate::prompt::tokens::off_thread;
use crate::readout::LabelReading;

/// Reads of one round: whose they are, and the reads themselves.
#[derive(Debug)]
pub(super) struct Round {
    /// Number of reads of each question, in the questions' order.
    reads: Vec<usize>,
    /// All reads, question after question; none once everything is decided.
    pub(super) specs: Vec<ReadSpec>,
}

impl Round {
    /// Renders what the questions want next, off the workers where they have much text.
    pub(super) async fn render(prompter: &Arc<Prompter>, asked: Vec<Asked>) -> (Vec<Asked>, Self) {
        let prompter = Arc::clone(prompter);
        off_thread(asked.iter().map(Asked::text_bytes).sum(), move || {
            let mut round = Self { reads: Vec::new(), specs: Vec::new() };
            for Asked { question, reading } in &asked {
                let wanted = reading.wanted();
                round.reads.push(wanted.len());
                round.specs.extend(wanted.iter().map(|shown| prompter.suffix(question, shown)));
            }
            (asked, round)
        })
        .await
    }

    /// What admission must know: the reads up to `suffix_tokens` long.
    pub(super) fn short(&self, meta: &DecisionMeta, suffix_tokens: u32) -> DecisionMeta {
        let lengths = self.specs.iter().map(|spec| spec.suffix.len());
        let short: Vec<usize> =
            lengths.filter(|tokens| *tokens <= suffix_tokens as usize).collect();
        DecisionMeta {
            first_reads: short.len(),
            first_tokens: short.iter().map(|tokens| *tokens as u64).sum(),
            suffix_tokens_max: u32::try_from(short.into_iter().max().unwrap_or(1))
                .unwrap_or(u32::MAX),
            ..meta.clone()
        }
    }

    /// Refuses the decision when one of its prompts is longer than the context.
    pub(super) fn check_lengths(
        &self,
        asked: &[Asked],
        prefix: &Prefix,
        tokens_max: u32,
    ) -> Result<(), DecideError> {
        let state = prefix.tokens() as usize;
        let mut specs = self.specs.iter();
        let mut problems = Vec::new();
        for (asked, reads) in asked.iter().zip(&self.reads) {
            let longest = specs.by_ref().take(*reads).map(|spec| spec.suffix.len()).max();
            let question = longest.unwrap_or(0);
            if state + question <= tokens_max as usize {
                continue;
            }
            let is_state = state >= tokens_max as usize;
            let path = if is_state {
                vec!["state".into()]
            } else {
                vec!["questions".into(), asked.question.id.as_str().into()]
            };
            let total = state + question;
            problems.push(Problem {
                path,
                code: "too_long",
                message: format!(
                    "the prompt is {total} tokens (state {state}, question {question}), at most \
                     {tokens_max} fit"
                ),
            });
            if is_state {
                break;
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(DecideError::Invalid(problems)) }
    }

    /// Gives each question the outcomes of its reads.
    pub(super) fn absorb(
        &self,
        asked: &mut [Asked],
        outcomes: Vec<ReadOutcome>,
    ) -> Result<(), DecideError> {
        let mut outcomes = outcomes.into_iter();
        for (asked, reads) in asked.iter_mut().zip(&self.reads).filter(|(_, reads)| **reads > 0) {
            let readings = outcomes.by_ref().take(*reads).map(|outcome| LabelReading {
                logprobs: outcome.row.logprobs,
                log_mass: outcome.row.log_mass,
                greedy_is_label: outcome.row.greedy_is_label,
            });
            let readings = readings.collect();
            let lost = |_| DecideError::Read(ReadError::Engine(EngineError::NonFinite));
            asked.reading.absorb(readings).map_err(lost)?;
        }
        Ok(())
    }
}
