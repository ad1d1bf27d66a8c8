//! The fixed parts of a model's prompts, found once at start: the template's frame, worked examples,
//! where a label stands, and what is tokenised together with state and question.

use super::labels::{self, Alphabet, CodeSet, Slot};
use super::layout::{Layout, NoulStyle};
use super::pieces::{self, Piece};
use super::template::{self, Frame, Turn};
use super::tokens::TextTokenizer;
use super::{PromptError, wording};
use crate::files::PromptFacts;
use crate::json::Json;
use crate::question::{Kind, Shown};

/// Answers are begun with this for a model without chat template, whatever its layout says: a bare
/// text model has no turn of its own to begin.
const PLAIN_PREFILL: &str = "Answer:";

fn chat_template(facts: &PromptFacts) -> Option<&str> {
    facts.chat_template.as_deref().filter(|template| !template.trim().is_empty())
}

pub(super) fn prefill(facts: &PromptFacts, layout: &Layout) -> &'static str {
    let plain = chat_template(facts).is_none() && layout.prefill.is_empty();
    if plain { PLAIN_PREFILL } else { layout.prefill }
}

pub(super) fn frame(
    facts: &PromptFacts,
    turns: &[Turn],
    values: &[(String, Json)],
) -> Result<Frame, PromptError> {
    match chat_template(facts) {
        Some(template) => template::frame(template, facts, (turns, values)),
        None => Ok(template::plain_frame(facts, turns)),
    }
}

/// The turns ahead of the user's: the layout's system turn and, once the labels are known, its
/// worked examples.
pub(super) fn turns(layout: &Layout, prefill: &str, alphabet: Option<&Alphabet>) -> Vec<Turn> {
    let system = layout.system.map(|text| Turn { role: "system", text: text.to_owned() });
    let mut turns: Vec<Turn> = system.into_iter().collect();
    let examples = alphabet.map_or(&[][..], |_| layout.examples);
    for (example, codes) in examples.iter().zip(alphabet.iter().cycle()) {
        let question = wording::example_question(example);
        let shown = wording::first_order(layout, &question.kind);
        let asked = wording::question_text(layout, &question, &shown, &codes.codes);
        let user = [layout.state_header, example.state, layout.mark, " ", &asked].concat();
        turns.push(Turn { role: "user", text: user });
        let label = example_label(layout, &question.kind, &shown, (codes, example.answer));
        let lead = if prefill.is_empty() { "" } else { " " };
        turns.push(Turn { role: "assistant", text: [prefill, lead, &label].concat() });
    }
    turns
}

/// The label of an example's right answer.
fn example_label(
    layout: &Layout,
    kind: &Kind,
    shown: &Shown,
    (alphabet, answer): (&Alphabet, usize),
) -> String {
    if let Some(words) = layout.noul.words(kind) {
        return words[answer].to_owned();
    }
    let position = shown.options.iter().position(|&option| option == answer).unwrap_or(0);
    alphabet.codes[position % alphabet.codes.len()].clone()
}

/// Where a label stands, and which there are. A begun answer is followed by labels with a space before
/// them; where these are no tokens, as in a vocabulary of single bytes, the space is written too.
pub(super) fn labelled(
    tokenizer: &dyn TextTokenizer,
    frame: &Frame,
    (prefill, codes): (&str, CodeSet),
) -> Result<(Slot, Alphabet), PromptError> {
    let slot = slot(tokenizer, frame, prefill);
    let found = labels::alphabet(tokenizer, &slot, codes);
    if found.is_ok() || slot.lead.is_empty() {
        return found.map(|alphabet| (slot, alphabet));
    }
    let slot = Slot { tail: slot.tail + slot.lead, lead: "" };
    // What was found at first says more of a vocabulary that has neither.
    let alphabet = labels::alphabet(tokenizer, &slot, codes).or(found)?;
    Ok((slot, alphabet))
}

fn slot(tokenizer: &dyn TextTokenizer, frame: &Frame, prefill: &str) -> Slot {
    let after = [frame.after.as_str(), prefill].concat();
    let tail = match pieces::pieces(tokenizer, &after).last() {
        Some(Piece::Text(text)) => (*text).to_owned(),
        Some(Piece::Control(_)) | None => String::new(),
    };
    Slot { tail, lead: if prefill.is_empty() { "" } else { " " } }
}

