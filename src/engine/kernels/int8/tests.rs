//! What the 8-bit product promises: exactness over what it stored, and the same bits everywhere.

use proptest::prelude::*;
use rayon::iter::ParallelIterator;

use super::super::{PANEL_COLUMNS, STRIP_ROWS};
use super::panels::factors;
use super::strips::{SCALES, SUMS};
use super::*;
use crate::engine::kernels::sample::numbers;

fn strips(level: Level, left: &[f32], depth: usize) -> Int8Strips {
    let mut strips = Int8Strips::default();
    let rows = left.len() / depth;
    strips.reshape(rows, depth);
    let all: Vec<(usize, &mut [u32])> = strips.par_strips().collect();
    for (first, strip) in all {
        let last = rows.min(first + STRIP_ROWS);
        fill(level, &left[first * depth..last * depth], depth, strip);
    }
    strips
}

fn panels(weights: &[f32], depth: usize) -> Int8Panels {
    let mut panels = Int8Panels::zeros(weights.len() / depth, depth);
    panels.pack(0, weights);
    panels
}

/// `[rows][columns]` of a product that `multiply` makes panel by panel.
fn read(left: &Int8Strips, right: &Int8Panels, multiply: impl Fn(Run<'_>)) -> Vec<Vec<f32>> {
    let size = left.rows().next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS;
    let mut rows = vec![Vec::new(); left.rows()];
    for first in 0..right.panels() {
        let mut out = vec![f32::NAN; size];
        multiply(Run { first, bias: None, out: &mut out });
        for (row, lanes) in rows.iter_mut().zip(out.chunks_exact(PANEL_COLUMNS)) {
            row.extend_from_slice(lanes);
        }
    }
    for row in &mut rows {
        row.truncate(right.columns());
    }
    rows
}

fn product(level: Level, left: &Int8Strips, right: &Int8Panels) -> Vec<Vec<f32>> {
    read(left, right, |run| multiply_run(level, left, right, run))
}

fn bits(product: &[Vec<f32>]) -> Vec<Vec<u32>> {
    product.iter().map(|row| row.iter().map(|value| value.to_bits()).collect()).collect()
}

fn fusing() -> impl Iterator<Item = Level> {
    Level::all().into_iter().filter(|level| level.name() != "portable")
}

/// What a product of the stored operands is, and the sum of the magnitudes of its terms.
fn exact(left: &Int8Strips, right: &Int8Panels, row: usize, column: usize) -> (f64, f64) {
    let (mut total, mut magnitude) = (0.0, 0.0);
    let blocks = right.panel(column / PANEL_COLUMNS).as_chunks().0;
    let (row, lane) = ((row / STRIP_ROWS, row % STRIP_ROWS), column % PANEL_COLUMNS);
    for (left, right) in left.strip(row.0).iter().zip(blocks) {
        let row = row.1;
        let scale = f64::from(f32::from_bits(left[SCALES + row]));
        let (weight_scale, min) = factors(right, lane);
        let mut dot = 0;
        let mut sum = 0;
        for word in 0..BLOCK / 4 {
            let bytes = left[word * STRIP_ROWS + row].to_le_bytes().map(u8::cast_signed);
            let weights = &right[(word * PANEL_COLUMNS + lane) * 4..][..4];
            dot +=
                bytes.iter().zip(weights).map(|(a, w)| i32::from(*a) * i32::from(*w)).sum::<i32>();
            sum += bytes.iter().map(|a| i32::from(*a)).sum::<i32>();
        }
        assert_eq!(left[SUMS + row], (sum as f32).to_bits(), "the stored sum");
        let terms = [f64::from(weight_scale) * f64::from(dot), f64::from(min) * f64::from(sum)];
        total += scale * (terms[0] + terms[1]);
        magnitude += scale * (terms[0].abs() + terms[1].abs());
    }
    (total, magnitude)
}

#[test]
fn a_product_is_within_rounding_of_what_its_stored_operands_give() {
    // Depths and columns that do and do not fill blocks, shares and panels.
    for (rows, depth, columns) in
        [(29, 700, 45), (13, 1, 1), (7, 31, 33), (12, 33, 32), (1, 577, 64)]
    {
        let right = panels(&numbers(columns * depth, 2), depth);
        for level in Level::all() {
            let left = strips(level, &numbers(rows * depth, 1), depth);
            let product = product(level, &left, &right);
            let elements = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            for (row, column) in elements {
                let (exact, magnitude) = exact(&left, &right, row, column);
                // At most four roundings a block, each of at most half a unit in the last place.
                let links = 4.0 * depth.div_ceil(BLOCK) as f64;
                let bound = links * f64::from(f32::EPSILON) / 2.0 * magnitude;
                let off = (f64::from(product[row][column]) - exact).abs();
                assert!(off <= bound, "{level:?} {row} {column}: off by {off}, not {bound}");
            }
        }
    }
}

#[test]
fn the_error_of_a_product_is_that_of_8_bits() {
    let (rows, depth, columns) = (24, 1_000, 64);
    let (left, weights) = (numbers(rows * depth, 1), numbers(columns * depth, 2));
    let product =
        product(Level::detect(), &strips(Level::detect(), &left, depth), &panels(&weights, depth));
    let (mut error, mut power) = (0.0, 0.0);
    for (row, left) in left.chunks_exact(depth).enumerate() {
        for (column, weights) in weights.chunks_exact(depth).enumerate() {
            let terms = left.iter().zip(weights).map(|(a, w)| f64::from(*a) * f64::from(*w));
            let exact: f64 = terms.sum();
            error += (f64::from(product[row][column]) - exact).powi(2);
            power += exact * exact;
        }
    }
    // Steps of 1/127 and 2/255 in -1..1 are each off by 0.29 of a step: 0.4 % of a value's
    // deviation, sqrt(2) times that for both operands.
    let relative = f64::sqrt(error / power);
    assert!((0.004..0.006).contains(&relative), "relative error {relative}");
}

#[test]
fn a_row_does_not_depend_on_how_many_share_the_product() {
    let depth = 600;
    let (left, right) = (numbers(40 * depth, 1), panels(&numbers(70 * depth, 2), depth));
    for level in Level::all() {
        let together = bits(&product(level, &strips(level, &left, depth), &right));
        for (row, count) in (0..40).flat_map(|row| (1..=(40 - row).min(13)).map(move |n| (row, n)))
        {
            let some = strips(level, &left[row * depth..(row + count) * depth], depth);
            let some = bits(&product(level, &some, &right));
            assert_eq!(some[..], together[row..row + count], "{level:?} row {row} of {count}");
        }
    }
}

#[test]
fn all_fusing_levels_and_both_forms_give_the_same_bits() {
    for (rows, depth, columns) in [(17, 1_025, 33), (5, 40, 64), (12, 512, 32)] {
        let right = panels(&numbers(columns * depth, 2), depth);
        let first = fusing().next().unwrap_or(Level::detect());
        let left = strips(first, &numbers(rows * depth, 1), depth);
        let expected = bits(&product(first, &left, &right));
        for level in fusing() {
            let generic = read(&left, &right, |run| {
                level.run(generic::RunJob { left: &left, right: &right, run });
            });
            assert_eq!(bits(&generic), expected, "{level:?}, generic");
            assert_eq!(bits(&product(level, &left, &right)), expected, "{level:?}");
        }
    }
}

#[test]
fn all_levels_fill_strips_with_the_same_bits() {
    let depth = 77;
    let mut left = numbers(29 * depth, 5);
    for (power, value) in (-30..30).cycle().zip(&mut left) {
        *value *= f32::powi(10.0, power);
    }
    let expected = strips(Level::detect(), &left, depth);
    for level in Level::all() {
        let strips = strips(level, &left, depth);
        for at in 0..3 {
            assert_eq!(strips.strip(at), expected.strip(at), "{level:?} strip {at}");
        }
    }
}

#[test]
fn activations_are_rounded_to_the_nearest_with_ties_to_even() {
    let values = [127.0, 0.5, 1.5, -0.5, -2.5, 126.5, -126.5, 3.49, -127.0];
    for level in Level::all() {
        let strips = strips(level, &values, values.len());
        let block = &strips.strip(0)[0];
        let words =
            [0, 1, 2].map(|word| block[word * STRIP_ROWS].to_le_bytes().map(u8::cast_signed));
        assert_eq!(words.as_flattened()[..9], [127, 0, 2, 0, -2, 126, -126, 3, -127]);
        assert_eq!(block[SCALES], 1.0_f32.to_bits());
        assert_eq!(block[SUMS], 3.0_f32.to_bits());
    }
}

#[test]
fn missing_rows_and_blocks_too_small_for_a_scale_are_zeros() {
    for level in Level::all() {
        let mut reused = strips(level, &[1.0; 12 * 32], 32);
        let all: Vec<(usize, &mut [u32])> = reused.par_strips().collect();
        for (_, strip) in all {
            fill(level, &[[1e-36; 32], [1e-45; 32]].concat(), 32, strip);
        }
        assert!(reused.strip(0)[0].iter().all(|word| *word == 0), "{level:?}");
    }
}

#[test]
fn zeros_change_nothing() {
    let depth = 50;
    let right = panels(&vec![0.0; 40 * depth], depth);
    for level in Level::all() {
        let left = strips(level, &numbers(5 * depth, 1), depth);
        let nothing = strips(level, &vec![-0.0; 5 * depth], depth);
        let weights = panels(&numbers(40 * depth, 1), depth);
        for (left, right) in [(&left, &right), (&nothing, &weights)] {
            let mut out = vec![0.0; STRIP_ROWS * PANEL_COLUMNS];
            let bias = Some(&[3.5; PANEL_COLUMNS][..]);
            multiply_run(level, left, right, Run { first: 1, bias, out: &mut out });
            assert_eq!(out[..5 * PANEL_COLUMNS], [3.5; 5 * PANEL_COLUMNS]);
        }
    }
}

#[test]
fn a_power_of_two_moves_from_one_operand_to_the_other_without_a_trace() {
    let depth = 90;
    let (left, weights) = (numbers(4 * depth, 1), numbers(35 * depth, 2));
    let scaled = |values: &[f32], power| -> Vec<f32> {
        values.iter().map(|value| value * f32::powi(2.0, power)).collect()
    };
    for level in Level::all() {
        let expected = product(level, &strips(level, &left, depth), &panels(&weights, depth));
        for power in [-100, -40, 40, 100] {
            let left = strips(level, &scaled(&left, power), depth);
            let product = product(level, &left, &panels(&scaled(&weights, -power), depth));
            assert_eq!(bits(&product), bits(&expected), "{level:?} 2^{power}");
        }
    }
}

#[test]
fn finite_extremes_make_nothing_that_is_not_a_number() {
    let mut left = vec![0.0; 64];
    left[..4].copy_from_slice(&[f32::MAX, f32::MIN, f32::MIN_POSITIVE, 1e-45]);
    left[32..35].copy_from_slice(&[1e-45, -1e-40, 2e-38]);
    let weights: Vec<f32> = left.iter().map(|value| value * 1e-4).collect();
    for level in Level::all() {
        // 3.4e38 * 3.4e34 twice, from either sign: far too large, but no infinity less another.
        let large = product(level, &strips(level, &left, 64), &panels(&weights, 64));
        assert_eq!(large[0][0].to_bits(), f32::INFINITY.to_bits());
        let one = product(level, &strips(level, &[1.0; 64], 64), &panels(&weights, 64));
        assert!(one[0][0].is_finite(), "{level:?}: {}", one[0][0]);
    }
}

#[test]
fn what_is_not_finite_in_a_row_surfaces_in_all_of_it_and_nowhere_else() {
    let depth = 70;
    let mut weights = numbers(40 * depth, 2);
    weights[..2 * depth].fill(0.0);
    let right = panels(&weights, depth);
    for (level, at) in Level::all().into_iter().flat_map(|level| [0, 33, 69].map(|at| (level, at)))
    {
        let mut left = numbers(9 * depth, 1);
        let expected = bits(&product(level, &strips(level, &left, depth), &right));
        for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            left[4 * depth + at] = value;
            let product = product(level, &strips(level, &left, depth), &right);
            assert!(product[4].iter().all(|value| !value.is_finite()), "{level:?} {value} at {at}");
            let bits = bits(&product);
            (0..9).filter(|row| *row != 4).for_each(|row| assert_eq!(bits[row], expected[row]));
        }
    }
}

