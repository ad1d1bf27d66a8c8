//! Whose account work is on: every token that was run once, whatever became of who asked for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{DecisionMeta, Handle, Lane, TenantId, Work};
use tokio::time::sleep;

use crate::fake::{Accounts, FakeEngine, POISON, meta, prefix, spec};
use crate::support::{prewarm, settle, started};

async fn accounted() -> (Handle, Arc<FakeEngine>, Arc<Accounts>) {
    let (handle, engine) = started(|_| ()).await;
    let accounts = Arc::<Accounts>::default();
    handle.account_to(Arc::clone(&accounts) as _);
    (handle, engine, accounts)
}

fn of(tenant: &str, name: u32, tokens: u32) -> DecisionMeta {
    let tenant = TenantId(tenant.into());
    DecisionMeta { tenant, ..meta(&prefix(1, name, tokens), Lane::Normal, 1) }
}

fn on(accounts: &Accounts, tenant: &str) -> Work {
    accounts.0.lock().unwrap().get(&TenantId(tenant.into())).copied().unwrap_or_default()
}

fn work(reads: u64, computed_tokens: u64, cached_tokens: u64) -> Work {
    Work { reads, computed_tokens, cached_tokens }
}

#[tokio::test(start_paused = true)]
async fn an_answered_read_is_on_its_tenants_account_with_what_it_found() {
    let (handle, _, accounts) = accounted().await;
    for _ in 0..2 {
        let mut decision = handle.open(of("a/x", 1, 300)).unwrap();
        decision.read(vec![spec(1, 20)]).await.unwrap().remove(0).unwrap();
        decision.responded();
        settle().await;
    }
    // A head of 20, and a read of 20 each time.
    assert_eq!(on(&accounts, "a/x"), work(2, 340 + 20, 320));
    assert_eq!(on(&accounts, "a"), Work::default());
}

#[tokio::test(start_paused = true)]
async fn what_was_run_for_a_client_that_left_is_on_its_tenants_account() {
    let (handle, engine, accounts) = accounted().await;
    let mut decision = handle.open(of("a", 1, 100)).unwrap();
    let reading = tokio::spawn(async move { decision.read(vec![spec(1, 20)]).await });
    settle().await;
    assert_eq!(handle.snapshot().load.reads_in_flight, 1, "state and read are in one step");
    reading.abort();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(handle.snapshot().load.totals.cancelled, 1);
    assert_eq!(on(&accounts, "a"), work(1, 140, 0));
    // Of a long state the chunk that ran.
    let mut decision = handle.open(of("b", 2, 3_000)).unwrap();
    let reading = tokio::spawn(async move { decision.read(vec![spec(1, 20)]).await });
    settle().await;
    reading.abort();
    sleep(Duration::from_secs(5)).await;
    let found = on(&accounts, "b");
    assert!(found.computed_tokens > 0 && found.computed_tokens < 3_000, "{found:?}");
    assert_eq!((found.reads, found.cached_tokens), (0, 0), "it was never read");
    assert_eq!(accounts.computed(), engine.tokens.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn prewarms_that_nobody_waits_for_are_accounted_and_failed_steps_are_not() {
    let (handle, engine, accounts) = accounted().await;
    handle.prewarm(prewarm(&prefix(1, 1, 300), false)).await.unwrap();
    sleep(Duration::from_secs(5)).await;
    assert_eq!(on(&accounts, "t"), work(0, 320, 0));
    let mut poisoned = spec(1, 20);
    poisoned.suffix = [&poisoned.suffix[..], &[POISON]].concat().into();
    let mut decision = handle.open(of("a", 1, 300)).unwrap();
    decision.read(vec![poisoned]).await.unwrap().remove(0).unwrap_err();
    assert_eq!(on(&accounts, "a").reads, 0);
    assert_eq!(accounts.computed(), engine.tokens.load(Ordering::SeqCst));
}
