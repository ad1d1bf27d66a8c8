//! How prewarms end other than resident: given up, expired, refused, drained, without room.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{
    Handle, Lane, Prefix, PrewarmOutcome, PrewarmSpec, ReadError, RejectReason, TenantId, Tier,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use crate::fake::{meta, prefix, prefix_of, spec};
use crate::support::{decide_one, prewarm, settle, spawn_one, started};

type Prewarming = JoinHandle<Result<PrewarmOutcome, ReadError>>;

fn spawn(handle: &Handle, spec: PrewarmSpec) -> Prewarming {
    let handle = handle.clone();
    tokio::spawn(async move { handle.prewarm(spec).await })
}

fn within(prefix: &Prefix, limit: Duration, is_asked: bool) -> PrewarmSpec {
    let deadline = Some(Instant::now() + limit);
    PrewarmSpec { deadline, deadline_is_asked: is_asked, ..prewarm(prefix, true) }
}

/// Tokens of a state's chunks that ran, and the lanes in which they did.
fn ran(handle: &Handle, prefix: &Prefix) -> (u32, Vec<Lane>) {
    let log = handle.step_log();
    let chunks: Vec<_> = log
        .iter()
        .flat_map(|step| &step.chunks)
        .filter(|chunk| chunk.key == prefix.state.key)
        .collect();
    let lanes = chunks.iter().map(|chunk| chunk.lane).collect();
    (chunks.iter().map(|chunk| chunk.tokens).sum(), lanes)
}

#[tokio::test(start_paused = true)]
async fn a_prewarm_whose_caller_left_is_given_up() {
    let (handle, engine) = started(|_| ()).await;
    let busy = spawn_one(&handle, prefix(1, 2, 2_000), spec(1, 20));
    settle().await;
    let gone = spawn(&handle, prewarm(&prefix(1, 1, 2_000), true));
    settle().await;
    assert_eq!(handle.snapshot().residency.prewarms_waiting, 1);
    gone.abort();
    settle().await;
    assert_eq!(handle.snapshot().residency.prewarms_waiting, 0);
    busy.await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 2_040, "nothing was computed for it");
    assert_eq!(handle.snapshot().load.wants_waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn a_prewarm_that_others_want_too_goes_on_in_their_lane() {
    let (handle, _) = started(|_| ()).await;
    let (state, other) = (prefix(1, 1, 1_000), prefix(1, 2, 1_000));
    let busy = spawn_one(&handle, other.clone(), spec(1, 20));
    settle().await;
    let urgent = spawn(&handle, PrewarmSpec { lane: Lane::Urgent, ..prewarm(&state, true) });
    let patient = spawn(&handle, prewarm(&state, true));
    settle().await;
    urgent.abort();
    assert!(patient.await.unwrap().unwrap().stored);
    busy.await.unwrap();
    let (tokens, lanes) = ran(&handle, &state);
    assert_eq!(tokens, 1_000);
    assert!(lanes.iter().all(|lane| *lane == Lane::Batch), "{lanes:?}");
}

#[tokio::test(start_paused = true)]
async fn prewarms_for_which_nobody_waits_are_one() {
    let (handle, _) = started(|_| ()).await;
    let busy = spawn_one(&handle, prefix(1, 2, 2_000), spec(1, 20));
    settle().await;
    let state = prefix(1, 1, 300);
    for seconds in [5, 40, 9] {
        let ttl = Some(Duration::from_secs(seconds));
        let spec = PrewarmSpec { ttl, ..prewarm(&state, false) };
        assert!(handle.prewarm(spec).await.unwrap().pending);
    }
    assert_eq!(handle.snapshot().residency.prewarms_waiting, 1);
    busy.await.unwrap();
    sleep(Duration::from_secs(30)).await;
    assert!(handle.snapshot().residency.pinned > 0, "the longest time holds");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(handle.snapshot().residency.pinned, 0);
}

#[tokio::test(start_paused = true)]
async fn an_expired_prewarm_says_where_its_time_went() {
    let (handle, _) = started(|_| ()).await;
    let busy = spawn_one(&handle, prefix(1, 2, 3_000), spec(1, 20));
    settle().await;
    // The first step has the other state alone, the next ones have both.
    let limit = Duration::from_millis(100);
    let waiting = handle.prewarm(within(&prefix(1, 1, 500), limit, false)).await;
    let Err(ReadError::Expired { waited, spent: Some(spent) }) = waiting else {
        panic!("{waiting:?}")
    };
    assert_eq!((waited, spent.queue), (limit, limit), "no chunk of it had run");
    busy.await.unwrap();
    let limit = Duration::from_millis(330);
    let reading = handle.prewarm(within(&prefix(1, 3, 3_000), limit, false)).await;
    let Err(ReadError::Expired { waited, spent: Some(spent) }) = reading else {
        panic!("{reading:?}")
    };
    assert_eq!((waited, spent.queue + spent.state + spent.engine), (limit, limit));
    assert!(spent.state > limit / 2, "{spent:?}");
    assert_eq!(handle.snapshot().residency.prewarms_waiting, 0);
    sleep(Duration::from_secs(1)).await;
    assert!(ran(&handle, &prefix(1, 3, 3_000)).0 < 1_500, "it was given up");
}

#[tokio::test(start_paused = true)]
async fn a_prewarm_that_cannot_be_done_in_the_time_it_asks_for_is_refused() {
    let (handle, _) = started(|_| ()).await;
    // The speed is known from now on.
    decide_one(&handle, &prefix(1, 9, 1_000), spec(1, 20)).await;
    let busy = spawn_one(&handle, prefix(1, 2, 3_000), spec(1, 20));
    settle().await;
    let (state, limit) = (prefix(1, 1, 1_500), Duration::from_secs(3));
    let refused = handle.prewarm(within(&state, limit, true)).await;
    let Err(ReadError::Rejected(reason)) = refused else { panic!("{refused:?}") };
    assert_eq!(reason.as_str(), "wait");
    assert!(matches!(reason, RejectReason::PastDeadline { .. }), "{reason}");
    let by_default = handle.prewarm(within(&state, limit, false)).await;
    assert!(matches!(by_default, Err(ReadError::Expired { .. })), "{by_default:?}");
    busy.await.unwrap();
    assert!(handle.prewarm(within(&state, limit, true)).await.unwrap().stored);
}

#[tokio::test(start_paused = true)]
async fn a_prewarm_that_is_waited_for_is_finished_in_a_drain() {
    let (handle, engine) = started(|_| ()).await;
    let awaited = spawn(&handle, prewarm(&prefix(1, 1, 1_000), true));
    let queued = spawn(&handle, prewarm(&prefix(1, 2, 500), true));
    settle().await;
    let unawaited = handle.prewarm(prewarm(&prefix(1, 3, 700), false)).await.unwrap();
    assert!(unawaited.pending);
    let report = handle.drain().await;
    assert!(report.elapsed < Duration::from_secs(5), "{report:?}");
    for prewarming in [awaited, queued] {
        assert!(prewarming.await.unwrap().unwrap().stored);
    }
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 1_520, "nobody waits for the third");
    let late = handle.prewarm(prewarm(&prefix(1, 4, 100), true)).await;
    assert_eq!(late, Err(ReadError::Rejected(RejectReason::Draining)));
}

