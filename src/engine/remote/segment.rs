//! What docket remembers of keys and values that a server holds: which tokens they are of.
//!
//! It is a hint. The server may have dropped them, or may hold more than was asked for; then a read
//! costs more or less, and gives the same.

use std::ops::Range;
use std::sync::Arc;

use actors::{PAGE_TOKENS, PathPart, Segment, Step};

/// Tokens at their positions, whose keys and values a server was made to compute.
#[derive(Debug, Clone)]
pub struct RemoteSegment {
    tokens: Arc<[u32]>,
    /// Absolute position of the first of them.
    start: u32,
    /// Bytes that one position takes on the server.
    bytes_per_token: u64,
}

impl RemoteSegment {
    /// A segment of `tokens` from position `start` on.
    pub(super) fn new(tokens: Arc<[u32]>, start: u32, bytes_per_token: u64) -> Self {
        Self { tokens, start, bytes_per_token }
    }

    pub(super) fn ids(&self) -> &[u32] {
        &self.tokens
    }
}

impl Segment for RemoteSegment {
    fn tokens(&self) -> u32 {
        u32::try_from(self.tokens.len()).unwrap_or(u32::MAX)
    }

    /// Bytes that it takes on the server, in whole pages; here it takes four a token.
    fn bytes(&self) -> u64 {
        let tokens = self.tokens();
        if tokens == 0 {
            return 0;
        }
        let (first, last) = (self.start / PAGE_TOKENS, (self.start + tokens - 1) / PAGE_TOKENS);
        u64::from(last - first + 1) * u64::from(PAGE_TOKENS) * self.bytes_per_token
    }

    fn slice(&self, tokens: Range<u32>) -> Self {
        let start = self.start + tokens.start;
        let tokens = self.tokens[tokens.start as usize..tokens.end as usize].into();
        Self { tokens, start, bytes_per_token: self.bytes_per_token }
    }
}

/// All tokens of a path; `None` where it names a chunk that the step has not.
pub(super) fn ids_of(
    step: &Step<RemoteSegment>,
    path: &[PathPart<RemoteSegment>],
) -> Option<Vec<u32>> {
    let mut ids = Vec::new();
    for part in path {
        match part {
            PathPart::Segment(segment) => ids.extend_from_slice(segment.ids()),
            PathPart::Chunk(index) => ids.extend_from_slice(&step.chunks.get(*index)?.tokens),
        }
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_pages_as_the_ledger_reserves_them() {
        let segment = |start, count: u32| RemoteSegment::new((0..count).collect(), start, 10);
        assert_eq!(segment(0, 64).bytes(), 640);
        assert_eq!(segment(60, 8).bytes(), 1280, "it lies in two pages");
        assert_eq!(segment(60, 0).bytes(), 0);
        let whole = segment(60, 100);
        let (head, tail) = (whole.slice(0..4), whole.slice(4..100));
        assert_eq!((head.bytes(), tail.bytes()), (640, 1280));
        assert_eq!(head.ids(), [0, 1, 2, 3]);
        assert_eq!(tail.ids()[0], 4);
    }
}
