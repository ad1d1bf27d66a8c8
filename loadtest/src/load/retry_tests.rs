//! Retries in virtual time: refused requests come back when the server said, as one request with
//! one end, and take no connection while they wait.

use std::collections::BTreeMap;

use tokio::task::LocalSet;

use super::tests::{MS, Server, TEN_SECONDS, starts_us};
use super::*;
use crate::retries::Stop;
use crate::workload::Workload;

/// The workload `tiny` whose requests are sent again so many times.
fn requests(retries: u32, patience_ms: u32) -> Requests {
    let mut workload = Workload::load("tiny").unwrap();
    for traffic in &mut workload.traffic {
        (traffic.retries, traffic.patience_ms) = (Some(retries), patience_ms);
    }
    Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap()
}

/// Refuses at once what comes in a part of the sixth second, until `end_ms` of it.
fn refuses_until(end_ms: u64) -> impl Fn(Duration, u64) -> (Duration, Outcome) {
    move |at, _| {
        let closed = Duration::from_secs(5)..Duration::from_millis(5_000 + end_ms);
        let outcome = if closed.contains(&at) { Outcome::Refused } else { Outcome::Answered };
        (at + MS, outcome)
    }
}

/// Ten seconds of 100 requests a second.
async fn open<F>(
    mut server: Server<F>,
    retry_after_ms: Option<u64>,
    requests: Requests,
    connections: u32,
) -> (Measures, Retries)
where
    F: Fn(Duration, u64) -> (Duration, Outcome) + 'static,
{
    let mut requests = requests;
    server.retry_after_ms = retry_after_ms;
    let plan = plan(&mut requests, &starts_us(100.0, 10));
    let load = Load::new(server, requests, Duration::ZERO);
    LocalSet::new()
        .run_until(load.open(plan, TEN_SECONDS, connections, Pacer::by_tokio()))
        .await
        .unwrap();
    let retries = load.retries();
    (load.finish().0, retries)
}

/// How many start in a part of the sixth second.
fn started(from_ms: u64, to_ms: u64) -> u64 {
    // As Tokio's timer has it: rounded up to a millisecond.
    let ms = starts_us(100.0, 10).into_iter().map(|start_us| start_us.div_ceil(1_000));
    ms.filter(|ms| (5_000 + from_ms..5_000 + to_ms).contains(ms)).count() as u64
}

