//! The states that the laws of the planner are about.

use crate::plan::fixture::prefix_of;
use crate::plan::path::{PathSegment, path_of};
use crate::read::{Prefix, SegmentKey};

/// How many states there are; the last three begin as others do.
pub(super) const STATES: u32 = 9;

pub(super) fn tokens_of(name: u32) -> u32 {
    runs_of(name).iter().map(|(_, count)| count).sum()
}

fn runs_of(name: u32) -> Vec<(u32, u32)> {
    match name {
        // One that diverges from state 4, one that has grown out of state 3, one cut short at a block.
        6 => vec![(4, 300), (6, 100)],
        7 => vec![(3, 300), (7, 80)],
        8 => vec![(4, 502)],
        _ => vec![(name, [5, 60, 100, 300, 700, 54][name as usize])],
    }
}

pub(super) fn state(name: u32) -> Prefix {
    prefix_of(b"salt", &runs_of(name))
}

/// The head or state with this key.
pub(super) fn segment_of(key: SegmentKey) -> PathSegment {
    let mut segments = (0..STATES).flat_map(|name| path_of(&state(name)));
    segments.find(|segment| segment.key == key).unwrap()
}
