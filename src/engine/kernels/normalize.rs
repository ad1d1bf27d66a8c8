//! RMS norms: of activations on their way into a product, and of single heads.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::portable::{Isa, Job, Level, mul_add};
use super::{STRIP_ROWS, write_lane};

/// Sums that a row's squares go to in turn; then they are added up in a fixed order.
const LANES: usize = 16;

/// `1 / sqrt(mean of squares + eps)` of one row.
pub fn inverse_rms(level: Level, row: &[f32], eps: f32) -> f32 {
    let mut squares = 0.0;
    level.run(SquaresJob { row, sum: &mut squares });
    1.0 / (squares / row.len() as f32 + eps).sqrt()
}

/// Norms the row-major `[rows, width]` matrix `rows` (at most [`STRIP_ROWS`] of them) into a strip,
/// `[width][STRIP_ROWS]`; missing rows become zeros.
///
/// * `weight`: `[width]`.
pub fn normalize(level: Level, rows: &[f32], weight: &[f32], eps: f32, strip: &mut [f32]) {
    let width = weight.len();
    let mut scales = [0.0; STRIP_ROWS];
    for (scale, row) in scales.iter_mut().zip(rows.chunks_exact(width)) {
        *scale = inverse_rms(level, row, eps);
    }
    if rows.len() < STRIP_ROWS * width {
        strip.fill(0.0);
    }
    level.run(ScaleJob { rows, weight, scales, strip });
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
    rows: &'a [f32],
    weight: &'a [f32],
    scales: [f32; STRIP_ROWS],
    strip: &'a mut [f32],
}

impl Job for ScaleJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let width = self.weight.len();
        for (row, values) in self.rows.chunks_exact(width).take(STRIP_ROWS).enumerate() {
            let scale = self.scales[row];
            let normed =
                values.iter().zip(self.weight).map(|(value, weight)| value * scale * weight);
            write_lane(self.strip, row, normed);
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
            let mut strip = vec![9.0; 20 * STRIP_ROWS];
            normalize(level, &rows, &[1.0; 20], 0.0, &mut strip);
            for row in 0..2 {
                let squares: f32 = (0..20).map(|k| strip[k * STRIP_ROWS + row].powi(2)).sum();
                assert!((squares / 20.0 - 1.0).abs() < 1e-6, "{level:?}: {squares}");
            }
            assert_eq!(strip[2..STRIP_ROWS], [0.0; STRIP_ROWS - 2]);
        }
    }
}
