//! Packed weights on disk: what loading made of a model's files, so that the next start need not
//! make it again.
//!
//! A file holds the tensors of one model in one precision in the order in which loading asks for
//! them, each with its name, its shape and a checksum that is verified when it is read. Anything
//! unexpected makes the whole file useless, which costs the time of packing and nothing else.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;
use thiserror::Error;

use super::Packed;
use super::kernels::{Precision, Weights};
use crate::files::{FileMap, Witness};

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

/// An error of the file system with the path that it is about.
fn at(path: &Path, error: &io::Error) -> PackedError {
    content(format!("{}: {error}", path.display()))
}

impl PackedFolder {
    /// The file of these weights. `hash` is that of all bytes of the model's files.
    pub(super) fn path(&self, hash: &str, precision: Precision) -> PathBuf {
        self.folder.join(format!("{hash}-{precision}-v{VERSION}.packed"))
    }

    /// Removes what was left by starts that were killed, then the least recently used files until
    /// `more` bytes fit under the limit; `wanted` goes last.
    ///
    /// # Errors
    /// When the folder cannot be read, or what cannot be removed and `more` are over the limit.
    pub(super) fn make_room(&self, more: u64, wanted: &Path) -> Result<(), PackedError> {
        let mut files = Vec::new();
        let mut held = more;
        for path in std::fs::read_dir(&self.folder)?.flatten().map(|entry| entry.path()) {
            let Ok(facts) = std::fs::symlink_metadata(&path) else { continue };
            if !facts.is_file() {
                continue;
            }
            if path.extension().is_some_and(|extension| extension == "packed") {
                held = held.saturating_add(facts.len());
                let used = facts.modified().unwrap_or(std::time::SystemTime::UNIX_EPOCH);
                files.push((path == wanted, used, facts.len(), path));
            } else if is_partial(&path) && !remove_abandoned(&path) {
                held = held.saturating_add(facts.len());
            }
        }
        files.sort();
        for (_, _, bytes, path) in files {
            if held <= self.bytes_max {
                break;
            }
            std::fs::remove_file(&path)?;
            held -= bytes;
        }
        if held > self.bytes_max {
            return Err(content(format!(
                "{held} bytes are needed, at most {} kept",
                self.bytes_max
            )));
        }
        Ok(())
    }

    /// Holds others off while this process looks at the folder and changes it.
    fn lock(&self) -> Result<File, PackedError> {
        let taken = || {
            std::fs::create_dir_all(&self.folder)?;
            let mut options = File::options();
            let lock =
                options.create(true).truncate(false).write(true).open(self.folder.join(".lock"))?;
            lock.lock()?;
            Ok(lock)
        };
        taken().map_err(|error| at(&self.folder, &error))
    }

    /// Brings the folder under its limit.
    pub(super) fn trim(&self, wanted: &Path) -> Result<(), PackedError> {
        let _lock = self.lock()?;
        self.make_room(0, wanted)
    }
}

/// Begin of the names of files that are being written.
const PARTIAL: &str = ".packing-";

fn is_partial(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(PARTIAL.as_bytes()))
}

/// Removes a partial file that no process writes any more.
fn remove_abandoned(path: &Path) -> bool {
    let is_free = File::options().write(true).open(path).is_ok_and(|file| file.try_lock().is_ok());
    is_free && std::fs::remove_file(path).is_ok()
}

/// The model and precision of a file, as its head says them.
fn identity(hash: &str, precision: Precision) -> String {
    format!("{hash} {precision}")
}

/// Reads a packed file from its begin.
#[derive(Debug)]
pub(super) struct PackedReader {
    map: FileMap,
    at: usize,
}

impl PackedReader {
    /// Opens the file of these weights and marks it as used.
    ///
    /// # Errors
    /// When there is none, or it is no packed file of this model in this precision.
    pub(super) fn open(
        folder: &PackedFolder,
        hash: &str,
        precision: Precision,
    ) -> Result<Self, PackedError> {
        let path = folder.path(hash, precision);
        if !std::fs::metadata(&path)?.is_file() {
            return Err(content("it is no regular file; remove it"));
        }
        // What was read last is kept longest; a folder that cannot be written is used all the same.
        let _ = File::open(&path)?.set_modified(std::time::SystemTime::now());
        let map = FileMap::open(&path).map_err(|error| content(error.to_string()))?;
        let mut reader = Self { map, at: 0 };
        let identity = identity(hash, precision);
        let head = reader.take(MAGIC.len() + 4 + identity.len())?;
        let (magic, rest) = head.split_at(MAGIC.len());
        let (version, said) = rest.split_at(4);
        if magic != MAGIC || version != VERSION.to_le_bytes() || said != identity.as_bytes() {
            return Err(content("it does not begin as the packed file of these weights"));
        }
        Ok(reader)
    }

    /// Everything was read: nothing may follow.
    ///
    /// # Errors
    /// When there is more.
    pub(super) fn finish(&self) -> Result<(), PackedError> {
        let more = self.map.bytes().len() - self.at;
        if more == 0 { Ok(()) } else { Err(content(format!("{more} bytes follow its last entry"))) }
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

/// Writes a packed file, under its name only when it is whole and its model was not changed.
#[derive(Debug)]
pub(super) struct PackedWriter {
    file: BufWriter<NamedTempFile>,
    path: PathBuf,
    written: u64,
    witness: Witness,
}

impl PackedWriter {
    /// Begins a file of at most `bytes` bytes.
    ///
    /// # Errors
    /// When there is no room under the limit, or the folder cannot be written.
    pub(super) fn create(
        packed: &Packed,
        precision: Precision,
        bytes: u64,
    ) -> Result<Self, PackedError> {
        let Packed { folder, hash, witness } = packed;
        let path = folder.path(hash, precision);
        let lock = folder.lock()?;
        folder.make_room(bytes, &path)?;
        let file = tempfile::Builder::new()
            .prefix(PARTIAL)
            .permissions(std::fs::Permissions::from_mode(0o666))
            .tempfile_in(&folder.folder)?;
        // Held until the file is gone or has its name: others see that somebody writes it. Its
        // length is what it will take, so that others leave the room.
        file.as_file().lock()?;
        file.as_file().set_len(bytes)?;
        drop(lock);
        let file = BufWriter::new(file);
        let mut writer = Self { file, path, written: 0, witness: witness.clone() };
        writer.write(MAGIC)?;
        writer.write(&VERSION.to_le_bytes())?;
        writer.write(identity(hash, precision).as_bytes())?;
        Ok(writer)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.written += bytes.len() as u64;
        self.file.write_all(bytes)
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
        self.write(&name_len.to_le_bytes())?;
        for number in [columns, depth, bytes.len()] {
            self.write(&(number as u64).to_le_bytes())?;
        }
        self.write(&crc32fast::hash(bytes).to_le_bytes())?;
        self.write(name.as_bytes())?;
        Ok(self.write(bytes)?)
    }

    /// Gives the file its name, unless the model's files were changed since their hash was taken.
    pub(super) fn finish(self) -> Result<(), PackedError> {
        if !self.witness.holds() {
            return Err(content("the model's files were changed while they were read"));
        }
        let file = self.file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.as_file().set_len(self.written)?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| at(&self.path, &error.error))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
