//! Registrations under way, and those whose end can still be asked for.
//!
//! What they hold is bounded: their number by key, the bytes of their examples for all keys together.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use actors::{ReadError, TenantId};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::error::{DecideError, Problem, RegistrationsFull};
use crate::service::{Order, TaskKind};
use crate::tasks::register::Progress;
use crate::tasks::{REGISTRATIONS_BYTES_MAX, REGISTRATIONS_MAX};
use crate::telemetry;

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Jobs {
    listed: Mutex<Vec<Arc<Job>>>,
    /// Bytes of the orders under way; raised under the list's lock only.
    bytes: AtomicUsize,
}

/// A registration under way, or one whose end can be asked for.
#[derive(Debug)]
pub(super) struct Job {
    tenant: TenantId,
    kind: TaskKind,
    id: String,
    examples: usize,
    bytes: usize,
    pub(super) progress: Progress,
    work: Mutex<Option<AbortHandle>>,
    ended: Mutex<Option<Result<Value, DecideError>>>,
}

/// Gives back what a registration holds once it is dropped, and says so where that is before its end.
#[derive(Debug)]
pub(super) struct Ending {
    job: Arc<Job>,
    jobs: Arc<Jobs>,
}

impl Jobs {
    /// Notes a registration. Where its key has too many the oldest that has ended makes room.
    ///
    /// # Errors
    /// [`RegistrationsFull`] where none has, or where the examples of all under way take too much;
    /// [`DecideError::Invalid`] where this one's alone would.
    pub(super) fn begin(
        self: &Arc<Self>,
        tenant: &TenantId,
        order: &Order,
    ) -> Result<Ending, DecideError> {
        let job = Job::of(tenant, order);
        let (bytes, bytes_max) = (job.bytes, REGISTRATIONS_BYTES_MAX);
        if bytes > bytes_max {
            let message = format!("the examples take {bytes} bytes of memory, at most {bytes_max}");
            let problem = Problem::new(vec!["examples".into()], "examples_invalid", message);
            return Err(DecideError::Invalid(vec![problem]));
        }
        let mut listed = self.listed();
        let held = self.bytes.load(Ordering::SeqCst);
        if held + bytes > bytes_max {
            return Err(RegistrationsFull::Bytes { bytes, held, bytes_max }.into());
        }
        // Those of its sub-tenants, of which there can be any number, count for the tenant.
        let is_own = |job: &Arc<Job>| job.tenant.payer() == tenant.payer();
        let count = listed.iter().filter(|job| is_own(job)).count();
        if count >= REGISTRATIONS_MAX {
            let over = listed.iter().position(|job| is_own(job) && job.ended().is_some());
            let full = RegistrationsFull::OfKey { count, count_max: REGISTRATIONS_MAX };
            listed.remove(over.ok_or(full)?);
        }
        telemetry::registration_bytes(self.bytes.fetch_add(bytes, Ordering::SeqCst) + bytes);
        let job = Arc::new(job);
        listed.push(Arc::clone(&job));
        Ok(Ending { job, jobs: Arc::clone(self) })
    }

    /// The newest of this name.
    pub(super) fn find(&self, tenant: &TenantId, kind: TaskKind, id: &str) -> Option<Arc<Job>> {
        self.listed().iter().rfind(|job| job.is(tenant, kind, id)).cloned()
    }

    /// Stops and forgets all of this name, so that none is told of as done whose task is gone; says
    /// whether one ran.
    pub(super) fn stop(&self, tenant: &TenantId, kind: TaskKind, id: &str) -> bool {
        let own: Vec<_> = self.listed().extract_if(.., |job| job.is(tenant, kind, id)).collect();
        own.iter().filter(|job| job.stop()).count() > 0
    }

