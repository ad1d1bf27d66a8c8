//! Learning from labelled examples over the real parts: examples are read by the same decider that
//! answers requests.

mod jobs;

use std::sync::Arc;

use actors::{ReadError, TenantId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use crate::decide::{Asker, Decider};
use crate::error::{DecideError, Problem};
use crate::prompt::layout::PerKind;
use crate::question::answer::Answer;
use crate::question::{Decision, Kind, Manner};
use crate::service::{Caller, Order, Registered, TaskKind, Teaching};
use crate::tasks::desk::{Desk, Refused};
use crate::tasks::record::{AbstentionTask, Task};
use crate::tasks::register::{self, Reader};

use super::decisio::Settings;
use super::salted;
use jobs::{Job, Jobs};

/// Registers tasks, and shows them.
pub(super) struct Teacher {
    inner: Arc<Inner>,
}

struct Inner {
    decider: Arc<Decider>,
    desk: Arc<Desk>,
    secret: [u8; 32],
    settings: Settings,
    jobs: Arc<Jobs>,
}

impl Teacher {
    pub(super) fn new(
        decider: Arc<Decider>,
        desk: Arc<Desk>,
        secret: [u8; 32],
        settings: Settings,
    ) -> Self {
        let jobs = Arc::default();
        Self { inner: Arc::new(Inner { decider, desk, secret, settings, jobs }) }
    }
}

impl Inner {
    async fn run(&self, order: Order, job: &Job) -> Result<Value, DecideError> {
        let (desk, tenant) = (&*self.desk, job.tenant().clone());
        match order {
            Order::Correction(order) => {
                register::task((desk, self), tenant, order, &job.progress).await
            }
            Order::Abstention(order) => {
                register::abstaining((desk, self), tenant, order, &job.progress).await
            }
        }
    }

    /// The record of a task that is there.
    fn record(&self, tenant: &TenantId, kind: TaskKind, id: &str) -> Option<Value> {
        match kind {
            TaskKind::Correction => {
                let tasks = self.desk.tasks(tenant);
                tasks.iter().find(|task| task.id == id).map(|task| task.shown(false))
            }
            TaskKind::Abstention => {
                let tasks = self.desk.abstentions(tenant);
                tasks.iter().find(|task| task.id == id).map(|task| task.record.clone())
            }
        }
    }

    /// Records that were fitted before, as tasks with their ids.
    ///
    /// * `read`: gives id, fingerprint and task of a record.
    fn imported<T>(
        &self,
        records: &[Value],
        read: impl Fn(&Value) -> Result<(String, String, T), String>,
    ) -> Result<(Vec<String>, Vec<T>), DecideError> {
        let known = Manner::ALL.map(|manner| self.desk.rendering(manner).fingerprint.clone());
        let (mut ids, mut tasks) = (Vec::new(), Vec::new());
        for (index, record) in records.iter().enumerate() {
            let (id, fingerprint, task) = read(record).map_err(|why| refused(index, &why))?;
            if !known.contains(&fingerprint) {
                let why = "it was fitted under another model or layout: register it again";
                return Err(refused(index, why));
            }
            ids.push(id);
            tasks.push(task);
        }
        Ok((ids, tasks))
    }
}

impl Reader for Inner {
    fn read(
        &self,
        tenant: TenantId,
        mut decision: Decision,
    ) -> BoxFuture<'_, Result<Vec<Answer>, DecideError>> {
        async move {
            let manner = decision.manner;
            for question in decision.questions.iter_mut().filter(|_| decision.applies_tasks) {
                let task = self.desk.tasks_of(&tenant, manner, question).pop();
                question.correction = task.and_then(|task| task.correction.clone());
            }
            let salt = salted(&self.secret, &Caller { tenant: tenant.clone(), salt: None });
            let asker = Asker { tenant, salt, since: tokio::time::Instant::now() };
            Ok(self.decider.decide(asker, decision).await?.answers)
        }
        .boxed()
    }

    fn temperatures(&self, manner: Manner) -> PerKind<f64> {
        self.decider.prompters().of(manner).profile().temperature
    }

    fn labels_max(&self, manner: Manner, kind: &Kind) -> usize {
        self.decider.prompters().of(manner).labels_max(kind)
    }
}

