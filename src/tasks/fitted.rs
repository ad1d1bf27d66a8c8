//! From readings of examples to what is applied: calibration, head, certificate.

use super::fit::certify::{self, Certificate};
use super::fit::{Folds, Malformed, calibration, head};
use super::order::CertifyOrder;
use crate::question::Manner;
use crate::question::correction::{Correction, Form, Stage};
use crate::readout::softmax;

/// Seed of the folds.
const SEED: u64 = 0;

/// What was read of an example.
#[derive(Debug)]
pub(super) struct Scored {
    /// `[options]`.
    pub(super) log_p: Vec<f64>,
    pub(super) hidden: Option<Vec<f32>>,
    pub(super) gold: usize,
}

/// What a fit gave.
#[derive(Debug)]
pub(super) struct Fit {
    pub(super) calibration: calibration::Calibration,
    pub(super) head: Option<head::Head>,
    pub(super) certificate: Option<Certificate>,
    pub(super) counts: Vec<usize>,
    pub(super) confidences: Vec<f64>,
}

/// Fits what examples teach.
///
/// * `held`: examples for the certificate; empty without one.
/// * `temperature`: of the question's kind, where nothing is applied.
///
/// # Errors
/// [`Malformed`] where readings do not fit together.
pub(super) fn fitted(
    scored: &[Scored],
    held: &[Scored],
    manner: Manner,
    temperature: f64,
    certify: Option<&CertifyOrder>,
) -> Result<Fit, Malformed> {
    let log_p: Vec<Vec<f64>> = scored.iter().map(|scored| scored.log_p.clone()).collect();
    let gold: Vec<usize> = scored.iter().map(|scored| scored.gold).collect();
    let folds = Folds::seeded(scored.len(), calibration::FOLDS, SEED);
    let calibration = calibration::fit(&log_p, &gold, &folds)?;
    let hidden: Option<Vec<Vec<f32>>> = scored.iter().map(|scored| scored.hidden.clone()).collect();
    let head = match hidden.filter(|hidden| !hidden.is_empty()) {
        Some(hidden) => {
            let folds = Folds::stratified(&gold, head::FOLDS, SEED);
            Some(head::fit(&log_p, &hidden, &gold, &folds)?)
        }
        None => None,
    };
    let correction = correction(&calibration, head.as_ref(), manner);
    let serve = |scored: &Scored| served(scored, correction.as_ref(), temperature);
    let mut counts = vec![0; calibration.options];
    for gold in &gold {
        counts[*gold] += 1;
    }
    let certificate = match certify {
        None => None,
        Some(order) => {
            let answers: Vec<(usize, f64)> = held.iter().map(serve).collect();
            let right: Vec<bool> =
                answers.iter().zip(held).map(|((at, _), held)| *at == held.gold).collect();
            let sure: Vec<f64> = answers.iter().map(|(_, p)| *p).collect();
            Some(certify::threshold(&sure, &right, order.alpha, order.delta)?)
        }
    };
    let of = if held.is_empty() { scored } else { held };
    let confidences = of.iter().map(|scored| serve(scored).1).collect();
    Ok(Fit { calibration, head, certificate, counts, confidences })
}

/// What would be answered: the option, and its probability.
fn served(scored: &Scored, correction: Option<&Correction>, temperature: f64) -> (usize, f64) {
    let plain: Vec<f64> = scored.log_p.iter().map(|log_p| log_p.exp()).collect();
    let p = match correction {
        Some(correction) => crate::readout::corrected(correction, plain, scored.hidden.as_deref()),
        None => softmax::temper(plain, temperature),
    };
    let at = crate::readout::confidence::first_top(&p);
    (at, p[at])
}

fn correction(
    calibration: &calibration::Calibration,
    head: Option<&head::Head>,
    manner: Manner,
) -> Option<Correction> {
    if let Some(weights) = head.and_then(|head| head.weights.as_ref()) {
        let form = Form::Head {
            weights: weights.a.clone(),
            offsets: weights.c.clone(),
            temperature: weights.temperature,
        };
        return Some(Correction { stage: Stage::Average, form });
    }
    let form = Form::Bias(calibration.bias.clone());
    calibration.applied.then_some(Correction { stage: stage(manner), form })
}

/// Where a question is read in one order and sometimes in two, what is learned belongs to labels.
pub(super) fn stage(manner: Manner) -> Stage {
    match manner {
        Manner::Letters | Manner::Plain => Stage::EachOrder,
        Manner::Profile => Stage::Average,
    }
}
