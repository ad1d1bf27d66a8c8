//! Intent heads: a linear correction of the option scores from the hidden state, for questions of
//! many options, and whether cross-validation shows that it helps.
//!
//! The head is fitted on whitened principal components, where one penalty is fair to all
//! directions, and folded into one matrix on the hidden state itself, so that serving it is one
//! product.

mod features;
mod regression;

use std::fmt;

use nalgebra::DMatrix;

use self::features::Features;
use self::regression::{Fitted, Regression};
use super::examples::Examples;
use super::keep::{Comparison, CvFigures};
use super::{Folds, Malformed, TemperatureFigures, check_length, logistic, temperature};

/// Options from which a head is fitted.
pub const OPTIONS_MIN: usize = 10;
/// Examples of every option that a head needs.
pub const EXAMPLES_PER_OPTION_MIN: usize = 5;
/// Folds of the cross-validation.
pub const FOLDS: usize = 5;
/// Penalties tried, each fit starting from the last one's.
pub const LAMBDAS: [f64; 7] = [100.0, 10.0, 1.0, 0.1, 0.01, 1e-3, 1e-4];

/// A fitted head, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    /// What is applied; `None` where nothing is.
    pub weights: Option<Weights>,
    /// Why.
    pub reason: Reason,
    /// Cross-validated log loss without a head (first) and at each of [`LAMBDAS`]; empty where
    /// there were too few options or examples.
    pub cv: Vec<Trial>,
    /// The penalty chosen; `None` where no head is applied.
    pub lambda: Option<f64>,
    /// Cross-validated measures of the chosen penalty's head; `None` where no head is applied.
    pub figures: Option<CvFigures>,
    /// What the temperature of the weights changes; `None` where no head is applied.
    pub temperature_cv: Option<TemperatureFigures>,
    /// Examples it was fitted to.
    pub examples: usize,
    /// Examples of the option that has fewest.
    pub examples_per_option: usize,
    /// Options of the question.
    pub options: usize,
}

impl Head {
    /// Whether questions of the task are answered with the head.
    pub fn applied(&self) -> bool {
        self.weights.is_some()
    }
}

/// The correction: scores are `log_p + h A + c`, probabilities softmax(scores / T).
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    /// `[dimensions, options]`, row-major.
    pub a: Vec<f32>,
    /// `[options]`.
    pub c: Vec<f32>,
    /// Temperature, from 0.2 to 20.
    pub temperature: f64,
    /// Dimensions of the hidden state.
    pub dimensions: usize,
}

/// One penalty's cross-validated log loss.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// The penalty; `None` is no head.
    pub lambda: Option<f64>,
    /// Mean log loss of held-out examples.
    pub log_loss: f64,
}

/// Why a head is applied or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Cross-validation shows a gain.
    Gain,
    /// No penalty beats no head, or only by what chance would explain.
    NoClearGain,
    /// Fewer than [`OPTIONS_MIN`] options.
    TooFewOptions {
        /// The options.
        options: usize,
    },
    /// Fewer than [`EXAMPLES_PER_OPTION_MIN`] examples of an option.
    TooFewExamples {
        /// The first option that has too few.
        option: usize,
        /// Its examples.
        examples: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gain => f.write_str("cross-validation shows a gain"),
            Self::NoClearGain => f.write_str("cross-validation shows no clear gain at any penalty"),
            Self::TooFewOptions { options } => {
                write!(f, "{options} options; a head needs at least {OPTIONS_MIN}")
            }
            Self::TooFewExamples { option, examples } => write!(
                f,
                "{examples} examples of option {option}; a head needs at least \
                 {EXAMPLES_PER_OPTION_MIN} of every option"
            ),
        }
    }
}

/// Fits a head to labelled examples and decides whether to apply it.
///
/// * `log_p`: `[examples][options]`, natural logarithms of the uncorrected probabilities.
/// * `hidden`: `[examples][dimensions]`, the states behind them.
/// * `gold`: `[examples]`, the right options.
/// * `folds`: of the same examples; [`Folds::stratified`] gives every fit some of every option.
///
/// Of the penalties whose gain over no head is clear by the rule of a calibration ([`super::keep`]),
/// the one of least held-out log loss is chosen; no head is applied where there is none.
///
/// Source: decisio's intent head, docs/DECISIO.md "Tasks"; there, any gain keeps a head, and of heads on
/// pure noise a third are kept.
///
/// # Errors
/// [`Malformed`] where the lists do not fit together or a hidden state is not finite.
pub fn fit(
    log_p: &[Vec<f64>],
    hidden: &[Vec<f32>],
    gold: &[usize],
    folds: &Folds,
) -> Result<Head, Malformed> {
    let examples = Examples::new(log_p, gold)?;
    let hidden = states(hidden, examples.len())?;
    if let Some(reason) = unfit(&examples) {
        return Ok(without(&examples, reason, Vec::new()));
    }
    folds.check(examples.len())?;
    Ok(chosen(&examples, &hidden, folds))
}

