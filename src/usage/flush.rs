//! Flushes: what changed goes to the store, and a store that fails loses nothing that is in memory.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::error::UsageError;
use super::ledger::{Changes, Ledger};

/// Time between two tries of a store that fails: each looks at the whole file again.
pub(super) const RETRY_EVERY: Duration = Duration::from_secs(5);

/// Time between two lines in the log about a store that goes on to fail.
pub(super) const TELL_EVERY: Duration = Duration::from_mins(1);

/// Where changes are written to.
pub(super) trait Shelf: Send {
    /// Writes all of the changes or none.
    ///
    /// # Errors
    /// Why none of them are written; or nobody knows whether they are.
    fn write(&mut self, changes: &Changes) -> Result<(), UsageError>;

    /// Whether what was written before is still there.
    fn is_open(&self) -> bool;
}

/// How the flushes are doing.
#[derive(Debug, Clone, Default)]
pub struct Status {
    /// Everything that was counted before this is in the store. `None` before the first flush.
    pub settled_at: Option<Instant>,
    /// How long the last flush with something to write took.
    pub took: Duration,
    /// Flushes that wrote something.
    pub flushes: u64,
    /// Flushes that failed.
    pub failures: u64,
    /// Since when all flushes failed; `None` while they succeed.
    pub failing_since: Option<Instant>,
    /// Why the last one failed that did.
    pub last_error: Option<String>,
}

/// Writes the ledger's changes to a shelf, one flush at a time.
pub(super) struct Flusher<S> {
    ledger: Arc<Ledger>,
    shelf: S,
    status: Arc<Mutex<Status>>,
    /// Whether the shelf may lack what was taken before, so that everything is to be written.
    all: bool,
    retry_at: Option<Instant>,
    told_at: Option<Instant>,
}

impl<S: Shelf> Flusher<S> {
    pub(super) fn new(ledger: Arc<Ledger>, shelf: S, status: Arc<Mutex<Status>>) -> Self {
        Self { ledger, shelf, status, all: false, retry_at: None, told_at: None }
    }

    /// A flush, unless the last one failed a moment ago.
    pub(super) fn tick(&mut self, now: Instant) {
        if self.retry_at.is_none_or(|at| now >= at) {
            self.flush(now);
        }
    }

    /// A flush. `now` is the time before anything is taken.
    pub(super) fn flush(&mut self, now: Instant) {
        let changes = if self.all || !self.shelf.is_open() {
            self.ledger.take_all()
        } else {
            self.ledger.take_changes()
        };
        if changes == Changes::default() {
            self.status().settled_at = Some(now);
            return;
        }
        let started = Instant::now();
        let written = catch_unwind(AssertUnwindSafe(|| self.shelf.write(&changes)));
        match written {
            Ok(Ok(())) => self.succeeded(now, started.elapsed()),
            Ok(Err(error)) => self.failed(now, error.to_string()),
            Err(_) => self.failed(now, "the flush panicked".to_owned()),
        }
    }

    fn succeeded(&mut self, now: Instant, took: Duration) {
        (self.all, self.retry_at, self.told_at) = (false, None, None);
        let mut status = self.status();
        status.settled_at = Some(now);
        status.took = took;
        status.flushes += 1;
        if status.failing_since.take().is_some() {
            tracing::info!("usage is written again, with all that was counted meanwhile");
        }
    }

    fn failed(&mut self, now: Instant, error: String) {
        (self.all, self.retry_at) = (true, Some(now + RETRY_EVERY));
        if self.told_at.is_none_or(|at| now >= at + TELL_EVERY) {
            self.told_at = Some(now);
            tracing::error!(error, "usage cannot be written; it is counted in memory meanwhile");
        }
        let mut status = self.status();
        status.failures += 1;
        status.failing_since.get_or_insert(now);
        status.last_error = Some(error);
    }

    fn status(&self) -> MutexGuard<'_, Status> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
