//! Safetensors folders.
use std::path::Path;
use super::{FilesError, ModelFiles};
pub(super) fn open(path: &Path) -> Result<ModelFiles, FilesError> {
    Err(FilesError::unsupported(path, "x"))
}
