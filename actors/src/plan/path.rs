//! The segments that a read stands on, in order, with their absolute positions.

use std::sync::Arc;

use crate::prefix::BlockChain;
use crate::read::{Prefix, SegmentKey, SegmentSpec};

/// One segment of a path.
#[derive(Debug, Clone)]
pub(crate) struct PathSegment {
    pub(crate) key: SegmentKey,
    /// Absolute position of its first token.
    pub(crate) start: u32,
    pub(crate) tokens: Arc<[u32]>,
    /// Keys of its whole blocks.
    pub(crate) blocks: BlockChain,
    /// Whether it is the template head, which stays resident without being registered.
    pub(crate) is_head: bool,
}

impl PathSegment {
    fn new(spec: &SegmentSpec, start: u32, is_head: bool) -> Self {
        let (key, tokens) = (spec.key, Arc::clone(&spec.tokens));
        Self { key, start, tokens, blocks: spec.blocks.clone(), is_head }
    }

    pub(crate) fn len(&self) -> u32 {
        length(&self.tokens)
    }

    /// The key of its last piece.
    pub(crate) fn end(&self) -> SegmentKey {
        self.blocks.end((self.key, self.len()))
    }

    /// The key of what comes after `done` tokens, and where that ends.
    pub(crate) fn piece(&self, done: u32) -> (SegmentKey, u32) {
        self.blocks.piece(done, (self.key, self.len()))
    }
}

/// The segments of `prefix` from position 0; an empty head is left out.
pub(crate) fn path_of(prefix: &Prefix) -> Vec<PathSegment> {
    let head = PathSegment::new(&prefix.head, 0, true);
    let state = PathSegment::new(&prefix.state, head.len(), false);
    if head.tokens.is_empty() { vec![state] } else { vec![head, state] }
}

/// Length of a run of tokens; a run longer than `u32` cannot be admitted.
pub(crate) fn length(tokens: &[u32]) -> u32 {
    u32::try_from(tokens.len()).unwrap_or(u32::MAX)
}
