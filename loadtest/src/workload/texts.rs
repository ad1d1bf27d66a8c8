//! The texts of states: each is a pure function of the seed and its number, made when first used.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use super::check::{BYTES_MAX, WORDS_MAX};
use super::{Length, StateSet};
use crate::prose::{Prose, Script};
use crate::random::{Random, Shares};

/// Most bytes of texts that are kept. When they are full all are dropped, to be made again.
const KEPT_BYTES_MAX: usize = 512 << 20;

/// Names of the streams of random numbers.
const LENGTH_STREAM: u64 = 0x1e46;
const TEXT_STREAM: u64 = 0x7e47;
const SCRIPT_STREAM: u64 = 0x5c41;

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
    /// None is Latin alone.
    scripts: Vec<Script>,
    script_shares: Shares,
    kept: HashMap<TextKey, Rc<Text>>,
    kept_bytes: usize,
}

impl Texts {
    /// Texts of `sets`, in `scripts` by their weights.
    pub(super) fn new(seed: u64, sets: Vec<StateSet>, scripts: &BTreeMap<Script, f64>) -> Self {
        let script_shares = Shares::of(scripts.values().copied());
        let scripts = scripts.keys().copied().collect();
        Self { seed, sets, scripts, script_shares, kept: HashMap::new(), kept_bytes: 0 }
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

    /// Numbers for one thing about a text.
    fn random(&self, key: TextKey, stream: u64) -> Random {
        let seed = self.sets[usize::from(key.set)].seed.unwrap_or(self.seed);
        Random::of(seed, &[stream, key.set.into(), key.text.into()])
    }

    /// Length of version 0, and whether it is in bytes.
    fn length(&self, key: TextKey) -> (u32, bool) {
        let mixture = &self.sets[usize::from(key.set)].length;
        let mut random = self.random(key, LENGTH_STREAM);
        let part = Shares::of(mixture.iter().map(|length| length.share)).pick(&mut random);
        draw_length(&mixture[part], &mut random)
    }

    /// The one script of a text. Drawn from a stream of its own: lengths and Latin words stay as they
    /// are whatever other scripts there are.
    fn script(&self, key: TextKey) -> Script {
        let drawn = self.script_shares.pick(&mut self.random(key, SCRIPT_STREAM));
        self.scripts.get(drawn).copied().unwrap_or_default()
    }

    fn make(&self, key: TextKey) -> Text {
        let mut prose = Prose::new(self.random(key, TEXT_STREAM), self.script(key));
        let (length, in_bytes) = self.length(key);
        let mut text = String::new();
        if in_bytes {
            while text.len() < length as usize {
                prose.push_word(&mut text);
            }
            // Whole characters: up to three bytes short of it where they have several.
            text.truncate(text.floor_char_boundary(length as usize));
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

    fn latin(seed: u64, sets: Vec<StateSet>) -> Texts {
        Texts::new(seed, sets, &BTreeMap::new())
    }

    fn set(length: Vec<Length>, growth: Option<super::super::Growth>) -> Vec<StateSet> {
        let (zipf, in_turn, prewarm_lead_ms) = (Some(0.0), None, None);
        let (seed, resident) = (None, false);
        vec![StateSet { count: 10, length, zipf, in_turn, seed, growth, resident, prewarm_lead_ms }]
    }

    fn words(words: u32) -> Length {
        Length { share: 1.0, words: Some(words), bytes: None, sigma: 0.0, max: None }
    }

    fn key(text: u32) -> TextKey {
        TextKey { set: 0, text }
    }

    #[test]
    fn lengths_are_exact_in_words_and_in_bytes() {
        let mut texts = latin(1, set(vec![words(77)], None));
        assert_eq!(texts.get(key(3)).version(0).split(' ').count(), 77);
        let bytes = Length { words: None, bytes: Some(100), ..words(1) };
        let mut texts = latin(1, set(vec![bytes], None));
        assert_eq!(texts.get(key(3)).version(0).len(), 100);
    }

    #[test]
    fn a_text_depends_on_seed_and_number_alone() {
        let text = |seed, number| {
            let mut texts = latin(seed, set(vec![words(50)], None));
            texts.get(key(9));
            texts.get(key(number)).version(0).to_owned()
        };
        assert_eq!(text(1, 2), text(1, 2));
        assert_ne!(text(1, 2), text(1, 3));
        assert_ne!(text(1, 2), text(2, 2));
        let of_set = |seed| {
            let mut sets = set(vec![words(50)], None);
            sets[0].seed = Some(1);
            latin(seed, sets).get(key(2)).version(0).to_owned()
        };
        assert_eq!([of_set(1), of_set(2)], [text(1, 2), text(1, 2)], "the set's own seed");
    }

    #[test]
    fn a_mixture_has_its_shares_and_a_lognormal_its_cap() {
        let long = Length { share: 5.0, ..words(6_000) };
        let short = Length { share: 95.0, sigma: 0.6, max: Some(1_000), ..words(350) };
        let texts = latin(4, set(vec![short, long], None));
        let lengths: Vec<u32> = (0..10_000).map(|number| texts.length(key(number)).0).collect();
        let count = |test: &dyn Fn(u32) -> bool| lengths.iter().filter(|l| test(**l)).count();
        assert!((430..570).contains(&count(&|length| length == 6_000)));
        assert!((4_600..4_900).contains(&count(&|length| length < 350)));
        assert_eq!(count(&|length| length > 1_000 && length != 6_000), 0);
    }

    #[test]
    fn versions_extend_each_other_up_to_the_limit() {
        let growth = super::super::Growth { words: 40, max_words: 200 };
        let mut texts = latin(1, set(vec![words(100)], Some(growth)));
        // 100, 140 and 180 words.
        assert_eq!(texts.versions(key(0)), 3);
        let text = texts.get(key(0));
        assert_eq!(text.version(2).split(' ').count(), 180);
        assert!(text.version(2).starts_with(text.version(1)));
        assert!(text.version(1).starts_with(text.version(0)));
    }

    #[test]
    fn a_text_is_in_one_script_and_scripts_have_their_shares() {
        let scripts =
            BTreeMap::from([(Script::Latin, 8.0), (Script::Cyrillic, 1.0), (Script::Han, 1.0)]);
        let mut texts = Texts::new(1, set(vec![words(40)], None), &scripts);
        let mut counts = [0; 3];
        for number in 0..2_000 {
            let text = texts.get(key(number));
            let text = text.version(0);
            let kinds = [text.is_ascii(), text.contains(['о', 'е', 'л']), !text.contains(' ')];
            let kind = kinds.iter().position(|is_it| *is_it).unwrap();
            assert_eq!(kinds.iter().filter(|is_it| **is_it).count(), 1, "{text}");
            counts[kind] += 1;
        }
        // Binomial, deviations of 18 and 13.
        assert!((1_520..1_680).contains(&counts[0]), "{counts:?}");
        assert!((140..260).contains(&counts[1]) && (140..260).contains(&counts[2]), "{counts:?}");
    }

    #[test]
    fn other_scripts_leave_the_latin_texts_as_they_are() {
        let mut alone = latin(1, set(vec![words(40)], None));
        let scripts = BTreeMap::from([(Script::Latin, 1.0), (Script::Greek, 1.0)]);
        let mut mixed = Texts::new(1, set(vec![words(40)], None), &scripts);
        let pairs = (0..100).map(|number| (alone.get(key(number)), mixed.get(key(number))));
        let same = pairs.filter(|(one, other)| one.version(0) == other.version(0)).count();
        assert!((30..70).contains(&same), "{same}");
    }

    #[test]
    fn lengths_in_bytes_end_with_a_whole_character() {
        let bytes = Length { words: None, bytes: Some(100), ..words(1) };
        for script in [Script::Cyrillic, Script::Devanagari, Script::Han] {
            let mut texts =
                Texts::new(1, set(vec![bytes.clone()], None), &BTreeMap::from([(script, 1.0)]));
            assert!(
                (0..10).all(|number| (98..=100).contains(&texts.get(key(number)).version(0).len()))
            );
        }
    }

    /// Reports that were made with a seed can be made again.
    #[test]
    fn a_text_is_what_it_was_in_the_first_version() {
        let mut texts = latin(1, set(vec![words(24)], None));
        assert_eq!(
            texts.get(key(3)).version(0),
            "When the signature was monthly nobody charged the angry supplier. We closed your \
             device partly but the invoice is helpful. Your angry booking has"
        );
    }
}
