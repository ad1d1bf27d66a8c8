//! One decision from end to end: render, submit, read out, answer.
//!
//! This is the one place that joins `prompt`, the actors and `readout`. It knows neither the wire nor
//! a tensor.

use std::sync::Arc;
use std::time::Duration;

use actors::{DecisionHandle, DecisionMeta, Handle, Lane, ReadError, ReadOutcome, TenantId};
use tokio::time::Instant;

use crate::error::DecideError;
use crate::prompt::tokens::off_thread;
use crate::prompt::{Prompter, StatePrefix};
use crate::question::answer::{Answer, Cost};
use crate::question::{Decision, Question, Samples};
use crate::readout::{LabelReading, Reading, Shown};

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
    /// Salt of this tenant's segments (and the caller's own, hashed in).
    pub salt: [u8; 32],
    /// When the request's first byte came.
    pub since: Instant,
}

/// A decision made. Hand the response out, then call [`Made::responded`].
#[derive(Debug)]
pub struct Made {
    /// One a question, in the request's order.
    pub answers: Vec<Answer>,
    /// What it cost.
    pub cost: Cost,
    decision: DecisionHandle,
}

impl Made {
    /// Tells the actors that the response's last byte is out, so that the state may be registered.
    pub fn responded(self) {
        self.decision.responded();
    }

    /// Splits off what is told to the actors later.
    pub fn into_parts(self) -> (Vec<Answer>, Cost, DecisionHandle) {
        (self.answers, self.cost, self.decision)
    }
}

/// A question being read.
struct Asked {
    question: Arc<Question>,
    reading: Reading,
}

/// Reads of one round: which question, and how its options are shown.
struct Round {
    shown: Vec<(usize, Shown)>,
    specs: Vec<actors::ReadSpec>,
}

/// Running sums over all rounds.
#[derive(Default)]
struct Tally {
    computed: u64,
    cached: u64,
    prompt: u64,
    last: actors::ReadTiming,
    last_total: Duration,
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
    /// [`DecideError::Invalid`] when the state alone cannot fit the context.
    pub async fn prefix(
        &self,
        state: crate::json::Json,
        salt: [u8; 32],
    ) -> Result<StatePrefix, DecideError> {
        let prompter = Arc::clone(&self.prompter);
        off_thread(state.text_bytes(), move || prompter.prefix(&state, &salt)).await
    }

    /// Makes one decision.
    ///
    /// # Errors
    /// Every variant of [`DecideError`]; nothing stays queued after an error.
    pub async fn decide(&self, asker: Asker, decision: Decision) -> Result<Made, DecideError> {
        let deadline = self.deadline(asker.since, decision.timeout);
        let prefix = self.prefix(decision.state.clone(), asker.salt).await?;
        let (mut asked, first) = self.plan(&decision, prefix.prefix.tokens()).await?;
        let lane = decision.lane.unwrap_or_default();
        let meta = DecisionMeta::new(asker.tenant, lane, prefix.prefix.clone())
            .deadline(deadline)
            .reads(&first.specs);
        let mut session = self.actors.open(meta)?;
        let mut tally = Tally::default();
        let mut round = first;
        while !round.specs.is_empty() {
            let outcomes = session.read(round.specs.clone()).await?;
            let outcomes = outcomes.into_iter().collect::<Result<Vec<_>, ReadError>>()?;
            tally.add(&round, &outcomes, prefix.prefix.tokens());
            absorb(&mut asked, &round, outcomes)?;
            round = self.round(&asked);
        }
        let input = self.input_tokens(&asked, &prefix);
        let cost = tally.cost(lane, input, &prefix);
        let answers = asked.into_iter().map(|a| a.finish()).collect();
        Ok(Made { answers, cost, decision: session })
    }

    /// The questions as readings, and the first round; off the workers where there is much text.
    async fn plan(
        &self,
        decision: &Decision,
        prefix_tokens: u32,
    ) -> Result<(Vec<Asked>, Round), DecideError> {
        let _ = prefix_tokens;
        let asked: Vec<Asked> = decision
            .questions
            .iter()
            .map(|q| self.asked(q, q.samples.or(decision.samples)))
            .collect();
        let bytes = asked.iter().map(|a| a.question.text_bytes()).sum();
        let prompter = Arc::clone(&self.prompter);
        off_thread(bytes, move || {
            let round = round(&prompter, &asked);
            Ok((asked, round))
        })
        .await
    }

    fn asked(&self, question: &Question, samples: Option<Samples>) -> Asked {
        let default = self.limits.samples.map_or(Samples::Auto, Samples::Count);
        let orders =
            self.prompter.orders(question, samples.unwrap_or(default), self.limits.samples_max);
        let reading = Reading::new(self.prompter.reading(question, orders));
        Asked { question: Arc::new(question.clone()), reading }
    }

    fn round(&self, asked: &[Asked]) -> Round {
        round(&self.prompter, asked)
    }

    /// Tokens of the state and of each question's own text.
    fn input_tokens(&self, asked: &[Asked], prefix: &StatePrefix) -> u64 {
        let questions: u64 =
            asked.iter().map(|a| u64::from(self.prompter.question_tokens(&a.question))).sum();
        u64::from(prefix.state_tokens) + questions
    }
}
