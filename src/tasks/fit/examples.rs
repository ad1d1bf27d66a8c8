//! Log-probabilities of labelled examples in one matrix: checked once, so that no fit meets a
//! ragged row or an answer that is no option.

use nalgebra::DMatrix;

use super::{Malformed, check_length};

/// What a log-probability that is not finite counts as: below the least of a f64 probability.
const LOG_P_LEAST: f64 = -746.0;

/// Labelled examples, one a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Examples {
    /// `[options, examples]`, finite.
    pub(super) log_p: DMatrix<f64>,
    /// `[examples]`, each below `options`.
    pub(super) gold: Vec<usize>,
}

impl Examples {
    pub(super) fn new(log_p: &[Vec<f64>], gold: &[usize]) -> Result<Self, Malformed> {
        check_length("gold", gold.len(), log_p.len())?;
        let log_p = columns("log_p", log_p)?.map(finite_or_least);
        let options = log_p.nrows();
        let odd = gold.iter().enumerate().find(|&(_, &gold)| gold >= options);
        if let Some((example, &gold)) = odd {
            return Err(Malformed::Gold { example, gold, options });
        }
        Ok(Self { log_p, gold: gold.to_vec() })
    }

    pub(super) fn len(&self) -> usize {
        self.gold.len()
    }

    pub(super) fn options(&self) -> usize {
        self.log_p.nrows()
    }

    /// How often each option is the answer.
    pub(super) fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.options()];
        self.gold.iter().for_each(|&gold| counts[gold] += 1);
        counts
    }

    /// The examples at these places.
    pub(super) fn at(&self, places: &[usize]) -> Self {
        Self {
            log_p: self.log_p.select_columns(places),
            gold: places.iter().map(|&place| self.gold[place]).collect(),
        }
    }
}

/// Rows of equal length as the columns of a matrix.
pub(super) fn columns(what: &'static str, rows: &[Vec<f64>]) -> Result<DMatrix<f64>, Malformed> {
    let expected = rows.first().map_or(0, Vec::len);
    let odd = rows.iter().enumerate().find(|(_, row)| row.len() != expected);
    if let Some((example, row)) = odd {
        return Err(Malformed::Ragged { example, what, got: row.len(), expected });
    }
    let values = rows.iter().flatten().copied();
    Ok(DMatrix::from_iterator(expected, rows.len(), values))
}

fn finite_or_least(value: f64) -> f64 {
    if value.is_finite() { value.max(LOG_P_LEAST) } else { LOG_P_LEAST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_that_do_not_fit_together_are_told_apart() {
        let rows = [vec![-1.0, -2.0], vec![-1.0, -2.0]];
        let lengths = Examples::new(&rows, &[0]).unwrap_err();
        assert_eq!(lengths, Malformed::Length { what: "gold", got: 1, expected: 2 });
        let gold = Examples::new(&rows, &[0, 2]).unwrap_err();
        assert_eq!(gold, Malformed::Gold { example: 1, gold: 2, options: 2 });
        let ragged = Examples::new(&[vec![-1.0], vec![]], &[0, 0]).unwrap_err();
        let expected = Malformed::Ragged { example: 1, what: "log_p", got: 0, expected: 1 };
        assert_eq!(ragged, expected);
    }

    #[test]
    fn a_log_probability_without_a_number_is_the_least() {
        let odd = [f64::NEG_INFINITY, f64::NAN, f64::INFINITY, -1e9, -2.0];
        let got = Examples::new(&[odd.to_vec()], &[4]).unwrap();
        let least = LOG_P_LEAST;
        assert_eq!(got.log_p.as_slice(), [least, least, least, least, -2.0]);
    }
}
