//! One file, whatever way it comes: the ways in their order, and the check at the end.

use std::fmt;
use std::path::Path;

use super::assembly::{Assembly, Wanted};
use super::error::{Failure, PullError};
use super::progress::Progress;

/// One way to a file.
pub trait Source: fmt::Debug {
    /// The way in words, for the message when no way worked.
    fn describe(&self) -> String;

    /// Brings what is still missing of the file to its end.
    ///
    /// # Errors
    /// [`Failure::Way`] and [`Failure::Damaged`] when another way may be tried, [`Failure::Local`]
    /// when none will help.
    fn fetch(&self, assembly: &mut Assembly<'_>) -> Result<(), Failure>;
}

/// A file that is wanted, and the ways to it, best first.
#[derive(Debug)]
pub struct Item {
    /// The file.
    pub wanted: Wanted,
    /// The ways.
    pub sources: Vec<Box<dyn Source>>,
}

/// Puts a file together in `folder` and, once its size and hash are right, moves it to `target`.
/// Returns its size in bytes and its SHA-256.
///
/// # Errors
/// [`PullError::Unreachable`] naming every way that was tried (`model` is the name in it);
/// [`PullError::DiskFull`] and [`PullError::Io`] at once.
pub fn fetch(
    model: &str,
    item: &Item,
    folder: &Path,
    target: &Path,
    progress: &mut Progress,
) -> Result<(u64, String), PullError> {
    let mut assembly = Assembly::open(folder, &item.wanted, progress)?;
    let mut tried = Vec::new();
    for source in &item.sources {
        match fetch_one_way(source.as_ref(), &mut assembly) {
            Ok(sha256) => {
                let bytes = assembly.bytes();
                assembly.keep(target)?;
                return Ok((bytes, sha256));
            }
            Err(Failure::Local(error)) => return Err(error),
            Err(Failure::Way(why) | Failure::Damaged(why)) => {
                assembly.note(&format!("{}: {why}", source.describe()));
                tried.push(format!("{}: {why}", source.describe()));
            }
        }
    }
    Err(PullError::Unreachable { name: model.to_owned(), tried })
}

/// Fetches and checks. What was kept of an earlier pull may itself be damaged, so a wrong hash
/// after a resumed download starts the same way once more from nothing.
fn fetch_one_way(source: &dyn Source, assembly: &mut Assembly<'_>) -> Result<String, Failure> {
    loop {
        let resumed = assembly.bytes() > 0;
        source.fetch(assembly)?;
        match assembly.check()? {
            Ok(sha256) => return Ok(sha256),
            Err(difference) => {
                assembly.restart()?;
                if !resumed {
                    return Err(Failure::Damaged(format!("it is damaged: {difference}")));
                }
                assembly.note(&format!("what was kept is damaged ({difference}); once more"));
            }
        }
    }
}

#[cfg(test)]
mod tests;
