//! Nothing that was let in is left behind by a load that never ends.

use std::time::Duration;

use actors::{Config, Handle, Lane};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::fake::{meta, prefix, spec};
use crate::support::started;

/// The limit of a request that names none.
const TIMEOUT: Duration = Duration::from_mins(1);

/// Clients that each ask again as soon as they are answered; they go when it is dropped.
struct Stream(Vec<JoinHandle<()>>);

impl Stream {
    fn new(handle: &Handle, lane: Lane, clients: u32) -> Self {
        let client = |client| tokio::spawn(ask_for_ever(handle.clone(), lane, client));
        Self((0..clients).map(client).collect())
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        for client in &self.0 {
            client.abort();
        }
    }
}

/// Asks about one short state after the other.
async fn ask_for_ever(handle: Handle, lane: Lane, client: u32) {
    for number in 0.. {
        let prefix = prefix(1, 1_000 + client * 10_000 + number, 30);
        match handle.open(meta(&prefix, lane, 1)) {
            Ok(mut decision) => drop(decision.read(vec![spec(1, 20)]).await),
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}

/// How long a decision on a state of so many tokens takes that comes into a stream.
async fn answered_after(handle: &Handle, lane: Lane, name: u32, tokens: u32) -> Duration {
    let at = Instant::now();
    let prefix = prefix(1, name, tokens);
    let mut decision = handle.open(meta(&prefix, lane, 1)).unwrap();
    let outcome = decision.read(vec![spec(2, 20)]).await.unwrap().remove(0);
    assert!(outcome.is_ok(), "{outcome:?}");
    at.elapsed()
}

fn patient(config: &mut Config) {
    // What is shown here is order, not admission.
    config.scheduler.wait_urgent = Duration::from_secs(4);
}

#[tokio::test(start_paused = true)]
async fn a_long_state_is_answered_among_short_ones_of_its_lane() {
    for lane in [Lane::Urgent, Lane::Normal] {
        let (handle, _) = started(patient).await;
        let _stream = Stream::new(&handle, lane, 16);
        sleep(Duration::from_secs(5)).await;
        let took = answered_after(&handle, lane, 1, 900).await;
        assert!(took < TIMEOUT / 4, "{lane}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_lane_is_answered_under_an_endless_urgent_stream() {
    let (handle, _) = started(patient).await;
    let _stream = Stream::new(&handle, Lane::Urgent, 16);
    sleep(Duration::from_secs(5)).await;
    for (name, lane) in (1..).zip([Lane::Normal, Lane::Batch, Lane::Idle]) {
        let took = answered_after(&handle, lane, name, 300).await;
        assert!(took < TIMEOUT, "{lane}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_very_long_state_does_not_keep_its_neighbours_from_their_turn() {
    let (handle, _) = started(patient).await;
    let _stream = Stream::new(&handle, Lane::Normal, 16);
    let giant = tokio::spawn({
        let handle = handle.clone();
        async move { answered_after(&handle, Lane::Normal, 1, 3_900).await }
    });
    sleep(Duration::from_secs(5)).await;
    let took = answered_after(&handle, Lane::Normal, 2, 200).await;
    assert!(took < TIMEOUT / 4, "a neighbour took {took:?}");
    let took = giant.await.unwrap();
    assert!(took < TIMEOUT, "the long one took {took:?}");
}
