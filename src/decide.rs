//! One decision from end to end: render, submit, read out, answer.
//!
//! This is the one place that joins `prompt`, the actors and `readout`. It knows neither the wire nor
//! a tensor.

mod asked;
mod ending;
mod estimate;
mod finding;
mod inquiry;
mod long;
pub mod prompters;
mod room;
mod round;
mod staged;
mod tally;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use actors::{DecisionHandle, DecisionMeta, Handle, ReadError, TenantId};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::error::DecideError;
use crate::prompt::rendering::Within;
use crate::prompt::tokenised::StateId;
use crate::prompt::tokens::fit::Unfit;
use crate::prompt::tokens::off_thread;
use crate::prompt::{Prompter, StatePrefix, Told};
use crate::question::answer::{Answer, Cost};
use crate::question::{Decision, Manner, Question, Samples};
use crate::telemetry;
use asked::Orders;
pub use estimate::Estimate;
use finding::Source;
use inquiry::Terms;
use prompters::Prompters;
use room::{Length, Room, state_too_long};
use round::Round;
use staged::Staged;
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
    /// Longest suffix that is read in one piece; a longer one is read in chunks, like a state.
    pub suffix_tokens: u32,
}

/// Makes decisions: the model's prompts, the actors, and the limits.
#[derive(Debug)]
pub struct Decider {
    prompters: Prompters,
    actors: Handle,
    limits: Limits,
    /// True once the server's time to finish is over: what is still open ends soon after.
    closing: watch::Sender<bool>,
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
    /// Ids of the questions that were read, stage after stage.
    pub stages: Vec<Vec<String>>,
    /// Whether the state was resident when it came.
    pub reused: bool,
    /// The state's text as the model read it, where something was found in it.
    pub state_text: Option<String>,
    /// Which state, under its asker's salt.
    pub state: StateId,
    /// The open decision.
    pub decision: DecisionHandle,
}

impl Decider {
    /// Joins the parts.
    pub fn new(prompters: Prompters, actors: Handle, limits: Limits) -> Self {
        Self { prompters, actors, limits, closing: watch::Sender::new(false) }
    }

    /// Who makes the prompts.
    pub fn prompters(&self) -> &Prompters {
        &self.prompters
    }

    /// The actors' public face.
    pub fn actors(&self) -> &Handle {
        &self.actors
    }

    /// Ends every open decision with [`ReadError::Draining`], now and from now on; what has been read
    /// gets the moment that it takes to become an answer.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// When a request that came at `since` and asked for `timeout` must have ended.
    pub fn deadline(&self, since: Instant, timeout: Option<Duration>) -> Instant {
        since + timeout.unwrap_or(self.limits.timeout).min(self.limits.timeout_max)
    }

    /// Runs `work` until it is done, the deadline passes or the server has been closed for a while. Work
    /// that is dropped cancels what it has queued; a step under way finishes without it.
    ///
    /// # Errors
    /// Those of `work`, [`ReadError::Expired`] and [`ReadError::Draining`].
    pub async fn in_time<T>(
        &self,
        since: Instant,
        deadline: Instant,
        work: impl Future<Output = Result<T, DecideError>>,
    ) -> Result<T, DecideError> {
        ending::in_time(since, deadline, self.closing.subscribe(), work).await
    }

    /// Tokenises a state, off the runtime's workers where it is long.
    ///
    /// # Errors
    /// [`DecideError::Invalid`] when the state is certainly more than the context.
    pub async fn prefix(
        &self,
        prompter: &Arc<Prompter>,
        told: Told,
        salt: [u8; 32],
    ) -> Result<StatePrefix, DecideError> {
        let prompter = Arc::clone(prompter);
        let tokens_max = self.limits.context_tokens as usize;
        let prefix = off_thread(told.bytes(), move |gone| {
            let began = Instant::now();
            let prefix = prompter.prefix_within(&told, &salt, Within { tokens_max, gone });
            telemetry::state_prompted(began.elapsed());
            prefix
        });
        prefix.await.map_err(|unfit| match unfit {
            Unfit::AtLeast(tokens) => state_too_long(Length::AtLeast(tokens), tokens_max),
            Unfit::Gone => ReadError::Cancelled.into(),
        })
    }

