//! Matrix product: packed activations times packed weights.
//!
//! Threads share out whole panels of columns, and a panel walks the depth in blocks whose sums are
//! kept as `f32` between blocks: neither changes the order in which an element is summed.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::cell::RefCell;

use rayon::prelude::*;

use crate::files::Activation;

use super::activate::activate;
use super::bf16;
use super::int8;
use super::matrix::{Product, Strips};
use super::operand::{Operand, Weights};
use super::portable::{Isa, Job, Left, Out, Right};
use super::{Level, PANEL_COLUMNS, STRIP_ROWS};

/// Depth that is walked before going to the next strip: a panel's share is 64 KiB, a strip's 24 KiB.
const DEPTH_BLOCK: usize = 512;

/// `out = left x right + bias`, for rows of `left` and columns of `right`.
///
/// * `bias`: `[columns, padded to panels]`; the sums start from it.
///
/// # Panics
/// When the operands differ in precision or depth.
pub fn multiply(
    level: Level,
    left: &Operand,
    right: &Weights,
    bias: Option<&[f32]>,
    out: &mut Product,
) {
    out.reshape(left.rows(), right.panels());
    out.par_panels().with_max_len(1).enumerate().for_each(|(panel, out)| {
        let bias = bias.map(|bias| &bias[panel * PANEL_COLUMNS..][..PANEL_COLUMNS]);
        start(bias, out);
        multiply_panel(level, left, right, panel, out);
    });
}

thread_local! {
    /// A panel's up columns.
    static UP: RefCell<Vec<f32>> = RefCell::default();
}

/// `out = activation(left x gate) * (left x up)`, a panel of both at a time: neither is ever whole
/// in memory.
///
/// * `right`: the gate's panels, then as many panels of up.
///
/// # Panics
/// When the operands differ in precision or depth, or the panels are not two halves.
pub fn multiply_gated(
    level: Level,
    activation: Activation,
    left: &Operand,
    right: &Weights,
    out: &mut Product,
) {
    assert!(right.panels().is_multiple_of(2), "{} panels of gate and up", right.panels());
    let panels = right.panels() / 2;
    out.reshape(left.rows(), panels);
    out.par_panels().with_max_len(1).enumerate().for_each(|(panel, gate)| {
        UP.with_borrow_mut(|up| {
            up.resize(up.len().max(gate.len()), 0.0);
            let up = &mut up[..gate.len()];
            for (panel, out) in [(panel, &mut *gate), (panels + panel, &mut *up)] {
                out.fill(0.0);
                multiply_panel(level, left, right, panel, out);
            }
            activate(level, activation, gate, up);
        });
    });
}

/// Adds the product of `left` and one panel to `out`, `[rows, padded to strips][PANEL_COLUMNS]`.
///
/// # Panics
/// When the operands differ in precision or depth.
pub fn multiply_panel(
    level: Level,
    left: &Operand,
    right: &Weights,
    panel: usize,
    out: &mut [f32],
) {
    assert_eq!(left.depth(), right.depth(), "depths of a product differ");
    match (left, right) {
        (Operand::F32(left), Weights::F32(right)) => {
            level.run(PanelJob { left, right: right.panel(panel), out });
        }
        (Operand::Bf16(left), Weights::Bf16(right)) => {
            bf16::multiply_panel(level, left, right, panel, out);
        }
        (Operand::Int8(left), Weights::Int8(right)) => {
            int8::multiply_panel(level, left, right, panel, out);
        }
        (Operand::F32(_) | Operand::Bf16(_) | Operand::Int8(_), _) => {
            unreachable!("operands of two precisions");
        }
    }
}

fn start(bias: Option<&[f32]>, out: &mut [f32]) {
    match bias {
        Some(bias) => out.chunks_exact_mut(PANEL_COLUMNS).for_each(|row| row.copy_from_slice(bias)),
        None => out.fill(0.0),
    }
}

struct PanelJob<'a> {
    left: &'a Strips,
    right: &'a [f32],
    out: &'a mut [f32],
}

