//! Engines without a model: one that costs nothing, one whose steps last as long as a real one's.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use actors::{
    Caps, Completion, Engine, PAGE_TOKENS, PathPart, Prefix, ReadSpec, RowOutcome, Segment,
    SegmentKey, SegmentSpec, Step, StepOutcome,
};

/// What a step costs: measured with the real engine, see docs/BENCHMARKS.md.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Costs {
    /// Of each step, in seconds.
    pub(crate) step: f64,
    /// Of each token.
    pub(crate) token: f64,
    /// Of each token, for each token ahead of it.
    pub(crate) context: f64,
}

/// The engine.
#[derive(Debug)]
pub(crate) struct BenchEngine {
    caps: Caps,
    costs: Option<Costs>,
}

impl BenchEngine {
    /// One whose steps end at once, if there are no costs, or after a virtual time.
    pub(crate) fn new(costs: Option<Costs>) -> Arc<Self> {
        let caps = Caps {
            name: "bench".to_owned(),
            context_tokens: 32_768,
            step_tokens_max: 512,
            rows_max: 64,
            kv_bytes_per_token: 1,
            keeps_segments: true,
            sees_images: false,
        };
        Arc::new(Self { caps, costs })
    }
}

/// A run of tokens at its position.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    start: u32,
    tokens: u32,
}

impl Segment for Run {
    fn tokens(&self) -> u32 {
        self.tokens
    }

    fn bytes(&self) -> u64 {
        let pages = (self.start + self.tokens).div_ceil(PAGE_TOKENS) - self.start / PAGE_TOKENS;
        u64::from(pages * PAGE_TOKENS)
    }

    fn slice(&self, tokens: Range<u32>) -> Self {
        Self { start: self.start + tokens.start, tokens: tokens.end - tokens.start }
    }
}

impl Engine for BenchEngine {
    type Segment = Run;

    fn caps(&self) -> Caps {
        self.caps.clone()
    }

    fn submit(&self, step: Step<Run>, done: Completion<Run>) {
        let mut seconds = 0.0;
        let mut chunks: Vec<Run> = Vec::new();
        for chunk in &step.chunks {
            let (start, tokens) = (length(&chunk.path, &chunks), length_of(&chunk.tokens));
            seconds += self.cost(start, tokens);
            chunks.push(Run { start, tokens });
        }
        let outcome = RowOutcome {
            logprobs: vec![-0.5, -1.0],
            log_mass: Some(-0.1),
            greedy_is_label: true,
            hidden: None,
        };
        for row in &step.rows {
            seconds += self.cost(length(&row.path, &chunks), length_of(&row.suffix));
        }
        seconds += self.costs.map_or(0.0, |costs| costs.step);
        let elapsed = Duration::from_secs_f64(seconds);
        let rows = step.rows.iter().map(|_| Ok(outcome.clone())).collect();
        let outcome = StepOutcome { chunks, rows, elapsed };
        if self.costs.is_none() {
            return done.finish(Ok(outcome));
        }
        tokio::spawn(async move {
            tokio::time::sleep(elapsed).await;
            done.finish(Ok(outcome));
        });
    }
}

impl BenchEngine {
    fn cost(&self, start: u32, tokens: u32) -> f64 {
        let Some(costs) = self.costs else { return 0.0 };
        let ahead = f64::from(start) + f64::from(tokens) / 2.0;
        f64::from(tokens) * (costs.token + costs.context * ahead)
    }
}

fn length(path: &[PathPart<Run>], chunks: &[Run]) -> u32 {
    let tokens = |part: &PathPart<Run>| match part {
        PathPart::Segment(run) => run.tokens,
        PathPart::Chunk(index) => chunks[*index].tokens,
    };
    path.iter().map(tokens).sum()
}

fn length_of(tokens: &[u32]) -> u32 {
    u32::try_from(tokens.len()).unwrap()
}

/// A head of 30 tokens and a state.
pub(crate) fn prefix(tenant: u32, state: u32, tokens: u32) -> Prefix {
    let head = SegmentSpec::head(SegmentKey::root(b"bench"), (0..30).collect());
    let own = std::iter::once(state).chain((1..tokens).map(|index| state * 31 + index % 97));
    Prefix { state: SegmentSpec::state(&head, &tenant.to_le_bytes(), own.collect()), head }
}

/// A read with a suffix of its own.
pub(crate) fn read(number: u32, tokens: u32) -> ReadSpec {
    let suffix = (0..tokens).map(|index| number.wrapping_add(index)).collect();
    ReadSpec { suffix, labels: Arc::from([1, 2]), want_hidden: false, want_mass: false }
}
