//! One decision from end to end: render, submit, read out, answer.
//!
//! This is the one place that joins `prompt`, the actors and `readout`. It knows neither the wire nor
//! a tensor.

mod asked;
mod tally;

use std::sync::Arc;
use std::time::Duration;

use actors::{DecisionHandle, DecisionMeta, Handle, ReadError, ReadOutcome, ReadSpec, TenantId};
use tokio::time::Instant;

use crate::error::{DecideError, Problem};
use crate::json::Json;
use crate::prompt::tokens::off_thread;
use crate::prompt::{Prompter, StatePrefix};
use crate::question::answer::{Answer, Cost};
use crate::question::{Decision, Samples};
use crate::readout::LabelReading;
use asked::Asked;
use tally::Tally;

/// Limits of a decision that the server sets.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Time from a request's first byte to its answer, where the caller names none.
    pub timeout: Duration,
    /// Longest time that a caller may name.
    pub timeout_max: Duration,
    /// Orders of a question that are read where the request says nothing; `None`: the profile's.
    pub samples: Option<u32>,
    /// Most orders of a question that are read.
    pub samples_max: u32,
    /// Longest prompt in tokens.
    pub context_tokens: u32,
}

/// Makes decisions: the model's prompts, the actors, and the limits.
#[derive(Debug)]
pub struct Decider {
    prompter: Arc<Prompter>,
    actors: Handle,
    limits: Limits,
}

/// Who asks, and since when.
#[derive(Debug, Clone)]
pub struct Asker {
    /// From the API key.
    pub tenant: TenantId,
    /// Salt of this tenant's segments (the caller's own hashed in).
    pub salt: [u8; 32],
    /// When the request's first byte came.
    pub since: Instant,
}

/// A decision made. Hand the response out, then tell the actors with
/// [`DecisionHandle::responded`].
#[derive(Debug)]
pub struct Made {
    /// One a question, in the request's order.
    pub answers: Vec<Answer>,
    /// What it cost.
    pub cost: Cost,
    /// The open decision.
    pub decision: DecisionHandle,
}

/// Reads of one round: whose they are, and the reads themselves.
struct Round {
    /// Number of reads of each question, in the questions' order.
    reads: Vec<usize>,
    specs: Vec<ReadSpec>,
}

impl Decider {
    /// Joins the parts.
    pub fn new(prompter: Arc<Prompter>, actors: Handle, limits: Limits) -> Self {
        Self { prompter, actors, limits }
    }

    /// The actors' public face.
    pub fn actors(&self) -> &Handle {
        &self.actors
    }

    /// The model's prompts.
    pub fn prompter(&self) -> &Prompter {
        &self.prompter
    }

    /// When a request that came at `since` and asked for `timeout` must have ended.
    pub fn deadline(&self, since: Instant, timeout: Option<Duration>) -> Instant {
        since + timeout.unwrap_or(self.limits.timeout).min(self.limits.timeout_max)
    }

    /// Tokenises a state, off the runtime's workers where it is long.
    ///
    /// # Errors
    /// [`DecideError::Invalid`] when the state's beginning alone is more than the context.
    pub async fn prefix(&self, state: &Json, salt: [u8; 32]) -> Result<StatePrefix, DecideError> {
        let prompter = Arc::clone(&self.prompter);
        let tokens_max = self.limits.context_tokens;
        let state = state.clone();
        off_thread(Prompter::state_bytes(&state), move || {
            match prompter.exceeds(&state, tokens_max) {
                Some(tokens) => Err(too_long(tokens, tokens_max)),
                None => Ok(prompter.prefix(&state, &salt)),
            }
        })
        .await
    }

    /// Makes one decision.
    ///
    /// # Errors
    /// Every variant of [`DecideError`]; nothing stays queued after an error.
    pub async fn decide(&self, asker: Asker, decision: &Decision) -> Result<Made, DecideError> {
        let deadline = self.deadline(asker.since, decision.timeout);
        let prefix = self.prefix(&decision.state, asker.salt).await?;
        let samples =
            decision.samples.or(self.limits.samples.map(Samples::Count)).unwrap_or(Samples::Auto);
        let asked = decision
            .questions
            .iter()
            .map(|question| Asked::new(&self.prompter, question, samples, self.limits.samples_max))
            .collect();
        let (mut asked, mut round) = self.round(asked).await;
        let lane = decision.lane.unwrap_or_default();
        let mut session = self.actors.open(DecisionMeta {
            tenant: asker.tenant,
            lane,
            deadline: Some(deadline),
            prefix: prefix.prefix.clone(),
            first_reads: round.specs.len(),
            first_tokens: round.specs.iter().map(|spec| spec.suffix.len() as u64).sum(),
            suffix_tokens_max: longest(&round.specs),
        })?;
        let mut tally = Tally::new(lane, prefix.prefix.tokens());
        while !round.specs.is_empty() {
            let outcomes = session.read(round.specs.clone()).await?;
            let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, ReadError>>()?;
            tally.add(&round.specs, &outcomes);
            absorb(&mut asked, &round, outcomes)?;
            (asked, round) = self.round(asked).await;
        }
        let questions = asked.iter().map(|a| u64::from(self.prompter.question_tokens(&a.question)));
        let input_tokens = u64::from(prefix.state_tokens) + questions.sum::<u64>();
        let cost = tally.cost(input_tokens, u32::from(prefix.tokenised));
        let answers = asked.into_iter().map(Asked::answer).collect();
        Ok(Made { answers, cost, decision: session })
    }

    /// Renders the next round of all questions, off the workers where they have much text.
    async fn round(&self, asked: Vec<Asked>) -> (Vec<Asked>, Round) {
        let prompter = Arc::clone(&self.prompter);
        let bytes = asked.iter().map(Asked::text_bytes).sum();
        off_thread(bytes, move || {
            let mut round = Round { reads: Vec::new(), specs: Vec::new() };
            for Asked { question, reading } in &asked {
                let wanted = reading.wanted();
                round.reads.push(wanted.len());
                round.specs.extend(wanted.iter().map(|shown| prompter.suffix(question, shown)));
            }
            (asked, round)
        })
        .await
    }
}

/// Gives each question the outcomes of its reads of this round.
fn absorb(
    asked: &mut [Asked],
    round: &Round,
    outcomes: Vec<ReadOutcome>,
) -> Result<(), DecideError> {
    let mut outcomes = outcomes.into_iter();
    for (asked, reads) in asked.iter_mut().zip(&round.reads).filter(|(_, reads)| **reads > 0) {
        let readings = outcomes.by_ref().take(*reads).map(|outcome| LabelReading {
            logprobs: outcome.row.logprobs,
            log_mass: outcome.row.log_mass,
            greedy_is_label: outcome.row.greedy_is_label,
        });
        let readings = readings.collect();
        let lost = |_| DecideError::Read(ReadError::Engine(actors::EngineError::NonFinite));
        asked.reading.absorb(readings).map_err(lost)?;
    }
    Ok(())
}

fn longest(specs: &[ReadSpec]) -> u32 {
    let longest = specs.iter().map(|spec| spec.suffix.len()).max().unwrap_or(0);
    u32::try_from(longest).unwrap_or(u32::MAX)
}

fn too_long(tokens: u32, tokens_max: u32) -> DecideError {
    DecideError::Invalid(vec![Problem {
        path: vec!["state".into()],
        code: "too_long",
        message: format!(
            "state is more than {tokens} tokens, at most {tokens_max} fit the context"
        ),
    }])
}