impl Job for PanelJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { left, right, out } = self;
        for first in (0..left.depth()).step_by(DEPTH_BLOCK) {
            let last = left.depth().min(first + DEPTH_BLOCK);
            let right = &right[first * PANEL_COLUMNS..last * PANEL_COLUMNS];
            let outs = out.chunks_exact_mut(STRIP_ROWS * PANEL_COLUMNS).enumerate();
            for (strip, out) in outs {
                let rows = STRIP_ROWS.min(left.rows() - strip * STRIP_ROWS);
                let left = PackedColumns(&left.strip(strip)[first * STRIP_ROWS..last * STRIP_ROWS]);
                let right = Right { values: right, stride: PANEL_COLUMNS, first: 0 };
                I::accumulate(
                    &left,
                    rows,
                    right,
                    Out { values: out, stride: PANEL_COLUMNS, first: 0 },
                );
            }
        }
    }
}

/// Part of a strip: `[depth][STRIP_ROWS]`.
pub(super) struct PackedColumns<'a>(pub(super) &'a [f32]);

impl Left for PackedColumns<'_> {
    #[inline(always)]
    fn column<const R: usize>(&self, k: usize, first: usize) -> [f32; R] {
        let mut column = [0.0; R];
        column.copy_from_slice(&self.0[k * STRIP_ROWS..(k + 1) * STRIP_ROWS][first..first + R]);
        column
    }
}

#[cfg(test)]
mod tests {
    use super::super::Precision;
    use super::*;

    /// Numbers in -1..1 from a fixed sequence.
    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    struct Case {
        depth: usize,
        columns: usize,
        left: Vec<f32>,
        weights: Vec<f32>,
    }

    impl Case {
        fn new(rows: usize, depth: usize, columns: usize) -> Self {
            let (left, weights) = (numbers(rows * depth, 1), numbers(columns * depth, 2));
            Self { depth, columns, left, weights }
        }

        fn product(&self, level: Level, left: &[f32]) -> Vec<Vec<f32>> {
            let mut weights = Weights::zeros(Precision::F32, self.columns, self.depth);
            weights.pack(0, &self.weights);
            let (mut operand, mut out) = (Operand::new(Precision::F32), Product::default());
            operand.fill(level, (left.len() / self.depth, self.depth), |first, rows| {
                rows.copy_from_slice(&left[first * self.depth..][..rows.len()]);
            });
            multiply(level, &operand, &weights, None, &mut out);
            let read = |row| {
                let mut values = vec![0.0; self.columns];
                out.read_row(row, 0, &mut values);
                values
            };
            (0..left.len() / self.depth).map(read).collect()
        }
    }

    #[test]
    fn a_product_is_within_rounding_of_its_f64_sum_at_every_level() {
        let case = Case::new(29, 700, 45);
        for level in Level::all() {
            let product = case.product(level, &case.left);
            for (row, column) in (0..29).flat_map(|row| (0..45).map(move |column| (row, column))) {
                let left = &case.left[row * 700..][..700];
                let right = &case.weights[column * 700..][..700];
                let exact: f64 =
                    left.iter().zip(right).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let difference = (f64::from(product[row][column]) - exact).abs();
                // 700 terms below 1: rounding grows with the square root of their number.
                assert!(difference < 1e-4, "{level:?} {row} {column}: off by {difference}");
            }
        }
    }

    #[test]
    fn a_row_does_not_depend_on_how_many_share_the_product() {
        let case = Case::new(40, 600, 70);
        for level in Level::all() {
            let together = case.product(level, &case.left);
            let parts = (0..40).flat_map(|row| (1..=(40 - row).min(13)).map(move |n| (row, n)));
            for (row, count) in parts {
                let some = case.product(level, &case.left[row * 600..(row + count) * 600]);
                assert_eq!(some[0], together[row], "{level:?} row {row} of {count}");
            }
        }
    }

    #[test]
    fn all_fusing_levels_give_the_same_bits() {
        let case = Case::new(17, 513, 33);
        let fusing: Vec<Level> =
            Level::all().into_iter().filter(|level| level.name() != "portable").collect();
        for level in &fusing {
            assert_eq!(case.product(*level, &case.left), case.product(fusing[0], &case.left));
        }
    }
}
