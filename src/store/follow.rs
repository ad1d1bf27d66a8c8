//! Keeping up with a shared store: what others changed is told of within moments, for as long as the
//! process runs.
//!
//! The store says when something changed, and is asked every now and then all the same. While it
//! cannot be reached it is asked again after ever longer waits; what was known stays.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Follower, Record, Seen, Store, StoreError, Version};
use crate::telemetry;

/// First wait after a store was lost.
const AGAIN_AFTER_MIN: Duration = Duration::from_millis(100);

/// Longest wait until a lost store is asked again; each is twice the one before.
const AGAIN_AFTER_MAX: Duration = Duration::from_secs(5);

/// Several followers as one.
pub struct All(pub Vec<Arc<dyn Follower>>);

impl Follower for All {
    fn anew(&self) {
        self.0.iter().for_each(|follower| follower.anew());
    }

    fn take(&self, record: Record) {
        self.0.iter().for_each(|follower| follower.take(record.clone()));
    }

    fn seen(&self, version: Version) {
        self.0.iter().for_each(|follower| follower.seen(version));
    }
}

impl std::fmt::Debug for All {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "All({})", self.0.len())
    }
}

/// What is told of before anybody follows.
#[derive(Debug, Default)]
pub struct Gathered(Mutex<Vec<Record>>);

impl Gathered {
    /// All of it, oldest change first.
    pub fn into_records(self) -> Vec<Record> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Follower for Gathered {
    fn anew(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn take(&self, record: Record) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(record);
    }

    fn seen(&self, _: Version) {}
}

/// Tells `told` of every change after `seen`, for ever.
///
/// * `poll`: after what time without word from it the store is asked.
pub async fn follow(store: Arc<dyn Store>, mut seen: Seen, told: All, poll: Duration) {
    let mut wait = AGAIN_AFTER_MIN;
    loop {
        match store.catch_up(&seen, &told).await {
            Ok(now) => {
                wait = AGAIN_AFTER_MIN;
                seen = now;
                let is_told = tokio::time::timeout(poll, store.changed()).await.is_ok();
                telemetry::store_asked(is_told);
            }
            Err(error) => {
                note(&error);
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(AGAIN_AFTER_MAX);
            }
        }
    }
}

/// The store itself tells of it in the log when it is lost and when it is back.
fn note(error: &StoreError) {
    tracing::debug!("the store is asked again: {error}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::memory::Memory;
    use crate::store::{Change, Key, Kind};

    /// Versions that were told of.
    #[derive(Default)]
    struct Told(Mutex<Vec<u64>>);

    impl Follower for Told {
        fn anew(&self) {}

        fn take(&self, record: Record) {
            self.0.lock().unwrap().push(record.version.0);
        }

        fn seen(&self, _: Version) {}
    }

    fn change(id: &str) -> Change {
        let key = Key { kind: Kind::Task, tenant: actors::TenantId("a".into()), id: id.to_owned() };
        Change { key, base: None, body: Some("{}".into()) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_told_of_at_once_and_after_a_loss_all_that_came_meanwhile() {
        let (store, told) = (Arc::new(Memory::remembering(100)), Arc::new(Told::default()));
        let followers = All(vec![Arc::clone(&told) as Arc<dyn Follower>]);
        let poll = Duration::from_secs(30);
        let followed = follow(Arc::clone(&store) as _, Seen::default(), followers, poll);
        let following = tokio::spawn(followed);
        let versions = || told.0.lock().unwrap().clone();
        tokio::time::sleep(Duration::from_millis(1)).await;
        store.make(&[change("x")]).unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(versions(), [1]);
        store.lose(true);
        tokio::time::sleep(Duration::from_mins(1)).await;
        store.lose(false);
        store.make(&[change("y"), change("z")]).unwrap();
        tokio::time::sleep(AGAIN_AFTER_MAX).await;
        assert_eq!(versions(), [1, 2, 3]);
        following.abort();
    }
}
