//! The segments that a read stands on, in order, with their absolute positions.

use std::sync::Arc;

use crate::read::{Prefix, SegmentKey};

/// One segment of a path.
#[derive(Debug, Clone)]
pub(crate) struct PathSegment {
    pub(crate) key: SegmentKey,
    /// Absolute position of its first token.
    pub(crate) start: u32,
    pub(crate) tokens: Arc<[u32]>,
    /// Whether it is the template head, which stays resident without being registered.
    pub(crate) is_head: bool,
}

impl PathSegment {
    pub(crate) fn len(&self) -> u32 {
        length(&self.tokens)
    }
}

/// The segments of `prefix` from position 0; an empty head is left out.
pub(crate) fn path_of(prefix: &Prefix) -> Vec<PathSegment> {
    let segment = |spec: &crate::read::SegmentSpec, start, is_head| PathSegment {
        key: spec.key,
        start,
        tokens: Arc::clone(&spec.tokens),
        is_head,
    };
    let head = segment(&prefix.head, 0, true);
    let state = segment(&prefix.state, head.len(), false);
    if head.tokens.is_empty() { vec![state] } else { vec![head, state] }
}

/// Length of a run of tokens; a run longer than `u32` cannot be admitted.
pub(crate) fn length(tokens: &[u32]) -> u32 {
    u32::try_from(tokens.len()).unwrap_or(u32::MAX)
}
