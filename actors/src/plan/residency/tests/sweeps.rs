//! What a sweep in the background leaves of what the foreground uses.

use super::*;

/// How a lease for background work is asked for.
const SPARING: Reach = Reach { evicts_protected: false, may_overflow: true };

/// Case mlx-serve 378: a sweep over many states must not drive out a live session.
#[test]
fn a_sweep_in_the_batch_lane_leaves_what_the_foreground_uses() {
    let mut ledger = ledger(64 + 10 * 128);
    let session = state(1);
    read(&mut ledger, &session, READ);
    read(&mut ledger, &session, READ);
    for round in 0..2 {
        for name in 10..40 {
            read(&mut ledger, &runs(&[(name, 114)]), SWEPT);
            read(&mut ledger, &runs(&[(name, 114)]), SWEPT);
        }
        assert_eq!(done(&ledger, &session[1]), 114, "round {round}");
    }
    // Once read by nobody is not enough to stay.
    let mut ledger = self::ledger(64 + 10 * 128);
    read(&mut ledger, &session, READ);
    for name in 10..40 {
        read(&mut ledger, &runs(&[(name, 114)]), SWEPT);
    }
    assert_eq!(done(&ledger, &session[1]), 0);
}

/// A sweep that has many states open at a time fills the memory with what cannot be evicted.
#[test]
fn an_open_sweep_waits_for_its_own_states_before_it_evicts_what_the_foreground_uses() {
    let (mut ledger, now) = (ledger(64 + 4 * 128), start_of_time());
    let (session, swept) = (state(1), |name| runs(&[(name, 114)]));
    read(&mut ledger, &session, READ);
    read(&mut ledger, &session, READ);
    for name in 10..13 {
        assert!(is_granted(&ledger.lease((&swept(name), None), SPARING, now)), "{name}");
        compute_all(&mut ledger, &swept(name));
    }
    assert!(!is_granted(&ledger.lease((&swept(13), None), SPARING, now)));
    assert_eq!(done(&ledger, &session[1]), 114);
    ledger.release(&keys(&swept(10)), SWEPT);
    assert!(is_granted(&ledger.lease((&swept(13), None), SPARING, now)), "10 made room");
    assert_eq!(done(&ledger, &session[1]), 114);
    assert!(is_granted(&ledger.lease((&swept(14), None), Reach::BUDGET, now)), "the foreground");
    assert_eq!(done(&ledger, &session[1]), 0);
}

#[test]
fn a_sweep_that_has_nothing_open_evicts_whatever_it_needs() {
    let (mut ledger, now) = (ledger(64 + 2 * 128), start_of_time());
    for name in [1, 2, 1, 2] {
        read(&mut ledger, &runs(&[(name, 114)]), READ);
    }
    let (swept, next) = (runs(&[(10, 114)]), runs(&[(11, 114)]));
    assert!(is_granted(&ledger.lease((&swept, None), SPARING, now)));
    compute_all(&mut ledger, &swept);
    let refused = ledger.lease((&next, None), SPARING, now);
    assert!(!is_granted(&refused), "neither at what is protected nor beyond the budget");
    assert_eq!(ledger.view().overflow, 0);
}
