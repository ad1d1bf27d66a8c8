//! RMS norms: of activations on their way into a product, and of single heads.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::portable::{Isa, Job, Level, mul_add};

/// Sums that a row's squares go to in turn; then they are added up in a fixed order.
const LANES: usize = 16;

/// `1 / sqrt(mean of squares + eps)` of one row.
pub fn inverse_rms(level: Level, row: &[f32], eps: f32) -> f32 {
    let mut squares = 0.0;
    level.run(SquaresJob { row, sum: &mut squares });
    1.0 / (squares / row.len() as f32 + eps).sqrt()
}

/// Norms the row-major `[rows, width]` matrix `rows` into `out`.
///
/// * `weight`: `[width]`.
pub fn normalize(level: Level, rows: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let scale = inverse_rms(level, row, eps);
        level.run(ScaleJob { row, weight, scale, out });
    }
}

struct SquaresJob<'a> {
    row: &'a [f32],
    sum: &'a mut f32,
}

impl Job for SquaresJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let mut lanes = [0.0; LANES];
        let mut pieces = self.row.chunks_exact(LANES);
        for piece in &mut pieces {
            for (lane, value) in lanes.iter_mut().zip(piece) {
                *lane = mul_add::<I>(*value, *value, *lane);
            }
        }
        for (lane, value) in lanes.iter_mut().zip(pieces.remainder()) {
            *lane = mul_add::<I>(*value, *value, *lane);
        }
        *self.sum = lanes.iter().sum();
    }
}

struct ScaleJob<'a> {
    row: &'a [f32],
    weight: &'a [f32],
    scale: f32,
    out: &'a mut [f32],
}

impl Job for ScaleJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        for ((out, value), weight) in self.out.iter_mut().zip(self.row).zip(self.weight) {
            *out = value * self.scale * weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normed_row_has_unit_mean_square() {
        for level in Level::all() {
            let rows: Vec<f32> = (1..=40_u8).map(f32::from).collect();
            let mut normed = vec![9.0; 40];
            normalize(level, &rows, &[1.0; 20], 0.0, &mut normed);
            for row in normed.chunks_exact(20) {
                let squares: f32 = row.iter().map(|value| value.powi(2)).sum();
                assert!((squares / 20.0 - 1.0).abs() < 1e-6, "{level:?}: {squares}");
            }
        }
    }
}
