//! A store that fails: nothing that was counted is lost, and whoever looks is told.
//!
//! Goal: the numbers are right as soon as the store is, whatever it did meanwhile. Method: a shelf
//! that fails, panics or forgets as it is told, and times that are arguments.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use actors::TenantId;

use crate::usage::error::UsageError;
use crate::usage::flush::{Flusher, RETRY_EVERY, Shelf, Status};
use crate::usage::ledger::{Changes, Ledger};
use crate::usage::{Counts, Meter};

/// What the next write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Next {
    #[default]
    Writes,
    /// Fails; whether the changes are there nobody knows.
    Fails,
    Panics,
}

/// A shelf in memory that the test keeps a hand on.
#[derive(Debug, Clone, Default)]
struct Fake(Arc<Mutex<Held>>);

#[derive(Debug, Default)]
struct Held {
    next: Next,
    is_open: bool,
    /// Reads of each account, as the shelf has them.
    reads: std::collections::BTreeMap<String, u64>,
    tries: usize,
}

impl Shelf for Fake {
    fn write(&mut self, changes: &Changes) -> Result<(), UsageError> {
        let next = self.0.lock().unwrap().next;
        assert_ne!(next, Next::Panics, "as it was told");
        let mut held = self.0.lock().unwrap();
        held.tries += 1;
        held.is_open = next == Next::Writes;
        if next == Next::Fails {
            return Err(UsageError::Late(Duration::ZERO));
        }
        if changes.all {
            held.reads.clear();
        }
        for (name, change) in &changes.accounts {
            held.reads.insert(name.to_string(), change.total.reads);
        }
        Ok(())
    }

    fn is_open(&self) -> bool {
        self.0.lock().unwrap().is_open
    }
}

impl Fake {
    fn open() -> Self {
        let fake = Self::default();
        fake.0.lock().unwrap().is_open = true;
        fake
    }

    fn then(&self, next: Next) {
        self.0.lock().unwrap().next = next;
    }

    fn reads(&self, name: &str) -> u64 {
        self.0.lock().unwrap().reads.get(name).copied().unwrap_or(0)
    }

    fn tries(&self) -> usize {
        self.0.lock().unwrap().tries
    }
}

fn reads(reads: u64) -> Counts {
    Counts { reads, ..Counts::default() }
}

fn flusher() -> (Flusher<Fake>, Fake, Arc<Ledger>, Arc<Mutex<Status>>) {
    let (fake, ledger, status) = (Fake::open(), Arc::<Ledger>::default(), Arc::default());
    let flusher = Flusher::new(Arc::clone(&ledger), fake.clone(), Arc::clone(&status));
    (flusher, fake, ledger, status)
}

fn add(ledger: &Ledger, name: &str, count: u64) {
    ledger.add(name, reads(count), crate::usage::day::Moment(86_400));
}

#[test]
fn what_could_not_be_written_is_written_with_the_next_flush() {
    let (mut flusher, fake, ledger, status) = flusher();
    let start = Instant::now();
    add(&ledger, "a", 1);
    flusher.tick(start);
    for (next, expected) in [(Next::Panics, 2), (Next::Fails, 3)] {
        fake.then(next);
        add(&ledger, "a", 1);
        flusher.flush(start);
        assert!(status.lock().unwrap().failing_since.is_some());
        assert_eq!(fake.reads("a"), expected - 1);
        fake.then(Next::Writes);
        add(&ledger, "b", 1);
        flusher.flush(start);
        assert_eq!((fake.reads("a"), fake.reads("b")), (expected, expected - 1));
    }
    let status = status.lock().unwrap().clone();
    assert_eq!((status.flushes, status.failures, status.failing_since), (3, 2, None));
    let last = UsageError::Late(Duration::ZERO).to_string();
    assert_eq!(status.last_error, Some(last));
}

