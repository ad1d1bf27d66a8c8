//! The values that decisio's own functions gave, against ours.
//!
//! Where decisio drew folds from `numpy.random`, the recorded permutation is the input.

use serde_json::Value;

use super::abstention::{self, Evidence};
use super::certify::{self, Arm, Outcome};
use super::{Folds, TemperatureFigures, apply, calibration, head, rounded};

const RECORDED: &str = include_str!("../../../tests/conformance/data/decisio.json");

fn recorded(name: &str) -> Value {
    let all: Value = serde_json::from_str(RECORDED).expect("the recorded values are JSON");
    all[name].clone()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().expect("a list")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn numbers(value: &Value) -> Vec<f64> {
    list(value).iter().map(number).collect()
}

fn place(value: &Value) -> usize {
    usize::try_from(value.as_u64().expect("a whole number")).expect("a place")
}

fn places(value: &Value) -> Vec<usize> {
    list(value).iter().map(place).collect()
}

fn flags(value: &Value) -> Vec<bool> {
    list(value).iter().map(|flag| flag.as_bool().expect("a flag")).collect()
}

fn rows(value: &Value) -> Vec<Vec<f64>> {
    list(value).iter().map(numbers).collect()
}

fn assert_near(got: f64, want: f64, within: f64, what: &str) {
    assert!((got - want).abs() <= within, "{what}: got {got}, recorded {want}");
}

fn assert_all_near(got: &[f64], want: &[f64], within: f64, what: &str) {
    assert_eq!(got.len(), want.len(), "{what}");
    got.iter().zip(want).for_each(|(&got, &want)| assert_near(got, want, within, what));
}

/// A recorded calibration and ours of the same examples and folds.
fn calibrations(name: &str, permutation: &str) -> (Value, calibration::Calibration) {
    let case = recorded(name);
    let folds = Folds::of(&places(&case[permutation]), calibration::FOLDS).unwrap();
    let got = calibration::fit(&rows(&case["logps"]), &places(&case["labels"]), &folds).unwrap();
    (case, got)
}

fn assert_calibration(result: &Value, got: &calibration::Calibration) {
    let cv = got.cv.expect("a cross-validation");
    let figures = [
        ("cv_logloss_plain", rounded(cv.logloss_plain, 5)),
        ("cv_logloss_fitted", rounded(cv.logloss_fitted, 5)),
        ("cv_acc_plain", rounded(cv.accuracy_plain, 4)),
        ("cv_acc_fitted", rounded(cv.accuracy_fitted, 4)),
        ("cv_t", rounded(cv.t.expect("a finite t"), 3)),
    ];
    for (name, got) in figures {
        assert_near(got, number(&result[name]), 1e-12, name);
    }
    assert_all_near(&got.bias, &numbers(&result["bias"]), 2e-6, "bias");
    assert_eq!(Some(got.applied), result["applied"].as_bool());
    assert_eq!((got.options, got.examples), (place(&result["K"]), place(&result["n_examples"])));
}

#[test]
fn case_calibration_is_dropped_as_recorded() {
    let (case, got) = calibrations("calibration", "cv_perm_n40");
    assert_calibration(&case["result"], &got);
    assert_eq!(got.reason, calibration::Reason::NoClearGain);
}

#[test]
fn case_calibration_applied_is_fitted_and_served_as_recorded() {
    let (case, got) = calibrations("calibration_applied", "cv_perm_n60");
    assert_calibration(&case["result"], &got);
    assert_eq!(got.reason, calibration::Reason::Gain);
    let recorded_bias = numbers(&case["result"]["bias"]);
    for served in list(&case["apply"]) {
        let got = apply::calibrated(&numbers(&served[0]), &recorded_bias).unwrap();
        assert_all_near(&got, &numbers(&served[1]), 1e-12, "served");
    }
}

#[test]
fn case_intent_head_is_fitted_and_served_as_recorded() {
    let case = recorded("intent_head");
    let (result, log_p) = (&case["result"], rows(&case["logps"]));
    #[expect(clippy::cast_possible_truncation, reason = "hidden states are f32")]
    let narrow = |row: Vec<f64>| row.into_iter().map(|value| value as f32).collect();
    let hidden: Vec<Vec<f32>> = rows(&case["H"]).into_iter().map(narrow).collect();
    let folds = Folds::assigned(&places(&case["folds"]));
    let got = head::fit(&log_p, &hidden, &places(&case["labels"]), &folds).unwrap();
    for trial in &got.cv {
        let name = trial.lambda.map_or("none".to_owned(), |lambda| format!("{lambda:?}"));
        let want = number(&result["cv_logloss"][&name]);
        // SciPy, whose minima are recorded, stops earlier than we do, at the smallest penalties most.
        assert_near(trial.log_loss, want, 5e-4, &name);
    }
    assert_eq!((got.cv.len(), got.reason), (8, head::Reason::Gain));
    assert_eq!(got.lambda, result["lambda"].as_f64());
    assert_eq!(got.examples_per_option, place(&result["min_per_option"]));
    let weights = got.weights.expect("a head");
    let recorded = recorded_weights(result);
    let wide = |narrow: &[f32]| narrow.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
    assert_all_near(&wide(&weights.a), &wide(&recorded.a), 1e-3, "A");
    assert_all_near(&wide(&weights.c), &wide(&recorded.c), 1e-3, "c");
    assert_near(weights.temperature, recorded.temperature, 1e-3, "temperature");
    assert_temperature(&result["temperature_cv"], &got.temperature_cv.expect("figures"));
    let (served, apply0) = (&log_p[0], numbers(&case["apply0"]));
    let ours = head::probabilities(served, &hidden[0], &weights).unwrap();
    assert_all_near(&ours, &apply0, 1e-3, "served with our weights");
    // Their hidden states were not narrowed to f32.
    let theirs = head::probabilities(served, &hidden[0], &recorded).unwrap();
    assert_all_near(&theirs, &apply0, 1e-7, "served with the recorded weights");
}

#[expect(clippy::cast_possible_truncation, reason = "weights are f32")]
fn recorded_weights(result: &Value) -> head::Weights {
    let narrow = |wide: Vec<f64>| wide.into_iter().map(|value| value as f32).collect();
    head::Weights {
        a: narrow(rows(&result["A"]).concat()),
        c: narrow(numbers(&result["c"])),
        temperature: number(&result["temperature"]),
        dimensions: rows(&result["A"]).len(),
    }
}

fn assert_temperature(recorded: &Value, got: &TemperatureFigures) {
    assert_eq!(got.examples, place(&recorded["n"]));
    let (loss, ece) = (&recorded["log_loss"], &recorded["ece"]);
    assert_near(got.log_loss_without, number(&loss["without"]), 1e-4, "loss without");
    assert_near(got.log_loss_with, number(&loss["with"]), 1e-4, "loss with");
    assert_near(got.ece_without, number(&ece["without"]), 1e-4, "ece without");
    assert_near(got.ece_with, number(&ece["with"]), 1e-4, "ece with");
}

/// The probabilities behind the recorded candidates are not recorded; these give them.
#[test]
fn case_abst_candidates_are_the_recorded_ones() {
    let got = abstention::candidates(&[0.7, 0.1, 0.2, 0.1]);
    assert_all_near(&got, &numbers(&recorded("abst_candidates")), 1e-12, "candidates");
}

fn assert_abstention(name: &str) -> abstention::Abstention {
    let case = recorded(name);
    let got = abstention::fit(&Evidence {
        p_abs: &numbers(&case["p_abs"]),
        unanswerable: &flags(&case["unanswerable"]),
        answer_ok: &flags(&case["answer_ok"]),
        plain_right: &flags(&case["plain_right"]),
        plain_false: &flags(&case["plain_false"]),
    })
    .unwrap();
    let result = &case["result"];
    let counts = [
        ("n", got.n),
        ("n_unanswerable", got.n_unanswerable),
        ("loo_right_threshold", got.loo_right),
        ("loo_false_threshold", got.loo_false),
        ("right_plain", got.right_plain),
        ("false_plain", got.false_plain),
    ];
    for (name, got) in counts {
        assert_eq!(got, place(&result[name]), "{name}");
    }
    assert_eq!(Some(got.applied), result["applied"].as_bool());
    let shown = if got.applied { "threshold" } else { "fitted_threshold" };
    let threshold = got.fitted_threshold.expect("a threshold");
    assert_near(threshold, number(&result[shown]), 1e-12, shown);
    assert_eq!(got.threshold, got.applied.then_some(threshold));
    got
}

#[test]
fn case_abst_fit_is_dropped_as_recorded() {
    let plain = (17, 0);
    let reason = abstention::Reason::NoGain { fitted: (16, 1), plain };
    assert_eq!(assert_abstention("abst_fit").reason, reason);
}

#[test]
fn case_abst_fit_applied_is_kept_as_recorded() {
    let reason = abstention::Reason::Gain { right: 30, plain: 20, examples: 30 };
    assert_eq!(assert_abstention("abst_fit_applied").reason, reason);
}

#[test]
fn case_minimum_examples_are_the_recorded_ones() {
    let case = recorded("minimum_examples");
    for (rates, want) in case.as_object().expect("an object") {
        let (alpha, delta) = rates.split_once(',').expect("two rates");
        let got = certify::minimum_examples(alpha.parse().unwrap(), delta.parse().unwrap());
        assert_eq!(got, place(want), "{rates}");
    }
}

#[test]
fn case_upper_bound_is_the_recorded_one() {
    for row in list(&recorded("upper_bound")) {
        let got = certify::upper_bound(place(&row[0]), place(&row[1]), number(&row[2]));
        assert_near(got, number(&row[3]), 1e-9, &row.to_string());
    }
}

#[test]
fn case_certify_finds_the_recorded_threshold() {
    let case = recorded("certify");
    let result = &case["result"];
    let (confidences, right) = (numbers(&case["conf"]), flags(&case["correct"]));
    let (alpha, delta) = (number(&result["alpha"]), number(&result["delta"]));
    let got = certify::threshold(&confidences, &right, alpha, delta).unwrap();
    let Outcome::Certified(found) = got.outcome else { panic!("{got:?}") };
    assert_eq!(found.arm, Arm::FixedSequence);
    assert_eq!(
        (got.examples, found.examples),
        (place(&result["n"]), place(&result["certified_n"]))
    );
    assert_eq!(found.errors, place(&result["errors_at_threshold"]));
    let figures = [
        ("accuracy", got.accuracy),
        ("threshold", found.confidence),
        ("empirical_share_at_alpha", got.empirical_share),
        ("certified_share", found.share),
        ("error_rate_at_threshold", found.error_rate),
        ("upper_bound_at_threshold", found.upper_bound),
    ];
    for (name, got) in figures {
        assert_near(got, number(&result[name]), 1e-9, name);
    }
}

/// The permutation behind the recorded split is not recorded; one with these halves gives it.
#[test]
fn case_split_holdout_has_the_recorded_halves() {
    let case = recorded("split_holdout");
    let (fit, held) = (places(&case[0]), places(&case[1]));
    let mut permutation = [fit.clone(), held.clone()].concat();
    permutation[..5].reverse();
    assert_eq!(certify::split_holdout(&permutation, certify::HOLDOUT), (fit, held));
}

#[test]
fn case_commit_moves_as_recorded() {
    for row in list(&recorded("commit")) {
        let yes = apply::committed(number(&row[0]));
        assert_all_near(&[yes, 1.0 - yes], &numbers(&row[1]), 1e-12, &row.to_string());
    }
}
