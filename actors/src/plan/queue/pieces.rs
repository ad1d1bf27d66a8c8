//! The prefix tokens that wait, each counted once however many states need it.
//!
//! States that begin alike have their first blocks in common (see [`crate::prefix`]). A block that is
//! still to be computed counts in the best lane in which one of the states that need it waits.

use std::collections::BTreeMap;

use crate::plan::path::PathSegment;
use crate::read::{Lane, SegmentKey};

/// What is to be computed, block by block.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    pieces: BTreeMap<SegmentKey, Piece>,
    tokens: [u64; 4],
}

/// A block, or what is left of a segment behind its last whole one.
#[derive(Debug, Clone, Copy, Default)]
struct Piece {
    /// What is to be computed of it. States that are both within it may differ in how far they are;
    /// this is the least that one of them lacked.
    tokens: u32,
    /// States that wait for it, by lane.
    states: [u32; 4],
}

/// What a state needs: the last `missing` tokens of its path, for what waits in `lane` at best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) lane: Lane,
    pub(super) missing: u32,
}

impl Pieces {
    /// Tokens by lane.
    pub(super) fn tokens(&self) -> [u64; 4] {
        self.tokens
    }

    /// The state at the end of `path` needs `new` instead of `old`.
    pub(super) fn replace(&mut self, path: &[PathSegment], old: Option<Need>, new: Option<Need>) {
        // Most changes of a group leave its prefix as it is.
        if old == new {
            return;
        }
        match (old, new) {
            (Some(old), Some(new)) if old.lane == new.lane && new.missing <= old.missing => {
                self.advance(path, old, new.missing);
            }
            (old, new) => {
                for (old, (key, _)) in old.iter().flat_map(|old| needed(path, *old)) {
                    self.change(key, |piece| piece.states[old as usize] -= 1);
                }
                for (new, (key, tokens)) in new.iter().flat_map(|new| needed(path, *new)) {
                    self.change(key, |piece| piece.add(new, tokens));
                }
            }
        }
    }

    /// Of what was needed, only the last `missing` tokens still are.
    fn advance(&mut self, path: &[PathSegment], old: Need, missing: u32) {
        let mut left = old.missing;
        for (lane, (key, tokens)) in needed(path, old) {
            left -= tokens;
            if left >= missing {
                self.change(key, |piece| piece.states[lane as usize] -= 1);
            } else {
                let rest = tokens.min(missing - left);
                self.change(key, |piece| piece.tokens = piece.tokens.min(rest));
                return;
            }
        }
    }

    fn change(&mut self, key: SegmentKey, change: impl FnOnce(&mut Piece)) {
        let piece = self.pieces.entry(key).or_default();
        let before = piece.counted();
        change(piece);
        let after = piece.counted();
        if after.is_none() {
            self.pieces.remove(&key);
        }
        if let Some((lane, tokens)) = before {
            self.tokens[lane as usize] -= u64::from(tokens);
        }
        if let Some((lane, tokens)) = after {
            self.tokens[lane as usize] += u64::from(tokens);
        }
    }
}

impl Piece {
    fn add(&mut self, lane: Lane, tokens: u32) {
        let is_new = self.states == [0; 4];
        self.tokens = if is_new { tokens } else { self.tokens.min(tokens) };
        self.states[lane as usize] += 1;
    }

    /// Where it counts, and with how many tokens.
    fn counted(&self) -> Option<(Lane, u32)> {
        let waits = |lane: &Lane| self.states[*lane as usize] > 0;
        Lane::ALL.into_iter().find(waits).map(|lane| (lane, self.tokens))
    }
}

