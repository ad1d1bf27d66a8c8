//! The load: sends a workload's requests in an open or a closed loop and measures each end.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::select;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_local;
use tokio::time::{Instant, sleep_until};

use crate::client::Driver;
use crate::exchange::{Exchange, Outcome};
use crate::measure::{Label, Measures};
use crate::pacer::Pacer;
use crate::retries::{Retries, Trail};
use crate::workload::{Planned, Request, Requests, Route};

/// Prewarms that are under way at once before a run.
const RESIDENTS_AT_ONCE: u32 = 8;
/// What requests without a lane are listed under.
const NO_LANE: &str = "none";

/// A request and when it starts, microseconds from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Start {
    pub(crate) at_us: u64,
    pub(crate) planned: Planned,
}

/// When a closed loop ends: at whichever comes first.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Until {
    pub(crate) requests: Option<u64>,
    pub(crate) duration: Option<Duration>,
}

/// A run: what is asked, of whom, and what came of it.
#[derive(Debug)]
pub(crate) struct Load<D> {
    driver: D,
    requests: RefCell<Requests>,
    measures: RefCell<Measures>,
    retries: RefCell<Retries>,
    /// Requests of an open loop that have started and not ended, those between two tries included.
    under_way: Cell<u64>,
    none_under_way: Notify,
    began: Cell<Instant>,
    /// The time at the beginning that is not measured.
    warm_up: Duration,
    /// Until when requests start; none where that is not known beforehand.
    starts_until: Cell<Option<Instant>>,
    last_end: Cell<Instant>,
    /// When it was told to end before its time.
    stopped: Cell<Option<Instant>>,
    stop: Notify,
}

