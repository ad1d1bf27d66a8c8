//! Duplicate prefill as a client can tell it: tokens of a state that were computed beyond once.
//!
//! A server that reports computed, cached and input tokens tells the length of a state by a request
//! with several questions, as each of its prompts has the state in it and the input counts it once:
//! `(computed + cached - input) / (questions - 1)`. This holds where a question is one prompt, and
//! is believed where two requests with different numbers of questions say the same, or one found
//! exactly so much cached; where requests disagree nothing is claimed. What prompts have of the
//! state and was not cached was computed. The figure is a lower bound: what the first request found
//! cached (a beginning that all states share) is not known and counts as computed once.

use std::collections::HashMap;

use super::Label;
use crate::exchange::Reply;

/// Most states, each with its tenant, that are told apart; later ones are left out.
pub(crate) const STATES_MAX: usize = 100_000;
/// What is known of one state of a tenant.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Its length in tokens, as the last request with several questions says it, and how many
    /// questions the first of those had.
    tokens: u64,
    first_questions: u64,
    /// Prompts with it, and their cached tokens.
    prompts: u64,
    cached_tokens: u64,
    is_confirmed: bool,
    disagree: bool,
}

impl Seen {
    fn add(&mut self, questions: u64, prompt_tokens: u64, input_tokens: u64, cached_tokens: u64) {
        self.prompts += questions;
        self.cached_tokens += cached_tokens;
        let others = questions - 1;
        if others == 0 {
            self.disagree |= prompt_tokens != input_tokens;
            return;
        }
        let repeated = prompt_tokens.saturating_sub(input_tokens);
        let tokens = repeated / others;
        self.disagree |= prompt_tokens < input_tokens || !repeated.is_multiple_of(others);
        self.disagree |= self.first_questions > 0 && tokens != self.tokens;
        let has_other_number = self.first_questions > 0 && questions != self.first_questions;
        self.is_confirmed |= has_other_number || cached_tokens == tokens * questions;
        if self.first_questions == 0 {
            self.first_questions = questions;
        }
        self.tokens = tokens;
    }

    /// Tokens computed beyond once, where that is known.
    fn duplicate(&self) -> Option<u64> {
        let is_known = self.is_confirmed && !self.disagree;
        let prompts = self.tokens.saturating_mul(self.prompts);
        let computed = prompts.saturating_sub(self.cached_tokens);
        is_known.then(|| computed.saturating_sub(self.tokens))
    }
}

/// The states of a run.
#[derive(Debug, Default)]
pub(crate) struct Prefill(HashMap<(usize, u64), Seen>);

/// What became of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Duplicates {
    /// States, each with its tenant, that were asked about.
    pub(crate) states: u64,
    /// Those of which the server told enough, and their tokens that were computed beyond once.
    pub(crate) states_told: u64,
    pub(crate) tokens: u64,
}

impl Prefill {
    pub(super) fn record(&mut self, label: &Label, reply: &Reply) {
        let is_new = !self.0.contains_key(&(label.tenant, label.state));
        if label.questions == 0 || (is_new && self.0.len() >= STATES_MAX) {
            return;
        }
        let seen = self.0.entry((label.tenant, label.state)).or_default();
        let Reply { computed_tokens, cached_tokens, .. } = *reply;
        match reply.input_tokens {
            Some(input_tokens) if computed_tokens + cached_tokens > 0 => {
                let prompt_tokens = computed_tokens + cached_tokens;
                seen.add(label.questions as u64, prompt_tokens, input_tokens, cached_tokens);
            }
            _ => seen.disagree = true,
        }
    }

    /// The sum over all states.
    pub(crate) fn duplicates(&self) -> Duplicates {
        let told = self.0.values().filter_map(Seen::duplicate);
        let none = Duplicates { states: self.0.len() as u64, ..Duplicates::default() };
        told.fold(none, |sum, tokens| Duplicates {
            states_told: sum.states_told + 1,
            tokens: sum.tokens + tokens,
            ..sum
        })
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    /// A state of 300 tokens, of which a request computed some; each question has 20 tokens.
    fn ask(prefill: &mut Prefill, state: u64, questions: usize, computed_of_state: u64) {
        let label = Label { questions, state, ..Label::of(Instant::now()) };
        let prompts = 320 * questions as u64;
        let computed_tokens = computed_of_state + 20 * questions as u64;
        let reply = Reply {
            computed_tokens,
            cached_tokens: prompts - computed_tokens,
            input_tokens: Some(300 + 20 * questions as u64),
            ..Reply::default()
        };
        prefill.record(&label, &reply);
    }

    #[test]
    fn a_state_that_is_computed_once_has_no_duplicates() {
        let mut prefill = Prefill::default();
        ask(&mut prefill, 1, 3, 290);
        ask(&mut prefill, 1, 2, 0);
        ask(&mut prefill, 1, 1, 0);
        let expected = Duplicates { states: 1, states_told: 1, tokens: 0 };
        assert_eq!(prefill.duplicates(), expected);
    }

    #[test]
    fn what_is_computed_again_is_counted() {
        let mut prefill = Prefill::default();
        ask(&mut prefill, 1, 3, 300);
        ask(&mut prefill, 1, 2, 300);
        ask(&mut prefill, 1, 1, 120);
        ask(&mut prefill, 2, 2, 300);
        ask(&mut prefill, 2, 4, 0);
        let expected = Duplicates { states: 2, states_told: 2, tokens: 420 };
        assert_eq!(prefill.duplicates(), expected);
    }

    #[test]
    fn requests_with_one_number_of_questions_are_believed_once_all_of_the_state_was_cached() {
        let mut prefill = Prefill::default();
        ask(&mut prefill, 1, 4, 300);
        ask(&mut prefill, 1, 4, 250);
        assert_eq!(prefill.duplicates().states_told, 0);
        ask(&mut prefill, 1, 4, 0);
        let expected = Duplicates { states: 1, states_told: 1, tokens: 250 };
        assert_eq!(prefill.duplicates(), expected);
    }

    #[test]
    fn nothing_is_claimed_where_the_server_does_not_tell_enough() {
        let mut prefill = Prefill::default();
        // One question a request does not tell the state's length.
        ask(&mut prefill, 1, 1, 300);
        ask(&mut prefill, 1, 1, 300);
        // Two prompts a question: the sums do not fit, or fit by chance where they are the same
        // sums.
        for (state, questions) in [(2, 2), (2, 3), (3, 2), (3, 2)] {
            let label = Label { questions, state, ..Label::of(Instant::now()) };
            let input_tokens = Some(300 + 20 * questions as u64);
            let (computed_tokens, cached_tokens) = (340, 640 * questions as u64 - 340);
            let reply = Reply { computed_tokens, cached_tokens, input_tokens, ..Reply::default() };
            prefill.record(&label, &reply);
        }
        // No counts at all.
        let label = Label { questions: 2, state: 4, ..Label::of(Instant::now()) };
        prefill.record(&label, &Reply::default());
        let expected = Duplicates { states: 4, states_told: 0, tokens: 0 };
        assert_eq!(prefill.duplicates(), expected);
    }

    #[test]
    fn states_of_different_tenants_are_apart_and_their_number_is_bounded() {
        let mut prefill = Prefill::default();
        for tenant in 0..=STATES_MAX {
            let label = Label { tenant, questions: 1, ..Label::of(Instant::now()) };
            prefill.record(&label, &Reply::default());
        }
        assert_eq!(prefill.duplicates().states, STATES_MAX as u64);
    }
}
