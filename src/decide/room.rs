//! What a question's part of a prompt may be, and what is said of one that is more.

use actors::{Prefix, ReadSpec};

use crate::error::{DecideError, Problem};

/// Tokens of what stands around an option that is found, and around all of them, at most and roughly:
/// by these, fewer options are shown where the state leaves less of the context.
pub(super) const OPTION_TOKENS: usize = 10;
pub(super) const QUESTION_TOKENS: usize = 200;

/// What the state leaves of the context.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    state: usize,
    pub(super) context: usize,
}

/// Tokens of a part of a prompt that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Length {
    /// All of it was tokenised.
    Exactly(usize),
    /// So much was enough to know.
    AtLeast(usize),
}

/// What bounds the options of one read.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionLimits {
    /// Options that can be told apart.
    pub(super) labels: usize,
    /// Tokens that the state leaves of the context.
    pub(super) tokens: usize,
}

impl OptionLimits {
    /// How many are shown, without "not stated", of at most `most`; two at least, whose read is then
    /// refused if it does not fit.
    /// * `chars`: of the longest of them.
    pub(super) fn shown(self, most: usize, chars: usize) -> usize {
        // Digits are a token each.
        let fit = self.tokens.saturating_sub(QUESTION_TOKENS) / (chars + OPTION_TOKENS);
        most.min(self.labels.saturating_sub(1)).min(fit).max(2)
    }
}

impl Room {
    /// # Errors
    /// [`DecideError::Invalid`] when the state leaves nothing.
    pub(super) fn after(prefix: &Prefix, context_tokens: u32) -> Result<Self, DecideError> {
        let (state, context) = (prefix.tokens() as usize, context_tokens as usize);
        if state < context {
            Ok(Self { state, context })
        } else {
            Err(state_too_long(Length::Exactly(state), context))
        }
    }

    /// Tokens that the state leaves.
    pub(super) fn left(self) -> usize {
        self.context.saturating_sub(self.state)
    }

    /// # Errors
    /// The length of a read that does not fit.
    pub(super) fn check(self, read: &ReadSpec) -> Result<(), Length> {
        let tokens = read.suffix.len();
        if self.state + tokens <= self.context { Ok(()) } else { Err(Length::Exactly(tokens)) }
    }

    /// The fault of a question that does not fit.
    pub(super) fn question_too_long(self, id: &str, length: Length) -> Problem {
        let Self { state, context } = self;
        let (least, question) = words(length);
        let total = state + question;
        let message = format!(
            "the prompt is {least}{total} tokens (state {state}, question {least}{question}), \
             at most {context} fit"
        );
        Problem::new(vec!["questions".into(), id.into()], "too_long", message)
    }
}

/// The refusal of a state that leaves no room for any question.
pub(super) fn state_too_long(length: Length, context: usize) -> DecideError {
    let (least, tokens) = words(length);
    DecideError::Invalid(vec![Problem::new(
        vec!["state".into()],
        "too_long",
        format!(
            "the state is {least}{tokens} tokens with what stands before it, a prompt has at most \
             {context}"
        ),
    )])
}

fn words(length: Length) -> (&'static str, usize) {
    match length {
        Length::Exactly(tokens) => ("", tokens),
        Length::AtLeast(tokens) => ("at least ", tokens),
    }
}

#[cfg(test)]
impl Room {
    pub(super) fn new(state: u32, context: u32) -> Self {
        Self { state: state as usize, context: context as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_says_whether_it_is_all() {
        let room = Room::new(10, 100);
        let message = |length| room.question_too_long("q", length).message;
        assert_eq!(
            message(Length::Exactly(91)),
            "the prompt is 101 tokens (state 10, question 91), at most 100 fit"
        );
        assert_eq!(
            message(Length::AtLeast(500)),
            "the prompt is at least 510 tokens (state 10, question at least 500), at most 100 fit"
        );
    }
}
