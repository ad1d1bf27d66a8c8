//! Sums over a run of the vocabulary's columns: what a row's softmax needs of it.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::exponential::exp;
use super::portable::{Isa, Job, Level};
use super::{PANEL_COLUMNS, STRIP_ROWS};

/// One row's logits in a run of columns, summed up.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ColumnSums {
    /// The largest logit.
    pub highest: f32,
    /// The lowest column that has it, counted from the run's first.
    pub column: usize,
    /// Sum of `exp(logit - highest)` over the run.
    pub weight: f64,
}

/// Sums up `columns` logits of row `row`.
///
/// * `logits`: `[panels][rows, padded to strips][PANEL_COLUMNS]`; columns past `columns` are padding.
/// * `rows`: rows of `logits`, unpadded.
pub fn sum_columns(
    level: Level,
    logits: &[f32],
    rows: usize,
    row: usize,
    columns: usize,
) -> ColumnSums {
    let mut sums = ColumnSums { highest: f32::NEG_INFINITY, column: 0, weight: 0.0 };
    let panel_size = rows.next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS;
    level.run(SumJob { logits, panel_size, row, columns, sums: &mut sums });
    sums
}

struct SumJob<'a> {
    logits: &'a [f32],
    panel_size: usize,
    row: usize,
    columns: usize,
    sums: &'a mut ColumnSums,
}

impl Job for SumJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Self { logits, panel_size, row, columns, sums } = self;
        let panels = || {
            let rows = logits
                .chunks_exact(panel_size)
                .map(move |panel| &panel[row * PANEL_COLUMNS..][..PANEL_COLUMNS]);
            rows.enumerate().map(move |(panel, lanes)| {
                &lanes[..PANEL_COLUMNS.min(columns.saturating_sub(panel * PANEL_COLUMNS))]
            })
        };
        let mut highest = [f32::NEG_INFINITY; PANEL_COLUMNS];
        for lanes in panels() {
            for (highest, logit) in highest.iter_mut().zip(lanes) {
                *highest = larger(*highest, *logit);
            }
        }
        let highest = highest.into_iter().fold(f32::NEG_INFINITY, larger);
        let mut weights = [0.0_f64; PANEL_COLUMNS];
        let mut column = None;
        for (panel, lanes) in panels().enumerate() {
            for (weight, logit) in weights.iter_mut().zip(lanes) {
                *weight += f64::from(exp::<I>(*logit - highest));
            }
            if column.is_none() {
                let lane = lanes.iter().position(|logit| *logit >= highest);
                column = lane.map(|lane| panel * PANEL_COLUMNS + lane);
            }
        }
        *sums = ColumnSums { highest, column: column.unwrap_or(0), weight: weights.iter().sum() };
    }
}

/// The larger of two; `highest` where `logit` is not a number.
#[inline(always)]
fn larger(highest: f32, logit: f32) -> f32 {
    if logit > highest { logit } else { highest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_no_column_and_the_lowest_of_equals_wins() {
        let mut logits = vec![50.0; 2 * STRIP_ROWS * PANEL_COLUMNS];
        let row = 3;
        for column in 0..40 {
            let panel = column / PANEL_COLUMNS;
            let at = (panel * STRIP_ROWS + row) * PANEL_COLUMNS + column % PANEL_COLUMNS;
            logits[at] = if column == 7 || column == 35 { 2.0 } else { 1.0 };
        }
        for level in Level::all() {
            let sums = sum_columns(level, &logits, 5, row, 40);
            assert_eq!((sums.highest.to_bits(), sums.column), (2.0_f32.to_bits(), 7));
            assert!((sums.weight - (2.0 + 38.0 * (-1.0_f64).exp())).abs() < 1e-5);
        }
    }
}