#[test]
fn a_weight_that_is_not_finite_surfaces_in_its_column_only() {
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut weights = numbers(3 * 40, 2);
        weights[40 + 35] = value;
        let left = strips(Level::detect(), &numbers(40, 1), 40);
        let row = product(Level::detect(), &left, &panels(&weights, 40)).remove(0);
        assert_eq!([0, 1, 2].map(|column| row[column].is_finite()), [true, false, true]);
    }
}

fn column(panels: &Int8Panels, column: usize) -> Vec<f32> {
    let mut values = vec![0.0; panels.depth()];
    panels.read_column(column, &mut values);
    values
}

#[test]
fn a_block_of_one_value_comes_back_as_it_was() {
    for value in [0.0, -0.75, 1e30, 3e-39, f32::MAX] {
        assert_eq!(column(&panels(&[value; 45], 45), 0), [value; 45]);
    }
}

#[test]
fn weights_on_a_grid_of_up_to_32_levels_come_back_within_rounding() {
    let (step, lowest) = (0.003_71, -0.029);
    for steps in 1..32_u8 {
        let level = |at: usize| match at {
            0 => 0,
            1 => steps,
            at => u8::try_from(at * 7 % (usize::from(steps) + 1)).unwrap(),
        };
        let weights: Vec<f32> =
            (0..64).map(|at| f32::from(level(at % 32)) * step + lowest).collect();
        let read = column(&panels(&weights, 64), 0);
        for (weight, read) in weights.iter().zip(&read) {
            let off = (weight - read).abs();
            assert!(off < 2e-8, "{steps} steps: {weight} came back as {read}");
        }
    }
}

