//! Requests a minute: never more than the limit says, and the truth about when to come again.

use std::time::Instant;

use proptest::prelude::*;

use super::*;

fn tenant(name: &str) -> TenantId {
    TenantId(name.into())
}

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[test]
fn a_minutes_requests_may_come_at_once_and_then_one_by_one() {
    let (rates, start) = (Rates::default(), Instant::now());
    let take = |at| rates.take(&tenant("a"), 60, start + ms(at));
    for left in (0..60).rev() {
        let quota = take(0);
        assert!(quota.allowed && quota.retry_after.is_zero());
        assert_eq!((quota.limit, quota.remaining, quota.reset_s), (60, left, 60 - left));
    }
    let refused = take(0);
    assert!(!refused.allowed);
    assert_eq!((refused.remaining, refused.reset_s, refused.retry_after), (0, 60, ms(1_000)));
    assert_eq!(take(400).retry_after, ms(600));
    assert!(take(1_000).allowed);
    assert!(!take(1_999).allowed && take(2_000).allowed);
    let full = take(10_000_000);
    assert_eq!((full.allowed, full.remaining, full.reset_s), (true, 59, 1));
}

#[test]
fn tenants_have_their_own_buckets_which_are_forgotten_when_full() {
    let (rates, start) = (Rates::default(), Instant::now());
    assert!(rates.take(&tenant("a"), 1, start).allowed);
    assert!(!rates.take(&tenant("a"), 1, start).allowed);
    assert!(rates.take(&tenant("b"), 1, start).allowed);
    assert_eq!(rates.count(start), 2);
    assert_eq!(rates.count(start + ms(59_999)), 2);
    assert_eq!(rates.count(start + ms(60_000)), 0);
}

#[test]
fn there_are_never_more_buckets_than_are_allowed() {
    let (rates, start) = (Rates::default(), Instant::now());
    assert_eq!(rates.take(&tenant("hot"), 3, start).remaining, 2);
    assert_eq!(rates.take(&tenant("hot"), 3, start).remaining, 1);
    for number in 0..4 * TENANTS_MAX + 10 {
        let early = start + ms(1);
        assert!(rates.take(&tenant(&number.to_string()), 1_000, early).allowed);
    }
    assert_eq!(rates.count(start + ms(1)), 4 * TENANTS_MAX);
    assert_eq!(rates.take(&tenant("hot"), 3, start + ms(1)).remaining, 0, "who owes most stays");
}

#[test]
fn a_changed_limit_holds_at_once() {
    let (rates, start) = (Rates::default(), Instant::now());
    for _ in 0..600 {
        assert!(rates.take(&tenant("a"), 600, start).allowed);
    }
    assert_eq!(rates.take(&tenant("a"), 10, start).retry_after, ms(6_000), "not an hour");
    assert!(rates.take(&tenant("a"), 1_000, start).allowed);
    assert_eq!(rates.take(&tenant("a"), 0, start + ms(3_600_000)).limit, 1);
}

#[test]
fn a_clock_that_is_behind_pays_nothing_off_twice() {
    let (rates, start) = (Rates::default(), Instant::now());
    let take = |at| rates.take(&tenant("a"), 1, start + ms(at)).allowed;
    assert!(take(60_000) && !take(0) && !take(60_000) && !take(119_999) && take(120_000));
}

/// Requests, as milliseconds since the last one.
fn pauses() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![Just(0), 0..200_u64, 0..5_000_u64, 0..90_000_u64], 1..200)
}

proptest! {
    #[test]
    fn never_more_than_the_limit_and_its_share_of_the_time(pauses in pauses(), limit in 1..40_u64) {
        let (rates, start) = (Rates::default(), Instant::now());
        let mut clock = 0;
        let mut taken = Vec::new();
        for pause in pauses {
            clock += pause;
            if rates.take(&tenant("a"), limit, start + ms(clock)).allowed {
                taken.push(clock);
            }
        }
        for (first, from) in taken.iter().enumerate() {
            for (last, to) in taken.iter().enumerate().skip(first) {
                let count = (last - first + 1) as u64;
                prop_assert!(count * 60_000 <= limit * 60_000 + limit * (to - from));
            }
        }
    }

    #[test]
    fn a_refused_request_takes_nothing_and_is_let_in_when_it_was_told(
        pauses in pauses(),
        limit in 1..2_000_u64,
    ) {
        let (rates, patient, start) = (Rates::default(), Rates::default(), Instant::now());
        let mut clock = start;
        for pause in pauses {
            clock += ms(pause);
            let quota = rates.take(&tenant("a"), limit, clock);
            if quota.allowed {
                // Who never asked in vain finds the same.
                prop_assert_eq!(patient.take(&tenant("a"), limit, clock), quota);
                prop_assert!(quota.reset_s <= 60);
                continue;
            }
            prop_assert!(quota.retry_after > Duration::ZERO && quota.remaining == 0);
            let early = clock + quota.retry_after.saturating_sub(Duration::from_nanos(1));
            prop_assert!(!rates.take(&tenant("a"), limit, early).allowed);
            clock += quota.retry_after;
            let quota = rates.take(&tenant("a"), limit, clock);
            prop_assert!(quota.allowed);
            prop_assert_eq!(patient.take(&tenant("a"), limit, clock), quota);
        }
    }
}
