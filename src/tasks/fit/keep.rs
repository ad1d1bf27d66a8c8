//! The rule by which a correction is kept: its measures over held-out examples, against those
//! without it.
//!
//! One rule for calibrations and heads. The better log loss alone would keep every other correction
//! that does nothing but follow noise, because a weak one moves the loss by next to nothing either
//! way.

use nalgebra::DMatrix;

use super::{logistic, mean};

/// Mean change of the log loss from which a correction may be kept.
pub const GAIN: f64 = -0.005;
/// Studentised change of the log loss from which it may be kept: a one-sided 5 % of a normal.
pub const STUDENT: f64 = -1.645;

/// Cross-validated measures: of examples that the correction under test was not fitted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CvFigures {
    /// Mean log loss without the correction.
    pub logloss_plain: f64,
    /// Mean log loss with it.
    pub logloss_fitted: f64,
    /// Share of right answers without the correction.
    pub accuracy_plain: f64,
    /// Share of right answers with it.
    pub accuracy_fitted: f64,
    /// Mean change of the log loss over its standard error (n - 1); `None` where every example
    /// changes equally and that makes it infinite.
    pub t: Option<f64>,
}

/// Figures of a comparison, and what they say.
#[derive(Debug, Clone, Copy)]
pub(super) struct Comparison {
    pub(super) figures: CvFigures,
    /// Whether the log loss changes by [`GAIN`] or better on average and by [`STUDENT`] standard
    /// errors or better, and accuracy does not fall.
    pub(super) clear_gain: bool,
}

impl Comparison {
    /// Compares held-out scores with and without a correction, both `[options, examples]`.
    pub(super) fn of(plain: &DMatrix<f64>, fitted: &DMatrix<f64>, gold: &[usize]) -> Self {
        let (plain_losses, losses) =
            (logistic::losses(plain, gold), logistic::losses(fitted, gold));
        let changes: Vec<f64> =
            losses.iter().zip(&plain_losses).map(|(new, old)| new - old).collect();
        let t = student(&changes);
        let figures = CvFigures {
            logloss_plain: mean(&plain_losses),
            logloss_fitted: mean(&losses),
            accuracy_plain: accuracy(plain, gold),
            accuracy_fitted: accuracy(fitted, gold),
            t: t.is_finite().then_some(t),
        };
        let accurate = figures.accuracy_fitted >= figures.accuracy_plain;
        let clear_gain = mean(&changes) <= GAIN && t <= STUDENT && accurate;
        Self { figures, clear_gain }
    }
}

fn accuracy(scores: &DMatrix<f64>, gold: &[usize]) -> f64 {
    let right = logistic::right(scores, gold);
    right.iter().filter(|&&right| right).count() as f64 / gold.len() as f64
}

/// Mean over standard error: `mean / (sd / sqrt n)`, with n - 1 in the sd; 0 for no change at all.
fn student(changes: &[f64]) -> f64 {
    let (n, mean) = (changes.len() as f64, mean(changes));
    let squares: f64 = changes.iter().map(|change| (change - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    if error > 0.0 {
        mean / error
    } else if mean == 0.0 {
        0.0
    } else {
        f64::INFINITY.copysign(mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_change_has_a_student_of_0_and_an_equal_one_an_infinite() {
        assert_eq!(student(&[0.0; 4]).to_bits(), 0.0_f64.to_bits());
        assert_eq!(student(&[-0.5; 4]).to_bits(), f64::NEG_INFINITY.to_bits());
        // Mean -1, sd 1 with n - 1, error 1 / sqrt 3.
        assert!((student(&[-2.0, -1.0, 0.0]) + 3.0_f64.sqrt()).abs() < 1e-15);
    }

    /// Scores of two options whose difference is `lead` for the answer.
    fn leading(leads: &[f64]) -> DMatrix<f64> {
        DMatrix::from_fn(2, leads.len(), |option, place| leads[place] * (1 - option) as f64)
    }

    #[test]
    fn a_gain_is_clear_only_if_it_is_large_steady_and_costs_no_right_answer() {
        let gold = [0; 6];
        let clear = |before: &[f64], after: &[f64]| {
            Comparison::of(&leading(before), &leading(after), &gold).clear_gain
        };
        let even = [1.0; 6];
        assert!(clear(&even, &[1.5, 1.6, 1.5, 1.6, 1.5, 1.6]));
        assert!(!clear(&even, &[1.01; 6]), "0.003 is no gain");
        assert!(!clear(&even, &[9.0, 1.0, 1.0, 1.0, 1.0, 1.0]), "one example's gain is not steady");
        let near = [0.1; 6];
        assert!(!clear(&near, &[3.0, 3.0, 3.0, 3.0, 3.0, -0.1]), "one fewer is right");
        assert!(clear(&near, &[3.0, 3.0, 3.0, 3.0, 3.0, 0.1]));
    }
}
