//! The tasks of all tenants: found for questions, listed, kept on disk.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use actors::TenantId;
use serde_json::Value;

use super::files::{self, Kind};
use super::identity::Rendering;
use super::order::Match;
use super::record::{AbstentionTask, Task};
use super::{HEADS_BYTES_MAX, TASKS_MAX};
use crate::prompt::identity;
use crate::question::{Manner, Question};

/// How the desk is set up.
#[derive(Debug, Clone)]
pub struct DeskConfig {
    /// Whether corrections of tasks are applied.
    pub tasks: bool,
    /// Whether thresholds of abstention are applied.
    pub abstention: bool,
    /// Where tasks are kept; `None`: in memory alone.
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
    held: RwLock<Held>,
}

#[derive(Debug, Default)]
struct Held {
    /// Records that were on disk at the start.
    loaded: usize,
    tasks: BTreeMap<TenantId, Vec<Arc<Task>>>,
    abstentions: BTreeMap<TenantId, Vec<Arc<AbstentionTask>>>,
}

/// Why a record is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// There are too many, or they are too large.
    Full(String),
    /// It could not be written; for the log.
    Disk(String),
}

/// All that a tenant and its sub-tenants have.
fn paid_by<'a, T>(
    held: &'a BTreeMap<TenantId, Vec<Arc<T>>>,
    payer: &'a str,
) -> impl Iterator<Item = (&'a TenantId, &'a Arc<T>)> {
    let own = held.iter().filter(move |(tenant, _)| tenant.payer() == payer);
    own.flat_map(|(tenant, tasks)| tasks.iter().map(move |task| (tenant, task)))
}

/// Takes one out, and its tenant with the last; says whether there was one.
fn without<T>(
    held: &mut BTreeMap<TenantId, Vec<Arc<T>>>,
    tenant: &TenantId,
    is_it: impl Fn(&T) -> bool,
) -> bool {
    let Some(own) = held.get_mut(tenant) else { return false };
    let before = own.len();
    own.retain(|task| !is_it(task));
    let is_less = own.len() < before;
    if own.is_empty() {
        held.remove(tenant);
    }
    is_less
}

impl Desk {
    /// Loads what is on disk; what cannot be read, or holds for another model, is told of.
    ///
    /// # Errors
    /// A folder that cannot be read.
    pub fn open(config: DeskConfig) -> std::io::Result<Self> {
        let stored = match &config.folder {
            Some(folder) => files::read_all(folder)?,
            None => Vec::new(),
        };
        let desk = Self { config, held: RwLock::default() };
        for stored in stored {
            let taken = match stored.kind {
                Kind::Task => Task::read(&stored.record).map(|task| {
                    desk.note_foreign(&task.id, &task.fingerprint);
                    desk.place(&stored.tenant, task);
                }),
                Kind::Abstention => AbstentionTask::read(&stored.record)
                    .map(|task| desk.place_abstention(&stored.tenant, task)),
            };
            if taken.is_ok() {
                desk.write().loaded += 1;
            }
            if let Err(why) = taken {
                tracing::error!("a stored task is left out: {why}");
            }
        }
        if let Some(folder) = &desk.config.folder {
            tracing::info!("{} tasks loaded from {}", desk.read().loaded, folder.display());
        }
        Ok(desk)
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
            self.place(&tenant, task);
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
        let own = held.tasks.get(tenant).filter(|tasks| self.config.tasks && !tasks.is_empty());
        let Some(tasks) = own else { return Vec::new() };
        let rendering = self.rendering(manner);
        let key = identity::task_key(&rendering.layout, question);
        let fits =
            |task: &&Arc<Task>| task.task_key == key && task.fingerprint == rendering.fingerprint;
        tasks.iter().filter(fits).cloned().collect()
    }

    /// The abstention task that a question is of: exact sets and the extension first, then keys.
    pub fn abstention_of(
        &self,
        tenant: &TenantId,
        manner: Manner,
        (question, images_form): (&Question, bool),
    ) -> Option<Arc<AbstentionTask>> {
        let held = self.read();
        let tasks = held.abstentions.get(tenant).filter(|_| self.config.abstention)?;
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
        let own = || tasks.iter().filter(|task| task.fingerprint == rendering.fingerprint);
        own().find(is_exact).or_else(|| own().find(by_keys)).cloned()
    }