#[test]
fn weights_of_8_bits_without_a_minimum_come_back_within_rounding() {
    for (scale, highest) in [(0.000_213_f32, 127_i16), (3.7, -127)] {
        let weights: Vec<f32> = (0..96_i16)
            .map(|at| f32::from(if at % 32 == 5 { highest } else { at * 83 % 127 }) * scale)
            .collect();
        let read = column(&panels(&weights, 96), 0);
        for (weight, read) in weights.iter().zip(&read) {
            let off = (weight - read).abs();
            assert!(off < 1e-4 * scale, "{weight} came back as {read}");
        }
    }
}

#[test]
fn a_block_far_from_zero_keeps_its_steps() {
    let weights: Vec<f32> = (0..32_u8).map(|at| 1.0 + f32::from(at).powi(2) * 1.5e-7).collect();
    let read = column(&panels(&weights, 32), 0);
    let step = (weights[31] - weights[0]) / 255.0;
    for (weight, read) in weights.iter().zip(&read) {
        assert!(
            (weight - read).abs() <= 0.51 * step + f32::EPSILON,
            "{weight} came back as {read}"
        );
    }
}

#[test]
fn packing_in_parts_gives_the_same_bytes_and_they_can_be_stored() {
    let depth = 45;
    let weights = numbers(70 * depth, 3);
    let whole = panels(&weights, depth);
    let mut parts = Int8Panels::zeros(70, depth);
    parts.pack(33, &weights[33 * depth..]);
    parts.pack(0, &weights[..33 * depth]);
    assert_eq!(parts.as_parts(), whole.as_parts());
    let (columns, depth, bytes) = whole.as_parts();
    let stored = Int8Panels::from_parts(columns, depth, bytes).unwrap();
    assert_eq!(stored.as_parts(), whole.as_parts());
    assert_eq!((stored.panels(), stored.bytes()), (3, bytes.len() as u64));
}

