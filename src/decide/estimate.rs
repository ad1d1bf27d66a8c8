//! What a decision would cost and wait for, without making it.

use std::time::Duration;

use actors::{DecisionMeta, ReadError};

use super::inquiry::Inquiry;
use super::room::Room;
use super::round::Round;
use super::staged::Staged;
use super::{Asker, Decider};
use crate::error::DecideError;
use crate::prompt::Told;
use crate::question::Decision;

/// What a decision would cost if it were sent now.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Tokens of the state and of each question's own text, the state once.
    pub input_tokens: u64,
    /// Tokens of head and state.
    pub prefix_tokens: u64,
    /// Of these, resident now.
    pub cached_tokens: u64,
    /// Tokens that would be computed: what is missing of the prefix, and the questions.
    pub computed_tokens: u64,
    /// Tokens of the longest prompt.
    pub longest_tokens: u64,
    /// Most tokens of a prompt.
    pub context_tokens: u64,
    /// Reads of the first round: questions in all their orders and lists. Later stages, winners of
    /// lists and orders that only uncertain answers want come on top.
    pub reads: usize,
    /// How long it would wait for what is ahead of it, at the measured speed.
    pub wait: Duration,
    /// How long its own tokens would take, at the measured speed; `None` where none is known.
    pub engine: Option<Duration>,
    /// Why it would be refused now, if it would.
    pub refused: Option<ReadError>,
}

impl Decider {
    /// Tokenises a decision and looks at what is resident and what waits; nothing is queued.
    ///
    /// # Errors
    /// Those of a decision that are found before it is queued: what does not fit, unknown profiles,
    /// chat options that cannot be used.
    pub async fn estimate(
        &self,
        asker: Asker,
        decision: Decision,
    ) -> Result<Estimate, DecideError> {
        let deadline = self.deadline(asker.since, decision.timeout.or(decision.timeout_default));
        let prompter = self.prompters.for_decision(&decision)?;
        let terms = self.terms(&prompter, &decision);
        let mut staged = Staged::new(&prompter, &decision)?;
        let lane = decision.lane.unwrap_or_default();
        let deadline_is_asked = decision.timeout.is_some();
        let told = Told { context: decision.context, ..Told::of(decision.state) };
        let prefix = self.prefix(&prompter, told, asker.salt).await?;
        let room = Room::after(&prefix.prefix, self.limits.context_tokens)?;
        let questions = staged.begin(decision.questions);
        let (asked, round) = Round::first(&prompter, questions, &terms, room).await?;
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
        let meta = round.short(&meta, self.limits.suffix_tokens);
        let forecast = self.actors.forecast(&meta);
        let lengths = || round.specs.iter().map(|spec| spec.suffix.len() as u64);
        let own_tokens: u64 = asked.iter().map(|asked: &Inquiry| u64::from(asked.own_tokens)).sum();
        let prefix_tokens = u64::from(prefix.prefix.tokens());
        let computed_tokens = forecast.prefix_missing + lengths().sum::<u64>();
        let engine =
            Duration::try_from_secs_f64(computed_tokens as f64 / forecast.tokens_per_second);
        Ok(Estimate {
            input_tokens: u64::from(prefix.state_tokens) + own_tokens,
            prefix_tokens,
            cached_tokens: forecast.prefix_resident,
            computed_tokens,
            longest_tokens: prefix_tokens + lengths().max().unwrap_or(0),
            context_tokens: u64::from(self.limits.context_tokens),
            reads: round.specs.len(),
            wait: forecast.wait,
            engine: engine.ok().filter(|_| forecast.tokens_per_second > 0.0),
            refused: forecast.refused,
        })
    }
}
