//! What a bf16 product promises: closeness, rows that do not depend on each other, and its order.

use super::super::rounding::{narrow, widen};
use super::*;
use crate::engine::kernels::sample::numbers;

fn rounded(values: &[f32]) -> Vec<f32> {
    values.iter().map(|value| widen(narrow(*value))).collect()
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

    /// The product of some rows by `multiply`, row-major.
    fn product(&self, level: Level, left: &[f32], multiply: Multiply) -> Vec<Vec<f32>> {
        let mut panels = Bf16Panels::zeros(self.columns, self.depth);
        panels.pack(0, &self.weights);
        let mut strips = Bf16Strips::default();
        strips.pack(level, left, self.depth);
        let rows = left.len() / self.depth;
        let mut out =
            vec![vec![0.0; rows.next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS]; panels.panels()];
        for (first, out) in out.iter_mut().enumerate() {
            multiply(level, &strips, &panels, Run { first, bias: None, out });
        }
        let value = |row: usize, column: usize| {
            out[column / PANEL_COLUMNS][row * PANEL_COLUMNS + column % PANEL_COLUMNS]
        };
        (0..rows).map(|row| (0..self.columns).map(|column| value(row, column)).collect()).collect()
    }
}

type Multiply = fn(Level, &Bf16Strips, &Bf16Panels, Run<'_>);

/// The product as levels without the instruction make it, at any level.
fn multiply_by_widening(level: Level, left: &Bf16Strips, right: &Bf16Panels, run: Run<'_>) {
    level.run(WideJob { left, right, run });
}

fn ways() -> Vec<(Level, Multiply)> {
    let both =
        |level| [(level, multiply_run as Multiply), (level, multiply_by_widening as Multiply)];
    Level::all().into_iter().flat_map(both).collect()
}

#[test]
fn a_product_is_within_rounding_of_the_f64_sum_of_rounded_operands() {
    for depth in [1, 2, 63, 700, 1101] {
        let case = Case::new(29, depth, 45);
        let (left, weights) = (rounded(&case.left), rounded(&case.weights));
        for (level, multiply) in ways() {
            let product = case.product(level, &case.left, multiply);
            for (row, column) in (0..29).flat_map(|row| (0..45).map(move |column| (row, column))) {
                let left = &left[row * depth..][..depth];
                let right = &weights[column * depth..][..depth];
                let exact: f64 =
                    left.iter().zip(right).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                let difference = (f64::from(product[row][column]) - exact).abs();
                // Terms below 1: rounding grows with the square root of their number.
                assert!(difference < 1e-4, "{level:?} {row} {column}: off by {difference}");
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_how_many_share_the_product() {
    let case = Case::new(40, 1101, 70);
    for (level, multiply) in ways() {
        let together = case.product(level, &case.left, multiply);
        let parts =
            (0..40).step_by(3).flat_map(|row| (1..=(40 - row).min(13)).map(move |n| (row, n)));
        for (row, count) in parts {
            let some = case.product(level, &case.left[row * 1101..(row + count) * 1101], multiply);
            assert_eq!(some[..], together[row..row + count], "{level:?} row {row} of {count}");
        }
    }
}

#[test]
fn a_product_starts_from_its_bias_and_not_from_what_is_there() {
    let (panels, mut strips) = (Bf16Panels::zeros(40, 4), Bf16Strips::default());
    let bias: Vec<f32> = (0..64_u8).map(f32::from).collect();
    for (level, multiply) in ways() {
        strips.pack(level, &[1.0; 4], 4);
        let mut out = vec![7.5; 2 * STRIP_ROWS * PANEL_COLUMNS];
        multiply(level, &strips, &panels, Run { first: 0, bias: Some(&bias), out: &mut out });
        let rows = [&out[..PANEL_COLUMNS], &out[STRIP_ROWS * PANEL_COLUMNS..][..PANEL_COLUMNS]];
        assert_eq!(rows.concat(), bias, "{level:?}");
    }
}

#[test]
fn all_fusing_levels_give_the_same_bits_with_the_instruction_and_without() {
    let case = Case::new(17, 1101, 33);
    let expected = case.product(Level::detect(), &case.left, multiply_run);
    for (level, multiply) in ways() {
        let same = case.product(level, &case.left, multiply) == expected;
        assert!(same || level.name() == "portable", "{level:?}");
    }
}

#[test]
fn what_is_not_finite_reaches_its_row_and_no_other() {
    let mut case = Case::new(5, 40, 3);
    case.left[2 * 40 + 7] = f32::NAN;
    case.left[3 * 40 + 39] = f32::INFINITY;
    for (level, multiply) in ways() {
        let product = case.product(level, &case.left, multiply);
        let finite: Vec<bool> = product.iter().map(|row| row[0].is_finite()).collect();
        assert_eq!(finite, [true, true, false, false, true], "{level:?}");
        assert!(product[2][0].is_nan() && product[3][0].is_infinite(), "{level:?}");
    }
}
