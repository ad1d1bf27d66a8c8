//! A shared store in memory, for tests: the rules of the database, without one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, ready};
use tokio::sync::Notify;

use super::{
    Change, Follower, Keeping, Key, Reach, Record, Seen, Store, StoreError, Version, check_base,
};

/// A store that several desks of one process share.
#[derive(Debug)]
pub(crate) struct Memory {
    held: Mutex<Held>,
    changed: Notify,
}

#[derive(Debug)]
struct Held {
    version: Version,
    /// Changes whose removals are remembered.
    kept: u64,
    marks: BTreeMap<Version, String>,
    records: BTreeMap<Key, (Version, Option<Arc<str>>)>,
    is_lost: bool,
}

impl Memory {
    /// One that remembers the removals of so many changes.
    pub(crate) fn remembering(kept: u64) -> Self {
        let held = Held {
            version: Version::default(),
            kept,
            marks: BTreeMap::new(),
            records: BTreeMap::new(),
            is_lost: false,
        };
        Self { held: Mutex::new(held), changed: Notify::new() }
    }

    /// Cannot be reached from now on, or can again.
    pub(crate) fn lose(&self, is_lost: bool) {
        self.held().is_lost = is_lost;
    }

    /// The records that are there.
    pub(crate) fn records(&self) -> Vec<Record> {
        let held = self.held();
        let record = |(key, (version, body)): (&Key, &(Version, Option<Arc<str>>))| {
            let body = Some(Arc::clone(body.as_ref()?));
            Some(Record { key: key.clone(), version: *version, body })
        };
        held.records.iter().filter_map(record).collect()
    }

    /// Makes all changes or none.
    pub(crate) fn make(&self, changes: &[Change]) -> Result<Version, StoreError> {
        let mut held = self.held();
        held.reached()?;
        for Change { key, base, .. } in changes {
            let oldest = Version(held.version.0.saturating_sub(held.kept));
            // Of one that is not there it is not known whether it was younger.
            let current = held.records.get(key).map_or(oldest, |(version, _)| *version);
            check_base(key, *base, current)?;
        }
        for Change { key, body, .. } in changes {
            held.version.0 += 1;
            let version = held.version;
            held.records.insert(key.clone(), (version, body.clone()));
            held.marks.insert(version, format!("{version} {body:?}"));
        }
        let oldest = Version(held.version.0.saturating_sub(held.kept));
        held.marks.retain(|version, _| *version > oldest);
        held.records.retain(|_, (version, body)| body.is_some() || *version > oldest);
        self.changed.notify_waiters();
        Ok(held.version)
    }

    /// Tells of at most `most` changes after `seen`; how far it is seen then is `seen` again where
    /// these were not all.
    pub(crate) fn tell(
        &self,
        seen: &Seen,
        (most, told): (usize, &dyn Follower),
    ) -> Result<Seen, StoreError> {
        let held = self.held();
        held.reached()?;
        let is_known = held.marks.get(&seen.version) == Some(&seen.mark);
        let is_anew = seen.version > Version::default() && !is_known;
        let from = if is_anew { Version::default() } else { seen.version };
        let mut records: Vec<_> =
            held.records.iter().filter(|(_, (version, _))| *version > from).collect();
        records.sort_by_key(|(_, (version, _))| *version);
        if is_anew {
            told.anew();
        }
        for (key, (version, body)) in records.iter().take(most) {
            told.take(Record { key: (*key).clone(), version: *version, body: body.clone() });
        }
        if records.len() > most {
            return Ok(seen.clone());
        }
        told.seen(held.version);
        let mark = held.marks.get(&held.version).cloned().unwrap_or_default();
        Ok(Seen { version: held.version, mark })
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn reached(&self) -> Result<(), StoreError> {
        if self.is_lost {
            return Err(StoreError::Unavailable("it is lost".to_owned()));
        }
        Ok(())
    }
}

impl Store for Memory {
    fn keeping(&self) -> Keeping {
        Keeping::Shared
    }

    fn version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        let held = self.held();
        ready(held.reached().map(|()| held.version)).boxed()
    }

    fn change(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Version, StoreError>> {
        ready(self.make(&changes)).boxed()
    }

    fn catch_up<'a>(
        &'a self,
        seen: &'a Seen,
        told: &'a dyn Follower,
    ) -> BoxFuture<'a, Result<Seen, StoreError>> {
        ready(self.tell(seen, (usize::MAX, told))).boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.changed.notified().boxed()
    }

    fn reach(&self) -> Option<Reach> {
        let held = self.held();
        Some(Reach {
            address: "memory".to_owned(),
            since: std::time::Duration::ZERO,
            lost: held.is_lost.then(|| "it is lost".to_owned()),
            heard: std::time::Duration::ZERO,
            reconnects: 0,
        })
    }
}
