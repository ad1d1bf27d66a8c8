//! The ledger case by case: sharing, staying, eviction, overflow, pins, epochs.

mod laws;
mod limits;
mod sweeps;

use std::time::Duration;

use super::*;
use crate::plan::fixture::{Run, caps, prefix, prefix_of, start_of_time};
use crate::plan::path::path_of;

type Ledger = Residency<Run>;

const BEYOND: Reach = Reach { evicts_protected: true, may_overflow: true };

const NONE: Served = Served { foreground: 0, background: 0 };
const READ: Served = Served { foreground: 1, background: 0 };
const SWEPT: Served = Served { foreground: 0, background: 1 };

fn tenant(name: &str) -> TenantId {
    TenantId(name.into())
}

fn ledger_that(retains: bool, budget: u64) -> Ledger {
    let config = CacheConfig { kv_bytes: budget, pin_tenant_ratio: 0.6, ..CacheConfig::default() };
    Residency::new(caps(), config, retains, 3)
}

fn ledger(budget: u64) -> Ledger {
    ledger_that(true, budget)
}

fn state(name: u32) -> Vec<PathSegment> {
    path_of(&prefix(name, 50 + name * 64))
}

fn runs(runs: &[(u32, u32)]) -> Vec<PathSegment> {
    path_of(&prefix_of(b"salt", runs))
}

fn keys(path: &[PathSegment]) -> Vec<SegmentKey> {
    path.iter().map(|segment| segment.key).collect()
}

fn len(path: &[PathSegment]) -> u32 {
    path.iter().map(PathSegment::len).sum()
}

fn is_granted(reply: &LeaseReply<Run>) -> bool {
    matches!(reply, LeaseReply::Granted(_))
}

fn done(ledger: &Ledger, segment: &PathSegment) -> u32 {
    ledger.find(segment).tokens
}

/// Computes the next `tokens` of the first segment of `path` that is not complete; says of which
/// segment and from where.
fn compute(ledger: &mut Ledger, path: &[PathSegment], tokens: u32) {
    let open = path.iter().find(|segment| done(ledger, segment) < segment.len());
    let Some(segment) = open else { return };
    let from = done(ledger, segment);
    let end = (segment.start + from + tokens).div_ceil(64) * 64;
    let tokens = (end - segment.start - from).min(segment.len() - from);
    let run = Run { start: segment.start + from, tokens };
    commit(ledger, segment.key, from, run);
}

fn commit(ledger: &mut Ledger, key: SegmentKey, from: u32, segment: Run) {
    ledger.commit(Computed { key, from, segment, is_adopted: false, epoch: 3 });
}

fn compute_all(ledger: &mut Ledger, path: &[PathSegment]) {
    while path.iter().any(|segment| done(ledger, segment) < segment.len()) {
        compute(ledger, path, 128);
    }
}

/// Reads a state from lease to release; returns how many tokens had to be computed.
fn read(ledger: &mut Ledger, path: &[PathSegment], served: Served) -> u32 {
    let missing = len(path) - ledger.held(path);
    assert!(is_granted(&ledger.lease((path, None), Reach::BUDGET, start_of_time())));
    compute_all(ledger, path);
    ledger.release(&keys(path), served);
    missing
}

#[test]
fn a_grown_state_computes_only_what_is_new() {
    let mut ledger = ledger(10_000);
    assert_eq!(read(&mut ledger, &runs(&[(1, 200)]), READ), 210);
    // Blocks end at 54, 118 and 182 of the state; the rest of it is its own.
    assert_eq!(read(&mut ledger, &runs(&[(1, 200), (2, 100)]), READ), 300 - 182);
    assert_eq!(read(&mut ledger, &runs(&[(1, 150)]), READ), 150 - 118, "one that was cut short");
    assert_eq!(
        read(&mut ledger, &runs(&[(1, 120), (3, 90)]), READ),
        210 - 118,
        "one that diverges"
    );
    assert_eq!(read(&mut ledger, &runs(&[(1, 118)]), READ), 0, "one that ends with a block");
    assert_eq!(ledger.view().duplicate_tokens, 0);
    let whole_pages = |tokens: u64| tokens.div_ceil(64) * 64;
    let own = whole_pages(18) + whole_pages(118) + whole_pages(32) + whole_pages(92);
    assert_eq!(ledger.view().used, 64 + 3 * 64 + own, "bytes of what is shared are counted once");
}

