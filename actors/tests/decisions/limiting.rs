//! Limits of single tenants: what each bounds, what the refused are told, and that they may change
//! while work is under way.

use std::sync::atomic::Ordering;
use std::time::Duration;

use actors::{
    ActorKind, DecisionMeta, Handle, Lane, PrewarmSpec, ReadError, RejectReason, TOP_TENANTS,
    TenantId, TenantLimits, Tier,
};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::fake::{expected, meta, prefix, spec};
use crate::support::{prewarm, settle, started};

const NONE: fn() -> TenantLimits = TenantLimits::default;

fn limit(handle: &Handle, limits: &[(&str, TenantLimits)]) {
    let limits = limits.iter().map(|(name, own)| (TenantId((*name).into()), own.clone()));
    handle.limit(limits.collect());
}

/// A decision of a tenant on a state that is its own.
fn ask(tenant: &str, name: u32, tokens: u32, reads: usize) -> DecisionMeta {
    let salt = tenant.bytes().fold(7, |salt, byte| salt * 31 + u32::from(byte));
    let prefix = prefix(salt, name, tokens);
    DecisionMeta { tenant: TenantId(tenant.into()), ..meta(&prefix, Lane::Normal, reads) }
}

/// Opens a decision, which must be let in, and reads and responds in a task of its own.
fn open(handle: &Handle, meta: DecisionMeta) -> JoinHandle<()> {
    let mut decision = handle.open(meta.clone()).unwrap();
    tokio::spawn(async move {
        let reads: Vec<_> = (0..).take(meta.first_reads).map(|read| spec(read, 20)).collect();
        let outcomes = decision.read(reads.clone()).await.unwrap();
        for (outcome, read) in outcomes.into_iter().zip(&reads) {
            assert_eq!(outcome.unwrap().row, expected(&meta.prefix, read));
        }
        decision.responded();
    })
}

/// Why a decision is refused; the forecast must say the same, and when to come back.
fn refused(handle: &Handle, meta: &DecisionMeta) -> RejectReason {
    let told = handle.forecast(meta).refused;
    let Err(ReadError::Rejected(reason)) = handle.open(meta.clone()) else {
        panic!("it is let in, and was forecast {told:?}");
    };
    assert_eq!(told, Some(ReadError::Rejected(reason.clone())));
    assert!(reason.retry_after().is_some_and(|time| !time.is_zero()), "{reason:?}");
    let is_for_tokens = matches!(reason, RejectReason::TenantRate { .. });
    assert_eq!(reason.as_str(), if is_for_tokens { "tokens_per_minute" } else { "tenant" });
    reason
}

