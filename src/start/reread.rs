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

/// What came of reading files again.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// What is in them is in force, or cannot be and was told of: nothing is to be done until one changes.
    Settled,
    /// The system would not read them, for which the text is what is to be told. Nobody needs to change
    /// a file for that to pass, so no change would ever say that it is time to read it.
    Later(String),
}

impl Read {
    /// Of files that could not be used.
    ///
    /// * `passes`: whether nobody needs to change one of them for that to end.
    pub(super) fn failed(passes: bool, told: String) -> Self {
        if passes {
            return Self::Later(told);
        }
        tracing::error!("{told}");
        Self::Settled
    }
}

/// What the files are now, in their order; `None` for one that is not there. Links are followed.
pub(super) fn stamps(files: &[PathBuf]) -> Vec<Option<Stamp>> {
    files.iter().map(|path| Stamp::of_file(path)).collect()
}

/// Calls `read_again` when one of the files is no longer what it was, at each SIGHUP, and at every look
/// while they are to be read [later](Read::Later), for ever. Without it that signal would end the process, so it is to be called where there are no files too.
///
/// * `seen`: what the files were before they were read.
///
/// # Errors
/// [`StartError::System`] when the system gives no handler for the signal.
pub(super) fn follow(
    files: Vec<PathBuf>,
    seen: Vec<Option<Stamp>>,
    read_again: impl Fn() -> BoxFuture<'static, Read> + Send + 'static,
) -> Result<(), StartError> {
    let mut asked = signal(SignalKind::hangup())
        .map_err(|error| StartError::System(format!("SIGHUP: {error}")))?;
    tokio::spawn(async move {
        let mut watched: Vec<Watched> = seen.into_iter().map(Watched::new).collect();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut is_due = false;
        loop {
            let is_asked = tokio::select! {
                asked = asked.recv() => asked.is_some(),
                _ = look.tick() => false,
            };
            // All are asked, or a change of a later one would be told twice.
            let now = watched.iter_mut().zip(stamps(&files));
            let changed = now.filter_map(|(file, now)| file.changed(now).then_some(())).count();
            let is_new = is_asked || changed > 0;
            if !is_new && !is_due {
                continue;
            }
            let read = read_again().await;
            // Of all looks of which nothing comes, the first is told of.
            if let Read::Later(told) = &read
                && (is_new || !is_due)
            {
                tracing::error!("{told}\nit is tried again every {LOOK_EVERY:?} until it is read");
            }
            is_due = read != Read::Settled;
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures_util::FutureExt as _;

    use super::*;

    /// How often files are read in ten seconds, of which the system lets `denied` not succeed.
    async fn reads(denied: usize) -> usize {
        let written = tempfile::NamedTempFile::new().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let own = Arc::clone(&count);
        let read = move || {
            let before = own.fetch_add(1, Ordering::SeqCst);
            let later = || Read::Later("no file can be opened".to_owned());
            futures_util::future::ready(if before < denied { later() } else { Read::Settled })
                .boxed()
        };
        // One that was not there is a change; after it there is none.
        follow(vec![written.path().to_owned()], vec![None], read).unwrap();
        tokio::time::sleep(Duration::from_secs(10)).await;
        count.load(Ordering::SeqCst)
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_could_not_be_read_are_tried_until_they_are() {
        assert_eq!(reads(0).await, 1);
        assert_eq!(reads(7).await, 8, "without another change");
    }
}
