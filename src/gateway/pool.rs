//! The fleet behind a lock, with what is counted of it; and the place of one request in it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use super::fleet::{Chosen, Fleet, Reason, Went};
use super::rank::{self, Candidate};
use crate::config::GatewayConfig;
use crate::state_key::StateKey;
use crate::telemetry::{self, BackendEnd, BackendMeters, Choice};

/// All backends, shared by requests and probes.
pub(super) struct Pool {
    config: GatewayConfig,
    /// As they were given; the fleet's, without its lock.
    candidates: Vec<Candidate>,
    meters: Vec<BackendMeters>,
    /// A std mutex: it is held to choose one of a few backends, never over an `.await`.
    fleet: Mutex<Fleet>,
}

impl Pool {
    pub(super) fn new(config: &GatewayConfig) -> Self {
        let named = |backend: &crate::config::BackendConfig| (backend.name.clone(), backend.weight);
        let backends: Vec<(String, u32)> = config.backends.iter().map(named).collect();
        let fleet = Fleet::new(&backends, config.load);
        Self {
            config: config.clone(),
            candidates: fleet.candidates().to_vec(),
            meters: backends.iter().map(|(name, _)| BackendMeters::new(name)).collect(),
            fleet: Mutex::new(fleet),
        }
    }

    /// How many backends there are.
    pub(super) fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Host and port of a backend.
    pub(super) fn name(&self, index: usize) -> &str {
        &self.config.backends[index].name
    }

    /// All places, in the order in which a key prefers them.
    pub(super) fn order(&self, key: StateKey) -> Vec<usize> {
        rank::order(key, &self.candidates)
    }

    /// A place for a request, by its key's order; `None` where nobody is left who takes it.
    pub(super) fn place(
        self: &Arc<Self>,
        order: Option<&[usize]>,
        tried: &[usize],
    ) -> Option<Place> {
        let Chosen { index, reason } = self.lock().begin(order, tried, now())?;
        telemetry::chosen(match reason {
            Reason::Own => Choice::Own,
            Reason::Load => Choice::Load,
            Reason::Down => Choice::Down,
            Reason::Retry => Choice::Retry,
            Reason::Any => Choice::Any,
        });
        Some(self.taken(index))
    }

    /// A place at one backend, where that takes requests.
    pub(super) fn place_at(self: &Arc<Self>, index: usize) -> Option<Place> {
        let mut fleet = self.lock();
        if !fleet.takes(index, now()) {
            return None;
        }
        fleet.begin_at(index);
        drop(fleet);
        Some(self.taken(index))
    }

    fn taken(self: &Arc<Self>, index: usize) -> Place {
        self.show(index);
        Place { pool: Arc::clone(self), index, began: Instant::now(), end: None }
    }

    /// Whether there are backends that take requests and were not tried.
    pub(super) fn has_others(&self, tried: &[usize]) -> bool {
        self.lock().open(tried, now()) > 0
    }

    /// All that take requests.
    pub(super) fn taking(&self) -> Vec<usize> {
        self.lock().taking(now()).collect()
    }

    /// A probe of a backend ended.
    pub(super) fn probed(&self, index: usize, is_ready: bool) {
        self.meters[index].probed(is_ready);
        let changed = self.lock().probed(index, is_ready, &self.config.probes);
        if let Some(is_ready) = changed {
            let backend = self.name(index);
            if is_ready {
                tracing::info!(backend, "the backend is ready");
            } else {
                tracing::warn!(backend, "the backend is not ready, by its probes");
            }
        }
        self.show(index);
    }

    fn went(&self, index: usize, went: Went) {
        let ejected = self.lock().went(index, went, (now(), &self.config.ejection));
        let backend = self.name(index);
        if let Some(time) = ejected {
            self.meters[index].ejected();
            tracing::warn!(backend, "the backend is left alone for {time:?}: its requests fail");
        }
        if went == Went::Leaving {
            tracing::info!(backend, "the backend says that it takes no more");
        }
        self.show(index);
    }

    fn show(&self, index: usize) {
        let fleet = self.lock();
        self.meters[index].in_flight(fleet.in_flight(index));
        self.meters[index].ready(fleet.takes(index, now()));
    }

    /// Nothing that runs under the lock panics half-way, so what a panic left is whole.
    fn lock(&self) -> MutexGuard<'_, Fleet> {
        self.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request at a backend, until it is dropped.
pub(super) struct Place {
    pool: Arc<Pool>,
    index: usize,
    began: Instant,
    /// `None` while it lasts: one that is dropped so was given up by its client.
    end: Option<BackendEnd>,
}

impl Place {
    pub(super) fn index(&self) -> usize {
        self.index
    }

    /// The head of an answer is there.
    pub(super) fn answered(&self) {
        self.pool.meters[self.index].answered_after(self.began.elapsed());
        self.pool.went(self.index, Went::Answered);
    }

    /// The backend has said that it takes no more.
    pub(super) fn leaving(&self) {
        self.pool.went(self.index, Went::Leaving);
    }

    /// How it ends; the first word counts.
    pub(super) fn ends(&mut self, end: BackendEnd) {
        if self.end.is_some() {
            return;
        }
        self.end = Some(end);
        match end {
            BackendEnd::Unreached | BackendEnd::Broken | BackendEnd::Timeout => {
                self.pool.went(self.index, Went::Failed);
            }
            BackendEnd::Answered | BackendEnd::Refused | BackendEnd::Left => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.pool.meters[self.index].ended(self.end.unwrap_or(BackendEnd::Left));
        self.pool.lock().ended(self.index);
        self.pool.show(self.index);
    }
}

/// By the clock of the runtime, which tests may turn.
fn now() -> std::time::Instant {
    Instant::now().into_std()
}
