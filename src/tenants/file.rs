//! The key file on disk: read whole, changed under a lock, replaced at once, and watched.

use std::ffi::OsString;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use actors::TenantId;
use tempfile::NamedTempFile;

use super::FILE_BYTES_MAX;
use super::edit::{Change, EditError};
use super::fault::Fault;
use super::key::KeyId;
use super::ring::Keyring;
use super::text::{self, Added};
use crate::watched::Stamp;

/// Rights of a new file: its owner reads and writes.
const MODE: u32 = 0o600;

/// The group's right to read, which a file that has it keeps: a server may read it by that.
const GROUP_READS: u32 = 0o040;

/// Behind a dot and the file's name: the name that a new file has until it takes the old one's place.
/// Only who has the lock writes it, so one that is found was left by an edit that was killed.
const UNFINISHED: &str = ".docket-new";

/// A key file by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFile {
    /// Where it is.
    pub path: PathBuf,
}

impl KeyFile {
    /// The file at this path, whether or not it is there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// What the file is now; `None` where it is not there or cannot be looked at. Links are followed.
    pub fn stamp(&self) -> Option<Stamp> {
        Stamp::of_file(&self.path)
    }

    /// Reads it.
    ///
    /// # Errors
    /// All faults: that it cannot be read, or what is wrong in it.
    pub fn load(&self) -> Result<(Keyring, Stamp), Vec<Fault>> {
        let unread = |error| vec![Fault::unread(self.path.display().to_string(), &error)];
        let (text, stamp) = read(&self.path).map_err(unread)?;
        Ok((Keyring::parse(&text)?, stamp))
    }

    /// Adds a key to a tenant, and sets fields of the tenant; makes file and tenant where they are
    /// absent.
    ///
    /// # Errors
    /// [`EditError`]; the file is then as it was.
    pub fn add(
        &self,
        tenant: &str,
        changes: &[Change],
        (note, expires): (Option<String>, Option<SystemTime>),
        now: SystemTime,
    ) -> Result<Added, EditError> {
        let locked = self.lock()?;
        let old = locked.text()?;
        let at = (self.path.as_path(), old.as_deref());
        let (new, added) = text::with_key(at, (tenant, changes), (note, expires), now)?;
        locked.replace(&new)?;
        Ok(added)
    }

    /// Removes a key; returns whose it was.
    ///
    /// # Errors
    /// [`EditError`]; the file is then as it was.
    pub fn revoke(&self, id: &KeyId) -> Result<TenantId, EditError> {
        let locked = self.lock()?;
        let absent = || io::Error::from(io::ErrorKind::NotFound);
        let old = locked.text()?.ok_or_else(|| self.io(absent()))?;
        let (new, tenant) = text::without_key((self.path.as_path(), &old), id)?;
        locked.replace(&new)?;
        Ok(tenant)
    }

    fn io(&self, source: io::Error) -> EditError {
        EditError::Io { path: self.path.clone(), source }
    }

    /// The file through links, so that it is replaced and not a link to it. A link that leads to no file
    /// is refused: whoever made it wants the file elsewhere, and not one in the link's place.
    fn target(&self) -> Result<PathBuf, EditError> {
        fs::canonicalize(&self.path).or_else(|error| {
            let Ok(target) = fs::read_link(&self.path) else { return Ok(self.path.clone()) };
            let message = format!(
                "it is a link to {}, which cannot be followed: {error}; make a file there, or remove \
                 the link",
                target.display()
            );
            Err(self.io(io::Error::new(error.kind(), message)))
        })
    }

    /// Waits until no other `docket keys` edits a file of this folder. The folder is what is locked:
    /// the file itself is replaced, and a lock of it with it.
    fn lock(&self) -> Result<Locked<'_>, EditError> {
        let path = self.target()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new(".")).to_owned();
        let at = |source| EditError::Io { path: folder.clone(), source };
        let lock = File::open(&folder).map_err(at)?;
        lock.lock().map_err(at)?;
        Ok(Locked { file: self, path, folder, lock })
    }
}

/// A file that nobody else edits until this is dropped.
struct Locked<'f> {
    file: &'f KeyFile,
    path: PathBuf,
    folder: PathBuf,
    /// Its descriptor is the lock, which ends with it, also when the process is killed.
    lock: File,
}

impl Locked<'_> {
    /// What is in it; `None` where it is not there.
    fn text(&self) -> Result<Option<String>, EditError> {
        match read(&self.path) {
            Ok((text, _)) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.file.io(error)),
        }
    }

    /// Puts another file in its place; a crash at any time leaves the old one or the new one.
    fn replace(&self, text: &str) -> Result<(), EditError> {
        self.write(text).map_err(|error| self.file.io(error))
    }

    fn write(&self, text: &str) -> io::Result<()> {
        let mut file = self.unfinished()?;
        let mut mode = MODE;
        if let Ok(old) = fs::metadata(&self.path) {
            mode |= old.mode() & GROUP_READS;
            keep_owner(file.as_file(), &old)?;
        }
        file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        // So that the name is there after a crash too.
        self.lock.sync_all()
    }

    /// A new file beside the old one, in the place of one that was left there; gone when dropped.
    fn unfinished(&self) -> io::Result<NamedTempFile> {
        let mut name = OsString::from(".");
        name.push(self.path.file_name().unwrap_or_default());
        name.push(UNFINISHED);
        let path = self.folder.join(&name);
        let of_it =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(of_it(error)),
            Ok(()) | Err(_) => {}
        }
        // Never one that is there, nor through a link: in a folder of others there may be one again.
        tempfile::Builder::new()
            .prefix(&name)
            .rand_bytes(0)
            .tempfile_in(&self.folder)
            .map_err(of_it)
    }
}

/// Gives a file the owner of the one it replaces: an edit by root must not take it from the server.
fn keep_owner(new: &File, old: &Metadata) -> io::Result<()> {
    let own = new.metadata()?;
    if (own.uid(), own.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(new, Some(old.uid()), Some(old.gid())).map_err(|error| {
        let (uid, gid) = (old.uid(), old.gid());
        let message =
            format!("it belongs to user {uid} and group {gid}, and would not after: {error}");
        io::Error::new(error.kind(), message)
    })
}

/// A file's text, and what the file was before it was read: a change meanwhile is seen as one.
fn read(path: &Path) -> io::Result<(String, Stamp)> {
    // Looked at first, since opening a pipe waits for its writer.
    let is_file = fs::metadata(path)?.is_file();
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "this is not a regular file");
    let file = is_file.then(|| File::open(path)).ok_or_else(no_file)??;
    let stamp = Stamp::of(&file.metadata()?);
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_BYTES_MAX {
        let message = format!("more than {FILE_BYTES_MAX} bytes, which are read at most");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        io::Error::new(io::ErrorKind::InvalidData, format!("byte {at} is not UTF-8"))
    })?;
    Ok((text, stamp))
}
