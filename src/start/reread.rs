//! Files that are read again while the server runs: when one has changed, or a SIGHUP comes.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::MissedTickBehavior;

use super::StartError;
use crate::watched::{Stamp, Watched};

/// How often the files are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What the files are now, in their order; `None` for one that is not there. Links are followed.
pub(super) fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|path| Stamp::of_file(path)).collect()
}

/// What came of reading files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// What is in them is in force, or cannot be.
    Done,
    /// They could not be opened, for a reason that passes: they are to be read at the next look, since
    /// nothing else would tell that a key was revoked.
    Later,
}

/// Why files are read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// One has changed, or somebody asked for it.
    New,
    /// It was tried before, and was to be tried later.
    Owed,
}

/// Calls `read_again` when one of the files is no longer what it was, and at each SIGHUP, for ever; and
/// again at each look for as long as it says [`Read::Later`].
/// Without it that signal would end the process, so it is to be called where there are no files too.
///
/// * `seen`: what the files were before they were read.
///
/// # Errors
/// [`StartError::System`] when the system gives no handler for the signal.
pub(super) fn follow(
    files: Vec<PathBuf>,
    seen: Vec<Option<Stamp>>,
    read_again: impl Fn(Cause) -> BoxFuture<'static, Read> + Send + 'static,
) -> Result<(), StartError> {
    let mut asked = signal(SignalKind::hangup())
        .map_err(|error| StartError::System(format!("SIGHUP: {error}")))?;
    tokio::spawn(async move {
        let mut watched: Vec<Watched> = seen.into_iter().map(Watched::new).collect();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut before = Read::Done;
        loop {
            let is_asked = tokio::select! {
                asked = asked.recv() => asked.is_some(),
                _ = look.tick() => false,
            };
            // All are asked, or a change of a later one would be told twice.
            let now = watched.iter_mut().zip(stamps(&files));
            let changed = now.filter_map(|(file, now)| file.changed(now).then_some(())).count();
            if is_asked || changed > 0 {
                before = read_again(Cause::New).await;
            } else if before == Read::Later {
                before = read_again(Cause::Owed).await;
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use futures_util::FutureExt as _;
    use futures_util::future::ready;
    use tokio::time::sleep;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_opened_is_read_at_the_next_look() {
        let folder = tempfile::TempDir::new().unwrap();
        let files = vec![folder.path().join("keys.toml")];
        std::fs::write(&files[0], "before").unwrap();
        let calls = Arc::new(Mutex::new(Vec::new()));
        let told = Arc::clone(&calls);
        let read_again = move |cause| {
            let mut calls = told.lock().unwrap();
            calls.push(cause);
            let outcomes = [Read::Later, Read::Later, Read::Done];
            ready(outcomes[calls.len() - 1]).boxed()
        };
        follow(files.clone(), stamps(&files), read_again).unwrap();
        sleep(4 * LOOK_EVERY).await;
        assert_eq!(calls.lock().unwrap().len(), 0, "nothing has changed");
        std::fs::write(&files[0], "and after").unwrap();
        sleep(9 * LOOK_EVERY).await;
        assert_eq!(*calls.lock().unwrap(), [Cause::New, Cause::Owed, Cause::Owed]);
    }
}
