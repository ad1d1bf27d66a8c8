//! Ctrl-C in virtual time: what is under way ends, nothing more starts, and rates are of the time until
//! then.

use tokio::task::LocalSet;
use tokio::time::sleep;

use super::tests::{Server, TEN_SECONDS, requests, starts_us};
use super::*;

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_ends_what_is_under_way_and_starts_nothing_more() {
    let (half, second) = (Duration::from_millis(500), Duration::from_secs(1));
    let slow = |at: Duration, _: u64| (at + Duration::from_millis(500), Outcome::Answered);
    let mut plenty = requests("tiny");
    let starts = starts_us(100.0, 10);
    let plan = plan(&mut plenty, &starts);
    let load = Load::new(Server::new(slow), plenty, second);
    let stop = async {
        sleep(Duration::from_secs(3)).await;
        load.stop();
    };
    let open = load.open(plan, TEN_SECONDS, 1_000, Pacer::by_tokio());
    let (ended, ()) = LocalSet::new().run_until(async { tokio::join!(open, stop) }).await;
    ended.unwrap();
    assert_eq!(load.stopped(), Some(Duration::from_secs(3)));
    let (measures, lasted, whole) = load.finish();
    let started = starts.iter().filter(|at_us| **at_us < 3_000_000).count() as u64;
    assert_eq!((measures.started, measures.ends()), (started, started));
    assert_eq!(measures.all.counts.of(Outcome::Answered), measures.all.counts.sum());
    assert_eq!(lasted, second * 2);
    assert!(whole > lasted && whole <= lasted + half, "{whole:?}");
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_closed_loop_end_with_it_when_it_is_interrupted() {
    let slow = |at: Duration, _: u64| (at + Duration::from_millis(300), Outcome::Answered);
    let load = Load::new(Server::new(slow), requests("tiny"), Duration::ZERO);
    let stop = async {
        sleep(Duration::from_secs(1)).await;
        load.stop();
    };
    let until = Until { requests: Some(1_000), duration: None };
    let closed = load.closed(2, until);
    let (ended, ()) = LocalSet::new().run_until(async { tokio::join!(closed, stop) }).await;
    ended.unwrap();
    // At 0, .3, .6 and .9 s; what began last ends after the interrupt.
    let (measures, lasted, whole) = load.finish();
    assert_eq!((measures.started, measures.all.loaded_answered), (8, 6));
    assert_eq!((lasted, whole), (Duration::from_secs(1), Duration::from_millis(1_200)));
}

#[tokio::test(start_paused = true)]
async fn whoever_interrupts_after_the_last_start_has_a_whole_run() {
    let slow = |at: Duration, _: u64| (at + Duration::from_secs(5), Outcome::Answered);
    let mut plenty = requests("tiny");
    let plan = plan(&mut plenty, &starts_us(10.0, 10));
    let load = Load::new(Server::new(slow), plenty, Duration::ZERO);
    let stop = async {
        sleep(TEN_SECONDS + Duration::from_secs(1)).await;
        load.stop();
    };
    let open = load.open(plan, TEN_SECONDS, 1_000, Pacer::by_tokio());
    let (ended, ()) = LocalSet::new().run_until(async { tokio::join!(open, stop) }).await;
    ended.unwrap();
    assert_eq!((load.stopped(), load.finish().1), (None, TEN_SECONDS));
}
