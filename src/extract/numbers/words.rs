//! Numbers in English words: `twenty-three`, `one hundred and five`, `half a million`, `a dozen`.
//!
//! A word at a time, with the value so far; a word that cannot go on begins the next number.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a word that a rule does not name ends a number, whatever it means"
)]

use std::ops::Range;

use super::before::preceding;
use super::digits::{is_digit, is_identifier};

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] =
    ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const LARGE: [(&str, f64); 6] = [
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("trillion", 1e12),
    ("lakh", 1e5),
    ("crore", 1e7),
];
/// The longest word of a number; longer ones are not looked at.
const LETTERS_MAX: usize = 12;
/// Words of one number; a longer chain begins another.
const WORDS_MAX: usize = 24;
/// Words ahead of `one` and behind it with which it counts nothing.
const NOT_AHEAD_OF_ONE: [&str; 10] =
    ["no", "any", "every", "each", "this", "that", "which", "some", "the", "another"];
const NOT_BEHIND_ONE: [&str; 8] =
    ["of", "another", "who", "that", "can", "could", "should", "must"];

/// A number in words and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Worded {
    pub(super) place: Range<usize>,
    pub(super) value: f64,
}

/// What a word does to the number that it is in.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Meaning {
    Unit(f64),
    Ten(f64),
    Hundred,
    Large(f64),
    Dozen,
    Half,
    Quarter,
    And,
    A,
    Point,
    Minus,
    Twice,
    Other,
}

#[derive(Debug, Clone)]
struct Word {
    place: Range<usize>,
    meaning: Meaning,
    /// Whether only a space or a hyphen stands between the word before and this one.
    is_joined: bool,
}

/// All numbers in words, in the order of the text.
pub(super) fn worded(text: &str) -> Vec<Worded> {
    let words = words(text);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        let end = (at + 1..words.len().min(at + WORDS_MAX))
            .find(|next| !words[*next].is_joined || words[*next].meaning == Meaning::Other)
            .unwrap_or(words.len().min(at + WORDS_MAX));
        match number(&words[at..end]) {
            Some((value, taken)) => {
                let place = words[at].place.start..words[at + taken - 1].place.end;
                if !(value.to_bits() == 1.0_f64.to_bits() && taken == 1 && is_pronoun(text, &place))
                {
                    found.push(Worded { place, value });
                }
                at += taken;
            }
            None => at += 1,
        }
    }
    found
}

fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut start = None;
    let mut last_end = 0;
    for (at, character) in text.char_indices().chain([(text.len(), ' ')]) {
        let is_letter = is_identifier(character) || is_digit(character);
        match start {
            None if is_letter => start = Some(at),
            Some(begin) if !is_letter => {
                let begin = begin + usize::from(is_escape(text, begin));
                let is_joined = is_join(&text[last_end..begin]);
                found.push(Word {
                    place: begin..at,
                    meaning: meaning(&text[begin..at]),
                    is_joined,
                });
                last_end = at;
                start = None;
            }
            Some(_) | None => {}
        }
    }
    found
}

/// Whether the letter at `at` is that of an escape like `\n`.
fn is_escape(text: &str, at: usize) -> bool {
    let next = text[at..].chars().next().map_or(0, char::len_utf8);
    text[..at].ends_with('\\') && preceding(text, at + next) == Some(' ')
}

fn is_join(between: &str) -> bool {
    matches!(between, " " | "-" | "\u{00A0}" | "\u{2011}" | "\n" | ", and ")
}

fn meaning(word: &str) -> Meaning {
    if word.len() > LETTERS_MAX {
        return Meaning::Other;
    }
    let small = word.to_ascii_lowercase();
    let small = small.as_str();
    if let Some(value) = SMALL.iter().position(|one| *one == small) {
        return Meaning::Unit(value as f64);
    }
    if let Some(tens) = TENS.iter().position(|ten| *ten == small) {
        return Meaning::Ten((tens as f64 + 2.0) * 10.0);
    }
    let singular = small.strip_suffix('s').unwrap_or(small);
    if let Some((_, value)) = LARGE.iter().find(|(large, _)| *large == singular) {
        return Meaning::Large(*value);
    }
    match small {
        "hundred" | "hundreds" => Meaning::Hundred,
        "dozen" => Meaning::Dozen,
        "half" => Meaning::Half,
        "quarter" | "quarters" => Meaning::Quarter,
        "and" => Meaning::And,
        "a" | "an" => Meaning::A,
        "point" => Meaning::Point,
        "minus" | "negative" => Meaning::Minus,
        "twice" => Meaning::Twice,
        _ => Meaning::Other,
    }
}

/// A number at the beginning of joined words, and how many of them it takes.
fn number(words: &[Word]) -> Option<(f64, usize)> {
    let at = |index: usize| words.get(index).map_or(Meaning::Other, |word| word.meaning);
    match (at(0), at(1), at(2)) {
        (Meaning::Minus, _, _) => {
            let (value, taken) = number(&words[1..])?;
            (value > 0.0).then_some((-value, taken + 1))
        }
        (Meaning::Twice, _, _) => Some((2.0, 1)),
        (Meaning::Half, Meaning::A, Meaning::Dozen) => Some((6.0, 3)),
        (Meaning::Half, Meaning::A, Meaning::Large(large)) => Some((large / 2.0, 3)),
        (Meaning::A, Meaning::Dozen, _) => Some((12.0, 2)),
        (Meaning::A, Meaning::Hundred | Meaning::Large(_), _) => cardinal(words, 1, 1.0),
        (Meaning::Unit(many), Meaning::Quarter, _) if many > 1.0 => Some((many / 4.0, 2)),
        (Meaning::Unit(many), Meaning::Dozen, _) => Some((many * 12.0, 2)),
        (Meaning::Unit(_) | Meaning::Ten(_), _, _) => {
            year(at(0), at(1), at(2)).or_else(|| cardinal(words, 0, 0.0))
        }
        _ => None,
    }
}

