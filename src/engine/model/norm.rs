//! RMS norms with their weights.

use rayon::prelude::*;

use crate::engine::kernels::{self, Level, STRIP_ROWS, Strips};

/// An RMS norm; `weight` is what values are multiplied by, whatever the file stores.
#[derive(Debug)]
pub(super) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) eps: f32,
}

impl Norm {
    /// Norms the row-major `[rows, width]` matrix `rows` into the left operand of a product.
    pub(super) fn pack(&self, level: Level, rows: &[f32], out: &mut Strips) {
        let width = self.weight.len();
        out.reshape(rows.len() / width, width);
        out.par_strips().for_each(|(first, strip)| {
            let rows = &rows[first * width..rows.len().min((first + STRIP_ROWS) * width)];
            kernels::normalize(level, rows, &self.weight, self.eps, strip);
        });
    }

    /// Norms one row (or head) in place.
    pub(super) fn apply(&self, level: Level, row: &mut [f32]) {
        let scale = kernels::inverse_rms(level, row, self.eps);
        for (value, weight) in row.iter_mut().zip(&self.weight) {
            *value = *value * scale * weight;
        }
    }
}
