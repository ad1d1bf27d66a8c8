//! The models on disk: where each lives, how it gets there whole, and whether it still is.
//!
//! ```text
//! HOME/models/SLUG/          the model's files and installed.json, moved here as one folder
//! HOME/partial/SLUG/         files on their way; ready/ becomes models/SLUG
//! HOME/locks/SLUG.lock       held by the process that pulls; the kernel frees it with the process
//! ```
//! A model is there if and only if its folder holds `installed.json`, which is written after every
//! hash was right. Sizes and times of change are compared with it whenever the model is looked for;
//! whenever it is loaded or pulled all is hashed, since a flipped bit changes neither.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use serde::{Deserialize, Serialize};

use super::assembly::{sha256_of, write_atomically};
use super::error::PullError;
use super::progress::Progress;
use super::wheels::WORK_PREFIX;

const RECORD: &str = "installed.json";
const READY: &str = "ready";

/// The folder of all models.
#[derive(Debug, Clone)]
pub struct Store {
    home: PathBuf,
}

/// What `installed.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The model as it was named.
    pub name: String,
    /// What a loader opens: a file of the folder, or empty for the folder itself.
    pub entry: String,
    /// The files.
    pub files: Vec<FileRecord>,
}

/// One installed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Name in the model's folder.
    pub file: String,
    /// Size in bytes.
    pub bytes: u64,
    /// SHA-256 in lower-case hex.
    pub sha256: String,
    /// Time of its last change, in nanoseconds since 1970.
    pub changed_ns: u64,
}

/// How thoroughly an installed model is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thoroughness {
    /// Sizes and times; hashes only where these changed.
    Quick,
    /// All hashes.
    Full,
}

/// A process's hold on one model's folder; freed when dropped or when the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Store {
    /// The store under `home`; nothing is touched before something is pulled.
    pub fn new(home: &Path) -> Self {
        Self { home: home.to_owned() }
    }

    /// Where the store is.
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// The path to load of an installed, undamaged model; `None` when it is not installed.
    ///
    /// # Errors
    /// [`PullError::Damaged`], [`PullError::Io`].
    pub fn find(
        &self,
        slug: &str,
        thoroughness: Thoroughness,
    ) -> Result<Option<PathBuf>, PullError> {
        let folder = self.folder(slug);
        let Some(mut record) = read_record(&folder)? else { return Ok(None) };
        let mut touched = false;
        for file in &mut record.files {
            touched |= check_file(&record.name, &folder, file, thoroughness)?;
        }
        if touched {
            // A read-only store is as good; it is then hashed at each start.
            let _ = write_record(&folder, &record);
        }
        Ok(Some(if record.entry.is_empty() { folder } else { folder.join(&record.entry) }))
    }

    /// What is recorded of an installed model.
    ///
    /// # Errors
    /// [`PullError::Damaged`] when the record itself is, [`PullError::Io`].
    pub fn record(&self, slug: &str) -> Result<Option<Record>, PullError> {
        read_record(&self.folder(slug))
    }

    /// The records of everything that is installed, with their slugs, by slug.
    pub fn installed(&self) -> Vec<(String, Record)> {
        let Ok(entries) = fs::read_dir(self.home.join("models")) else { return Vec::new() };
        let mut found: Vec<(String, Record)> = entries
            .filter_map(Result::ok)
            .filter_map(|entry| {
                let record = read_record(&entry.path()).ok()??;
                Some((entry.file_name().to_string_lossy().into_owned(), record))
            })
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }

    /// Takes the lock of one model; waits while another process pulls it.
    ///
    /// # Errors
    /// [`PullError::Io`].
    pub fn lock(&self, slug: &str, progress: &Progress) -> Result<Lock, PullError> {
        let folder = self.home.join("locks");
        make_folder(&folder)?;
        let path = folder.join(format!("{slug}.lock"));
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| PullError::home(&path, source))?;
        if file.try_lock().is_err() {
            progress.note(&format!("another process pulls {slug}; waiting for it"));
            file.lock().map_err(|source| PullError::io(&path, source))?;
        }
        Ok(Lock { _file: file })
    }

    /// The folder for files on their way, swept of what killed pulls left and nobody can use.
    /// Call it under the model's lock.
    ///
    /// # Errors
    /// [`PullError::Io`].
    pub fn staging(&self, slug: &str) -> Result<PathBuf, PullError> {
        let folder = self.home.join("partial").join(slug);
        make_folder(&folder.join(READY))?;
        sweep(&folder)?;
        sweep(&folder.join(READY))?;
        Ok(folder)
    }

    /// Where in the staging folder a checked file goes.
    pub fn ready_path(staging: &Path, file: &str) -> PathBuf {
        staging.join(READY).join(file)
    }

    /// Makes the checked files of `staging` the installed model, in one move.
    ///
    /// # Errors
    /// [`PullError::Io`], [`PullError::DiskFull`].
    pub fn install(
        &self,
        slug: &str,
        staging: &Path,
        mut record: Record,
    ) -> Result<PathBuf, PullError> {
        let ready = staging.join(READY);
        for file in &mut record.files {
            let path = ready.join(&file.file);
            file.changed_ns = changed_ns(&path).map_err(|source| PullError::io(&path, source))?;
        }
        write_record(&ready, &record)?;
        let folder = self.folder(slug);
        make_folder(&self.home.join("models"))?;
        self.remove(slug)?;
        fs::rename(&ready, &folder).map_err(|source| PullError::io(&folder, source))?;
        sync_folder(&self.home.join("models"))?;
        fs::remove_dir_all(staging).map_err(|source| PullError::io(staging, source))?;
        Ok(if record.entry.is_empty() { folder } else { folder.join(&record.entry) })
    }

    /// Removes what is installed under `slug`, the record first.
    fn remove(&self, slug: &str) -> Result<(), PullError> {
        let folder = self.folder(slug);
        super::assembly::remove_if_there(&folder.join(RECORD))?;
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(PullError::io(&folder, error))
            }
            _ => Ok(()),
        }
    }

    fn folder(&self, slug: &str) -> PathBuf {
        self.home.join("models").join(slug)
    }
}

