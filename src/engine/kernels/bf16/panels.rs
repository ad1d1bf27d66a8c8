//! Weights rounded to bf16, the right operand of a product.

use std::ops::Range;

use rayon::prelude::*;

use super::super::{PANEL_COLUMNS, packing};
use super::rounding::{narrow, widen};

/// Pairs of a column that are packed before the next column's: their panel rows stay in L1.
const PAIRS: usize = 64;

/// Weights: `[panels][depth / 2, rounded up][PANEL_COLUMNS][2]` bf16, one column an output; an odd
/// depth ends in zeros.
#[derive(Debug, Default)]
pub struct Bf16Panels {
    columns: usize,
    depth: usize,
    values: Vec<u16>,
}

/// Stored values that do not fill the panels they are said to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{found} values for {columns} columns of depth {depth}, which take {expected}")]
pub struct ValueCountError {
    /// Columns asked for.
    pub columns: usize,
    /// Depth asked for.
    pub depth: usize,
    /// Values that this shape takes, padding included.
    pub expected: usize,
    /// Values given.
    pub found: usize,
}

impl Bf16Panels {
    /// A matrix of zeros.
    pub fn zeros(columns: usize, depth: usize) -> Self {
        Self { columns, depth, values: vec![0; value_count(columns, depth)] }
    }

    /// Panels of values as [`Self::values`] gave them.
    ///
    /// # Errors
    /// [`ValueCountError`] when there are more or fewer values than this shape takes.
    pub fn from_values(
        columns: usize,
        depth: usize,
        values: Vec<u16>,
    ) -> Result<Self, ValueCountError> {
        let (expected, found) = (value_count(columns, depth), values.len());
        if expected != found {
            return Err(ValueCountError { columns, depth, expected, found });
        }
        Ok(Self { columns, depth, values })
    }

    /// Rounds and writes `weights`, row-major `[columns, depth]` as model files have them, from
    /// column `first_column`.
    pub fn pack(&mut self, first_column: usize, weights: &[f32]) {
        let columns = first_column..first_column + weights.len() / self.depth;
        let Ok(()) = self.pack_from(&columns, packing::held(weights, self.depth));
    }

    /// Fills `columns` with what `read` appends for some of them, counted from the first, row-major
    /// `[columns, depth]`.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn pack_from<E: Send>(
        &mut self,
        columns: &Range<usize>,
        read: impl Fn(Range<usize>, &mut Vec<f32>) -> Result<(), E> + Sync,
    ) -> Result<(), E> {
        let depth = self.depth;
        assert!(columns.end <= self.columns, "{columns:?} packed into {}", self.columns);
        let panels = self.values.par_chunks_exact_mut(panel_len(depth));
        packing::fill(panels, columns, read, |panel, lanes, weights| {
            pack_lanes(panel, lanes, weights, depth);
        })
    }

    /// Copies one column: the weights of one output, or the embedding of one token.
    pub fn read_column(&self, column: usize, out: &mut [f32]) {
        let lane = column % PANEL_COLUMNS;
        let rows = self.panel(column / PANEL_COLUMNS).chunks_exact(2 * PANEL_COLUMNS);
        for (out, value) in out.iter_mut().zip(rows.flat_map(|row| &row[2 * lane..][..2])) {
            *out = widen(*value);
        }
    }

    /// Outputs.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Panels, the last one padded.
    pub fn panels(&self) -> usize {
        self.columns.div_ceil(PANEL_COLUMNS)
    }

    /// Inputs.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        size_of_val(self.values.as_slice()) as u64
    }

    /// All values as they are held, to be kept and given to [`Self::from_values`] later.
    pub fn values(&self) -> &[u16] {
        &self.values
    }

    /// One panel: `[depth / 2, rounded up][PANEL_COLUMNS][2]`.
    pub(super) fn panel(&self, index: usize) -> &[u16] {
        let size = panel_len(self.depth);
        &self.values[index * size..(index + 1) * size]
    }
}

fn panel_len(depth: usize) -> usize {
    depth.next_multiple_of(2) * PANEL_COLUMNS
}

fn value_count(columns: usize, depth: usize) -> usize {
    columns.div_ceil(PANEL_COLUMNS) * panel_len(depth)
}

/// Writes some columns of a panel, row-major `[lanes, depth]`.
fn pack_lanes(values: &mut [u16], lanes: Range<usize>, weights: &[f32], depth: usize) {
    for (piece, values) in values.chunks_mut(PAIRS * 2 * PANEL_COLUMNS).enumerate() {
        let run = piece * 2 * PAIRS..depth.min((piece + 1) * 2 * PAIRS);
        for (lane, weights) in lanes.clone().zip(weights.chunks_exact(depth)) {
            let rows = values.chunks_exact_mut(2 * PANEL_COLUMNS);
            let slots = rows.flat_map(|row| &mut row[2 * lane..][..2]);
            slots.zip(&weights[run.clone()]).for_each(|(slot, weight)| *slot = narrow(*weight));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed(columns: usize, depth: usize) -> (Bf16Panels, Vec<f32>) {
        let weights: Vec<f32> = (0..columns * depth).map(|i| (i as f32).sin()).collect();
        let mut panels = Bf16Panels::zeros(columns, depth);
        panels.pack(0, &weights);
        (panels, weights)
    }

    #[test]
    fn a_column_comes_back_rounded_wherever_it_was_packed() {
        for depth in [1, 3, 130, 257] {
            let (whole, weights) = packed(70, depth);
            let mut parts = Bf16Panels::zeros(70, depth);
            parts.pack(33, &weights[33 * depth..]);
            parts.pack(0, &weights[..33 * depth]);
            assert_eq!(whole.values(), parts.values());
            for (column, weights) in weights.chunks_exact(depth).enumerate() {
                let mut found = vec![9.0; depth];
                whole.read_column(column, &mut found);
                let expected: Vec<f32> = weights.iter().map(|w| widen(narrow(*w))).collect();
                assert_eq!(found, expected, "column {column} of depth {depth}");
            }
        }
    }

    #[test]
    fn kept_values_make_the_same_panels_and_others_are_refused() {
        let (panels, _) = packed(40, 5);
        let again = Bf16Panels::from_values(40, 5, panels.values().to_vec()).unwrap();
        assert_eq!(again.values(), panels.values());
        assert_eq!(again.bytes(), 2 * 3 * 32 * 2 * 2);
        let error = Bf16Panels::from_values(40, 7, panels.values().to_vec()).unwrap_err();
        assert_eq!((error.expected, error.found), (2 * 8 * 32, 2 * 6 * 32));
    }
}
