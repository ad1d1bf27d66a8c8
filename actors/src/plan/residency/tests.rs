//! Laws of the ledger, against sums over its entries and a list of the leases given.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::plan::fixture::{Run, caps, prefix, start_of_time};
use crate::plan::path::path_of;

type Ledger = Residency<Run>;

fn ledger(budget: u64) -> Ledger {
    Residency::new(caps(), budget, budget / 4)
}

fn state(name: u32) -> Vec<PathSegment> {
    path_of(&prefix(name, 50 + name * 64))
}

fn keys(path: &[PathSegment]) -> Vec<SegmentKey> {
    path.iter().map(|segment| segment.key).collect()
}

fn is_granted(reply: &LeaseReply<Run>) -> bool {
    matches!(reply, LeaseReply::Granted(_))
}

/// Computes the next `tokens` of the first segment of `path` that is not complete.
fn compute(ledger: &mut Ledger, path: &[PathSegment], tokens: u32) {
    let open = path.iter().find(|segment| ledger.done(segment.key) < segment.len());
    let Some(segment) = open else { return };
    let from = ledger.done(segment.key);
    let end = (segment.start + from + tokens).div_ceil(64) * 64;
    let tokens = (end - segment.start - from).min(segment.len() - from);
    let run = Run { start: segment.start + from, tokens };
    ledger.commit(Computed { key: segment.key, from, segment: run });
}

fn compute_all(ledger: &mut Ledger, path: &[PathSegment]) {
    while path.iter().any(|segment| ledger.done(segment.key) < segment.len()) {
        compute(ledger, path, 64);
    }
}

/// A state that was read and registered, unleased.
fn registered(ledger: &mut Ledger, name: u32, now: Instant) {
    let path = state(name);
    assert!(is_granted(&ledger.lease(&path, false, now)));
    compute_all(ledger, &path);
    assert!(ledger.keep(path[1].key, now));
    ledger.release(&keys(&path), now);
}

#[test]
fn pages_go_with_the_last_lease_unless_they_are_kept() {
    let (mut ledger, now) = (ledger(10_000), start_of_time());
    let path = state(1);
    ledger.lease(&path, false, now);
    ledger.lease(&path, false, now);
    compute_all(&mut ledger, &path);
    ledger.release(&keys(&path), now);
    assert_eq!(ledger.done(path[1].key), 114, "one lease is left");
    ledger.release(&keys(&path), now);
    assert_eq!((ledger.done(path[0].key), ledger.done(path[1].key)), (10, 0));
    registered(&mut ledger, 1, now);
    assert_eq!(ledger.done(path[1].key), 114);
}

#[test]
fn the_least_recently_used_is_the_victim() {
    // The head and the states 1 and 2 take 64 + 128 + 192 bytes, state 3 takes 256.
    let (mut ledger, now) = (ledger(64 + 128 + 192 + 100), start_of_time());
    for name in 1..3 {
        registered(&mut ledger, name, now);
    }
    let first = state(1);
    ledger.lease(&first, false, now);
    ledger.release(&keys(&first), now);
    registered(&mut ledger, 3, now);
    assert_eq!(ledger.done(state(2)[1].key), 0, "the one that was not used again");
    assert_eq!(ledger.done(first[1].key), 114);
}

#[test]
fn a_refused_lease_changes_nothing() {
    let (mut ledger, now) = (ledger(64 + 128), start_of_time());
    let path = state(1);
    ledger.lease(&path, false, now);
    let before = format!("{ledger:?}");
    assert!(!is_granted(&ledger.lease(&state(2), false, now)));
    assert_eq!(format!("{ledger:?}"), before);
}

#[test]
fn one_state_may_run_beyond_the_budget_and_is_dropped_after_use() {
    let (mut ledger, now) = (ledger(0), start_of_time());
    let (one, two) = (state(1), state(2));
    assert!(is_granted(&ledger.lease(&one, true, now)));
    assert!(!is_granted(&ledger.lease(&two, true, now)), "one at a time");
    compute_all(&mut ledger, &one);
    assert!(!ledger.keep(one[1].key, now), "there is no room to keep it");
    ledger.release(&keys(&one), now);
    assert_eq!(ledger.view(), ResidencyView { budget: 0, ..ResidencyView::default() });
    assert!(is_granted(&ledger.lease(&two, true, now)));
}

