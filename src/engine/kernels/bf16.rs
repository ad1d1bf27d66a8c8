//! Products and attention on bf16 operands with f32 sums: half the bytes, twice the speed.
//!
//! Two values that follow each other in the summed direction make one word, the first in the low
//! half: that is what `vdpbf16ps` multiplies and adds in one lane. Levels without it widen the same
//! words to f32 and fuse multiply and add, in the instruction's order: the high value, then the low
//! one, each step rounded once. So all fusing levels give the same bits (ARCHITECTURE D6), except
//! where a number is subnormal (below 1.2e-38), which the instruction takes as zero.

mod attend;
mod dot;
mod page;
mod panels;
mod product;
mod rounding;
mod strip;
mod strips;
mod wide;

pub use attend::{Block16, QueryRows16, attend};
pub use page::{copy_slots, write_key, write_value};
pub use panels::{Bf16Panels, ValueCountError};
pub use product::multiply_run;
pub use rounding::{narrow, widen};
pub use strips::{Bf16Strips, fill};
