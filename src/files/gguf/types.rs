//! Tensor types of GGUF files and their dequantisation.
//!
//! Blocks are decoded by candle, a bounded number at a time; the float types are plain conversions.

use candle_core::Device;
use candle_core::quantized::GgmlDType;
use candle_core::quantized::ggml_file::qtensor_from_ggml;
use half::{bf16, f16};

/// Values dequantised at a time (candle's copies of them are the only temporary memory).
const CHUNK_VALUES: usize = 1 << 18;

/// Code in the file, name for messages, candle's type.
const SUPPORTED: [(u32, &str, GgmlDType); 13] = [
    (0, "F32", GgmlDType::F32),
    (1, "F16", GgmlDType::F16),
    (2, "Q4_0", GgmlDType::Q4_0),
    (3, "Q4_1", GgmlDType::Q4_1),
    (6, "Q5_0", GgmlDType::Q5_0),
    (7, "Q5_1", GgmlDType::Q5_1),
    (8, "Q8_0", GgmlDType::Q8_0),
    (10, "Q2_K", GgmlDType::Q2K),
    (11, "Q3_K", GgmlDType::Q3K),
    (12, "Q4_K", GgmlDType::Q4K),
    (13, "Q5_K", GgmlDType::Q5K),
    (14, "Q6_K", GgmlDType::Q6K),
    (30, "BF16", GgmlDType::BF16),
];

/// Names of ggml's other types, so that a refusal says more than a number.
const REFUSED: [(u32, &str); 14] = [
    (9, "Q8_1"),
    (15, "Q8_K"),
    (16, "IQ2_XXS"),
    (17, "IQ2_XS"),
    (18, "IQ3_XXS"),
    (19, "IQ1_S"),
    (20, "IQ4_NL"),
    (21, "IQ3_S"),
    (22, "IQ2_S"),
    (23, "IQ4_XS"),
    (29, "IQ1_M"),
    (34, "TQ1_0"),
    (35, "TQ2_0"),
    (39, "MXFP4"),
];

/// How a tensor's values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TensorType {
    name: &'static str,
    kind: GgmlDType,
}

impl TensorType {
    /// The type with this code, if it is supported.
    pub(super) fn from_code(code: u32) -> Option<Self> {
        let (_, name, kind) = SUPPORTED.iter().find(|(number, ..)| *number == code)?;
        Some(Self { name, kind: *kind })
    }

    /// Why a tensor of type `code` is refused.
    pub(super) fn refusal(tensor: &str, code: u32) -> String {
        let known = REFUSED.iter().find(|(number, _)| *number == code);
        let name = known.map_or_else(|| code.to_string(), |(_, name)| (*name).to_owned());
        let supported: Vec<_> = SUPPORTED.iter().map(|(_, name, _)| *name).collect();
        format!(
            "tensor {tensor} has the type {name}, which is not supported; supported are {}",
            supported.join(", ")
        )
    }

    /// Its name as llama.cpp spells it.
    pub(super) fn name(self) -> &'static str {
        self.name
    }

    /// Values per block.
    pub(super) fn block(self) -> usize {
        self.kind.block_size()
    }

    /// Bytes per block.
    pub(super) fn block_bytes(self) -> usize {
        self.kind.type_size()
    }

    /// Values of as many whole blocks as are dequantised at a time.
    pub(super) fn chunk_values(self) -> usize {
        CHUNK_VALUES / self.block() * self.block()
    }

    /// Bytes of the same.
    pub(super) fn chunk_bytes(self) -> usize {
        CHUNK_VALUES / self.block() * self.block_bytes()
    }

    /// Appends the values of whole blocks, at most [`TensorType::chunk_bytes`], to `values`.
    pub(super) fn dequantise(self, blocks: &[u8], values: &mut Vec<f32>) -> Result<(), String> {
        if self.kind == GgmlDType::F32 {
            values.extend(blocks.as_chunks().0.iter().map(|raw| f32::from_le_bytes(*raw)));
        } else if self.kind == GgmlDType::F16 {
            values.extend(halves(blocks).map(|raw| f16::from_bits(raw).to_f32()));
        } else if self.kind == GgmlDType::BF16 {
            values.extend(halves(blocks).map(|raw| bf16::from_bits(raw).to_f32()));
        } else {
            values.extend(self.decode(blocks).map_err(|error| error.to_string())?);
        }
        Ok(())
    }

    fn decode(self, chunk: &[u8]) -> candle_core::Result<Vec<f32>> {
        let count = chunk.len() / self.block_bytes() * self.block();
        let quantised = qtensor_from_ggml(self.kind, chunk, vec![count], &Device::Cpu)?;
        quantised.dequantize(&Device::Cpu)?.to_vec1()
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.as_chunks().0.iter().map(|raw| u16::from_le_bytes(*raw))
}
