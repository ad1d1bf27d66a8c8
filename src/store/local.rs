//! Records of one process: in a folder, one file a record, written whole or not at all; or nowhere.
//!
//! Nobody else changes them, so nothing is ever refused for what somebody else did.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use actors::TenantId;
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, pending, ready};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{
    Change, Follower, Keeping, Key, Kind, Reach, Record, Seen, Store, StoreError, Version,
};

/// Longest file that is read: the largest head, as text, and its record.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// Records of one process.
#[derive(Debug)]
pub struct Local {
    /// `None`: they end with the process.
    folder: Option<PathBuf>,
}

/// What a folder held at the start, oldest first.
#[derive(Debug)]
pub struct Loaded(pub Vec<Record>);

impl Local {
    /// A store that keeps nothing.
    pub fn nowhere() -> Self {
        Self { folder: None }
    }

    /// A store in this folder, with what is in it: all files that can be read; the others are told of
    /// and left alone. What a process that was killed was writing is removed.
    ///
    /// # Errors
    /// A folder that cannot be read or written.
    pub fn open(folder: &Path) -> std::io::Result<(Self, Loaded)> {
        let loaded = read_all(folder)?;
        Ok((Self { folder: Some(folder.to_owned()) }, Loaded(loaded)))
    }

    fn make(&self, changes: &[Change]) -> Result<Version, StoreError> {
        let Some(folder) = &self.folder else { return Ok(Version::default()) };
        let failed =
            |error: std::io::Error| StoreError::Disk(format!("{}: {error}", folder.display()));
        for Change { key, body, .. } in changes {
            match body {
                Some(body) => write(folder, key, body).map_err(failed)?,
                None => remove(folder, key).map_err(failed)?,
            }
        }
        Ok(Version::default())
    }
}

impl Store for Local {
    fn keeping(&self) -> Keeping {
        if self.folder.is_some() { Keeping::Disk } else { Keeping::Process }
    }

    fn version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        ready(Ok(Version::default())).boxed()
    }

    /// All or none, but where the disk fails midway. The number is always 0: who alone makes changes
    /// counts them itself.
    fn change(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Version, StoreError>> {
        ready(self.make(&changes)).boxed()
    }

    fn catch_up<'a>(
        &'a self,
        seen: &'a Seen,
        _: &'a dyn Follower,
    ) -> BoxFuture<'a, Result<Seen, StoreError>> {
        ready(Ok(seen.clone())).boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        pending().boxed()
    }

    fn reach(&self) -> Option<Reach> {
        None
    }
}

/// Writes a record; a crash at any time leaves the old file or the new one.
fn write(folder: &Path, key: &Key, body: &str) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let record: Value = serde_json::from_str(body)?;
    let (kind, tenant) = (key.kind.as_str(), &*key.tenant.0);
    let stored = json!({"kind": kind, "tenant": tenant, "at_ns": at_ns, "record": record});
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(stored.to_string().as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path(folder, key)).map_err(|error| error.error)?;
    // So that the name is there after a crash too.
    fs::File::open(folder)?.sync_all()
}

/// Removes a record's file, if there is one.
fn remove(folder: &Path, key: &Key) -> std::io::Result<()> {
    match fs::remove_file(path(folder, key)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn read_all(folder: &Path) -> std::io::Result<Vec<Record>> {
    fs::create_dir_all(folder)?;
    // A folder that cannot be written is to be known before examples are read for nothing.
    drop(tempfile::NamedTempFile::new_in(folder)?);
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with(".tmp") {
            // Another process may have removed it first.
            let _ = fs::remove_file(&path);
        }
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &PathBuf| match read(path) {
        Ok(record) => Some(record),
        Err(why) => {
            tracing::error!("{} is no task and is left out: {why}", path.display());
            None
        }
    };
    let mut records: Vec<Record> = paths.iter().filter_map(read).collect();
    records.sort_by_key(|record| record.version);
    Ok(records)
}

/// The record of a file. Its version is when it was written, in nanoseconds since 1970: of several
/// tasks the newest holds.
fn read(path: &Path) -> Result<Record, String> {
    let facts = fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() || facts.len() > FILE_BYTES_MAX {
        return Err(format!("it is no regular file of at most {FILE_BYTES_MAX} bytes"));
    }
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let stored: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let kind = match stored["kind"].as_str().and_then(Kind::named) {
        Some(kind @ (Kind::Task | Kind::Abstention)) => kind,
        Some(Kind::Keys) | None => return Err("kind is neither task nor abstention".to_owned()),
    };
    let tenant = stored["tenant"].as_str().ok_or("tenant is no text")?;
    let version = Version(stored["at_ns"].as_u64().unwrap_or_default());
    let id = stored["record"]["id"].as_str().unwrap_or_default().to_owned();
    let key = Key { kind, tenant: TenantId(tenant.into()), id };
    Ok(Record { key, version, body: Some(Arc::from(stored["record"].to_string())) })
}

/// The name is a hash: ids and tenants may have any letters.
fn path(folder: &Path, key: &Key) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update((key.tenant.0.len() as u64).to_le_bytes());
    hash.update(key.tenant.0.as_bytes());
    hash.update(key.id.as_bytes());
    let name = u128::from_be_bytes(hash.finalize()[..16].try_into().unwrap_or_default());
    folder.join(format!("{}-{name:032x}.json", key.kind.as_str()))
}
