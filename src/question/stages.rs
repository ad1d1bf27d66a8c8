//! Stages: which questions of a decision are read after which, because of what those were answered.
//!
//! A question stands one stage after the last of those that it names; all of a stage are read side by
//! side, in the order in which they were asked.

use std::collections::HashMap;

use super::Question;
use super::answer::Value;
use crate::readout::confidence;

/// Why there is no order of reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unordered {
    /// A question names one that is not asked, or itself.
    Unknown {
        /// Place of the question that does.
        question: usize,
        /// What it names.
        names: String,
    },
    /// Questions wait for each other: their places, in the order in which they were asked.
    Cycle(Vec<usize>),
}

/// The stages of `questions`: their places, stage after stage, each once. One stage where nothing
/// depends on anything. Takes time linear in questions and what they name.
///
/// # Errors
/// [`Unordered`]; decoding refuses such questions, so that none reaches a decision.
pub fn stages(questions: &[Question]) -> Result<Vec<Vec<usize>>, Unordered> {
    let places: HashMap<&str, usize> = questions
        .iter()
        .enumerate()
        .map(|(place, question)| (question.id.as_str(), place))
        .collect();
    let mut followers = vec![Vec::new(); questions.len()];
    let mut waits_for = vec![0_usize; questions.len()];
    for (place, question) in questions.iter().enumerate() {
        for name in question.names() {
            let Some(&named) = places.get(name).filter(|named| **named != place) else {
                return Err(Unordered::Unknown { question: place, names: name.to_owned() });
            };
            followers[named].push(place);
            waits_for[place] += 1;
        }
    }
    let mut stages = Vec::new();
    let mut stage: Vec<usize> =
        (0..questions.len()).filter(|place| waits_for[*place] == 0).collect();
    let mut placed = 0;
    while !stage.is_empty() {
        placed += stage.len();
        let mut next = Vec::new();
        for follower in stage.iter().flat_map(|place| &followers[*place]) {
            waits_for[*follower] -= 1;
            if waits_for[*follower] == 0 {
                next.push(*follower);
            }
        }
        next.sort_unstable();
        stages.push(std::mem::replace(&mut stage, next));
    }
    if placed == questions.len() {
        return Ok(stages);
    }
    let waiting = (0..questions.len()).filter(|place| waits_for[*place] > 0);
    Err(Unordered::Cycle(waiting.collect()))
}

impl Question {
    /// Ids of the questions that are answered before it; one may be there twice.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let conditions = self.ask_if.iter().map(|condition| condition.question.as_str());
        conditions.chain(self.depends_on.iter().map(String::as_str))
    }
}

/// Why a question is not asked, by what was answered so far (`None`: not answered yet).
pub fn skipped<'a>(
    question: &Question,
    answer_of: impl Fn(&str) -> Option<&'a Value>,
) -> Option<Value> {
    question.ask_if.iter().find_map(|condition| {
        let was = answer_of(&condition.question).and_then(name);
        let is_met = was.as_ref().is_some_and(|name| condition.answers.contains(name));
        (!is_met).then(|| Value::Skipped {
            because: condition.question.clone(),
            was,
            wanted: condition.answers.clone(),
        })
    })
}

/// The name of an answer, as conditions say it: `yes` or `no`, the chosen key, the text of the most
/// probable level; none of what was skipped or found.
pub fn name(value: &Value) -> Option<String> {
    match value {
        Value::Noul { yes } => Some(if *yes >= 0.5 { "yes" } else { "no" }.to_owned()),
        Value::Choice { chosen, keys, .. } => keys.get(*chosen).cloned(),
        Value::Score { legend, probabilities, .. } => {
            legend.get(confidence::first_top(probabilities)).cloned()
        }
        Value::Number(_) | Value::Excerpt(_) | Value::Skipped { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::{Condition, Kind};

    fn questions(edges: &[(&str, &[&str])]) -> Vec<Question> {
        let question = |(id, names): &(&str, &[&str])| {
            let kind = Kind::Noul { when_true: None, when_false: None };
            let condition = |name: &&str| Condition {
                question: (*name).to_owned(),
                answers: vec!["yes".to_owned()],
            };
            let ask_if = names.iter().map(condition).collect();
            Question { ask_if, ..Question::new((*id).to_owned(), kind, None) }
        };
        edges.iter().map(question).collect()
    }

    #[test]
    fn a_question_stands_after_the_last_that_it_names() {
        let asked = questions(&[("c", &["b", "a"]), ("a", &[]), ("b", &["a"]), ("d", &["a"])]);
        assert_eq!(stages(&asked).unwrap(), [vec![1], vec![2, 3], vec![0]]);
        assert_eq!(stages(&questions(&[("x", &[]), ("y", &[])])).unwrap(), [vec![0, 1]]);
    }

    #[test]
    fn what_waits_for_itself_is_a_cycle_and_unknown_names_are_told() {
        let asked = questions(&[("a", &["b"]), ("b", &["a"]), ("c", &[])]);
        assert_eq!(stages(&asked), Err(Unordered::Cycle(vec![0, 1])));
        let unknown = |names: &str| Unordered::Unknown { question: 0, names: names.to_owned() };
        assert_eq!(stages(&questions(&[("a", &["z"])])), Err(unknown("z")));
        assert_eq!(stages(&questions(&[("a", &["a"])])), Err(unknown("a")));
    }

    #[test]
    fn a_skipped_question_skips_what_follows_it() {
        let asked = questions(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]);
        let no = Value::Noul { yes: 0.2 };
        let Some(skipped_b) = skipped(&asked[1], |_| Some(&no)) else { panic!("asked") };
        let Value::Skipped { because, was, .. } = &skipped_b else { panic!("{skipped_b:?}") };
        assert_eq!((because.as_str(), was.as_deref()), ("a", Some("no")));
        let Some(Value::Skipped { because, was, wanted }) =
            skipped(&asked[2], |_| Some(&skipped_b))
        else {
            panic!("asked")
        };
        assert_eq!((because.as_str(), was, wanted), ("b", None, vec!["yes".to_owned()]));
        assert_eq!(skipped(&asked[1], |_| Some(&Value::Noul { yes: 0.5 })), None);
    }

    #[test]
    fn levels_of_one_text_have_one_name() {
        let levels = |probabilities: Vec<f64>| Value::Score {
            mean: 0.0,
            legend: vec!["low".into(), "low".into(), "high".into()],
            probabilities,
            confidence: 0.0,
        };
        assert_eq!(name(&levels(vec![0.1, 0.6, 0.3])).as_deref(), Some("low"));
        assert_eq!(name(&levels(vec![0.3, 0.3, 0.4])).as_deref(), Some("high"));
    }
}
