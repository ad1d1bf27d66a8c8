//! What a decision cost, summed over its rounds.

use std::time::Duration;

use actors::{Lane, ReadOutcome, ReadSpec, ReadTiming};

use crate::question::answer::Cost;

/// Running sums; times are those of the read that finished last.
#[derive(Debug)]
pub(super) struct Tally {
    lane: Lane,
    prefix_tokens: u32,
    prompt_tokens: u64,
    computed_tokens: u64,
    cached_tokens: u64,
    /// Times of the rounds so far, each by its last read, added up: rounds follow each other.
    timing: ReadTiming,
}

impl Tally {
    pub(super) fn new(lane: Lane, prefix_tokens: u32) -> Self {
        Self {
            lane,
            prefix_tokens,
            prompt_tokens: 0,
            computed_tokens: 0,
            cached_tokens: 0,
            timing: ReadTiming::default(),
        }
    }

    /// Adds one round.
    pub(super) fn add(&mut self, specs: &[ReadSpec], outcomes: &[ReadOutcome]) {
        for (spec, outcome) in specs.iter().zip(outcomes) {
            self.prompt_tokens += u64::from(self.prefix_tokens) + spec.suffix.len() as u64;
            self.computed_tokens += u64::from(outcome.computed_tokens);
            self.cached_tokens += u64::from(outcome.cached_tokens);
            self.timing.behind_registration |= outcome.timing.behind_registration;
        }
        if let Some(last) = outcomes.iter().map(|o| o.timing).max_by_key(total) {
            self.timing.queue_wait += last.queue_wait;
            self.timing.state_wait += last.state_wait;
            self.timing.engine_wait += last.engine_wait;
            self.timing.engine_time += last.engine_time;
        }
    }

    /// The sums, with what only the caller knows.
    pub(super) fn cost(self, input_tokens: u64, state_tokenisations: u32) -> Cost {
        Cost {
            lane: self.lane,
            input_tokens,
            prompt_tokens: self.prompt_tokens,
            computed_tokens: self.computed_tokens,
            cached_tokens: self.cached_tokens,
            queue_wait: self.timing.queue_wait,
            state_wait: self.timing.state_wait,
            engine_wait: self.timing.engine_wait,
            engine_time: self.timing.engine_time,
            behind_registration: self.timing.behind_registration,
            state_tokenisations,
        }
    }
}

/// From admission to outcome.
fn total(timing: &ReadTiming) -> Duration {
    timing.queue_wait + timing.state_wait + timing.engine_wait + timing.engine_time
}
