//! States that are made resident before their questions come.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{Lane, PrewarmSpec, Register, TenantId, Tier, start};
use tokio::time::{Instant, sleep};

use crate::fake::{FakeEngine, expected, meta, prefix, spec};
use crate::support::{config, decide_one, prewarm, settle, spawn_one, started};

#[tokio::test(start_paused = true)]
async fn a_prewarmed_state_costs_a_question_only_its_own_tokens() {
    let (handle, _) = started(|config| config.registration.when = Register::Off).await;
    let prefix = prefix(1, 1, 700);
    let outcome = handle.prewarm(prewarm(&prefix, true)).await.unwrap();
    assert_eq!((outcome.prompt_tokens, outcome.reused, outcome.computed), (720, 0, 720));
    assert!(outcome.stored && outcome.pinned && !outcome.pending);
    settle().await;
    assert_eq!(decide_one(&handle, &prefix, spec(1, 20)).await.computed_tokens, 20);
    let again = handle.prewarm(prewarm(&prefix, true)).await.unwrap();
    assert_eq!((again.reused, again.stored, again.computed), (720, true, 0));
    assert_eq!(handle.snapshot().load.totals.want_tokens, 720);
}

#[tokio::test(start_paused = true)]
async fn a_question_joins_a_prewarm_that_runs() {
    let (handle, _) = started(|_| ()).await;
    let prefix = prefix(1, 1, 2_000);
    let pending = handle.prewarm(prewarm(&prefix, false)).await.unwrap();
    assert!(pending.pending && !pending.stored);
    sleep(Duration::from_millis(200)).await;
    let outcome = decide_one(&handle, &prefix, spec(1, 20)).await;
    assert_eq!(outcome.row, expected(&prefix, &spec(1, 20)));
    assert_eq!(handle.snapshot().load.totals.computed_tokens, 2_040);
    assert!(handle.snapshot().residency.pinned > 0);
}

#[tokio::test(start_paused = true)]
async fn a_pin_ends_with_its_time_to_live() {
    let (handle, _) = started(|_| ()).await;
    let prefix = prefix(1, 1, 200);
    handle.prewarm(prewarm(&prefix, true)).await.unwrap();
    sleep(Duration::from_secs(290)).await;
    decide_one(&handle, &prefix, spec(1, 20)).await;
    sleep(Duration::from_secs(290)).await;
    assert!(handle.snapshot().residency.pinned > 0, "a hit makes it young again");
    sleep(Duration::from_secs(20)).await;
    assert_eq!(handle.snapshot().residency.pinned, 0);
}

#[tokio::test(start_paused = true)]
async fn a_pin_lasts_while_its_state_is_in_use() {
    let (handle, _) = started(|_| ()).await;
    let prefix = prefix(1, 1, 200);
    handle.prewarm(prewarm(&prefix, true)).await.unwrap();
    // Decisions that follow each other so closely that one is open at any time.
    let mut open = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
    for name in 0..8 {
        open.read(vec![spec(name, 20)]).await.unwrap();
        sleep(Duration::from_secs(100)).await;
        let next = handle.open(meta(&prefix, Lane::Normal, 1)).unwrap();
        drop(std::mem::replace(&mut open, next));
    }
    drop(open);
    settle().await;
    assert!(handle.snapshot().residency.pinned > 0);
    sleep(Duration::from_secs(301)).await;
    assert_eq!(handle.snapshot().residency.pinned, 0);
}

#[tokio::test(start_paused = true)]
async fn a_prewarm_that_cannot_be_held_costs_nothing() {
    let (handle, engine) = started(|config| config.cache.kv_bytes = 0).await;
    let outcome = handle.prewarm(prewarm(&prefix(1, 1, 200), true)).await.unwrap();
    assert!(!outcome.stored && !outcome.pending);
    assert_eq!((outcome.tier, outcome.expires_at), (Tier::Off, None));
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 0);
    let engine = FakeEngine::new().with_caps(|caps| caps.keeps_segments = false);
    let handle = start(Arc::new(engine), config()).await.unwrap();
    let outcome = handle.prewarm(prewarm(&prefix(1, 1, 200), true)).await.unwrap();
    assert_eq!((outcome.stored, outcome.tier), (false, Tier::Unsupported));
}

