//! Weights in 8 bits, the right operand: blocks of 32 with a scale and a minimum.
//!
//! A block is cut into as many steps as its values ask for: model files hold weights that lie on a
//! grid of 16, 32 or 255 levels (Q4, Q5, Q8), and a block on such a grid is kept without error.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use std::ops::Range;

use rayon::prelude::*;

use super::super::packing;
use super::super::portable::{Isa, Job};
use super::super::{Level, PANEL_COLUMNS};
use super::BLOCK;
use super::lines::Lines;

/// Values that are multiplied by one dot instruction of a lane.
pub(super) const WORD: usize = 4;
/// Bytes of a panel's block: `[BLOCK / 4][PANEL_COLUMNS][4]` values, then scales, then minima.
pub(super) const BLOCK_BYTES: usize = VALUES + 2 * FACTORS;
/// Bytes of a block's values.
pub(super) const VALUES: usize = BLOCK * PANEL_COLUMNS;
/// Bytes of a block's scales, or minima: little-endian `f32`, `[PANEL_COLUMNS]`.
pub(super) const FACTORS: usize = PANEL_COLUMNS * size_of::<f32>();
/// 1.5 * 2^23: adding it leaves the nearest integer, ties to even, in a number's low bits.
pub(super) const ROUNDER: f32 = 12_582_912.0;
/// Steps that a block may be cut into, the usual number first. The others are the largest multiples
/// up to 255 of what lies between the lowest and the highest level in use on a grid of 32.
const STEPS: [f32; 12] =
    [255.0, 252.0, 248.0, 240.0, 254.0, 253.0, 250.0, 247.0, 243.0, 242.0, 234.0, 232.0];
/// Steps from zero to the largest magnitude in files of 8 bits, which have no minimum (`Q8_0`).
const SYMMETRIC_STEPS: f32 = 127.0;
/// How far off a whole number of steps a value may lie to count as being on the grid.
const GRID_TOLERANCE: f32 = 0.02;

/// Why stored bytes are not a matrix of the shape asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{columns} columns of depth {depth} take {expected} packed bytes, not {found}")]
pub struct Int8PartsError {
    columns: usize,
    depth: usize,
    expected: usize,
    found: usize,
}

/// Weights, `[panels][depth / 32, rounded up]` of blocks of 32 x [`PANEL_COLUMNS`]; one column an
/// output. Depth and columns are padded: with what multiplies zeros, and with zeros.
#[derive(Debug, Default)]
pub struct Int8Panels {
    columns: usize,
    depth: usize,
    lines: Lines,
}

impl Int8Panels {
    /// A matrix of zeros.
    pub fn zeros(columns: usize, depth: usize) -> Self {
        let size = columns.div_ceil(PANEL_COLUMNS) * panel_bytes(depth);
        Self { columns, depth, lines: Lines::zeros(size) }
    }

    /// A matrix from the bytes that [`Int8Panels::as_parts`] gave for it.
    ///
    /// # Errors
    /// When `bytes` is not as long as the shape asks.
    pub fn from_parts(columns: usize, depth: usize, bytes: &[u8]) -> Result<Self, Int8PartsError> {
        let panels = columns.div_ceil(PANEL_COLUMNS);
        let expected = panels.saturating_mul(panel_bytes(depth));
        let found = bytes.len();
        if found != expected {
            return Err(Int8PartsError { columns, depth, expected, found });
        }
        let mut panels = Self::zeros(columns, depth);
        panels.lines.bytes_mut().copy_from_slice(bytes);
        Ok(panels)
    }

    /// Columns, depth and the packed bytes, which are the same on every machine.
    pub fn as_parts(&self) -> (usize, usize, &[u8]) {
        (self.columns, self.depth, self.lines.bytes())
    }

    /// Quantises `weights`, row-major `[columns, depth]` as model files have them, from column
    /// `first`. Of a block with a value that is not finite, no value is.
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
        let (depth, level) = (self.depth, Level::detect());
        assert!(columns.end <= self.columns, "{columns:?} packed into {}", self.columns);
        let panels = self.lines.bytes_mut().par_chunks_exact_mut(panel_bytes(depth));
        packing::fill(panels, columns, read, |panel, lanes, weights| {
            for (lane, weights) in lanes.zip(weights.chunks_exact(depth)) {
                level.run(PackJob { weights, lane, panel });
            }
        })
    }

    /// Dequantises one column: the weights of one output, or the embedding of one token.
    pub fn read_column(&self, column: usize, out: &mut [f32]) {
        let lane = column % PANEL_COLUMNS;
        let (blocks, _) = self.panel(column / PANEL_COLUMNS).as_chunks::<BLOCK_BYTES>();
        for (block, out) in blocks.iter().zip(out.chunks_mut(BLOCK)) {
            let (scale, min) = factors(block, lane);
            for (k, out) in out.iter_mut().enumerate() {
                *out = scale * f32::from(block[place(k, lane)]) + min;
            }
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
        self.lines.bytes().len() as u64
    }

    /// One panel, in blocks of [`BLOCK_BYTES`].
    pub(super) fn panel(&self, index: usize) -> &[u8] {
        let size = panel_bytes(self.depth);
        &self.lines.bytes()[index * size..(index + 1) * size]
    }
}

fn panel_bytes(depth: usize) -> usize {
    depth.div_ceil(BLOCK).saturating_mul(BLOCK_BYTES)
}

