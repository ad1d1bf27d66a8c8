//! What a reading was computed in: it tells results apart, and names them in tables.

use docket::config::DeviceChoice;
use docket::engine::kernels::Precision;

/// What computes: a precision and, for the `cuda` engine, its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Computed {
    pub(crate) precision: Precision,
    pub(crate) device: Option<DeviceChoice>,
}

impl Computed {
    /// The rest is compared with this.
    pub(crate) const EXACT: Self = Self { precision: Precision::F32, device: None };

    /// What it adds to a layout's identity.
    pub(crate) fn mark(self) -> String {
        self.words().flat_map(|word| ["+".to_owned(), word]).collect()
    }

    /// Precision and device, unless they are those of [`Self::EXACT`].
    pub(crate) fn words(self) -> impl Iterator<Item = String> {
        let precision = match self.precision {
            Precision::F32 => None,
            Precision::Bf16 => Some("bf16".to_owned()),
            Precision::Int8 => Some("int8".to_owned()),
        };
        let device = self.device.map(|device| format!("tensors-{device}"));
        precision.into_iter().chain(device)
    }
}
