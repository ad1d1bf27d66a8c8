//! Our tensor source as the back end of candle's variables.

use std::sync::Arc;

use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};

use crate::files::TensorSource;

/// Hands tensors to candle one by one as its models ask for them.
struct SourceBackend {
    tensors: Arc<dyn TensorSource>,
    /// Changes a tensor's values by its name, where candle's model fixes what the file leaves open.
    adjust: Adjust,
}

/// A change of a tensor's values by its name.
pub(super) type Adjust = Box<dyn Fn(&str, &mut [f32]) + Send + Sync>;

/// Variables in `f32` on the CPU.
pub(super) fn variables(tensors: Arc<dyn TensorSource>, adjust: Adjust) -> VarBuilder<'static> {
    let backend = Box::new(SourceBackend { tensors, adjust });
    VarBuilder::from_backend(backend, DType::F32, Device::Cpu)
}

impl SimpleBackend for SourceBackend {
    fn get(
        &self,
        shape: Shape,
        name: &str,
        _: Init,
        dtype: DType,
        device: &Device,
    ) -> Result<Tensor> {
        let tensor = self.get_unchecked(name, dtype, device)?;
        if *tensor.shape() != shape {
            let found = tensor.shape();
            return Err(Error::Msg(format!("tensor {name} is {found:?}, expected {shape:?}")));
        }
        Ok(tensor)
    }

    fn get_unchecked(&self, name: &str, dtype: DType, device: &Device) -> Result<Tensor> {
        let mut tensor = self.tensors.load(name).map_err(Error::wrap)?;
        (self.adjust)(name, &mut tensor.values);
        Tensor::from_vec(tensor.values, tensor.shape, device)?.to_dtype(dtype)
    }

    fn contains_tensor(&self, name: &str) -> bool {
        self.tensors.contains(name)
    }
}
