//! The wording of questions: a pool of different ones, as finished JSON.

use serde_json::{Map, Value, json};

use super::Questions;
use crate::prose::{ADJECTIVES, NOUNS};
use crate::random::{Random, Shares};

/// Name of the pools' streams of random numbers.
const STREAM: u64 = 0x9007;

/// The pool of the `traffic`-th kind of request: one JSON object a question.
pub(super) fn pool(seed: u64, traffic: usize, questions: &Questions) -> Vec<String> {
    let mut random = Random::of(seed, &[STREAM, traffic as u64]);
    let kinds = [questions.kinds.noul, questions.kinds.choice, questions.kinds.score];
    let kinds = Shares::of(kinds);
    let question = |number| {
        let kind = kinds.pick(&mut random);
        let options = random.between(questions.options) as usize;
        match kind {
            0 => noul(number),
            1 => choice(number, options),
            _ => score(number, options),
        }
        .to_string()
    };
    (0..questions.variants as usize).map(question).collect()
}

fn noul(number: usize) -> Value {
    json!({ "type": "noul", "instructions": format!("Is the {} {}?", noun(number), adjective(number)) })
}

fn choice(number: usize, options: usize) -> Value {
    let name = |index: usize| match index / NOUNS.len() {
        0 => noun(number + index).to_owned(),
        again => format!("{} {again}", noun(number + index)),
    };
    let criteria: Map<String, Value> =
        (0..options).map(|index| (name(index), Value::Null)).collect();
    let instructions = format!("Which is it about, if the {} is meant?", subject(number));
    json!({ "type": "choice", "instructions": instructions, "criteria": criteria })
}

fn score(number: usize, levels: usize) -> Value {
    let level = |index: usize| format!("level {index}, {}", adjective(number + index));
    let criteria: Vec<String> = (0..levels).map(level).collect();
    let instructions = format!("How serious is it for the {}?", subject(number));
    json!({ "type": "score", "instructions": instructions, "criteria": criteria })
}

fn noun(number: usize) -> &'static str {
    NOUNS[number % NOUNS.len()]
}

/// All pairs of a noun and an adjective before any comes again.
fn adjective(number: usize) -> &'static str {
    ADJECTIVES[(number / NOUNS.len() + number) % ADJECTIVES.len()]
}

fn subject(number: usize) -> String {
    format!("{} {}", adjective(number), noun(number))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::super::Kinds;
    use super::*;

    fn questions(kinds: Kinds, options: [u32; 2], variants: u32) -> Questions {
        Questions { count: [1, 1], kinds, options, variants }
    }

    #[test]
    fn questions_of_a_pool_differ_and_a_seed_gives_one_pool() {
        let kinds = Kinds { noul: 1.0, choice: 1.0, score: 1.0 };
        let of = |seed| pool(seed, 0, &questions(kinds, [2, 6], 1_000));
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(of(1).iter().collect::<HashSet<_>>().len(), 1_000);
    }

    #[test]
    fn options_and_levels_have_their_number() {
        let only = |choice, score| Kinds { noul: 0.0, choice, score };
        for text in pool(1, 0, &questions(only(1.0, 0.0), [255, 255], 60)) {
            let question: Value = serde_json::from_str(&text).unwrap();
            assert_eq!(question["criteria"].as_object().unwrap().len(), 255);
        }
        for text in pool(1, 0, &questions(only(0.0, 1.0), [2, 9], 60)) {
            let question: Value = serde_json::from_str(&text).unwrap();
            assert!((2..=9).contains(&question["criteria"].as_array().unwrap().len()));
        }
    }
}
