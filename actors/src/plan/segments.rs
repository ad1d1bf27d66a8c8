//! The segments that the scheduler has leased: their parts, and how far they are computed.
//!
//! The cache owns them; this is the copy under lease, newer than the cache's own only by the
//! commits that are on their way to it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::Segment;
use crate::plan::path::{PathSegment, length};
use crate::read::SegmentKey;

/// A leased segment.
#[derive(Debug)]
pub(crate) struct Held<S> {
    pub(crate) tokens: Arc<[u32]>,
    pub(crate) parts: Vec<S>,
    /// Tokens computed: the sum over `parts`.
    pub(crate) done: u32,
    /// Whether a chunk of it is in the running step.
    pub(crate) in_step: bool,
    /// Steps with a chunk of it that failed since one succeeded; its next chunk runs alone then.
    pub(crate) attempts: u8,
    /// Groups that lease it or have asked to.
    users: usize,
}

impl<S> Held<S> {
    pub(crate) fn remaining(&self) -> u32 {
        length(&self.tokens) - self.done
    }
}

/// All leased segments.
#[derive(Debug)]
pub(crate) struct Segments<S>(BTreeMap<SegmentKey, Held<S>>);

impl<S: Segment> Segments<S> {
    pub(crate) fn new() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn get(&self, key: SegmentKey) -> Option<&Held<S>> {
        self.0.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: SegmentKey) -> Option<&mut Held<S>> {
        self.0.get_mut(&key)
    }

    /// A group asks for a lease: what is held already stays until the answer is there.
    pub(crate) fn asked(&mut self, path: &[PathSegment]) -> Vec<bool> {
        path.iter()
            .map(|segment| {
                let held = self.0.get_mut(&segment.key);
                held.map(|held| held.users += 1).is_some()
            })
            .collect()
    }

    /// The lease was granted; `counted` is what [`asked`](Self::asked) returned.
    pub(crate) fn granted(&mut self, path: &[PathSegment], counted: &[bool], parts: Vec<Vec<S>>) {
        for ((segment, counted), parts) in path.iter().zip(counted).zip(parts) {
            // What is held is newer than what the cache knew.
            let held = self.0.entry(segment.key).or_insert_with(|| Held {
                tokens: Arc::clone(&segment.tokens),
                done: parts.iter().map(Segment::tokens).sum(),
                parts,
                in_step: false,
                attempts: 0,
                users: 0,
            });
            held.users += usize::from(!counted);
        }
    }

    /// The lease was deferred.
    pub(crate) fn deferred(&mut self, path: &[PathSegment], counted: &[bool]) {
        let counted = path.iter().zip(counted).filter(|(_, counted)| **counted);
        for (segment, _) in counted {
            self.forget(segment.key);
        }
    }

    /// A group gives its lease back.
    pub(crate) fn released(&mut self, path: &[PathSegment]) {
        for segment in path {
            self.forget(segment.key);
        }
    }

    /// Tokens of `path` that are not computed; a segment that is not leased counts whole.
    pub(crate) fn remaining(&self, path: &[PathSegment]) -> u32 {
        path.iter()
            .map(|segment| self.get(segment.key).map_or(segment.len(), Held::remaining))
            .sum()
    }

    fn forget(&mut self, key: SegmentKey) {
        if let Some(held) = self.0.get_mut(&key) {
            held.users -= 1;
            if held.users == 0 {
                self.0.remove(&key);
            }
        }
    }
}
