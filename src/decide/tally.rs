//! What a decision cost, summed over its rounds.

use std::time::Duration;

use actors::{Lane, ReadOutcome, ReadSpec, ReadTiming};

use crate::question::answer::{Cost, RowTokens};

/// Running sums; times are those of the read that finished last.
#[derive(Debug)]
pub(super) struct Tally {
    lane: Lane,
    prepare: Duration,
    steps_time: Duration,
    prefix_tokens: u32,
    prompt_tokens: u64,
    computed_tokens: u64,
    cached_tokens: u64,
    rows: Vec<RowTokens>,
    runs: u32,
    /// Times of the rounds so far, each by its last read, added up: rounds follow each other.
    timing: ReadTiming,
}

impl Tally {
    pub(super) fn new(lane: Lane, prefix_tokens: u32) -> Self {
        Self {
            lane,
            prepare: Duration::ZERO,
            steps_time: Duration::ZERO,
            prefix_tokens,
            prompt_tokens: 0,
            computed_tokens: 0,
            cached_tokens: 0,
            rows: Vec::new(),
            runs: 0,
            timing: ReadTiming::default(),
        }
    }

    /// Adds time in which prompts were made.
    pub(super) fn prepared(&mut self, time: Duration) {
        self.prepare += time;
    }

    /// Adds one round. Reads of more than `suffix_tokens` follow each other and all others.
    pub(super) fn add(&mut self, specs: &[ReadSpec], outcomes: &[ReadOutcome], suffix_tokens: u32) {
        for (spec, outcome) in specs.iter().zip(outcomes) {
            let prompt = u64::from(self.prefix_tokens) + spec.suffix.len() as u64;
            self.prompt_tokens += prompt;
            self.rows.push(RowTokens { prompt, cached: u64::from(outcome.cached_tokens) });
            self.computed_tokens += u64::from(outcome.computed_tokens);
            self.cached_tokens += u64::from(outcome.cached_tokens);
            self.timing.behind_registration |= outcome.timing.behind_registration;
        }
        let timings = |is_long: bool| {
            let of = specs.iter().zip(outcomes);
            let of =
                of.filter(move |(spec, _)| (spec.suffix.len() > suffix_tokens as usize) == is_long);
            of.map(|(_, outcome)| outcome.timing)
        };
        let mut steps: Vec<(u64, Duration)> =
            outcomes.iter().map(|o| (o.timing.step, o.timing.engine_time)).collect();
        steps.sort_unstable();
        steps.dedup_by_key(|(step, _)| *step);
        self.runs += u32::try_from(steps.len()).unwrap_or(u32::MAX);
        self.steps_time += steps.into_iter().map(|(_, time)| time).sum::<Duration>();
        for last in timings(false).max_by_key(total).into_iter().chain(timings(true)) {
            self.timing.queue_wait += last.queue_wait;
            self.timing.state_wait += last.state_wait;
            self.timing.state_time += last.state_time;
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
            prepare: self.prepare,
            queue_wait: self.timing.queue_wait,
            state_wait: self.timing.state_wait,
            state_time: self.timing.state_time,
            engine_wait: self.timing.engine_wait,
            engine_time: self.timing.engine_time,
            steps_time: self.steps_time,
            behind_registration: self.timing.behind_registration,
            state_tokenisations,
            rows: self.rows,
            prefix_tokens: self.prefix_tokens,
            runs: self.runs,
        }
    }
}

/// From admission to outcome.
fn total(timing: &ReadTiming) -> Duration {
    timing.queue_wait + timing.state_wait + timing.engine_wait + timing.engine_time
}

#[cfg(test)]
mod tests {
    use actors::RowOutcome;

    use super::*;

    fn read(tokens: usize) -> ReadSpec {
        let suffix = vec![1; tokens].into();
        ReadSpec { suffix, labels: [1, 2].into(), want_hidden: false, want_mass: false }
    }

    fn outcome(state_ms: u64, engine_ms: u64) -> ReadOutcome {
        let row = RowOutcome {
            logprobs: vec![-1.0, -1.0],
            log_mass: None,
            greedy_is_label: true,
            hidden: None,
        };
        let timing = ReadTiming {
            state_wait: Duration::from_millis(state_ms),
            engine_time: Duration::from_millis(engine_ms),
            // Reads that take equally long are those of one step here.
            step: engine_ms,
            ..ReadTiming::default()
        };
        ReadOutcome { row, computed_tokens: 1, cached_tokens: 0, timing }
    }

    #[test]
    fn reads_side_by_side_take_the_time_of_the_last_and_long_ones_that_of_each() {
        let mut tally = Tally::new(Lane::Normal, 10);
        let specs = [read(5), read(600), read(7), read(900)];
        let outcomes = [outcome(1, 10), outcome(100, 20), outcome(2, 30), outcome(1_000, 40)];
        tally.add(&specs, &outcomes, 512);
        let cost = tally.cost(0, 0);
        assert_eq!(cost.state_wait, Duration::from_millis(1_102));
        assert_eq!(cost.engine_time, Duration::from_millis(90));
        assert_eq!(cost.steps_time, Duration::from_millis(100));
        assert_eq!(cost.rows.len(), 4);
    }

    #[test]
    fn a_step_that_reads_several_questions_counts_once() {
        let mut tally = Tally::new(Lane::Normal, 10);
        let specs = [read(5), read(5), read(5)];
        tally.add(&specs, &[outcome(0, 10), outcome(0, 10), outcome(0, 30)], 512);
        assert_eq!(tally.cost(0, 0).steps_time, Duration::from_millis(40));
    }
}
