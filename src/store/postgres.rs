//! The shared store in a Postgres database.
//!
//! Two connections: one is told of changes and reads them, the other makes them, one transaction after
//! the other. A transaction first takes the store's one counter, so numbers are given in the order of
//! commits: who has read all changes up to a number has missed none below it. Nothing is cached here
//! but whether the database can be reached.

mod link;
mod reading;
mod schema;
mod writing;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::{Mutex as Turn, Notify, Semaphore};

use self::link::{Connecting, Link, Session};
use self::writing::{Limits, Wanted};
use super::{
    Address, Change, Follower, Keeping, Key, Reach, Record, Seen, Store, StoreError, Version,
};
use crate::config::StoreConfig;
use crate::telemetry::{self, ChangeEnd};

/// Connections of one server.
pub const CONNECTIONS_MAX: usize = 2;

/// Changes that are made or wait for those before them; more are refused.
pub const CHANGES_WAITING_MAX: usize = 32;

/// Changes whose removals are remembered. Who has missed more than these begins anew.
pub const CHANGES_KEPT: u64 = 65_536;

/// A database.
#[derive(Debug)]
pub struct Postgres {
    connecting: Connecting,
    limits: Limits,
    /// Held while it reads: one after the other.
    following: Turn<Option<Link>>,
    /// Held while a change is made: the database would let only one at it too.
    changing: Turn<Option<Link>>,
    /// How many may wait for that.
    turns: Semaphore,
    /// Woken by notifications, and when the connection that brings them ends. One that comes while
    /// nobody waits is kept.
    told: Arc<Notify>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    since: Instant,
    heard: Instant,
    has_answered: bool,
    lost: Option<String>,
    reconnects: u64,
}

impl Postgres {
    /// A database that has not been asked anything yet.
    ///
    /// # Errors
    /// What is wrong with the settings of TLS.
    pub fn new(address: &Address, config: &StoreConfig) -> Result<Self, String> {
        let now = Instant::now();
        let state =
            State { since: now, heard: now, has_answered: false, lost: None, reconnects: 0 };
        Ok(Self {
            connecting: Connecting::new(address, config)?,
            limits: Limits { records: config.records_max, bytes: config.bytes_max },
            following: Turn::default(),
            changing: Turn::default(),
            turns: Semaphore::new(CHANGES_WAITING_MAX),
            told: Arc::default(),
            state: Mutex::new(state),
        })
    }

    /// One record, as it is now; `None` where it never was.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`], [`StoreError::Schema`].
    pub async fn read(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let mut held = self.following.lock().await;
        let read = match self.linked(&mut held, Session::Following).await {
            Ok(link) => reading::one(link, key).await,
            Err(error) => Err(error),
        };
        if read.is_err() {
            *held = None;
        }
        read
    }

    async fn caught_up(&self, seen: &Seen, told: &dyn Follower) -> Result<Seen, StoreError> {
        let mut held = self.following.lock().await;
        let caught = match self.linked(&mut held, Session::Following).await {
            Ok(link) => reading::catch_up(link, seen, told).await,
            Err(error) => Err(error),
        };
        if caught.is_err() {
            *held = None;
        }
        drop(held);
        self.note(caught.as_ref().err());
        caught
    }