/// Scores of one question's options with a head.
///
/// * `log_p`: `[options]`; `hidden`: `[dimensions]`.
///
/// # Errors
/// [`Malformed::Length`] where the head is of other options or dimensions.
pub fn scores(log_p: &[f64], hidden: &[f32], weights: &Weights) -> Result<Vec<f64>, Malformed> {
    check_length("log_p", log_p.len(), weights.c.len())?;
    check_length("hidden", hidden.len(), weights.dimensions)?;
    let start = log_p.iter().zip(&weights.c);
    let mut scores: Vec<f64> = start.map(|(log_p, &c)| log_p + f64::from(c)).collect();
    for (&state, row) in hidden.iter().zip(weights.a.chunks_exact(weights.c.len())) {
        for (score, &a) in scores.iter_mut().zip(row) {
            *score += f64::from(state) * f64::from(a);
        }
    }
    Ok(scores)
}

/// Probabilities of one question's options with a head: softmax(scores / T).
///
/// # Errors
/// As [`scores`].
pub fn probabilities(
    log_p: &[f64],
    hidden: &[f32],
    weights: &Weights,
) -> Result<Vec<f64>, Malformed> {
    let mut scores = scores(log_p, hidden, weights)?;
    for score in &mut scores {
        *score /= weights.temperature;
    }
    Ok(logistic::softmax(&scores))
}

/// `[dimensions, examples]`, in f64.
fn states(hidden: &[Vec<f32>], examples: usize) -> Result<DMatrix<f64>, Malformed> {
    check_length("hidden", hidden.len(), examples)?;
    let expected = hidden.first().map_or(0, Vec::len);
    for (example, state) in hidden.iter().enumerate() {
        let (what, got) = ("hidden", state.len());
        if got != expected {
            return Err(Malformed::Ragged { example, what, got, expected });
        }
        if let Some(&odd) = state.iter().find(|value| !value.is_finite()) {
            return Err(Malformed::Value { what, example, got: f64::from(odd) });
        }
    }
    let values = hidden.iter().flatten().map(|&value| f64::from(value));
    Ok(DMatrix::from_iterator(expected, examples, values))
}

fn unfit(examples: &Examples) -> Option<Reason> {
    let options = examples.options();
    if options < OPTIONS_MIN {
        return Some(Reason::TooFewOptions { options });
    }
    let counts = examples.counts();
    let few = counts.iter().position(|&count| count < EXAMPLES_PER_OPTION_MIN)?;
    Some(Reason::TooFewExamples { option: few, examples: counts[few] })
}

fn without(examples: &Examples, reason: Reason, cv: Vec<Trial>) -> Head {
    Head {
        weights: None,
        reason,
        cv,
        lambda: None,
        figures: None,
        temperature_cv: None,
        examples: examples.len(),
        examples_per_option: examples.counts().into_iter().min().unwrap_or(0),
        options: examples.options(),
    }
}

/// The head of least held-out loss among those whose gain is clear, or none.
fn chosen(examples: &Examples, hidden: &DMatrix<f64>, folds: &Folds) -> Head {
    let held_out = cross_validate(examples, hidden, folds);
    let compare = |scores| Comparison::of(&examples.log_p, scores, &examples.gold);
    let compared: Vec<Comparison> = held_out.iter().map(compare).collect();
    let plain = Trial { lambda: None, log_loss: compared[0].figures.logloss_plain };
    let trials = compared.iter().zip(LAMBDAS).map(|(compared, lambda)| Trial {
        lambda: Some(lambda),
        log_loss: compared.figures.logloss_fitted,
    });
    let cv = [plain].into_iter().chain(trials).collect();
    // The first of equals: the larger penalty.
    let clear = (0..LAMBDAS.len()).filter(|&step| compared[step].clear_gain);
    let loss = |step: usize| compared[step].figures.logloss_fitted;
    let best = clear.min_by(|&a, &b| loss(a).total_cmp(&loss(b)));
    let Some(step) = best else { return without(examples, Reason::NoClearGain, cv) };
    let temperature = temperature::fit(&held_out[step], &examples.gold);
    let figures = temperature::figures(&held_out[step], &examples.gold, temperature);
    Head {
        weights: Some(folded(examples, hidden, step, temperature)),
        lambda: Some(LAMBDAS[step]),
        figures: Some(compared[step].figures),
        temperature_cv: Some(figures),
        ..without(examples, Reason::Gain, cv)
    }
}

