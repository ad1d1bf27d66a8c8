//! Packed weights on disk: what loading made of a model's files, so that the next start need not
//! make it again.
//!
//! A file holds the tensors of one model in one precision in the order in which loading asks for
//! them, each with its name, its shape and a checksum that is verified when it is read. Anything
//! unexpected makes the whole file useless, which costs the time of packing and nothing else.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thiserror::Error;

use super::kernels::{Precision, Weights};
use crate::files::FileMap;

/// Raised whenever packing or the kernels' layouts change: older files are packed anew.
const VERSION: u32 = 1;

const MAGIC: &[u8; 8] = b"docketpk";

/// Longest name of a tensor.
const NAME_MAX: usize = 256;

/// Where packed weights lie, and how much of the disk they may take.
#[derive(Debug, Clone)]
pub struct PackedFolder {
    /// The folder; made when something is written.
    pub folder: PathBuf,
    /// Most bytes of all files in it; the least recently used go first. 0 keeps nothing.
    pub bytes_max: u64,
}

/// Why a packed file cannot be used.
#[derive(Debug, Error)]
pub(super) enum PackedError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("{0}")]
    Content(String),
}

fn content(what: impl Into<String>) -> PackedError {
    PackedError::Content(what.into())
}

impl PackedFolder {
    /// The file of these weights. `hash` is that of all bytes of the model's files.
    pub(super) fn path(&self, hash: &str, precision: Precision) -> PathBuf {
        self.folder.join(format!("{hash}-{precision}-v{VERSION}.packed"))
    }

    /// Removes the least recently used files until `more` bytes fit under the limit.
    ///
    /// # Errors
    /// When the folder cannot be read, or `more` alone is over the limit.
    fn make_room(&self, more: u64) -> Result<(), PackedError> {
        if more > self.bytes_max {
            return Err(content(format!("{more} bytes, at most {} are kept", self.bytes_max)));
        }
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let facts = std::fs::metadata(&path)?;
            if path.extension().is_some_and(|extension| extension == "packed") {
                files.push((facts.modified()?, facts.len(), path));
            }
        }
        files.sort();
        let mut held: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if held.saturating_add(more) <= self.bytes_max {
                break;
            }
            std::fs::remove_file(&path)?;
            held -= bytes;
        }
        Ok(())
    }
}

/// Reads a packed file from its begin.
#[derive(Debug)]
pub(super) struct PackedReader {
    map: FileMap,
    at: usize,
}

impl PackedReader {
    /// Opens a file and marks it as used.
    ///
    /// # Errors
    /// When there is none, or it is no packed file.
    pub(super) fn open(path: &Path) -> Result<Self, PackedError> {
        // What was read last is kept longest; a folder that cannot be written is used all the same.
        let _ = File::open(path)?.set_modified(std::time::SystemTime::now());
        let map = FileMap::open(path).map_err(|error| content(error.to_string()))?;
        let mut reader = Self { map, at: 0 };
        let head = reader.take(MAGIC.len() + 4)?;
        if head[..MAGIC.len()] != MAGIC[..] || head[MAGIC.len()..] != VERSION.to_le_bytes() {
            return Err(content("it does not begin as a packed file of this version"));
        }
        Ok(reader)
    }

    /// The next entry, which must be a matrix of this name and shape.
    ///
    /// # Errors
    /// When it is not, or is damaged.
    pub(super) fn matrix(
        &mut self,
        name: &str,
        precision: Precision,
        (columns, depth): (usize, usize),
    ) -> Result<Weights, PackedError> {
        let bytes = self.entry(name, (columns, depth))?;
        let weights = Weights::from_bytes(precision, (columns, depth), bytes);
        weights.map_err(|error| content(format!("{name}: {error}")))
    }

    /// The next entry, which must be a vector of this name and length.
    ///
    /// # Errors
    /// When it is not, or is damaged.
    pub(super) fn vector(&mut self, name: &str, width: usize) -> Result<Vec<f32>, PackedError> {
        let bytes = self.entry(name, (width, 1))?;
        let values = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        let values: Vec<f32> = values.collect();
        if values.len() != width {
            return Err(content(format!("{name} has {} values, not {width}", values.len())));
        }
        Ok(values)
    }

    /// Bytes of the next entry.
    fn entry(&mut self, name: &str, shape: (usize, usize)) -> Result<&[u8], PackedError> {
        let [name_len, columns, depth, bytes, checksum] = self.numbers([4, 8, 8, 8, 4])?;
        if name_len > NAME_MAX || self.take(name_len)? != name.as_bytes() {
            return Err(content(format!("{name} is not the next entry")));
        }
        if (columns, depth) != shape {
            return Err(content(format!("{name} is {columns} x {depth}, not {shape:?}")));
        }
        let bytes = self.take(bytes)?;
        if crc32fast::hash(bytes) as usize != checksum {
            return Err(content(format!("{name} is damaged")));
        }
        Ok(bytes)
    }

    /// Numbers of these widths in bytes.
    fn numbers<const N: usize>(&mut self, widths: [usize; N]) -> Result<[usize; N], PackedError> {
        let mut numbers = [0; N];
        for (number, width) in numbers.iter_mut().zip(widths) {
            let mut bytes = [0; 8];
            bytes[..width].copy_from_slice(self.take(width)?);
            *number = usize::try_from(u64::from_le_bytes(bytes)).unwrap_or(usize::MAX);
        }
        Ok(numbers)
    }

    fn take(&mut self, len: usize) -> Result<&[u8], PackedError> {
        let bytes = self.map.bytes();
        let end = self.at.checked_add(len).filter(|end| *end <= bytes.len());
        let end = end.ok_or_else(|| content("it ends early"))?;
        let part = &bytes[self.at..end];
        self.at = end;
        Ok(part)
    }
}

