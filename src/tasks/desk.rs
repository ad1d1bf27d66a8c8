//! The tasks of all tenants: found for questions, listed, kept in a store.

mod kept;

use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use actors::TenantId;
use serde_json::Value;

use super::identity::Rendering;
use super::order::Match;
use super::record::{AbstentionTask, Task};
use crate::error::Conflict;
use crate::prompt::identity;
use crate::question::{Manner, Question};
use crate::store::{
    Follower as _, Loaded, Local, Reach, Record, Replica, Store, StoreError, Version,
};

/// How the desk is set up.
#[derive(Debug, Clone)]
pub struct DeskConfig {
    /// Whether corrections of tasks are applied.
    pub tasks: bool,
    /// Whether thresholds of abstention are applied.
    pub abstention: bool,
    /// Where tasks are kept that are not shared with other servers; `None`: in memory alone.
    pub folder: Option<PathBuf>,
    /// An option for not knowing that is offered without a task, in requests that have images' form.
    pub abstain_option: Option<String>,
    /// How questions are shown and read in each manner.
    pub profile: Rendering,
    /// See [`Self::profile`].
    pub letters: Rendering,
    /// See [`Self::profile`].
    pub plain: Rendering,
}

/// The tasks of all tenants.
#[derive(Debug)]
pub struct Desk {
    config: DeskConfig,
    store: Arc<dyn Store>,
    held: RwLock<Held>,
}

#[derive(Debug, Default)]
struct Held {
    tasks: Replica<Arc<Task>>,
    abstentions: Replica<Arc<AbstentionTask>>,
}

/// Why a change is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There are too many, or they are too large.
    Full(String),
    /// Somebody else changed the record meanwhile.
    Conflict(Conflict),
    /// The shared store cannot be reached; for the log.
    Unavailable(String),
    /// It could not be written; for the log.
    Disk(String),
}

impl From<StoreError> for Refused {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(conflict) => Self::Conflict(conflict),
            StoreError::Full(message) => Self::Full(message),
            StoreError::Unavailable(why) => Self::Unavailable(why),
            StoreError::Schema { .. } => Self::Unavailable(error.to_string()),
            StoreError::Disk(why) => Self::Disk(why),
        }
    }
}