#[test]
fn a_store_that_fails_is_tried_again_after_a_while_only() {
    let (mut flusher, fake, ledger, status) = flusher();
    let start = Instant::now();
    fake.then(Next::Fails);
    add(&ledger, "a", 1);
    for half_second in 0..20 {
        flusher.tick(start + Duration::from_millis(500) * half_second);
    }
    assert_eq!(fake.tries(), 2, "at 0 s and 5 s");
    assert_eq!(status.lock().unwrap().failing_since, Some(start));
    assert_eq!(status.lock().unwrap().settled_at, None);
    fake.then(Next::Writes);
    flusher.tick(start + RETRY_EVERY * 2);
    assert_eq!((fake.tries(), fake.reads("a")), (3, 1));
    assert_eq!(status.lock().unwrap().settled_at, Some(start + RETRY_EVERY * 2));
}

#[test]
fn a_store_that_lost_everything_gets_everything() {
    let (mut flusher, fake, ledger, _) = flusher();
    let start = Instant::now();
    add(&ledger, "a", 5);
    flusher.tick(start);
    *fake.0.lock().unwrap() = Held::default();
    add(&ledger, "b", 1);
    flusher.tick(start);
    assert_eq!((fake.reads("a"), fake.reads("b")), (5, 1));
}

#[test]
fn nothing_is_written_where_nothing_changed() {
    let (mut flusher, fake, ledger, status) = flusher();
    let start = Instant::now();
    flusher.tick(start);
    add(&ledger, "a", 1);
    flusher.tick(start + Duration::from_secs(1));
    flusher.tick(start + Duration::from_secs(2));
    assert_eq!(fake.tries(), 1);
    assert_eq!(status.lock().unwrap().settled_at, Some(start + Duration::from_secs(2)));
}

fn tenant(name: &str) -> TenantId {
    TenantId(name.into())
}

#[test]
fn closing_writes_what_is_left() {
    let fake = Fake::open();
    let meter = Meter::writing(Ledger::default(), fake.clone(), Duration::from_hours(1)).unwrap();
    meter.add(&tenant("a"), reads(4));
    assert_eq!(fake.reads("a"), 0);
    meter.close(Duration::from_mins(1)).unwrap();
    assert_eq!(fake.reads("a"), 4);
    meter.close(Duration::from_mins(1)).unwrap();
}

#[test]
fn closing_says_when_the_last_flush_fails_or_hangs() {
    let fake = Fake::open();
    let meter = Meter::writing(Ledger::default(), fake.clone(), Duration::from_hours(1)).unwrap();
    meter.add(&tenant("a"), reads(4));
    let hung = fake.0.lock().unwrap();
    assert!(matches!(meter.close(Duration::from_millis(20)), Err(UsageError::Late(_))));
    drop(hung);
    meter.close(Duration::from_mins(1)).unwrap();

    let fake = Fake::open();
    fake.then(Next::Fails);
    let meter = Meter::writing(Ledger::default(), fake, Duration::from_hours(1)).unwrap();
    meter.add(&tenant("a"), reads(4));
    let error = meter.close(Duration::from_mins(1)).unwrap_err();
    assert!(matches!(error, UsageError::Unwritten(_)), "{error}");
}

#[test]
fn a_meter_that_is_dropped_writes_what_is_left() {
    let fake = Fake::open();
    let meter = Meter::writing(Ledger::default(), fake.clone(), Duration::from_hours(1)).unwrap();
    meter.add(&tenant("a"), reads(4));
    let ended = meter.ended().unwrap();
    drop(meter);
    assert!(ended.recv_timeout(Duration::from_mins(1)).is_err());
    assert_eq!(fake.reads("a"), 4);
}

#[test]
fn a_meter_in_memory_counts_and_closes() {
    let meter = Meter::in_memory();
    meter.add(&tenant("a"), reads(4));
    meter.close(Duration::ZERO).unwrap();
    assert_eq!(meter.usage("a", 1, std::time::SystemTime::now()).recent.reads, 4);
}
