//! Weights in 8 bits, the right operand: blocks of 32 with a scale and a minimum.
//!
//! A block is cut into as many steps as its values ask for: model files hold weights that lie on a
//! grid of 16 or 32 levels (Q4, Q5), and a block on such a grid is kept without error.

#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use rayon::prelude::*;

use super::super::portable::{Isa, Job};
use super::super::{Level, PANEL_COLUMNS};
use super::BLOCK;
use super::lines::Lines;

/// Values that are multiplied by one dot instruction of a lane.
const WORD: usize = 4;
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
const STEPS: [u8; 12] = [255, 252, 248, 240, 254, 253, 250, 247, 243, 242, 234, 232];
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
        let depth = self.depth;
        let end = first + weights.len() / depth;
        assert!(end <= self.columns, "{end} columns packed into {}", self.columns);
        let level = Level::detect();
        let panels = self.lines.bytes_mut().par_chunks_exact_mut(panel_bytes(depth)).enumerate();
        panels.for_each(|(panel, bytes)| {
            let base = panel * PANEL_COLUMNS;
            for column in first.max(base)..end.min(base + PANEL_COLUMNS) {
                let weights = &weights[(column - first) * depth..][..depth];
                level.run(PackJob { weights, lane: column - base, panel: bytes });
            }
        });
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
        for (block, weights) in blocks.iter_mut().zip(self.weights.chunks(BLOCK)) {
            // What pads the depth is multiplied by zeros: a copy does not widen the block's range.
            let mut values = [weights[0]; BLOCK];
            values[..weights.len()].copy_from_slice(weights);
            let (scale, min, quantised) = quantise(&values);
            let at = VALUES + self.lane * size_of::<f32>();
            block[at..at + size_of::<f32>()].copy_from_slice(&scale.to_le_bytes());
            let at = at + FACTORS;
            block[at..at + size_of::<f32>()].copy_from_slice(&min.to_le_bytes());
            for (word, four) in quantised.as_chunks::<WORD>().0.iter().enumerate() {
                block[place(word * WORD, self.lane)..][..WORD].copy_from_slice(four);
            }
        }
    }
}

/// Scale, minimum and steps of a block's values. No operation is fused, so all levels agree.
///
/// A block whose scale would not be a normal number counts as constant.
#[inline(always)]
fn quantise(values: &[f32; BLOCK]) -> (f32, f32, [u8; BLOCK]) {
    // Halves, as the whole range of finite values may not be finite.
    let halves = values.map(|value| 0.5 * value);
    let (low, high) = ends(&halves);
    let range = high - low;
    let min = 2.0 * low;
    if values.iter().map(|value| u32::from(!value.is_finite())).sum::<u32>() > 0 {
        return (f32::NAN, f32::NAN, [0; BLOCK]);
    }
    if range < 256.0 * f32::MIN_POSITIVE {
        return (0.0, values[0], [0; BLOCK]);
    }
    let offsets = halves.map(|half| half - low);
    let unit = 1.0 / range;
    let fits = |steps: &u8| on_grid(&offsets, f32::from(*steps) * unit);
    let steps = f32::from(STEPS.into_iter().find(fits).unwrap_or(STEPS[0]));
    let inverse = steps / range;
    let quantised = offsets.map(|offset| (offset * inverse + ROUNDER).to_bits().to_le_bytes()[0]);
    (2.0 * (range / steps), min, quantised)
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
    offsets.as_chunks::<{ BLOCK / 2 }>().0.iter().all(|offsets| {
        let off = offsets.map(|offset| {
            let steps = offset * inverse;
            let distance = (steps - ((steps + ROUNDER) - ROUNDER)).abs();
            u32::from(distance > GRID_TOLERANCE)
        });
        off.iter().sum::<u32>() == 0
    })
}