#[tokio::test(start_paused = true)]
async fn a_prewarm_that_a_drain_has_no_time_for_is_told_so() {
    let limit = Duration::from_secs(1);
    let (handle, _) = started(|config| config.scheduler.drain_timeout = limit).await;
    let slow = spawn(&handle, prewarm(&prefix(1, 1, 4_000), true));
    settle().await;
    let report = handle.drain().await;
    assert!(report.elapsed >= limit && report.elapsed < 2 * limit, "{report:?}");
    assert_eq!(slow.await.unwrap(), Err(ReadError::Draining));
}

#[tokio::test(start_paused = true)]
async fn a_state_longer_than_the_budget_is_not_kept_and_says_so() {
    let (handle, engine) = started(|config| config.cache.kv_bytes = 500).await;
    for wait in [true, false] {
        let outcome = handle.prewarm(prewarm(&prefix(1, 1, 700), wait)).await.unwrap();
        assert_eq!((outcome.tier, outcome.stored, outcome.pending), (Tier::Off, false, false));
    }
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn a_state_for_which_no_room_became_free_says_so() {
    let (handle, _) = started(|config| config.cache.kv_bytes = 1_000).await;
    let (held, state) = (prefix(1, 1, 600), prefix(1, 2, 600));
    let mut open = handle.open(meta(&held, Lane::Normal, 1)).unwrap();
    open.read(vec![spec(1, 20)]).await.unwrap();
    // The read runs beyond the budget, and the prewarm of its state with it.
    let read = spawn_one(&handle, state.clone(), spec(1, 20));
    let outcome = handle.prewarm(prewarm(&state, true)).await.unwrap();
    assert_eq!((outcome.tier, outcome.stored, outcome.pinned), (Tier::Off, false, false));
    read.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_tenant_never_fills_the_queue_of_prewarms() {
    let (handle, _) = started(|config| {
        config.cache.wants_max = 4;
        config.cache.wants_tenant_max = 3;
    })
    .await;
    let pending = async |tenant: &str, name| {
        let tenant = TenantId(Arc::from(tenant));
        let spec = PrewarmSpec { tenant, ..prewarm(&prefix(1, name, 1_000), false) };
        handle.prewarm(spec).await
    };
    let refused = |result: Result<PrewarmOutcome, ReadError>| match result {
        Err(ReadError::Rejected(reason)) => (reason.as_str(), reason.to_string()),
        other => panic!("{other:?}"),
    };
    for name in [1, 2, 3, 3] {
        assert!(pending("a", name).await.unwrap().pending);
    }
    let (why, message) = refused(pending("a", 4).await);
    assert_eq!(why, "tenant");
    assert_eq!(message, "3 states of this tenant wait to be prewarmed, at most 3 may");
    assert!(pending("b", 4).await.unwrap().pending);
    let (why, message) = refused(pending("b", 5).await);
    assert_eq!(
        (why, message.as_str()),
        ("queue_full", "4 states wait to be prewarmed, at most 4 may",)
    );
}

#[tokio::test(start_paused = true)]
async fn tokens_of_prewarms_add_up_to_what_the_engine_ran() {
    let (handle, engine) = started(|_| ()).await;
    let state = |name: u32| prefix_of(1, &[(1, 700), (10 + name, 100)]);
    let prewarms: Vec<_> =
        [0, 1, 2, 2].map(|name| spawn(&handle, prewarm(&state(name), true))).into();
    let mut computed = Vec::new();
    for prewarming in prewarms {
        let outcome = prewarming.await.unwrap().unwrap();
        assert!(outcome.stored && outcome.reused == 0);
        computed.push(u64::from(outcome.computed));
    }
    assert_eq!(computed.iter().sum::<u64>(), engine.tokens.load(Ordering::SeqCst));
    assert!(computed[0] == 820 && computed[1] < 200 && computed[3] == 0, "{computed:?}");
}