/// Writes a packed file, under its name only when it is whole.
#[derive(Debug)]
pub(super) struct PackedWriter {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
}

impl PackedWriter {
    /// Begins a file of about `bytes` bytes.
    ///
    /// # Errors
    /// When there is no room under the limit, or the folder cannot be written.
    pub(super) fn create(
        folder: &PackedFolder,
        path: PathBuf,
        bytes: u64,
    ) -> Result<Self, PackedError> {
        std::fs::create_dir_all(&folder.folder)?;
        folder.make_room(bytes)?;
        let mut file = BufWriter::new(NamedTempFile::new_in(&folder.folder)?);
        file.write_all(MAGIC)?;
        file.write_all(&VERSION.to_le_bytes())?;
        Ok(Self { file, path })
    }

    /// Adds a matrix.
    pub(super) fn matrix(&mut self, name: &str, weights: &Weights) -> Result<(), PackedError> {
        let shape = (weights.columns(), weights.depth());
        self.entry(name, shape, &weights.to_bytes())
    }

    /// Adds a vector.
    pub(super) fn vector(&mut self, name: &str, values: &[f32]) -> Result<(), PackedError> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.entry(name, (values.len(), 1), &bytes)
    }

    fn entry(
        &mut self,
        name: &str,
        (columns, depth): (usize, usize),
        bytes: &[u8],
    ) -> Result<(), PackedError> {
        let name_len = u32::try_from(name.len()).unwrap_or(u32::MAX);
        self.file.write_all(&name_len.to_le_bytes())?;
        for number in [columns, depth, bytes.len()] {
            self.file.write_all(&(number as u64).to_le_bytes())?;
        }
        self.file.write_all(&crc32fast::hash(bytes).to_le_bytes())?;
        self.file.write_all(name.as_bytes())?;
        Ok(self.file.write_all(bytes)?)
    }

    /// Gives the file its name.
    pub(super) fn finish(self) -> Result<(), PackedError> {
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(precision: Precision) -> Weights {
        let mut weights = Weights::zeros(precision, 40, 70);
        let values: Vec<f32> = (0..40_u16 * 70).map(|at| f32::from(at % 97) - 48.0).collect();
        weights.pack(0, &values);
        weights
    }

    fn folder(bytes_max: u64) -> (tempfile::TempDir, PackedFolder) {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("packed");
        (dir, PackedFolder { folder, bytes_max })
    }

    fn write(folder: &PackedFolder, hash: &str, precision: Precision) -> PathBuf {
        let path = folder.path(hash, precision);
        let mut writer = PackedWriter::create(folder, path.clone(), 1000).unwrap();
        writer.matrix("a", &weights(precision)).unwrap();
        writer.vector("norm", &[1.0, -2.5, f32::MIN_POSITIVE]).unwrap();
        writer.finish().unwrap();
        path
    }

    #[test]
    fn what_was_written_is_read_back_bit_by_bit() {
        let (_dir, folder) = folder(1 << 20);
        for precision in Precision::ALL {
            let path = write(&folder, "h", precision);
            let mut reader = PackedReader::open(&path).unwrap();
            let read = reader.matrix("a", precision, (40, 70)).unwrap();
            assert_eq!(read.to_bytes(), weights(precision).to_bytes());
            let vector = reader.vector("norm", 3).unwrap();
            assert_eq!(vector[1].to_bits(), (-2.5_f32).to_bits());
            assert!(reader.vector("more", 1).is_err(), "there is no more");
        }
    }

    #[test]
    fn another_name_shape_or_precision_is_refused() {
        let (_dir, folder) = folder(1 << 20);
        let path = write(&folder, "h", Precision::Int8);
        let read = |name, precision, shape| {
            PackedReader::open(&path).unwrap().matrix(name, precision, shape).map(drop)
        };
        assert!(read("b", Precision::Int8, (40, 70)).is_err());
        assert!(read("a", Precision::Int8, (70, 40)).is_err());
        assert!(read("a", Precision::Bf16, (40, 70)).is_err());
        read("a", Precision::Int8, (40, 70)).unwrap();
    }

    #[test]
    fn every_flipped_byte_and_every_cut_is_noticed() {
        let (_dir, folder) = folder(1 << 20);
        let path = write(&folder, "h", Precision::Int8);
        let whole = std::fs::read(&path).unwrap();
        let read = || -> Result<(), PackedError> {
            let mut reader = PackedReader::open(&path)?;
            reader.matrix("a", Precision::Int8, (40, 70))?;
            reader.vector("norm", 3).map(drop)
        };
        read().unwrap();
        for at in (0..whole.len()).step_by(7).chain(whole.len() - 20..whole.len()) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x10;
            std::fs::write(&path, &damaged).unwrap();
            assert!(read().is_err(), "byte {at}");
            std::fs::write(&path, &whole[..at]).unwrap();
            assert!(read().is_err(), "cut at {at}");
        }
    }

    #[test]
    fn the_least_recently_used_file_makes_room() {
        let (_dir, folder) = folder(20_000);
        let first = write(&folder, "first", Precision::Int8);
        let second = write(&folder, "second", Precision::Int8);
        let old = std::time::SystemTime::UNIX_EPOCH;
        File::options().append(true).open(&second).unwrap().set_modified(old).unwrap();
        let one = std::fs::metadata(&first).unwrap().len();
        let tight = PackedFolder { bytes_max: 2 * one, ..folder };
        tight.make_room(one).unwrap();
        assert!(first.exists() && !second.exists());
        assert!(tight.make_room(2 * one + 1).is_err(), "more than is ever kept");
    }
}
