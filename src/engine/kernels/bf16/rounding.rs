//! Between f32 and bf16: the one rounding that all operands go through.
//!
//! Plain integer arithmetic, so that packed weights and activations are the same bits on every
//! CPU; `vcvtneps2bf16` would flush subnormal inputs.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

/// The bit that makes a not-a-number quiet, and so keeps it one when its low half is cut off.
const QUIET: u32 = 0x0040_0000;
const HIGH_HALF: u32 = 0xffff_0000;

/// The nearest bf16, ties to even; infinities and not-a-numbers stay what they are.
#[inline(always)]
pub fn narrow(x: f32) -> u16 {
    (rounded_bits(x) >> 16) as u16
}

/// The same number as f32.
#[inline(always)]
pub fn widen(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

/// Bits of the f32 that equals `x` rounded to bf16.
#[inline(always)]
pub(super) fn rounded_bits(x: f32) -> u32 {
    let bits = x.to_bits();
    let nearest = bits.wrapping_add(0x7fff + ((bits >> 16) & 1));
    (if x.is_nan() { bits | QUIET } else { nearest }) & HIGH_HALF
}

/// Two rounded values as one word.
#[inline(always)]
pub(super) fn word(low: f32, high: f32) -> u32 {
    (rounded_bits(low) >> 16) | rounded_bits(high)
}

/// The low and the high value of a word.
#[inline(always)]
pub(super) fn halves(word: u32) -> [f32; 2] {
    [f32::from_bits(word << 16), f32::from_bits(word & HIGH_HALF)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_to_nearest_even_and_keeps_what_is_not_finite() {
        for high in 0..=u16::MAX {
            for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff_u32] {
                let x = f32::from_bits((u32::from(high) << 16) | low);
                let expected = half::bf16::from_f32(x);
                assert_eq!(narrow(x), expected.to_bits(), "{x} ({high:#x} {low:#x})");
                assert_eq!(widen(narrow(x)).is_nan(), x.is_nan());
            }
        }
        assert_eq!(widen(narrow(f32::INFINITY)).to_bits(), f32::INFINITY.to_bits());
    }

    #[test]
    fn a_word_has_its_first_value_in_the_low_half() {
        let word = word(1.0, -2.0);
        assert_eq!(word, 0xc000_3f80);
        assert_eq!(halves(word).map(f32::to_bits), [1.0_f32, -2.0].map(f32::to_bits));
    }
}
