//! The gated MLP: `down(activation(gate(x)) * up(x))`.

use rayon::prelude::*;

use crate::engine::kernels::{self, Level, Panels, Product, STRIP_ROWS, Strips};
use crate::files::Activation;

/// Rows taken at a time, in whole strips: with more, activations leave the cache and scratch grows.
pub(super) const ROWS_MAX: usize = 32 * STRIP_ROWS;

/// Weights of an MLP.
#[derive(Debug)]
pub(super) struct Mlp {
    pub(super) activation: Activation,
    /// Gate columns, padded to whole panels, then up columns.
    pub(super) gate_up: Panels,
    pub(super) down: Panels,
}

/// Buffers of an MLP.
#[derive(Debug, Default)]
pub(super) struct MlpScratch {
    gate_up: Product,
    left: Strips,
}

impl Mlp {
    /// `out = mlp(input)`.
    pub(super) fn run(
        &self,
        level: Level,
        input: &Strips,
        scratch: &mut MlpScratch,
        out: &mut Product,
    ) {
        let MlpScratch { gate_up, left } = scratch;
        kernels::multiply(level, input, &self.gate_up, None, gate_up);
        let rows = input.rows();
        left.reshape(rows, self.down.depth());
        left.par_strips().for_each(|(first, strip)| {
            let rows = first..rows.min(first + STRIP_ROWS);
            kernels::activate(level, self.activation, gate_up, rows, strip);
        });
        kernels::multiply(level, left, &self.down, None, out);
    }
}
