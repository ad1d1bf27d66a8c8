//! Why usage cannot be kept, read or written.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

/// Why usage cannot be kept, read or written.
#[derive(Debug, Error)]
pub enum UsageError {
    /// Another process counts there.
    #[error("{}: another process keeps its usage there", .0.display())]
    InUse(PathBuf),
    /// Nothing was ever counted there.
    #[error("{}: no usage was ever counted there", .0.display())]
    Absent(PathBuf),
    /// The file system said no.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The store is not what was written.
    #[error(
        "{}: the usage store is damaged ({message}); move it away to count from 0, or put a copy of \
         it in its place", .path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        message: String,
    },
    /// A store of a version that is not known yet.
    #[error("{}: a usage store of format {format}; this version knows {known}", .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// What it says of itself.
        format: u64,
        /// The newest that is known.
        known: u64,
    },
    /// The store said no for a reason of its own.
    #[error("{}: {message}", .path.display())]
    Store {
        /// The file.
        path: PathBuf,
        /// Why.
        message: String,
    },
    /// No thread for the flushes.
    #[error("no thread that writes usage: {0}")]
    Thread(io::Error),
    /// The last flush did not end in time.
    #[error("the last flush of usage took longer than {0:?}")]
    Late(Duration),
    /// The last flush failed, and what it would have written is lost.
    #[error("the last usage could not be written: {0}")]
    Unwritten(String),
}

impl UsageError {
    pub(super) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    pub(super) fn damaged(path: &Path, message: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), message: message.into() }
    }

    /// What the store's library says of `path`.
    pub(super) fn of_store(path: &Path, error: redb::Error) -> Self {
        if let redb::Error::Io(source) = error {
            return if is_damage(&source) {
                Self::damaged(path, source.to_string())
            } else {
                Self::io(path, source)
            };
        }
        if matches!(error, redb::Error::DatabaseAlreadyOpen) {
            return Self::InUse(path.to_owned());
        }
        let message = error.to_string();
        if is_foreign(&error) {
            return Self::damaged(path, message);
        }
        Self::Store { path: path.to_owned(), message }
    }
}

/// Whether a file is not what this version writes.
fn is_foreign(error: &redb::Error) -> bool {
    matches!(
        error,
        redb::Error::Corrupted(_)
            | redb::Error::UpgradeRequired(_)
            | redb::Error::TableTypeMismatch { .. }
            | redb::Error::TableIsMultimap(_)
            | redb::Error::TypeDefinitionChanged { .. }
            | redb::Error::TableDoesNotExist(_)
    )
}

/// Whether a file's content is to blame: too short, or none of the store's.
fn is_damage(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
}
