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
pub(crate) const FOLDS: usize = 5;

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

pub(crate) fn split(cases: &[Labelled], fold: usize) -> (Vec<Labelled>, Vec<Labelled>) {
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
pub(crate) fn best_temperature(cases: &[Labelled]) -> f64 {
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