    /// Takes tasks in, each in the place of one of the same id; on disk first. All or none, but where the
    /// disk fails midway.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn keep(&self, tenant: &TenantId, tasks: Vec<Task>) -> Result<(), Refused> {
        {
            let held = self.read();
            let is_new =
                |of: &TenantId, id: &str| of == tenant && tasks.iter().any(|task| task.id == id);
            let own = paid_by(&held.tasks, tenant.payer());
            let others: Vec<_> = own.filter(|(of, known)| !is_new(of, &known.id)).collect();
            let new: BTreeSet<_> = tasks.iter().map(|task| &task.id).collect();
            let bytes = others.iter().map(|(_, task)| task.head_bytes).sum::<usize>()
                + tasks.iter().map(|task| task.head_bytes).sum::<usize>();
            if others.len() + new.len() > TASKS_MAX {
                return Err(Refused::Full(format!("{TASKS_MAX} tasks are registered at most")));
            }
            if bytes > HEADS_BYTES_MAX {
                let message =
                    format!("the heads would be {bytes} bytes, at most {HEADS_BYTES_MAX}");
                return Err(Refused::Full(message));
            }
        }
        for task in &tasks {
            self.store(Kind::Task, (tenant, &task.id), &task.shown(true))?;
        }
        for task in tasks {
            self.place(tenant, task);
        }
        Ok(())
    }

    /// The same of an abstention task.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn keep_abstention(
        &self,
        tenant: &TenantId,
        tasks: Vec<AbstentionTask>,
    ) -> Result<(), Refused> {
        {
            let held = self.read();
            let own = paid_by(&held.abstentions, tenant.payer());
            let old = own.map(|(of, task)| (of, &task.id));
            let new = tasks.iter().map(|task| (tenant, &task.id));
            let all: BTreeSet<_> = old.chain(new).collect();
            if all.len() > TASKS_MAX {
                let message = format!("{TASKS_MAX} abstention tasks are registered at most");
                return Err(Refused::Full(message));
            }
        }
        for task in &tasks {
            self.store(Kind::Abstention, (tenant, &task.id), &task.record)?;
        }
        for task in tasks {
            self.place_abstention(tenant, task);
        }
        Ok(())
    }

    /// Removes a task; says whether there was one.
    ///
    /// # Errors
    /// [`Refused::Disk`].
    pub fn remove(&self, tenant: &TenantId, id: &str) -> Result<bool, Refused> {
        if !self.tasks(tenant).iter().any(|task| task.id == id) {
            return Ok(false);
        }
        self.unstore(Kind::Task, (tenant, id))?;
        let mut held = self.write();
        Ok(without(&mut held.tasks, tenant, |task| task.id == id))
    }

    /// The same of an abstention task.
    ///
    /// # Errors
    /// [`Refused::Disk`].
    pub fn remove_abstention(&self, tenant: &TenantId, id: &str) -> Result<bool, Refused> {
        if !self.abstentions(tenant).iter().any(|task| task.id == id) {
            return Ok(false);
        }
        self.unstore(Kind::Abstention, (tenant, id))?;
        let mut held = self.write();
        Ok(without(&mut held.abstentions, tenant, |task| task.id == id))
    }

    /// A tenant's tasks, oldest first.
    pub fn tasks(&self, tenant: &TenantId) -> Vec<Arc<Task>> {
        self.read().tasks.get(tenant).cloned().unwrap_or_default()
    }

    /// A tenant's abstention tasks, oldest first.
    pub fn abstentions(&self, tenant: &TenantId) -> Vec<Arc<AbstentionTask>> {
        self.read().abstentions.get(tenant).cloned().unwrap_or_default()
    }

    /// All tasks of all tenants, for metrics.
    pub fn all(&self) -> Vec<(TenantId, Arc<Task>)> {
        let held = self.read();
        let each = |(tenant, tasks): (&TenantId, &Vec<Arc<Task>>)| {
            tasks.iter().map(|task| (tenant.clone(), Arc::clone(task))).collect::<Vec<_>>()
        };
        held.tasks.iter().flat_map(each).collect()
    }

    fn place(&self, tenant: &TenantId, task: Task) {
        let mut held = self.write();
        let own = held.tasks.entry(tenant.clone()).or_default();
        own.retain(|known| known.id != task.id);
        own.push(Arc::new(task));
    }

    fn place_abstention(&self, tenant: &TenantId, task: AbstentionTask) {
        let mut held = self.write();
        let own = held.abstentions.entry(tenant.clone()).or_default();
        own.retain(|known| known.id != task.id);
        own.push(Arc::new(task));
    }

    fn store(&self, kind: Kind, at: (&TenantId, &str), record: &Value) -> Result<(), Refused> {
        let Some(folder) = &self.config.folder else { return Ok(()) };
        files::write(folder, kind, at, record)
            .map_err(|error| Refused::Disk(format!("{}: {error}", folder.display())))
    }

    fn unstore(&self, kind: Kind, at: (&TenantId, &str)) -> Result<(), Refused> {
        let Some(folder) = &self.config.folder else { return Ok(()) };
        files::remove(folder, kind, at)
            .map_err(|error| Refused::Disk(format!("{}: {error}", folder.display())))
    }

    fn read(&self) -> RwLockReadGuard<'_, Held> {
        self.held.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Held> {
        self.held.write().unwrap_or_else(PoisonError::into_inner)
    }
}
