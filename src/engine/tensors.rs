//! The decoder on candle tensors: the `cuda` engine, which tests run on the CPU device too.
//!
//! It keeps shared prefixes in segments on the device and takes the tokens of all chunks and rows
//! of a step through each layer together, as the `cpu` engine does. Which kernel a product takes
//! depends on its number of rows here, so the numbers of a read drift a little with its company:
//! what ARCHITECTURE D6 promises of the `cpu` engine is not promised of this one.

mod attention;
mod blocks;
mod decoder;
mod device;
mod head;
mod load;
mod masks;
mod plan;
mod prefix;
mod segment;

use actors::{Caps, Completion, Engine, Step};
use candle_core::DType;

use super::kernels::Precision;
use super::thread::EngineThread;
use super::{EngineOptions, LoadError, Memory, caps, check_size};
use crate::files::{DecoderConfig, TensorSource};
use decoder::TensorDecoder;
pub use device::{DeviceFacts, TensorDevice};
pub use segment::TensorSegment;

/// The decoder on candle tensors, on a thread of its own.
#[derive(Debug)]
pub struct TensorEngine {
    caps: Caps,
    memory: Memory,
    device: TensorDevice,
    thread: EngineThread<TensorSegment>,
}

impl TensorEngine {
    /// Brings the weights to the device one tensor at a time, then starts the engine's thread.
    ///
    /// Of `options`, `threads`, `packed` and `level` mean nothing here. `progress` is told how many
    /// tensors are done, of how many.
    ///
    /// # Errors
    /// [`LoadError`] naming the tensor or setting at fault, or what the device refuses.
    pub fn load(
        config: &DecoderConfig,
        tensors: &dyn TensorSource,
        device: &TensorDevice,
        options: &EngineOptions,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Self, LoadError> {
        let stored = stored_as(options.precision)?;
        device.allow_tensor_cores(stored);
        let parts = (config, tensors, device);
        let decoder = TensorDecoder::load(parts, stored, options.readout_rows_only, progress)?;
        let kv_bytes_per_token = decoder.shape().bytes_per_token() as u64;
        let caps = caps(device.engine_name(), config.context, options, kv_bytes_per_token);
        let memory = Memory {
            weights_bytes: decoder.weights_bytes(),
            scratch_bytes: decoder.scratch_bytes(options.step_tokens_usual as usize),
            kv_bytes_per_token,
        };
        let limits = caps.clone();
        let thread = EngineThread::spawn(move |step| {
            check_size(step, &limits)?;
            decoder.run(step, limits.context_tokens as usize)
        });
        let thread = thread.map_err(|error| LoadError::Threads(error.to_string()))?;
        Ok(Self { caps, memory, device: device.clone(), thread })
    }

    /// Bytes that it takes on the device.
    pub fn memory(&self) -> Memory {
        self.memory
    }

    /// The device that it runs on.
    pub fn device(&self) -> &TensorDevice {
        &self.device
    }
}

impl Engine for TensorEngine {
    type Segment = TensorSegment;

    fn caps(&self) -> Caps {
        self.caps.clone()
    }

    fn submit(&self, step: Step<TensorSegment>, done: Completion<TensorSegment>) {
        self.thread.submit(step, done);
    }
}

/// What weights, keys and values are held as under a precision.
fn stored_as(precision: Precision) -> Result<DType, LoadError> {
    match precision {
        Precision::F32 => Ok(DType::F32),
        Precision::Bf16 => Ok(DType::BF16),
        Precision::Int8 => Err(LoadError::Config(
            "the cuda engine computes in bf16 or f32, not in int8".to_owned(),
        )),
    }
}
