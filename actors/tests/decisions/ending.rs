//! How decisions end without an outcome: refused, cancelled, expired, drained.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{Lane, ReadError, RejectReason};
use tokio::time::{Instant, sleep, timeout};

use crate::fake::{expected, meta, prefix, spec};
use crate::support::{decide_one, settle, spawn, spawn_one, started};

#[tokio::test(start_paused = true)]
async fn case_15_cancelled_reads_are_not_computed() {
    let (handle, engine) = started(|_| ()).await;
    let mut waiting = Vec::new();
    for name in 0..1_000 {
        waiting.push(spawn_one(&handle, prefix(1, name, 50), spec(1, 10)));
    }
    settle().await;
    for task in &waiting {
        task.abort();
    }
    settle().await;
    let before = engine.tokens.load(Ordering::SeqCst);
    let fresh = decide_one(&handle, &prefix(1, 5_000, 50), spec(1, 10)).await;
    assert!(fresh.timing.queue_wait <= Duration::from_millis(400), "{fresh:?}");
    assert!(engine.tokens.load(Ordering::SeqCst) - before <= 512 + 80);
    let load = handle.snapshot().load;
    assert_eq!((load.waiting(), load.reads_in_flight, load.decisions_open), (0, 0, 0));
    assert_eq!(load.totals.admitted, load.totals.ended());
}

#[tokio::test(start_paused = true)]
async fn case_16_cancel_keeps_a_shared_read() {
    let (handle, _) = started(|_| ()).await;
    let prefix = prefix(1, 1, 1_000);
    let spawn = || spawn_one(&handle, prefix.clone(), spec(1, 20));
    let (first, second) = (spawn(), spawn());
    sleep(Duration::from_millis(200)).await;
    first.abort();
    let outcome = second.await.unwrap();
    assert_eq!(outcome.row, expected(&prefix, &spec(1, 20)));
    let state_tokens: u32 = handle
        .step_log()
        .iter()
        .flat_map(|step| step.chunks.clone())
        .map(|chunk| chunk.tokens)
        .sum();
    assert_eq!(state_tokens, 1_020, "the prefill went on for the one that is left");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_read_keeps_the_decision() {
    let (handle, _) = started(|_| ()).await;
    let prefix = prefix(1, 1, 1_000);
    let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
    let dropped = timeout(Duration::from_millis(50), decision.read(vec![spec(1, 20)])).await;
    assert!(dropped.is_err());
    settle().await;
    assert_eq!(handle.snapshot().load.totals.cancelled, 1);
    let outcomes = decision.read(vec![spec(2, 20)]).await.unwrap();
    assert_eq!(outcomes[0].as_ref().unwrap().row, expected(&prefix, &spec(2, 20)));
}

#[tokio::test(start_paused = true)]
async fn an_expired_read_says_how_long_it_waited() {
    let (handle, _) = started(|_| ()).await;
    let first = spawn_one(&handle, prefix(1, 1, 3_000), spec(1, 20));
    settle().await;
    let mut late = meta(&prefix(1, 2, 2_000), Lane::Normal, 1);
    late.deadline = Some(Instant::now() + Duration::from_millis(300));
    let mut decision = handle.open(late).unwrap();
    let outcome = decision.read(vec![spec(1, 20)]).await.unwrap().remove(0);
    let Err(ReadError::Expired { waited, spent: Some(spent) }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waited, Duration::from_millis(300));
    assert_eq!(spent.queue + spent.state + spent.engine, waited);
    assert!(spent.queue > Duration::ZERO, "{spent:?}");
    let again = decision.read(vec![spec(2, 20)]).await.unwrap().remove(0);
    assert!(matches!(again, Err(ReadError::Expired { .. })));
    assert_eq!(first.await.unwrap().computed_tokens, 3_040);
}

#[tokio::test(start_paused = true)]
async fn a_read_expires_in_its_step_and_says_where_its_time_went() {
    let (handle, engine) = started(|_| ()).await;
    // The step takes 124 ms.
    let mut late = meta(&prefix(1, 1, 130), Lane::Normal, 1);
    late.deadline = Some(Instant::now() + Duration::from_millis(50));
    let mut decision = handle.open(late).unwrap();
    let outcome = decision.read(vec![spec(1, 20)]).await.unwrap().remove(0);
    let Err(ReadError::Expired { waited, spent: Some(spent) }) = outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!(waited, Duration::from_millis(50));
    assert_eq!(spent.queue + spent.state + spent.engine, waited);
    drop(decision);
    sleep(Duration::from_millis(200)).await;
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 170, "the step was let finish");
    assert_eq!(handle.snapshot().load.totals.expired, 1);
}

