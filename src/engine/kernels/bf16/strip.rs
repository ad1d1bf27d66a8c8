//! What a softmax does along the rows of a strip: find each row's largest score, round its weights.
//!
//! In plain Rust, and by the few instructions that the compiler does not find by itself.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::super::BLOCK_KEYS;
use super::dot::Dot;
use super::rounding::rounded_bits;

/// Pairs of keys of a block.
pub(super) const KEY_PAIRS: usize = BLOCK_KEYS / 2;

/// Lanes in which a row's weights are summed, and its maximum is found.
const LANES: usize = 16;

/// The largest score of each row.
#[inline(always)]
pub(super) fn highest(dot: Option<Dot>, scores: &[[f32; BLOCK_KEYS]], out: &mut [f32]) {
    if let Some(dot) = dot {
        return dot.highest(scores, out);
    }
    for (scores, out) in scores.iter().zip(out) {
        let mut lanes = [f32::NEG_INFINITY; LANES];
        for piece in scores.as_chunks::<LANES>().0 {
            for (lane, score) in lanes.iter_mut().zip(piece) {
                *lane = larger(*lane, *score);
            }
        }
        *out = fold(lanes, larger);
    }
}

/// Rounds each row of weights (not negative, none subnormal) to words; sums what they became.
#[inline(always)]
pub(super) fn round(
    dot: Option<Dot>,
    weights: &[[f32; BLOCK_KEYS]],
    words: &mut [[u32; KEY_PAIRS]],
    sums: &mut [f32],
) {
    if let Some(dot) = dot {
        return dot.round(weights, words, sums);
    }
    for ((weights, words), sum) in weights.iter().zip(words).zip(sums) {
        let mut lanes = [0.0; LANES];
        let pairs = weights.as_chunks::<2>().0.iter().zip(words);
        for (at, ([low, high], word)) in pairs.enumerate() {
            let (low, high) = (rounded_bits(*low), rounded_bits(*high));
            *word = (low >> 16) | high;
            let lane = &mut lanes[at % LANES];
            *lane = (*lane + f32::from_bits(high)) + f32::from_bits(low);
        }
        *sum = fold(lanes, |a, b| a + b);
    }
}

/// The larger of two; `highest` where `score` is not a number.
#[inline(always)]
pub(super) fn larger(highest: f32, score: f32) -> f32 {
    if score > highest { score } else { highest }
}

/// Joins lanes half with half: few steps, one order.
#[inline(always)]
fn fold(mut lanes: [f32; LANES], join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut count = LANES / 2;
    while count > 0 {
        let (low, high) = lanes.split_at_mut(count);
        for (low, high) in low.iter_mut().zip(high) {
            *low = join(*low, *high);
        }
        count /= 2;
    }
    lanes[0]
}

#[cfg(test)]
mod tests {
    use super::super::super::Level;
    use super::*;

    #[test]
    fn both_forms_find_the_same_maxima_words_and_sums() {
        let row = |row: usize| -> [f32; BLOCK_KEYS] {
            std::array::from_fn(|key| ((row * 64 + key) as f32 * 0.37).sin().powi(2))
        };
        let mut rows: Vec<[f32; BLOCK_KEYS]> = (0..12).map(row).collect();
        (rows[2][63], rows[3][5], rows[5]) = (f32::NAN, f32::NAN, [0.0; BLOCK_KEYS]);
        let run = |dot| {
            let (mut maxima, mut sums) = ([9.0; 12], [9.0; 12]);
            let mut words = [[7; KEY_PAIRS]; 12];
            highest(dot, &rows, &mut maxima);
            round(dot, &rows, &mut words, &mut sums);
            (maxima.map(f32::to_bits), words, sums)
        };
        let plain = run(None);
        for dot in Level::all().into_iter().filter_map(Dot::of) {
            let found = run(Some(dot));
            assert_eq!((found.0, found.1), (plain.0, plain.1));
            for (row, (found, plain)) in found.2.into_iter().zip(plain.2).enumerate() {
                assert_eq!(found.is_nan(), row == 2 || row == 3);
                assert!(
                    found.is_nan() || found.to_bits() == plain.to_bits(),
                    "{found}, not {plain}"
                );
            }
        }
        assert_eq!(f32::from_bits(plain.0[5]).to_bits(), 0);
    }
}
