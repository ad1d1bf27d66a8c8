//! The store on disk: one file that is whole after every crash, and the lock of who counts in it.
//!
//! ```text
//! FOLDER/usage.redb        the store; every record absolute, every flush one transaction
//! FOLDER/usage.redb.new    a store in the making: moved into place once it is whole
//! FOLDER/usage.lock        held by the server that counts; the kernel frees it with the process
//! ```
//! The library (redb) writes changed pages beside the old ones and moves its root only after they
//! are on disk; pages have checksums, all of which are looked at when a store is opened. What it
//! makes of a damaged file is caught here, a panic included.

mod folder;
mod reader;
mod tables;

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::{Builder, Database};

use super::error::UsageError;
use super::flush::Shelf;
use super::ledger::{Changes, Ledger};
use folder::Folder;

pub(super) use reader::read;

/// Memory that the library may use for pages.
const CACHE_BYTES: usize = 8 << 20;

/// The store of a server, until it is dropped.
#[derive(Debug)]
pub(super) struct Store {
    folder: Folder,
    /// `None` after a failure: the library wants the file opened anew then.
    database: Option<Database>,
}

impl Store {
    /// Opens the store of a folder, makes one where there is none, and reads all that it has.
    ///
    /// # Errors
    /// Another server counts there, the folder or file cannot be written, or the file is damaged.
    pub(super) fn open(folder: &Path) -> Result<(Self, Ledger), UsageError> {
        let folder = Folder::hold(folder)?;
        let ledger = Ledger::default();
        let database = open(&folder)?;
        let path = folder.store();
        guarded(path, || tables::load(&database, &ledger))?;
        // So that a disk that takes no writes is found at the start.
        guarded(path, || tables::write(&database, &Changes::default()))?;
        Ok((Self { folder, database: Some(database) }, ledger))
    }
}

impl Shelf for Store {
    fn write(&mut self, changes: &Changes) -> Result<(), UsageError> {
        // A file that somebody removed would go on to take what nobody can read afterwards.
        let database = self.database.take().filter(|_| self.folder.store().exists());
        let database = database.map_or_else(|| open(&self.folder), Ok)?;
        guarded(self.folder.store(), || tables::write(&database, changes))?;
        self.database = Some(database);
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.database.is_some() && self.folder.store().exists()
    }
}

/// Opens the file under the folder's lock, after looking at all its checksums.
fn open(folder: &Folder) -> Result<Database, UsageError> {
    let path = folder.store();
    if !path.try_exists().map_err(|source| UsageError::io(path, source))? {
        make(folder)?;
    }
    guarded(path, || Ok(builder().set_check_integrity_on_open(true).open(path)?))
}

/// Makes a store beside the place where it belongs and moves it there, so that a file that was cut
/// to nothing is never taken for one that is new.
fn make(folder: &Folder) -> Result<(), UsageError> {
    folder.make()?;
    let (path, new) = (folder.store(), folder.new_store());
    if new.exists() {
        fs::remove_file(new).map_err(|source| UsageError::io(new, source))?;
    }
    guarded(new, || {
        let database = builder().create(new)?;
        tables::begin(&database)?;
        Ok(database.close()?)
    })?;
    let moved = fs::rename(new, path).and_then(|()| File::open(folder.path())?.sync_all());
    moved.map_err(|source| UsageError::io(path, source))
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Runs something of the library on `path`; its errors, and a panic over a damaged file, in our words.
fn guarded<T>(
    path: &Path,
    run: impl FnOnce() -> Result<T, tables::TableFault>,
) -> Result<T, UsageError> {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(outcome) => outcome.map_err(|fault| fault.told(path)),
        Err(_) => Err(UsageError::damaged(path, "its library cannot make sense of it")),
    }
}

#[cfg(test)]
mod tests;
