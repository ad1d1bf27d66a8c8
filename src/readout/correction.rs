//! Corrections of a distribution that were learned from labelled examples.
//!
//! Source of the formulas: decisio's tasks, docs/DECISIO.md "Tasks": `softmax(log p - bias)`, and
//! `softmax((log p + W h + c) / T)` with the hidden state `h`.

use super::softmax::normalised_exp;
use crate::question::correction::{Correction, Form, Stage};

/// Least log-probability that is corrected; an option that is less probable counts as this.
const LOG_P_MIN: f64 = -700.0;

/// The distribution of one order, corrected where that is done to each order.
///
/// * `shown`: option of each label.
/// * `by_label`: whether what was learned belongs to labels, as of a choice or score, and not to
///   options, as of a noul.
pub(super) fn of_order(
    correction: Option<&Correction>,
    (shown, by_label): (&[usize], bool),
    probabilities: Vec<f64>,
) -> Vec<f64> {
    let Some(Correction { stage: Stage::EachOrder, form: Form::Bias(bias) }) = correction else {
        return probabilities;
    };
    let learned = |(label, option): (usize, &usize)| bias[if by_label { label } else { *option }];
    let biases = shown.iter().enumerate().map(learned);
    let logits = logs(&probabilities).zip(biases).map(|(log_p, bias)| log_p - bias).collect();
    normalised_exp(logits).unwrap_or(probabilities)
}

/// The average distribution, corrected where that is done to the average.
///
/// * `list`: option of each probability.
/// * `hidden`: hidden state of the first order; a correction that needs one and has none changes
///   nothing.
pub(super) fn of_average(
    correction: Option<&Correction>,
    (list, hidden): (&[usize], Option<&[f32]>),
    probabilities: Vec<f64>,
) -> Vec<f64> {
    let logits: Option<Vec<f64>> = match (correction, hidden) {
        (Some(Correction { form: Form::Head { weights, offsets, temperature }, .. }), Some(h))
            if weights.len() == offsets.len() * h.len() =>
        {
            let scores = added(weights, offsets, h);
            let sums =
                logs(&probabilities).zip(list).map(|(log_p, option)| log_p + scores[*option]);
            Some(sums.map(|sum| sum / temperature).collect())
        }
        (Some(Correction { stage: Stage::Average, form: Form::Bias(bias) }), _) => {
            Some(logs(&probabilities).zip(list).map(|(log_p, o)| log_p - bias[*o]).collect())
        }
        _ => None,
    };
    logits.and_then(normalised_exp).unwrap_or(probabilities)
}

fn logs(probabilities: &[f64]) -> impl Iterator<Item = f64> {
    probabilities.iter().map(|p| p.ln().max(LOG_P_MIN))
}

/// What a head adds to each option's log-probability: `[options]`.
fn added(weights: &[f32], offsets: &[f32], hidden: &[f32]) -> Vec<f64> {
    let mut sums: Vec<f64> = offsets.iter().map(|offset| f64::from(*offset)).collect();
    for (row, h) in weights.chunks_exact(offsets.len().max(1)).zip(hidden) {
        for (sum, weight) in sums.iter_mut().zip(row) {
            *sum += f64::from(*weight) * f64::from(*h);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bias(stage: Stage, bias: &[f64]) -> Correction {
        Correction { stage, form: Form::Bias(bias.to_vec()) }
    }

    fn close(left: &[f64], right: &[f64]) -> bool {
        left.iter().zip(right).all(|(l, r)| (l - r).abs() < 1e-12) && left.len() == right.len()
    }

    #[test]
    fn a_bias_of_labels_stays_with_them_in_another_order() {
        let learned = bias(Stage::EachOrder, &[2.0_f64.ln(), 0.0]);
        let corrected =
            |shown: &[usize], by_label| of_order(Some(&learned), (shown, by_label), vec![0.5, 0.5]);
        assert!(close(&corrected(&[0, 1], true), &[1.0 / 3.0, 2.0 / 3.0]));
        assert!(close(&corrected(&[1, 0], true), &[1.0 / 3.0, 2.0 / 3.0]));
        assert!(close(&corrected(&[1, 0], false), &[2.0 / 3.0, 1.0 / 3.0]), "a noul's side");
        assert!(close(&of_average(Some(&learned), (&[0, 1], None), vec![0.5, 0.5]), &[0.5, 0.5]));
    }

    #[test]
    fn a_bias_of_options_is_applied_to_the_average_alone() {
        let learned = bias(Stage::Average, &[2.0_f64.ln(), 0.0]);
        let averaged = of_average(Some(&learned), (&[1, 0], None), vec![0.5, 0.5]);
        assert!(close(&averaged, &[2.0 / 3.0, 1.0 / 3.0]));
        let order = of_order(Some(&learned), (&[1, 0], true), vec![0.5, 0.5]);
        assert!(close(&order, &[0.5, 0.5]));
    }

    #[test]
    fn a_head_adds_what_the_hidden_state_says_and_divides_by_its_temperature() {
        let form = Form::Head {
            weights: vec![1.0, -1.0, 0.0, 2.0],
            offsets: vec![0.5, 0.0],
            temperature: 2.0,
        };
        let head = Correction { stage: Stage::Average, form };
        let p = of_average(Some(&head), (&[0, 1], Some(&[1.0, 0.5])), vec![0.25, 0.75]);
        let logits = [0.5 * (0.25_f64.ln() + 1.5), 0.5 * 0.75_f64.ln()];
        let total: f64 = logits.iter().map(|x| x.exp()).sum();
        assert!(close(&p, &logits.map(|x| x.exp() / total)));
        let without = of_average(Some(&head), (&[0, 1], None), vec![0.25, 0.75]);
        assert!(close(&without, &[0.25, 0.75]));
    }

    #[test]
    fn an_option_that_is_all_but_impossible_stays_finite() {
        let learned = bias(Stage::Average, &[0.0, -5.0]);
        let p = of_average(Some(&learned), (&[0, 1], None), vec![1.0, 0.0]);
        assert!(p.iter().all(|p| p.is_finite()) && p[1] < 1e-300, "{p:?}");
    }
}
