//! Rendezvous hashing: the order in which a key prefers the backends.
//!
//! Each backend draws a number from the key and its own name, and the highest come first. So every
//! gateway with the same backends finds the same order, and where a backend goes or comes only those
//! keys move that had it, or have it then, in the first place: one in as many as there are.
//!
//! Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", 1998; weights as
//! in Schindelhauer and Schomaker, "Weighted distributed hash tables", 2005.

use sha2::{Digest as _, Sha256};

use crate::state_key::StateKey;

/// Who can be preferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Candidate {
    /// A hash of the backend's name.
    id: u64,
    weight: u32,
}

impl Candidate {
    /// * `weight`: how much it takes beside the others, at least 1.
    pub(super) fn new(name: &str, weight: u32) -> Self {
        Self { id: first_bits(&Sha256::digest(name.as_bytes())), weight }
    }

    /// What the key draws for it: the logarithm of a number within 0 and 1 over its weight, so that it
    /// is the highest of all in proportion to the weight.
    fn score(self, key: StateKey) -> f64 {
        let hash =
            Sha256::new().chain_update(key.0.to_be_bytes()).chain_update(self.id.to_be_bytes());
        // 53 bits, which is what a float has, and never 0 or 1.
        let share = ((first_bits(&hash.finalize()) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        share.ln() / f64::from(self.weight)
    }
}

/// The candidates' places, the most preferred first.
pub(super) fn order(key: StateKey, candidates: &[Candidate]) -> Vec<usize> {
    let scores: Vec<f64> = candidates.iter().map(|candidate| candidate.score(key)).collect();
    let mut order: Vec<usize> = (0..candidates.len()).collect();
    order.sort_by(|one, other| scores[*other].total_cmp(&scores[*one]));
    order
}

fn first_bits(hash: &[u8]) -> u64 {
    let mut first = [0_u8; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEYS: u64 = 6_000;

    fn named(names: &[(&str, u32)]) -> Vec<Candidate> {
        names.iter().map(|(name, weight)| Candidate::new(name, *weight)).collect()
    }

    /// How many of the keys have each candidate first.
    fn shares(candidates: &[Candidate]) -> Vec<u64> {
        let mut shares = vec![0; candidates.len()];
        for key in 0..KEYS {
            shares[order(StateKey(key), candidates)[0]] += 1;
        }
        shares
    }

    #[test]
    fn keys_are_spread_by_weight() {
        let even = shares(&named(&[("a:1", 1), ("b:1", 1), ("c:1", 1)]));
        assert!(even.iter().all(|share| (1_800..2_200).contains(share)), "{even:?}");
        let weighted = shares(&named(&[("a:1", 1), ("b:1", 3), ("c:1", 2)]));
        let wanted = [1_000, 3_000, 2_000_u64];
        let near = |(share, wanted): (&u64, u64)| share.abs_diff(wanted) < 200;
        assert!(weighted.iter().zip(wanted).all(near), "{weighted:?}");
    }

    #[test]
    fn only_the_keys_of_a_backend_that_goes_move() {
        let all = named(&[("a:1", 1), ("b:1", 1), ("c:1", 1)]);
        let left = &all[..2];
        let mut moved = 0;
        for key in (0..KEYS).map(StateKey) {
            let (before, after) = (order(key, &all), order(key, left));
            let others: Vec<usize> = before.iter().copied().filter(|at| *at != 2).collect();
            assert_eq!(after, others, "the others keep their order");
            moved += u64::from(before[0] != after[0]);
        }
        assert!((KEYS / 3).abs_diff(moved) < 200, "{moved} of {KEYS}");
    }

    #[test]
    fn the_order_does_not_depend_on_how_backends_are_listed() {
        let names = [("a:1", 1), ("b:1", 2), ("c:1", 1)];
        let turned = [names[2], names[0], names[1]];
        for key in (0..100).map(StateKey) {
            let first = |names: &[(&'static str, u32)]| names[order(key, &named(names))[0]].0;
            assert_eq!(first(&names), first(&turned));
        }
    }

    proptest! {
        #[test]
        fn an_order_has_every_candidate_once(key: u64, weights in prop::collection::vec(1_u32..1_000, 0..9)) {
            let candidates: Vec<Candidate> = weights
                .iter()
                .enumerate()
                .map(|(at, weight)| Candidate::new(&format!("backend-{at}"), *weight))
                .collect();
            let mut places = order(StateKey(key), &candidates);
            places.sort_unstable();
            prop_assert_eq!(places, (0..candidates.len()).collect::<Vec<_>>());
        }
    }
}
