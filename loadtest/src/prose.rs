//! Prose: seeded sentences from word lists of our own, the text of states and questions.
//!
//! Real-looking words keep the tokenizer honest: random letters would give several tokens a word. In
//! other scripts real words do take several, which is why a workload can ask for them. Each script
//! has one language, with a few patterns of sentences in which every drawn word agrees with the rest.

mod arabic;
mod cyrillic;
mod devanagari;
mod greek;
mod han;
mod japanese;
mod latin;

use serde::Deserialize;

use crate::random::Random;
pub(crate) use latin::{ADJECTIVES, NOUNS};

/// A script, and the language that is written in it here.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Script {
    /// English.
    #[default]
    Latin,
    /// Russian.
    Cyrillic,
    /// Greek.
    Greek,
    /// Arabic.
    Arabic,
    /// Hindi.
    Devanagari,
    /// Chinese, without spaces.
    Han,
    /// Japanese in kanji and kana, without spaces.
    Japanese,
}

impl Script {
    fn language(self) -> &'static Language {
        match self {
            Self::Latin => &latin::LANGUAGE,
            Self::Cyrillic => &cyrillic::LANGUAGE,
            Self::Greek => &greek::LANGUAGE,
            Self::Arabic => &arabic::LANGUAGE,
            Self::Devanagari => &devanagari::LANGUAGE,
            Self::Han => &han::LANGUAGE,
            Self::Japanese => &japanese::LANGUAGE,
        }
    }
}

/// How a language is written.
#[derive(Debug)]
struct Language {
    /// What stands between two words.
    gap: &'static str,
    /// What ends a sentence.
    stop: &'static str,
    sentences: &'static [&'static [Place]],
}

/// A place in a sentence: a fixed word or one of a list. Commas stand behind fixed words only.
#[derive(Debug, Clone, Copy)]
enum Place {
    Word(&'static str),
    OneOf(&'static [&'static str]),
}

/// An endless text, word by word; what was written is never changed, so that it can grow.
#[derive(Debug)]
pub(crate) struct Prose {
    random: Random,
    language: &'static Language,
    sentence: &'static [Place],
    position: usize,
}

impl Prose {
    /// The text of a stream of random numbers.
    pub(crate) fn new(mut random: Random, script: Script) -> Self {
        let language = script.language();
        let sentence = draw(language, &mut random);
        Self { random, language, sentence, position: 0 }
    }

    /// Appends one word, with the gap before it and the full stop after it. Where words are not
    /// divided by spaces, a word is an entry of a list or a particle, two characters on average. No
    /// quotes, backslashes and control characters: the text is its own JSON text.
    pub(crate) fn push_word(&mut self, text: &mut String) {
        if self.position == self.sentence.len() {
            self.sentence = draw(self.language, &mut self.random);
            self.position = 0;
        }
        if !text.is_empty() {
            text.push_str(self.language.gap);
        }
        text.push_str(self.word(self.sentence[self.position]));
        self.position += 1;
        if self.position == self.sentence.len() {
            text.push_str(self.language.stop);
        }
    }

    fn word(&mut self, place: Place) -> &'static str {
        match place {
            Place::Word(word) => word,
            Place::OneOf(list) => list[self.random.below(list.len())],
        }
    }
}

fn draw(language: &Language, random: &mut Random) -> &'static [Place] {
    language.sentences[random.below(language.sentences.len())]
}

#[cfg(test)]
mod tests;
