//! What the desk does alike with both kinds of tasks: keeping, removing, and following a shared store.

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::TenantId;
use serde_json::Value;

use super::{Desk, Held, Refused};
use crate::store::{Change, Follower, Keeping, Key, Kind, Record, Replica, Version};
use crate::tasks::record::{AbstentionTask, Task};
use crate::tasks::{HEADS_BYTES_MAX, TASKS_MAX};
use crate::telemetry::{self, StoreSize};

/// A kind of tasks.
pub(super) trait Kept: Sized + Send + Sync {
    /// What its records are of.
    const KIND: Kind;

    /// Its name among the tenant's.
    fn id(&self) -> &str;

    /// All of it.
    fn record(&self) -> Value;

    /// What is known of its kind.
    fn of(held: &Held) -> &Replica<Arc<Self>>;

    /// The same, to be changed.
    fn of_mut(held: &mut Held) -> &mut Replica<Arc<Self>>;

    /// Whether a tenant can have these beside the `others` that stay.
    ///
    /// # Errors
    /// What would be too much, in words.
    fn check_room(new: &[Self], others: &[(&TenantId, &str, &Arc<Self>)]) -> Result<(), String>;
}

impl Kept for Task {
    const KIND: Kind = Kind::Task;

    fn id(&self) -> &str {
        &self.id
    }

    fn record(&self) -> Value {
        self.shown(true)
    }

    fn of(held: &Held) -> &Replica<Arc<Self>> {
        &held.tasks
    }

    fn of_mut(held: &mut Held) -> &mut Replica<Arc<Self>> {
        &mut held.tasks
    }

    fn check_room(new: &[Self], others: &[(&TenantId, &str, &Arc<Self>)]) -> Result<(), String> {
        let ids: BTreeSet<_> = new.iter().map(|task| &task.id).collect();
        if others.len() + ids.len() > TASKS_MAX {
            return Err(format!("{TASKS_MAX} tasks are registered at most"));
        }
        let bytes = others.iter().map(|(.., task)| task.head_bytes).sum::<usize>()
            + new.iter().map(|task| task.head_bytes).sum::<usize>();
        if bytes > HEADS_BYTES_MAX {
            return Err(format!("the heads would be {bytes} bytes, at most {HEADS_BYTES_MAX}"));
        }
        Ok(())
    }
}

impl Kept for AbstentionTask {
    const KIND: Kind = Kind::Abstention;

    fn id(&self) -> &str {
        &self.id
    }

    fn record(&self) -> Value {
        self.record.clone()
    }

    fn of(held: &Held) -> &Replica<Arc<Self>> {
        &held.abstentions
    }

    fn of_mut(held: &mut Held) -> &mut Replica<Arc<Self>> {
        &mut held.abstentions
    }

    fn check_room(new: &[Self], others: &[(&TenantId, &str, &Arc<Self>)]) -> Result<(), String> {
        let ids: BTreeSet<_> = new.iter().map(|task| &task.id).collect();
        if others.len() + ids.len() > TASKS_MAX {
            return Err(format!("{TASKS_MAX} abstention tasks are registered at most"));
        }
        Ok(())
    }
}

impl Desk {
    pub(super) fn is_shared(&self) -> bool {
        self.store.keeping() == Keeping::Shared
    }

    pub(super) async fn keep_all<T: Kept>(
        &self,
        tenant: &TenantId,
        tasks: Vec<T>,
        base: Option<Version>,
    ) -> Result<(), Refused> {
        self.check_room(tenant, &tasks)?;
        let is_kept = self.store.keeping() != Keeping::Process;
        let body = |task: &T| if is_kept { task.record().to_string() } else { String::new() };
        let change = |task: &T| Change {
            key: key::<T>(tenant, task.id()),
            base,
            body: Some(body(task).into()),
        };
        let changes: Vec<Change> = tasks.iter().map(change).collect();
        let length = |change: &Change| change.body.as_ref().map_or(0, |body| body.len());
        let bytes: Vec<usize> = changes.iter().map(length).collect();
        let last = self.store.change(changes).await?;
        let count = tasks.len() as u64;
        let mut held = self.write();
        for (before, (task, bytes)) in (0..).zip(tasks.into_iter().zip(bytes)) {
            let version =
                self.version(T::of(&held), Version(last.0.saturating_sub(count - before - 1)));
            let id = task.id().to_owned();
            T::of_mut(&mut held).take((tenant, &id), version, Some((Arc::new(task), bytes)));
        }
        self.show(&held);
        Ok(())
    }

