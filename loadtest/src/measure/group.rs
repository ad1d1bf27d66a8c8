//! Groups: the requests of a lane or of a tenant, or all, by how they ended and how long they took.

use super::stages::{Parts, StageSums};
use super::{Label, Times};
use crate::exchange::{Exchange, Outcome};

/// Requests by how they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counts([u64; Outcome::ALL.len()]);

impl Counts {
    pub(super) fn add(&mut self, outcome: Outcome) {
        self.0[outcome as usize] += 1;
    }

    /// Adds all of another.
    pub(super) fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
    }

    /// Those that ended so.
    pub(crate) fn of(&self, outcome: Outcome) -> u64 {
        self.0[outcome as usize]
    }

    /// Those that were neither answered nor refused, and whose client did not go away by itself:
    /// the server or the connection failed them.
    pub(crate) fn lost(&self) -> u64 {
        let kept = [Outcome::Answered, Outcome::Refused, Outcome::Disconnected];
        self.sum() - kept.into_iter().map(|outcome| self.of(outcome)).sum::<u64>()
    }

    /// All.
    pub(crate) fn sum(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// The requests of a lane or of a tenant, or all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    pub(crate) counts: Counts,
    /// From the intended start to the last byte, of the answered ones whose clients would have
    /// waited.
    pub(crate) latency: Times,
    /// Those whose kind has a limit and whose clients would have waited: admitted, and answered
    /// within it.
    pub(crate) limited: u64,
    pub(crate) within_limit: u64,
    /// The same, refused or not.
    pub(crate) wanted: u64,
    pub(crate) computed_tokens: u64,
    pub(crate) cached_tokens: u64,
    /// Answered requests, and computed tokens, of all that ended after the warm-up and while
    /// requests still started, whenever they had started: under load.
    pub(crate) loaded_answered: u64,
    pub(crate) loaded_tokens: u64,
    /// Where the time of the answered ones went.
    pub(crate) stages: StageSums,
}

impl Group {
    pub(super) fn record(&mut self, label: Label, exchange: &Exchange) {
        let Exchange { outcome, sent, ended, .. } = *exchange;
        self.counts.add(outcome);
        let latency = ended.saturating_duration_since(label.intended);
        let is_answered = outcome == Outcome::Answered && !label.leaves;
        if is_answered {
            self.latency.add(latency);
        }
        if let Some(limit) = label.limit
            && !label.leaves
        {
            self.wanted += 1;
            self.limited += u64::from(outcome != Outcome::Refused);
            self.within_limit += u64::from(is_answered && latency <= limit);
        }
        let Some(reply) = &exchange.reply else { return };
        self.computed_tokens += reply.computed_tokens;
        self.cached_tokens += reply.cached_tokens;
        if let Some(stages) = reply.stages.filter(|_| is_answered) {
            self.stages.record(&Parts::of(stages, label.first_sent, (sent, ended)));
        }
    }

    /// Counts what ended under load.
    pub(super) fn record_load(&mut self, exchange: &Exchange) {
        self.loaded_answered += u64::from(exchange.outcome == Outcome::Answered);
        self.loaded_tokens += exchange.reply.as_ref().map_or(0, |reply| reply.computed_tokens);
    }

    /// Share of the admitted requests with a limit that were answered within it.
    pub(crate) fn goodput(&self) -> Option<f64> {
        (self.limited > 0).then(|| self.within_limit as f64 / self.limited as f64)
    }

    /// The same share of the offered ones: a refusal is not good either.
    pub(crate) fn offered_goodput(&self) -> Option<f64> {
        (self.wanted > 0).then(|| self.within_limit as f64 / self.wanted as f64)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    #[test]
    fn goodput_leaves_out_the_refused_and_those_that_would_have_left() {
        let (now, mut group) = (Instant::now(), Group::default());
        assert_eq!(group.goodput(), None);
        let label = Label { limit: Some(Duration::from_millis(10)), ..Label::of(now) };
        for (outcome, took_ms, leaves) in [
            (Outcome::Answered, 10, false),
            (Outcome::Answered, 11, false),
            (Outcome::Expired, 1, false),
            (Outcome::Refused, 1, false),
            (Outcome::Disconnected, 1, true),
            // Quick enough for its client, as slower ones could not be.
            (Outcome::Answered, 1, true),
        ] {
            let ended = now + Duration::from_millis(took_ms);
            group.record(Label { leaves, ..label }, &Exchange::bare(outcome, now, ended));
        }
        assert_eq!((group.counts.of(Outcome::Answered), group.latency.count()), (3, 2));
        assert_eq!((group.limited, group.within_limit), (3, 1));
        assert_eq!((group.wanted, group.offered_goodput()), (4, Some(0.25)));
        assert_eq!(group.counts.lost(), 1);
    }
}
