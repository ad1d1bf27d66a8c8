//! The device that tensors live on: opening it, what it says of itself, and what its errors mean.

use actors::EngineError;
use candle_core::{DType, Device};

use crate::engine::LoadError;

/// Where the tensors of an engine live.
#[derive(Debug, Clone)]
pub struct TensorDevice {
    device: Device,
    scores_max: usize,
}

/// What a device says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Name of the model of device.
    pub name: String,
    /// All of its memory in bytes, where it says so.
    pub memory_bytes: Option<u64>,
}

/// Errors after which a CUDA context never works again.
const FATAL: [&str; 9] = [
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_ILLEGAL_INSTRUCTION",
    "CUDA_ERROR_LAUNCH_FAILED",
    "CUDA_ERROR_ECC_UNCORRECTABLE",
    "CUDA_ERROR_HARDWARE_STACK_ERROR",
    "CUDA_ERROR_DEVICE_UNAVAILABLE",
    "CUDA_ERROR_CONTEXT_IS_DESTROYED",
    "CUDA_ERROR_ASSERT",
];

/// Errors of an allocation.
const OUT_OF_MEMORY: [&str; 2] = ["CUDA_ERROR_OUT_OF_MEMORY", "CUBLAS_STATUS_ALLOC_FAILED"];

impl TensorDevice {
    /// Most scores of attention that a step holds at one place: 256 MiB, and up to three times that
    /// while they are joined and softened. One query against all its keys may have more.
    pub const SCORES_MAX: usize = 1 << 26;

    /// The CUDA device of this number.
    ///
    /// Its stream is the calling thread's own (CUDA's per-thread default stream), which spares the
    /// events that tracking between streams takes: so whoever hands tensors to another thread waits
    /// for the device first, see [`TensorDevice::finish`].
    ///
    /// # Errors
    /// [`LoadError::Device`] when there is no such device or this binary is built without CUDA.
    pub fn cuda(ordinal: usize) -> Result<Self, LoadError> {
        let device = Device::new_cuda(ordinal)
            .map_err(|error| LoadError::Device(format!("cuda:{ordinal}: {error}")))?;
        Ok(Self { device, scores_max: Self::SCORES_MAX })
    }

    /// The CPU: slow, for tests.
    pub fn cpu() -> Self {
        Self { device: Device::Cpu, scores_max: Self::SCORES_MAX }
    }

    /// The same device with another limit than [`TensorDevice::SCORES_MAX`]; at least 1.
    #[must_use]
    pub fn with_scores_max(self, scores_max: usize) -> Self {
        Self { scores_max: scores_max.max(1), ..self }
    }

    /// What it says of itself.
    pub fn facts(&self) -> DeviceFacts {
        match &self.device {
            Device::Cuda(device) => cuda::facts(device),
            Device::Cpu | Device::Metal(_) => {
                DeviceFacts { name: "cpu".to_owned(), memory_bytes: None }
            }
        }
    }

    /// Memory in bytes that nothing holds now, where the device says so.
    pub fn free_bytes(&self) -> Option<u64> {
        match &self.device {
            Device::Cuda(device) => cuda::free_bytes(device),
            Device::Cpu | Device::Metal(_) => None,
        }
    }

    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    pub(super) fn scores_max(&self) -> usize {
        self.scores_max
    }

    /// Name of an engine on it.
    pub(super) fn engine_name(&self) -> &'static str {
        if self.device.is_cuda() { "cuda" } else { "tensors" }
    }

    /// Waits until everything that this thread asked for is done, and tells what of it failed.
    pub(super) fn finish(&self) -> candle_core::Result<()> {
        self.device.synchronize()
    }

    /// Makes the device's context the calling thread's. Whoever frees tensors on a thread that never
    /// asked the device for anything needs that: they free nothing by themselves.
    pub(super) fn enter(&self) {
        if let Device::Cuda(device) = &self.device {
            cuda::enter(device);
        }
    }

    /// Lets products of `f32` round their operands to 10 bits of mantissa, as tensor cores do, where
    /// `stored` has fewer. Attention and the head then compute `bf16` exactly and sum in `f32`. The
    /// switch is the process's: one process has one model.
    pub(super) fn allow_tensor_cores(&self, stored: DType) {
        if self.device.is_cuda() {
            candle_core::cuda::set_gemm_reduced_precision_f32(stored == DType::BF16);
        }
    }
}

/// What an error of a step means to the scheduler.
pub(super) fn step_error(error: &candle_core::Error) -> EngineError {
    let message = error.to_string();
    let is_any = |names: &[&str]| names.iter().any(|name| message.contains(name));
    if is_any(&OUT_OF_MEMORY) {
        EngineError::OutOfMemory(first_line(&message))
    } else if is_any(&FATAL) {
        EngineError::Dead(first_line(&message))
    } else {
        EngineError::Forward(first_line(&message))
    }
}

/// What an error of loading means to the operator.
pub(super) fn load_error(error: &candle_core::Error) -> LoadError {
    LoadError::Device(first_line(&error.to_string()))
}

/// An error without the backtrace that candle may add to it.
fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().to_owned()
}

#[cfg(feature = "cuda")]
mod cuda {
    //! Questions to the CUDA driver.

    use candle_core::CudaDevice;

    use super::DeviceFacts;

    pub(super) fn facts(device: &CudaDevice) -> DeviceFacts {
        let stream = device.cuda_stream();
        let name = stream.context().name().unwrap_or_else(|error| error.to_string());
        let memory_bytes = stream.context().total_mem().ok().map(|bytes| bytes as u64);
        DeviceFacts { name, memory_bytes }
    }

    pub(super) fn enter(device: &CudaDevice) {
        if let Err(error) = device.cuda_stream().context().bind_to_thread() {
            tracing::error!("the CUDA context cannot be entered to free memory: {error}");
        }
    }

    pub(super) fn free_bytes(device: &CudaDevice) -> Option<u64> {
        let (free, _) = device.cuda_stream().context().mem_get_info().ok()?;
        Some(free as u64)
    }
}

#[cfg(not(feature = "cuda"))]
mod cuda {
    //! What a binary without CUDA says of devices that it cannot open.

    use candle_core::CudaDevice;

    use super::DeviceFacts;

    pub(super) fn facts(_: &CudaDevice) -> DeviceFacts {
        DeviceFacts { name: "cuda".to_owned(), memory_bytes: None }
    }

    pub(super) fn enter(_: &CudaDevice) {}

    pub(super) fn free_bytes(_: &CudaDevice) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use candle_core::Error;

    use super::*;

    fn told(message: &str) -> EngineError {
        step_error(&Error::Msg(message.to_owned()))
    }

    #[test]
    fn errors_of_the_device_are_told_apart() {
        let full = "DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")";
        assert_eq!(told(full), EngineError::OutOfMemory(full.to_owned()));
        let handles = "CublasError(CUBLAS_STATUS_ALLOC_FAILED)";
        assert_eq!(told(handles), EngineError::OutOfMemory(handles.to_owned()));
        let gone = "DriverError(CUDA_ERROR_ILLEGAL_ADDRESS, \"an illegal memory access\")";
        assert_eq!(told(gone), EngineError::Dead(gone.to_owned()));
        let other = "shape mismatch in matmul\n   0: a backtrace";
        assert_eq!(told(other), EngineError::Forward("shape mismatch in matmul".to_owned()));
    }
}
