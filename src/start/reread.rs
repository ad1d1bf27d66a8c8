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

/// Calls `read_again` when one of the files is no longer what it was, and at each SIGHUP, for ever.
/// Without it that signal would end the process, so it is to be called where there are no files too.
///
/// * `seen`: what the files were before they were read.
///
/// # Errors
/// [`StartError::System`] when the system gives no handler for the signal.
pub(super) fn follow(
    files: Vec<PathBuf>,
    seen: Vec<Option<Stamp>>,
    read_again: impl Fn() -> BoxFuture<'static, ()> + Send + 'static,
) -> Result<(), StartError> {
    let mut asked = signal(SignalKind::hangup())
        .map_err(|error| StartError::System(format!("SIGHUP: {error}")))?;
    tokio::spawn(async move {
        let mut watched: Vec<Watched> = seen.into_iter().map(Watched::new).collect();
        let mut look = tokio::time::interval(LOOK_EVERY);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_asked = tokio::select! {
                asked = asked.recv() => asked.is_some(),
                _ = look.tick() => false,
            };
            // All are asked, or a change of a later one would be told twice.
            let now = watched.iter_mut().zip(stamps(&files));
            let changed = now.filter_map(|(file, now)| file.changed(now).then_some(())).count();
            if is_asked || changed > 0 {
                read_again().await;
            }
        }
    });
    Ok(())
}