/// Held-out scores at each of [`LAMBDAS`].
fn cross_validate(examples: &Examples, hidden: &DMatrix<f64>, folds: &Folds) -> Vec<DMatrix<f64>> {
    let mut held_out = vec![examples.log_p.clone(); LAMBDAS.len()];
    for fold in 0..folds.count() {
        let (kept, held) = folds.split(fold);
        let (features, regression) = prepared(&examples.at(&kept), &hidden.select_columns(&kept));
        let seen = features.project(&hidden.select_columns(&held));
        for (fitted, scores) in regression.path(&LAMBDAS).iter().zip(&mut held_out) {
            let correction = fitted.apply(&seen);
            for (column, &place) in correction.column_iter().zip(&held) {
                let mut scores = scores.column_mut(place);
                scores += column;
            }
        }
    }
    held_out
}

fn prepared(examples: &Examples, hidden: &DMatrix<f64>) -> (Features, Regression) {
    let features = Features::of(hidden);
    let regression = Regression::new(examples, features.project(hidden));
    (features, regression)
}

/// The head of all examples, as one matrix on hidden states.
fn folded(examples: &Examples, hidden: &DMatrix<f64>, step: usize, temperature: f64) -> Weights {
    let (features, regression) = prepared(examples, hidden);
    let path = regression.path(&LAMBDAS[..=step]);
    let Fitted { weights, offset } = &path[step];
    let (a, c) = features.fold(weights, offset);
    #[expect(clippy::cast_possible_truncation, reason = "f32 is what a record holds")]
    let narrow = |value: &f64| *value as f32;
    Weights {
        // Column-major [options, dimensions] is row-major [dimensions, options].
        a: a.iter().map(narrow).collect(),
        c: c.iter().map(narrow).collect(),
        temperature,
        dimensions: hidden.nrows(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn even(options: usize, of_each: usize) -> (Vec<Vec<f64>>, Vec<Vec<f32>>, Vec<usize>) {
        let gold: Vec<usize> = (0..options * of_each).map(|n| n % options).collect();
        let rows = vec![vec![-(options as f64).ln(); options]; gold.len()];
        (rows, vec![vec![0.5; 3]; gold.len()], gold)
    }

    #[test]
    fn nine_options_or_four_examples_of_one_give_no_head_and_the_reason() {
        let (rows, hidden, gold) = even(9, 6);
        let folds = Folds::stratified(&gold, FOLDS, 0);
        let head = fit(&rows, &hidden, &gold, &folds).unwrap();
        assert_eq!(head.reason.to_string(), "9 options; a head needs at least 10");
        let (rows, hidden, mut gold) = even(10, 5);
        gold[7] = 1;
        let head = fit(&rows, &hidden, &gold, &folds).unwrap();
        assert_eq!(head.reason, Reason::TooFewExamples { option: 7, examples: 4 });
        assert!(!head.applied() && head.cv.is_empty() && head.examples_per_option == 4);
    }

    #[test]
    fn equal_hidden_states_win_nothing_and_no_head_is_applied() {
        let (rows, hidden, gold) = even(10, 5);
        let folds = Folds::stratified(&gold, FOLDS, 0);
        let head = fit(&rows, &hidden, &gold, &folds).unwrap();
        assert_eq!((head.reason, head.cv.len()), (Reason::NoClearGain, 8));
    }

    #[test]
    fn hidden_states_that_are_ragged_or_not_finite_are_refused() {
        let (rows, mut hidden, gold) = even(10, 5);
        let folds = Folds::stratified(&gold, FOLDS, 0);
        hidden[3][1] = f32::INFINITY;
        let odd = fit(&rows, &hidden, &gold, &folds).unwrap_err();
        let expected = Malformed::Value { what: "hidden", example: 3, got: f64::INFINITY };
        assert_eq!(odd, expected);
        hidden[2].pop();
        let ragged = fit(&rows, &hidden, &gold, &folds).unwrap_err();
        let expected = Malformed::Ragged { example: 2, what: "hidden", got: 2, expected: 3 };
        assert_eq!(ragged, expected);
    }

    #[test]
    fn a_head_of_other_options_or_dimensions_is_refused() {
        let weights =
            Weights { a: vec![1.0, 2.0], c: vec![0.5, -0.5], temperature: 2.0, dimensions: 1 };
        assert_eq!(scores(&[-1.0, -2.0], &[3.0], &weights).unwrap(), [2.5, 3.5]);
        assert!(scores(&[-1.0], &[3.0], &weights).is_err());
        assert!(scores(&[-1.0, -2.0], &[3.0, 1.0], &weights).is_err());
    }
}
