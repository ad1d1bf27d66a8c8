//! Files that others change: what one was when it was looked at, and whether it is another now.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What nobody but the owner of a secret should: the group writing, others anything.
const EXPOSED: u32 = 0o027;

/// What a file was when it was looked at. Equal stamps at two times mean the same file with the same
/// content: the status time changes with every write and rename and cannot be set back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    file: (u64, u64, u64),
    modified: (i64, i64),
    changed: (i64, i64),
    mode: u32,
}

/// The last stamp that was seen of a file, to tell whether it is another now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watched(Option<Stamp>);

impl Stamp {
    /// What a file with this metadata is.
    pub fn of(found: &Metadata) -> Self {
        Self {
            file: (found.dev(), found.ino(), found.len()),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
            mode: found.mode() & 0o7777,
        }
    }

    /// What the file at a path is; `None` where it is not there or cannot be looked at. Links are
    /// followed.
    pub fn of_file(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().map(|found| Self::of(&found))
    }

    /// What is to be said of the rights of a file with secrets: others can read or write it.
    pub fn warning(&self) -> Option<String> {
        let mode = self.mode;
        (mode & EXPOSED != 0).then(|| {
            format!("others than its owner may read or write it (mode {mode:o}); chmod 600")
        })
    }
}

impl Watched {
    /// Begins with what was loaded; `None` where nothing was.
    pub fn new(seen: Option<Stamp>) -> Self {
        Self(seen)
    }

    /// Whether the file is not what it was when this was last asked; `None` is one that is not there.
    /// A change is told once, also when what is there then cannot be read.
    pub fn changed(&mut self, now: Option<Stamp>) -> bool {
        std::mem::replace(&mut self.0, now) != now
    }
}
