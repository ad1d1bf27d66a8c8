//! The output head: label log-probabilities of the rows' last states over the whole vocabulary.
//!
//! The vocabulary is walked in fixed blocks of columns. Threads may take blocks in any order; what
//! they found is added up in `f64` in ascending order, so the sum is the same at any thread count
//! (ARCHITECTURE D6 rule 4).

use actors::{EngineError, Row, RowOutcome};
use rayon::prelude::*;

use super::norm::Norm;
use crate::engine::kernels::{self, ColumnSums, Level, PANEL_COLUMNS, Panels, STRIP_ROWS, Strips};
use crate::engine::narrow;
use crate::engine::segment::CpuSegment;

/// Panels of one block of columns.
const BLOCK_PANELS: usize = 32;

/// The final norm and the output matrix.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) norm: Norm,
    /// One column a token of the vocabulary.
    pub(super) weights: Panels,
    /// Whether only label rows of the matrix are read: no log-sum-exp, no label mass.
    pub(super) labels_only: bool,
}

/// What one row's logits are measured against.
struct Scale {
    /// Log of the sum of exponentials over the vocabulary.
    log_sum: f64,
    /// The most probable token, the lowest of equals.
    best: usize,
}

impl Head {
    /// Copies the embedding of a token (where embedding and head are one matrix).
    pub(super) fn read_embedding(&self, token: usize, out: &mut [f32]) {
        self.weights.read_column(token, out);
    }

    /// Reads all rows. `states` is `[rows, hidden]` and is normed in place.
    pub(super) fn read(
        &self,
        level: Level,
        rows: &[Row<CpuSegment>],
        states: &mut [f32],
    ) -> Vec<Result<RowOutcome, EngineError>> {
        if rows.is_empty() {
            return Vec::new();
        }
        let hidden = self.weights.depth();
        states.par_chunks_exact_mut(hidden).for_each(|state| self.norm.apply(level, state));
        let mut left = Strips::default();
        left.pack(states, hidden);
        let labels = self.label_logits(level, rows, &left);
        let scales: Vec<Option<Scale>> = if self.labels_only {
            rows.iter().map(|_| None).collect()
        } else {
            self.scales(level, &left).into_iter().map(Some).collect()
        };
        let parts = rows.iter().zip(labels).zip(scales).zip(states.chunks_exact(hidden));
        parts
            .map(|(((row, logits), scale), state)| read_row(row, &logits, scale.as_ref(), state))
            .collect()
    }

    /// Logits of each row's labels.
    fn label_logits(&self, level: Level, rows: &[Row<CpuSegment>], left: &Strips) -> Vec<Vec<f32>> {
        let mut panels: Vec<usize> =
            rows.iter().flat_map(|row| row.labels.iter()).map(|id| panel_of(*id)).collect();
        panels.sort_unstable();
        panels.dedup();
        let products: Vec<Vec<f32>> =
            panels.par_iter().map(|panel| self.logits(level, left, *panel..panel + 1)).collect();
        let logit = |row: usize, id: u32| {
            let product = panels.binary_search(&panel_of(id)).map(|found| &products[found]);
            product.map_or(f32::NAN, |p| p[row * PANEL_COLUMNS + id as usize % PANEL_COLUMNS])
        };
        let rows = rows.iter().enumerate();
        rows.map(|(at, row)| row.labels.iter().map(|id| logit(at, *id)).collect()).collect()
    }

    /// Logits of a run of panels: `[panels][rows, padded to strips][PANEL_COLUMNS]`.
    fn logits(&self, level: Level, left: &Strips, panels: std::ops::Range<usize>) -> Vec<f32> {
        let size = left.rows().next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS;
        let mut logits = vec![0.0; panels.len() * size];
        for (panel, out) in panels.zip(logits.chunks_exact_mut(size)) {
            kernels::multiply_panel(level, left, &self.weights, panel, out);
        }
        logits
    }

    /// Log-sum-exp and argmax over the vocabulary, for each row.
    fn scales(&self, level: Level, left: &Strips) -> Vec<Scale> {
        let blocks = self.weights.panels().div_ceil(BLOCK_PANELS);
        let sums: Vec<Vec<ColumnSums>> = (0..blocks)
            .into_par_iter()
            .with_max_len(1)
            .map(|block| self.block_sums(level, left, block))
            .collect();
        let scale = |row| Scale::new(sums.iter().map(|block| block[row]));
        (0..left.rows()).map(scale).collect()
    }

    fn block_sums(&self, level: Level, left: &Strips, block: usize) -> Vec<ColumnSums> {
        let panels = block * BLOCK_PANELS..self.weights.panels().min((block + 1) * BLOCK_PANELS);
        let columns = self.weights.columns() - panels.start * PANEL_COLUMNS;
        let columns = columns.min(panels.len() * PANEL_COLUMNS);
        let logits = self.logits(level, left, panels);
        let sum = |row| kernels::sum_columns(level, &logits, left.rows(), row, columns);
        (0..left.rows()).map(sum).collect()
    }
}

impl Scale {
    /// Joins the sums of all blocks, given in ascending order.
    fn new(blocks: impl Iterator<Item = ColumnSums> + Clone) -> Self {
        let highest =
            blocks.clone().map(|block| f64::from(block.highest)).fold(f64::NEG_INFINITY, f64::max);
        let mut weight = 0.0;
        let mut best = None;
        for (index, block) in blocks.enumerate() {
            let block_highest = f64::from(block.highest);
            weight += block.weight * (block_highest - highest).exp();
            if best.is_none() && block_highest >= highest {
                best = Some(index * BLOCK_PANELS * PANEL_COLUMNS + block.column);
            }
        }
        Self { log_sum: highest + f64::ln(weight), best: best.unwrap_or(0) }
    }
}

fn panel_of(id: u32) -> usize {
    id as usize / PANEL_COLUMNS
}

/// Label logits to an outcome. Without a scale the labels are measured against each other.
fn read_row(
    row: &Row<CpuSegment>,
    logits: &[f32],
    scale: Option<&Scale>,
    state: &[f32],
) -> Result<RowOutcome, EngineError> {
    let labels_sum = log_sum_exp(logits);
    let log_sum = scale.map_or(labels_sum, |scale| scale.log_sum);
    let finite = |logit: &f32| logit.is_finite();
    if !(logits.iter().all(finite) && state.iter().all(finite)) {
        return Err(EngineError::NonFinite);
    }
    if !log_sum.is_finite() && !logits.is_empty() {
        return Err(EngineError::NonFinite);
    }
    Ok(RowOutcome {
        logprobs: logits.iter().map(|logit| narrow(f64::from(*logit) - log_sum)).collect(),
        log_mass: scale.map(|scale| narrow(labels_sum - scale.log_sum)),
        greedy_is_label: scale
            .is_some_and(|scale| row.labels.iter().any(|id| *id as usize == scale.best)),
        hidden: row.want_hidden.then(|| state.to_vec()),
    })
}

/// Log of the sum of exponentials, in `f64`, in the order given.
fn log_sum_exp(logits: &[f32]) -> f64 {
    let highest = logits.iter().copied().map(f64::from).fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = logits.iter().map(|logit| (f64::from(*logit) - highest).exp()).sum();
    highest + sum.ln()
}