#[test]
fn a_lease_gets_the_parts_of_what_it_shares_in_order() {
    let (mut ledger, now) = (ledger(10_000), start_of_time());
    read(&mut ledger, &runs(&[(1, 200)]), READ);
    let LeaseReply::Granted(parts) =
        ledger.lease((&runs(&[(1, 200), (2, 9)]), None), Reach::BUDGET, now)
    else {
        panic!("there is room")
    };
    let part = |start, tokens| Run { start, tokens };
    assert_eq!(parts, [vec![part(0, 10)], vec![part(10, 54), part(64, 64), part(128, 64)]]);
}

#[test]
fn what_was_computed_of_a_state_stays_when_its_reader_leaves() {
    for (retains, left) in [(true, 118), (false, 0)] {
        let (mut ledger, now) = (ledger_that(retains, 1_000), start_of_time());
        let path = runs(&[(1, 300)]);
        ledger.lease((&path, None), Reach::BUDGET, now);
        compute(&mut ledger, &path, 10);
        compute(&mut ledger, &path, 100);
        ledger.release(&keys(&path), NONE);
        assert_eq!(done(&ledger, &path[1]), left);
        assert_eq!(done(&ledger, &path[0]), 10, "the head stays in any case");
        assert_eq!(ledger.view().reserved, 0, "what was promised is given back");
        ledger.lease((&path, None), Reach::BUDGET, now);
        assert_eq!(done(&ledger, &path[1]), left, "the next one goes on from there");
    }
}

#[test]
fn without_registration_pages_go_with_the_last_lease_unless_they_are_kept() {
    let (mut ledger, now) = (ledger_that(false, 10_000), start_of_time());
    let (path, grown) = (state(1), runs(&[(1, 200)]));
    for path in [&path, &path, &grown] {
        ledger.lease((path, None), Reach::BUDGET, now);
        compute_all(&mut ledger, path);
    }
    ledger.release(&keys(&path), READ);
    assert_eq!(done(&ledger, &path[1]), 114, "one lease is left");
    ledger.release(&keys(&path), READ);
    assert_eq!(done(&ledger, &path[1]), 54, "the grown state has this of it");
    assert!(!ledger.keep(&path));
    assert!(ledger.keep(&grown));
    ledger.release(&keys(&grown), READ);
    assert_eq!((done(&ledger, &path[0]), done(&ledger, &grown[1])), (10, 200));
}

#[test]
fn the_least_recently_used_is_the_victim() {
    // The head and the states 1 and 2 take 64 + 128 + 192 bytes, state 3 takes 256.
    let mut ledger = ledger(64 + 128 + 192 + 100);
    for name in [1, 2, 1, 3] {
        read(&mut ledger, &state(name), NONE);
    }
    assert_eq!(done(&ledger, &state(2)[1]), 0, "the one that was not used again");
    assert_eq!(done(&ledger, &state(1)[1]), 114);
}

#[test]
fn a_state_is_evicted_from_its_end() {
    let mut ledger = ledger(64 + 320);
    read(&mut ledger, &runs(&[(1, 300)]), NONE);
    read(&mut ledger, &runs(&[(2, 100)]), NONE);
    assert_eq!(done(&ledger, &runs(&[(1, 300)])[1]), 182, "two blocks made room for two");
}

#[test]
fn what_is_protected_keeps_within_its_share() {
    let mut ledger = ledger(64 + 10 * 128);
    for name in 10..20 {
        read(&mut ledger, &runs(&[(name, 114)]), Served { foreground: 2, background: 0 });
    }
    let view = ledger.view();
    assert_eq!(view.used, view.budget);
    assert!(view.protected <= view.budget * 8 / 10, "{view:?}");
    assert!(view.protected > view.budget / 2, "{view:?}");
}

#[test]
fn among_the_oldest_the_cheapest_to_compute_goes_first_but_not_for_ever() {
    // Sixteen states of one block; the window has two candidates. The oldest was used twice.
    let mut ledger = ledger(64 + 16 * 64);
    let dear = runs(&[(10, 54)]);
    read(&mut ledger, &dear, Served { foreground: 0, background: 3 });
    for name in 11..26 {
        read(&mut ledger, &runs(&[(name, 54)]), SWEPT);
    }
    let mut survived = 0;
    for name in 30..50 {
        read(&mut ledger, &runs(&[(name, 54)]), SWEPT);
        survived += u32::from(done(&ledger, &dear[1]) > 0);
    }
    assert_eq!(survived, 2, "three uses are worth two evictions more than one use");
}

