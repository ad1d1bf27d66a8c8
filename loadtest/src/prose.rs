//! Prose: seeded English sentences from a word list of our own, the text of states and questions.
//!
//! Real-looking words keep the tokenizer honest: random letters would give several tokens a word.

use crate::random::Random;

pub(crate) const NOUNS: [&str; 48] = [
    "parcel",
    "invoice",
    "refund",
    "account",
    "customer",
    "warehouse",
    "courier",
    "payment",
    "manager",
    "contract",
    "device",
    "screen",
    "battery",
    "delivery",
    "discount",
    "address",
    "password",
    "message",
    "report",
    "garden",
    "window",
    "supplier",
    "ticket",
    "engineer",
    "charger",
    "subscription",
    "receipt",
    "neighbour",
    "office",
    "schedule",
    "printer",
    "signature",
    "meeting",
    "deadline",
    "replacement",
    "complaint",
    "package",
    "server",
    "update",
    "policy",
    "driver",
    "booking",
    "hotel",
    "train",
    "passport",
    "appointment",
    "doctor",
    "insurance",
];
pub(crate) const ADJECTIVES: [&str; 32] = [
    "late",
    "broken",
    "polite",
    "urgent",
    "missing",
    "wrong",
    "expensive",
    "quiet",
    "early",
    "second",
    "annual",
    "unexpected",
    "helpful",
    "empty",
    "damaged",
    "correct",
    "impatient",
    "friendly",
    "heavy",
    "public",
    "simple",
    "final",
    "monthly",
    "careful",
    "strange",
    "local",
    "new",
    "old",
    "satisfied",
    "angry",
    "confirmed",
    "open",
];
const VERBS: [&str; 32] = [
    "received",
    "returned",
    "opened",
    "cancelled",
    "confirmed",
    "promised",
    "described",
    "lost",
    "replaced",
    "charged",
    "signed",
    "forgot",
    "ignored",
    "answered",
    "repaired",
    "checked",
    "ordered",
    "delivered",
    "rejected",
    "accepted",
    "moved",
    "closed",
    "explained",
    "requested",
    "found",
    "expected",
    "mentioned",
    "approved",
    "copied",
    "measured",
    "sold",
    "paid",
];
const ADVERBS: [&str; 16] = [
    "yesterday",
    "twice",
    "again",
    "carefully",
    "today",
    "often",
    "quickly",
    "immediately",
    "later",
    "politely",
    "properly",
    "partly",
    "abroad",
    "tonight",
    "slowly",
    "online",
];

/// A place in a sentence: a fixed word or one of a list.
#[derive(Debug, Clone, Copy)]
enum Place {
    Word(&'static str),
    Noun,
    Adjective,
    Verb,
    Adverb,
}

use Place::{Adjective, Adverb, Noun, Verb, Word};

const SENTENCES: [&[Place]; 6] = [
    &[Word("The"), Adjective, Noun, Verb, Word("the"), Noun, Adverb],
    &[Word("My"), Noun, Verb, Word("a"), Adjective, Noun, Word("and"), Verb, Word("it"), Adverb],
    &[
        Word("We"),
        Verb,
        Word("your"),
        Noun,
        Adverb,
        Word("but"),
        Word("the"),
        Noun,
        Word("is"),
        Adjective,
    ],
    &[
        Word("Please"),
        Word("tell"),
        Word("me"),
        Word("why"),
        Word("the"),
        Noun,
        Verb,
        Word("our"),
        Noun,
    ],
    &[
        Word("When"),
        Word("the"),
        Noun,
        Word("was"),
        Adjective,
        Word("nobody"),
        Verb,
        Word("the"),
        Adjective,
        Noun,
    ],
    &[
        Word("Your"),
        Adjective,
        Noun,
        Word("has"),
        Word("been"),
        Verb,
        Word("by"),
        Word("the"),
        Noun,
    ],
];

/// An endless text, word by word; what was written is never changed, so that it can grow.
#[derive(Debug)]
pub(crate) struct Prose {
    random: Random,
    sentence: &'static [Place],
    position: usize,
}

impl Prose {
    /// The text of a stream of random numbers.
    pub(crate) fn new(mut random: Random) -> Self {
        let sentence = SENTENCES[random.below(SENTENCES.len())];
        Self { random, sentence, position: 0 }
    }

    /// Appends one word, with the space before it and the full stop after it. ASCII without quotes,
    /// backslashes and control characters: it is its own JSON text.
    pub(crate) fn push_word(&mut self, text: &mut String) {
        if self.position == self.sentence.len() {
            self.sentence = SENTENCES[self.random.below(SENTENCES.len())];
            self.position = 0;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(self.word(self.sentence[self.position]));
        self.position += 1;
        if self.position == self.sentence.len() {
            text.push('.');
        }
    }

    fn word(&mut self, place: Place) -> &'static str {
        let list: &[&str] = match place {
            Word(word) => return word,
            Noun => &NOUNS,
            Adjective => &ADJECTIVES,
            Verb => &VERBS,
            Adverb => &ADVERBS,
        };
        list[self.random.below(list.len())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(seed: u64, words: usize) -> String {
        let mut prose = Prose::new(Random::of(seed, &[]));
        let mut text = String::new();
        (0..words).for_each(|_| prose.push_word(&mut text));
        text
    }

    #[test]
    fn a_seed_gives_one_text_and_more_words_only_extend_it() {
        assert_eq!(text(1, 200), text(1, 200));
        assert_ne!(text(1, 200), text(2, 200));
        assert!(text(1, 300).starts_with(&text(1, 200)));
    }

    #[test]
    fn prose_is_its_own_json() {
        let text = text(3, 5_000);
        assert_eq!(serde_json::to_string(&text).unwrap(), format!("\"{text}\""));
        assert!(text.is_ascii());
    }
}
