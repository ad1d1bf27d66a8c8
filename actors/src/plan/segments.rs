//! The segments that the scheduler has leased: their parts, and how far they are computed.
//!
//! The cache owns them; this is the copy under lease, newer than the cache's own only by the
//! commits that are on their way to it. Segments that need the same block next are computed once:
//! whichever comes first is computed, the others take over its parts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::engine::Segment;
use crate::plan::DecisionId;
use crate::plan::path::{PathSegment, length};
use crate::prefix::BlockChain;
use crate::read::{Lane, SegmentKey};

/// A leased segment.
#[derive(Debug)]
pub(crate) struct Held<S> {
    pub(crate) tokens: Arc<[u32]>,
    blocks: BlockChain,
    pub(crate) parts: Vec<S>,
    /// Tokens computed: the sum over `parts`.
    pub(crate) done: u32,
    /// Whether a chunk of it is in the running step.
    pub(crate) in_step: bool,
    /// Steps with a chunk of it that failed since one succeeded; its next chunk runs alone then.
    pub(crate) attempts: u8,
    /// Groups that lease it or have asked to.
    users: usize,
    served: Served,
    last_served: Option<DecisionId>,
}

/// Decisions that read on a segment while it was leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Served {
    /// Those in the urgent and normal lanes.
    pub(crate) foreground: u32,
    /// Those in the batch and idle lanes.
    pub(crate) background: u32,
}

/// A chunk that was computed while an answer of the cache was outstanding.
#[derive(Debug, Clone)]
struct Recent<S> {
    /// Of its segment.
    blocks: BlockChain,
    from: u32,
    part: S,
}

/// A part that a segment took over from another that has the same blocks.
#[derive(Debug)]
pub(crate) struct Adopted<S> {
    pub(crate) key: SegmentKey,
    /// First token, counted from the segment's start.
    pub(crate) from: u32,
    pub(crate) segment: S,
}

impl<S> Held<S> {
    pub(crate) fn remaining(&self) -> u32 {
        length(&self.tokens) - self.done
    }

    /// The whole block that it needs next.
    pub(crate) fn next_block(&self) -> Option<SegmentKey> {
        self.blocks.next(self.done)
    }

    /// Notes that a read of `decision` was answered on it. Reads of one decision come together, so
    /// comparing with the last one is enough to count decisions.
    pub(crate) fn note_served(&mut self, decision: DecisionId, lane: Lane) {
        if self.last_served.replace(decision) == Some(decision) {
            return;
        }
        match lane {
            Lane::Urgent | Lane::Normal => self.served.foreground += 1,
            Lane::Batch | Lane::Idle => self.served.background += 1,
        }
    }
}

/// All leased segments.
#[derive(Debug)]
pub(crate) struct Segments<S> {
    held: BTreeMap<SegmentKey, Held<S>>,
    /// Segments that need a whole block next, by that block.
    waiting: BTreeMap<SegmentKey, BTreeSet<SegmentKey>>,
    /// Leases that were asked for and not answered.
    asks: usize,
    /// What was computed meanwhile; the answers may not know of it.
    recent: Vec<Recent<S>>,
    adopted: Vec<Adopted<S>>,
}

impl<S: Segment> Segments<S> {
    pub(crate) fn new() -> Self {
        let (held, waiting) = (BTreeMap::new(), BTreeMap::new());
        Self { held, waiting, asks: 0, recent: Vec::new(), adopted: Vec::new() }
    }

    pub(crate) fn get(&self, key: SegmentKey) -> Option<&Held<S>> {
        self.held.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: SegmentKey) -> Option<&mut Held<S>> {
        self.held.get_mut(&key)
    }

    /// A group asks for a lease: what is held already stays until the answer is there.
    pub(crate) fn asked(&mut self, path: &[PathSegment]) -> Vec<bool> {
        self.asks += 1;
        path.iter()
            .map(|segment| {
                let held = self.held.get_mut(&segment.key);
                held.map(|held| held.users += 1).is_some()
            })
            .collect()
    }

    /// The lease was granted; `counted` is what [`asked`](Self::asked) returned.
    pub(crate) fn granted(&mut self, path: &[PathSegment], counted: &[bool], parts: Vec<Vec<S>>) {
        for ((segment, counted), parts) in path.iter().zip(counted).zip(parts) {
            // What is held is newer than what the cache knew.
            if !self.held.contains_key(&segment.key) {
                self.hold(segment, parts);
            }
            if let Some(held) = self.held.get_mut(&segment.key) {
                held.users += usize::from(!counted);
            }
        }
        self.answered();
    }

    fn answered(&mut self) {
        self.asks -= 1;
        if self.asks == 0 {
            self.recent.clear();
        }
    }

