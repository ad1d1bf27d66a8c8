//! The loops in virtual time, against servers that are a few lines each.
//!
//! Goal: what a stalled, refusing or slow server does to users is in the numbers. Method: Tokio's
//! clock is paused, so that ten seconds of load take milliseconds and every time is exact.

use std::collections::BTreeMap;

use tokio::task::LocalSet;
use tokio::time::sleep_until;

use super::*;
use crate::arrivals::{Arrivals, Pattern};
use crate::exchange::Reply;
use crate::workload::Workload;

pub(super) const MS: Duration = Duration::from_millis(1);
/// Length of an open loop here.
pub(super) const TEN_SECONDS: Duration = Duration::from_secs(10);

/// When a request came, for what, and its body.
type Seen = (Duration, Route, Vec<u8>);

/// A server by a rule: when a request that is sent at some time since the beginning ends, and how.
pub(super) struct Server<F> {
    began: Instant,
    rule: F,
    /// What every response says of coming back.
    pub(super) retry_after_ms: Option<u64>,
    pub(super) bodies: Rc<RefCell<Vec<Seen>>>,
    under_way: Cell<u32>,
    /// Most that were under way at once.
    pub(super) under_way_max: Rc<Cell<u32>>,
}

impl<F: Fn(Duration, u64) -> (Duration, Outcome)> Server<F> {
    pub(super) fn new(rule: F) -> Self {
        let (under_way, under_way_max) = (Cell::new(0), Rc::default());
        let (began, retry_after_ms, bodies) = (Instant::now(), None, Rc::default());
        Self { began, rule, retry_after_ms, bodies, under_way, under_way_max }
    }
}

impl<F: Fn(Duration, u64) -> (Duration, Outcome)> Driver for Server<F> {
    async fn send(&self, request: Request) -> Exchange {
        let sent = Instant::now();
        let number = self.bodies.borrow().len() as u64;
        let (end, outcome) = (self.rule)(sent - self.began, number);
        self.bodies.borrow_mut().push((sent - self.began, request.route, request.body().to_vec()));
        self.under_way.set(self.under_way.get() + 1);
        let most = self.under_way_max.get().max(self.under_way.get());
        self.under_way_max.set(most);
        let impatient = sent + request.patience;
        sleep_until(impatient.min(self.began + end)).await;
        self.under_way.set(self.under_way.get() - 1);
        let ended = Instant::now();
        if self.began + end > impatient {
            return Exchange::bare(Outcome::TimedOut, sent, ended);
        }
        let reason = (outcome == Outcome::Refused).then(|| "queue_full".to_owned());
        let reply = Reply { reason, retry_after_ms: self.retry_after_ms, ..Reply::default() };
        Exchange { reply: Some(reply), ..Exchange::bare(outcome, sent, ended) }
    }
}

/// Answers in a millisecond, but not between the fifth and the sixth second.
fn stalls(at: Duration, _: u64) -> (Duration, Outcome) {
    let stall = Duration::from_secs(5)..Duration::from_secs(6);
    let end = if stall.contains(&at) { stall.end } else { at + MS };
    (end, Outcome::Answered)
}

pub(super) fn requests(workload: &str) -> Requests {
    Requests::new(Workload::load(workload).unwrap(), &BTreeMap::new(), "test", 1).unwrap()
}

pub(super) fn starts_us(rate: f64, seconds: u64) -> Vec<u64> {
    let (rate, duration) = (Some(rate), Some(Duration::from_secs(seconds)));
    let arrivals = Arrivals { pattern: Pattern::default(), rate, burst: 1, duration, seed: 1 };
    arrivals.schedule().unwrap().starts_us
}

/// An open loop of `rate` for ten seconds.
async fn open<F>(server: Server<F>, rate: f64, connections: u32) -> Measures
where
    F: Fn(Duration, u64) -> (Duration, Outcome) + 'static,
{
    let mut requests = requests("tiny");
    let plan = plan(&mut requests, &starts_us(rate, 10));
    let load = Load::new(server, requests, Duration::ZERO);
    LocalSet::new()
        .run_until(load.open(plan, TEN_SECONDS, connections, Pacer::by_tokio()))
        .await
        .unwrap();
    load.finish().0
}

async fn closed<F>(server: Server<F>, clients: u32, until: Until, warm_up: Duration) -> Measures
where
    F: Fn(Duration, u64) -> (Duration, Outcome) + 'static,
{
    let load = Load::new(server, requests("tiny"), warm_up);
    LocalSet::new().run_until(load.closed(clients, until)).await.unwrap();
    load.finish().0
}

