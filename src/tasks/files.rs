//! Tasks on disk: one file a task, written whole or not at all.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use actors::TenantId;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Longest file that is read: the largest head, as text, and its record.
const FILE_BYTES_MAX: u64 = 512 << 20;

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Task,
    Abstention,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Abstention => "abstention",
        }
    }
}

/// One file.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) kind: Kind,
    pub(super) tenant: TenantId,
    pub(super) record: Value,
    /// When it was written, in nanoseconds since 1970: of several tasks the newest holds.
    at_ns: u64,
}

/// Writes a record; a crash at any time leaves the old file or the new one.
pub(super) fn write(
    folder: &Path,
    kind: Kind,
    (tenant, id): (&TenantId, &str),
    record: &Value,
) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let at_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
    let stored =
        json!({"kind": kind.as_str(), "tenant": &*tenant.0, "at_ns": at_ns, "record": record});
    let text = stored.to_string();
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(path(folder, kind, tenant, id)).map_err(|error| error.error)?;
    // So that the name is there after a crash too.
    fs::File::open(folder)?.sync_all()
}

/// Removes a record's file, if there is one.
pub(super) fn remove(
    folder: &Path,
    kind: Kind,
    (tenant, id): (&TenantId, &str),
) -> std::io::Result<()> {
    match fs::remove_file(path(folder, kind, tenant, id)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// All files that can be read, oldest first; the others are told of and left alone. What a process that
/// was killed was writing is removed.
pub(super) fn read_all(folder: &Path) -> std::io::Result<Vec<Stored>> {
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
        Ok(stored) => Some(stored),
        Err(why) => {
            tracing::error!("{} is no task and is left out: {why}", path.display());
            None
        }
    };
    let mut stored: Vec<Stored> = paths.iter().filter_map(read).collect();
    stored.sort_by_key(|stored| stored.at_ns);
    Ok(stored)
}

fn read(path: &Path) -> Result<Stored, String> {
    let facts = fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() || facts.len() > FILE_BYTES_MAX {
        return Err(format!("it is no regular file of at most {FILE_BYTES_MAX} bytes"));
    }
    let text = fs::read(path).map_err(|error| error.to_string())?;
    let stored: Value = serde_json::from_slice(&text).map_err(|error| error.to_string())?;
    let kind = match stored["kind"].as_str() {
        Some("task") => Kind::Task,
        Some("abstention") => Kind::Abstention,
        _ => return Err("kind is neither task nor abstention".to_owned()),
    };
    let tenant = stored["tenant"].as_str().ok_or("tenant is no text")?;
    let at_ns = stored["at_ns"].as_u64().unwrap_or_default();
    Ok(Stored { kind, tenant: TenantId(tenant.into()), record: stored["record"].clone(), at_ns })
}

/// The name is a hash: ids and tenants may have any letters.
fn path(folder: &Path, kind: Kind, tenant: &TenantId, id: &str) -> PathBuf {
    let mut hash = Sha256::new();
    hash.update((tenant.0.len() as u64).to_le_bytes());
    hash.update(tenant.0.as_bytes());
    hash.update(id.as_bytes());
    let name = u128::from_be_bytes(hash.finalize()[..16].try_into().unwrap_or_default());
    folder.join(format!("{}-{name:032x}.json", kind.as_str()))
}