#[test]
fn pins_keep_within_their_budget_and_end_with_time() {
    let (mut ledger, now) = (ledger(1_000), start_of_time());
    registered(&mut ledger, 1, now);
    registered(&mut ledger, 2, now);
    let ttl = Duration::from_secs(10);
    assert!(ledger.pin(state(1)[1].key, ttl, now));
    assert!(!ledger.pin(state(2)[1].key, ttl, now), "250 bytes may be pinned");
    assert_eq!(ledger.view().pinned, 128);
    ledger.expire_pins(now + ttl);
    assert_eq!(ledger.view().pinned, 0);
}

/// Sums, links and orders agree with each other.
fn check(ledger: &Ledger, leases: &BTreeMap<SegmentKey, u32>) {
    let view = ledger.view();
    assert!(view.used + view.reserved <= view.budget, "{view:?}");
    let sum = |count: &dyn Fn(&Entry<Run>) -> u64| ledger.entries.values().map(count).sum::<u64>();
    assert_eq!(view.used, sum(&|entry| if entry.overflow { 0 } else { entry.used }));
    assert_eq!(view.reserved, sum(&|entry| if entry.overflow { 0 } else { entry.reserved }));
    assert_eq!(view.overflow, sum(&|entry| if entry.overflow { entry.bytes() } else { 0 }));
    assert_eq!(view.pinned, sum(&|entry| if entry.pin.is_some() { entry.used } else { 0 }));
    assert!(view.pinned <= ledger.pin_budget);
    for (key, entry) in &ledger.entries {
        assert_eq!(entry.leases, leases.get(key).copied().unwrap_or(0), "leases in = leases out");
        assert_eq!(ledger.idle.contains(&(entry.last_use, *key)), entry.leases == 0);
        assert!(entry.leases > 0 || entry.is_complete(), "an unused part");
        assert_eq!(entry.done, entry.parts.iter().map(|part| part.tokens).sum::<u32>());
        let children = ledger.entries.values().filter(|child| child.parent == Some(*key)).count();
        assert_eq!(entry.children as usize, children);
        assert!(entry.parent.is_none_or(|parent| ledger.entries.contains_key(&parent)));
    }
    for (key, count) in leases {
        assert!(*count == 0 || ledger.entries.contains_key(key), "a leased segment is gone");
    }
}

proptest! {
    /// Whatever is leased, computed, kept, pinned and returned, the sums stay right, the budget
    /// holds, and nothing that is leased or has children leaves.
    #[test]
    fn the_ledger_keeps_its_promises(
        budget in 0u64..1_200,
        events in prop::collection::vec((0u8..9, 0u32..6, any::<bool>()), 1..120),
    ) {
        let (mut ledger, mut now) = (ledger(budget), start_of_time());
        let mut held: Vec<Vec<PathSegment>> = Vec::new();
        for (event, name, flag) in events {
            let path = state(name);
            match event {
                0..=2 => {
                    if is_granted(&ledger.lease(&path, flag, now)) {
                        held.push(path);
                    }
                }
                3 | 4 => {
                    if let Some(path) = held.get(name as usize) {
                        compute(&mut ledger, path, 64);
                    }
                }
                5 => drop(ledger.keep(path[1].key, now)),
                6 if ledger.keep(path[1].key, now) => {
                    ledger.pin(path[1].key, Duration::from_secs(3), now);
                }
                7 => now += Duration::from_secs(1),
                _ if !held.is_empty() => {
                    let path = held.remove(name as usize % held.len());
                    ledger.release(&keys(&path), now);
                }
                _ => ledger.expire_pins(now),
            }
            let mut leases = BTreeMap::new();
            for segment in held.iter().flatten() {
                *leases.entry(segment.key).or_insert(0) += 1;
            }
            check(&ledger, &leases);
        }
        for path in held {
            ledger.release(&keys(&path), now);
        }
        check(&ledger, &BTreeMap::new());
        prop_assert_eq!(ledger.view().overflow, 0);
        prop_assert_eq!(ledger.view().reserved, 0);
        prop_assert_eq!(ledger.view().duplicate_tokens, 0);
    }
}
