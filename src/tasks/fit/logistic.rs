//! Log loss of softmax scores, its gradient with respect to the scores, and accuracy: what
//! calibration and the head have in common.

use nalgebra::DMatrix;

/// Log loss of every example: minus the log-probability of its answer.
///
/// * `scores`: `[options, examples]`.
pub(super) fn losses(scores: &DMatrix<f64>, gold: &[usize]) -> Vec<f64> {
    let columns = scores.column_iter().zip(gold);
    columns.map(|(column, &gold)| log_sum_exp(column.as_slice()) - column[gold]).collect()
}

/// Mean log loss, and in place of the scores its gradient with respect to them.
pub(super) fn loss_and_gradient(scores: &mut DMatrix<f64>, gold: &[usize]) -> f64 {
    let share = 1.0 / gold.len() as f64;
    let mut total = 0.0;
    for (mut column, &gold) in scores.column_iter_mut().zip(gold) {
        let norm = log_sum_exp(column.as_slice());
        total += norm - column[gold];
        column.apply(|score| *score = (*score - norm).exp() * share);
        column[gold] -= share;
    }
    total * share
}

/// Whether the highest score of each example is its answer's; the first one where several are.
pub(super) fn right(scores: &DMatrix<f64>, gold: &[usize]) -> Vec<bool> {
    let columns = scores.column_iter().zip(gold);
    columns.map(|(column, &gold)| top(column.as_slice()) == gold).collect()
}

/// Place of the highest value; of the first where several are equal, 0 for an empty list.
pub(super) fn top(values: &[f64]) -> usize {
    let mut best = 0;
    for (place, &value) in values.iter().enumerate() {
        if value > values[best] {
            best = place;
        }
    }
    best
}

/// `exp(score - max)` over its sum.
pub(super) fn softmax(scores: &[f64]) -> Vec<f64> {
    let norm = log_sum_exp(scores);
    scores.iter().map(|score| (score - norm).exp()).collect()
}

fn log_sum_exp(scores: &[f64]) -> f64 {
    let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    top + scores.iter().map(|score| (score - top).exp()).sum::<f64>().ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loss_of_an_even_answer_is_the_logarithm_of_the_options() {
        let scores = DMatrix::from_element(4, 2, -3.0);
        for loss in losses(&scores, &[0, 3]) {
            assert!((loss - 4.0_f64.ln()).abs() < 1e-15);
        }
        assert_eq!(right(&scores, &[0, 3]), [true, false], "the first of equals is the answer");
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        let scores = DMatrix::from_column_slice(3, 2, &[0.3, -1.0, 2.0, 0.0, 0.5, -0.2]);
        let gold = [1, 2];
        let mut gradient = scores.clone();
        let loss = loss_and_gradient(&mut gradient, &gold);
        assert!((loss - super::super::mean(&losses(&scores, &gold))).abs() < 1e-15);
        for place in 0..6 {
            let mut moved = scores.clone();
            moved[place] += 1e-6;
            let slope = (loss_and_gradient(&mut moved, &gold) - loss) / 1e-6;
            assert!((slope - gradient[place]).abs() < 1e-6, "{place}: {slope}");
        }
    }
}