#[tokio::test(start_paused = true)]
async fn a_drain_answers_everything() {
    let (handle, _) = started(|config| {
        config.scheduler.drain_timeout = Duration::from_secs(2);
    })
    .await;
    let tasks: Vec<_> =
        (0..55).map(|name| spawn(&handle, prefix(1, name, 400), vec![spec(1, 20)])).collect();
    settle().await;
    let report = handle.drain().await;
    assert!(report.elapsed <= Duration::from_millis(2_500), "{report:?}");
    let (mut done, mut failed) = (0, 0);
    for task in tasks {
        match task.await.unwrap().remove(0) {
            Ok(_) => done += 1,
            Err(error) => {
                assert_eq!(error, ReadError::Draining);
                failed += 1;
            }
        }
    }
    assert_eq!((done, failed), (report.finished, report.failed));
    assert!(done > 0 && failed > 0, "{report:?}");
    let refused = handle.open(meta(&prefix(1, 1, 10), Lane::Normal, 1));
    assert_eq!(refused.unwrap_err(), ReadError::Rejected(RejectReason::Draining));
}

#[tokio::test(start_paused = true)]
async fn an_idle_drain_is_immediate() {
    let (handle, _) = started(|_| ()).await;
    decide_one(&handle, &prefix(1, 1, 100), spec(1, 20)).await;
    let report = handle.drain().await;
    assert_eq!((report.finished, report.failed, report.elapsed), (0, 0, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_beyond_the_context_is_refused_with_both_lengths() {
    let (handle, _) = started(|_| ()).await;
    let refused = handle.open(meta(&prefix(1, 1, 4_040), Lane::Normal, 1)).unwrap_err();
    let reason = RejectReason::TooLong { tokens: 4_100, tokens_max: 4_096 };
    assert_eq!(refused, ReadError::Rejected(reason));
    let mut decision = handle.open(meta(&prefix(1, 1, 4_036), Lane::Normal, 1)).unwrap();
    let refused = decision.read(vec![spec(1, 10), spec(2, 41)]).await.unwrap_err();
    let reason = RejectReason::TooLong { tokens: 4_097, tokens_max: 4_096 };
    assert_eq!(refused, ReadError::Rejected(reason));
    assert_eq!(handle.snapshot().load.totals.admitted, 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_at_once() {
    let (handle, _) = started(|config| config.scheduler.reads_max = 100).await;
    let prefix = prefix(1, 1, 1_000);
    let mut open = Vec::new();
    let mut refused = 0;
    for _ in 0..30 {
        match handle.open(meta(&prefix, Lane::Normal, 10)) {
            Ok(decision) => open.push(decision),
            Err(ReadError::Rejected(reason)) => {
                assert!(reason.retry_after().is_some());
                refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
    }
    assert_eq!((open.len(), refused), (10, 20));
    drop(open);
    settle().await;
    assert!(handle.open(meta(&prefix, Lane::Normal, 500)).is_ok(), "nothing waits any more");
}

#[tokio::test(start_paused = true)]
async fn a_drain_stops_the_actors_and_frees_the_engine() {
    let (handle, engine) = started(|_| ()).await;
    decide_one(&handle, &prefix(1, 1, 100), spec(1, 20)).await;
    handle.drain().await;
    settle().await;
    assert_eq!(Arc::strong_count(&engine), 1, "an actor still holds the engine");
    assert_eq!(handle.snapshot().registration.registered, 1, "the last counts stay readable");
}

#[tokio::test(start_paused = true)]
async fn case_14_a_closed_socket_stops_its_reads() {
    let (handle, engine) = started(|_| ()).await;
    for name in 0..20 {
        let reads: Vec<_> = (0..64).map(|read| spec(name * 64 + read, 30)).collect();
        let gone = spawn(&handle, prefix(1, 1, 100), reads);
        sleep(Duration::from_millis(10)).await;
        gone.abort();
        settle().await;
    }
    sleep(Duration::from_secs(5)).await;
    // One step runs on; the twenty requests together cost less than two.
    assert!(engine.tokens.load(Ordering::SeqCst) < 2 * 512);
    assert_eq!(handle.snapshot().load.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_displaced_decision_is_told_to_come_back_not_at_once() {
    let (handle, _) = started(|config| config.scheduler.reads_max = 2).await;
    let prefix = prefix(1, 1, 100);
    decide_one(&handle, &prefix, spec(1, 20)).await;
    let _running = spawn_one(&handle, prefix.clone(), spec(2, 20));
    settle().await;
    let mut bulk = handle.open(meta(&prefix, Lane::Batch, 2)).unwrap();
    let bulk = tokio::spawn(async move { bulk.read(vec![spec(3, 20), spec(4, 20)]).await });
    settle().await;
    let mut urgent = handle.open(meta(&prefix, Lane::Urgent, 1)).unwrap();
    urgent.read(vec![spec(5, 20)]).await.unwrap().remove(0).unwrap();
    for outcome in bulk.await.unwrap().unwrap() {
        let Err(ReadError::Rejected(reason)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(reason.as_str(), "displaced");
        // What waited was done in less; nobody is told to come back sooner than this.
        assert_eq!(reason.retry_after(), Some(Duration::from_millis(100)));
    }
}
