//! A product is right, and no element depends on what is computed beside it.

use super::super::Precision;
use super::*;
use crate::engine::kernels::sample::numbers;

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

#[test]
fn an_element_does_not_depend_on_how_many_panels_are_in_its_run() {
    // More strips than a group of any precision has, and several shares of the depth.
    let (rows, depth, panels) = (400, 1100, 4);
    let columns = panels * PANEL_COLUMNS;
    let (values, bias) = (numbers(rows * depth, 1), numbers(columns, 3));
    let panel_len = rows.next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS;
    for precision in [Precision::F32, Precision::Bf16, Precision::Int8] {
        let (mut left, level) = (Operand::new(precision), Level::detect());
        let mut right = Weights::zeros(precision, columns, depth);
        right.pack(0, &numbers(columns * depth, 2));
        left.fill(level, (rows, depth), |first, rows| {
            rows.copy_from_slice(&values[first * depth..][..rows.len()]);
        });
        let product = |run: usize| {
            let mut product = vec![f32::NAN; panels * panel_len];
            let runs = (0..).step_by(run).zip(product.chunks_mut(run * panel_len));
            let bias = |first: usize| Some(&bias[first * PANEL_COLUMNS..]);
            runs.map(|(first, out)| Run { first, bias: bias(first), out })
                .for_each(|run| multiply_run(level, &left, &right, run));
            let rows = product.chunks(panel_len).flat_map(|p| &p[..rows * PANEL_COLUMNS]);
            rows.map(|value| value.to_bits()).collect::<Vec<u32>>()
        };
        let single = product(1);
        (2..=4).for_each(|run| assert!(product(run) == single, "{precision} runs of {run}"));
    }
}

#[test]
fn runs_are_long_but_leave_no_thread_waiting() {
    for (panels, threads, longest) in
        [(18, 1, 3), (18, 2, 3), (30, 2, 3), (64, 2, 4), (18, 16, 2), (3, 4, 1), (280, 8, 1)]
    {
        assert_eq!(longest_run(panels, threads), longest, "{panels} on {threads}");
    }
}