#[tokio::test(start_paused = true)]
async fn a_refused_request_comes_back_when_the_server_said_and_its_latency_has_the_wait() {
    let server = Server::new(refuses_until(300));
    let (measures, retries) = open(server, Some(400), requests(3, 120_000), 1_000).await;
    let (all, refused) = (&retries.all, started(0, 300));
    assert!(refused > 15, "{refused}");
    assert_eq!((all.requests, all.sent, all.first_answered), (refused, refused, refused));
    assert_eq!((all.refused_again, all.honesty(), all.stops), (0, Some(1.0), [0, 0, 0]));
    assert!((399.0..=401.0).contains(&all.named.ms(0.5)), "{}", all.named.ms(0.5));
    assert!(
        (399.0..=402.0).contains(&all.admitted_after.ms(1.0)),
        "{}",
        all.admitted_after.ms(1.0)
    );
    assert_eq!(retries.reasons["queue_full"].sent, refused);
    // One end each: the answer. From the intended start: a refusal, the wait and the answer.
    let sent = starts_us(100.0, 10).len() as u64;
    assert_eq!(measures.all.counts.of(Outcome::Answered), sent);
    assert_eq!(measures.ends(), sent);
    assert!((401.0..=404.0).contains(&measures.all.latency.ms(1.0)));
    // The second sending is neither the generator's delay nor the server's slowness.
    assert!(measures.lag.ms(1.0) <= 1.0 && measures.service.ms(1.0) <= 1.1);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_is_too_short_costs_retries_and_is_not_called_honest() {
    // The second is over after two more tries for some and three for others, who may not have them.
    let server = Server::new(refuses_until(1_000));
    let (measures, retries) = open(server, Some(400), requests(2, 120_000), 1_000).await;
    let (all, refused) = (&retries.all, started(0, 1_000));
    // A try, its refusal and the wait are 401 ms.
    let (once, twice) = (started(599, 1_000), started(198, 599));
    let never = refused - once - twice;
    assert!(once > 10 && twice > 10 && never > 5, "{once} {twice} {never}");
    assert_eq!((all.requests, all.first_answered), (refused, once));
    assert_eq!(all.sent, once + 2 * twice + 2 * never);
    assert_eq!(all.refused_again, twice + 2 * never);
    assert_eq!(all.stops[Stop::Spent as usize], never);
    assert_eq!(all.admitted_after.count(), once + twice);
    assert_eq!(measures.all.counts.of(Outcome::Refused), never);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_waits_to_come_back_leaves_its_connection_to_others() {
    // One connection; the first request alone is refused, for two seconds.
    let rule = |at: Duration, number| {
        (at + MS, if number == 0 { Outcome::Refused } else { Outcome::Answered })
    };
    let (measures, retries) = open(Server::new(rule), Some(2_000), requests(1, 120_000), 1).await;
    assert_eq!((retries.all.requests, retries.all.first_answered), (1, 1));
    let waits = &measures.connection_wait;
    assert!(waits.count() == 0 || waits.ms(1.0) < 10.0, "{} {}", waits.count(), waits.ms(1.0));
    assert!(measures.all.latency.ms(1.0) > 2_000.0 && measures.all.latency.ms(0.99) < 10.0);
}

#[tokio::test(start_paused = true)]
async fn connections_bound_what_is_under_way_with_retries_too() {
    let mut server = Server::new(|at: Duration, number: u64| {
        (at + MS * 20, if number.is_multiple_of(2) { Outcome::Refused } else { Outcome::Answered })
    });
    server.retry_after_ms = Some(5);
    let most = Rc::clone(&server.under_way_max);
    open(server, Some(5), requests(10, 120_000), 3).await;
    assert_eq!(most.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn patience_goes_on_between_tries() {
    // Refused for longer than patience lasts: that refusal is the end, at once.
    let server = Server::new(refuses_until(300));
    let (measures, retries) = open(server, Some(1_000), requests(3, 1_000), 1_000).await;
    assert_eq!(retries.all.stops[Stop::Impatient as usize], started(0, 300));
    assert_eq!((retries.all.sent, retries.all.is_empty()), (0, false));
    assert_eq!(measures.all.counts.of(Outcome::Refused), started(0, 300));
    // All answers take 500 ms, but the first request is refused and has less than that left when it
    // comes back.
    let rule = |at: Duration, number| match number {
        0 => (at + MS, Outcome::Refused),
        _ => (at + MS * 500, Outcome::Answered),
    };
    let (measures, retries) = open(Server::new(rule), Some(600), requests(3, 1_000), 1_000).await;
    assert_eq!((retries.all.sent, retries.all.refused_again), (1, 0));
    assert_eq!(measures.all.counts.of(Outcome::TimedOut), 1);
    assert_eq!(measures.all.counts.of(Outcome::Refused), 0);
}

#[tokio::test(start_paused = true)]
async fn without_a_named_time_or_with_an_absurd_one_a_refusal_is_the_end() {
    for (wait_ms, stop) in [(None, Stop::NoWait), (Some(u64::MAX), Stop::Impatient)] {
        let server = Server::new(refuses_until(300));
        let (measures, retries) = open(server, wait_ms, requests(3, 120_000), 1_000).await;
        assert_eq!(retries.all.stops[stop as usize], started(0, 300));
        assert_eq!(measures.all.counts.of(Outcome::Refused), started(0, 300));
        assert_eq!(measures.retry_after_missing > 0, wait_ms.is_none());
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_does_not_retry_and_a_prewarm_are_never_sent_again() {
    let server = Server::new(refuses_until(300));
    let (_, retries) = open(server, Some(1), requests(0, 120_000), 1_000).await;
    assert!(retries.all.is_empty() && retries.reasons.is_empty());
    let mut workload = Workload::load("tiny").unwrap();
    workload.states.get_mut("notes").unwrap().prewarm_lead_ms = Some(500);
    workload.traffic[0].retries = Some(5);
    let requests = Requests::new(workload, &BTreeMap::new(), "test", 1).unwrap();
    let server = Server::new(|at, _| (at + MS, Outcome::Refused));
    let bodies = Rc::clone(&server.bodies);
    let (measures, _) = open(server, Some(1), requests, 1_000).await;
    let prewarms = bodies.borrow().iter().filter(|(_, route, _)| *route == Route::Prewarm).count();
    assert_eq!(measures.prewarms.counts.of(Outcome::Refused), prewarms as u64);
    assert!(prewarms > 50);
}

#[tokio::test(start_paused = true)]
async fn a_client_of_a_closed_loop_waits_and_comes_back() {
    let mut server = Server::new(|at, number: u64| {
        (at + MS, if number.is_multiple_of(2) { Outcome::Refused } else { Outcome::Answered })
    });
    server.retry_after_ms = Some(9);
    let load = Load::new(server, requests(1, 120_000), Duration::ZERO);
    let until = Until { requests: Some(10), duration: None };
    LocalSet::new().run_until(load.closed(1, until)).await.unwrap();
    let retries = load.retries();
    assert_eq!((retries.all.requests, retries.all.first_answered), (10, 10));
    let (measures, _, whole) = load.finish();
    assert_eq!(measures.all.counts.of(Outcome::Answered), 10);
    // A refusal, the wait and an answer.
    assert_eq!(whole, MS * 110);
}
