//! A model's fingerprint: tells two sets of weights apart without reading all of them.
//!
//! It covers the headers (every name, shape, type and offset, and a GGUF file's metadata), the
//! sizes and a sample of blocks spread over the weights. It is part of segment keys, so it must not
//! depend on where the files lie or when they were written.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::FilesError;
use super::map::FileMap;

/// Blocks sampled from each file.
const SAMPLES: usize = 64;
/// Bytes in each sampled block.
const SAMPLE_BYTES: usize = 4096;

/// A fingerprint in the making.
#[derive(Debug, Default)]
pub(super) struct Fingerprint(Sha256);

impl Fingerprint {
    /// Adds a part as a whole.
    pub(super) fn add(&mut self, part: &[u8]) {
        self.0.update((part.len() as u64).to_le_bytes());
        self.0.update(part);
    }

    /// Adds a file: its first `header` bytes, its size, and a sample of the rest.
    pub(super) fn add_file(&mut self, bytes: &[u8], header: usize) {
        let (header, body) = bytes.split_at(header.min(bytes.len()));
        self.add(header);
        self.0.update((bytes.len() as u64).to_le_bytes());
        for sample in 0..SAMPLES {
            let start = body.len() / SAMPLES * sample;
            let end = body.len().min(start + SAMPLE_BYTES);
            self.0.update(&body[start..end]);
        }
    }

    /// The SHA-256 in lower-case hex.
    pub(super) fn finish(self) -> String {
        self.0.finalize().iter().fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

/// SHA-256, in lower-case hex, of all bytes that decide what a model's weights are: a GGUF file, or
/// a folder's `config.json` and safetensors in the order of their names. Costs about a second for
/// two gigabytes, where [`Fingerprint`] costs nothing.
pub(super) fn whole(path: &Path) -> Result<String, FilesError> {
    let mut hash = Fingerprint::default();
    for file in weight_files(path)? {
        hash.add(FileMap::open(&file)?.bytes());
    }
    Ok(hash.finish())
}

/// The files that decide what the weights are, in the order of their names.
pub(super) fn weight_files(path: &Path) -> Result<Vec<PathBuf>, FilesError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = std::fs::read_dir(path).map_err(|error| FilesError::io(path, error))?;
    let has_weights = |file: &PathBuf| {
        file.extension().is_some_and(|extension| extension == "safetensors")
            || file.file_name().is_some_and(|name| name == "config.json")
    };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(has_weights).collect();
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], header: usize) -> String {
        let mut fingerprint = Fingerprint::default();
        fingerprint.add_file(bytes, header);
        fingerprint.finish()
    }

    #[test]
    fn header_size_and_sampled_content_each_change_the_fingerprint() {
        let bytes = vec![7_u8; 1_000_000];
        let base = of(&bytes, 100);
        assert_eq!(base, of(&bytes, 100));
        assert_eq!(base.len(), 64);
        // In the header, at the begin of the first sample, and at that of the 32nd.
        for changed in [50, 100, 100 + 999_900 / 64 * 32] {
            let mut other = bytes.clone();
            other[changed] = 8;
            assert_ne!(base, of(&other, 100), "byte {changed}");
        }
        assert_ne!(base, of(&bytes[..999_999], 100));
    }
}