#[test]
fn a_refused_lease_changes_nothing() {
    let (mut ledger, now) = (ledger(64 + 192), start_of_time());
    read(&mut ledger, &runs(&[(1, 54)]), READ);
    let path = state(1);
    ledger.lease((&path, None), Reach::BUDGET, now);
    let before = format!("{ledger:?}");
    assert!(!is_granted(&ledger.lease((&state(2), None), Reach::BUDGET, now)));
    assert!(!is_granted(&ledger.lease((&runs(&[(1, 54), (2, 200)]), None), Reach::BUDGET, now)));
    assert_eq!(format!("{ledger:?}"), before);
}

#[test]
fn one_state_may_run_beyond_the_budget_and_is_dropped_after_use() {
    let (mut ledger, now) = (ledger(0), start_of_time());
    let (one, two) = (state(1), state(2));
    assert!(is_granted(&ledger.lease((&one, None), BEYOND, now)));
    assert!(!is_granted(&ledger.lease((&two, None), BEYOND, now)), "one at a time");
    compute_all(&mut ledger, &one);
    assert!(
        !is_granted(&ledger.lease((&runs(&[(1, 300)]), None), BEYOND, now)),
        "it is nobody's beginning"
    );
    assert!(!ledger.keep(&one), "there is no room to keep it");
    ledger.release(&keys(&one), READ);
    let evictions = ledger.view().evictions;
    assert_eq!(ledger.view(), ResidencyView { evictions, ..ResidencyView::default() });
    assert!(is_granted(&ledger.lease((&two, None), BEYOND, now)));
}

#[test]
fn what_runs_beyond_the_budget_is_nobody_elses_beginning() {
    let (mut ledger, now) = (ledger(64 + 128 + 64), start_of_time());
    let (small, large, grown) = (state(1), runs(&[(2, 182)]), runs(&[(2, 182), (3, 9)]));
    ledger.lease((&small, None), Reach::BUDGET, now);
    assert!(is_granted(&ledger.lease((&large, None), BEYOND, now)));
    compute_all(&mut ledger, &large);
    assert!(
        !is_granted(&ledger.lease((&grown, None), Reach::BUDGET, now)),
        "though there is room for its rest"
    );
    ledger.release(&keys(&large), READ);
    assert_eq!(ledger.view().overflow, 0);
}

/// A state within the budget was promised the bytes of what another one computed beyond it.
#[test]
fn what_is_taken_over_from_beyond_the_budget_moves_into_it() {
    let (mut ledger, now) = (ledger(64 + 192), start_of_time());
    let (within, beyond) = (runs(&[(1, 118)]), runs(&[(1, 118), (2, 200)]));
    ledger.lease((&within, None), Reach::BUDGET, now);
    compute(&mut ledger, &within, 10);
    assert!(is_granted(&ledger.lease((&beyond, None), BEYOND, now)));
    compute_all(&mut ledger, &beyond);
    let part = Run { start: 10, tokens: 118 };
    let (key, from, epoch) = (within[1].key, 0, 3);
    ledger.commit(Computed { key, from, segment: part, is_adopted: true, epoch });
    assert_eq!((ledger.view().used, ledger.view().overflow), (64 + 128, 256));
    ledger.release(&keys(&beyond), READ);
    assert_eq!((done(&ledger, &within[1]), ledger.view().overflow), (118, 0));
}

#[test]
fn the_overflow_allowance_has_a_limit_in_bytes() {
    let (mut ledger, now) = (ledger(0), start_of_time());
    ledger.config.overflow_bytes_max = 64 + 128;
    assert!(!is_granted(&ledger.lease((&state(2), None), BEYOND, now)));
    assert!(is_granted(&ledger.lease((&state(1), None), BEYOND, now)));
}

