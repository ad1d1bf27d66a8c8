//! Certificates on small examples whose tests can be done by hand, and their promise on drawn ones.

use super::*;
use crate::tasks::fit::planted::Draws;

fn certificate(errors: &[usize], examples: usize) -> Certificate {
    let confidences: Vec<f64> = (0..examples).map(|n| 1.0 - n as f64 / 1000.0).collect();
    let right: Vec<bool> = (0..examples).map(|n| !errors.contains(&n)).collect();
    threshold(&confidences, &right, ALPHA, DELTA).unwrap()
}

#[test]
fn examples_without_an_error_certify_all_from_the_least_number_on() {
    let short = certificate(&[], 58);
    assert_eq!(short.outcome, Outcome::TooFewExamples { examples: 58, needed: 59 });
    assert_eq!(short.outcome.to_string(), "58 held-out examples; a certificate needs at least 59");
    assert!(!short.covers(1.0));
    let enough = certificate(&[], 59);
    assert!(enough.covers(1.0 - 0.058) && !enough.covers(0.94), "{enough:?}");
    assert!(matches!(
        enough.outcome,
        Outcome::Certified(Threshold { examples: 59, errors: 0, .. })
    ));
}

#[test]
fn one_error_in_the_least_number_certifies_nothing() {
    assert_eq!(certificate(&[58], 59).outcome, Outcome::NoneHolds);
}

#[test]
fn a_failed_strict_threshold_leaves_the_other_arm() {
    // The first level of 60 has an error and fails; 240 of 480 with one error hold at once.
    let got = certificate(&[5], 481);
    let Outcome::Certified(found) = got.outcome else { panic!("{got:?}") };
    assert_eq!((found.arm, found.examples, found.errors), (Arm::Bonferroni, 481, 1));
}

#[test]
fn values_out_of_range_are_refused() {
    let one = |p, alpha| threshold(&[p], &[true], alpha, DELTA).unwrap_err();
    assert_eq!(one(0.5, 0.0), Malformed::Rate { what: "alpha", got: 0.0 });
    assert_eq!(one(1.1, 0.1), Malformed::Value { what: "confidence", example: 0, got: 1.1 });
    assert!(threshold(&[0.5], &[], ALPHA, DELTA).is_err());
    assert_eq!(threshold(&[], &[], ALPHA, DELTA).unwrap().examples, 0);
}

#[test]
fn nothing_or_everything_can_be_held_out() {
    let permutation = [2, 0, 1];
    assert_eq!(split_holdout(&permutation, 0.0), (vec![0, 1, 2], vec![]));
    assert_eq!(split_holdout(&permutation, 2.0), (vec![], vec![0, 1, 2]));
    assert_eq!(split_holdout(&permutation, 0.5), (vec![2], vec![0, 1]));
    assert_eq!(split_holdout(&permutation, f64::NAN).1, Vec::<usize>::new());
}

/// The promise itself: thresholds whose true error rate is above alpha are rarer than delta.
#[test]
fn a_certificate_is_broken_no_more_often_than_it_says() {
    let mut broken = 0;
    let mut given = 0;
    for seed in 0..1_000 {
        let mut draws = Draws::new(seed);
        let confidences: Vec<f64> = (0..400).map(|_| draws.uniform()).collect();
        // A confidence is wrong with probability 0.3 (1 - p): at or above p with 0.15 (1 - p) in all.
        let right: Vec<bool> =
            confidences.iter().map(|p| draws.uniform() >= 0.3 * (1.0 - p)).collect();
        let got = threshold(&confidences, &right, 0.1, DELTA).unwrap();
        if let Outcome::Certified(found) = got.outcome {
            given += 1;
            broken += usize::from(0.15 * (1.0 - found.confidence) > 0.1);
        }
    }
    println!("certificates: {given} given, {broken} broken of 1000");
    assert!(given > 700, "{given} given");
    assert!(broken <= 100, "{broken} broken");
}
