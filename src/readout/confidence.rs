//! Confidence: one number between 0 and 1 that says how far a distribution is from uniform.
//!
//! The formulas are those of the official contract, which its clients show to people.

/// Confidence of a choice: the top probability rescaled so that uniform gives 0 and certainty 1.
///
/// `(max p - 1/n) / (1 - 1/n)`; 1 for a single option.
///
/// * `probabilities`: `[options]`, sums to 1.
pub fn of_choice(probabilities: &[f64]) -> f64 {
    let options = probabilities.len() as f64;
    if probabilities.len() <= 1 {
        return 1.0;
    }
    let top = probabilities.iter().copied().fold(0.0, f64::max);
    // A uniform distribution may have a top a rounding below 1/n.
    ((top - 1.0 / options) / (1.0 - 1.0 / options)).clamp(0.0, 1.0)
}

/// Confidence of a score: how concentrated the distribution is at its mode.
///
/// `max(0, 1 - d / u)`, with `d` the mean distance to the mode (the first, where several are as
/// probable) and `u` the mean distance of a uniform distribution to the middle; 1 for one level.
///
/// * `probabilities`: `[levels]`, sums to 1.
pub fn of_score(probabilities: &[f64]) -> f64 {
    if probabilities.len() <= 1 {
        return 1.0;
    }
    let mode = first_top(probabilities) as f64;
    let levels = probabilities.len() as f64;
    let distance: f64 =
        probabilities.iter().enumerate().map(|(level, p)| p * (level as f64 - mode).abs()).sum();
    let middle = (levels - 1.0) / 2.0;
    let uniform =
        (0..probabilities.len()).map(|level| (level as f64 - middle).abs()).sum::<f64>() / levels;
    (1.0 - distance / uniform).max(0.0)
}

/// Index of the greatest probability, the first among equals.
pub fn first_top(probabilities: &[f64]) -> usize {
    let mut top = 0;
    for (index, p) in probabilities.iter().enumerate() {
        if *p > probabilities[top] {
            top = index;
        }
    }
    top
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Distribution and confidence, recorded by calling decisio 0.11.1's own functions.
    const CHOICES: [(&[f64], f64); 6] = [
        (&[1.0], 1.0),
        (&[0.5, 0.5], 0.0),
        (&[0.9, 0.1], 0.8),
        (&[0.6, 0.3, 0.1], 0.399_999_999_999_999_97),
        (&[0.25, 0.25, 0.25, 0.25], 0.0),
        (&[0.7, 0.1, 0.1, 0.1], 0.6),
    ];

    const SCORES: [(&[f64], f64); 10] = [
        (&[1.0], 1.0),
        (&[0.5, 0.5], 0.0),
        (&[0.9, 0.1], 0.8),
        (&[0.6, 0.3, 0.1], 0.25),
        (&[0.2, 0.5, 0.3], 0.25),
        (&[0.25, 0.25, 0.25, 0.25], 0.0),
        (&[0.1, 0.2, 0.4, 0.3], 0.300_000_000_000_000_04),
        (&[0.5, 0.0, 0.0, 0.5], 0.0),
        (&[0.05, 0.15, 0.5, 0.2, 0.1], 0.458_333_333_333_333_26),
        (&[0.2, 0.2, 0.2, 0.2, 0.2], 0.0),
    ];

    #[test]
    fn choices_have_the_recorded_confidence() {
        for (p, expected) in CHOICES {
            assert!((of_choice(p) - expected).abs() < 1e-15, "{p:?}: {}", of_choice(p));
        }
    }

    #[test]
    fn scores_have_the_recorded_confidence() {
        for (p, expected) in SCORES {
            assert!((of_score(p) - expected).abs() < 1e-15, "{p:?}: {}", of_score(p));
        }
    }

    #[test]
    fn the_first_of_equal_tops_is_the_mode() {
        assert_eq!(first_top(&[0.2, 0.4, 0.4]), 1);
    }
}
