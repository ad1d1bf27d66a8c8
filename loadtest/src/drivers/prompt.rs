//! A decision as prompts: one a question, all of which begin with the state.

use super::escaped;
use super::settings::TemplateName;
use crate::workload::decision::{Decision, Question};

/// The labels of options, in order. Of one token each in the vocabularies in use.
pub(super) const LETTERS: &[u8; 26] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";

/// Stands for the text in a template that a server fills in.
pub(super) const MARK: &str = "STATE-AND-QUESTION";

/// What stands before and after a text, so that a chat model answers it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template {
    before: String,
    after: String,
}

impl Template {
    /// The named one; that of [`TemplateName::Auto`] where a server tells none.
    pub(super) fn named(name: TemplateName) -> Self {
        let (before, after) = match name {
            TemplateName::Auto | TemplateName::Chatml => {
                ("<|im_start|>user\n", "<|im_end|>\n<|im_start|>assistant\n")
            }
            TemplateName::Plain => ("", "\nAnswer:"),
        };
        Self { before: before.to_owned(), after: after.to_owned() }
    }

    /// From what a server made of [`MARK`]; none where that is not in it just once.
    pub(super) fn around(filled: &str) -> Option<Self> {
        let (before, after) = filled.split_once(MARK)?;
        let again = after.contains(MARK);
        (!again).then(|| Self { before: before.to_owned(), after: after.to_owned() })
    }

    /// What all prompts of a decision begin with, as JSON between the quotes.
    pub(super) fn state(&self, decision: &Decision) -> String {
        escaped(&format!("{}{}\n\n", self.before, decision.state.text()))
    }

    /// What follows it in the prompt of one question, as JSON between the quotes.
    pub(super) fn question(&self, question: &Question) -> String {
        let mut text = format!("Question: {}\n", question.instructions);
        for (letter, option) in LETTERS.iter().zip(&question.options) {
            text.extend([char::from(*letter), ')', ' ']);
            text.push_str(&option.name);
            if let Some(description) = &option.description {
                text.push_str(": ");
                text.push_str(description);
            }
            text.push('\n');
        }
        escaped(&format!("{text}Reply with the letter of one option, nothing else.{}", self.after))
    }
}

/// Which option a token names: the place of its letter, with or without the space before it.
pub(super) fn option_of(token: &str) -> Option<usize> {
    // As vocabularies write a space where they are not decoded.
    let letter = token.trim_start_matches([' ', '\u{2581}', '\u{120}']);
    match letter.as_bytes() {
        [letter] => LETTERS.iter().position(|known| known == letter),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_stands_around_its_mark() {
        let filled = format!("<s>[INST] {MARK} [/INST]");
        let template = Template::around(&filled).unwrap();
        assert_eq!((template.before.as_str(), template.after.as_str()), ("<s>[INST] ", " [/INST]"));
        assert_eq!(Template::around("nothing"), None);
        assert_eq!(Template::around(&format!("{MARK}{MARK}")), None);
    }

    #[test]
    fn tokens_are_letters_with_or_without_a_space() {
        assert_eq!(["A", " A", "\u{2581}C", "\u{120}Z"].map(option_of), [0, 0, 2, 25].map(Some));
        assert_eq!(["a", "AB", "", " ", "A)", "\u{c0}"].map(option_of), [None; 6]);
    }
}
