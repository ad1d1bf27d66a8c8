//! Tokens that a read costs beyond the words of its question: what a layout adds behind the state.
//!
//! With the state resident a decision costs its suffixes alone, so this is what a shorter layout
//! saves at each read. It is counted from prompts as they are made, for a question of one-word texts.

use super::layout::PerKind;
use super::rendering::Rendering;
use super::wording::first_order;
use super::{Prompter, count};
use crate::json::Json;
use crate::question::{ChoiceOption, Kind, Question};

/// The instructions of the question that is counted. Words, because tokens do not join them with the
/// line break behind them, as they may join a full stop.
const ASKED: &str = "which";

/// Its options.
const WORDS: [&str; 3] = ["red", "green", "blue"];

/// What a layout adds to a question's own words in one read, in tokens.
///
/// Own words are the instructions and each option as it is shown, each with the space before it.
/// The count is exact where they end in letters; a tokenizer that joins a full stop with the line
/// break behind it saves a token there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FixedTokens {
    /// For the question: leads, closing line, the end of the turn and the beginning of the answer.
    /// A noul's two options are in it, where the request does not say what they mean.
    pub read: u32,
    /// For each option: its line break and its label.
    pub option: u32,
}

impl FixedTokens {
    /// For a question of so many options.
    pub fn of(self, options: u32) -> u32 {
        self.read + self.option * options
    }
}

impl Prompter {
    /// What the layout costs behind the state for each kind of question, in its first order.
    pub fn fixed_tokens(&self) -> PerKind<FixedTokens> {
        let noul = self.added(Kind::Noul { when_true: None, when_false: None }, &[]);
        let noul = FixedTokens { read: noul, option: 0 };
        PerKind { noul, choice: self.listed(choice), score: self.listed(score) }
    }

    /// For a kind whose options the request gives.
    fn listed(&self, kind: fn(&[&str]) -> Kind) -> FixedTokens {
        let two = self.added(kind(&WORDS[..2]), &WORDS[..2]);
        let option = self.added(kind(&WORDS), &WORDS).saturating_sub(two);
        FixedTokens { read: two.saturating_sub(2 * option), option }
    }

    /// Tokens of a question of these options beyond its words.
    fn added(&self, kind: Kind, options: &[&str]) -> u32 {
        let instructions = Some(Json::String(ASKED.to_owned()));
        let question = Question::new(String::new(), kind, instructions);
        let shown = first_order(self.layout(), &question.kind);
        let part = self.tokenizer.encode(&Rendering::new(self, &question).part(&shown));
        let own: u32 = [ASKED].iter().chain(options).map(|text| self.own_words(text)).sum();
        (count(&part) + count(&self.after_ids)).saturating_sub(own)
    }

    /// Tokens of a text as it stands behind a space.
    fn own_words(&self, text: &str) -> u32 {
        count(&self.tokenizer.encode(&[self.space, text].concat()))
    }
}

fn choice(words: &[&str]) -> Kind {
    let option = |key: &&str| ChoiceOption { key: (*key).to_owned(), description: None };
    Kind::Choice { options: words.iter().map(option).collect() }
}

fn score(words: &[&str]) -> Kind {
    Kind::Score { levels: words.iter().map(|word| Json::String((*word).to_owned())).collect() }
}
