//! The three layouts of a product: packed activations, packed weights, and what comes out.
//!
//! All are padded with zeros to whole tiles, so that a tail is the same arithmetic on more lanes
//! (ARCHITECTURE D6 rule 1) and no kernel has a second loop for what is left over.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::ops::Range;

use rayon::prelude::*;

use super::{PANEL_COLUMNS, STRIP_ROWS, packing};

/// Activations, the left operand: `[strips][depth][STRIP_ROWS]`.
#[derive(Debug, Default)]
pub struct Strips {
    rows: usize,
    depth: usize,
    values: Vec<f32>,
}

impl Strips {
    /// Takes this shape, reusing memory; what the strips hold is then undefined.
    pub(super) fn reshape(&mut self, rows: usize, depth: usize) {
        self.rows = rows;
        self.depth = depth;
        self.values.resize(rows.div_ceil(STRIP_ROWS) * STRIP_ROWS * depth, 0.0);
    }

    /// Fills one strip from row-major rows, at most [`STRIP_ROWS`] of them; missing ones are zeros.
    pub(super) fn fill(rows: &[f32], depth: usize, strip: &mut [f32]) {
        if rows.len() < STRIP_ROWS * depth {
            strip.fill(0.0);
        }
        for (lane, row) in rows.chunks_exact(depth).enumerate() {
            write_lane(strip, lane, row.iter().copied());
        }
    }

    /// Rows that mean something.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Length of a row.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// One strip: `[depth][STRIP_ROWS]`.
    pub(super) fn strip(&self, index: usize) -> &[f32] {
        let size = self.depth * STRIP_ROWS;
        &self.values[index * size..(index + 1) * size]
    }

    /// All strips in parallel, each with the number of its first row.
    pub(super) fn par_strips(
        &mut self,
    ) -> impl IndexedParallelIterator<Item = (usize, &mut [f32])> {
        let strips = self.values.par_chunks_exact_mut(self.depth * STRIP_ROWS);
        strips.enumerate().map(|(index, strip)| (index * STRIP_ROWS, strip))
    }
}

/// Writes one row of a strip, `[depth][STRIP_ROWS]`.
#[inline(always)]
pub fn write_lane(strip: &mut [f32], lane: usize, values: impl Iterator<Item = f32>) {
    for (column, value) in strip.chunks_exact_mut(STRIP_ROWS).zip(values) {
        column[lane] = value;
    }
}

/// Weights, the right operand: `[panels][depth][PANEL_COLUMNS]`, one column an output.
#[derive(Debug, Default)]
pub struct Panels {
    columns: usize,
    depth: usize,
    values: Vec<f32>,
}

impl Panels {
    /// A matrix of zeros.
    pub fn zeros(columns: usize, depth: usize) -> Self {
        let values = vec![0.0; columns.next_multiple_of(PANEL_COLUMNS) * depth];
        Self { columns, depth, values }
    }

    /// A matrix from the numbers that [`Self::values`] gave.
    ///
    /// # Errors
    /// Says how many numbers the shape takes.
    pub fn from_values(columns: usize, depth: usize, values: Vec<f32>) -> Result<Self, String> {
        let expected = columns.next_multiple_of(PANEL_COLUMNS).saturating_mul(depth);
        if values.len() != expected {
            return Err(format!("{} numbers, {expected} are needed", values.len()));
        }
        Ok(Self { columns, depth, values })
    }

    /// All numbers, padding included.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Writes `weights`, row-major `[columns, depth]` as model files have them, from column `first`.
    pub fn pack(&mut self, first: usize, weights: &[f32]) {
        let columns = first..first + weights.len() / self.depth;
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
        let panels = self.values.par_chunks_exact_mut(depth * PANEL_COLUMNS);
        packing::fill(panels, columns, read, |panel, lanes, weights| {
            for (k, row) in panel.chunks_exact_mut(PANEL_COLUMNS).enumerate() {
                let weights = weights[k..].iter().step_by(depth);
                row[lanes.clone()].iter_mut().zip(weights).for_each(|(slot, w)| *slot = *w);
            }
        })
    }

    /// Copies one column: the weights of one output, or the embedding of one token.
    pub fn read_column(&self, column: usize, out: &mut [f32]) {
        let panel = self.panel(column / PANEL_COLUMNS);
        let lanes = panel.chunks_exact(PANEL_COLUMNS).map(|row| row[column % PANEL_COLUMNS]);
        for (out, value) in out.iter_mut().zip(lanes) {
            *out = value;
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

    /// One panel: `[depth][PANEL_COLUMNS]`.
    pub(super) fn panel(&self, index: usize) -> &[f32] {
        let size = self.depth * PANEL_COLUMNS;
        &self.values[index * size..(index + 1) * size]
    }
}

/// A product: `[panels][rows, padded to strips][PANEL_COLUMNS]`.
#[derive(Debug, Default)]
pub struct Product {
    rows_padded: usize,
    values: Vec<f32>,
}

impl Product {
    /// Takes the shape of `rows` rows and `panels` panels, reusing memory; values are undefined.
    pub(super) fn reshape(&mut self, rows: usize, panels: usize) {
        self.rows_padded = rows.next_multiple_of(STRIP_ROWS);
        self.values.resize(self.rows_padded * panels * PANEL_COLUMNS, 0.0);
    }

    /// One row of one panel.
    pub fn lanes(&self, panel: usize, row: usize) -> &[f32] {
        &self.values[(panel * self.rows_padded + row) * PANEL_COLUMNS..][..PANEL_COLUMNS]
    }

    /// Copies columns `first..first + out.len()` of `row`.
    pub fn read_row(&self, row: usize, first: usize, out: &mut [f32]) {
        let mut column = first;
        let mut rest = out;
        while !rest.is_empty() {
            let lane = column % PANEL_COLUMNS;
            let count = rest.len().min(PANEL_COLUMNS - lane);
            let (part, tail) = rest.split_at_mut(count);
            part.copy_from_slice(&self.lanes(column / PANEL_COLUMNS, row)[lane..lane + count]);
            column += count;
            rest = tail;
        }
    }

    /// All panels in parallel, in runs of so many: `[panels][rows, padded][PANEL_COLUMNS]` each.
    pub(super) fn par_runs(
        &mut self,
        panels: usize,
    ) -> impl IndexedParallelIterator<Item = &mut [f32]> {
        self.values.par_chunks_mut(panels * self.rows_padded * PANEL_COLUMNS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_comes_back_as_it_was_packed() {
        let weights: Vec<f32> = (0..35_u8 * 3).map(f32::from).collect();
        let mut panels = Panels::zeros(40, 3);
        panels.pack(5, &weights);
        let mut column = [0.0; 3];
        panels.read_column(5 + 34, &mut column);
        assert_eq!(column.map(f32::to_bits), [102.0_f32, 103.0, 104.0].map(f32::to_bits));
        panels.read_column(4, &mut column);
        assert_eq!(column.map(f32::to_bits), [0; 3]);
    }
}
