//! The answer to a question for a number, from the distribution over its candidates.

use super::numbers::NumberCandidate;
use super::spans::Spans;

/// An answer to a question for a number.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberAnswer {
    /// None where it is most probable that the number is not stated.
    pub value: Option<f64>,
    /// Of the answer that is given: of the value, or that none is stated.
    pub probability: f64,
    /// That the number is not stated.
    pub not_stated: f64,
    /// The probability of the answer rescaled from uniform, as that of a choice; none where there was
    /// nothing to choose from.
    pub confidence: Option<f64>,
    /// All candidates, the most probable first; equal ones in the order of the text.
    pub candidates: Vec<CandidateAnswer>,
}

/// A candidate with its probability.
#[derive(Debug, Clone, PartialEq)]
pub struct CandidateAnswer {
    /// The number.
    pub value: f64,
    /// Between 0 and 1; with `not_stated` these sum to 1.
    pub probability: f64,
    /// The text around its first place, in one line.
    pub context: String,
}

/// Composes the answer.
///
/// Where several options are equally probable the first in the text is chosen, and "not stated" only
/// where nothing is as probable. Without candidates a number is certainly not stated.
///
/// * `distribution`: `[candidates + 1]`, sums to 1; the last is "not stated". What is missing is 0.
pub fn number_answer(
    text: &str,
    spans: &Spans,
    candidates: &[NumberCandidate],
    distribution: &[f64],
) -> NumberAnswer {
    let at = |index: usize| distribution.get(index).copied().unwrap_or(0.0);
    let not_stated = if candidates.is_empty() { 1.0 } else { at(candidates.len()) };
    let context = |candidate: &NumberCandidate| {
        candidate.places.first().map_or_else(String::new, |place| spans.context_text(text, place))
    };
    let answers = candidates.iter().enumerate().map(|(index, candidate)| CandidateAnswer {
        value: candidate.value,
        probability: at(index),
        context: context(candidate),
    });
    let mut answers: Vec<CandidateAnswer> = answers.collect();
    // The sort is stable: equal ones stay in the order of the text.
    answers.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    let top = answers.first().filter(|top| top.probability >= not_stated);
    let probability = top.map_or(not_stated, |top| top.probability);
    NumberAnswer {
        value: top.map(|top| top.value),
        probability,
        not_stated,
        confidence: confidence(probability, answers.len() + 1),
        candidates: answers,
    }
}

/// `(p - 1/n) / (1 - 1/n)`, between 0 and 1; none for a single option.
fn confidence(probability: f64, options: usize) -> Option<f64> {
    let uniform = 1.0 / options as f64;
    (options > 1).then(|| ((probability - uniform) / (1.0 - uniform)).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::super::{NumberCriteria, numbers, spans};
    use super::*;

    fn answer(text: &str, distribution: &[f64]) -> NumberAnswer {
        let candidates = numbers(text, &NumberCriteria::default());
        number_answer(text, &spans(text), &candidates, distribution)
    }

    #[test]
    fn the_most_probable_candidate_is_the_value() {
        let answer = answer("Seats: 4\nDays: 9", &[0.2, 0.7, 0.1]);
        assert_eq!(answer.value, Some(9.0));
        assert!((answer.confidence.expect("three options") - 0.55).abs() < 1e-12);
        let listed: Vec<(String, String)> = answer
            .candidates
            .iter()
            .map(|one| (one.value.to_string(), one.context.clone()))
            .collect();
        assert_eq!(
            listed,
            [("9".to_owned(), "Days: 9".to_owned()), ("4".to_owned(), "Seats: 4".to_owned())]
        );
    }

    #[test]
    fn ties_go_to_the_first_in_the_text_and_to_a_value() {
        assert_eq!(answer("4 or 9", &[0.4, 0.4, 0.2]).value, Some(4.0));
        assert_eq!(answer("4 or 9", &[0.2, 0.4, 0.4]).value, Some(9.0));
        let none = answer("4 or 9", &[0.2, 0.3, 0.5]);
        assert_eq!((none.value, none.probability.to_string()), (None, "0.5".to_owned()));
    }

    #[test]
    fn without_candidates_nothing_is_stated() {
        let none = answer("nothing here", &[]);
        assert_eq!((none.value, none.confidence, none.candidates.len()), (None, None, 0));
        assert_eq!(none.not_stated.to_string(), "1");
    }
}