    fn check_room<T: Kept>(&self, tenant: &TenantId, tasks: &[T]) -> Result<(), Refused> {
        let held = self.read();
        let is_new =
            |of: &TenantId, id: &str| of == tenant && tasks.iter().any(|task| task.id() == id);
        let own = T::of(&held).paid_by(tenant.payer());
        let others: Vec<_> = own.filter(|(of, id, _)| !is_new(of, id)).collect();
        T::check_room(tasks, &others).map_err(Refused::Full)
    }

    pub(super) async fn remove_one<T: Kept>(
        &self,
        tenant: &TenantId,
        id: &str,
    ) -> Result<bool, Refused> {
        if T::of(&self.read()).find(tenant, id).is_none() {
            return Ok(false);
        }
        let change = Change { key: key::<T>(tenant, id), base: None, body: None };
        let made = self.store.change(vec![change]).await?;
        let mut held = self.write();
        let was_there = T::of(&held).find(tenant, id).is_some();
        let version = self.version(T::of(&held), made);
        T::of_mut(&mut held).take((tenant, id), version, None);
        if !self.is_shared() {
            // Nobody else tells of anything older.
            T::of_mut(&mut held).seen(version);
        }
        self.show(&held);
        Ok(was_there)
    }

    /// The number of a change: the shared store's, or the next where nobody else counts.
    fn version<T>(&self, known: &Replica<T>, made: Version) -> Version {
        if self.is_shared() { made } else { known.next() }
    }

    fn take_as<T: Kept>(&self, record: Record, read: impl Fn(&Self, &Value) -> Result<T, String>) {
        let Record { key: Key { tenant, id, .. }, version, body } = record;
        if T::of(&self.read()).knows((&tenant, &id), version) {
            return;
        }
        let what = body.and_then(|body| {
            let value = serde_json::from_str(&body).map_err(|error| error.to_string());
            match value.and_then(|value| read(self, &value)) {
                Ok(task) => Some((Arc::new(task), body.len())),
                Err(why) => {
                    tracing::error!("a stored task is left out: {why}");
                    None
                }
            }
        });
        T::of_mut(&mut self.write()).take((&tenant, &id), version, what);
    }

    /// Shows what is known of a shared store.
    fn show(&self, held: &Held) {
        if !self.is_shared() {
            return;
        }
        let mut size = StoreSize { version: held.tasks.version().0, ..StoreSize::default() };
        let kinds = [held.tasks.sizes(), held.abstentions.sizes()];
        for (count, bytes) in kinds.iter().flat_map(|kind| kind.values()) {
            size.records += count;
            size.bytes += bytes;
            size.tenant_records = size.tenant_records.max(*count);
        }
        let bytes = |payer: &str| -> usize {
            kinds.iter().filter_map(|kind| kind.get(payer)).map(|(_, bytes)| bytes).sum()
        };
        let payers = kinds.iter().flat_map(|kind| kind.keys());
        size.tenant_bytes = payers.map(|payer| bytes(payer)).max().unwrap_or(0);
        telemetry::store_size(size);
    }
}

impl Follower for Desk {
    fn anew(&self) {
        let mut held = self.write();
        held.tasks.anew();
        held.abstentions.anew();
    }

    fn take(&self, record: Record) {
        match record.key.kind {
            Kind::Task => self.take_as(record, |desk, value| {
                let task = Task::read(value)?;
                desk.note_foreign(&task.id, &task.fingerprint);
                Ok(task)
            }),
            Kind::Abstention => self.take_as(record, |_, value| AbstentionTask::read(value)),
            Kind::Keys => {}
        }
    }

    fn seen(&self, version: Version) {
        let mut held = self.write();
        held.tasks.seen(version);
        held.abstentions.seen(version);
        self.show(&held);
    }
}

fn key<T: Kept>(tenant: &TenantId, id: &str) -> Key {
    Key { kind: T::KIND, tenant: tenant.clone(), id: id.to_owned() }
}
