//! Affinity, bounded load and who is left out, with hand-worked numbers.

use std::time::Duration;

use proptest::prelude::*;

use super::super::rank::order;
use super::*;
use crate::state_key::StateKey;

fn named(weights: &[u32]) -> Vec<(String, u32)> {
    weights.iter().enumerate().map(|(at, weight)| (format!("backend-{at}"), *weight)).collect()
}

/// A fleet of which all are ready.
fn fleet(weights: &[u32], load: LoadConfig) -> Fleet {
    let mut fleet = Fleet::new(&named(weights), load);
    for index in 0..weights.len() {
        assert_eq!(fleet.probed(index, true, &ProbeConfig::default()), Some(true));
    }
    fleet
}

fn bounded(factor: f64, min: u32) -> LoadConfig {
    LoadConfig { factor, min }
}

#[test]
fn a_key_goes_to_one_backend_while_that_has_no_more_than_its_share() {
    let (mut fleet, now) = (fleet(&[1, 1, 1], bounded(1.25, 0)), Instant::now());
    let order = [2, 0, 1];
    for _ in 0..50 {
        let chosen = fleet.begin(Some(&order), &[], now).unwrap();
        assert_eq!(chosen, Chosen { index: 2, reason: Reason::Own });
        fleet.ended(2);
    }
}

#[test]
fn beyond_its_share_the_next_in_the_keys_order_is_chosen() {
    let (mut fleet, now) = (fleet(&[1, 1, 1], bounded(1.25, 0)), Instant::now());
    let order = [2, 0, 1];
    let mut begin = || fleet.begin(Some(&order), &[], now).unwrap();
    // With so many under way each may have: ceil(1.25 n / 3) = 1, 1, 2, 2, 3, 3.
    let chosen: Vec<usize> = (0..6).map(|_| begin().index).collect();
    assert_eq!(chosen, [2, 0, 2, 0, 2, 0]);
    let third = Chosen { index: 1, reason: Reason::Load };
    assert_eq!(begin(), third, "both have ceil(1.25 * 7 / 3) = 3");
}

#[test]
fn a_backend_with_little_to_do_is_not_passed_over() {
    let (mut fleet, now) = (fleet(&[1, 1, 1], bounded(1.25, 4)), Instant::now());
    let order = [1, 0, 2];
    let chosen: Vec<usize> =
        (0..5).map(|_| fleet.begin(Some(&order), &[], now).unwrap().index).collect();
    assert_eq!(chosen, [1, 1, 1, 1, 0]);
}

#[test]
fn capacity_counts_by_weight() {
    let (mut fleet, now) = (fleet(&[1, 3], bounded(1.0, 0)), Instant::now());
    let order = [1, 0];
    for _ in 0..400 {
        fleet.begin(Some(&order), &[], now).unwrap();
    }
    assert_eq!((fleet.in_flight(0), fleet.in_flight(1)), (100, 300));
}

#[test]
fn who_is_out_or_tried_is_passed_over_for_that_reason() {
    let (mut fleet, now) = (fleet(&[1, 1, 1], bounded(1.25, 4)), Instant::now());
    let order = [0, 1, 2];
    fleet.probed(0, false, &ProbeConfig { failures: 1, ..ProbeConfig::default() });
    let down = fleet.begin(Some(&order), &[], now).unwrap();
    assert_eq!(down, Chosen { index: 1, reason: Reason::Down });
    let retry = fleet.begin(Some(&order), &[1], now).unwrap();
    assert_eq!(retry, Chosen { index: 2, reason: Reason::Retry });
    assert_eq!(fleet.begin(Some(&order), &[1, 2], now), None);
    assert_eq!(fleet.open(&[1], now), 1);
}

#[test]
fn without_a_key_the_least_busy_is_chosen_and_equals_take_turns() {
    let (mut fleet, now) = (fleet(&[1, 1, 2], bounded(1.25, 4)), Instant::now());
    let chosen: Vec<usize> = (0..8).map(|_| fleet.begin(None, &[], now).unwrap().index).collect();
    let counts = [0, 1, 2].map(|at| chosen.iter().filter(|index| **index == at).count());
    assert_eq!(counts, [2, 2, 4], "{chosen:?}");
}

#[test]
fn at_most_half_are_ejected() {
    let limits = EjectionConfig { after: 1, time: Duration::from_secs(10) };
    let (mut fleet, now) = (fleet(&[1, 1, 1, 1, 1], bounded(1.25, 4)), Instant::now());
    let mut ejected = |index| fleet.went(index, Went::Failed, (now, &limits)).is_some();
    assert_eq!([0, 1, 2, 3, 4].map(&mut ejected), [true, true, false, false, false]);
    assert_eq!(fleet.taking(now).collect::<Vec<_>>(), [2, 3, 4]);
    let (mut one, limits) = (self::fleet(&[1], bounded(1.25, 4)), (now, &limits));
    assert_eq!(one.went(0, Went::Failed, limits), None, "the only one");
}

#[test]
fn a_backend_that_leaves_is_out_at_once() {
    let (mut fleet, now) = (fleet(&[1, 1], bounded(1.25, 4)), Instant::now());
    assert_eq!(fleet.went(1, Went::Leaving, (now, &EjectionConfig::default())), None);
    assert_eq!(fleet.taking(now).collect::<Vec<_>>(), [0]);
}

proptest! {
    /// Whatever the keys are: nobody has more than factor times the mean and one, and somebody is
    /// always found.
    #[test]
    fn nobody_has_more_than_its_share(
        keys in prop::collection::vec(0_u64..4, 1..200),
        backends in 1_usize..6,
        factor in 1.0_f64..2.0,
    ) {
        let now = Instant::now();
        let mut fleet = fleet(&vec![1; backends], bounded(factor, 0));
        for key in &keys {
            let order = order(StateKey(*key), fleet.candidates());
            prop_assert!(fleet.begin(Some(&order), &[], now).is_some());
        }
        let most = (factor * keys.len() as f64 / backends as f64).ceil();
        for index in 0..backends {
            prop_assert!(f64::from(fleet.in_flight(index)) <= most);
        }
    }
}
