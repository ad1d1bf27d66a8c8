//! What states that begin alike have in common: grown ones, parts of others, diverging ones.

use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{DecisionMeta, Lane, Prefix, ReadError, RejectReason, TenantId};
use tokio::time::sleep;

use crate::fake::{expected, meta, prefix, prefix_of, spec};
use crate::support::{decide_one, prewarm, settle, spawn_in, spawn_one, started};

/// Of a state of 700 tokens behind a head of 20, whole blocks end at token 684.
const SHARED: u32 = 684;

fn base() -> Prefix {
    prefix(1, 1, 700)
}

fn grown() -> Prefix {
    prefix_of(1, &[(1, 700), (2, 100)])
}

#[tokio::test(start_paused = true)]
async fn a_grown_state_costs_its_new_text() {
    let (handle, _) = started(|_| ()).await;
    decide_one(&handle, &base(), spec(1, 20)).await;
    let outcome = decide_one(&handle, &grown(), spec(2, 20)).await;
    assert_eq!(outcome.row, expected(&grown(), &spec(2, 20)));
    assert_eq!(outcome.computed_tokens, 800 - SHARED + 20);
    assert_eq!(outcome.cached_tokens, 20 + SHARED);
    let short = prefix(1, 1, 500);
    let outcome = decide_one(&handle, &short, spec(3, 20)).await;
    assert_eq!(outcome.row, expected(&short, &spec(3, 20)));
    assert_eq!(outcome.computed_tokens, 500 - 492 + 20, "a part of it costs what no block has");
    let prewarmed =
        handle.prewarm(prewarm(&prefix_of(1, &[(1, 700), (3, 9)]), true)).await.unwrap();
    assert_eq!((prewarmed.prompt_tokens, prewarmed.reused), (729, 20 + SHARED));
    assert_eq!(handle.snapshot().residency.duplicate_tokens, 0);
}

#[tokio::test(start_paused = true)]
async fn another_tenant_finds_nothing_of_a_state_it_grew() {
    let (handle, _) = started(|_| ()).await;
    decide_one(&handle, &base(), spec(1, 20)).await;
    let theirs = prefix_of(2, &[(1, 700), (2, 100)]);
    let outcome = decide_one(&handle, &theirs, spec(2, 20)).await;
    assert_eq!((outcome.computed_tokens, outcome.cached_tokens), (820, 20), "the head is public");
}

#[tokio::test(start_paused = true)]
async fn states_that_are_read_at_once_compute_what_they_share_once() {
    let (handle, engine) = started(|_| ()).await;
    let state = |name: u32| prefix_of(1, &[(1, 700), (10 + name, 100)]);
    let tasks: Vec<_> = (0..12)
        .map(|name| spawn_in(&handle, Lane::ALL[name as usize % 4], &state(name), spec(name, 10)))
        .collect();
    for (name, task) in (0..).zip(tasks) {
        assert_eq!(task.await.unwrap().row, expected(&state(name), &spec(name, 10)));
    }
    let own = u64::from(800 - SHARED + 10);
    assert_eq!(engine.tokens.load(Ordering::SeqCst), u64::from(20 + SHARED) + 12 * own);
    assert_eq!(handle.snapshot().residency.duplicate_tokens, 0);
}

#[tokio::test(start_paused = true)]
async fn an_urgent_state_goes_ahead_of_the_batch_state_it_begins_as() {
    let (handle, engine) = started(|_| ()).await;
    let long = spawn_in(&handle, Lane::Batch, &prefix(1, 1, 3_000), spec(1, 20));
    sleep(Duration::from_millis(200)).await;
    let urgent = spawn_in(&handle, Lane::Urgent, &grown(), spec(2, 20)).await.unwrap();
    assert_eq!(urgent.row, expected(&grown(), &spec(2, 20)));
    assert!(handle.snapshot().load.totals.done == 1, "the long one is not done yet");
    long.await.unwrap();
    let all = 20 + 3_000 + (800 - SHARED) + 40;
    assert_eq!(engine.tokens.load(Ordering::SeqCst), u64::from(all));
}

#[tokio::test(start_paused = true)]
async fn admission_counts_what_is_new_of_a_grown_state() {
    let (handle, _) = started(|config| config.scheduler.tokens_max = 1_000).await;
    decide_one(&handle, &base(), spec(1, 20)).await;
    let waits = spawn_one(&handle, prefix(1, 8, 600), spec(1, 20));
    settle().await;
    let other = prefix(1, 9, 800);
    // Of another tenant: who has refused ones that are to come back gives way to them.
    let tenant = TenantId("other".into());
    let other = DecisionMeta { tenant, ..meta(&other, Lane::Normal, 1) };
    let refused = handle.open(other).unwrap_err();
    assert!(matches!(refused, ReadError::Rejected(RejectReason::TokensFull { .. })), "{refused}");
    assert!(handle.open(meta(&grown(), Lane::Normal, 1)).is_ok());
    waits.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn admission_counts_what_states_that_wait_have_in_common_once() {
    let (handle, _) = started(|config| config.scheduler.tokens_max = 3_000).await;
    let runs = spawn_one(&handle, prefix(1, 8, 600), spec(1, 20));
    settle().await;
    let before: u64 = handle.snapshot().load.tokens_waiting.iter().sum();
    let state = |name: u32| prefix_of(1, &[(1, 700), (10 + name, 100)]);
    let mut tasks = Vec::new();
    for name in 0..12 {
        tasks.push(spawn_one(&handle, state(name), spec(name, 10)));
        settle().await;
    }
    let after: u64 = handle.snapshot().load.tokens_waiting.iter().sum();
    assert_eq!(after - before, u64::from(SHARED + 12 * (800 - SHARED + 10)));
    for task in tasks {
        task.await.unwrap();
    }
    runs.await.unwrap();
    assert_eq!(handle.snapshot().load.tokens_waiting, [0; 4]);
}

#[tokio::test(start_paused = true)]
async fn a_grown_state_leaves_room_for_others_as_it_is_evicted() {
    let (handle, _) = started(|config| config.cache.kv_bytes = 1_600).await;
    for turn in 1..8 {
        let state = prefix_of(1, &[(1, 100 * turn)]);
        let outcome = decide_one(&handle, &state, spec(turn, 20)).await;
        assert_eq!(outcome.row, expected(&state, &spec(turn, 20)));
        assert!(outcome.computed_tokens <= 100 + 64 + 20 + 20, "{turn}: {outcome:?}");
        let residency = handle.snapshot().residency;
        assert!(residency.used + residency.reserved <= 1_600);
        assert_eq!(residency.overflow, 0);
    }
}