/// Where the value at depth `k` of column `lane` lies in its block.
#[inline(always)]
fn place(k: usize, lane: usize) -> usize {
    (k / WORD * PANEL_COLUMNS + lane) * WORD + k % WORD
}

/// Scale and minimum of one column of a block.
#[inline(always)]
pub(super) fn factors(block: &[u8; BLOCK_BYTES], lane: usize) -> (f32, f32) {
    let read = |at: usize| {
        let at = at + lane * size_of::<f32>();
        f32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
    };
    (read(VALUES), read(VALUES + FACTORS))
}

/// Quantises one column into its lane of a panel.
struct PackJob<'a> {
    weights: &'a [f32],
    lane: usize,
    panel: &'a mut [u8],
}

impl Job for PackJob<'_> {
    #[inline(always)]
    fn run<I: Isa>(self) {
        let (blocks, _) = self.panel.as_chunks_mut::<BLOCK_BYTES>();
        let (whole, rest) = self.weights.as_chunks::<BLOCK>();
        for (block, values) in blocks.iter_mut().zip(whole) {
            write(block, self.lane, values);
        }
        if let (Some(first), Some(block)) = (rest.first(), blocks.last_mut()) {
            // What pads the depth is multiplied by zeros: a copy does not widen the block's range.
            let mut values = [*first; BLOCK];
            values[..rest.len()].copy_from_slice(rest);
            write(block, self.lane, &values);
        }
    }
}

/// Quantises a column's block into its lane.
#[inline(always)]
fn write(block: &mut [u8; BLOCK_BYTES], lane: usize, values: &[f32; BLOCK]) {
    let (scale, min, quantised) = quantise(values);
    let at = VALUES + lane * size_of::<f32>();
    block[at..at + size_of::<f32>()].copy_from_slice(&scale.to_le_bytes());
    let at = at + FACTORS;
    block[at..at + size_of::<f32>()].copy_from_slice(&min.to_le_bytes());
    for (word, four) in quantised.as_chunks::<WORD>().0.iter().enumerate() {
        block[place(word * WORD, lane)..][..WORD].copy_from_slice(four);
    }
}

/// Scale, minimum and steps of a block's values. No operation is fused, so all levels agree.
///
/// A block whose scale would not be a normal number counts as constant.
#[inline(always)]
fn quantise(values: &[f32; BLOCK]) -> (f32, f32, [u8; BLOCK]) {
    // Halves, as the whole range of finite values may not be finite.
    let (low, high) = ends(values);
    let (low, high) = (0.5 * low, 0.5 * high);
    let range = high - low;
    if !all_finite(values) {
        return (f32::NAN, f32::NAN, [0; BLOCK]);
    }
    if range < 256.0 * f32::MIN_POSITIVE {
        return (0.0, values[0], [0; BLOCK]);
    }
    let mut offsets = [0.0; BLOCK];
    for (offset, value) in offsets.iter_mut().zip(values) {
        *offset = 0.5 * value - low;
    }
    let steps = steps(&offsets, range, if high > -low { high } else { -low });
    let inverse = steps / range;
    let mut quantised = [0; BLOCK];
    for (quantised, offset) in quantised.iter_mut().zip(offsets) {
        *quantised = (offset * inverse + ROUNDER).to_bits().to_le_bytes()[0];
    }
    (2.0 * (range / steps), 2.0 * low, quantised)
}

#[inline(always)]
fn all_finite(values: &[f32; BLOCK]) -> bool {
    let mut others = 0;
    for value in values {
        others += u32::from(!value.is_finite());
    }
    others == 0
}

/// Into how many steps, at most 255, a block's range is cut: so that all values are on one, if that
/// can be had.
#[inline(always)]
fn steps(offsets: &[f32; BLOCK], range: f32, highest: f32) -> f32 {
    let unit = 1.0 / range;
    for steps in STEPS {
        if on_grid(offsets, steps * unit) {
            return steps;
        }
    }
    let inverse = SYMMETRIC_STEPS / highest;
    // A range below the largest magnitude would leave few steps.
    if range >= highest && on_grid(offsets, inverse) { range * inverse } else { STEPS[0] }
}

/// Lowest and highest value.
#[inline(always)]
fn ends(values: &[f32; BLOCK]) -> (f32, f32) {
    let (mut low, mut high) = (*values, *values);
    let mut width = BLOCK / 2;
    while width > 0 {
        for lane in 0..width {
            low[lane] = if low[lane + width] < low[lane] { low[lane + width] } else { low[lane] };
            high[lane] =
                if high[lane + width] > high[lane] { high[lane + width] } else { high[lane] };
        }
        width /= 2;
    }
    (low[0], high[0])
}

/// Whether all of `offsets * inverse` are close to whole numbers; most blocks fail in the first part.
#[inline(always)]
fn on_grid(offsets: &[f32; BLOCK], inverse: f32) -> bool {
    // Parts of one vector and no sum across it: that would take longer than all the rest.
    for offsets in offsets.as_chunks::<{ BLOCK / 4 }>().0 {
        let mut off = [0; BLOCK / 4];
        for (off, offset) in off.iter_mut().zip(offsets) {
            let steps = offset * inverse;
            let distance = (steps - ((steps + ROUNDER) - ROUNDER)).abs();
            *off = u32::from(distance > GRID_TOLERANCE);
        }
        if off != [0; BLOCK / 4] {
            return false;
        }
    }
    true
}