/// `nineteen ninety-nine`, `twenty twenty-four`.
fn year(first: Meaning, second: Meaning, third: Meaning) -> Option<(f64, usize)> {
    let century = match first {
        Meaning::Unit(value) if (16.0..20.0).contains(&value) => value,
        Meaning::Ten(value) if value < 21.0 => value,
        _ => return None,
    };
    let Meaning::Ten(tens) = second else { return None };
    match third {
        Meaning::Unit(unit) if unit > 0.0 && unit < 10.0 => {
            Some((century * 100.0 + tens + unit, 3))
        }
        _ => Some((century * 100.0 + tens, 2)),
    }
}

/// The value of a chain: `total` holds what a large word closed, `group` what is below a thousand.
#[derive(Debug, Clone, Copy)]
struct Chain {
    total: f64,
    group: f64,
    /// The smallest large word so far; the next must be smaller.
    large: f64,
    /// What the next unit must be below: 100 behind a hundred, 10 behind tens, 0 behind a unit.
    room: f64,
}

impl Chain {
    /// Adds a word; none where it cannot go on.
    fn with(self, meaning: Meaning) -> Option<Self> {
        match meaning {
            Meaning::Unit(value) if value > 0.0 && value < self.room => {
                Some(Self { group: self.group + value, room: 0.0, ..self })
            }
            Meaning::Ten(value) if self.room >= 100.0 => {
                Some(Self { group: self.group + value, room: 10.0, ..self })
            }
            Meaning::Hundred if self.group > 0.0 && self.group < 100.0 => {
                Some(Self { group: self.group * 100.0, room: 100.0, ..self })
            }
            Meaning::Large(large) if self.group > 0.0 && large < self.large => {
                let total = self.total + self.group * large;
                Some(Self { total, group: 0.0, large, room: 1000.0 })
            }
            _ => None,
        }
    }
}

/// A chain from word `at` on, `group` being what stands before it.
fn cardinal(words: &[Word], at: usize, group: f64) -> Option<(f64, usize)> {
    let mut chain =
        Chain { total: 0.0, group, large: f64::INFINITY, room: if at == 0 { 1000.0 } else { 0.0 } };
    let meaning = |index: usize| words.get(index).map_or(Meaning::Other, |word| word.meaning);
    if meaning(at) == Meaning::Unit(0.0) {
        return point(words, at + 1, 0.0).or(Some((0.0, 1)));
    }
    let mut taken = at;
    loop {
        if let Some(next) = chain.with(meaning(taken)) {
            chain = next;
            taken += 1;
            continue;
        }
        // `and` goes on behind hundreds and thousands, and with a half or a quarter.
        let is_and = meaning(taken) == Meaning::And;
        let fraction = match (is_and, meaning(taken + 1), meaning(taken + 2)) {
            (true, Meaning::A, Meaning::Half) => Some((0.5, 3)),
            (true, Meaning::A, Meaning::Quarter) => Some((0.25, 3)),
            (true, Meaning::Unit(3.0), Meaning::Quarter) => Some((0.75, 3)),
            _ => None,
        };
        if let Some((part, words_of_it)) = fraction {
            return Some(scaled(words, taken + words_of_it, chain.total + chain.group + part));
        }
        match chain.with(meaning(taken + 1)).filter(|_| is_and && taken > at && chain.room >= 100.0)
        {
            Some(next) => chain = next,
            None => break,
        }
        taken += 2;
    }
    let value = chain.total + chain.group;
    if taken == 0 {
        return None;
    }
    point(words, taken, value).or(Some((value, taken)))
}

/// A large word behind a fraction: `two and a half million`.
fn scaled(words: &[Word], taken: usize, value: f64) -> (f64, usize) {
    match words.get(taken).map(|word| word.meaning) {
        Some(Meaning::Large(large)) => (value * large, taken + 1),
        _ => (value, taken),
    }
}

/// Digits behind `point`, and a large word behind them: `two point five million`.
fn point(words: &[Word], at: usize, value: f64) -> Option<(f64, usize)> {
    if words.get(at)?.meaning != Meaning::Point {
        return None;
    }
    let digits = words[at + 1..].iter().map_while(|word| match word.meaning {
        Meaning::Unit(digit) if digit < 10.0 => Some(format!("{digit}")),
        _ => None,
    });
    let digits: Vec<String> = digits.collect();
    let decimal: f64 = format!("{value:.0}.{}", digits.concat()).parse().ok()?;
    (!digits.is_empty()).then(|| scaled(words, at + 1 + digits.len(), decimal))
}

/// `one` as in `one of them` or `no one`.
fn is_pronoun(text: &str, place: &Range<usize>) -> bool {
    let bound =
        |at: usize| (at..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    let back = &text[bound(place.start.saturating_sub(LETTERS_MAX))..place.start];
    let ahead = &text[place.end..bound((place.end + LETTERS_MAX).min(text.len()))];
    let word = |c: char| !c.is_alphabetic();
    let last = back.trim_end().rsplit(word).next().unwrap_or_default().to_ascii_lowercase();
    let next = ahead.trim_start().split(word).next().unwrap_or_default().to_ascii_lowercase();
    ahead.starts_with(['-', '\'', '’'])
        || NOT_AHEAD_OF_ONE.contains(&last.as_str())
        || NOT_BEHIND_ONE.contains(&next.as_str())
}