impl<D: Driver + 'static> Load<D> {
    /// A run that has not begun.
    pub(crate) fn new(driver: D, requests: Requests, warm_up: Duration) -> Rc<Self> {
        let measures = RefCell::new(Measures::new(requests.tenant_names().len()));
        let now = Instant::now();
        Rc::new(Self {
            driver,
            requests: RefCell::new(requests),
            measures,
            retries: RefCell::default(),
            under_way: Cell::new(0),
            none_under_way: Notify::new(),
            began: Cell::new(now),
            warm_up,
            starts_until: Cell::new(None),
            last_end: Cell::new(now),
            stopped: Cell::new(None),
            stop: Notify::new(),
        })
    }

    /// Prewarms all states that the workload calls resident, outside the measures.
    ///
    /// # Errors
    /// When one cannot be made resident.
    pub(crate) async fn make_resident(self: &Rc<Self>) -> anyhow::Result<()> {
        let wanted = Rc::new(RefCell::new(self.requests.borrow().residents()));
        let workers: Vec<_> = (0..RESIDENTS_AT_ONCE)
            .map(|_| spawn_local(Rc::clone(self).prewarm(Rc::clone(&wanted))))
            .collect();
        for worker in workers {
            worker.await.context("a prewarm of the generator panicked")??;
        }
        ensure!(self.stopped.get().is_none(), "interrupted before anything was measured");
        Ok(())
    }

    async fn prewarm(self: Rc<Self>, wanted: Rc<RefCell<Vec<Planned>>>) -> anyhow::Result<()> {
        loop {
            let next = wanted.borrow_mut().pop().filter(|_| self.stopped.get().is_none());
            let Some(planned) = next else { return Ok(()) };
            let request = self.requests.borrow_mut().write(&planned);
            let exchange = self.driver.send(request).await;
            ensure!(
                exchange.outcome == Outcome::Answered,
                "a state that the workload calls resident could not be prewarmed: {}, {}",
                exchange.outcome.as_str(),
                exchange.fault.unwrap_or_default()
            );
        }
    }

    /// Starts every request at its time, whatever became of those before; at most `connections` are
    /// under way, and one that must wait for a connection is late by that, not forgotten. `lasts`
    /// is the length of the schedule that the plan is of.
    ///
    /// # Errors
    /// When the timer fails.
    pub(crate) async fn open(
        self: &Rc<Self>,
        plan: Vec<Start>,
        lasts: Duration,
        connections: u32,
        mut pacer: Pacer,
    ) -> anyhow::Result<()> {
        let (slots, mut count) = (Arc::new(Semaphore::new(connections as usize)), 0);
        let began = Instant::now();
        self.begin(began);
        self.starts_until.set(Some(began + lasts));
        // Until when requests waited for a connection.
        let mut freed = began;
        for Start { at_us, planned } in plan {
            let intended = began + Duration::from_micros(at_us);
            let slot = async {
                pacer.until(intended).await?;
                connection(&slots, &mut freed).await
            };
            let slot = select! {
                () = self.stop.notified() => break,
                slot = slot => slot?,
            };
            count += 1;
            let waited = intended < freed;
            let request = self.requests.borrow_mut().write(&planned);
            let load = UnderWay::of(self);
            spawn_local(async move { load.0.send(request, intended, waited, Some(slot)).await });
        }
        while self.under_way.get() > 0 {
            self.none_under_way.notified().await;
        }
        let ended = self.measures.borrow().ends();
        ensure!(ended == count, "{count} requests were sent, but {ended} ends were counted");
        Ok(())
    }

    /// Keeps one request of each client under way until the end.
    ///
    /// # Errors
    /// When a client panicked.
    pub(crate) async fn closed(self: &Rc<Self>, clients: u32, until: Until) -> anyhow::Result<()> {
        let began = Instant::now();
        self.begin(began);
        let deadline = until.duration.map(|duration| began + duration);
        self.starts_until.set(deadline);
        let left = Rc::new(Cell::new(until.requests.unwrap_or(u64::MAX)));
        let work = |load: Rc<Self>, left: Rc<Cell<u64>>| async move {
            let is_over = || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            while left.get() > 0 && !is_over() && load.stopped.get().is_none() {
                left.set(left.get() - 1);
                let request = load.next();
                load.send(request, Instant::now(), false, None).await;
            }
        };
        let workers: Vec<_> =
            (0..clients).map(|_| spawn_local(work(Rc::clone(self), Rc::clone(&left)))).collect();
        for worker in workers {
            worker.await.context("a client of the generator panicked")?;
        }
        if left.get() == 0 {
            // All were sent before the time was over.
            let ended = self.last_end.get();
            self.starts_until.set(Some(deadline.map_or(ended, |deadline| deadline.min(ended))));
        }
        Ok(())
    }

    /// Starts no more requests; what is under way ends as it would.
    pub(crate) fn stop(&self) {
        let now = Instant::now();
        if self.starts_until.get().is_none_or(|until| now < until) {
            self.stopped.set(Some(now));
            self.starts_until.set(Some(now));
            self.stop.notify_one();
        }
    }

    /// How long it had gone on when it was told to end before its time; none where it was not.
    pub(crate) fn stopped(&self) -> Option<Duration> {
        self.stopped.get().map(|at| at.saturating_duration_since(self.began.get()))
    }

    /// Notes when the run begins, and its measures after the warm-up.
    fn begin(&self, at: Instant) {
        self.began.set(at);
        self.measures.borrow_mut().begin(at + self.warm_up);
    }

    fn next(&self) -> Request {
        let mut requests = self.requests.borrow_mut();
        let planned = requests.draw();
        requests.write(&planned)
    }

    /// Sends one request, again where it is refused and its kind retries, and counts its one end.
    async fn send(
        &self,
        request: Request,
        intended: Instant,
        waited: bool,
        slot: Option<OwnedSemaphorePermit>,
    ) {
        let route = request.route;
        let (mut label, retries) = self.label(&request, intended);
        label.waited = waited;
        self.measures.borrow_mut().started += 1;
        let wanted = still_wanted(request, &label);
        let again = wanted.as_ref().filter(|_| retries > 0).cloned();
        let mut exchange = match wanted {
            Some(request) => self.driver.send(request).await,
            None => Exchange::unsent(Instant::now()),
        };
        label.first_sent = exchange.sent;
        let from = self.began.get() + self.warm_up;
        let is_measured = intended >= from;
        if let Some(request) = again.filter(|_| exchange.outcome == Outcome::Refused) {
            let trail = Trail::begin(&request, retries, &exchange);
            let trail = self.send_again(&request, &mut exchange, trail, slot).await;
            if is_measured {
                self.retries.borrow_mut().record(&trail);
            }
        }
        self.last_end.set(self.last_end.get().max(exchange.ended));
        label.is_loaded = exchange.ended >= from
            && self.starts_until.get().is_none_or(|until| exchange.ended <= until);
        let mut measures = self.measures.borrow_mut();
        match (route, is_measured) {
            (Route::Decide, true) => measures.record(label, exchange),
            (Route::Decide, false) => measures.record_warm_up(label, &exchange),
            (Route::Prewarm, true) => measures.record_prewarm(label, exchange),
            (Route::Prewarm, false) => measures.warm_up += 1,
        }
    }

    /// Sends a refused request whenever the server said, until it is not refused or the trail ends;
    /// `last` becomes its end. While it waits it leaves its connection to others.
    async fn send_again(
        &self,
        request: &Request,
        last: &mut Exchange,
        mut trail: Trail,
        mut slot: Option<OwnedSemaphorePermit>,
    ) -> Trail {
        while let Some(at) = trail.again_at(last) {
            let slots = slot.take().map(|slot| Arc::clone(slot.semaphore()));
            sleep_until(at).await;
            if let Some(slots) = slots {
                slot = slots.acquire_owned().await.ok();
            }
            let Some(request) = trail.shortened(request, Instant::now()) else { break };
            *last = self.driver.send(request).await;
            trail.tried(last);
        }
        trail
    }

    /// What its end is counted under, and how often it may be sent again.
    fn label(&self, request: &Request, intended: Instant) -> (Label, u32) {
        let requests = self.requests.borrow();
        let traffic = &requests.workload().traffic[request.traffic];
        let label = Label {
            number: request.number,
            lane: traffic.lane.map_or(NO_LANE, crate::workload::Lane::as_str),
            tenant: request.tenant,
            questions: request.questions,
            state: request.state,
            limit: traffic.limit_ms.map(|limit| Duration::from_millis(limit.into())),
            intended,
            first_sent: intended,
            waited: false,
            leaves: request.leaves_after.is_some(),
            is_loaded: true,
        };
        let retries = traffic.retries.filter(|_| request.route == Route::Decide);
        (label, retries.unwrap_or(0))
    }

    /// What became of refused requests that could be sent again.
    pub(crate) fn retries(&self) -> Retries {
        self.retries.take()
    }

    /// What is measured so far, how long the run has gone on, and its warm-up: for live progress.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&Measures, Duration, Duration) -> T) -> T {
        let elapsed = Instant::now().saturating_duration_since(self.began.get());
        read(&self.measures.borrow(), elapsed, self.warm_up)
    }

    /// The measures, for how long requests started, and until the last end, after the warm-up.
    pub(crate) fn finish(&self) -> (Measures, Duration, Duration) {
        let from = self.began.get() + self.warm_up;
        let whole = self.last_end.get().saturating_duration_since(from);
        let until = self.starts_until.get().unwrap_or(self.last_end.get());
        (self.measures.take(), until.saturating_duration_since(from), whole)
    }
}

