//! Tokenised states: the tokens of states seen lately, so that a second request on a state does not
//! tokenise it again.
//!
//! Bounded by entries and by tokens. A state too long for the store is tokenised for each request.

use std::sync::{Mutex, PoisonError};

use actors::SegmentSpec;
use lru::LruCache;
use sha2::{Digest, Sha256};

/// Most states kept.
pub const STATES_MAX: usize = 4096;

/// Most tokens of all states kept: 16 MiB of ids.
pub const STATE_TOKENS_MAX: usize = 4 << 20;

/// A state's tokens and what they cost.
#[derive(Debug, Clone)]
pub struct TokenisedState {
    /// The state's segment.
    pub segment: SegmentSpec,
    /// Tokens of the state's text alone.
    pub state_tokens: u32,
}

/// Which state, for which tenant: SHA-256 over salt and text.
pub type StateId = [u8; 32];

/// The identity of a state's text under a salt.
pub fn state_id(salt: &[u8], text: &str) -> StateId {
    let mut hash = Sha256::new();
    hash.update((salt.len() as u64).to_le_bytes());
    hash.update(salt);
    hash.update(text.as_bytes());
    hash.finalize().into()
}

/// The least recently used leave first.
#[derive(Debug)]
pub struct TokenisedStates {
    /// A std mutex: it is held for a look-up, never while tokenising.
    kept: Mutex<Kept>,
    states_max: usize,
    tokens_max: usize,
}

#[derive(Debug)]
struct Kept {
    /// Unbounded by itself, since it knows no tokens; [`TokenisedStates::keep`] bounds it.
    states: LruCache<StateId, TokenisedState>,
    /// Sum over all states.
    tokens: usize,
}

impl TokenisedStates {
    /// An empty store with the limits of production.
    pub fn new() -> Self {
        Self::with_limits(STATES_MAX, STATE_TOKENS_MAX)
    }

    /// An empty store for at most so many states and tokens.
    pub fn with_limits(states_max: usize, tokens_max: usize) -> Self {
        let kept = Mutex::new(Kept { states: LruCache::unbounded(), tokens: 0 });
        Self { kept, states_max, tokens_max }
    }

    /// The tokens of a state, if they are kept.
    pub fn find(&self, id: &StateId) -> Option<TokenisedState> {
        self.lock().states.get(id).cloned()
    }

    /// Keeps a state's tokens, and drops others where that exceeds a limit.
    pub fn keep(&self, id: StateId, state: TokenisedState) {
        let tokens = state.segment.tokens.len();
        if tokens > self.tokens_max {
            return;
        }
        let mut kept = self.lock();
        kept.tokens += tokens;
        if let Some(old) = kept.states.put(id, state) {
            kept.tokens -= old.segment.tokens.len();
        }
        while kept.states.len() > self.states_max || kept.tokens > self.tokens_max {
            let Some((_, victim)) = kept.states.pop_lru() else { break };
            kept.tokens -= victim.segment.tokens.len();
        }
    }

    /// Nothing that runs under the lock panics half-way, so what a panic left is whole.
    fn lock(&self) -> std::sync::MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for TokenisedStates {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use actors::SegmentKey;

    use super::*;

    fn state(tokens: usize) -> TokenisedState {
        let segment = SegmentSpec::head(SegmentKey::root(b""), vec![7; tokens].into());
        TokenisedState { segment, state_tokens: 1 }
    }

    fn id(text: &str) -> StateId {
        state_id(b"tenant", text)
    }

    #[test]
    fn the_least_recently_used_state_leaves_first() {
        let states = TokenisedStates::with_limits(2, 100);
        states.keep(id("a"), state(1));
        states.keep(id("b"), state(1));
        assert!(states.find(&id("a")).is_some());
        states.keep(id("c"), state(1));
        assert!(states.find(&id("b")).is_none());
        assert!(states.find(&id("a")).is_some() && states.find(&id("c")).is_some());
    }

    #[test]
    fn tokens_are_bounded_too() {
        let states = TokenisedStates::with_limits(100, 10);
        states.keep(id("a"), state(6));
        states.keep(id("b"), state(5));
        assert!(states.find(&id("a")).is_none() && states.find(&id("b")).is_some());
        states.keep(id("long"), state(11));
        assert!(states.find(&id("long")).is_none(), "longer than the whole store");
        assert!(states.find(&id("b")).is_some(), "and nothing was dropped for it");
    }

    #[test]
    fn keeping_a_state_again_counts_its_tokens_once() {
        let states = TokenisedStates::with_limits(100, 10);
        for _ in 0..5 {
            states.keep(id("a"), state(4));
        }
        states.keep(id("b"), state(6));
        assert!(states.find(&id("a")).is_some() && states.find(&id("b")).is_some());
    }

    #[test]
    fn salt_and_text_cannot_be_shifted_into_each_other() {
        assert_ne!(state_id(b"ab", "c"), state_id(b"a", "bc"));
        assert_ne!(state_id(b"", "c"), state_id(b"c", ""));
    }
}
