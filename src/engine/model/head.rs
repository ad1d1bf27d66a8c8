//! The output head: label log-probabilities of the rows' last states over the whole vocabulary.
//!
//! The vocabulary is walked in fixed blocks of columns. Threads may take blocks in any order; what
//! they found is added up in `f64` in ascending order, so the sum is the same at any thread count
//! (ARCHITECTURE D6 rule 4).

use std::ops::Range;

use actors::{EngineError, Row, RowOutcome};
use rayon::prelude::*;

use super::norm::Norm;
use crate::engine::kernels::{
    self, ColumnSums, Level, Operand, PANEL_COLUMNS, Precision, Run, STRIP_ROWS, Weights,
};
use crate::engine::narrow;
use crate::engine::segment::CpuSegment;

/// Panels of one block of columns.
const BLOCK_PANELS: usize = 32;

/// The final norm and the output matrix.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) norm: Norm,
    /// One column a token of the vocabulary.
    pub(super) weights: Weights,
    /// Whether only label rows of the matrix are read, but for rows that want the label mass: no
    /// log-sum-exp, no label mass.
    pub(super) labels_only: bool,
}

/// Where a label's logit is.
#[derive(Debug, Clone, Copy)]
struct Place {
    row: usize,
    /// Its number among the row's labels.
    label: usize,
    token: usize,
}

/// One label's logit.
#[derive(Debug, Clone, Copy)]
struct LabelLogit {
    row: usize,
    label: usize,
    logit: f32,
}

/// What is kept of one block of the vocabulary.
#[derive(Debug)]
struct Block {
    /// `[rows]`, or empty where only labels are read.
    sums: Vec<ColumnSums>,
    labels: Vec<LabelLogit>,
}

/// What one row's logits are measured against.
#[derive(Debug)]
pub(in crate::engine) struct Scale {
    /// Log of the sum of exponentials over the vocabulary.
    pub(in crate::engine) log_sum: f64,
    /// The most probable token, the lowest of equals.
    pub(in crate::engine) best: usize,
}

impl Head {
    /// Reads all rows. `states` is `[rows, hidden]` and is normed in place.
    pub(super) fn read(
        &self,
        level: Level,
        precision: Precision,
        rows: &[Row<CpuSegment>],
        states: &mut [f32],
    ) -> Vec<Result<RowOutcome, EngineError>> {
        if rows.is_empty() {
            return Vec::new();
        }
        let hidden = self.weights.depth();
        states.par_chunks_exact_mut(hidden).for_each(|state| self.norm.apply(level, state));
        let mut left = Operand::new(precision);
        left.fill(level, (rows.len(), hidden), |first, out| {
            out.copy_from_slice(&states[first * hidden..][..out.len()]);
        });
        let blocks = self.blocks(level, rows, &left);
        let mut labels: Vec<Vec<f32>> =
            rows.iter().map(|row| vec![f32::NAN; row.labels.len()]).collect();
        for found in blocks.iter().flat_map(|block| &block.labels) {
            labels[found.row][found.label] = found.logit;
        }
        let scale = |row: usize| {
            let is_whole = !self.labels_only || rows[row].want_mass;
            is_whole.then(|| Scale::new(blocks.iter().map(|block| block.sums[row])))
        };
        let parts = rows.iter().zip(&labels).zip(states.chunks_exact(hidden)).enumerate();
        parts
            .map(|(at, ((row, logits), state))| read_row(row, logits, scale(at).as_ref(), state))
            .collect()
    }

    /// Reads the blocks of the vocabulary, or only those panels of them that have a label.
    fn blocks(&self, level: Level, rows: &[Row<CpuSegment>], left: &Operand) -> Vec<Block> {
        let mut places: Vec<Place> = rows.iter().enumerate().flat_map(places_of).collect();
        places.sort_unstable_by_key(|place| place.token);
        let of = |panels: &Range<usize>| {
            let column = |panel| panel * PANEL_COLUMNS;
            let first = places.partition_point(|place| place.token < column(panels.start));
            let last = places.partition_point(|place| place.token < column(panels.end));
            &places[first..last]
        };
        let panels = self.weights.panels();
        let labels_only = self.labels_only && !rows.iter().any(|row| row.want_mass);
        let size = if labels_only { 1 } else { BLOCK_PANELS };
        let blocks = (0..panels.div_ceil(size)).into_par_iter().with_max_len(1);
        let blocks = blocks.map(|block| block * size..panels.min((block + 1) * size));
        if labels_only {
            let used = blocks.filter(|panels| !of(panels).is_empty());
            return used
                .map(|panels| self.labels(level, left, panels.clone(), of(&panels)))
                .collect();
        }
        blocks.map(|panels| self.block(level, left, panels.clone(), of(&panels))).collect()
    }

    /// Sums and labels of a block.
    fn block(&self, level: Level, left: &Operand, panels: Range<usize>, of: &[Place]) -> Block {
        let columns = self.weights.columns() - panels.start * PANEL_COLUMNS;
        let columns = columns.min(panels.len() * PANEL_COLUMNS);
        let logits = self.logits(level, left, panels.clone());
        let sum = |row| kernels::sum_columns(level, &logits, left.rows(), row, columns);
        let labels = find(&logits, left.rows(), panels.start, of);
        Block { sums: (0..left.rows()).map(sum).collect(), labels }
    }

    /// Labels of a run of panels, without sums.
    fn labels(&self, level: Level, left: &Operand, panels: Range<usize>, of: &[Place]) -> Block {
        let logits = self.logits(level, left, panels.clone());
        Block { sums: Vec::new(), labels: find(&logits, left.rows(), panels.start, of) }
    }

    /// Logits of a run of panels: `[panels][rows, padded to strips][PANEL_COLUMNS]`.
    fn logits(&self, level: Level, left: &Operand, panels: Range<usize>) -> Vec<f32> {
        let size = left.rows().next_multiple_of(STRIP_ROWS) * PANEL_COLUMNS;
        let mut logits = vec![0.0; panels.len() * size];
        let run = Run { first: panels.start, bias: None, out: &mut logits };
        kernels::multiply_run(level, left, &self.weights, run);
        logits
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

fn places_of((row, read): (usize, &Row<CpuSegment>)) -> impl Iterator<Item = Place> {
    let labels = read.labels.iter().enumerate();
    labels.map(move |(label, id)| Place { row, label, token: *id as usize })
}

/// Takes the logits at `places` out of those of the panels from `first`.
fn find(logits: &[f32], rows: usize, first: usize, places: &[Place]) -> Vec<LabelLogit> {
    let rows_padded = rows.next_multiple_of(STRIP_ROWS);
    let logit = |place: &Place| {
        let (panel, lane) = (place.token / PANEL_COLUMNS - first, place.token % PANEL_COLUMNS);
        let logit = logits[(panel * rows_padded + place.row) * PANEL_COLUMNS + lane];
        LabelLogit { row: place.row, label: place.label, logit }
    };
    places.iter().map(logit).collect()
}

/// Label logits to an outcome. Without a scale the labels are measured against each other.
pub(in crate::engine) fn read_row<S>(
    row: &Row<S>,
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
