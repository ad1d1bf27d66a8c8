//! Why a model could not be had: what was tried, what was found, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why a model could not be pulled or found.
#[derive(Debug, Error)]
pub enum PullError {
    /// No catalogue name, no hub reference and no file.
    #[error("{name}: no such model; known are {}, hf:OWNER/REPO[:FILE] or a path", .known.join(", "))]
    Unknown {
        /// What was asked for.
        name: String,
        /// The catalogue's names.
        known: Vec<&'static str>,
    },
    /// A hub reference that is not one.
    #[error("{reference}: {message}")]
    Reference {
        /// What was asked for.
        reference: String,
        /// What is wrong with it.
        message: String,
    },
    /// Pulling is not allowed and the model is not there.
    #[error(
        "{name} is not installed and --offline forbids pulling it; run `docket pull {name}` where there is a network"
    )]
    Offline {
        /// The model.
        name: String,
    },
    /// Every way was tried.
    #[error("{name} could not be pulled; tried {}", .tried.join("; "))]
    Unreachable {
        /// The model.
        name: String,
        /// Each way, and why it failed.
        tried: Vec<String>,
    },
    /// Not enough room before starting.
    #[error(
        "{path}: {name} needs {needed_bytes} bytes of free disk space, {free_bytes} are free; make room or set DOCKET_HOME to another disk"
    )]
    NoSpace {
        /// The model.
        name: String,
        /// Where it would go.
        path: PathBuf,
        /// What is still to come, and room to work in.
        needed_bytes: u64,
        /// What is there.
        free_bytes: u64,
    },
    /// The disk ran full on the way.
    #[error("{path}: the disk is full; what has been downloaded is kept and the next pull resumes")]
    DiskFull {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// An installed file is not what was installed.
    #[error("{path} is damaged: {message}; `docket pull {name}` replaces it")]
    Damaged {
        /// The model.
        name: String,
        /// The file.
        path: PathBuf,
        /// What was expected and what was found.
        message: String,
    },
    /// A folder of the store cannot be made or written.
    #[error("{path} cannot be written: {source}; set --home (DOCKET_HOME) to a folder that can")]
    Home {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The file system said no.
    #[error("{path}: {source}")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl PullError {
    /// Turns an I/O error on `path` into its own kind of failure: a full disk is told apart.
    pub fn io(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if is_full(&source) { Self::DiskFull { path } } else { Self::Io { path, source } }
    }

    /// The same where the store's own folders are made.
    pub(super) fn home(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        if is_full(&source) { Self::DiskFull { path } } else { Self::Home { path, source } }
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// How one way to a file failed: whether another way may be tried.
#[derive(Debug)]
pub enum Failure {
    /// This machine cannot take the file; no other way will help.
    Local(PullError),
    /// This way does not lead to the file; another one may.
    Way(String),
    /// What came this way is damaged; it may come whole next time.
    Damaged(String),
}

impl From<PullError> for Failure {
    fn from(error: PullError) -> Self {
        Self::Local(error)
    }
}