impl Desk {
    /// Loads what is on disk; what cannot be read, or holds for another model, is told of.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn open(config: DeskConfig) -> std::io::Result<Self> {
        let (store, Loaded(records)) = match &config.folder {
            Some(folder) => Local::open(folder)?,
            None => (Local::nowhere(), Loaded(Vec::new())),
        };
        let desk = Self { config, store: Arc::new(store), held: RwLock::default() };
        for record in records {
            desk.take(record);
        }
        if let Some(folder) = &desk.config.folder {
            tracing::info!("{} tasks loaded from {}", desk.count(), folder.display());
        }
        Ok(desk)
    }

    /// A desk over a store that others change too, with what was in it at the start, all of it up to
    /// `seen`.
    pub fn shared(
        config: DeskConfig,
        store: Arc<dyn Store>,
        (records, seen): (Vec<Record>, Version),
    ) -> Self {
        let desk = Self { config, store, held: RwLock::default() };
        for record in records {
            desk.take(record);
        }
        desk.seen(seen);
        tracing::info!("{} tasks loaded from the shared store", desk.count());
        desk
    }

    fn count(&self) -> usize {
        let held = self.read();
        held.tasks.all().count() + held.abstentions.all().count()
    }

    /// How the shared store can be reached, and which of its changes are in; `None` where tasks are
    /// not shared.
    pub fn reach(&self) -> Option<(Reach, Version)> {
        Some((self.store.reach()?, self.read().tasks.version()))
    }

    fn note_foreign(&self, id: &str, fingerprint: &str) {
        let known = Manner::ALL.map(|manner| &self.rendering(manner).fingerprint);
        if !known.iter().any(|known| *known == fingerprint) {
            tracing::warn!("task {id} was fitted under another model or layout: it is not applied");
        }
    }

    /// Takes in the tasks of a file, for the tenant of a server without keys; those of another model
    /// are listed and not applied.
    ///
    /// # Errors
    /// What is wrong with the file, in words.
    pub fn take_file(&self, text: &[u8]) -> Result<usize, String> {
        let no_json = |error: serde_json::Error| {
            format!("it is no JSON: line {}, column {}", error.line(), error.column())
        };
        let file: Value = serde_json::from_slice(text).map_err(no_json)?;
        let records =
            file["tasks"].as_array().or(file.as_array()).ok_or("it has no list of tasks")?;
        let tenant = TenantId("default".into());
        for record in records {
            let task = Task::read(record)?;
            self.note_foreign(&task.id, &task.fingerprint);
            let mut held = self.write();
            let (version, id) = (held.tasks.next(), task.id.clone());
            held.tasks.take((&tenant, &id), version, Some((Arc::new(task), 0)));
        }
        Ok(records.len())
    }

    /// The settings.
    pub fn config(&self) -> &DeskConfig {
        &self.config
    }

    /// How questions are shown and read in a manner.
    pub fn rendering(&self, manner: Manner) -> &Rendering {
        match manner {
            Manner::Profile => &self.config.profile,
            Manner::Letters => &self.config.letters,
            Manner::Plain => &self.config.plain,
        }
    }

    /// The tasks that a question is of, oldest first; the newest is the one that is applied.
    pub fn tasks_of(
        &self,
        tenant: &TenantId,
        manner: Manner,
        question: &Question,
    ) -> Vec<Arc<Task>> {
        let held = self.read();
        let tasks = if self.config.tasks { held.tasks.of(tenant) } else { Vec::new() };
        if tasks.is_empty() {
            return Vec::new();
        }
        let rendering = self.rendering(manner);
        let key = identity::task_key(&rendering.layout, question);
        let fits =
            |task: &&Arc<Task>| task.task_key == key && task.fingerprint == rendering.fingerprint;
        tasks.into_iter().filter(fits).cloned().collect()
    }

    /// The abstention task that a question is of: exact sets and the extension first, then keys.
    pub fn abstention_of(
        &self,
        tenant: &TenantId,
        manner: Manner,
        (question, images_form): (&Question, bool),
    ) -> Option<Arc<AbstentionTask>> {
        let held = self.read();
        let tasks = if self.config.abstention { held.abstentions.of(tenant) } else { Vec::new() };
        if tasks.is_empty() {
            return None;
        }
        let rendering = self.rendering(manner);
        let set = identity::option_set(&rendering.layout, &question.kind);
        let keys = identity::option_keys(&question.kind);
        let is_exact = |task: &&Arc<AbstentionTask>| match task.matches {
            Match::OptionSet => task.identity == set,
            Match::ImajevExtension => images_form,
            Match::OptionKeys => false,
        };
        let by_keys = |task: &&Arc<AbstentionTask>| {
            task.matches == Match::OptionKeys && task.identity == keys
        };
        let own = || tasks.iter().copied().filter(|task| task.fingerprint == rendering.fingerprint);
        own().find(is_exact).or_else(|| own().find(by_keys)).cloned()
    }

    /// The last change of a shared store, on which a change is based that is worked on for long; `None`
    /// where nobody else could change anything meanwhile.
    ///
    /// # Errors
    /// [`Refused::Unavailable`] where no change could be made now.
    pub async fn base(&self) -> Result<Option<Version>, Refused> {
        if !self.is_shared() {
            return Ok(None);
        }
        Ok(Some(self.store.version().await?))
    }

    /// Takes tasks in, each in the place of one of the same id; in the store first. All or none, but
    /// where a disk fails midway.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn keep(&self, tenant: &TenantId, tasks: Vec<Task>) -> Result<(), Refused> {
        let base = self.base().await?;
        self.keep_all(tenant, tasks, base).await
    }

    /// Takes a task in that was begun when `base` was asked for.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn keep_based(
        &self,
        tenant: &TenantId,
        task: Task,
        base: Option<Version>,
    ) -> Result<(), Refused> {
        self.keep_all(tenant, vec![task], base).await
    }

    /// [`Self::keep`] of abstention tasks.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn keep_abstention(
        &self,
        tenant: &TenantId,
        tasks: Vec<AbstentionTask>,
    ) -> Result<(), Refused> {
        let base = self.base().await?;
        self.keep_all(tenant, tasks, base).await
    }

    /// [`Self::keep_based`] of an abstention task.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn keep_abstention_based(
        &self,
        tenant: &TenantId,
        task: AbstentionTask,
        base: Option<Version>,
    ) -> Result<(), Refused> {
        self.keep_all(tenant, vec![task], base).await
    }

    /// Removes a task, whoever changed it last; says whether there was one.
    ///
    /// # Errors
    /// [`Refused::Disk`], [`Refused::Unavailable`].
    pub async fn remove(&self, tenant: &TenantId, id: &str) -> Result<bool, Refused> {
        self.remove_one::<Task>(tenant, id).await
    }

    /// The same of an abstention task.
    ///
    /// # Errors
    /// As [`Self::remove`].
    pub async fn remove_abstention(&self, tenant: &TenantId, id: &str) -> Result<bool, Refused> {
        self.remove_one::<AbstentionTask>(tenant, id).await
    }

    /// A tenant's tasks, oldest first.
    pub fn tasks(&self, tenant: &TenantId) -> Vec<Arc<Task>> {
        self.read().tasks.of(tenant).into_iter().cloned().collect()
    }

    /// A tenant's abstention tasks, oldest first.
    pub fn abstentions(&self, tenant: &TenantId) -> Vec<Arc<AbstentionTask>> {
        self.read().abstentions.of(tenant).into_iter().cloned().collect()
    }

    /// All tasks of all tenants, for metrics.
    pub fn all(&self) -> Vec<(TenantId, Arc<Task>)> {
        let held = self.read();
        held.tasks.all().map(|(tenant, _, task)| (tenant.clone(), Arc::clone(task))).collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}
