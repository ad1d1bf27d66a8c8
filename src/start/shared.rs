//! The store that several servers share: read at the start, followed for as long as the server runs.

use std::sync::Arc;
use std::time::Duration;

use super::StartError;
use crate::config::StoreConfig;
use crate::store::follow::{All, Gathered, follow};
use crate::store::postgres::Postgres;
use crate::store::{Follower, Key, Record, Seen, Store};
use crate::telemetry;

/// What the store held when the server started.
#[derive(Debug)]
pub(super) struct Shared {
    store: Arc<dyn Store>,
    records: Vec<Record>,
    seen: Seen,
    poll: Duration,
}

impl Shared {
    /// Reads all of the store; `None` where there is none.
    ///
    /// # Errors
    /// [`StartError::Setting`] where it cannot be reached or used.
    pub(super) async fn open(config: &StoreConfig) -> Result<Option<Self>, StartError> {
        let Some(address) = &config.address else { return Ok(None) };
        let refused = |flag, message| StartError::Setting { flag, message };
        let store =
            Postgres::new(address, config).map_err(|message| refused("--store-ca", message))?;
        if address.is_exposed() {
            tracing::warn!(
                "--store {address}: a password and all tasks may cross the network in clear; leave \
                 sslmode away, or say sslmode=require"
            );
        }
        telemetry::store_limits(config);
        let gathered = Gathered::default();
        let seen = store.catch_up(&Seen::default(), &gathered).await;
        let seen = seen.map_err(|error| refused("--store", format!("{address}: {error}")))?;
        tracing::info!("the store {address} is read up to change {}", seen.version);
        let (records, poll) = (gathered.into_records(), config.poll);
        Ok(Some(Self { store: Arc::new(store), records, seen, poll }))
    }

    /// The text of the keys; `None` where it has none so far.
    pub(super) fn keys(&self) -> Option<&str> {
        let key = Key::of_keys();
        self.records.iter().rfind(|record| record.key == key)?.body.as_deref()
    }

    /// The store, and what was in it.
    pub(super) fn records(&self) -> (Arc<dyn Store>, Vec<Record>, &Seen) {
        (Arc::clone(&self.store), self.records.clone(), &self.seen)
    }

    /// Tells these of every change from now on, for ever.
    pub(super) fn follow(self, told: Vec<Arc<dyn Follower>>) {
        tokio::spawn(follow(self.store, self.seen, All(told), self.poll));
    }
}
