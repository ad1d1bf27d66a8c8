//! Arithmetic of the CPU engine: packed matrices, products, attention blocks, activations.
//!
//! Everything here is written once in plain Rust and compiled for several instruction sets
//! ([`Level`]); `portable.rs` alone chooses between them. Unsafe are it and the files of intrinsics
//! (`int8/vnni.rs`), which do what a plain form beside them does. What the kernels promise
//! (ARCHITECTURE D6): an element of a result depends on its own row and column only. It is summed in
//! one fixed order, whatever tile, row or thread computes it.

mod activate;
mod attend;
pub mod bf16;
mod exponential;
pub mod int8;
mod matrix;
mod normalize;
mod operand;
mod packing;
mod portable;
mod precision;
mod product;
#[cfg(test)]
mod sample;
mod vocabulary;

pub use attend::{Block, QueryRows, attend};
pub use matrix::{Product, write_lane};
pub use normalize::{inverse_rms, normalize};
pub use operand::{Operand, Weights};
pub use portable::Level;
pub use precision::Precision;
pub use product::{Run, multiply, multiply_gated, multiply_run};
pub use vocabulary::{ColumnSums, sum_columns};

/// Rows of one strip of packed activations; the height of the widest register tile.
pub const STRIP_ROWS: usize = 12;

/// Columns of one panel of packed weights; the width of the widest register tile.
pub const PANEL_COLUMNS: usize = 32;

/// Keys of one attention block, as many as a key/value page has positions.
pub const BLOCK_KEYS: usize = actors::PAGE_TOKENS as usize;
