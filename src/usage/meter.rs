//! The meter: what the server counts with and reads from, and the thread that writes.

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use actors::{Account, TenantId, Work};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};

use super::counts::Counts;
use super::day::{Day, Moment};
use super::error::UsageError;
use super::flush::{Flusher, Shelf, Status};
use super::ledger::Ledger;
use super::store::{self, Store};
use super::view::{self, Usage, UsageOfAll};
use super::{DAYS_MAX, FLUSH_EVERY};

/// Counts usage in memory and has it written by a thread of its own.
pub struct Meter {
    ledger: Arc<Ledger>,
    status: Arc<Mutex<Status>>,
    /// `None` where nothing is written.
    thread: Option<Thread>,
}

/// What is left of the flushes' thread on this side.
struct Thread {
    /// Tells it to end; it ends as well when this is dropped.
    stop: Sender<()>,
    /// Closed by the thread when it has ended and the store is free.
    ended: Receiver<()>,
}

impl fmt::Debug for Meter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let written = self.thread.is_some();
        formatter.debug_struct("Meter").field("written", &written).finish_non_exhaustive()
    }
}

impl Meter {
    /// Opens the store of a folder, reads what it has and begins to write to it.
    ///
    /// # Errors
    /// Another server counts there, the folder or the store cannot be written, or the store is
    /// damaged: see [`UsageError`].
    pub fn open(folder: &Path) -> Result<Self, UsageError> {
        let (store, ledger) = Store::open(folder)?;
        Self::writing(ledger, store, FLUSH_EVERY)
    }

    /// A meter that writes nothing: what it counts ends with the process.
    pub fn in_memory() -> Self {
        Self::of(Ledger::default())
    }

    /// What a folder's store has, read from a copy; nothing is written, and nobody is kept out.
    ///
    /// # Errors
    /// [`UsageError::Absent`]; [`UsageError::InUse`] while a server counts there; a damaged store.
    pub fn read(folder: &Path) -> Result<Self, UsageError> {
        store::read(folder).map(Self::of)
    }

    fn of(ledger: Ledger) -> Self {
        Self { ledger: Arc::new(ledger), status: Arc::default(), thread: None }
    }

    pub(super) fn writing(
        ledger: Ledger,
        shelf: impl Shelf + 'static,
        every: Duration,
    ) -> Result<Self, UsageError> {
        let mut meter = Self::of(ledger);
        let (stop, stopped) = bounded(1);
        let (ending, ended) = bounded(0);
        let flusher = Flusher::new(Arc::clone(&meter.ledger), shelf, Arc::clone(&meter.status));
        let work = move || {
            let _ending: Sender<()> = ending;
            run(flusher, &stopped, every);
        };
        let thread = thread::Builder::new().name("usage".to_owned()).spawn(work);
        thread.map_err(UsageError::Thread)?;
        meter.thread = Some(Thread { stop, ended });
        Ok(meter)
    }

    /// Closed once the thread has ended.
    #[cfg(test)]
    pub(super) fn ended(&self) -> Option<Receiver<()>> {
        self.thread.as_ref().map(|thread| thread.ended.clone())
    }

    /// Counts something for a tenant, or for a sub-tenant `PARENT/SUB`, now.
    pub fn add(&self, tenant: &TenantId, counts: Counts) {
        self.add_at(tenant, counts, SystemTime::now());
    }

    /// Counts something for the day to which `now` belongs.
    pub fn add_at(&self, tenant: &TenantId, counts: Counts, now: SystemTime) {
        self.ledger.add(&tenant.0, counts, Moment::of(now));
    }

    /// Usage of a tenant with its sub-tenants, or of one sub-tenant, and of its last `days` days (at
    /// most [`DAYS_MAX`]); zeros for one that was never counted.
    pub fn usage(&self, tenant: &str, days: u32, now: SystemTime) -> Usage {
        view::of_one(&self.ledger, tenant, shown(days), Day::of(now))
    }

    /// Usage of all tenants, with the sum of their last `days` days.
    pub fn usage_of_all(&self, days: u32, now: SystemTime) -> UsageOfAll {
        view::of_all(&self.ledger, shown(days), Day::of(now))
    }

    /// How the flushes are doing.
    pub fn status(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what is left and gives the store free, waiting for it at most `wait`. What is counted
    /// later is not written.
    ///
    /// # Errors
    /// [`UsageError::Late`] where the flush is not over in time, which it may still be afterwards;
    /// [`UsageError::Unwritten`] where it failed.
    pub fn close(&self, wait: Duration) -> Result<(), UsageError> {
        let Some(thread) = &self.thread else { return Ok(()) };
        // Full or closed: it was told already, or has ended.
        let _ = thread.stop.try_send(());
        if thread.ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
            return Err(UsageError::Late(wait));
        }
        let status = self.status();
        match (status.failing_since, status.last_error) {
            (Some(_), Some(error)) => Err(UsageError::Unwritten(error)),
            _ => Ok(()),
        }
    }
}

impl Account for Meter {
    fn worked(&self, tenant: &TenantId, work: Work) {
        let Work { reads, computed_tokens, cached_tokens } = work;
        self.add(tenant, Counts { reads, computed_tokens, cached_tokens, ..Counts::default() });
    }
}

fn shown(days: u32) -> u32 {
    days.min(u32::try_from(DAYS_MAX).unwrap_or(u32::MAX))
}

/// Flushes until it is told to stop, and then once more.
fn run(mut flusher: Flusher<impl Shelf>, stopped: &Receiver<()>, every: Duration) {
    let mut next = Instant::now() + every;
    while stopped.recv_deadline(next) == Err(RecvTimeoutError::Timeout) {
        let now = Instant::now();
        flusher.tick(now);
        // From one beginning to the next, so that a slow disk does not add to what can be lost.
        next = now + every;
    }
    flusher.flush(Instant::now());
}
