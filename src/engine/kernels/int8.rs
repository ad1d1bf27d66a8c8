//! Products in 8 bits: weights and activations in blocks of 32 along the depth, a scale per block.
//!
//! A weight is `scale * q + min` with `q` in 0..=255 and a (scale, min) per block and column; an
//! activation is `scale * q` with `q` in -127..=127 and a scale per block and row. Within a block the
//! products of the `q` are summed as integers, which is exact whatever computes it; so an element is
//! one chain of multiply-adds, one link a block, ascending in depth (ARCHITECTURE D6):
//!
//! `x = scale * sum(q * qa) + min * sum(qa);  out += scale_a * x`, the last add of each line fused.
//!
//! All levels that fuse multiply and add give the same bits.

mod generic;
mod lines;
mod panels;
mod strips;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod vnni;

pub use panels::{Int8Panels, Int8PartsError};
pub use strips::{Int8Strips, fill};

use super::Level;
use super::product::Run;

/// Values of one block, along the depth of a row or of a column.
pub const BLOCK: usize = 32;

/// Blocks walked before going to the next strip: a panel's share stays in the first-level cache.
const SHARE_BLOCKS: usize = 18;

/// The product of `left` and a run of panels. What it leaves in rows past the last is undefined.
///
/// Where a row of `left` holds a value that is not finite, no element of that row comes out finite.
/// Finite operands give no infinity short of the element's own magnitude, as long as weights are
/// below 8e34 (a block of 32 is summed with activations of up to 127).
pub fn multiply_run(level: Level, left: &Int8Strips, right: &Int8Panels, run: Run<'_>) {
    assert_eq!(left.depth(), right.depth(), "depths of a product differ");
    run.check(left.rows());
    #[cfg(target_arch = "x86_64")]
    if level.has_int8_dot() {
        return vnni::multiply(level, left, right, run);
    }
    level.run(generic::RunJob { left, right, run });
}