    /// Makes one decision.
    ///
    /// # Errors
    /// Every variant of [`DecideError`]; nothing stays queued after an error.
    pub async fn decide(&self, asker: Asker, decision: Decision) -> Result<Made, DecideError> {
        let since = asker.since;
        let deadline = self.deadline(since, decision.timeout.or(decision.timeout_default));
        self.in_time(since, deadline, Box::pin(self.made(asker, decision, deadline))).await
    }

    async fn made(
        &self,
        asker: Asker,
        decision: Decision,
        deadline: Instant,
    ) -> Result<Made, DecideError> {
        let prompter = self.prompters.for_decision(&decision)?;
        let terms = self.terms(&prompter, &decision);
        let wants_state_text = decision.wants_state_text;
        let deadline_is_asked = decision.timeout.is_some();
        let lane = decision.lane.unwrap_or_default();
        let mut staged = Staged::new(&prompter, &decision)?;
        let told = Told { context: decision.context, ..Told::of(decision.state) };
        let prefix = self.prefix(&prompter, told, asker.salt).await?;
        let room = Room::after(&prefix.prefix, self.limits.context_tokens)?;
        let reused = self.actors.is_resident(&prefix.prefix);
        let meta = DecisionMeta {
            tenant: asker.tenant,
            lane,
            deadline: Some(deadline),
            deadline_is_asked,
            prefix: prefix.prefix.clone(),
            first_reads: 1,
            first_tokens: 0,
            suffix_tokens_max: 1,
        };
        let mut tally = Tally::new(lane, prefix.prefix.tokens());
        let questions = staged.begin(decision.questions);
        let (mut asked, mut round) = Round::first(&prompter, questions, &terms, room).await?;
        let mut session = self.actors.open(round.short(&meta, self.limits.suffix_tokens))?;
        tally.prepared(asker.since.elapsed());
        loop {
            while !round.specs.is_empty() {
                let outcomes = self.read(&mut session, &meta, &round).await?;
                tally.add(&round.specs, &outcomes, self.limits.suffix_tokens);
                round.count(&asked);
                let began = Instant::now();
                round.absorb(&mut asked, outcomes)?;
                telemetry::read_out(began.elapsed());
                let began = Instant::now();
                (asked, round) = Round::next(&prompter, asked, room).await?;
                tally.prepared(began.elapsed());
            }
            let began = Instant::now();
            staged.end(asked);
            let Some(questions) = staged.next() else { break };
            (asked, round) = Round::first(&prompter, questions, &terms, room).await?;
            tally.prepared(began.elapsed());
        }
        let (answers, stages, own_tokens) = staged.finish();
        let input_tokens = u64::from(prefix.state_tokens) + own_tokens;
        let cost = tally.cost(input_tokens, u32::from(prefix.tokenised));
        for mass in answers.iter().filter_map(|answer| answer.diagnostics.label_mass) {
            telemetry::label_mass(mass);
        }
        let text = terms.source.filter(|_| wants_state_text);
        let state_text = text.map(|source| source.text().to_owned());
        let state = prefix.id;
        Ok(Made { answers, cost, stages, reused, state_text, state, decision: session })
    }

    /// What the decision's questions have in common.
    fn terms(&self, prompter: &Prompter, decision: &Decision) -> Terms {
        let searches = |question: &Question| question.finds.is_some() || question.cites;
        let needs_text = decision.wants_state_text || decision.questions.iter().any(searches);
        let text = || prompter.state_text(&decision.state).into_owned();
        let source = needs_text.then(|| Arc::new(Source::new(text())));
        Terms { orders: self.orders(decision), source }
    }

    /// In how many orders the decision's questions are read.
    fn orders(&self, decision: &Decision) -> Orders {
        let by_default = match decision.manner {
            Manner::Profile => self.limits.samples.map_or(Samples::Auto, Samples::Count),
            Manner::Letters | Manner::Plain => Samples::Count(1),
        };
        let samples = decision.samples.unwrap_or(by_default);
        Orders { samples, samples_max: self.limits.samples_max }
    }
}
