//! The exponential: one polynomial, the same in every lane, used wherever the engine needs `exp`.
//!
//! A library's `exp` may differ between its vector and its scalar form; this one is lane-wise
//! arithmetic that the compiler may vectorise as it likes without changing a bit (D6 rule 1).

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::portable::{Isa, mul_add};

/// Below this the result is exactly 0.
const LOWEST: f32 = -87.3;
/// Above this the result stays what it is here, about 1.7e38.
const HIGHEST: f32 = 88.0;
/// 1.5 * 2^23: adding it leaves the nearest integer in a number's low bits.
const ROUNDER: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has so few bits that its multiples are exact (Cephes).
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;
/// Taylor coefficients of `e^r` from `r^7` down; for `|r| <= ln 2 / 2` the rest is below 6e-9.
const COEFFICIENTS: [f32; 8] =
    [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0];

/// `e^x` within 2 units in the last place; 0 below -87.3, 1 at 0 exactly, and not a number stays so.
#[inline(always)]
pub(super) fn exp<I: Isa>(x: f32) -> f32 {
    let clamped = if x < LOWEST { LOWEST } else { x };
    let clamped = if clamped > HIGHEST { HIGHEST } else { clamped };
    let shifted = mul_add::<I>(clamped, std::f32::consts::LOG2_E, ROUNDER);
    let power = shifted - ROUNDER;
    let rest = mul_add::<I>(power, -LN2_HIGH, clamped);
    let rest = mul_add::<I>(power, -LN2_LOW, rest);
    let mut sum = COEFFICIENTS[0];
    for coefficient in &COEFFICIENTS[1..] {
        sum = mul_add::<I>(sum, rest, *coefficient);
    }
    let exponent = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()).wrapping_add(127);
    let result = sum * f32::from_bits(exponent << 23);
    if x < LOWEST { 0.0 } else { result }
}

#[cfg(test)]
mod tests {
    use super::super::portable::{Job, Level};
    use super::*;

    struct Exps<'a>(&'a mut [f32]);

    impl Job for Exps<'_> {
        #[inline(always)]
        fn run<I: Isa>(self) {
            for value in self.0 {
                *value = exp::<I>(*value);
            }
        }
    }

    #[test]
    fn exp_is_within_two_units_of_the_library() {
        for level in Level::all() {
            let inputs: Vec<f32> = (0..=8_720_u16).map(|i| -f32::from(i) / 100.0).collect();
            let mut outputs = inputs.clone();
            level.run(Exps(&mut outputs));
            for (x, y) in inputs.iter().zip(outputs) {
                let exact = f64::from(*x).exp();
                let error = ((f64::from(y) - exact) / exact).abs();
                assert!(error < 2.0 * f64::from(f32::EPSILON), "{level:?} exp({x}) is {y}");
            }
        }
    }

    #[test]
    fn exp_of_zero_is_one_and_far_below_it_is_nothing() {
        for level in Level::all() {
            let mut values = [0.0, -1e30, f32::NEG_INFINITY, f32::NAN, f32::INFINITY];
            level.run(Exps(&mut values));
            assert_eq!(values[..3], [1.0, 0.0, 0.0]);
            assert!(values[3].is_nan());
            assert!(values[4] > 1e38);
        }
    }
}