    fn hold(&mut self, segment: &PathSegment, parts: Vec<S>) {
        let held = Held {
            tokens: Arc::clone(&segment.tokens),
            blocks: segment.blocks.clone(),
            done: parts.iter().map(Segment::tokens).sum(),
            parts,
            in_step: false,
            attempts: 0,
            users: 0,
            served: Served::default(),
            last_served: None,
        };
        self.held.insert(segment.key, held);
        self.wait(segment.key);
        for recent in self.recent.clone() {
            self.follow(segment.key, &recent);
        }
    }

    /// The lease was deferred.
    pub(crate) fn deferred(&mut self, path: &[PathSegment], counted: &[bool]) {
        let counted = path.iter().zip(counted).filter(|(_, counted)| **counted);
        for (segment, _) in counted {
            self.forget(segment.key);
        }
        self.answered();
    }

    /// A group gives its lease back; how many decisions it served.
    pub(crate) fn released(&mut self, path: &[PathSegment]) -> Served {
        let state = path.last().and_then(|segment| self.held.get(&segment.key));
        let served = state.map_or_else(Served::default, |held| held.served);
        for segment in path {
            self.forget(segment.key);
        }
        served
    }

    /// Takes in a chunk that was computed. Returns the other segments that have the same blocks and
    /// take them over; see [`take_adopted`](Self::take_adopted).
    pub(crate) fn computed(&mut self, key: SegmentKey, part: S) -> Vec<SegmentKey> {
        let Some(held) = self.held.get(&key) else { return Vec::new() };
        let (blocks, from, next) = (held.blocks.clone(), held.done, held.next_block());
        self.advance(key, part.clone());
        let recent = Recent { blocks, from, part };
        let sharers = next.and_then(|block| self.waiting_besides(block, key)).unwrap_or_default();
        for sharer in &sharers {
            self.follow(*sharer, &recent);
        }
        if self.asks > 0 {
            self.recent.push(recent);
        }
        sharers
    }

    fn waiting_besides(&self, block: SegmentKey, key: SegmentKey) -> Option<Vec<SegmentKey>> {
        let waiting = self.waiting.get(&block)?.iter().copied();
        Some(waiting.filter(|waiting| *waiting != key).collect())
    }

    /// What segments have taken over since the last call; the cache has to know.
    pub(crate) fn take_adopted(&mut self) -> Vec<Adopted<S>> {
        std::mem::take(&mut self.adopted)
    }

    /// Tokens of `path` that are not computed; a segment that is not leased counts whole.
    pub(crate) fn remaining(&self, path: &[PathSegment]) -> u32 {
        path.iter()
            .map(|segment| self.get(segment.key).map_or(segment.len(), Held::remaining))
            .sum()
    }

    /// Lets `key` take over what a chunk of another segment has of the blocks that it needs next.
    fn follow(&mut self, key: SegmentKey, chunk: &Recent<S>) {
        let Some(to) = self.held.get(&key).filter(|held| !held.in_step) else { return };
        let chunk_end = chunk.from + chunk.part.tokens();
        let common = to.blocks.common(&chunk.blocks).min(chunk.blocks.blocks_in(chunk_end));
        let (from, end) = (to.done, to.blocks.tokens_to(common));
        if from < chunk.from || end <= from {
            return;
        }
        let is_whole = from == chunk.from && end == chunk_end;
        let range = from - chunk.from..end - chunk.from;
        let part = if is_whole { chunk.part.clone() } else { chunk.part.slice(range) };
        self.adopted.push(Adopted { key, from, segment: part.clone() });
        self.advance(key, part);
    }

    /// Adds a part to a segment.
    fn advance(&mut self, key: SegmentKey, part: S) {
        self.wait_no_more(key);
        if let Some(held) = self.held.get_mut(&key) {
            held.done += part.tokens();
            held.parts.push(part);
            held.attempts = 0;
        }
        self.wait(key);
    }

    fn wait(&mut self, key: SegmentKey) {
        if let Some(block) = self.held.get(&key).and_then(Held::next_block) {
            self.waiting.entry(block).or_default().insert(key);
        }
    }

    fn wait_no_more(&mut self, key: SegmentKey) {
        let Some(block) = self.held.get(&key).and_then(Held::next_block) else { return };
        let Some(keys) = self.waiting.get_mut(&block) else { return };
        keys.remove(&key);
        if keys.is_empty() {
            self.waiting.remove(&block);
        }
    }

    fn forget(&mut self, key: SegmentKey) {
        let Some(held) = self.held.get_mut(&key) else { return };
        held.users -= 1;
        if held.users == 0 {
            self.wait_no_more(key);
            self.held.remove(&key);
        }
    }
}