/// The pieces that the last tokens of `path` are in, each with those of its tokens that are needed.
fn needed(path: &[PathSegment], need: Need) -> impl Iterator<Item = (Lane, (SegmentKey, u32))> {
    let len: u32 = path.iter().map(PathSegment::len).sum();
    let mut done = len.saturating_sub(need.missing);
    let mut segments = path.iter();
    let mut segment = segments.next();
    std::iter::from_fn(move || {
        while done >= segment?.len() {
            done -= segment?.len();
            segment = segments.next();
        }
        let (key, end) = segment?.piece(done);
        let tokens = end - done;
        done = end;
        Some((need.lane, (key, tokens)))
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::plan::fixture::prefix_of;
    use crate::plan::path::path_of;

    /// Three states: the second begins as the first does, the third is another one.
    fn paths() -> Vec<Vec<PathSegment>> {
        let runs: [&[(u32, u32)]; 3] = [&[(1, 200), (2, 100)], &[(1, 200), (3, 150)], &[(4, 90)]];
        runs.into_iter().map(|runs| path_of(&prefix_of(b"salt", runs))).collect()
    }

    fn need(lane: Lane, missing: u32) -> Need {
        Need { lane, missing }
    }

    #[test]
    fn what_two_states_begin_with_counts_once_and_in_the_best_lane() {
        let (paths, mut pieces) = (paths(), Pieces::default());
        pieces.replace(&paths[0], None, Some(need(Lane::Batch, 310)));
        assert_eq!(pieces.tokens(), [0, 0, 310, 0]);
        // Head and blocks up to position 192 are common, which is three whole blocks.
        pieces.replace(&paths[1], None, Some(need(Lane::Normal, 360)));
        assert_eq!(pieces.tokens(), [0, 360, 310 - 192, 0]);
        pieces.replace(&paths[1], Some(need(Lane::Normal, 360)), None);
        assert_eq!(pieces.tokens(), [0, 0, 310, 0]);
        pieces.replace(&paths[0], Some(need(Lane::Batch, 310)), Some(need(Lane::Batch, 100)));
        assert_eq!(pieces.tokens(), [0, 0, 100, 0]);
        pieces.replace(&paths[0], Some(need(Lane::Batch, 100)), Some(need(Lane::Batch, 0)));
        assert_eq!((pieces.tokens(), pieces.pieces.len()), ([0; 4], 0));
    }

    proptest! {
        #[test]
        fn tokens_are_those_of_the_union_whatever_came_before(
            acts in prop::collection::vec((0_usize..3, 0_usize..5, 0_u32..=6), 1..40),
        ) {
            let (paths, mut pieces) = (paths(), Pieces::default());
            let mut needs = [None; 3];
            for (state, lane, blocks) in acts {
                let path = &paths[state];
                let len: u32 = path.iter().map(PathSegment::len).sum();
                // Whole blocks, so that all who need a piece lack as much of it.
                let missing = len.saturating_sub(blocks * 64);
                let new = Lane::ALL.get(lane).map(|lane| need(*lane, missing));
                pieces.replace(path, needs[state], new);
                needs[state] = new;
                let mut union = BTreeMap::<SegmentKey, (Lane, u32)>::new();
                for (path, need) in paths.iter().zip(needs) {
                    for (lane, (key, tokens)) in need.into_iter().flat_map(|n| needed(path, n)) {
                        let best = union.entry(key).or_insert((lane, tokens));
                        best.0 = best.0.min(lane);
                    }
                }
                let mut expected = [0; 4];
                for (lane, tokens) in union.values() {
                    expected[*lane as usize] += u64::from(*tokens);
                }
                prop_assert_eq!(pieces.tokens(), expected);
                prop_assert_eq!(pieces.pieces.len(), union.len());
            }
        }

        #[test]
        fn within_a_block_no_count_is_left_behind(
            steps in prop::collection::vec((0_usize..3, 0_u32..=400), 1..40),
        ) {
            let (paths, mut pieces) = (paths(), Pieces::default());
            let mut needs = [None; 3];
            for (state, missing) in steps {
                let len: u32 = paths[state].iter().map(PathSegment::len).sum();
                let new = Some(need(Lane::Normal, missing.min(len)));
                pieces.replace(&paths[state], needs[state], new);
                needs[state] = new;
                let most: u64 = needs.iter().flatten().map(|need| u64::from(need.missing)).sum();
                prop_assert!(pieces.tokens()[Lane::Normal as usize] <= most);
            }
            for (path, need) in paths.iter().zip(needs) {
                pieces.replace(path, need, None);
            }
            prop_assert_eq!((pieces.tokens(), pieces.pieces.len()), ([0; 4], 0));
        }
    }
}
