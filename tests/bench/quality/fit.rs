//! Temperatures: the one number a kind that makes its probabilities honest, fitted on labelled cases
//! and judged on cases that the fit did not see.

use crate::measures::{Labelled, brier, calibration_error, log_loss, tempered};

/// Temperatures are looked for between these.
const TEMPERATURE_MIN: f64 = 0.05;
/// See [`TEMPERATURE_MIN`].
const TEMPERATURE_MAX: f64 = 20.0;
/// Steps of the search; each shrinks the interval by 0.618, so that 60 leave less than 1e-11.
const STEPS: usize = 60;
/// Folds of the cross-validation.
const FOLDS: usize = 5;

/// Log loss, Brier score and calibration error of one set of cases.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Losses {
    /// In nats.
    pub(crate) log_loss: f64,
    /// 0 to 2.
    pub(crate) brier: f64,
    /// 0 to 1.
    pub(crate) calibration_error: f64,
}

/// A fitted temperature and what it is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Fit {
    /// Fitted on all cases; what a profile should hold.
    pub(crate) temperature: f64,
    /// At temperature 1.
    pub(crate) before: Losses,
    /// Each case at the temperature that was fitted without its fold.
    pub(crate) after: Losses,
}

/// Fits a temperature to cases whose orders are averaged already, and cross-validates it.
///
/// Every fifth case is a fold; the cases' order must not depend on the right answers with that
/// period (the generated ones are shuffled in rounds of other lengths).
pub(crate) fn fit(cases: &[Labelled]) -> Fit {
    let mut unseen = Vec::with_capacity(cases.len());
    for fold in 0..FOLDS {
        let (held, rest) = split(cases, fold);
        unseen.extend(at(&held, best_temperature(&rest)));
    }
    Fit { temperature: best_temperature(cases), before: losses(cases), after: losses(&unseen) }
}

fn split(cases: &[Labelled], fold: usize) -> (Vec<Labelled>, Vec<Labelled>) {
    let numbered = cases.iter().cloned().enumerate();
    let (held, rest): (Vec<_>, Vec<_>) = numbered.partition(|(index, _)| index % FOLDS == fold);
    let plain = |side: Vec<(usize, Labelled)>| side.into_iter().map(|(_, case)| case).collect();
    (plain(held), plain(rest))
}

/// The cases at a temperature.
pub(crate) fn at(cases: &[Labelled], temperature: f64) -> Vec<Labelled> {
    let cooled = |case: &Labelled| Labelled {
        probabilities: tempered(&case.probabilities, temperature),
        gold: case.gold,
    };
    cases.iter().map(cooled).collect()
}

fn losses(cases: &[Labelled]) -> Losses {
    Losses {
        log_loss: log_loss(cases),
        brier: brier(cases),
        calibration_error: calibration_error(cases),
    }
}

/// The temperature with the least log loss, by golden section on its logarithm.
///
/// The loss is convex in `1 / T`, so it has one valley in `ln T` too, and the search finds it.
fn best_temperature(cases: &[Labelled]) -> f64 {
    let ratio = (5.0_f64.sqrt() - 1.0) / 2.0;
    let loss = |log: f64| log_loss(&at(cases, log.exp()));
    let (mut low, mut high) = (TEMPERATURE_MIN.ln(), TEMPERATURE_MAX.ln());
    for _ in 0..STEPS {
        let step = (high - low) * ratio;
        if loss(high - step) <= loss(low + step) {
            high = low + step;
        } else {
            low = high - step;
        }
    }
    f64::midpoint(low, high).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `right` of `of` cases, each answered with this probability for answer 0.
    fn answered(probability: f64, right: usize, of: usize) -> Vec<Labelled> {
        let case = |index: usize| Labelled {
            probabilities: vec![probability, 1.0 - probability],
            gold: usize::from(index * right % of >= right),
        };
        (0..of).map(case).collect()
    }

    #[test]
    fn an_overconfident_set_is_flattened_to_its_accuracy() {
        // Says .99, is right in 3 of 4: T = ln(.99/.01) / ln(.75/.25).
        let cases = answered(0.99, 3, 4);
        let expected = 99.0_f64.ln() / 3.0_f64.ln();
        assert!((best_temperature(&cases) - expected).abs() < 1e-4);
    }

    #[test]
    fn an_honest_set_keeps_its_probabilities() {
        let fit = fit(&answered(0.75, 75, 100));
        assert!((fit.temperature - 1.0).abs() < 1e-4, "{fit:?}");
        assert!(fit.before.calibration_error < 1e-9);
    }

    #[test]
    fn what_is_reported_after_comes_from_unseen_cases() {
        // One fold is wrong throughout, the others right: the temperature fitted without it is the
        // sharpest allowed, and it must be charged for that.
        let mut cases = answered(0.6, 1, 1);
        cases.resize(25, cases[0].clone());
        cases.iter_mut().step_by(FOLDS).for_each(|case| case.gold = 1);
        let fit = fit(&cases);
        assert!(fit.after.log_loss > fit.before.log_loss, "{fit:?}");
    }

    #[test]
    fn every_case_is_held_out_once() {
        let cases = answered(0.6, 3, 11);
        let held: usize = (0..FOLDS).map(|fold| split(&cases, fold).0.len()).sum();
        assert_eq!(held, cases.len());
    }
}
