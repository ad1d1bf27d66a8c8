//! The search for the knee: by a rule alone, and in virtual time against servers of a known
//! capacity.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tokio::task::LocalSet;
use tokio::time::{Instant, sleep_until};

use super::*;
use crate::arrivals::{Arrivals, Pattern};
use crate::client::Driver;
use crate::exchange::Exchange;
use crate::load::{self, Load};
use crate::pacer::Pacer;
use crate::report::Loop;
use crate::workload::{Request, Requests, Workload};

fn aim() -> Aim {
    Aim {
        from: 10.0,
        goodput: 0.95,
        precision: 0.05,
        burst: 1,
        duration: Duration::from_secs(20),
        warm_up: Duration::from_secs(2),
        pause: Duration::from_secs(2),
        seed: 1,
    }
}

/// The rates that are tried where what is at most `capacity` holds, and the knee.
fn tried(aim: &Aim, capacity: f64) -> (Vec<f64>, Search) {
    let (mut search, mut rates) = (Search::new(aim).unwrap(), Vec::new());
    while let Some(rate) = search.next() {
        rates.push(rate);
        search.record(rate, rate <= capacity);
        assert!(rates.len() < STEPS_MAX, "{rates:?}");
    }
    (rates, search)
}

#[test]
fn rates_double_until_one_fails_and_then_close_in() {
    let (rates, search) = tried(&aim(), 55.0);
    assert_eq!(rates, [10.0, 20.0, 40.0, 80.0, 56.57, 47.57, 51.88, 54.17]);
    assert_eq!((search.held, search.failed), (Some(54.17), Some(56.57)));
}

#[test]
fn rates_halve_where_the_first_one_fails() {
    let (rates, search) = tried(&aim(), 3.0);
    assert_eq!(rates[..3], [10.0, 5.0, 2.5]);
    let (held, failed) = (search.held.unwrap(), search.failed.unwrap());
    assert!(held <= 3.0 && failed > 3.0 && failed <= held * 1.05, "{held} {failed}");
}

#[test]
fn every_capacity_is_found_to_the_precision_in_fewer_steps_than_there_are() {
    let lowest = Search::new(&aim()).unwrap().lowest;
    for capacity in [1.2, 9.99, 10.0, 137.0, 4_321.0, 200_000.0] {
        for precision in [0.005, 0.05, 0.5] {
            let (_, search) = tried(&Aim { precision, ..aim() }, capacity);
            let (held, failed) = (search.held.unwrap(), search.failed.unwrap());
            assert!(held <= capacity && capacity < failed, "{held} {capacity} {failed}");
            assert!(failed <= held * (1.0 + precision), "{held} {failed}");
        }
    }
    let (rates, search) = tried(&aim(), 0.0);
    assert_eq!((search.held, search.failed), (None, Some(lowest)));
    assert_eq!(rates.last(), Some(&lowest));
    let (_, search) = tried(&aim(), f64::INFINITY);
    assert_eq!((search.held, search.failed), (Some(225_000.0), None));
}

#[test]
fn a_first_rate_that_says_nothing_is_refused() {
    let fault = |aim: Aim| Search::new(&aim).unwrap_err().to_string();
    let low = fault(Aim { from: 1.0, ..aim() });
    assert!(
        low.starts_with("--from is 1, must be from 1.111 to 225000; with fewer than 20"),
        "{low}"
    );
    assert!(fault(Aim { from: f64::NAN, ..aim() }).starts_with("--from is NaN"));
    assert!(fault(Aim { burst: 50, ..aim() }).contains("from 55.556 to"));
    assert!(fault(Aim { warm_up: aim().duration, ..aim() }).starts_with("--warm-up 20s must be"));
}

#[test]
fn every_step_has_a_seed_of_its_own() {
    let seeds = |seed| (0..STEPS_MAX).map(move |step| step_seed(seed, step));
    let all: std::collections::BTreeSet<u64> = seeds(1).chain(seeds(2)).collect();
    assert_eq!(all.len(), 2 * STEPS_MAX);
    assert!(all.iter().all(|seed| *seed < 1 << 32));
}

/// One worker that takes `service` for each request, in turn; refuses what would wait over
/// `wait_max`.
struct Worker {
    service: Duration,
    wait_max: Duration,
    free: Rc<Cell<Instant>>,
}

