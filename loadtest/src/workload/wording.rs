//! The wording of questions: a pool of different ones, each also as finished JSON.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::Questions;
use super::decision::{Answer, Kind, Question};
use crate::prose::{ADJECTIVES, NOUNS};
use crate::random::{Random, Shares};

/// Name of the pools' streams of random numbers.
const STREAM: u64 = 0x9007;

/// The pool of the `traffic`-th kind of request.
pub(super) fn pool(seed: u64, traffic: usize, questions: &Questions) -> Vec<Rc<Question>> {
    let mut random = Random::of(seed, &[STREAM, traffic as u64]);
    let kinds = [questions.kinds.noul, questions.kinds.choice, questions.kinds.score];
    let kinds = Shares::of(kinds);
    let question = |number| {
        let kind = kinds.pick(&mut random);
        let options = random.between(questions.options) as usize;
        Rc::new(match kind {
            0 => noul(number),
            1 => choice(number, options),
            _ => score(number, options),
        })
    };
    (0..questions.variants as usize).map(question).collect()
}

fn noul(number: usize) -> Question {
    let instructions = format!("Is the {} {}?", noun(number), adjective(number));
    let json = json!({ "type": "noul", "instructions": instructions }).to_string();
    let options = vec![Answer::named("Yes"), Answer::named("No")];
    Question { id: None, kind: Kind::Noul, instructions, options, json }
}

fn choice(number: usize, options: usize) -> Question {
    let name = |index: usize| match index / NOUNS.len() {
        0 => noun(number + index).to_owned(),
        again => format!("{} {again}", noun(number + index)),
    };
    let names: Vec<String> = (0..options).map(name).collect();
    let criteria: Map<String, Value> =
        names.iter().map(|name| (name.clone(), Value::Null)).collect();
    let instructions = format!("Which is it about, if the {} is meant?", subject(number));
    let json = json!({ "type": "choice", "instructions": instructions, "criteria": criteria });
    let options = names.into_iter().map(Answer::named).collect();
    Question { id: None, kind: Kind::Choice, instructions, options, json: json.to_string() }
}

fn score(number: usize, levels: usize) -> Question {
    let level = |index: usize| format!("level {index}, {}", adjective(number + index));
    let criteria: Vec<String> = (0..levels).map(level).collect();
    let instructions = format!("How serious is it for the {}?", subject(number));
    let json = json!({ "type": "score", "instructions": instructions, "criteria": criteria });
    let options = criteria.into_iter().map(Answer::named).collect();
    Question { id: None, kind: Kind::Score, instructions, options, json: json.to_string() }
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
        let of = |seed| {
            let pool = pool(seed, 0, &questions(kinds, [2, 6], 1_000));
            pool.iter().map(|question| question.json.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
        assert_eq!(of(1).iter().collect::<HashSet<_>>().len(), 1_000);
    }

    #[test]
    fn options_and_levels_have_their_number() {
        let only = |choice, score| Kinds { noul: 0.0, choice, score };
        for question in pool(1, 0, &questions(only(1.0, 0.0), [255, 255], 60)) {
            let json: Value = serde_json::from_str(&question.json).unwrap();
            let keys: Vec<&String> = json["criteria"].as_object().unwrap().keys().collect();
            assert_eq!(keys.len(), 255);
            assert!(keys.into_iter().eq(question.options.iter().map(|option| &option.name)));
        }
        for question in pool(1, 0, &questions(only(0.0, 1.0), [2, 9], 60)) {
            let json: Value = serde_json::from_str(&question.json).unwrap();
            let levels = json["criteria"].as_array().unwrap();
            assert!((2..=9).contains(&levels.len()));
            assert!(levels.iter().eq(question.options.iter().map(|option| option.name.as_str())));
        }
    }
}