#[tokio::test(start_paused = true)]
async fn a_tenants_own_limit_of_reads_holds_for_it_and_its_subs_together() {
    let (handle, _) = started(|config| config.scheduler.tenant_reads_max = 6).await;
    limit(&handle, &[("a", TenantLimits { reads_max: Some(10), ..NONE() })]);
    let first = open(&handle, ask("a/x", 1, 300, 4));
    let second = open(&handle, ask("a", 2, 300, 4));
    let reason = refused(&handle, &ask("a/y", 3, 300, 3));
    assert_eq!(reason.to_string(), "8 reads of this tenant wait, at most 10 may");
    let third = open(&handle, ask("a/y", 3, 300, 2));
    let other = open(&handle, ask("b", 1, 300, 6));
    assert!(matches!(
        refused(&handle, &ask("b", 2, 10, 1)),
        RejectReason::TenantFull { reads_waiting: 6, reads_max: 6, .. }
    ));
    for task in [first, second, third, other] {
        task.await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    assert_eq!(handle.forecast(&ask("a/y", 4, 10, 400)).refused, None, "nothing of it is there");
}

#[tokio::test(start_paused = true)]
async fn what_waits_of_a_tenant_keeps_to_its_share_of_the_queue() {
    let (handle, _) = started(|config| config.scheduler.reads_max = 20).await;
    limit(&handle, &[("a", TenantLimits { queue_share: 0.25, ..NONE() })]);
    let running = open(&handle, ask("a", 1, 100, 9));
    settle().await;
    assert_eq!(handle.snapshot().load.reads_in_flight, 9);
    assert_eq!(handle.forecast(&ask("a/x", 2, 300, 15)).refused, None, "what runs does not wait");
    let waits = open(&handle, ask("a/x", 2, 300, 3));
    let reason = refused(&handle, &ask("a", 3, 300, 3));
    assert_eq!(reason.to_string(), "3 reads of this tenant wait, at most 5 may");
    let joins = open(&handle, ask("a", 3, 300, 2));
    settle().await;
    refused(&handle, &ask("a/z", 4, 10, 1));
    let other = open(&handle, ask("b", 1, 10, 8));
    for task in [running, waits, joins, other] {
        task.await.unwrap();
    }
    assert_eq!(handle.forecast(&ask("a", 5, 300, 15)).refused, None);
}

#[tokio::test(start_paused = true)]
async fn a_tenant_has_its_tokens_a_minute_and_is_told_when_it_has_them_again() {
    let (handle, _) = started(|_| ()).await;
    limit(&handle, &[("a", TenantLimits { tokens_per_minute: Some(600), ..NONE() })]);
    // A head of 20, a state of 400, and a read of 20.
    open(&handle, ask("a/x", 1, 400, 1)).await.unwrap();
    let next = ask("a", 2, 300, 1);
    let reason = refused(&handle, &next);
    let RejectReason::TenantRate { tokens: 320, rate: 600, burst: 600, retry_after } = reason
    else {
        panic!("{reason:?}");
    };
    assert!(reason.to_string().contains("600 a minute are allowed"), "{reason}");
    // 160 of the 320 are there; ten a second flow back.
    assert!(retry_after > Duration::from_secs(15) && retry_after < Duration::from_secs(17));
    sleep(retry_after.saturating_sub(Duration::from_millis(200))).await;
    refused(&handle, &next);
    sleep(Duration::from_millis(200)).await;
    open(&handle, next).await.unwrap();
    open(&handle, ask("b", 1, 4_000, 1)).await.unwrap();
}

/// Tokens of a state that are resident.
fn resident(handle: &Handle, meta: &DecisionMeta) -> u64 {
    handle.forecast(meta).prefix_resident
}

#[tokio::test(start_paused = true)]
async fn a_tenant_keeps_no_more_than_its_limit_and_others_keep_theirs() {
    let (handle, _) = started(|_| ()).await;
    // Two states of 300 tokens in five pages of 64.
    limit(&handle, &[("a", TenantLimits { kv_bytes_max: Some(2 * 320), ..NONE() })]);
    open(&handle, ask("b", 1, 300, 1)).await.unwrap();
    for (tenant, name) in [("a", 1), ("a/x", 2), ("a/y", 3)] {
        open(&handle, ask(tenant, name, 300, 1)).await.unwrap();
        settle().await;
    }
    let resident = |tenant, name| resident(&handle, &ask(tenant, name, 300, 1));
    assert_eq!([resident("a", 1), resident("a/x", 2), resident("a/y", 3)], [20, 320, 320]);
    assert_eq!(resident("b", 1), 320);
    // A state larger than the limit runs, and is not kept whole.
    let decision = handle.open(ask("a", 4, 700, 1)).unwrap();
    assert_eq!(decision.tier(), Tier::Off);
    drop(decision);
    open(&handle, ask("a", 4, 700, 1)).await.unwrap();
    settle().await;
    let kept = self::resident(&handle, &ask("a", 4, 700, 1));
    assert!(kept < 20 + 640 && kept > 20 + 500, "{kept}");
    assert_eq!(handle.snapshot().residency.evictions, 0, "nothing was short of room");
}

fn prewarm_of(tenant: &str, name: u32, tokens: u32) -> PrewarmSpec {
    let DecisionMeta { tenant, prefix, .. } = ask(tenant, name, tokens, 1);
    PrewarmSpec { tenant, ..prewarm(&prefix, true) }
}

#[tokio::test(start_paused = true)]
async fn pins_of_a_tenant_keep_to_its_own_limit() {
    let (handle, _) = started(|_| ()).await;
    let own = TenantLimits { pin_bytes_max: Some(320), kv_bytes_max: Some(640), ..NONE() };
    limit(&handle, &[("a", own)]);
    let first = handle.prewarm(prewarm_of("a/x", 1, 300)).await.unwrap();
    let second = handle.prewarm(prewarm_of("a/y", 2, 300)).await.unwrap();
    assert!(first.pinned && second.stored && !second.pinned, "{second:?}");
    let third = handle.prewarm(prewarm_of("a", 3, 900)).await.unwrap();
    assert_eq!(
        (third.stored, third.computed, third.tier),
        (false, 0, Tier::Off),
        "no limit has room"
    );
    assert!(handle.prewarm(prewarm_of("b", 1, 900)).await.unwrap().pinned);
}

#[tokio::test(start_paused = true)]
async fn a_weight_of_two_is_served_twice_the_tokens() {
    let (handle, _) = started(|config| {
        config.scheduler.tenant_reads_max = 10_000;
        config.scheduler.wait_normal = Duration::MAX;
    })
    .await;
    limit(&handle, &[("a", TenantLimits { weight: 2, ..NONE() })]);
    let tasks: Vec<_> = (0..60)
        .flat_map(|name| ["a", "b"].map(|tenant| (tenant, name)))
        .map(|(tenant, name)| (tenant, open(&handle, ask(tenant, 100 + name, 250, 1))))
        .collect();
    while tasks.iter().filter(|(tenant, task)| *tenant == "a" && task.is_finished()).count() < 50 {
        sleep(Duration::from_millis(20)).await;
    }
    let of_b = tasks.iter().filter(|(tenant, task)| *tenant == "b" && task.is_finished()).count();
    assert!((22..=28).contains(&of_b), "{of_b} of b while 50 of a");
    for (_, task) in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn limits_that_change_under_load_lose_no_read() {
    let (handle, engine) = started(|_| ()).await;
    let tight = TenantLimits {
        weight: 3,
        tokens_per_minute: Some(60),
        reads_max: Some(1),
        queue_share: 0.01,
        kv_bytes_max: Some(0),
        pin_bytes_max: Some(0),
    };
    let mut tasks = Vec::new();
    for round in 0..12 {
        for tenant in ["a", "a/x", "b"] {
            tasks.push(open(&handle, ask(tenant, round, 200, 3)));
        }
        limit(&handle, &[("a", tight.clone())]);
        refused(&handle, &ask("a/y", 50, 100, 2));
        sleep(Duration::from_millis(150)).await;
        limit(&handle, &[]);
    }
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(handle.snapshot().load.totals.done, 12 * 9);
    assert_eq!(handle.snapshot().load.totals.ended(), 12 * 9);
    assert_eq!(engine.overlaps.load(Ordering::SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn limits_outlive_a_lost_actor() {
    let (handle, engine) = started(|config| config.scheduler.reads_max = 20).await;
    let own = TenantLimits { kv_bytes_max: Some(0), queue_share: 0.25, ..NONE() };
    limit(&handle, &[("a", own)]);
    let lost = ask("a", 1, 300, 4);
    let mut decision = handle.open(lost).unwrap();
    let reads = tokio::spawn(async move {
        let reads = (0..4).map(|read| spec(read, 20)).collect();
        decision.read(reads).await.unwrap()
    });
    engine.lost.lock().unwrap().push((ActorKind::Scheduler, 1));
    assert!(reads.await.unwrap().iter().all(Result::is_err));
    sleep(Duration::from_millis(10)).await;
    // What waited with the lost scheduler does not count any more.
    open(&handle, ask("a", 2, 300, 5)).await.unwrap();
    settle().await;
    assert_eq!(resident(&handle, &ask("a", 2, 300, 1)), 20, "nothing but the head is kept");
}

#[tokio::test(start_paused = true)]
async fn the_tenants_with_most_are_named_and_no_more_of_them() {
    let (handle, _) = started(|_| ()).await;
    let names: Vec<_> = (0..14).map(|number| format!("t{number:02}")).collect();
    let tasks: Vec<_> = (1..)
        .zip(&names)
        .map(|(size, name)| open(&handle, ask(name, 1, 64 * size, size as usize)))
        .collect();
    let top = handle.snapshot().top_reads;
    assert_eq!(top.len(), TOP_TENANTS);
    assert_eq!((&*top[0].0.0, top[0].1), ("t13", 14));
    assert_eq!((&*top[9].0.0, top[9].1), ("t04", 5));
    assert_eq!(handle.snapshot().tenant_reads, 14);
    for task in tasks {
        task.await.unwrap();
    }
    sleep(Duration::from_secs(1)).await;
    let snapshot = handle.snapshot();
    assert_eq!(snapshot.top_reads, []);
    assert_eq!(snapshot.top_bytes.len(), TOP_TENANTS);
    assert_eq!(&*snapshot.top_bytes[0].0.0, "t13");
    assert!(snapshot.top_bytes.is_sorted_by(|one, next| one.1 >= next.1));
}
