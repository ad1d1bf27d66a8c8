//! A file on its way here: its first bytes, kept so that a later pull goes on where this one ended.
//!
//! Whatever way a file comes, what is here is always a run of its first bytes. A marker beside it
//! records how many whole parts (wheels) are in it and where they end, for the way that can only
//! resume at such a place. Nothing of it is trusted before the hash of the whole is right.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::error::PullError;
use super::progress::Progress;

/// Mode of small files before the umask: whoever may read a model may read its record.
const READABLE: u32 = 0o666;

/// Bytes read or written at a time.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// What is known of a file before it is here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its name in the model's folder.
    pub file: String,
    /// Its size in bytes, where known.
    pub bytes: Option<u64>,
    /// Its SHA-256 in lower-case hex, where known.
    pub sha256: Option<String>,
}

/// What the marker records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Parts {
    /// Whole parts that are in the file.
    count: u32,
    /// Where the last of them ends.
    bytes: u64,
}

/// A file that is being put together.
#[derive(Debug)]
pub struct Assembly<'a> {
    wanted: &'a Wanted,
    folder: PathBuf,
    path: PathBuf,
    file: File,
    bytes: u64,
    parts: Parts,
    hasher: Sha256,
    /// The hasher has seen this many of the first bytes.
    hashed_bytes: u64,
    progress: &'a mut Progress,
}

impl<'a> Assembly<'a> {
    /// Opens what `folder` holds of `wanted`, or begins it.
    ///
    /// # Errors
    /// [`PullError::Io`] or [`PullError::DiskFull`] when the folder cannot be written.
    pub fn open(
        folder: &Path,
        wanted: &'a Wanted,
        progress: &'a mut Progress,
    ) -> Result<Self, PullError> {
        let path = part_path(folder, wanted);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| PullError::io(&path, source))?;
        let bytes = file.metadata().map_err(|source| PullError::io(&path, source))?.len();
        let parts = read_parts(&marker_path(folder, wanted)).filter(|parts| parts.bytes <= bytes);
        progress.start(&wanted.file, wanted.bytes);
        progress.set_bytes(bytes);
        let mut assembly = Self {
            wanted,
            folder: folder.to_owned(),
            path,
            file,
            bytes,
            parts: parts.unwrap_or_default(),
            hasher: Sha256::new(),
            hashed_bytes: 0,
            progress,
        };
        if wanted.bytes.is_some_and(|size| bytes > size) {
            assembly.restart()?;
        }
        Ok(assembly)
    }

    /// What is being put together.
    pub fn wanted(&self) -> &Wanted {
        self.wanted
    }

    /// A folder beside the file, for what a way needs on its way.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How many of the first bytes are here.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How many whole parts are here.
    pub fn parts(&self) -> u32 {
        self.parts.count
    }

    /// Shows progress of `more_bytes` that are on their way and not yet here.
    pub fn show(&mut self, more_bytes: u64) {
        let shown = self.bytes.saturating_add(more_bytes);
        self.progress.set_bytes(self.wanted.bytes.map_or(shown, |size| shown.min(size)));
    }

    /// Says something about the way.
    pub fn note(&self, message: &str) {
        self.progress.note(message);
    }

    /// Drops what lies beyond the last whole part.
    ///
    /// # Errors
    /// [`PullError::Io`].
    pub fn rewind_to_part(&mut self) -> Result<(), PullError> {
        self.truncate(self.parts.bytes)
    }

    /// Drops everything.
    ///
    /// # Errors
    /// [`PullError::Io`].
    pub fn restart(&mut self) -> Result<(), PullError> {
        self.parts = Parts::default();
        let marker = marker_path(&self.folder, self.wanted);
        remove_if_there(&marker)?;
        self.truncate(0)
    }

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// [`PullError::DiskFull`] or [`PullError::Io`]; the bytes before stay.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), PullError> {
        self.hash_up_to_here()?;
        self.file
            .seek(SeekFrom::Start(self.bytes))
            .and_then(|_| self.file.write_all(bytes))
            .map_err(|source| PullError::io(&self.path, source))?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        self.hashed_bytes = self.bytes;
        self.show(0);
        Ok(())
    }

    /// Whether `more_bytes` would make the file longer than it is to be.
    pub fn would_overflow(&self, more_bytes: u64) -> bool {
        self.wanted.bytes.is_some_and(|size| self.bytes.saturating_add(more_bytes) > size)
    }

    /// Records that a part ends here; a later pull goes on from this place.
    ///
    /// # Errors
    /// [`PullError::DiskFull`] or [`PullError::Io`].
    pub fn finish_part(&mut self) -> Result<(), PullError> {
        self.sync()?;
        self.parts = Parts { count: self.parts.count + 1, bytes: self.bytes };
        let marker = marker_path(&self.folder, self.wanted);
        write_atomically(&marker, &serde_json::to_vec(&self.parts).unwrap_or_default())
    }

    /// Whether the file is what it is to be: `Err` says what differs. Returns its SHA-256.
    ///
    /// # Errors
    /// [`PullError::Io`]; the inner error says what differs.
    pub fn check(&mut self) -> Result<Result<String, String>, PullError> {
        let size = self.wanted.bytes.unwrap_or(self.bytes);
        if self.bytes != size {
            return Ok(Err(format!("{} bytes instead of {size}", self.bytes)));
        }
        self.hash_up_to_here()?;
        let found = hex(&self.hasher.clone().finalize());
        let wanted = self.wanted.sha256.as_deref().unwrap_or(&found);
        if found != wanted {
            return Ok(Err(format!("SHA-256 {found} instead of {wanted}")));
        }
        Ok(Ok(found))
    }

    /// Moves the checked file to `target`, durably.
    ///
    /// # Errors
    /// [`PullError::DiskFull`] or [`PullError::Io`].
    pub fn keep(self, target: &Path) -> Result<(), PullError> {
        self.sync()?;
        fs::rename(&self.path, target).map_err(|source| PullError::io(target, source))?;
        remove_if_there(&marker_path(&self.folder, self.wanted))?;
        self.progress.finish();
        Ok(())
    }

    fn sync(&self) -> Result<(), PullError> {
        self.file.sync_all().map_err(|source| PullError::io(&self.path, source))
    }

    fn truncate(&mut self, bytes: u64) -> Result<(), PullError> {
        self.file.set_len(bytes).map_err(|source| PullError::io(&self.path, source))?;
        self.bytes = bytes;
        if self.hashed_bytes > bytes {
            self.hasher = Sha256::new();
            self.hashed_bytes = 0;
        }
        self.show(0);
        Ok(())
    }

    fn hash_up_to_here(&mut self) -> Result<(), PullError> {
        if self.hashed_bytes == self.bytes {
            return Ok(());
        }
        self.file
            .seek(SeekFrom::Start(self.hashed_bytes))
            .and_then(|_| hash_into(&mut self.hasher, &mut self.file))
            .map_err(|source| PullError::io(&self.path, source))?;
        self.hashed_bytes = self.bytes;
        Ok(())
    }
}

