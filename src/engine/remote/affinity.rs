//! Which server a state belongs to: rendezvous hashing.
//!
//! Each server gets a score for the state, and the highest is its home. A server that comes or goes
//! moves the states of its own and no others, and no table has to be shared.

use actors::SegmentKey;
use sha2::{Digest, Sha256};

/// The servers by preference for `state`, its home first.
///
/// * `names`: `[servers]`, what tells one from another and stays the same between starts.
///
/// Source: Thaler and Ravishankar, "A name-based mapping scheme for rendezvous" (1996).
pub(super) fn ranked<'a>(names: impl Iterator<Item = &'a str>, state: SegmentKey) -> Vec<usize> {
    let scored = names.enumerate().map(|(index, name)| (score(name, state), index));
    let mut scored: Vec<_> = scored.collect();
    scored.sort_unstable_by(|one, other| other.cmp(one));
    scored.into_iter().map(|(_, index)| index).collect()
}

fn score(name: &str, state: SegmentKey) -> u64 {
    let digest: [u8; 32] =
        Sha256::new().chain_update(state.0).chain_update(name.as_bytes()).finalize().into();
    let mut word = [0; 8];
    word.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home(names: &[&str], state: u32) -> String {
        let key = SegmentKey::root(&state.to_le_bytes());
        names[ranked(names.iter().copied(), key)[0]].to_owned()
    }

    #[test]
    fn states_are_spread_evenly() {
        let names = ["http://a", "http://b", "http://c"];
        for name in names {
            let count = (0..3_000).filter(|state| home(&names, *state) == name).count();
            assert!((850..1_150).contains(&count), "{name}: {count}");
        }
    }

    #[test]
    fn a_server_that_goes_moves_its_own_states_and_no_others() {
        let (all, left) = (["http://a", "http://b", "http://c"], ["http://c", "http://a"]);
        let moved = (0..3_000).filter(|state| home(&all, *state) != home(&left, *state));
        assert!(moved.into_iter().all(|state| home(&all, state) == "http://b"));
    }

    #[test]
    fn the_order_in_which_servers_are_named_is_of_no_account() {
        let (one, other) = (["http://a", "http://b"], ["http://b", "http://a"]);
        assert!((0..100).all(|state| home(&one, state) == home(&other, state)));
    }
}
