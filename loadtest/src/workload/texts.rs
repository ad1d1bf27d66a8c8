//! The texts of states: each is a pure function of the seed and its number, made when first used.

use std::collections::HashMap;
use std::rc::Rc;

use super::check::{BYTES_MAX, WORDS_MAX};
use super::{Length, StateSet};
use crate::prose::Prose;
use crate::random::{Random, Shares};

/// Most bytes of texts that are kept. When they are full all are dropped, to be made again.
const KEPT_BYTES_MAX: usize = 512 << 20;

/// Names of the streams of random numbers.
const LENGTH_STREAM: u64 = 0x1e46;
const TEXT_STREAM: u64 = 0x7e47;

/// Which text: the set, and the number in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct TextKey {
    pub(crate) set: u16,
    pub(crate) text: u32,
}

/// A state's text and where each of its versions ends.
#[derive(Debug)]
pub(super) struct Text {
    text: String,
    ends: Vec<usize>,
}

impl Text {
    /// The text as it is in `version`, from 0; also its JSON between the quotes.
    pub(super) fn version(&self, version: u32) -> &str {
        let last = self.ends.len() - 1;
        &self.text[..self.ends[last.min(version as usize)]]
    }
}

/// All texts of a workload.
#[derive(Debug)]
pub(super) struct Texts {
    seed: u64,
    sets: Vec<StateSet>,
    kept: HashMap<TextKey, Rc<Text>>,
    kept_bytes: usize,
}

impl Texts {
    pub(super) fn new(seed: u64, sets: Vec<StateSet>) -> Self {
        Self { seed, sets, kept: HashMap::new(), kept_bytes: 0 }
    }

    /// Whether the states of a set grow.
    pub(super) fn grows(&self, set: u16) -> bool {
        self.sets[usize::from(set)].growth.is_some()
    }

    /// How many versions a text goes through before another takes its place; 1 where it never grows.
    pub(super) fn versions(&self, key: TextKey) -> u32 {
        let set = &self.sets[usize::from(key.set)];
        let Some(growth) = &set.growth else { return 1 };
        let (words, _) = self.length(key);
        1 + growth.max_words.saturating_sub(words) / growth.words
    }

    /// The text, made where it is not kept.
    pub(super) fn get(&mut self, key: TextKey) -> Rc<Text> {
        if let Some(text) = self.kept.get(&key) {
            return Rc::clone(text);
        }
        let text = Rc::new(self.make(key));
        if self.kept_bytes + text.text.len() > KEPT_BYTES_MAX {
            self.kept.clear();
            self.kept_bytes = 0;
        }
        self.kept_bytes += text.text.len();
        self.kept.insert(key, Rc::clone(&text));
        text
    }

    /// Length of version 0, and whether it is in bytes.
    fn length(&self, key: TextKey) -> (u32, bool) {
        let mixture = &self.sets[usize::from(key.set)].length;
        let path = [LENGTH_STREAM, key.set.into(), key.text.into()];
        let mut random = Random::of(self.seed, &path);
        let part = Shares::of(mixture.iter().map(|length| length.share)).pick(&mut random);
        draw_length(&mixture[part], &mut random)
    }

    fn make(&self, key: TextKey) -> Text {
        let path = [TEXT_STREAM, key.set.into(), key.text.into()];
        let mut prose = Prose::new(Random::of(self.seed, &path));
        let (length, in_bytes) = self.length(key);
        let mut text = String::new();
        if in_bytes {
            while text.len() < length as usize {
                prose.push_word(&mut text);
            }
            text.truncate(length as usize);
            return Text { ends: vec![text.len()], text };
        }
        (0..length).for_each(|_| prose.push_word(&mut text));
        let mut ends = vec![text.len()];
        let growth = self.sets[usize::from(key.set)].growth.as_ref();
        for _ in 1..self.versions(key) {
            (0..growth.map_or(0, |growth| growth.words)).for_each(|_| prose.push_word(&mut text));
            ends.push(text.len());
        }
        Text { text, ends }
    }
}

fn draw_length(length: &Length, random: &mut Random) -> (u32, bool) {
    let (median, most, in_bytes) = match (length.words, length.bytes) {
        (Some(words), _) => (words, WORDS_MAX, false),
        (None, bytes) => (bytes.unwrap_or(1), BYTES_MAX, true),
    };
    let drawn = if length.sigma > 0.0 {
        random.lognormal(median.into(), length.sigma)
    } else {
        median.into()
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the range of a length"
    )]
    let whole = drawn.round().clamp(1.0, length.max.unwrap_or(most).into()) as u32;
    (whole, in_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(length: Vec<Length>, growth: Option<super::super::Growth>) -> Vec<StateSet> {
        let (zipf, in_turn, prewarm_lead_ms) = (Some(0.0), None, None);
        let resident = false;
        vec![StateSet { count: 10, length, zipf, in_turn, growth, resident, prewarm_lead_ms }]
    }

    fn words(words: u32) -> Length {
        Length { share: 1.0, words: Some(words), bytes: None, sigma: 0.0, max: None }
    }

    fn key(text: u32) -> TextKey {
        TextKey { set: 0, text }
    }

    #[test]
    fn lengths_are_exact_in_words_and_in_bytes() {
        let mut texts = Texts::new(1, set(vec![words(77)], None));
        assert_eq!(texts.get(key(3)).version(0).split(' ').count(), 77);
        let bytes = Length { words: None, bytes: Some(100), ..words(1) };
        let mut texts = Texts::new(1, set(vec![bytes], None));
        assert_eq!(texts.get(key(3)).version(0).len(), 100);
    }

    #[test]
    fn a_text_depends_on_seed_and_number_alone() {
        let text = |seed, number| {
            let mut texts = Texts::new(seed, set(vec![words(50)], None));
            texts.get(key(9));
            texts.get(key(number)).version(0).to_owned()
        };
        assert_eq!(text(1, 2), text(1, 2));
        assert_ne!(text(1, 2), text(1, 3));
        assert_ne!(text(1, 2), text(2, 2));
    }

    #[test]
    fn a_mixture_has_its_shares_and_a_lognormal_its_cap() {
        let long = Length { share: 5.0, ..words(6_000) };
        let short = Length { share: 95.0, sigma: 0.6, max: Some(1_000), ..words(350) };
        let texts = Texts::new(4, set(vec![short, long], None));
        let lengths: Vec<u32> = (0..10_000).map(|number| texts.length(key(number)).0).collect();
        let count = |test: &dyn Fn(u32) -> bool| lengths.iter().filter(|l| test(**l)).count();
        assert!((430..570).contains(&count(&|length| length == 6_000)));
        assert!((4_600..4_900).contains(&count(&|length| length < 350)));
        assert_eq!(count(&|length| length > 1_000 && length != 6_000), 0);
    }

    #[test]
    fn versions_extend_each_other_up_to_the_limit() {
        let growth = super::super::Growth { words: 40, max_words: 200 };
        let mut texts = Texts::new(1, set(vec![words(100)], Some(growth)));
        // 100, 140 and 180 words.
        assert_eq!(texts.versions(key(0)), 3);
        let text = texts.get(key(0));
        assert_eq!(text.version(2).split(' ').count(), 180);
        assert!(text.version(2).starts_with(text.version(1)));
        assert!(text.version(1).starts_with(text.version(0)));
    }
}
