//! The gated MLP: `down(activation(gate(x)) * up(x))`.

use crate::engine::kernels::{self, Level, Operand, Precision, Product, STRIP_ROWS, Weights};
use crate::files::Activation;

/// Rows taken at a time, in whole strips: with more, activations leave the cache and scratch grows.
pub(super) const ROWS_MAX: usize = 32 * STRIP_ROWS;

/// Weights of an MLP.
#[derive(Debug)]
pub(super) struct Mlp {
    pub(super) activation: Activation,
    /// Gate columns, padded to whole panels, then up columns.
    pub(super) gate_up: Weights,
    pub(super) down: Weights,
}

/// Buffers of an MLP.
#[derive(Debug)]
pub(super) struct MlpScratch {
    gate_up: Product,
    left: Operand,
}

impl MlpScratch {
    pub(super) fn new(precision: Precision) -> Self {
        Self { gate_up: Product::default(), left: Operand::new(precision) }
    }
}

impl Mlp {
    /// `out = mlp(input)`.
    pub(super) fn run(
        &self,
        level: Level,
        input: &Operand,
        scratch: &mut MlpScratch,
        out: &mut Product,
    ) {
        let MlpScratch { gate_up, left } = scratch;
        kernels::multiply(level, input, &self.gate_up, None, gate_up);
        let width = self.down.depth();
        left.fill(level, (input.rows(), width), |first, rows| {
            kernels::activate(level, self.activation, (gate_up, first), width, rows);
        });
        kernels::multiply(level, left, &self.down, None, out);
    }
}
