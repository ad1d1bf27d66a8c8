//! Whether files stayed as they were while they were read: nobody replaced them or wrote to them.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use super::FilesError;
use super::fingerprint::weight_files;

/// What a file was: device, inode, bytes, and when its content and its status changed.
type State = (u64, u64, u64, (i64, i64), (i64, i64));

/// The state of a model's weight files at one time. The status time changes with every write and
/// rename and cannot be set back, so equal states at two times mean that the path led to the same
/// bytes between them.
#[derive(Debug, Clone, Default)]
pub struct Witness(Vec<(PathBuf, State)>);

impl Witness {
    /// The state now.
    ///
    /// # Errors
    /// [`FilesError`] when a file cannot be looked at.
    pub fn of(path: &Path) -> Result<Self, FilesError> {
        let files = weight_files(path)?.into_iter();
        let states = files.map(|file| match state(&file) {
            Ok(state) => Ok((file, state)),
            Err(error) => Err(FilesError::io(&file, error)),
        });
        Ok(Self(states.collect::<Result<_, _>>()?))
    }

    /// Whether every file still is what it was.
    pub fn holds(&self) -> bool {
        self.0.iter().all(|(file, before)| state(file).is_ok_and(|now| now == *before))
    }
}

fn state(file: &Path) -> std::io::Result<State> {
    let found = fs::metadata(file)?;
    let changed = (found.mtime(), found.mtime_nsec());
    Ok((found.dev(), found.ino(), found.len(), changed, (found.ctime(), found.ctime_nsec())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_and_renaming_are_seen_even_if_the_time_is_set_back() {
        let dir = tempfile::tempdir().unwrap();
        let (file, other) = (dir.path().join("a.gguf"), dir.path().join("b.gguf"));
        fs::write(&file, "weights").unwrap();
        fs::write(&other, "weights").unwrap();
        let before = Witness::of(&file).unwrap();
        assert!(before.holds());

        let modified = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "Weights").unwrap();
        fs::write(&file, "weights").unwrap();
        fs::File::options().append(true).open(&file).unwrap().set_modified(modified).unwrap();
        assert!(!before.holds(), "it was written to");

        let before = Witness::of(&file).unwrap();
        fs::rename(&other, &file).unwrap();
        assert!(!before.holds(), "another file lies there");
    }
}