#[test]
fn stored_bytes_of_another_shape_are_refused() {
    let error = Int8Panels::from_parts(40, 33, &[0; 100]).unwrap_err().to_string();
    assert_eq!(error, "40 columns of depth 33 take 5120 packed bytes, not 100");
    assert!(Int8Panels::from_parts(usize::MAX, usize::MAX, &[]).is_err());
}

proptest! {
    #[test]
    fn a_weight_comes_back_within_half_a_step_of_its_block(
        weights in prop::collection::vec(-1e3_f32..1e3, 1..80),
        power in -60..60_i32,
    ) {
        let weights: Vec<f32> = weights.iter().map(|w| w * f32::powi(2.0, power)).collect();
        let read = column(&panels(&weights, weights.len()), 0);
        for (weights, read) in weights.chunks(BLOCK).zip(read.chunks(BLOCK)) {
            let ends = weights.iter().fold((weights[0], weights[0]), |e, w| (e.0.min(*w), e.1.max(*w)));
            // Not on a grid, so in 255 steps; or within a 50th of a step of a coarser one.
            let step = (ends.1 - ends.0) / 255.0;
            let rounding = ends.0.abs().max(ends.1.abs()) * f32::EPSILON;
            for (weight, read) in weights.iter().zip(read) {
                prop_assert!((weight - read).abs() <= 0.501 * step + 2.0 * rounding);
            }
        }
    }
}
