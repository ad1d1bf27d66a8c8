//! Temperature of a head's scores: fitted to examples that the head had not seen, because on those
//! that it was fitted to it is always too sure.

use nalgebra::DMatrix;

use super::{logistic, mean};

/// Least temperature.
pub(super) const LEAST: f64 = 0.2;
/// Greatest temperature.
pub(super) const GREATEST: f64 = 20.0;
/// Groups of equal size that the expected calibration error compares.
const GROUPS: usize = 10;
/// Halvings of an interval of width 5; after them it is as narrow as an f64 can say.
const HALVINGS: usize = 60;

/// What a temperature changes on the held-out scores it was fitted to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TemperatureFigures {
    /// Examples.
    pub examples: usize,
    /// Mean log loss at temperature 1.
    pub log_loss_without: f64,
    /// Mean log loss at the temperature.
    pub log_loss_with: f64,
    /// Expected calibration error at temperature 1.
    pub ece_without: f64,
    /// Expected calibration error at the temperature.
    pub ece_with: f64,
}

/// The temperature of least log loss of softmax(score / T), from 0.2 to 20.
///
/// The loss is convex in `1 / T`, so its slope is halved in on.
///
/// * `scores`: `[options, examples]`.
pub(super) fn fit(scores: &DMatrix<f64>, gold: &[usize]) -> f64 {
    let (mut low, mut high) = (1.0 / GREATEST, 1.0 / LEAST);
    for _ in 0..HALVINGS {
        let middle = low.midpoint(high);
        if slope(scores, gold, middle) > 0.0 { high = middle } else { low = middle }
    }
    (1.0 / low.midpoint(high)).clamp(LEAST, GREATEST)
}

/// Slope of the summed loss in the inverse of the temperature: expected score less the answer's.
fn slope(scores: &DMatrix<f64>, gold: &[usize], inverse: f64) -> f64 {
    let columns = scores.column_iter().zip(gold);
    let slope_of = |column: &[f64], gold: usize| {
        let p = logistic::softmax(&column.iter().map(|score| score * inverse).collect::<Vec<_>>());
        p.iter().zip(column).map(|(p, score)| p * score).sum::<f64>() - column[gold]
    };
    columns.map(|(column, &gold)| slope_of(column.as_slice(), gold)).sum()
}

pub(super) fn figures(
    scores: &DMatrix<f64>,
    gold: &[usize],
    temperature: f64,
) -> TemperatureFigures {
    let tempered = scores / temperature;
    TemperatureFigures {
        examples: gold.len(),
        log_loss_without: mean(&logistic::losses(scores, gold)),
        log_loss_with: mean(&logistic::losses(&tempered, gold)),
        ece_without: calibration_error(scores, gold),
        ece_with: calibration_error(&tempered, gold),
    }
}

/// Mean distance of confidence and accuracy over ten groups of equal size by confidence.
fn calibration_error(scores: &DMatrix<f64>, gold: &[usize]) -> f64 {
    let right = logistic::right(scores, gold);
    let top = |column: &[f64]| logistic::softmax(column).into_iter().fold(0.0, f64::max);
    let confidence = scores.column_iter().map(|column| top(column.as_slice()));
    let mut pairs: Vec<(f64, bool)> = confidence.zip(right).collect();
    pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut rest = pairs.as_slice();
    let mut total = 0.0;
    for group in 0..GROUPS {
        let (these, after) = rest.split_at(rest.len().div_ceil(GROUPS - group));
        total += these.iter().map(|&(p, right)| p - f64::from(right)).sum::<f64>().abs();
        rest = after;
    }
    total / gold.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two options with scores 0 and x; three of four are right.
    fn three_of_four(score: f64) -> (DMatrix<f64>, Vec<usize>) {
        (DMatrix::from_fn(2, 4, |option, _| score * option as f64), vec![1, 1, 1, 0])
    }

    #[test]
    fn the_temperature_makes_the_confidence_the_accuracy() {
        let (scores, gold) = three_of_four(5.0);
        let temperature = fit(&scores, &gold);
        assert!((temperature - 5.0 / 3.0_f64.ln()).abs() < 1e-12, "{temperature}");
        let figures = figures(&scores, &gold, temperature);
        assert!(figures.log_loss_with < figures.log_loss_without);
    }

    #[test]
    fn the_temperature_stays_within_its_limits() {
        let (scores, gold) = three_of_four(1000.0);
        assert!((fit(&scores, &gold) - GREATEST).abs() < 1e-9);
        let (scores, gold) = three_of_four(0.01);
        assert!((fit(&scores, &gold) - LEAST).abs() < 1e-9);
    }

    #[test]
    fn confidence_of_one_half_that_is_always_right_is_off_by_one_half() {
        let (scores, _) = three_of_four(0.0);
        assert!((calibration_error(&scores, &[0; 4]) - 0.5).abs() < 1e-15);
    }
}