/// Free bytes of the disk that holds `path`.
///
/// # Errors
/// [`PullError::Io`].
pub(crate) fn free_bytes(path: &Path) -> Result<u64, PullError> {
    let found = rustix::fs::statvfs(path).map_err(|error| PullError::io(path, error.into()))?;
    Ok(found.f_bavail.saturating_mul(found.f_frsize))
}

pub(crate) fn make_folder(path: &Path) -> Result<(), PullError> {
    fs::create_dir_all(path).map_err(|source| PullError::home(path, source))
}

/// Compares one file with its record; true when its time of change was brought up to date.
fn check_file(
    model: &str,
    folder: &Path,
    file: &mut FileRecord,
    thoroughness: Thoroughness,
) -> Result<bool, PullError> {
    let path = folder.join(&file.file);
    let damaged = |message: String| PullError::Damaged {
        name: model.to_owned(),
        path: path.clone(),
        message,
    };
    let found = fs::metadata(&path).map_err(|error| damaged(error.to_string()))?;
    if found.len() != file.bytes {
        return Err(damaged(format!("{} bytes instead of {}", found.len(), file.bytes)));
    }
    let changed_ns = changed_ns(&path).map_err(|source| PullError::io(&path, source))?;
    if changed_ns == file.changed_ns && thoroughness == Thoroughness::Quick {
        return Ok(false);
    }
    let sha256 = sha256_of(&path).map_err(|source| PullError::io(&path, source))?;
    if sha256 != file.sha256 {
        return Err(damaged(format!("SHA-256 {sha256} instead of {}", file.sha256)));
    }
    let touched = changed_ns != file.changed_ns;
    file.changed_ns = changed_ns;
    Ok(touched)
}

fn read_record(folder: &Path) -> Result<Option<Record>, PullError> {
    let path = folder.join(RECORD);
    match fs::read(&path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| PullError::Damaged {
            name: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            path,
            message: error.to_string(),
        }),
        // A home that is a file is told when something is to be written there.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) =>
        {
            Ok(None)
        }
        Err(error) => Err(PullError::io(&path, error)),
    }
}

fn write_record(folder: &Path, record: &Record) -> Result<(), PullError> {
    write_atomically(&folder.join(RECORD), &serde_json::to_vec_pretty(record).unwrap_or_default())
}

fn changed_ns(path: &Path) -> io::Result<u64> {
    let changed = fs::metadata(path)?.modified()?;
    let since = changed.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(since.as_nanos()).unwrap_or(u64::MAX))
}

/// Makes a rename in `folder` durable.
fn sync_folder(folder: &Path) -> Result<(), PullError> {
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|source| PullError::io(folder, source))
}

/// Removes working folders and temporary files of earlier pulls.
fn sweep(folder: &Path) -> Result<(), PullError> {
    let entries = fs::read_dir(folder).map_err(|source| PullError::io(folder, source))?;
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        // Leftovers only cost room; what cannot be removed now is removed by the next pull.
        if name.starts_with(WORK_PREFIX) {
            let _ = fs::remove_dir_all(&path);
        } else if name.starts_with(".tmp") {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
