//! What happens to the planner in a law, drawn at random.

use proptest::prelude::*;

use super::states::STATES;

/// One thing that happens; numbers are those of states, lanes and open decisions.
#[derive(Debug, Clone)]
pub(super) enum Act {
    Submit(u32, usize, u32),
    Close(usize),
    Finish(bool),
    ToCache,
    ToScheduler,
    Prewarm(u32, usize),
    Promote(u32),
    Pass(u64),
    Withdraw(usize),
    Limit(Option<u64>, u32),
}

pub(super) fn act() -> impl Strategy<Value = Act> {
    let bytes = || prop::option::of(0u64..1_200);
    prop_oneof![
        4 => (0..STATES, 0usize..4, 1u32..6).prop_map(|(a, b, c)| Act::Submit(a, b, c)),
        2 => (0usize..6).prop_map(Act::Close),
        5 => prop::bool::weighted(0.9).prop_map(Act::Finish),
        8 => Just(Act::ToCache),
        8 => Just(Act::ToScheduler),
        1 => (0..STATES, 0usize..4).prop_map(|(a, b)| Act::Prewarm(a, b)),
        1 => (0..STATES).prop_map(Act::Promote),
        1 => (1u64..400).prop_map(Act::Pass),
        1 => (0usize..6).prop_map(Act::Withdraw),
        1 => (bytes(), 0u32..4).prop_map(|(a, b)| Act::Limit(a, b)),
    ]
}
