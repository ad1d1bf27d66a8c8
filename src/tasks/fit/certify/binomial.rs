//! Exact upper bounds of an error rate from counted errors.

/// Halvings of the interval from 0 to 1; after them it is as narrow as an f64 can say.
const HALVINGS: usize = 60;

/// Upper bound of an error rate that is exceeded with probability `delta` at most.
///
/// The rate at which so few errors or fewer have probability `delta` (Clopper and Pearson 1934);
/// 1 where every example is wrong or there is none.
///
/// * `delta`: above 0 and below 1.
pub fn upper_bound(errors: usize, examples: usize, delta: f64) -> f64 {
    if errors >= examples {
        return 1.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if at_most(errors, examples, middle) > delta { low = middle } else { high = middle }
    }
    high
}

/// Probability of at most so many errors.
///
/// * `rate`: above 0 and below 1.
fn at_most(errors: usize, examples: usize, rate: f64) -> f64 {
    let n = examples as f64;
    let log_odds = rate.ln() - (-rate).ln_1p();
    // Logarithms, because the first term of a long list is below the least f64.
    let mut term = n * (-rate).ln_1p();
    let mut total = term.exp();
    for k in 0..errors {
        let k = k as f64;
        term += ((n - k) / (k + 1.0)).ln() + log_odds;
        total += term.exp();
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_has_the_bound_of_the_formula() {
        // (1 - rate)^n = delta.
        for n in [1, 29, 59, 5_000] {
            let want = 1.0 - 0.05_f64.powf(1.0 / f64::from(n));
            let got = upper_bound(0, usize::try_from(n).unwrap(), 0.05);
            assert!((got - want).abs() < 1e-12, "{n}: {got}");
        }
    }

    #[test]
    fn no_example_and_only_errors_bound_nothing() {
        for (errors, examples) in [(0, 0), (5, 5), (6, 5)] {
            assert!((upper_bound(errors, examples, 0.05) - 1.0).abs() < 1e-15);
        }
    }

    #[test]
    fn many_examples_stay_exact() {
        // A normal's bound, 1.645 standard errors above the rate, is near for so many.
        let got = upper_bound(10_000, 100_000, 0.05);
        let near = 0.1 + 1.645 * (0.1_f64 * 0.9 / 1e5).sqrt();
        assert!((got - near).abs() < 1e-4, "{got} and {near}");
    }
}
