//! The gated MLP: `down(activation(gate(x)) * up(x))`.

use crate::engine::kernels::{self, Level, Operand, Precision, Product, STRIP_ROWS, Weights};
use crate::files::Activation;

/// Rows taken at a time, in whole strips: a step of 512 tokens reads the weights once. With more,
/// scratch grows.
pub(super) const ROWS_MAX: usize = 43 * STRIP_ROWS;

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
    gated: Product,
    left: Operand,
}

impl MlpScratch {
    pub(super) fn new(precision: Precision) -> Self {
        Self { gated: Product::default(), left: Operand::new(precision) }
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
        let MlpScratch { gated, left } = scratch;
        kernels::multiply_gated(level, self.activation, input, &self.gate_up, gated);
        let width = self.down.depth();
        left.fill(level, (input.rows(), width), |first, rows| {
            let rows = rows.chunks_exact_mut(width);
            (first..).zip(rows).for_each(|(row, out)| gated.read_row(row, 0, out));
        });
        kernels::multiply(level, left, &self.down, None, out);
    }
}