#[tokio::test(start_paused = true)]
async fn a_stall_of_a_second_is_in_p99_from_the_intended_start() {
    // A tenth of the requests should start in the stall; the worst tenth of those is the p99.
    let measures = open(Server::new(stalls), 100.0, 1_000).await;
    assert!((800.0..=1_001.0).contains(&measures.all.latency.ms(0.99)));
    assert!((950.0..=1_001.0).contains(&measures.all.latency.ms(1.0)));
    assert!(measures.all.latency.ms(0.5) <= 2.1);
}

#[tokio::test(start_paused = true)]
async fn a_stall_is_in_p99_even_where_connections_run_out_and_nothing_is_sent_meanwhile() {
    let measures = open(Server::new(stalls), 100.0, 4).await;
    let waits = &measures.connection_wait;
    assert!(waits.count() > 70 && waits.ms(1.0) > 850.0, "{}", waits.count());
    assert!((800.0..=1_010.0).contains(&measures.all.latency.ms(0.99)));
    // Four requests in a thousand saw the stall from their sending: that is what must not be reported.
    assert!(measures.service.ms(0.99) < 10.0);
    // The generator is not to blame.
    assert!(measures.lag.ms(1.0) <= 1.0);
}

#[tokio::test(start_paused = true)]
async fn one_stall_is_told_by_an_open_loop_as_users_feel_it_and_by_a_closed_loop_hardly_at_all() {
    // The same server: a millisecond an answer, and one stall of a second in ten. At 100 requests a
    // second a tenth of all users come into it, and wait for half a second on average.
    let open = open(Server::new(stalls), 100.0, 1_000).await.all.latency;
    for (share, low_ms, high_ms) in
        [(0.85, 1.0, 2.1), (0.92, 50.0, 400.0), (0.95, 300.0, 700.0), (0.99, 800.0, 1_001.0)]
    {
        let ms = open.ms(share);
        assert!((low_ms..=high_ms).contains(&ms), "{share} of the open loop: {ms} ms");
    }
    // A tenth of 500 ms beside 0.9 of 1 ms.
    assert!((40.0..=62.0).contains(&open.mean_ms()), "{}", open.mean_ms());
    // One client meets it once in nine thousand requests: neither p99 nor the mean has it.
    let until = Until { requests: None, duration: Some(Duration::from_secs(10)) };
    let closed = closed(Server::new(stalls), 1, until, Duration::ZERO).await.service;
    assert!(closed.count() > 8_500 && closed.ms(0.999) <= 1.1, "{}", closed.ms(0.999));
    assert!(closed.ms(1.0) > 990.0 && closed.mean_ms() < 1.5, "{}", closed.mean_ms());
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_hides_the_stall() {
    let until = Until { requests: None, duration: Some(Duration::from_secs(10)) };
    let measures = closed(Server::new(stalls), 4, until, Duration::ZERO).await;
    assert!(measures.service.ms(0.99) < 10.0 && measures.service.ms(1.0) > 990.0);
}

#[tokio::test(start_paused = true)]
async fn starts_do_not_wait_for_answers() {
    let slow = |at, _| (at + Duration::from_mins(1), Outcome::Answered);
    let server = Server::new(slow);
    let bodies = Rc::clone(&server.bodies);
    let measures = open(server, 50.0, 1_000).await;
    assert!(measures.lag.ms(1.0) <= 1.0, "{}", measures.lag.ms(1.0));
    let bodies = bodies.borrow();
    let sent = bodies.iter().map(|(at, _, _)| at);
    for (sent, intended) in sent.zip(starts_us(50.0, 10)) {
        let late = sent.saturating_sub(Duration::from_micros(intended));
        assert!(late <= MS, "{late:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_request_has_one_end() {
    let rule = |at, number: u64| {
        let kinds = Outcome::ALL.len() as u64;
        (at + MS * 5, Outcome::ALL[usize::try_from(number % kinds).unwrap()])
    };
    let measures = open(Server::new(rule), 100.0, 10).await;
    let sent = starts_us(100.0, 10).len() as u64;
    assert_eq!(measures.all.counts.sum(), sent);
    for outcome in Outcome::ALL {
        assert!((sent / 7..=sent / 7 + 1).contains(&measures.all.counts.of(outcome)));
    }
}

#[tokio::test(start_paused = true)]
async fn connections_bound_what_is_under_way() {
    let server = Server::new(|at, _| (at + MS * 100, Outcome::Answered));
    let mut requests = requests("tiny");
    let plan = plan(&mut requests, &starts_us(100.0, 10));
    let load = Load::new(server, requests, Duration::ZERO);
    LocalSet::new().run_until(load.open(plan, TEN_SECONDS, 3, Pacer::by_tokio())).await.unwrap();
    assert_eq!(load.driver.under_way_max.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_does_not_keep_the_run_from_its_end() {
    let server = Server::new(|at, _| (at + Duration::from_hours(1), Outcome::Answered));
    let bodies = Rc::clone(&server.bodies);
    // One kind of request holds the connections longer than the clients of the others wait.
    let mut workload = Workload::load("mixed-lanes").unwrap();
    for (number, traffic) in workload.traffic.iter_mut().enumerate() {
        traffic.patience_ms = if number == 0 { 6_000 } else { 500 };
    }
    let mut requests = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    let plan = plan(&mut requests, &starts_us(50.0, 10));
    let load = Load::new(server, requests, Duration::ZERO);
    let open = load.open(plan, TEN_SECONDS, 3, Pacer::by_tokio());
    LocalSet::new().run_until(open).await.unwrap();
    let (measures, _, whole) = load.finish();
    assert!(whole < Duration::from_secs(25), "{whole:?}");
    let (all, sent) = (&measures.all, starts_us(50.0, 10).len() as u64);
    assert_eq!((all.counts.of(Outcome::TimedOut), all.counts.sum()), (sent, sent));
    assert_eq!(measures.unsent + bodies.borrow().len() as u64, sent);
    assert!(measures.unsent > sent / 4, "{}", measures.unsent);
    // What was never sent is not good either.
    assert_eq!((all.wanted, all.offered_goodput(), all.goodput()), (sent, Some(0.0), Some(0.0)));
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_keeps_its_clients_busy_and_stops_at_its_requests() {
    let server = Server::new(|at, _| (at + MS * 10, Outcome::Answered));
    let load = Load::new(server, requests("tiny"), Duration::ZERO);
    let until = Until { requests: Some(101), duration: None };
    LocalSet::new().run_until(load.closed(4, until)).await.unwrap();
    assert_eq!(load.driver.under_way_max.get(), 4);
    let (measures, started, whole) = load.finish();
    assert_eq!(measures.all.counts.of(Outcome::Answered), 101);
    // 26 rounds of 10 ms.
    assert_eq!((started, whole), (MS * 260, MS * 260));
}

#[tokio::test(start_paused = true)]
async fn the_warm_up_is_counted_apart() {
    let slow_start = |at, _| {
        let cold = at < Duration::from_secs(1);
        (at + if cold { MS * 500 } else { MS }, Outcome::Answered)
    };
    let until = Until { requests: None, duration: Some(Duration::from_secs(2)) };
    let measures = closed(Server::new(slow_start), 1, until, Duration::from_secs(1)).await;
    assert_eq!((measures.warm_up, measures.all.counts.sum()), (2, 1_000));
    assert!(measures.service.ms(1.0) < 2.0);
}

#[tokio::test(start_paused = true)]
async fn what_the_warm_up_asked_for_counts_under_load_where_it_ends_in_it() {
    // Each of four clients has an answer every 400 ms, one of them across the end of the warm-up.
    let server = Server::new(|at, _| (at + MS * 400, Outcome::Answered));
    let load = Load::new(server, requests("tiny"), Duration::from_secs(1));
    let until = Until { requests: None, duration: Some(Duration::from_secs(3)) };
    LocalSet::new().run_until(load.closed(4, until)).await.unwrap();
    let (measures, load, _) = load.finish();
    assert_eq!((measures.warm_up, measures.all.loaded_answered), (12, 20));
    assert_eq!((measures.loaded_answers, load), (20, Duration::from_secs(2)));
}

#[tokio::test(start_paused = true)]
async fn clients_that_leave_make_no_latency_look_better() {
    // Those who leave after 50 ms have an answer only where it is quick: one in two.
    let mut workload = Workload::load("disconnects").unwrap();
    workload.traffic[0].limit_ms = Some(1_000);
    let mut requests = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    let rule = |at, number| (at + MS * if number % 2 == 0 { 10 } else { 2_000 }, Outcome::Answered);
    let plan = plan(&mut requests, &starts_us(100.0, 10));
    let load = Load::new(Leaving(Server::new(rule)), requests, Duration::ZERO);
    let open = load.open(plan, TEN_SECONDS, 1_000, Pacer::by_tokio());
    LocalSet::new().run_until(open).await.unwrap();
    let measures = load.finish().0;
    let (all, left) = (&measures.all, measures.all.counts.of(Outcome::Disconnected));
    assert!(left > 150 && all.counts.of(Outcome::Answered) > all.latency.count() + 150);
    // Of those who stay half are slow and late.
    assert!((0.4..=0.6).contains(&all.goodput().unwrap()), "{:?}", all.goodput());
    assert!(all.latency.ms(0.7) > 1_900.0, "{}", all.latency.ms(0.7));
}

/// A server whose clients may go away.
struct Leaving<F>(Server<F>);

impl<F: Fn(Duration, u64) -> (Duration, Outcome)> Driver for Leaving<F> {
    async fn send(&self, request: Request) -> Exchange {
        let patience = request.leaves_after.unwrap_or(request.patience);
        let leaves = request.leaves_after.is_some();
        let exchange = self.0.send(Request { patience, ..request }).await;
        let has_left = leaves && exchange.outcome == Outcome::TimedOut;
        let outcome = if has_left { Outcome::Disconnected } else { exchange.outcome };
        Exchange { outcome, ..exchange }
    }
}

#[tokio::test(start_paused = true)]
async fn what_ends_after_the_last_start_is_not_under_load() {
    let slow =
        |at, number| (at + if number % 2 == 0 { MS } else { MS * 20_000 }, Outcome::Answered);
    let measures = open(Server::new(slow), 100.0, 1_000).await;
    let (all, loaded) = (measures.all.counts.sum(), measures.all.loaded_answered);
    assert!(loaded.abs_diff(all / 2) <= 1, "{loaded} of {all}");
}

#[tokio::test(start_paused = true)]
async fn a_seed_sends_the_same_bytes_at_the_same_times() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let server = Server::new(|at, _| (at + MS, Outcome::Answered));
        let bodies = Rc::clone(&server.bodies);
        open(server, 100.0, 1_000).await;
        runs.push(bodies.take());
    }
    assert!(runs[0].len() > 900 && runs[0] == runs[1]);
}

#[tokio::test(start_paused = true)]
async fn states_that_are_resident_are_prewarmed_once_before_the_run() {
    let server = Server::new(|at, _| (at + MS, Outcome::Answered));
    let bodies = Rc::clone(&server.bodies);
    let load = Load::new(server, requests("tiny"), Duration::ZERO);
    LocalSet::new().run_until(load.make_resident()).await.unwrap();
    let bodies = bodies.take();
    let distinct: std::collections::BTreeSet<_> = bodies.iter().map(|(_, _, body)| body).collect();
    assert_eq!((bodies.len(), distinct.len()), (100, 100));
    assert!(bodies.iter().all(|(_, route, _)| *route == Route::Prewarm));
    assert_eq!(load.finish().0.ends(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_begin_without_its_resident_states() {
    let server = Server::new(|at, number| {
        (at + MS, if number < 50 { Outcome::Answered } else { Outcome::Refused })
    });
    let load = Load::new(server, requests("tiny"), Duration::ZERO);
    let fault = LocalSet::new().run_until(load.make_resident()).await.unwrap_err().to_string();
    assert!(fault.contains("could not be prewarmed: refused"), "{fault}");
}

#[test]
fn a_prewarm_precedes_the_first_request_on_its_state_alone() {
    let mut workload = Workload::load("tiny").unwrap();
    workload.states.get_mut("notes").unwrap().prewarm_lead_ms = Some(500);
    let mut requests = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    let plan = plan(&mut requests, &starts_us(20.0, 30));
    assert!(plan.is_sorted_by_key(|start| start.at_us));
    let mut firsts: BTreeMap<_, (u64, Option<u64>)> = BTreeMap::new();
    for start in &plan {
        match start.planned.route {
            Route::Prewarm => {
                assert_eq!(firsts.insert(start.planned.text, (start.at_us, None)), None);
            }
            Route::Decide => {
                let first = firsts.get_mut(&start.planned.text).expect("prewarmed before");
                first.1.get_or_insert(start.at_us);
            }
        }
    }
    assert!(firsts.len() > 90);
    for (prewarm_us, first_us) in firsts.into_values() {
        let lead_us = first_us.expect("a prewarm has its request") - prewarm_us;
        assert!(lead_us == 500_000 || prewarm_us == 0, "{lead_us}");
    }
}