impl Teaching for Teacher {
    fn register(
        &self,
        caller: Caller,
        order: Order,
        in_background: bool,
    ) -> BoxFuture<'_, Result<Registered, DecideError>> {
        async move {
            let ending = self.inner.jobs.begin(&caller.tenant, &order)?;
            let (inner, job) = (Arc::clone(&self.inner), Arc::clone(ending.job()));
            // It goes on where its caller leaves, who can ask how far it is, or remove it.
            let work = tokio::spawn(async move {
                let ended = inner.run(order, ending.job()).await;
                *ending.job().ended() = Some(ended);
            });
            *job.work() = Some(work.abort_handle());
            if !in_background {
                // It may have been removed meanwhile; its guard has said so.
                let _ = work.await;
                let ended = job.ended().clone().unwrap_or(Err(ReadError::Cancelled.into()));
                return ended.map(Registered::Record);
            }
            Ok(Registered::Accepted(job.shown()))
        }
        .boxed()
    }

    fn tasks(&self, caller: &Caller, kind: TaskKind, full: bool) -> Value {
        let desk = &self.inner.desk;
        match kind {
            TaskKind::Correction => json!({
                "enabled": desk.config().tasks,
                "head_engine": self.inner.settings.reads_hidden,
                "fingerprint": desk.rendering(Manner::Letters).fingerprint,
                "fingerprints": {
                    "profile": desk.rendering(Manner::Profile).fingerprint,
                    "letters": desk.rendering(Manner::Letters).fingerprint,
                },
                "tasks": desk.tasks(&caller.tenant).iter().map(|task| task.shown(full))
                    .collect::<Vec<_>>(),
            }),
            TaskKind::Abstention => json!({
                "enabled": desk.config().abstention,
                "tasks": desk.abstentions(&caller.tenant).iter().map(|task| task.record.clone())
                    .collect::<Vec<_>>(),
            }),
        }
    }

    fn registration(&self, caller: &Caller, kind: TaskKind, id: &str) -> Option<Value> {
        let record = self.inner.record(&caller.tenant, kind, id);
        let job = self.inner.jobs.find(&caller.tenant, kind, id);
        if let Some(job) = job.filter(|job| job.is_current(record.as_ref())) {
            return Some(job.shown());
        }
        // One that was registered before the start or on another server, or imported.
        Some(json!({"id": id, "state": "done", "record": record?}))
    }

    fn unregister<'a>(
        &'a self,
        caller: &'a Caller,
        kind: TaskKind,
        id: &'a str,
    ) -> BoxFuture<'a, Result<bool, DecideError>> {
        async move {
            let (desk, tenant) = (&self.inner.desk, &caller.tenant);
            let was_running = self.inner.jobs.stop(tenant, kind, id);
            let was_there = match kind {
                TaskKind::Correction => desk.remove(tenant, id).await,
                TaskKind::Abstention => desk.remove_abstention(tenant, id).await,
            };
            Ok(was_there.map_err(register::refused)? || was_running)
        }
        .boxed()
    }

    fn import<'a>(
        &'a self,
        caller: &'a Caller,
        kind: TaskKind,
        records: Vec<Value>,
    ) -> BoxFuture<'a, Result<Vec<String>, DecideError>> {
        let (desk, tenant) = (&self.inner.desk, &caller.tenant);
        match kind {
            TaskKind::Correction => {
                let read = |record: &Value| {
                    let task = Task::read(record)?;
                    Ok((task.id.clone(), task.fingerprint.clone(), task))
                };
                let tasks = self.inner.imported(&records, read);
                async move {
                    let (ids, tasks) = tasks?;
                    desk.keep(tenant, tasks).await.map(|()| ids).map_err(unkept)
                }
                .boxed()
            }
            TaskKind::Abstention => {
                let read = |record: &Value| {
                    let task = AbstentionTask::read(record)?;
                    Ok((task.id.clone(), task.fingerprint.clone(), task))
                };
                let tasks = self.inner.imported(&records, read);
                async move {
                    let (ids, tasks) = tasks?;
                    desk.keep_abstention(tenant, tasks).await.map(|()| ids).map_err(unkept)
                }
                .boxed()
            }
        }
    }

    fn settings(&self, caller: Option<&Caller>) -> Value {
        let Inner { desk, decider, settings, .. } = &*self.inner;
        settings.shown(desk, &decider.actors().snapshot(), caller)
    }
}

/// An import that does not fit.
fn unkept(refused: Refused) -> DecideError {
    match refused {
        Refused::Full(message) => {
            DecideError::Invalid(vec![Problem::new(vec!["tasks".into()], "tasks_full", message)])
        }
        other @ (Refused::Conflict(_) | Refused::Unavailable(_) | Refused::Disk(_)) => {
            register::refused(other)
        }
    }
}

fn refused(index: usize, why: &str) -> DecideError {
    let path = vec!["tasks".into(), index.into()];
    DecideError::Invalid(vec![Problem::new(path, "task_refused", why.to_owned())])
}
