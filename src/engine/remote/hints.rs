//! Which states a server is believed to hold, and how far: learnt from what it was asked and from how
//! many tokens it says that it found.
//!
//! The table decides one thing: whether a state's reads may go out together, or a request that warms
//! the server's cache has to go ahead of them.

use std::num::NonZeroUsize;

use actors::{PAGE_TOKENS, SegmentKey};
use lru::LruCache;

/// Most states that are remembered of one server; the one used longest ago is forgotten for a new one.
const STATES_MAX: usize = 1 << 16;

/// What a server found of a state that it was believed to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// What it was believed to hold.
    Confirmed,
    /// Less.
    Missed,
    /// It was not believed to hold it, or does not say what it found.
    Unknown,
}

/// States of one server.
#[derive(Debug)]
pub(super) struct Hints {
    /// Tokens of the prompt, from position 0, that are held of each state.
    held: LruCache<SegmentKey, u32>,
}

impl Hints {
    pub(super) fn new() -> Self {
        Self { held: LruCache::new(NonZeroUsize::new(STATES_MAX).unwrap_or(NonZeroUsize::MIN)) }
    }

    /// Whether the first `tokens` of a state's prompts are believed to be held.
    pub(super) fn holds(&mut self, state: SegmentKey, tokens: u32) -> bool {
        self.held.get(&state).is_some_and(|held| *held >= tokens)
    }

    /// The server has read the first `tokens` of a state's prompts, of which it found `cached`, where
    /// it says so.
    pub(super) fn read(&mut self, state: SegmentKey, tokens: u32, cached: Option<u32>) -> Found {
        let believed = self.held.get(&state).copied().unwrap_or(0).min(tokens);
        let found = match cached {
            Some(cached) if believed > 0 => {
                // Servers share whole blocks only, mostly of 16 tokens and at most of a page.
                let rest = PAGE_TOKENS.min(believed / 2);
                if cached >= believed - rest { Found::Confirmed } else { Found::Missed }
            }
            Some(_) | None => Found::Unknown,
        };
        self.held.put(state, tokens.max(self.held.peek(&state).copied().unwrap_or(0)));
        found
    }

    /// The server began anew.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }

    /// How many states it is believed to hold.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(name: u8) -> SegmentKey {
        SegmentKey::root(&[name])
    }

    #[test]
    fn what_was_read_is_held_as_far_as_it_was_read() {
        let mut hints = Hints::new();
        assert!(!hints.holds(state(1), 1));
        assert_eq!(hints.read(state(1), 100, Some(0)), Found::Unknown, "nothing was believed");
        assert!(hints.holds(state(1), 100) && !hints.holds(state(1), 101));
        assert!(!hints.holds(state(2), 1));
        hints.read(state(1), 50, None);
        assert!(hints.holds(state(1), 100), "it is not less for a shorter read");
        hints.clear();
        assert!(!hints.holds(state(1), 1) && hints.len() == 0);
    }

    #[test]
    fn a_belief_is_confirmed_up_to_a_block_and_missed_below() {
        let mut hints = Hints::new();
        hints.read(state(1), 1_000, None);
        assert_eq!(hints.read(state(1), 1_000, Some(1_000)), Found::Confirmed);
        assert_eq!(hints.read(state(1), 1_000, Some(936)), Found::Confirmed);
        assert_eq!(hints.read(state(1), 1_000, Some(935)), Found::Missed);
        assert_eq!(hints.read(state(1), 1_000, None), Found::Unknown);
        assert_eq!(hints.read(state(1), 1_500, Some(1_000)), Found::Confirmed, "it has grown");
    }

    #[test]
    fn a_short_belief_needs_half_of_it() {
        let mut hints = Hints::new();
        hints.read(state(1), 20, None);
        assert_eq!(hints.read(state(1), 20, Some(16)), Found::Confirmed);
        assert_eq!(hints.read(state(1), 20, Some(0)), Found::Missed);
    }
}