    /// The connection, made where there is none.
    async fn linked<'l>(
        &self,
        held: &'l mut Option<Link>,
        session: Session,
    ) -> Result<&'l mut Link, StoreError> {
        if held.as_ref().is_some_and(Link::is_closed) {
            *held = None;
        }
        match held {
            Some(link) => Ok(link),
            None => Ok(held.insert(self.connecting.open(session, &self.told).await?)),
        }
    }

    /// What is wanted of the connection that makes changes, in its turn.
    async fn done(&self, wanted: Wanted<'_>) -> Result<Version, StoreError> {
        // Who reads has noticed that it is lost; to try again is for who reads.
        if let Some(lost) = self.state().lost.clone() {
            return Err(StoreError::Unavailable(lost));
        }
        let Ok(_turn) = self.turns.try_acquire() else {
            let message = format!("{CHANGES_WAITING_MAX} changes wait, which is the most");
            return Err(StoreError::Unavailable(message));
        };
        let _shown = telemetry::store_change();
        let mut held = self.changing.lock().await;
        // A connection may have been lost since it was last used. Of one that is lost while a change is
        // made it is not known whether it was: its mark says so.
        let mut lost = String::new();
        for is_again in [false, true] {
            let made = match self.linked(&mut held, Session::Changing).await {
                Ok(link) => writing::perform(link, wanted, is_again, self.limits).await,
                Err(error) => Err(error),
            };
            match made {
                Err(StoreError::Unavailable(why)) => lost = why,
                made => return made,
            }
            *held = None;
        }
        Err(StoreError::Unavailable(lost))
    }

    /// Remembers whether the database answered, and says so in the log when that changes.
    fn note(&self, error: Option<&StoreError>) {
        let address = self.connecting.address();
        let now = Instant::now();
        let mut state = self.state();
        match (error, state.lost.is_some()) {
            (None, true) => {
                let seconds = now.duration_since(state.since).as_secs_f64();
                tracing::info!("the store {address} is there again after {seconds:.1} s");
                state.reconnects += 1;
                telemetry::store_found();
            }
            // Of a store that never answered the start tells.
            (Some(error), false) if state.has_answered => tracing::error!(
                "the store {address} is lost: {error}; what is known of it is served, and changes are \
                 refused until it is back"
            ),
            (Some(_), _) | (None, false) => {}
        }
        if error.is_some() != state.lost.is_some() {
            state.since = now;
        }
        if error.is_none() {
            (state.heard, state.has_answered) = (now, true);
        }
        state.lost = error.map(ToString::to_string);
        telemetry::store_lost(state.lost.is_some());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for Postgres {
    fn keeping(&self) -> Keeping {
        Keeping::Shared
    }

    fn version(&self) -> BoxFuture<'_, Result<Version, StoreError>> {
        self.done(Wanted::Version).boxed()
    }

    fn change(&self, changes: Vec<Change>) -> BoxFuture<'_, Result<Version, StoreError>> {
        async move {
            let made = match mark() {
                Ok(mark) => self.done(Wanted::Changes(&changes, &mark)).await,
                Err(error) => Err(error),
            };
            telemetry::store_changed(match &made {
                Ok(_) => ChangeEnd::Made,
                Err(StoreError::Conflict(_)) => ChangeEnd::Conflict,
                Err(StoreError::Full(_)) => ChangeEnd::Full,
                Err(
                    StoreError::Unavailable(_) | StoreError::Schema { .. } | StoreError::Disk(_),
                ) => ChangeEnd::Unavailable,
            });
            if let Err(StoreError::Unavailable(why)) = &made {
                tracing::warn!(
                    "a change of the store {} was refused: {why}",
                    self.connecting.address()
                );
            }
            made
        }
        .boxed()
    }

    fn catch_up<'a>(
        &'a self,
        seen: &'a Seen,
        told: &'a dyn Follower,
    ) -> BoxFuture<'a, Result<Seen, StoreError>> {
        self.caught_up(seen, told).boxed()
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        self.told.notified().boxed()
    }

    fn reach(&self) -> Option<Reach> {
        let state = self.state();
        Some(Reach {
            address: self.connecting.address().to_string(),
            since: state.since.elapsed(),
            lost: state.lost.clone(),
            heard: state.heard.elapsed(),
            reconnects: state.reconnects,
        })
    }
}

/// What one attempt to change the store is known by: 128 random bits.
fn mark() -> Result<String, StoreError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        StoreError::Unavailable(format!("the system gives no random bytes: {error}"))
    })?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
