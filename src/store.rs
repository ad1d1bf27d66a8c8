//! Where records are kept: by this process and its folder, or in a database that several servers share.
//!
//! A record is a text under a kind, a tenant and an id; nothing here knows what it says. Every change
//! has a number, larger than those of all changes before it in the same store, and a record's
//! *version* is the number of the change that it comes from. Who has seen all changes up to a number
//! knows by it alone what it has not seen. A change names the number that was the last when work on it
//! began: if the record was changed after that, it is refused (compare and swap). A record that
//! was removed stays known by its version while somebody may not have seen the removal, so that what
//! is older never comes back.

mod address;
pub mod follow;
mod local;
#[cfg(test)]
pub(crate) mod memory;
pub mod postgres;
mod replica;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use actors::TenantId;
use futures_util::future::BoxFuture;
use thiserror::Error;

pub use self::address::Address;
pub use self::local::{Loaded, Local};
pub use self::replica::Replica;
use crate::error::Conflict;

/// Longest body of a record in bytes: the largest head of a task, as text, and its record.
pub const RECORD_BYTES_MAX: usize = 256 << 20;

/// Most records of one kind of a tenant in a shared store, those of its sub-tenants included.
pub const TENANT_RECORDS_MAX: usize = crate::tasks::TASKS_MAX;

/// Most bytes of a tenant's records in a shared store, those of its sub-tenants included: 512 MiB.
pub const TENANT_BYTES_MAX: u64 = 512 << 20;

/// What a record is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A task that corrects answers.
    Task,
    /// A task that says when a question counts as unanswered.
    Abstention,
    /// The tenants and their keys, as a key file has them: one record.
    Keys,
}

impl Kind {
    const ALL: [Self; 3] = [Self::Task, Self::Abstention, Self::Keys];

    /// Its name in stores and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Task => "task",
            Self::Abstention => "abstention",
            Self::Keys => "keys",
        }
    }

    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == name)
    }
}

/// By what a record is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// What it is of.
    pub kind: Kind,
    /// Whose it is.
    pub tenant: TenantId,
    /// Its name among those of its kind and tenant.
    pub id: String,
}

impl Key {
    /// The key of the record that has the tenants and their keys.
    pub fn of_keys() -> Self {
        Self { kind: Kind::Keys, tenant: TenantId("".into()), id: "keys".to_owned() }
    }
}

impl fmt::Display for Key {
    /// As its owner is told of it: the tenant knows who it is.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Kind::Task => write!(formatter, "task {}", self.id),
            Kind::Abstention => write!(formatter, "abstention task {}", self.id),
            Kind::Keys => formatter.write_str("the keys"),
        }
    }
}

/// The number of a change, from 1 on; 0 is before all of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

/// A record as a change left it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// By what it is found.
    pub key: Key,
    /// The change that it comes from.
    pub version: Version,
    /// What it says; `None` of one that was removed.
    pub body: Option<Arc<str>>,
}

/// A change that is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Of what.
    pub key: Key,
    /// Which change was the last of the store when work on this one began: it is refused where the
    /// record is younger. `None` of a change that holds whatever there is, as a removal does.
    pub base: Option<Version>,
    /// What the record is to say; `None` removes it.
    pub body: Option<Arc<str>>,
}

/// How far a store has been seen: the number of the last change, and the mark that it was made with.
/// A store in which that change has another mark has another history.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// All changes up to this one have been seen.
    pub version: Version,
    /// The mark of that one.
    pub mark: String,
}

/// How far what a store keeps reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// It ends with the process.
    Process,
    /// It outlives the process, which alone changes it.
    Disk,
    /// Other servers see it and change it too.
    Shared,
}

/// Why a store did not do what was asked of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StoreError {
    /// A record is not what the change is based on. Nothing was changed.
    #[error(transparent)]
    Conflict(#[from] Conflict),
    /// There would be too many records, or too many bytes of them. Nothing was changed.
    #[error("{0}")]
    Full(String),
    /// The store cannot be reached, or not in time; for the log. A change may have been made all the
    /// same where the answer to it was lost.
    #[error("{0}")]
    Unavailable(String),
    /// The store has a schema that this version of docket does not know.
    #[error(
        "the store has schema {found}, and this docket knows those up to {known}: it needs a newer one"
    )]
    Schema {
        /// Its own.
        found: i32,
        /// The newest that is known.
        known: i32,
    },
    /// The disk failed; for the log.
    #[error("{0}")]
    Disk(String),
}

/// How a shared store can be reached, for health.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// Where it is, without a password.
    pub address: String,
    /// Since when it can be reached, or cannot.
    pub since: Duration,
    /// Why it cannot be; `None` where it can.
    pub lost: Option<String>,
    /// When it last answered.
    pub heard: Duration,
    /// How often it was found again.
    pub reconnects: u64,
}

/// Where records are kept. Calls of one store may come at any time from anywhere.
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// How far it reaches.
    fn keeping(&self) -> Keeping;

    /// The number of the last change, for one that is to be based on what there is now. A local store
    /// has none.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::Schema`].
    fn version(&self) -> BoxFuture<'_, Result<Version, StoreError>>;

    /// Makes all of these changes of one tenant or none of them, and gives the number of the last; the
    /// others have those before it, in order.
    ///
    /// # Errors
    /// [`StoreError`].
    fn change(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Version, StoreError>>;

    /// Tells of every record that was changed after `seen`, and says how far it is seen then. If that
    /// fails some may have been told of, and are again the next time.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::Schema`].
    fn catch_up<'a>(
        &'a self,
        seen: &'a Seen,
        told: &'a dyn Follower,
    ) -> BoxFuture<'a, Result<Seen, StoreError>>;

    /// Ends when others may have changed something, or the way to it is broken; never where nobody
    /// else changes it.
    fn changed(&self) -> BoxFuture<'_, ()>;

    /// How it can be reached; `None` of one that is always there.
    fn reach(&self) -> Option<Reach>;
}

/// Who is told of changes, in the order of their numbers but for those that it made itself.
pub trait Follower: Send + Sync {
    /// The store has another history than what was told of so far: all of it follows now, and what
    /// does not come before the next [`Follower::seen`] is gone.
    fn anew(&self);

    /// A record as it is now.
    fn take(&self, record: Record);

    /// All changes up to this one have been told of.
    fn seen(&self, version: Version);
}

/// Whether a record may be changed by somebody who began when `base` was the last change.
///
/// * `current`: the number of the change that the record comes from; 0 where it never was.
///
/// # Errors
/// [`Conflict`].
pub(crate) fn check_base(
    key: &Key,
    base: Option<Version>,
    current: Version,
) -> Result<(), Conflict> {
    match base {
        Some(base) if current > base => {
            Err(Conflict { record: key.to_string(), based_on: base.0, current: current.0 })
        }
        Some(_) | None => Ok(()),
    }
}