#[test]
fn what_ran_beyond_the_budget_is_kept_if_there_is_room_by_then() {
    let (mut ledger, now) = (ledger(64 + 256), start_of_time());
    let (small, large) = (state(1), state(2));
    ledger.lease((&small, None), Reach::BUDGET, now);
    compute_all(&mut ledger, &small);
    assert!(is_granted(&ledger.lease((&large, None), BEYOND, now)));
    compute_all(&mut ledger, &large);
    assert_eq!(ledger.view().overflow, 192);
    assert!(!ledger.keep(&large), "the small one is in the way");
    ledger.release(&keys(&small), READ);
    assert!(ledger.keep(&large));
    ledger.release(&keys(&large), READ);
    assert_eq!((done(&ledger, &large[1]), ledger.view().overflow), (178, 0));
}

#[test]
fn pins_keep_within_their_budgets_and_end_with_time() {
    // Of 1,200 bytes 300 may be pinned, 180 of them by one tenant.
    let (mut ledger, now) = (ledger(1_200), start_of_time());
    let (one, two, three) = (state(1), runs(&[(2, 54)]), runs(&[(3, 54)]));
    for path in [&one, &two, &three, &state(2)] {
        read(&mut ledger, path, READ);
    }
    let ttl = Duration::from_secs(10);
    let (a, b, c) = (tenant("a"), tenant("b"), tenant("c"));
    assert_eq!(ledger.pin(&one, (&a, ttl), now), Some(now + ttl));
    assert_eq!(ledger.pin(&two, (&a, ttl), now), None, "beyond its own share");
    assert_eq!(ledger.pin(&two, (&b, ttl), now), Some(now + ttl));
    assert_eq!(ledger.pin(&state(2), (&c, ttl), now), None, "beyond the budget of all");
    assert_eq!(ledger.view().pinned, 128 + 64);
    assert!(!ledger.unpin(two[1].key, &a), "it is another's");
    assert!(ledger.unpin(two[1].key, &b) && !ledger.unpin(two[1].key, &b));
    let later = now + Duration::from_secs(9);
    ledger.lease((&one, None), Reach::BUDGET, later);
    ledger.release(&keys(&one), READ);
    ledger.expire_pins(now + ttl);
    assert_eq!(ledger.view().pinned, 128, "a hit makes it young again");
    ledger.expire_pins(later + ttl);
    assert_eq!(ledger.view().pinned, 0);
}

#[test]
fn a_pinned_state_is_no_victim_and_one_grown_out_of_it_is() {
    let (mut ledger, now) = (ledger(64 + 512), start_of_time());
    let (pinned, grown) = (runs(&[(1, 54)]), runs(&[(1, 54), (2, 128)]));
    read(&mut ledger, &pinned, READ);
    assert!(ledger.pin(&pinned, (&tenant("a"), Duration::from_secs(9)), now).is_some());
    read(&mut ledger, &grown, READ);
    for name in 10..20 {
        read(&mut ledger, &runs(&[(name, 180)]), READ);
    }
    assert_eq!(done(&ledger, &grown[1]), 54);
}

#[test]
fn a_commit_of_another_epoch_is_dropped() {
    let (mut ledger, now) = (ledger(1_000), start_of_time());
    let path = state(1);
    ledger.lease((&path, None), Reach::BUDGET, now);
    let before = format!("{ledger:?}");
    let segment = Run { start: 0, tokens: 10 };
    let (key, from, is_adopted) = (path[0].key, 0, false);
    ledger.commit(Computed { key, from, segment, is_adopted, epoch: 2 });
    assert_eq!(format!("{ledger:?}"), before);
}

#[test]
fn tokens_that_are_held_already_are_counted_as_duplicates() {
    let (mut ledger, now) = (ledger(1_000), start_of_time());
    let (one, two) = (runs(&[(1, 100)]), runs(&[(1, 200)]));
    ledger.lease((&one, None), Reach::BUDGET, now);
    compute(&mut ledger, &one, 10);
    ledger.lease((&two, None), Reach::BUDGET, now);
    let block = Run { start: 10, tokens: 54 };
    commit(&mut ledger, one[1].key, 0, block.clone());
    commit(&mut ledger, two[1].key, 0, block.clone());
    assert_eq!(ledger.view().duplicate_tokens, 54);
    commit(&mut ledger, two[1].key, 0, block);
    assert_eq!(ledger.view().duplicate_tokens, 108);
    assert_eq!((done(&ledger, &one[1]), done(&ledger, &two[1])), (54, 54));
}