    fn listed(&self) -> MutexGuard<'_, Vec<Arc<Job>>> {
        self.listed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Job {
    fn of(tenant: &TenantId, order: &Order) -> Self {
        let (kind, id, examples, bytes) = match order {
            Order::Correction(order) => {
                let more = order.certify.as_ref().map_or(0, |certify| certify.examples.len());
                (TaskKind::Correction, &order.id, order.examples.len() + more, order.bytes)
            }
            Order::Abstention(order) => {
                (TaskKind::Abstention, &order.id, order.examples.len(), order.bytes)
            }
        };
        Self {
            tenant: tenant.clone(),
            kind,
            id: id.clone(),
            examples,
            bytes,
            progress: Progress::default(),
            work: Mutex::default(),
            ended: Mutex::default(),
        }
    }

    fn is(&self, tenant: &TenantId, kind: TaskKind, id: &str) -> bool {
        self.tenant == *tenant && self.kind == kind && self.id == id
    }

    /// Its tenant.
    pub(super) fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// What came of it, once it has ended.
    pub(super) fn ended(&self) -> MutexGuard<'_, Option<Result<Value, DecideError>>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is what there is to be said of its name, where `record` is what is registered now:
    /// another server may have replaced or removed what came of it.
    pub(super) fn is_current(&self, record: Option<&Value>) -> bool {
        match &*self.ended() {
            Some(Ok(made)) => record == Some(made),
            Some(Err(_)) | None => true,
        }
    }

    /// By what it is stopped.
    pub(super) fn work(&self) -> MutexGuard<'_, Option<AbortHandle>> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops it, if it runs; says whether it did.
    fn stop(&self) -> bool {
        let is_running = self.ended().is_none();
        if let Some(work) = self.work().take().filter(|_| is_running) {
            work.abort();
        }
        is_running
    }

    /// How far it is, as its status says.
    pub(super) fn shown(&self) -> Value {
        let (done, of) = (self.progress.done(), self.examples);
        let base = |state: &str| json!({"id": self.id, "state": state, "done": done, "of": of});
        match &*self.ended() {
            None => base("running"),
            Some(Ok(record)) => {
                let mut shown = base("done");
                shown["record"] = record.clone();
                shown
            }
            Some(Err(error)) => {
                let mut shown = base("failed");
                shown["error"] = json!(error.to_string());
                shown
            }
        }
    }
}

impl Ending {
    /// What ends.
    pub(super) fn job(&self) -> &Arc<Job> {
        &self.job
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.job.ended().get_or_insert_with(|| Err(ReadError::Cancelled.into()));
        let bytes = self.job.bytes;
        telemetry::registration_bytes(self.jobs.bytes.fetch_sub(bytes, Ordering::SeqCst) - bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::order::{AbstainOption, AbstentionOrder, Match, TaskOrder};

    fn order(id: &str, bytes: usize) -> Order {
        let (id, examples) = (id.to_owned(), Vec::new());
        Order::Correction(TaskOrder { id, examples, certify: None, bytes })
    }

    fn tenant(name: &str) -> TenantId {
        TenantId(name.into())
    }

    fn refused(jobs: &Arc<Jobs>, of: &str, bytes: usize) -> DecideError {
        jobs.begin(&tenant(of), &order("x", bytes)).expect_err("there is no room")
    }

    #[test]
    fn registrations_under_way_hold_no_more_than_their_bytes_whosever_they_are() {
        let jobs = Arc::new(Jobs::default());
        let half = REGISTRATIONS_BYTES_MAX / 2;
        let one = jobs.begin(&tenant("one"), &order("a", half)).unwrap();
        let two = jobs.begin(&tenant("two"), &order("a", half)).unwrap();
        let bytes_max = REGISTRATIONS_BYTES_MAX;
        let full = RegistrationsFull::Bytes { bytes: 1, held: bytes_max, bytes_max };
        assert_eq!(refused(&jobs, "three", 1), DecideError::from(full));
        assert!(jobs.find(&tenant("three"), TaskKind::Correction, "x").is_none(), "not noted");
        drop(one);
        let three = jobs.begin(&tenant("three"), &order("b", half)).unwrap();
        drop((two, three));
        assert_eq!(jobs.bytes.load(Ordering::SeqCst), 0);
        let never = refused(&jobs, "one", REGISTRATIONS_BYTES_MAX + 1);
        assert!(matches!(never, DecideError::Invalid(_)), "to come back would not help: {never:?}");
    }

    #[test]
    fn a_key_has_so_many_registrations_and_the_oldest_that_ended_makes_room() {
        let jobs = Arc::new(Jobs::default());
        let begin = |id: usize| jobs.begin(&tenant("one"), &order(&format!("{id}"), 1));
        let mut running: Vec<Ending> =
            (0..REGISTRATIONS_MAX).map(|id| begin(id).unwrap()).collect();
        let full =
            RegistrationsFull::OfKey { count: REGISTRATIONS_MAX, count_max: REGISTRATIONS_MAX };
        assert_eq!(refused(&jobs, "one", 1), DecideError::from(full));
        assert_eq!(
            refused(&jobs, "one/sub", 1),
            DecideError::from(full),
            "a sub-tenant's is its tenant's"
        );
        assert!(jobs.begin(&tenant("two"), &order("x", 1)).is_ok(), "another key's room");
        let find = |id: &str| jobs.find(&tenant("one"), TaskKind::Correction, id);
        drop(running.remove(1));
        assert_eq!(find("1").unwrap().shown()["state"], "failed", "it can be asked for");
        running.push(begin(99).unwrap());
        assert!(find("1").is_none() && find("0").is_some() && find("99").is_some());
    }

    #[test]
    fn kinds_and_keys_are_told_apart() {
        let jobs = Arc::new(Jobs::default());
        let abstention = Order::Abstention(AbstentionOrder {
            id: "a".to_owned(),
            option: AbstainOption::Key("none".to_owned()),
            matches: Match::OptionSet,
            examples: Vec::new(),
            bytes: 1,
        });
        let _one = jobs.begin(&tenant("one"), &abstention).unwrap();
        let stop = |name: &str, kind| jobs.stop(&tenant(name), kind, "a");
        assert!(!stop("one", TaskKind::Correction) && !stop("two", TaskKind::Abstention));
        assert!(jobs.find(&tenant("one"), TaskKind::Abstention, "a").is_some());
        assert!(stop("one", TaskKind::Abstention));
        assert!(jobs.find(&tenant("one"), TaskKind::Abstention, "a").is_none(), "it is forgotten");
    }
}