/// SHA-256 of a file in lower-case hex.
///
/// # Errors
/// The file system's.
pub(crate) fn sha256_of(path: &Path) -> io::Result<String> {
    let mut hasher = Sha256::new();
    hash_into(&mut hasher, &mut File::open(path)?)?;
    Ok(hex(&hasher.finalize()))
}

/// Bytes that earlier pulls left of `wanted` in `folder`.
pub(crate) fn bytes_kept(folder: &Path, wanted: &Wanted) -> u64 {
    fs::metadata(part_path(folder, wanted)).map_or(0, |found| found.len())
}

/// Writes a small file so that it is there whole or not at all.
///
/// # Errors
/// [`PullError::DiskFull`] or [`PullError::Io`].
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<(), PullError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let write = || -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .permissions(fs::Permissions::from_mode(READABLE))
            .tempfile_in(folder)?;
        file.write_all(content)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|source| PullError::io(path, source))
}

pub(crate) fn remove_if_there(path: &Path) -> Result<(), PullError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(PullError::io(path, error)),
        _ => Ok(()),
    }
}

fn hash_into(hasher: &mut Sha256, file: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok(());
        }
        hasher.update(&buffer[..read]);
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn part_path(folder: &Path, wanted: &Wanted) -> PathBuf {
    folder.join(format!("{}.part", wanted.file))
}

fn marker_path(folder: &Path, wanted: &Wanted) -> PathBuf {
    folder.join(format!("{}.parts.json", wanted.file))
}

fn read_parts(marker: &Path) -> Option<Parts> {
    serde_json::from_slice(&fs::read(marker).ok()?).ok()
}
