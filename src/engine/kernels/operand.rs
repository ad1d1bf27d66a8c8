//! The two operands of a product, in whichever precision it is computed.

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use rayon::prelude::*;

use super::bf16::{self, Bf16Panels, Bf16Strips};
use super::int8::{self, Int8Panels, Int8Strips};
use super::matrix::{Panels, Strips};
use super::{Level, Precision, STRIP_ROWS};

/// Weights, the right operand: one column an output.
#[derive(Debug)]
pub enum Weights {
    /// As they are.
    F32(Panels),
    /// Rounded to bf16.
    Bf16(Bf16Panels),
    /// In blocks of 8-bit integers.
    Int8(Int8Panels),
}

impl Weights {
    /// A matrix of zeros.
    pub fn zeros(precision: Precision, columns: usize, depth: usize) -> Self {
        match precision {
            Precision::F32 => Self::F32(Panels::zeros(columns, depth)),
            Precision::Bf16 => Self::Bf16(Bf16Panels::zeros(columns, depth)),
            Precision::Int8 => Self::Int8(Int8Panels::zeros(columns, depth)),
        }
    }

    /// Writes `weights`, row-major `[columns, depth]` as model files have them, from column `first`.
    pub fn pack(&mut self, first: usize, weights: &[f32]) {
        match self {
            Self::F32(panels) => panels.pack(first, weights),
            Self::Bf16(panels) => panels.pack(first, weights),
            Self::Int8(panels) => panels.pack(first, weights),
        }
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
        match self {
            Self::F32(panels) => panels.pack_from(columns, read),
            Self::Bf16(panels) => panels.pack_from(columns, read),
            Self::Int8(panels) => panels.pack_from(columns, read),
        }
    }

    /// Copies one column: the weights of one output, or the embedding of one token.
    pub fn read_column(&self, column: usize, out: &mut [f32]) {
        match self {
            Self::F32(panels) => panels.read_column(column, out),
            Self::Bf16(panels) => panels.read_column(column, out),
            Self::Int8(panels) => panels.read_column(column, out),
        }
    }

    /// Outputs.
    pub fn columns(&self) -> usize {
        match self {
            Self::F32(panels) => panels.columns(),
            Self::Bf16(panels) => panels.columns(),
            Self::Int8(panels) => panels.columns(),
        }
    }

    /// Panels, the last one padded.
    pub fn panels(&self) -> usize {
        match self {
            Self::F32(panels) => panels.panels(),
            Self::Bf16(panels) => panels.panels(),
            Self::Int8(panels) => panels.panels(),
        }
    }

    /// Inputs.
    pub fn depth(&self) -> usize {
        match self {
            Self::F32(panels) => panels.depth(),
            Self::Bf16(panels) => panels.depth(),
            Self::Int8(panels) => panels.depth(),
        }
    }

    /// All packed numbers as little-endian bytes, to be kept on disk.
    pub fn to_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            Self::F32(panels) => {
                panels.values().iter().flat_map(|value| value.to_le_bytes()).collect()
            }
            Self::Bf16(panels) => {
                panels.values().iter().flat_map(|value| value.to_le_bytes()).collect()
            }
            Self::Int8(panels) => Cow::Borrowed(panels.as_parts().2),
        }
    }

    /// A matrix of `(columns, depth)` from the bytes that [`Self::to_bytes`] gave.
    ///
    /// # Errors
    /// Says by how much the bytes are too few or too many.
    pub fn from_bytes(
        precision: Precision,
        (columns, depth): (usize, usize),
        bytes: &[u8],
    ) -> Result<Self, String> {
        match precision {
            Precision::F32 => {
                let values = bytes.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b));
                Panels::from_values(columns, depth, values.collect()).map(Self::F32)
            }
            Precision::Bf16 => {
                let values = bytes.as_chunks::<2>().0.iter().map(|b| u16::from_le_bytes(*b));
                let panels = Bf16Panels::from_values(columns, depth, values.collect());
                panels.map(Self::Bf16).map_err(|error| error.to_string())
            }
            Precision::Int8 => {
                let panels = Int8Panels::from_parts(columns, depth, bytes);
                panels.map(Self::Int8).map_err(|error| error.to_string())
            }
        }
    }

    /// Bytes held.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::F32(panels) => panels.bytes(),
            Self::Bf16(panels) => panels.bytes(),
            Self::Int8(panels) => panels.bytes(),
        }
    }
}

/// Activations, the left operand: rows in strips of [`STRIP_ROWS`].
#[derive(Debug)]
pub enum Operand {
    /// As they are.
    F32(Strips),
    /// Rounded to bf16.
    Bf16(Bf16Strips),
    /// In blocks of 8-bit integers.
    Int8(Int8Strips),
}

thread_local! {
    /// Rows on their way into a strip.
    static ROWS: RefCell<Vec<f32>> = RefCell::default();
}

impl Operand {
    /// One without rows.
    pub fn new(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::F32(Strips::default()),
            Precision::Bf16 => Self::Bf16(Bf16Strips::default()),
            Precision::Int8 => Self::Int8(Int8Strips::default()),
        }
    }

    /// Takes the shape of `rows` rows of `depth` and fills them. `write` is given the number of a
    /// first row and room for that and the next, row-major: up to [`STRIP_ROWS`] of them.
    pub fn fill(
        &mut self,
        level: Level,
        (rows, depth): (usize, usize),
        write: impl Fn(usize, &mut [f32]) + Sync,
    ) {
        let written = |first: usize, pack: &mut dyn FnMut(&[f32])| {
            ROWS.with_borrow_mut(|buffer| {
                let size = (rows - first).min(STRIP_ROWS) * depth;
                buffer.resize(buffer.len().max(size), 0.0);
                write(first, &mut buffer[..size]);
                pack(&buffer[..size]);
            });
        };
        match self {
            Self::F32(strips) => {
                strips.reshape(rows, depth);
                strips.par_strips().for_each(|(first, strip)| {
                    written(first, &mut |rows| Strips::fill(rows, depth, strip));
                });
            }
            Self::Bf16(strips) => {
                strips.reshape(rows, depth);
                strips.par_strips().for_each(|(first, strip)| {
                    written(first, &mut |rows| bf16::fill(level, rows, depth, strip));
                });
            }
            Self::Int8(strips) => {
                strips.reshape(rows, depth);
                strips.par_strips().for_each(|(first, strip)| {
                    written(first, &mut |rows| int8::fill(level, rows, depth, strip));
                });
            }
        }
    }

    /// Rows that mean something.
    pub fn rows(&self) -> usize {
        match self {
            Self::F32(strips) => strips.rows(),
            Self::Bf16(strips) => strips.rows(),
            Self::Int8(strips) => strips.rows(),
        }
    }

    /// Length of a row.
    pub fn depth(&self) -> usize {
        match self {
            Self::F32(strips) => strips.depth(),
            Self::Bf16(strips) => strips.depth(),
            Self::Int8(strips) => strips.depth(),
        }
    }
}
