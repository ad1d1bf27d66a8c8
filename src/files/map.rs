//! A memory-mapped file: tensors are read from the page cache, so that anonymous memory holds only
//! what is being dequantised.
#![expect(unsafe_code, reason = "mapping a file is unsafe: somebody may change it meanwhile")]

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::{FilesError, regular};

/// A file mapped read-only.
#[derive(Debug)]
pub(crate) struct FileMap {
    path: PathBuf,
    bytes: Mmap,
}

impl FileMap {
    /// Maps the whole file.
    pub(crate) fn open(path: &Path) -> Result<Self, FilesError> {
        // Opening a pipe would wait for a writer.
        regular(path)?;
        let file = File::open(path).map_err(|error| FilesError::io(path, error))?;
        // SAFETY: the map is read-only and private to this struct. A model file that another
        // process truncates while it is served ends this one with SIGBUS; files are replaced by
        // renaming (as `pull` does), never written in place.
        let bytes = unsafe { Mmap::map(&file) }.map_err(|error| FilesError::io(path, error))?;
        Ok(Self { path: path.to_owned(), bytes })
    }

    /// The file's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Some bytes, or an error where the file is shorter.
    pub(super) fn slice(&self, range: Range<usize>) -> Result<&[u8], FilesError> {
        self.bytes.get(range.clone()).ok_or_else(|| {
            let length = self.bytes.len();
            FilesError::format(
                &self.path,
                format!(
                    "bytes {}..{} are wanted, but the file has {length}",
                    range.start, range.end
                ),
            )
        })
    }
}
