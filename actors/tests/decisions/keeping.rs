//! What stays resident, for whom and for how long.

use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{Lane, ReadError, Register, RejectReason};
use tokio::time::{Instant, sleep, timeout};

use crate::fake::{expected, meta, prefix, spec};
use crate::support::{decide_one, prewarm, settle, spawn_in, spawn_one, started};

#[tokio::test(start_paused = true)]
async fn a_second_question_hits_only_when_registered() {
    for (when, computed) in [(Register::After, 20), (Register::Off, 320)] {
        let (handle, _) = started(|config| config.registration.when = when).await;
        let prefix = prefix(1, 1, 300);
        decide_one(&handle, &prefix, spec(1, 20)).await;
        let second = decide_one(&handle, &prefix, spec(2, 20)).await;
        assert_eq!(second.computed_tokens, computed, "{when:?}");
        assert_eq!(second.row, expected(&prefix, &spec(2, 20)));
        let counters = handle.snapshot().registration;
        assert!(counters.balance());
        assert_eq!(counters.registered, 2 * u64::from(when == Register::After));
    }
}

#[tokio::test(start_paused = true)]
async fn registration_delays_no_read_by_more_than_one_chunk() {
    let mut latencies = Vec::new();
    for when in [Register::Off, Register::After] {
        // Memory for three states: what is registered drives out what was.
        let (handle, engine) = started(|config| {
            config.cache.kv_bytes = 1_000;
            config.registration.when = when;
        })
        .await;
        let chunk = engine.step_cost + engine.token_cost * 192;
        let mut of_this = Vec::new();
        for name in 0..40 {
            let at = Instant::now();
            decide_one(&handle, &prefix(1, name % 7, 300), spec(name, 20)).await;
            of_this.push(at.elapsed());
            sleep(Duration::from_millis(u64::from(name) % 5 * 30)).await;
        }
        latencies.push((of_this, chunk));
    }
    let [(without, chunk), (with, _)] = &latencies[..] else { unreachable!() };
    for (name, (with, without)) in with.iter().zip(without).enumerate() {
        assert!(*with <= *without + *chunk, "{name}: {with:?} with, {without:?} without");
    }
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_goes_away_registers_nothing() {
    let (handle, _) = started(|_| ()).await;
    let prefix = prefix(1, 1, 300);
    let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
    decision.read(vec![spec(1, 20)]).await.unwrap();
    drop(decision);
    settle().await;
    assert_eq!(handle.snapshot().registration.submitted, 0);
    let residency = handle.snapshot().residency;
    assert_eq!((residency.pinned, residency.leased), (0, 0), "what it read may be evicted");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_goes_on_where_it_left() {
    for (when, left) in [(Register::After, 2_000), (Register::Off, 0)] {
        let (handle, engine) = started(|config| config.registration.when = when).await;
        let prefix = prefix(1, 1, 3_000);
        let first = spawn_one(&handle, prefix.clone(), spec(1, 20));
        sleep(Duration::from_millis(1_600)).await;
        first.abort();
        settle().await;
        sleep(Duration::from_millis(400)).await;
        let before = engine.tokens.load(Ordering::SeqCst);
        assert!(before > 2_000, "{before}");
        let second = decide_one(&handle, &prefix, spec(1, 20)).await;
        assert_eq!(second.row, expected(&prefix, &spec(1, 20)));
        assert!(second.cached_tokens > left && second.cached_tokens < 3_000, "{second:?}");
        assert_eq!(handle.snapshot().residency.duplicate_tokens, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_sweep_in_the_batch_lane_leaves_a_session_that_lives() {
    let (handle, _) = started(|config| config.cache.kv_bytes = 3_000).await;
    let session = prefix(1, 1, 300);
    for turn in 0..2 {
        decide_one(&handle, &session, spec(turn, 20)).await;
    }
    for name in 10..40 {
        let state = prefix(1, name, 300);
        for question in 0..2 {
            spawn_in(&handle, Lane::Batch, &state, spec(question, 20)).await.unwrap();
            settle().await;
        }
    }
    assert!(handle.snapshot().residency.evictions > 100);
    assert_eq!(decide_one(&handle, &session, spec(9, 20)).await.computed_tokens, 20);
}

#[tokio::test(start_paused = true)]
async fn a_state_that_can_never_be_held_is_refused_with_both_sizes() {
    let (handle, _) = started(|config| {
        config.cache.kv_bytes = 1_000;
        config.cache.overflow_bytes_max = 500;
    })
    .await;
    // Three quarters of the budget are never pinned; 64 bytes are the head's.
    let fits = prefix(1, 1, 600);
    decide_one(&handle, &fits, spec(1, 20)).await;
    let refused = handle.open(meta(&prefix(1, 2, 700), Lane::Normal, 1)).unwrap_err();
    let reason = RejectReason::Oversize { bytes: 64 + 768, bytes_max: 750 };
    assert_eq!(refused, ReadError::Rejected(reason));
    let refused = handle.prewarm(prewarm(&prefix(1, 2, 700), true)).await.unwrap_err();
    assert!(refused.to_string().contains("832 bytes of keys and values, at most 750"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn the_state_stays_leased_between_stages() {
    let (handle, _) = started(|config| config.registration.when = Register::Off).await;
    let prefix = prefix(1, 1, 300);
    let mut decision = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
    decision.read(vec![spec(1, 20)]).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    let outcomes = decision.read(vec![spec(2, 20), spec(3, 21)]).await.unwrap();
    let computed: Vec<_> =
        outcomes.iter().map(|outcome| outcome.as_ref().unwrap().computed_tokens).collect();
    assert_eq!(computed, [20, 21]);
}

#[tokio::test(start_paused = true)]
async fn what_is_held_between_stages_is_given_back_when_nothing_else_could_run() {
    for kv_bytes in [0, 400] {
        let (handle, _) = started(|config| config.cache.kv_bytes = kv_bytes).await;
        let (ours, theirs) = (prefix(1, 1, 300), prefix(1, 2, 300));
        let mut decision = handle.open(meta(&ours, Lane::Normal, 1)).unwrap();
        decision.read(vec![spec(1, 20)]).await.unwrap();
        // A longer state that begins with ours, as that of a long question does.
        let longer = prefix(1, 1, 700);
        let reads =
            [spawn_one(&handle, theirs, spec(2, 20)), spawn_one(&handle, longer, spec(3, 20))];
        for read in reads {
            let read = timeout(Duration::from_secs(5), read).await;
            read.expect("they wait for what is held").unwrap();
        }
        let second = decision.read(vec![spec(4, 20)]).await.unwrap().remove(0).unwrap();
        assert_eq!(second.row, expected(&ours, &spec(4, 20)));
    }
}

#[tokio::test(start_paused = true)]
async fn case_28_a_cache_of_zero_still_answers() {
    for kv_bytes in [0, 1, 200] {
        let (handle, _) = started(|config| config.cache.kv_bytes = kv_bytes).await;
        let tasks: Vec<_> = (0..6)
            .map(|name| spawn_one(&handle, prefix(1, name / 2, 700), spec(name, 20)))
            .collect();
        for (name, task) in (0..).zip(tasks) {
            let right = expected(&prefix(1, name / 2, 700), &spec(name, 20));
            assert_eq!(task.await.unwrap().row, right);
        }
        let residency = handle.snapshot().residency;
        assert!(residency.used <= kv_bytes);
        assert_eq!((residency.overflow, residency.leased), (0, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn twice_the_budget_of_states_evicts_the_oldest() {
    let (handle, _) = started(|config| config.cache.kv_bytes = 2_000).await;
    for name in 0..20 {
        decide_one(&handle, &prefix(1, name, 200), spec(1, 20)).await;
        let residency = handle.snapshot().residency;
        assert!(residency.used + residency.reserved <= 2_000);
        assert_eq!(residency.overflow, 0);
    }
    assert!(handle.snapshot().residency.evictions > 10);
    let newest = decide_one(&handle, &prefix(1, 19, 200), spec(2, 20)).await;
    assert_eq!(newest.computed_tokens, 20, "the newest is still there");
    let oldest = decide_one(&handle, &prefix(1, 0, 200), spec(2, 20)).await;
    assert_eq!(oldest.computed_tokens, 220, "the head is never computed again");
}

#[tokio::test(start_paused = true)]
async fn case_20_a_tenant_never_hits_the_state_of_another() {
    let (handle, _) = started(|_| ()).await;
    let (ours, theirs) = (prefix(1, 1, 300), prefix(2, 1, 300));
    handle.prewarm(prewarm(&ours, true)).await.unwrap();
    settle().await;
    let cold = decide_one(&handle, &theirs, spec(1, 20)).await;
    assert_eq!(cold.computed_tokens, 320);
    assert_eq!(decide_one(&handle, &ours, spec(1, 20)).await.computed_tokens, 20);
}
