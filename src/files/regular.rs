//! Regular files only: a pipe, socket or device in a model's place would hang the start or never end.

use std::fs::{self, FileType, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

use super::FilesError;

/// Size in bytes of the regular file at `path`, links followed.
///
/// # Errors
/// [`FilesError`] where nothing or anything else is there.
pub(crate) fn regular(path: &Path) -> Result<u64, FilesError> {
    size(path, &fs::metadata(path).map_err(|error| FilesError::io(path, error))?)
}

/// The same; `None` where nothing is there.
///
/// # Errors
/// As [`regular`].
pub(crate) fn regular_if_there(path: &Path) -> Result<Option<u64>, FilesError> {
    match fs::metadata(path) {
        Ok(found) => size(path, &found).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(FilesError::io(path, error)),
    }
}

fn size(path: &Path, found: &Metadata) -> Result<u64, FilesError> {
    if found.is_file() {
        return Ok(found.len());
    }
    let message = format!("this is {}; a regular file is wanted", named(found.file_type()));
    Err(FilesError::format(path, message))
}

fn named(kind: FileType) -> &'static str {
    if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_char_device() || kind.is_block_device() {
        "a device"
    } else {
        "of an unknown kind"
    }
}