/// A request with what is left of its client's patience, which goes on while it waits for a
/// connection; none where that has ended. So a run ends soon after its schedule even where a server
/// answers nothing.
fn still_wanted(request: Request, label: &Label) -> Option<Request> {
    if !label.waited {
        return Some(request);
    }
    let late = Instant::now().saturating_duration_since(label.intended);
    let patience = request.patience.checked_sub(late).filter(|left| !left.is_zero())?;
    Some(Request { patience, ..request })
}

/// A request of an open loop from its start to its end, however its task ends.
struct UnderWay<D>(Rc<Load<D>>);

impl<D> UnderWay<D> {
    fn of(load: &Rc<Load<D>>) -> Self {
        load.under_way.set(load.under_way.get() + 1);
        Self(Rc::clone(load))
    }
}

impl<D> Drop for UnderWay<D> {
    fn drop(&mut self) {
        self.0.under_way.set(self.0.under_way.get() - 1);
        if self.0.under_way.get() == 0 {
            self.0.none_under_way.notify_one();
        }
    }
}

/// The plan of an open loop: a request at each start, and before it, where the workload wants one, the
/// prewarm of a state that its tenant has not used yet.
pub(crate) fn plan(requests: &mut Requests, starts_us: &[u64]) -> Vec<Start> {
    let mut used = std::collections::HashSet::new();
    let mut plan = Vec::with_capacity(starts_us.len());
    for at_us in starts_us {
        let planned = requests.draw();
        requests.prepare(&planned);
        if let Some(lead_ms) = requests.prewarm_lead_ms(&planned)
            && used.insert((planned.tenant, planned.text))
        {
            let at_us = at_us.saturating_sub(u64::from(lead_ms) * 1_000);
            plan.push(Start { at_us, planned: Requests::prewarm_of(&planned) });
        }
        plan.push(Start { at_us: *at_us, planned });
    }
    plan.sort_by_key(|start| start.at_us);
    plan
}

/// A connection's slot; when it was had, in `freed`, where it had to be waited for.
async fn connection(
    slots: &Arc<Semaphore>,
    freed: &mut Instant,
) -> anyhow::Result<OwnedSemaphorePermit> {
    if let Ok(slot) = Arc::clone(slots).try_acquire_owned() {
        return Ok(slot);
    }
    let slot = Arc::clone(slots).acquire_owned().await?;
    *freed = Instant::now();
    Ok(slot)
}

#[cfg(test)]
mod interrupt_tests;
#[cfg(test)]
mod retry_tests;
#[cfg(test)]
mod tests;
