//! Buckets, reads and what waits of tenants, with limits of their own and without.

use std::time::Duration;

use super::*;
use crate::limits::TenantLimits;

fn tenants(rate: u64, burst: u64) -> Arc<Tenants> {
    let config =
        SchedulerConfig { tenant_rate: rate, tenant_burst: burst, ..SchedulerConfig::default() };
    Arc::new(Tenants::new(&config))
}

fn enter(tenants: &Arc<Tenants>, name: &str, tokens: u64, now: Instant) -> (TenantUse, Found) {
    let (use_of_tenant, _, found) = tenants.enter(TenantId(name.into()), (2, tokens), now);
    (use_of_tenant, found)
}

fn holds(held: f64) -> Bucket {
    Bucket { held, burst: 100, per_minute: 600 }
}

fn limits(name: &str, limits: TenantLimits) -> Limits {
    Limits::new(BTreeMap::from([(TenantId(name.into()), limits)]))
}

fn tokens_a_minute(tokens: u64) -> TenantLimits {
    TenantLimits { tokens_per_minute: Some(tokens), ..TenantLimits::default() }
}

#[test]
fn a_bucket_is_emptied_by_what_is_let_in_and_filled_by_time() {
    let (tenants, now) = (tenants(10, 100), Instant::now());
    assert_eq!(enter(&tenants, "a", 70, now).1.bucket, Some(holds(100.0)));
    assert_eq!(enter(&tenants, "b", 0, now).1.bucket, Some(holds(100.0)), "each has its own");
    let refused = enter(&tenants, "a", 50, now + Duration::from_secs(2));
    assert_eq!(refused.1.bucket, Some(holds(50.0)));
    refused.0.give_back();
    assert_eq!(enter(&tenants, "a", 0, now + Duration::from_secs(4)).1.bucket, Some(holds(70.0)));
    assert_eq!(enter(&tenants, "a", 0, now + Duration::from_hours(1)).1.bucket, Some(holds(100.0)));
}

#[test]
fn reads_are_counted_while_they_are_open_and_the_tenant_is_then_forgotten() {
    let (tenants, now) = (tenants(0, 100), Instant::now());
    let first = enter(&tenants, "a", 70, now);
    let second = enter(&tenants, "a", 70, now);
    assert_eq!((first.1.reads, second.1.reads, tenants.count(now)), (0, 2, 1));
    assert_eq!(second.1.bucket, None, "no rate, no bucket");
    drop((first, second));
    assert_eq!(tenants.count(now), 0);
}

#[test]
fn tenants_that_are_away_with_a_full_bucket_are_forgotten() {
    let (tenants, now) = (tenants(1, 100), Instant::now());
    for number in 0..SWEEP_FROM {
        drop(enter(&tenants, &number.to_string(), 50, now));
    }
    assert_eq!(tenants.count(now), SWEEP_FROM, "they owe something");
    drop(enter(&tenants, "new", 50, now + Duration::from_mins(1)));
    assert_eq!(tenants.known.len(), 1);
    assert_eq!(tenants.count(now + Duration::from_mins(2)), 0);
}

#[test]
fn sub_tenants_are_counted_together_with_their_parent() {
    let (tenants, now) = (tenants(0, 1), Instant::now());
    tenants.limit(limits("a", tokens_a_minute(600)), now);
    let uses = ["a", "a/x", "a/y"].map(|name| enter(&tenants, name, 100, now));
    assert_eq!(uses.each_ref().map(|(_, found)| found.reads), [0, 2, 4]);
    let bucket = |held| Some(Bucket { held, burst: 600, per_minute: 600 });
    assert_eq!(uses.each_ref().map(|(_, found)| found.bucket), [600.0, 500.0, 400.0].map(bucket));
    assert_eq!(uses[1].0.tenant(), &TenantId("a/x".into()));
    assert_eq!(tenants.most_reads(), [(TenantId("a".into()), 6)]);
    assert_eq!(enter(&tenants, "b", 100, now).1, Found::default(), "another has no limits");
    drop(uses);
    assert_eq!(tenants.found(&TenantId("a/z".into()), now).reads, 0);
    assert_eq!(tenants.count(now + Duration::from_secs(31)), 0);
}

#[test]
fn what_waits_is_what_enters_and_what_is_queued() {
    let (tenants, now) = (tenants(0, 1), Instant::now());
    let waiting = || tenants.found(&TenantId("a".into()), now).waiting;
    let (use_of_tenant, arrival, _) = tenants.enter(TenantId("a/x".into()), (3, 0), now);
    assert_eq!(waiting(), 3);
    tenants.queued(BTreeMap::from([(TenantId("a/x".into()), 3)]));
    drop(arrival);
    assert_eq!(waiting(), 3);
    tenants.queued(BTreeMap::from([(TenantId("a/x".into()), -2)]));
    drop(use_of_tenant);
    assert_eq!((waiting(), tenants.known.len()), (1, 1), "one is not cancelled yet");
    tenants.queued(BTreeMap::from([(TenantId("a/x".into()), -1)]));
    assert_eq!(tenants.known.len(), 0);
}

#[test]
fn a_tenants_own_bucket_takes_the_place_of_the_servers() {
    let (tenants, now) = (tenants(10, 100), Instant::now());
    assert_eq!(enter(&tenants, "a", 80, now).1.bucket, Some(holds(100.0)));
    tenants.limit(limits("a", tokens_a_minute(60)), now + Duration::from_secs(1));
    let of_a = |seconds| {
        let later = now + Duration::from_secs(seconds);
        tenants.found(&TenantId("a".into()), later).bucket
    };
    let own = |held| Some(Bucket { held, burst: 60, per_minute: 60 });
    assert_eq!([of_a(1), of_a(31), of_a(600)], [0.0, 30.0, 60.0].map(own), "70 were owed");
    assert_eq!(tenants.found(&TenantId("b".into()), now).bucket, Some(holds(100.0)));
    tenants.limit(Limits::default(), now + Duration::from_secs(2));
    assert_eq!(of_a(2), Some(holds(41.0)), "59 of its own were owed");
}

#[test]
fn a_bucket_that_is_taken_away_is_forgotten() {
    let (tenants, now) = (tenants(0, 1), Instant::now());
    tenants.limit(limits("a", tokens_a_minute(60)), now);
    drop(enter(&tenants, "a", 50, now));
    assert_eq!(tenants.count(now), 1);
    tenants.limit(Limits::default(), now);
    assert_eq!(tenants.count(now), 0);
}