#[tokio::test(start_paused = true)]
async fn prewarms_and_reads_of_one_state_share_one_prefill() {
    let (handle, engine) = started(|_| ()).await;
    let prefix = prefix(1, 1, 1_000);
    let ask = || {
        let (handle, spec) = (handle.clone(), prewarm(&prefix, true));
        tokio::spawn(async move { handle.prewarm(spec).await.unwrap() })
    };
    let prewarms = [ask(), ask()];
    let reads: Vec<_> =
        (0..3).map(|name| spawn_one(&handle, prefix.clone(), spec(name, 10))).collect();
    let late = ask();
    for prewarmed in prewarms.into_iter().chain([late]) {
        let outcome = prewarmed.await.unwrap();
        assert!(outcome.stored && outcome.pinned);
        assert_eq!((outcome.reused, outcome.tier), (0, Tier::Exact));
    }
    for (name, read) in (0..).zip(reads) {
        assert_eq!(read.await.unwrap().row, expected(&prefix, &spec(name, 10)));
    }
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 1_020 + 30);
    assert_eq!(handle.snapshot().residency.duplicate_tokens, 0);
}

#[tokio::test(start_paused = true)]
async fn a_pin_says_when_it_ends_and_can_be_given_up() {
    let (handle, _) = started(|_| ()).await;
    let (prefix, at) = (prefix(1, 1, 200), Instant::now());
    let asked = PrewarmSpec { ttl: Some(Duration::from_secs(20)), ..prewarm(&prefix, true) };
    let outcome = handle.prewarm(asked).await.unwrap();
    let left = outcome.expires_at.unwrap() - at;
    assert!(left >= Duration::from_secs(20) && left < Duration::from_secs(21), "{left:?}");
    let (ours, theirs) = (TenantId(Arc::from("t")), TenantId(Arc::from("other")));
    let given_up = |tenant: &TenantId| handle.unpin(tenant.clone(), outcome.pin);
    assert_eq!(given_up(&theirs).await, Ok(false), "it is another's");
    assert!(handle.snapshot().residency.pinned > 0);
    assert_eq!(given_up(&ours).await, Ok(true));
    assert_eq!(given_up(&ours).await, Ok(false), "once");
    settle().await;
    assert_eq!(handle.snapshot().residency.pinned, 0);
    assert_eq!(decide_one(&handle, &prefix, spec(1, 20)).await.computed_tokens, 20);
}

#[tokio::test(start_paused = true)]
async fn a_prewarm_that_is_pending_can_be_given_up() {
    let (handle, engine) = started(|_| ()).await;
    let busy = spawn_one(&handle, prefix(1, 2, 2_000), spec(1, 20));
    settle().await;
    let outcome = handle.prewarm(prewarm(&prefix(1, 1, 2_000), false)).await.unwrap();
    assert_eq!((outcome.tier, outcome.expires_at), (Tier::Pending, None));
    assert_eq!(handle.unpin(TenantId(Arc::from("t")), outcome.pin).await, Ok(true));
    busy.await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 2_040, "nothing was computed for it");
    assert_eq!(handle.snapshot().residency.prewarms_waiting, 0);
}

#[tokio::test(start_paused = true)]
async fn one_tenant_never_pins_all_that_may_be_pinned() {
    let (handle, _) = started(|config| config.cache.kv_bytes = 4_000).await;
    let prewarmed = async |tenant: &str, name| {
        let tenant = TenantId(Arc::from(tenant));
        let spec = PrewarmSpec { tenant, ..prewarm(&prefix(1, name, 300), true) };
        handle.prewarm(spec).await.unwrap()
    };
    assert!(prewarmed("a", 1).await.pinned);
    let second = prewarmed("a", 2).await;
    assert_eq!((second.stored, second.pinned, second.expires_at), (true, false, None));
    assert!(prewarmed("b", 3).await.pinned);
    assert_eq!(handle.snapshot().residency.pinned, 2 * 320);
}
