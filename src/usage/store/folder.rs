//! The folder of the usage store, and the lock that says who may use it.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::usage::error::UsageError;

/// How often a lock that somebody holds is tried again: a reader holds it while it copies the file.
const LOCK_TRIES: usize = if cfg!(test) { 2 } else { 40 };

/// Time between two tries.
const LOCK_WAIT: Duration = Duration::from_millis(50);

/// The folder, under its lock until it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    store: PathBuf,
    new_store: PathBuf,
    _lock: File,
}

/// Where the store of a folder is.
pub(super) fn store(folder: &Path) -> PathBuf {
    folder.join("usage.redb")
}

/// Where the lock of a folder is.
fn lock(folder: &Path) -> PathBuf {
    folder.join("usage.lock")
}

impl Folder {
    /// Makes the folder where it is absent and takes its lock.
    ///
    /// # Errors
    /// [`UsageError::InUse`] where another process has it, [`UsageError::Io`].
    pub(super) fn hold(path: &Path) -> Result<Self, UsageError> {
        make(path)?;
        let lock = lock(path);
        let file = File::options().read(true).write(true).create(true).truncate(false).open(&lock);
        let file = file.map_err(|source| UsageError::io(&lock, source))?;
        for left in (0..LOCK_TRIES).rev() {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if left == 0 => {
                    return Err(UsageError::InUse(path.to_owned()));
                }
                Err(TryLockError::WouldBlock) => thread::park_timeout(LOCK_WAIT),
                Err(TryLockError::Error(source)) => return Err(UsageError::io(&lock, source)),
            }
        }
        let (store, new_store) = (store(path), path.join("usage.redb.new"));
        Ok(Self { path: path.to_owned(), store, new_store, _lock: file })
    }

    /// Makes the folder again where somebody removed it.
    ///
    /// # Errors
    /// [`UsageError::Io`].
    pub(super) fn make(&self) -> Result<(), UsageError> {
        make(&self.path)
    }

    /// The folder itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The store.
    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    /// A store in the making.
    pub(super) fn new_store(&self) -> &Path {
        &self.new_store
    }
}

/// Who asked what is nobody's business, so that a new folder is the user's own.
fn make(path: &Path) -> Result<(), UsageError> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|source| UsageError::io(path, source))
}

/// The bytes of a folder's store, which no server has open meanwhile; nothing is written.
///
/// # Errors
/// [`UsageError::Absent`], [`UsageError::InUse`], [`UsageError::Io`].
pub(super) fn copy(path: &Path) -> Result<Vec<u8>, UsageError> {
    let (store, lock) = (store(path), lock(path));
    let held = match File::open(&lock) {
        Ok(file) => Some(file),
        // A store that was put there by hand has no lock, and nobody counts in it.
        Err(error) if is_absent(&error) => None,
        Err(source) => return Err(UsageError::io(&lock, source)),
    };
    match held.as_ref().map(File::try_lock_shared) {
        None | Some(Ok(())) => {}
        Some(Err(TryLockError::WouldBlock)) => return Err(UsageError::InUse(path.to_owned())),
        Some(Err(TryLockError::Error(source))) => return Err(UsageError::io(&lock, source)),
    }
    std::fs::read(&store).map_err(|error| {
        if is_absent(&error) {
            UsageError::Absent(path.to_owned())
        } else {
            UsageError::io(&store, error)
        }
    })
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
