//! The mathematics of tasks: numbers of labelled examples in, what to apply and why out.
//!
//! Apart from the rest of tasks because all of it can be checked by hand or against recorded
//! values. It knows no JSON, HTTP, file or clock, and draws no random number that a seed did not
//! give: the same input gives the same bytes on one machine.

pub mod abstention;
pub mod apply;
pub mod calibration;
pub mod certify;
mod examples;
pub mod folds;
pub mod head;
pub mod keep;
mod logistic;
mod minimise;
#[cfg(test)]
mod planted;
#[cfg(test)]
mod recorded;
mod temperature;
pub mod traffic;

pub use folds::Folds;
pub use temperature::TemperatureFigures;

/// Examples that do not fit together: a caller's mistake, told before anything is computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Malformed {
    /// Two lists that describe the same examples differ in length.
    #[error("{what} has {got} entries for {expected} examples")]
    Length {
        /// The list.
        what: &'static str,
        /// Its entries.
        got: usize,
        /// The examples.
        expected: usize,
    },
    /// The examples do not all have the same number of values.
    #[error("example {example} has {got} values of {what} instead of {expected}")]
    Ragged {
        /// Place of the example, from 0.
        example: usize,
        /// The kind of value.
        what: &'static str,
        /// Its values.
        got: usize,
        /// The values of the first example.
        expected: usize,
    },
    /// An answer is no option.
    #[error("example {example} is answered {gold}, but there are {options} options")]
    Gold {
        /// Place of the example, from 0.
        example: usize,
        /// Its answer.
        gold: usize,
        /// The options.
        options: usize,
    },
    /// A list that should hold each place once does not.
    #[error("{got} is twice or out of place in a permutation of {examples} examples")]
    Permutation {
        /// The place.
        got: usize,
        /// The examples.
        examples: usize,
    },
    /// A hidden state, confidence or share that cannot be computed with.
    #[error("{what} of example {example} is {got}, which is not a number in its range")]
    Value {
        /// The kind of value.
        what: &'static str,
        /// Place of the example, from 0.
        example: usize,
        /// The value.
        got: f64,
    },
    /// A rate outside of 0 to 1.
    #[error("{what} is {got}; it must be above 0 and below 1")]
    Rate {
        /// Its name.
        what: &'static str,
        /// The rate.
        got: f64,
    },
    /// Too few folds to hold one out.
    #[error("{got} folds; at least 2 are needed")]
    Folds {
        /// The folds.
        got: usize,
    },
}

/// Checks that a list has one entry an example.
fn check_length(what: &'static str, got: usize, expected: usize) -> Result<(), Malformed> {
    if got == expected { Ok(()) } else { Err(Malformed::Length { what, got, expected }) }
}

/// A number to so many decimal places, as records show it; exact halves go to the even digit.
pub fn rounded(value: f64, places: usize) -> f64 {
    // Text is the one exact way: multiplying by a power of ten rounds once more.
    let near: f64 = format!("{value:.places$}").parse().unwrap_or(value);
    // A record has no -0.
    near + 0.0
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_of_the_decimal_number_and_has_no_negative_zero() {
        assert_eq!(rounded(0.772_617_54, 6).to_bits(), 0.772_618_f64.to_bits());
        assert_eq!(rounded(0.125, 2).to_bits(), 0.12_f64.to_bits());
        assert_eq!(rounded(-1e-9, 6).to_bits(), 0.0_f64.to_bits());
        assert!(rounded(f64::NAN, 3).is_nan());
    }
}
