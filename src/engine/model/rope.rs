//! Rotary positions, half-split: element `i` of a head turns with element `i + head_dim / 2`.
//!
//! Angles are made for the positions of each step, not for the whole context: that costs less
//! than a thousandth of a step and no memory.

use rayon::prelude::*;

use crate::engine::narrow;
use crate::files::{RopeConfig, RopeScaling};

/// Frequencies of one rope.
#[derive(Debug)]
pub(in crate::engine) struct Rope {
    /// Radians a position: `[head_dim / 2]`.
    frequencies: Vec<f32>,
}

/// Cosines and sines of a list of positions.
#[derive(Debug)]
pub(in crate::engine) struct Angles {
    half: usize,
    /// `[positions][half]` pairs of cosine and sine.
    turns: Vec<(f32, f32)>,
}

impl Rope {
    /// `theta^(-2 i / head_dim)`, stretched.
    pub(in crate::engine) fn new(config: &RopeConfig, head_dim: usize) -> Self {
        let frequency = |i: usize| {
            let power = 2.0 * i as f64 / head_dim as f64;
            let plain = 1.0 / narrow(f64::from(config.theta).powf(power));
            match &config.scaling {
                RopeScaling::None => plain,
                RopeScaling::Linear(factor) => plain / factor,
                RopeScaling::PerFrequency(factors) => plain / factors[i],
            }
        };
        Self { frequencies: (0..head_dim / 2).map(frequency).collect() }
    }

    /// Angles of these positions; an angle is rounded to `f32` as the reference models do.
    pub(in crate::engine) fn angles(&self, positions: &[usize]) -> Angles {
        let half = self.frequencies.len();
        let mut turns = vec![(0.0, 0.0); positions.len() * half];
        turns.par_chunks_exact_mut(half).zip(positions).for_each(|(turns, position)| {
            for (turn, frequency) in turns.iter_mut().zip(&self.frequencies) {
                let (sin, cos) = f64::from(*position as f32 * frequency).sin_cos();
                *turn = (narrow(cos), narrow(sin));
            }
        });
        Angles { half, turns }
    }
}

impl Angles {
    /// The cosines, then the sines: `[positions, half]` each.
    pub(in crate::engine) fn cosines_and_sines(&self) -> (Vec<f32>, Vec<f32>) {
        self.turns.iter().copied().unzip()
    }

    /// Turns one head of token number `token`.
    pub(super) fn turn(&self, token: usize, head: &mut [f32]) {
        let (firsts, seconds) = head.split_at_mut(self.half);
        let turns = &self.turns[token * self.half..][..self.half];
        for ((first, second), (cos, sin)) in firsts.iter_mut().zip(seconds).zip(turns) {
            let (a, b) = (*first, *second);
            *first = a * cos - b * sin;
            *second = b * cos + a * sin;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turned head, as bits.
    fn bits(scaling: RopeScaling, position: usize, head: [f32; 4]) -> [u32; 4] {
        turned(scaling, position, head).map(f32::to_bits)
    }

    fn turned(scaling: RopeScaling, position: usize, head: [f32; 4]) -> [f32; 4] {
        let rope = Rope::new(&RopeConfig { theta: 100.0, scaling }, 4);
        let mut head = head;
        rope.angles(&[position]).turn(0, &mut head);
        head
    }

    #[test]
    fn halves_turn_by_position_times_frequency() {
        let head = turned(RopeScaling::None, 3, [1.0, 1.0, 0.0, 0.0]);
        let expected = [3.0_f32.cos(), 0.3_f32.cos(), 3.0_f32.sin(), 0.3_f32.sin()];
        for (found, expected) in head.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{head:?}");
        }
    }

    #[test]
    fn linear_and_per_frequency_scaling_stretch_positions() {
        let head = [0.3, -0.7, 1.1, 0.2];
        let plain = bits(RopeScaling::None, 2, head);
        assert_eq!(bits(RopeScaling::Linear(4.0), 8, head), plain);
        assert_eq!(bits(RopeScaling::PerFrequency(vec![4.0, 4.0]), 8, head), plain);
        assert_ne!(bits(RopeScaling::PerFrequency(vec![4.0, 1.0]), 8, head), plain);
    }
}
