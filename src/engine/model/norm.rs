//! RMS norms with their weights.

use crate::engine::kernels::{self, Level, Operand};

/// An RMS norm; `weight` is what values are multiplied by, whatever the file stores.
#[derive(Debug)]
pub(super) struct Norm {
    pub(super) weight: Vec<f32>,
    pub(super) eps: f32,
}

impl Norm {
    /// Norms the row-major `[rows, width]` matrix `rows` into the left operand of a product.
    pub(super) fn pack(&self, level: Level, rows: &[f32], out: &mut Operand) {
        let width = self.weight.len();
        out.fill(level, (rows.len() / width, width), |first, out| {
            let rows = &rows[first * width..][..out.len()];
            kernels::normalize(level, rows, &self.weight, self.eps, out);
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
