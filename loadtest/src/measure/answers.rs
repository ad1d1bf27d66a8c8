//! Answers that are kept, so that two runs of the same decisions can be compared.

use std::collections::BTreeMap;

use crate::exchange::ANSWERS_MAX;

/// Most probabilities that are kept, of all answers together.
const PROBABILITIES_MAX: usize = 1_000_000;

/// Distributions of a decision's questions, in the order asked.
pub(crate) type Distributions = Vec<Vec<f64>>;

/// The answers of the decisions with the lowest numbers, as far as they fit.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    by_number: BTreeMap<u64, Distributions>,
    questions: usize,
    probabilities: usize,
}

impl Answers {
    /// Keeps the answers of a decision; those with the highest numbers go where there are too many.
    pub(super) fn keep(&mut self, number: u64, answers: Distributions) {
        let is_full = self.is_full();
        if is_full && self.by_number.last_key_value().is_some_and(|(last, _)| *last < number) {
            return;
        }
        self.count(&answers, true);
        if let Some(before) = self.by_number.insert(number, answers) {
            self.count(&before, false);
        }
        while self.questions > ANSWERS_MAX || self.probabilities > PROBABILITIES_MAX {
            let Some((_, dropped)) = self.by_number.pop_last() else { return };
            self.count(&dropped, false);
        }
    }

    /// By the number of the decision.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Distributions)> {
        self.by_number.iter().map(|(number, answers)| (*number, answers))
    }

    fn is_full(&self) -> bool {
        self.questions >= ANSWERS_MAX || self.probabilities >= PROBABILITIES_MAX
    }

    fn count(&mut self, answers: &Distributions, is_added: bool) {
        let questions = answers.len();
        let probabilities: usize = answers.iter().map(Vec::len).sum();
        if is_added {
            self.questions += questions;
            self.probabilities += probabilities;
        } else {
            self.questions -= questions;
            self.probabilities -= probabilities;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_numbers_are_kept_in_whatever_order_they_come() {
        let mut answers = Answers::default();
        let decisions = ANSWERS_MAX as u64;
        // From the highest to the lowest, two questions each: half of them fit.
        (0..decisions).rev().for_each(|number| answers.keep(number, vec![vec![0.5]; 2]));
        let kept: Vec<u64> = answers.iter().map(|(number, _)| number).collect();
        assert_eq!(kept, (0..decisions / 2).collect::<Vec<u64>>());
        answers.keep(decisions, vec![vec![0.5]]);
        assert_eq!(answers.iter().count(), kept.len());
    }

    #[test]
    fn long_answers_are_bounded_by_their_probabilities() {
        let mut answers = Answers::default();
        (0..10_000).for_each(|number| answers.keep(number, vec![vec![0.0; 255]]));
        assert_eq!(answers.iter().count(), PROBABILITIES_MAX / 255);
    }

    #[test]
    fn a_number_that_comes_twice_counts_once() {
        let mut answers = Answers::default();
        answers.keep(3, vec![vec![0.1]; 5]);
        answers.keep(3, vec![vec![0.2]]);
        assert_eq!((answers.questions, answers.probabilities), (1, 1));
        assert_eq!(answers.iter().next(), Some((3, &vec![vec![0.2]])));
    }
}
