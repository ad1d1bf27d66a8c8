//! A look at the store of a server that does not run: taken from a copy in memory.
//!
//! A store whose server was killed must be repaired before it can be read, which is a write. In a
//! copy that costs nobody anything: reading needs no right to write and leaves everything as it is.

use std::path::Path;

use redb::StorageBackend as _;
use redb::backends::InMemoryBackend;

use super::{folder, guarded, tables};
use crate::usage::error::UsageError;
use crate::usage::ledger::Ledger;

/// Reads all that the store of a folder has.
///
/// # Errors
/// [`UsageError::Absent`]; [`UsageError::InUse`] while a server counts there; a damaged store.
pub(in crate::usage) fn read(path: &Path) -> Result<Ledger, UsageError> {
    let bytes = folder::copy(path)?;
    let store = folder::store(path);
    // The library takes no bytes for a store that it is to make.
    if bytes.is_empty() {
        return Err(UsageError::damaged(&store, "it is empty"));
    }
    let ledger = Ledger::default();
    guarded(&store, || {
        let copy = InMemoryBackend::new();
        copy.set_len(bytes.len() as u64)?;
        copy.write(0, &bytes)?;
        drop(bytes);
        let mut builder = super::builder();
        let database = builder.set_check_integrity_on_open(true).create_with_backend(copy)?;
        tables::load(&database, &ledger)
    })?;
    Ok(ledger)
}
