//! Measures and fits against numbers that were worked out by hand.

use crate::fit::{FOLDS, best_temperature, fit, split};
use crate::measures::{
    Labelled, accuracy, area_under_curve, average, brier, calibration_error, level_error, log_loss,
    order_consistency, right, softmax, tempered, wilson,
};

fn cases(list: &[(&[f64], usize)]) -> Vec<Labelled> {
    let labelled =
        |(p, gold): &(&[f64], usize)| Labelled { probabilities: p.to_vec(), gold: *gold };
    list.iter().map(labelled).collect()
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6, "{found} is not {expected}");
}

#[test]
fn accuracy_log_loss_and_brier_are_the_hand_worked_ones() {
    let cases = cases(&[(&[0.7, 0.2, 0.1], 0), (&[0.5, 0.25, 0.25], 1)]);
    assert_near(accuracy(&cases), 0.5);
    assert_eq!(right(&cases), 1);
    // (-ln 0.7 - ln 0.25) / 2
    assert_near(log_loss(&cases), 0.871_484_7);
    // (0.09 + 0.04 + 0.01) and (0.25 + 0.5625 + 0.0625), halved
    assert_near(brier(&cases), 0.5075);
}

#[test]
fn a_probability_of_zero_costs_a_bounded_loss() {
    assert_near(log_loss(&cases(&[(&[1.0, 0.0], 1)])), 27.631_021_1);
}

#[test]
fn calibration_error_weighs_each_bin_by_its_cases() {
    // Bin (.8, .9]: confidences .9, .8+, one right: gap (.9 + .85 - 1) = .75. Bin (.5, .6]: .6
    // right: gap .4. Sum 1.15 over three cases.
    let cases = cases(&[(&[0.9, 0.1], 0), (&[0.15, 0.85], 0), (&[0.6, 0.4], 0)]);
    assert_near(calibration_error(&cases), 1.15 / 3.0);
}

#[test]
fn a_perfect_answer_has_no_error_of_any_sort() {
    let cases = cases(&[(&[1.0, 0.0], 0), (&[0.0, 1.0], 1)]);
    assert_near(calibration_error(&cases), 0.0);
    assert_near(brier(&cases), 0.0);
    assert_near(level_error(&cases), 0.0);
    assert_eq!(area_under_curve(&cases), Some(1.0));
}

#[test]
fn level_error_is_that_of_the_mean_level() {
    // Means 0.4 (right: 0) and 1.5 (right: 2).
    let cases = cases(&[(&[0.7, 0.2, 0.1], 0), (&[0.0, 0.5, 0.5], 2)]);
    assert_near(level_error(&cases), 0.45);
}

#[test]
fn the_area_counts_ties_half() {
    // Yes cases .9 and .4, no cases .4 and .1: won 1 + 1 + .5 + 1 of 4.
    let cases = cases(&[(&[0.1, 0.9], 1), (&[0.6, 0.4], 1), (&[0.6, 0.4], 0), (&[0.9, 0.1], 0)]);
    assert_eq!(area_under_curve(&cases), Some(0.875));
    assert_eq!(area_under_curve(&cases[..2]), None);
}

#[test]
fn orders_are_averaged_and_compared_with_their_average() {
    let orders = vec![vec![0.8, 0.2], vec![0.4, 0.6], vec![0.9, 0.1]];
    assert_near(average(&orders, 2)[0], 0.6);
    assert_near(average(&orders, 9)[0], 0.7);
    assert_near(order_consistency(&orders), 2.0 / 3.0);
}

#[test]
fn a_temperature_flattens_and_one_changes_nothing() {
    assert_near(tempered(&[0.8, 0.2], 1.0)[0], 0.8);
    // sqrt(.8) / (sqrt(.8) + sqrt(.2)) = 2/3
    assert_near(tempered(&[0.8, 0.2], 2.0)[0], 2.0 / 3.0);
}

#[test]
fn wilson_gives_the_textbook_interval() {
    let (low, high) = wilson(8, 10);
    assert_near(low, 0.490_162_4);
    assert_near(high, 0.943_317_8);
    assert_near(wilson(0, 10).0, 0.0);
}

#[test]
fn softmax_is_over_the_labels_only() {
    assert_near(softmax(&[-1.0, -1.0, -1.0])[2], 1.0 / 3.0);
    assert_near(softmax(&[-0.5, -0.5 - 3.0_f64.ln()])[0], 0.75);
}

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