impl Driver for Worker {
    async fn send(&self, _request: Request) -> Exchange {
        let sent = Instant::now();
        let begins = self.free.get().max(sent);
        let outcome = if begins - sent > self.wait_max {
            Outcome::Refused
        } else {
            self.free.set(begins + self.service);
            sleep_until(self.free.get()).await;
            Outcome::Answered
        };
        Exchange::bare(outcome, sent, Instant::now())
    }
}

/// A sweep over a worker of 100 requests a second, under a limit of 200 ms.
async fn sweep(aim: &Aim, wait_max: Duration) -> Sweep {
    let free = Rc::new(Cell::new(Instant::now()));
    let step = async |Step { rate, seed }| {
        // A queue that an earlier step had left would be charged to this one.
        assert!(free.get() <= Instant::now());
        let mut workload = Workload::load("tiny")?;
        workload.limit(Duration::from_millis(200))?;
        let mut requests = Requests::new(workload, &BTreeMap::new(), "test", seed)?;
        let (pattern, duration) = (Pattern::default(), Some(aim.duration));
        let arrivals = Arrivals { pattern, rate: Some(rate), burst: 1, duration, seed };
        let plan = load::plan(&mut requests, &arrivals.schedule()?.starts_us);
        let service = Duration::from_millis(10);
        let worker = Worker { service, wait_max, free: Rc::clone(&free) };
        let load = Load::new(worker, requests, aim.warm_up);
        load.open(plan, aim.duration, 10_000, Pacer::by_tokio()).await?;
        let (measures, load, whole) = load.finish();
        let kind = Loop::Open { rate, duration: aim.duration, connections: 10_000 };
        Ok(Report { kind, seed, measures, load, whole, ..Report::default() })
    };
    LocalSet::new().run_until(search(aim, Interrupt::never(), step)).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn the_knee_of_a_queue_is_a_little_below_its_capacity() {
    // At 85 of 100 a second, 200 ms of waiting in a queue of this kind is rare; at 105 it is the
    // rule.
    let sweep = sweep(&aim(), Duration::from_hours(1)).await;
    let (knee, failed) = (sweep.knee.unwrap(), sweep.failed.unwrap());
    assert!((80.0..105.0).contains(&knee) && sweep.is_found(), "{knee} {failed}");
    let table = sweep.table().to_string();
    assert!(table.contains(&format!("the knee is at {knee} requests/s")), "{table}");
    assert_eq!(table.matches("holds").count() + table.matches("fails").count(), sweep.steps.len());
    let json = sweep.json();
    assert_eq!((&json["knee"], &json["failed"]), (&knee.into(), &failed.into()));
    assert_eq!(json["steps"].as_array().unwrap().len(), sweep.steps.len());
    assert_eq!(json["steps"][0]["run"]["rate"], 10.0);
    assert_eq!((&json["steps"][0]["holds"], &json["is_found"]), (&true.into(), &true.into()));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_what_would_be_late_gains_nothing_by_it() {
    // Whatever is let in is in time: of the admitted all are good, at any rate.
    let sweep = sweep(&aim(), Duration::from_millis(100)).await;
    let worst = sweep
        .steps
        .iter()
        .find(|step| matches!(step.kind, Loop::Open { rate, .. } if rate > 159.0));
    let worst = worst.unwrap();
    assert_eq!(worst.measures.all.goodput(), Some(1.0));
    assert!(worst.offered_goodput() < 0.7, "{}", worst.offered_goodput());
    let knee = sweep.knee.unwrap();
    assert!((80.0..108.0).contains(&knee), "{knee}");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_holds_has_no_knee() {
    let none = search(&aim(), Interrupt::never(), async |Step { rate, .. }| Ok(refused(rate)))
        .await
        .unwrap();
    assert_eq!((none.knee, none.is_found()), (None, false));
    let verdict = none.verdict();
    assert!(verdict.starts_with("no knee: the goodput is below 0.95 even at 1.11"), "{verdict}");
}

/// A step of which half is refused.
fn refused(rate: f64) -> Report {
    let kind = Loop::Open { rate, duration: Duration::from_secs(20), connections: 1 };
    let mut report = Report { kind, ..Report::default() };
    report.measures.all.wanted = 2;
    report.measures.all.within_limit = 1;
    report
}

/// A step that holds, or fails.
fn step(rate: f64, holds: bool) -> Report {
    let mut report = refused(rate);
    report.measures.all.within_limit = if holds { 2 } else { 1 };
    report
}

#[tokio::test(start_paused = true)]
async fn a_rate_is_too_much_only_where_it_was_twice() {
    // Up to 55/s every first try fails by chance.
    let seeds = RefCell::new(BTreeMap::<u64, Vec<u64>>::new());
    let run = async |Step { rate, seed }| {
        let mut seeds = seeds.borrow_mut();
        let tries = seeds.entry(rate.to_bits()).or_default();
        tries.push(seed);
        Ok(step(rate, rate <= 55.0 && tries.len() == 2))
    };
    let sweep = search(&aim(), Interrupt::never(), run).await.unwrap();
    assert_eq!((sweep.knee, sweep.failed), (Some(54.17), Some(56.57)));
    assert!(seeds.borrow().values().all(|tries| tries.len() == 2 && tries[0] != tries[1]));
    let json = sweep.json();
    assert_eq!(
        (&json["rates_tried_again"], &json["rates_held_at_second_try"]),
        (&8.into(), &6.into())
    );
    let tries = json["steps"].as_array().unwrap().iter().map(|step| step["try"].as_u64().unwrap());
    assert_eq!(tries.collect::<Vec<_>>(), [1, 2].repeat(8));
    let table = sweep.table().to_string();
    assert_eq!(table.matches("fails, tried again").count(), 8, "{table}");
    assert!(table.contains("rates tried again: 8, of which 6 had"), "{table}");
}

#[tokio::test(start_paused = true)]
async fn what_holds_at_once_is_not_tried_again() {
    let run = async |Step { rate, .. }| Ok(step(rate, true));
    let sweep = search(&aim(), Interrupt::never(), run).await.unwrap();
    let table = sweep.table().to_string();
    assert!(sweep.failed.is_none() && !table.contains("again"), "{table}");
    let run = &sweep.json()["run"];
    assert_eq!((&run["loop"], &run["from"], run.get("rate")), (&"knee".into(), &10.0.into(), None));
    assert_eq!((&run["seed"], &run["precision"]), (&1.into(), &0.05.into()));
}

#[tokio::test(start_paused = true)]
async fn errors_end_the_search_as_they_are_no_matter_of_the_rate() {
    struct Absent;
    impl Driver for Absent {
        async fn send(&self, _request: Request) -> Exchange {
            let (sent, fault) = (Instant::now(), Some("connection refused".to_owned()));
            let outcome = Outcome::ConnectionError;
            Exchange { fault, ..Exchange::bare(outcome, sent, sent) }
        }
    }
    let run = async |Step { rate, seed }| {
        let workload = Workload::load("hog-tenant")?;
        let mut requests = Requests::new(workload, &BTreeMap::new(), "test", seed)?;
        let plan = load::plan(&mut requests, &[0, 1_000, 2_000]);
        let load = Load::new(Absent, requests, Duration::ZERO);
        load.open(plan, aim().duration, 10, Pacer::by_tokio()).await?;
        let kind = Loop::Open { rate, duration: aim().duration, connections: 10 };
        Ok(Report { kind, measures: load.finish().0, ..Report::default() })
    };
    let fault = LocalSet::new()
        .run_until(search(&aim(), Interrupt::never(), run))
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(fault, "all 3 requests of a step failed: connection refused");
    let none = async |Step { .. }| Ok(Report::default());
    let fault = search(&aim(), Interrupt::never(), none).await.unwrap_err().to_string();
    assert!(fault.contains("had a limit; --limit gives every kind one"), "{fault}");
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_search_has_the_steps_that_were_whole() {
    let (press, pressed) = tokio::sync::watch::channel(false);
    let count = Cell::new(0);
    let run = async |Step { rate, .. }| {
        count.set(count.get() + 1);
        if count.get() == 3 {
            press.send_replace(true);
        }
        let stopped = (count.get() == 3).then_some(Duration::from_secs(1));
        Ok(Report { stopped, ..step(rate, true) })
    };
    let sweep = search(&aim(), Interrupt::by(pressed), run).await.unwrap();
    assert_eq!((count.get(), sweep.steps.len(), sweep.is_interrupted), (3, 2, true));
    assert_eq!((sweep.knee, sweep.failed), (Some(20.0), None));
}
