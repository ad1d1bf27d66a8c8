//! A question on its way to tokens: its texts are made once, its orders tokenised one by one.
//!
//! A question of many megabytes has as many orders as any other, so each text is looked at before
//! it is tokenised, and nothing is kept of one order when the next begins but its tokens.

use actors::ReadSpec;

use super::tokens::Gone;
use super::tokens::fit::{Unfit, encode_within};
use super::wording::{Texts, first_order};
use super::{Prompter, count};
use crate::question::{Kind, Question, Shown};

/// A question being rendered.
#[derive(Debug)]
pub struct Rendering<'a> {
    prompter: &'a Prompter,
    kind: &'a Kind,
    texts: Texts<'a>,
}

/// How far a text is tokenised.
#[derive(Debug, Clone, Copy)]
pub struct Within<'g> {
    /// Tokens of the longest text that fits.
    pub tokens_max: usize,
    /// Whether anybody waits for it.
    pub gone: &'g Gone,
}

impl<'a> Rendering<'a> {
    /// Makes the question's texts.
    pub fn new(prompter: &'a Prompter, question: &'a Question) -> Self {
        let texts = Texts::new(prompter.layout(), question);
        Self { prompter, kind: &question.kind, texts }
    }

    /// The read of the question in one order: the tokens after the prefix, and the label ids.
    ///
    /// # Errors
    /// [`Unfit`].
    ///
    /// # Panics
    /// When more options are shown than there are labels ([`Prompter::labels_max`]).
    pub fn read(&self, shown: &Shown, within: Within<'_>) -> Result<ReadSpec, Unfit> {
        let ids = self.encode(&self.part(shown), within)?;
        Ok(self.prompter.read_of(ids, self.kind, shown))
    }

    /// Tokens of the question's own text (options and closing line) alone, in its first order.
    ///
    /// # Errors
    /// [`Unfit`].
    pub fn own_tokens(&self, within: Within<'_>) -> Result<u32, Unfit> {
        let mut text = String::new();
        let shown = first_order(self.prompter.layout(), self.kind);
        self.texts.push(&mut text, &shown, &self.prompter.alphabet.codes);
        Ok(count(&self.encode(&text, within)?))
    }

    /// Everything between the state and the next control token, as it is tokenised: one space, then
    /// the question.
    pub(super) fn part(&self, shown: &Shown) -> String {
        let mut text = self.prompter.space.to_owned();
        self.texts.push(&mut text, shown, &self.prompter.alphabet.codes);
        text.push_str(&self.prompter.after_text);
        text
    }

    fn encode(&self, text: &str, within: Within<'_>) -> Result<Vec<u32>, Unfit> {
        encode_within(&*self.prompter.tokenizer, text, within.tokens_max, within.gone)
    }
}
