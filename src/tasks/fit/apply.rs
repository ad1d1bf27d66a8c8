//! Corrections as they are served: a task's bias, and answers that commit.

use super::{Malformed, check_length, logistic};

/// Yes-probabilities strictly between this one and [`COMMIT_HIGH`] are committed.
pub const COMMIT_LOW: f64 = 0.2;
/// See [`COMMIT_LOW`].
pub const COMMIT_HIGH: f64 = 0.8;

/// Probabilities after a task's bias: softmax(log p - bias). No temperature follows.
///
/// * `log_p`, `bias`: `[options]`. A log-probability that is minus infinity gives 0.
///
/// # Errors
/// [`Malformed::Length`] where the bias is of another number of options.
pub fn calibrated(log_p: &[f64], bias: &[f64]) -> Result<Vec<f64>, Malformed> {
    check_length("bias", bias.len(), log_p.len())?;
    let scores: Vec<f64> = log_p.iter().zip(bias).map(|(log_p, bias)| log_p - bias).collect();
    Ok(logistic::softmax(&scores))
}

/// A yes-probability moved out of the middle: to 0.8 from above one half, else to 0.2.
pub fn committed(yes: f64) -> f64 {
    if yes <= COMMIT_LOW || yes >= COMMIT_HIGH {
        return yes;
    }
    if yes > 0.5 { COMMIT_HIGH } else { COMMIT_LOW }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bias_of_zero_changes_nothing_and_an_impossible_option_stays_so() {
        let got = calibrated(&[0.5_f64.ln(), 0.5_f64.ln(), f64::NEG_INFINITY], &[0.0; 3]).unwrap();
        assert!((got[0] - 0.5).abs() < 1e-15 && (got[1] - 0.5).abs() < 1e-15);
        assert_eq!(got[2].to_bits(), 0.0_f64.to_bits());
    }

    #[test]
    fn a_bias_of_other_options_is_refused() {
        let got = calibrated(&[-1.0, -1.0], &[0.0; 3]).unwrap_err();
        assert_eq!(got, Malformed::Length { what: "bias", got: 3, expected: 2 });
    }
}
