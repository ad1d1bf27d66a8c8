//! Smaller steps after one for which there was not enough memory.
//!
//! The first step that runs out of memory is no failure yet: half of it may fit. What is short now may
//! not be for long, so steps grow again with each that succeeds.

use crate::engine::PAGE_TOKENS;
use crate::plan::draft::StepLimits;
use crate::plan::running::Running;

/// By which part of itself a limit grows again with each step that succeeds.
const GROWTH: u32 = 32;

/// What steps are held down to; nothing as long as memory has sufficed.
#[derive(Debug, Default)]
pub(crate) struct Relief {
    /// Tokens and rows.
    held_to: Option<(u32, u32)>,
    /// Whether the last step ran out of memory and was halved for it.
    was_halved: bool,
}

impl Relief {
    /// Halves the steps to come after `running` ran out of memory. Says whether its items are worth
    /// another try as they are: not if the step was halved already, nor if it is a row alone, which
    /// cannot be cut.
    pub(crate) fn halve(&mut self, running: &Running) -> bool {
        let is_smallest = running.is_alone() && running.tokens <= PAGE_TOKENS;
        let is_row = running.is_alone() && running.chunks.is_empty();
        if self.was_halved || is_smallest || is_row {
            return false;
        }
        self.was_halved = true;
        let rows = match running.rows.len() {
            0 | 1 => u32::MAX,
            rows => u32::try_from(rows / 2).unwrap_or(u32::MAX),
        };
        self.held_to = Some(((running.tokens / 2).max(PAGE_TOKENS), rows));
        true
    }

    /// A step succeeded.
    pub(crate) fn succeeded(&mut self, limits: StepLimits) {
        self.was_halved = false;
        let grown = |limit: u32| limit.saturating_add((limit / GROWTH).max(1));
        let held_to = self.held_to.map(|(tokens, rows)| (grown(tokens), grown(rows)));
        self.held_to =
            held_to.filter(|(tokens, rows)| *tokens < limits.tokens || *rows < limits.rows);
    }

    /// The limits of the next step.
    pub(crate) fn apply(&self, limits: StepLimits) -> StepLimits {
        let Some((tokens, rows)) = self.held_to else { return limits };
        StepLimits {
            tokens: limits.tokens.min(tokens),
            rows: limits.rows.min(rows),
            chunk_tokens: limits.chunk_tokens.min(tokens),
            ..limits
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::draft::DraftChunk;
    use crate::plan::fixture::start_of_time;
    use crate::read::{Lane, SegmentKey};

    const LIMITS: StepLimits =
        StepLimits { tokens: 512, rows: 64, chunk_tokens: 192, look_ahead: 8 };

    fn chunks(count: usize, tokens: u32) -> Running {
        let key = SegmentKey::root(b"relief");
        let chunk = DraftChunk {
            key,
            group: key,
            from: 0,
            tokens,
            lane: Lane::Normal,
            charged: None,
            is_registration: false,
        };
        Running {
            step: 1,
            since: start_of_time(),
            tokens: tokens * u32::try_from(count).unwrap(),
            chunks: vec![chunk; count],
            rows: Vec::new(),
            served: Vec::new(),
            left: Vec::new(),
            is_registration: false,
            is_probe: false,
        }
    }

    #[test]
    fn a_step_is_halved_once_until_one_succeeds() {
        let mut relief = Relief::default();
        assert_eq!(relief.apply(LIMITS).tokens, 512);
        assert!(relief.halve(&chunks(2, 192)));
        assert_eq!((relief.apply(LIMITS).tokens, relief.apply(LIMITS).chunk_tokens), (192, 192));
        assert!(!relief.halve(&chunks(1, 192)), "half of it did not fit either");
        relief.succeeded(LIMITS);
        assert!(relief.halve(&chunks(1, 192)), "a chunk alone can be cut");
        assert_eq!(relief.apply(LIMITS).chunk_tokens, 96);
    }

    #[test]
    fn what_cannot_be_cut_is_not_tried_again() {
        assert!(!Relief::default().halve(&chunks(1, 64)));
    }

    #[test]
    fn steps_grow_again_as_they_succeed() {
        let mut relief = Relief::default();
        relief.halve(&chunks(4, 128));
        let mut before = relief.apply(LIMITS).tokens;
        for _ in 0..100 {
            relief.succeeded(LIMITS);
            let now = relief.apply(LIMITS).tokens;
            assert!(now >= before && now <= before + before / 16, "{before}, then {now}");
            before = now;
        }
        assert_eq!(relief.apply(LIMITS).tokens, 512);
        assert_eq!(relief.apply(LIMITS).rows, 64);
    }
}
