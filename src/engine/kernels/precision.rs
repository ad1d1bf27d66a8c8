//! The number formats that products are computed in.

use std::fmt;

/// What weights and activations of the matrix products are rounded to; sums are always `f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Precision {
    /// 32-bit floats: the exact one, and the oracle of the others.
    F32,
    /// 16-bit floats with 8 bits of mantissa.
    Bf16,
    /// 8-bit integers: weights in blocks of 32 with a scale and a minimum each, activations in
    /// blocks of 32 with a scale.
    Int8,
}

impl Precision {
    /// All of them, the most exact first.
    pub const ALL: [Self; 3] = [Self::F32, Self::Bf16, Self::Int8];

    /// Bits that a weight takes, its share of scales included.
    pub fn bits_per_weight(self) -> u64 {
        match self {
            Self::F32 => 32,
            Self::Bf16 => 16,
            Self::Int8 => 10,
        }
    }

    /// Its name in flags and in `/health`.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
            Self::Int8 => "int8",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
