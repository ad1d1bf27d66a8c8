//! States that are made resident before their questions come.

use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::Register;
use tokio::time::sleep;

use crate::fake::{expected, prefix, spec};
use crate::support::{decide_one, prewarm, settle, started};

#[tokio::test(start_paused = true)]
async fn a_prewarmed_state_costs_a_question_only_its_own_tokens() {
    let (handle, _) = started(|config| config.registration.when = Register::Off).await;
    let prefix = prefix(1, 1, 700);
    let outcome = handle.prewarm(prewarm(&prefix, true)).await.unwrap();
    assert_eq!((outcome.prompt_tokens, outcome.reused), (720, 0));
    assert!(outcome.stored && outcome.pinned && !outcome.pending);
    settle().await;
    assert_eq!(decide_one(&handle, &prefix, spec(1, 20)).await.computed_tokens, 20);
    let again = handle.prewarm(prewarm(&prefix, true)).await.unwrap();
    assert_eq!((again.reused, again.stored), (720, true));
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
async fn a_prewarm_that_cannot_be_held_costs_nothing() {
    let (handle, engine) = started(|config| config.cache.kv_bytes = 0).await;
    let outcome = handle.prewarm(prewarm(&prefix(1, 1, 200), true)).await.unwrap();
    assert!(!outcome.stored && !outcome.pending);
    assert_eq!(engine.tokens.load(Ordering::SeqCst), 0);
}
