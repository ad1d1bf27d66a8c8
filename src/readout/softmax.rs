//! Log-probabilities of labels to probabilities, and temperature; in f64, because a temperature
//! below 1 raises small differences to large powers.

use std::fmt;

/// No label of a read had a finite log-probability, so it says nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NonFinite;

impl fmt::Display for NonFinite {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the log-probabilities of all labels are not finite")
    }
}

impl std::error::Error for NonFinite {}

/// Softmax over the labels of one read.
///
/// * `logprobs`: `[labels]`, up to a common constant. A label whose value is not finite gets
///   probability 0.
/// * returns `[labels]`, sums to 1 within rounding.
///
/// # Errors
/// [`NonFinite`] when no value is finite.
pub fn softmax(logprobs: &[f32]) -> Result<Vec<f64>, NonFinite> {
    let logits: Vec<f64> = logprobs.iter().map(|&value| finite_or_least(value)).collect();
    normalised_exp(logits).ok_or(NonFinite)
}

/// Raises probabilities to the power `1 / temperature` and normalises them.
///
/// * `probabilities`: `[options]`, each between 0 and 1, at least one above 0.
/// * `temperature`: above 0. At exactly 1 the probabilities come back bit for bit.
///
/// Source: softmax(log p / T) after the orders are averaged, docs/API.md "Temperature".
pub fn temper(probabilities: Vec<f64>, temperature: f64) -> Vec<f64> {
    #[expect(clippy::float_cmp, reason = "exactly 1 is the setting that means: leave as is")]
    if temperature == 1.0 {
        return probabilities;
    }
    let top = probabilities.iter().copied().fold(0.0_f64, f64::max).ln();
    // The top is subtracted before the division, so that no temperature makes it infinite.
    let logits = probabilities.iter().map(|p| (p.ln() - top) / temperature).collect();
    normalised_exp(logits).unwrap_or(probabilities)
}

/// Entropy in nats; 0 ln 0 counts as 0.
pub fn entropy(probabilities: &[f64]) -> f64 {
    // `+ 0.0` turns the -0 of a certain answer into 0.
    -probabilities.iter().filter(|&&p| p > 0.0).map(|p| p * p.ln()).sum::<f64>() + 0.0
}

fn finite_or_least(value: f32) -> f64 {
    if value.is_finite() { f64::from(value) } else { f64::NEG_INFINITY }
}

/// `exp(x - max)` over its sum; `None` where every x is minus infinity.
pub(super) fn normalised_exp(logits: Vec<f64>) -> Option<Vec<f64>> {
    let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if !top.is_finite() {
        return None;
    }
    let weights: Vec<f64> = logits.into_iter().map(|x| (x - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    Some(weights.into_iter().map(|weight| weight / total).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn close(left: &[f64], right: &[f64]) -> bool {
        left.len() == right.len() && left.iter().zip(right).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn softmax_gives_the_recorded_numbers() {
        // Recorded from vLLM 0.33's structured decisions for label logprobs -0.1, -3, -5; its
        // logprobs were f64, ours are f32, hence the tolerance.
        let expected = [0.941_203_220_135_335_2, 0.051_788_031_899, 0.007_008_747_965_359];
        let got = softmax(&[-0.1, -3.0, -5.0]).unwrap();
        assert!(got.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-8), "{got:?}");
    }

    #[test]
    fn case_42_one_label_without_a_number_gets_probability_0() {
        for odd in [f32::NEG_INFINITY, f32::NAN, f32::INFINITY] {
            assert_eq!(softmax(&[-1.0, odd, -1.0]).unwrap(), vec![0.5, 0.0, 0.5]);
        }
    }

    #[test]
    fn case_42_all_labels_without_a_number_are_an_error() {
        assert_eq!(softmax(&[f32::NAN, f32::NEG_INFINITY]), Err(NonFinite));
        assert_eq!(softmax(&[]), Err(NonFinite));
    }

    #[test]
    fn temperature_gives_the_recorded_numbers() {
        // Recorded by calling decisio 0.11.1's own function.
        let p = [0.6, 0.3, 0.1];
        let mild = [0.533_807_573_351_947_2, 0.321_850_958_750_042_5, 0.144_341_467_898_010_44];
        let strong = [0.393_146_027_268_317_43, 0.338_938_654_683_937_4, 0.267_915_318_047_745_2];
        assert!(close(&temper(p.to_vec(), 1.37), &mild));
        assert!(close(&temper(p.to_vec(), 4.672), &strong));
        assert!(close(&temper(vec![0.9, 0.1], 2.0), &[0.75, 0.25]));
        assert_eq!(temper(vec![1.0, 0.0], 1.506), vec![1.0, 0.0]);
    }

    #[test]
    fn temperature_1_changes_no_bit() {
        let p: Vec<f64> = vec![0.1 + 0.2, 0.7 - 1e-17, 1e-300];
        let bits: Vec<u64> = p.iter().map(|x| x.to_bits()).collect();
        assert_eq!(temper(p, 1.0).iter().map(|x| x.to_bits()).collect::<Vec<_>>(), bits);
    }

    #[test]
    fn case_43_extreme_logits_at_a_tiny_temperature_stay_finite() {
        for logits in [[-1e30_f32, 0.0, -88.0], [1e38, -1e38, 0.0], [0.0, 0.0, -0.01]] {
            let p = temper(softmax(&logits).unwrap(), 0.01);
            assert!(p.iter().all(|x| x.is_finite()), "{p:?}");
            assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        }
        let p = temper(softmax(&[0.0, 0.0, -0.01]).unwrap(), 0.01);
        assert!((p[2] / p[0] - (-1.0_f64).exp()).abs() < 1e-6, "not rounded to 0: {p:?}");
    }

    #[test]
    fn entropy_of_a_coin_is_ln_2_and_of_certainty_plus_0() {
        assert!((entropy(&[0.5, 0.5]) - std::f64::consts::LN_2).abs() < 1e-15);
        assert_eq!(entropy(&[1.0, 0.0]).to_bits(), 0.0_f64.to_bits());
    }

    fn logits() -> impl Strategy<Value = Vec<f32>> {
        prop::collection::vec(-40.0_f32..0.0, 1..60)
    }

    proptest! {
        #[test]
        fn softmax_sums_to_1(x in logits(), temperature in 0.01_f64..10.0) {
            let p = temper(softmax(&x).unwrap(), temperature);
            prop_assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            prop_assert!(p.iter().all(|p| (0.0..=1.0).contains(p)));
        }

        #[test]
        fn softmax_ignores_a_common_shift(x in prop::collection::vec(-64_i16..0, 1..60), by in -64_i16..64) {
            // Whole numbers, so that the shift itself is exact in f32.
            let plain: Vec<f32> = x.iter().map(|&x| f32::from(x)).collect();
            let shifted: Vec<f32> = x.iter().map(|&x| f32::from(x + by)).collect();
            prop_assert_eq!(softmax(&plain).unwrap(), softmax(&shifted).unwrap());
        }

        #[test]
        fn softmax_and_temperature_keep_the_order(x in logits(), temperature in 0.01_f64..10.0) {
            let p = temper(softmax(&x).unwrap(), temperature);
            for (i, j) in (0..x.len()).flat_map(|i| (0..x.len()).map(move |j| (i, j))) {
                prop_assert!(x[i] > x[j] || p[i] <= p[j]);
            }
        }
    }
}
