//! Calibration of a task: one bias an option, and whether cross-validation shows that it helps.
//!
//! It is dropped when it does not clearly help, because a bias fitted to a handful of examples
//! follows their accidents, and a record must not promise what the next questions will not see.

use std::fmt;

use nalgebra::DVector;

use super::examples::Examples;
use super::keep::{Comparison, CvFigures};
use super::minimise::{Effort, Smooth, minimise};
use super::{Folds, Malformed, logistic, rounded};

/// Examples that a calibration needs.
pub const EXAMPLES_MIN: usize = 10;
/// Folds of the cross-validation.
pub const FOLDS: usize = 5;
/// Weight of the penalty on the bias: `0.1 * |bias|^2` against the mean log loss.
pub const PENALTY: f64 = 0.1;
/// Decimal places of a recorded bias; what is served is what is recorded.
const BIAS_PLACES: usize = 6;

const EFFORT: Effort = Effort { iterations: 500, gradient: 1e-9 };

/// A fitted calibration, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// `[options]`, sums to 0; what [`super::apply::calibrated`] subtracts. All 0 unless applied.
    pub bias: Vec<f64>,
    /// Whether questions of the task are answered with the bias.
    pub applied: bool,
    /// Why it is applied or not.
    pub reason: Reason,
    /// What the cross-validation measured; `None` where there were too few examples for one.
    pub cv: Option<CvFigures>,
    /// Examples it was fitted to.
    pub examples: usize,
    /// Options of the question.
    pub options: usize,
}

/// Why a calibration is applied or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Cross-validation shows a gain.
    Gain,
    /// It shows none, or one that chance would explain.
    NoClearGain,
    /// Fewer than [`EXAMPLES_MIN`] examples.
    TooFewExamples {
        /// The examples.
        examples: usize,
    },
    /// All examples have one answer.
    OneAnswer,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gain => f.write_str("cross-validation shows a gain"),
            Self::NoClearGain => f.write_str("cross-validation shows no clear gain"),
            Self::TooFewExamples { examples } => {
                write!(f, "{examples} examples; a calibration needs at least {EXAMPLES_MIN}")
            }
            Self::OneAnswer => f.write_str("all examples have the same answer"),
        }
    }
}

/// Fits a calibration to labelled examples and decides whether to apply it.
///
/// The bias minimises the mean log loss of softmax(log p - bias) plus [`PENALTY`] times its square.
/// It is applied if, over held-out examples, the log loss changes by [`GAIN`](super::keep::GAIN) or
/// better on average, by [`STUDENT`](super::keep::STUDENT) standard errors or better, and accuracy
/// does not fall.
///
/// * `log_p`: `[examples][options]`, natural logarithms of the uncorrected probabilities.
/// * `gold`: `[examples]`, the right options.
/// * `folds`: of the same examples; [`FOLDS`] of them. Not looked at below [`EXAMPLES_MIN`].
///
/// Source: decisio's task prior, docs/DECISIO.md "Tasks".
///
/// # Errors
/// [`Malformed`] where the lists do not fit together.
pub fn fit(log_p: &[Vec<f64>], gold: &[usize], folds: &Folds) -> Result<Calibration, Malformed> {
    let examples = Examples::new(log_p, gold)?;
    if let Some(reason) = unfit(&examples) {
        return Ok(record(&examples, reason, None));
    }
    folds.check(examples.len())?;
    let cv = cross_validate(&examples, folds);
    let reason = if cv.clear_gain { Reason::Gain } else { Reason::NoClearGain };
    Ok(record(&examples, reason, Some(cv.figures)))
}

fn unfit(examples: &Examples) -> Option<Reason> {
    if examples.len() < EXAMPLES_MIN {
        return Some(Reason::TooFewExamples { examples: examples.len() });
    }
    let answers = examples.counts().into_iter().filter(|&count| count > 0).count();
    (answers < 2).then_some(Reason::OneAnswer)
}

fn record(examples: &Examples, reason: Reason, cv: Option<CvFigures>) -> Calibration {
    let applied = reason == Reason::Gain;
    let bias = if applied {
        bias_of(examples).iter().map(|&value| rounded(value, BIAS_PLACES)).collect()
    } else {
        vec![0.0; examples.options()]
    };
    let (options, examples) = (examples.options(), examples.len());
    Calibration { bias, applied, reason, cv, examples, options }
}

/// Held-out measures of the bias.
fn cross_validate(examples: &Examples, folds: &Folds) -> Comparison {
    let mut corrected = examples.log_p.clone();
    for fold in 0..folds.count() {
        let (kept, held) = folds.split(fold);
        let bias = bias_of(&examples.at(&kept));
        for place in held {
            let mut column = corrected.column_mut(place);
            column -= &bias;
        }
    }
    Comparison::of(&examples.log_p, &corrected, &examples.gold)
}

/// The bias of least penalised loss, centred.
fn bias_of(examples: &Examples) -> DVector<f64> {
    let start = vec![0.0; examples.options()];
    let bias = DVector::from_vec(minimise(&BiasLoss { examples }, start, EFFORT));
    let centre = bias.mean();
    bias.add_scalar(-centre)
}

struct BiasLoss<'a> {
    examples: &'a Examples,
}

impl Smooth for BiasLoss<'_> {
    fn at(&self, point: &[f64]) -> (f64, Vec<f64>) {
        let bias = DVector::from_column_slice(point);
        let mut scores = self.examples.log_p.clone();
        scores.column_iter_mut().for_each(|mut column| column -= &bias);
        let loss = logistic::loss_and_gradient(&mut scores, &self.examples.gold);
        let gradient = &bias * (2.0 * PENALTY) - scores.column_sum();
        (loss + PENALTY * bias.norm_squared(), gradient.data.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_examples_or_one_answer_give_no_calibration_and_the_reason() {
        let rows = vec![vec![-0.1, -2.4]; 9];
        let few = fit(&rows, &[0; 9], &Folds::seeded(9, FOLDS, 0)).unwrap();
        assert_eq!(few.reason, Reason::TooFewExamples { examples: 9 });
        assert_eq!(few.reason.to_string(), "9 examples; a calibration needs at least 10");
        assert_eq!((few.bias, few.cv, few.applied), (vec![0.0, 0.0], None, false));
        let rows = vec![vec![-0.1, -2.4]; 12];
        let one = fit(&rows, &[1; 12], &Folds::seeded(12, FOLDS, 0)).unwrap();
        assert_eq!((one.reason, one.examples, one.options), (Reason::OneAnswer, 12, 2));
    }

    #[test]
    fn folds_of_other_examples_are_refused() {
        let rows = vec![vec![-0.1, -2.4]; 12];
        let gold: Vec<usize> = (0..12).map(|n| n % 2).collect();
        let got = fit(&rows, &gold, &Folds::seeded(11, FOLDS, 0)).unwrap_err();
        assert_eq!(got, Malformed::Length { what: "folds", got: 11, expected: 12 });
        let got = fit(&rows, &gold, &Folds::seeded(12, 1, 0)).unwrap_err();
        assert_eq!(got, Malformed::Folds { got: 1 });
    }
}
