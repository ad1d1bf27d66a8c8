//! The secret that keys of states are made with, by its flag.

use std::path::Path;

use super::StartError;
use crate::state_key::Secret;

/// That of a file, or a random one.
///
/// # Errors
/// [`StartError::Setting`] with the file and what is the matter.
pub(super) fn load(path: Option<&Path>) -> Result<Secret, StartError> {
    let named = path.map(|path| format!("{}: ", path.display())).unwrap_or_default();
    Secret::load(path).map_err(|error| StartError::Setting {
        flag: "--state-key-secret",
        message: format!("{named}{error}"),
    })
}
