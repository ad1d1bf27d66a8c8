//! What the planner's tests share: a segment type, prefixes, an engine's answer to a step.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::{Caps, EngineError, PathPart, RowOutcome, Segment, Step, StepOutcome};
use crate::read::{Prefix, ReadSpec, SegmentKey, SegmentSpec};

/// A run of positions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u32,
    pub(crate) tokens: u32,
}

impl Segment for Run {
    fn tokens(&self) -> u32 {
        self.tokens
    }

    fn bytes(&self) -> u64 {
        caps().segment_bytes(self.start, self.tokens)
    }

    fn slice(&self, tokens: Range<u32>) -> Self {
        let end = self.start + tokens.end;
        let is_cut_at_a_page = |at: u32, edge: u32| at == edge || at.is_multiple_of(64);
        assert!(is_cut_at_a_page(self.start + tokens.start, self.start), "{self:?} {tokens:?}");
        assert!(is_cut_at_a_page(end, self.start + self.tokens), "{self:?} {tokens:?}");
        assert!(tokens.start < tokens.end && tokens.end <= self.tokens, "{self:?} {tokens:?}");
        Self { start: self.start + tokens.start, tokens: tokens.end - tokens.start }
    }
}

pub(crate) fn caps() -> Caps {
    Caps {
        name: "fixture".to_owned(),
        context_tokens: 4_096,
        step_tokens_max: 128,
        rows_max: 4,
        kv_bytes_per_token: 1,
        keeps_segments: true,
        sees_images: false,
    }
}

/// Head of 10 tokens, state of `count`; a state of the same name and more tokens has grown out of it.
pub(crate) fn prefix(name: u32, count: u32) -> Prefix {
    prefix_of(b"salt", &[(name, count)])
}

/// Head of 10 tokens, and a state that is a row of runs: each a name and a number of tokens.
pub(crate) fn prefix_of(salt: &[u8], runs: &[(u32, u32)]) -> Prefix {
    let head = SegmentSpec::head(SegmentKey::root(b"fixture"), Arc::from([9; 10]));
    let run = |(name, count): (u32, u32)| (0..count).map(move |index| name * 1_000 + index);
    let state = SegmentSpec::state(&head, salt, runs.iter().copied().flat_map(run).collect());
    Prefix { head, state }
}

pub(crate) fn spec(name: u32, count: u32) -> ReadSpec {
    let suffix = (0..count).map(|index| name * 100 + index).collect();
    ReadSpec { suffix, labels: Arc::from([1, 2]), want_hidden: false, want_mass: false }
}

/// Runs a step, and checks that no path has a gap and none is empty.
pub(crate) fn run(step: &Step<Run>) -> StepOutcome<Run> {
    let mut chunks: Vec<Run> = Vec::new();
    for chunk in &step.chunks {
        let start = length(&chunk.path, &chunks);
        let tokens = u32::try_from(chunk.tokens.len()).unwrap();
        assert!(tokens > 0, "an empty chunk");
        chunks.push(Run { start, tokens });
    }
    let row = RowOutcome {
        logprobs: vec![-1.0, -2.0],
        log_mass: None,
        greedy_is_label: true,
        hidden: None,
    };
    let rows = step.rows.iter().map(|asked| {
        length(&asked.path, &chunks);
        Ok::<_, EngineError>(row.clone())
    });
    let rows = rows.collect();
    StepOutcome { chunks, rows, elapsed: Duration::from_millis(1) }
}

/// Tokens of a path whose parts follow each other.
pub(crate) fn length(path: &[PathPart<Run>], chunks: &[Run]) -> u32 {
    path.iter().fold(0, |at, part| {
        let run = match part {
            PathPart::Segment(run) => run,
            PathPart::Chunk(index) => &chunks[*index],
        };
        assert_eq!(run.start, at, "a gap in a path");
        at + run.tokens
    })
}

/// Some instant; the clock is not looked at again.
pub(crate) fn start_of_time() -> Instant {
    tokio::time::Instant::now().into_std()
}
