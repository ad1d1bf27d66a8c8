//! Why no prompts can be made.

use thiserror::Error;

/// Why no prompts can be made for a model.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PromptError {
    /// The model's chat template cannot be used.
    #[error("the model's chat template cannot be used: {message}")]
    Template {
        /// Why.
        message: String,
    },
    /// Too few labels are single tokens where the answer begins.
    #[error("{found} of the labels tried are one token after {tail:?}, at least 2 are needed")]
    Labels {
        /// How many are.
        found: usize,
        /// The text before a label.
        tail: String,
    },
    /// With the values that a request gave the template, a prompt ends in another way.
    #[error("with these values the chat template ends the prompt differently")]
    Tail,
    /// A word that the layout uses as a label is not one token of its own.
    #[error("the layout's label `{word}` is not one token of its own after {tail:?}")]
    Word {
        /// The word.
        word: &'static str,
        /// The text before it.
        tail: String,
    },
}