/// The ids of the words for no and yes, where the layout asks nouls by words: always, which needs
/// them, or where letters would not do, which can be helped.
pub(super) fn words(
    tokenizer: &dyn TextTokenizer,
    slot: &Slot,
    layout: &Layout,
) -> Result<Option<[u32; 2]>, PromptError> {
    match layout.noul {
        NoulStyle::Letters { .. } | NoulStyle::Sides { words: None, .. } => Ok(None),
        NoulStyle::Words { words, .. } => labels::words(tokenizer, slot, words).map(Some),
        NoulStyle::Sides { words: Some(words), .. } => {
            Ok(labels::words(tokenizer, slot, words).ok())
        }
    }
}

/// The layout as a tokenizer can do it: without words that are no labels of it.
pub(super) fn served(layout: &Layout, words: Option<[u32; 2]>) -> Layout {
    match layout.noul {
        NoulStyle::Sides { named, .. } if words.is_none() => {
            Layout { noul: NoulStyle::Sides { named, words: None }, ..*layout }
        }
        NoulStyle::Letters { .. } | NoulStyle::Words { .. } | NoulStyle::Sides { .. } => *layout,
    }
}

/// Splits what stands before the user's text after its last control token: the head's tokens, and
/// the plain text that is tokenised together with the state.
pub(super) fn split_before(tokenizer: &dyn TextTokenizer, before: &str) -> (Vec<u32>, String) {
    let mut parts = pieces::pieces(tokenizer, before);
    let lead = match parts.last() {
        Some(Piece::Text(text)) => (*text).to_owned(),
        Some(Piece::Control(_)) | None => String::new(),
    };
    if !lead.is_empty() {
        parts.pop();
    }
    (pieces::encode(tokenizer, &parts), lead)
}

/// Splits what stands after the user's text at its first control token: the plain text that is
/// tokenised together with the question, and the tokens behind it.
pub(super) fn split_after(tokenizer: &dyn TextTokenizer, after: &str) -> (String, Vec<u32>) {
    let parts = pieces::pieces(tokenizer, after);
    match parts.split_first() {
        Some((Piece::Text(text), rest)) => ((*text).to_owned(), pieces::encode(tokenizer, rest)),
        Some((Piece::Control(_), _)) | None => (String::new(), pieces::encode(tokenizer, &parts)),
    }
}

/// How the one space between mark and question is written in the question part. A tokenizer that
/// begins every text with a space of its own (sentencepiece's) would make two of it.
pub(super) fn space(tokenizer: &dyn TextTokenizer, mark: &str) -> &'static str {
    let whole = tokenizer.encode(&[mark, " Is it?"].concat());
    let joins = |question: &str| {
        let (before, after) = (tokenizer.encode(mark), tokenizer.encode(question));
        whole == [before, after].concat()
    };
    if !joins(" Is it?") && joins("Is it?") { "" } else { " " }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tokens::bytes::ByteTokenizer;

    /// Begins every text with a space, as sentencepiece does.
    #[derive(Debug)]
    struct Spacing;

    impl TextTokenizer for Spacing {
        fn encode(&self, text: &str) -> Vec<u32> {
            ByteTokenizer::new().encode(&[" ", text].concat())
        }

        fn controls(&self) -> &[(String, u32)] {
            &[]
        }

        fn decode(&self, ids: &[u32]) -> Vec<u8> {
            ByteTokenizer::new().decode(ids)
        }

        fn vocab_size(&self) -> usize {
            256
        }
    }

    #[test]
    fn a_tokenizer_that_begins_texts_with_a_space_is_not_given_another() {
        assert_eq!(space(&Spacing, "\n\nQuestion:"), "");
        assert_eq!(space(&ByteTokenizer::new(), "\n\nQuestion:"), " ");
    }

    #[test]
    fn the_last_control_token_ends_the_head_and_the_first_ends_the_question() {
        let bytes = ByteTokenizer::new();
        let (head, lead) = split_before(&bytes, "a<|im_end|><|im_start|>user\n");
        assert_eq!((head.as_slice(), lead.as_str()), (&[97, 257, 256][..], "user\n"));
        assert_eq!(split_before(&bytes, "a<|im_end|>"), (vec![97, 257], String::new()));
        assert_eq!(split_before(&bytes, "plain"), (vec![], "plain".to_owned()));
        assert_eq!(split_after(&bytes, "]<|im_end|>b"), ("]".to_owned(), vec![257, 98]));
        assert_eq!(split_after(&bytes, "<|im_end|>b"), (String::new(), vec![257, 98]));
    }
}
