//! An engine that is a tokio task, so that paused time drives it: each step costs virtual time, and
//! each answer is a hash of the whole prompt, so that a mixed-up row is a wrong answer.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use actors::{
    Account, ActorKind, Caps, Completion, Engine, EngineError, Lane, Prefix, ReadSpec, RowOutcome,
    Segment, SegmentKey, SegmentSpec, Step, StepOutcome, TenantId, Work,
};
use actors::{DecisionMeta, PathPart, ReadOutcome};

/// A suffix or chunk with this token makes the whole step fail.
pub(crate) const POISON: u32 = 1_000_001;
/// A suffix with this token makes its row not finite.
pub(crate) const NAN: u32 = 1_000_002;
/// A suffix with this token kills the engine.
pub(crate) const DEATH: u32 = 1_000_003;
/// A suffix with this token makes `submit` panic, and with it the scheduler.
pub(crate) const PANIC: u32 = 1_000_004;
/// A suffix or chunk with this token makes the forward pass panic.
pub(crate) const CRASH: u32 = 1_000_005;

/// What goes wrong with a step, whatever is in it.
#[derive(Debug, Clone)]
pub(crate) enum Fault {
    /// The step fails.
    Fail(EngineError),
    /// The step's first row, where it has one, is not finite.
    Nan,
    /// The completion is dropped.
    Drop,
}

/// The engine.
pub(crate) struct FakeEngine {
    caps: Caps,
    /// Virtual time of a step, and of each token in it.
    pub(crate) step_cost: Duration,
    pub(crate) token_cost: Duration,
    /// Faults of the next steps; `None` for a sound one.
    pub(crate) faults: Mutex<VecDeque<Option<Fault>>>,
    /// Actors that panic, each at its next act of that number (1 is the next one).
    pub(crate) lost: Mutex<Vec<(ActorKind, u32)>>,
    /// Tokens of a step for which there is memory.
    pub(crate) memory_tokens: AtomicU32,
    busy: Arc<AtomicBool>,
    /// Steps that were submitted while another ran.
    pub(crate) overlaps: AtomicU64,
    /// Tokens of the steps that succeeded.
    pub(crate) tokens: Arc<AtomicU64>,
    /// Rows that were abandoned, by step.
    pub(crate) abandoned: Mutex<Vec<(u64, usize)>>,
}

impl FakeEngine {
    pub(crate) fn new() -> Self {
        Self {
            caps: Caps {
                name: "fake".to_owned(),
                context_tokens: 4_096,
                step_tokens_max: 512,
                rows_max: 64,
                kv_bytes_per_token: 1,
                keeps_segments: true,
                sees_images: false,
            },
            step_cost: Duration::from_millis(4),
            token_cost: Duration::from_micros(700),
            faults: Mutex::default(),
            lost: Mutex::default(),
            memory_tokens: AtomicU32::new(u32::MAX),
            busy: Arc::default(),
            overlaps: AtomicU64::new(0),
            tokens: Arc::default(),
            abandoned: Mutex::default(),
        }
    }

    pub(crate) fn with_caps(mut self, change: impl FnOnce(&mut Caps)) -> Self {
        change(&mut self.caps);
        self
    }
}

/// Accounts of tenants, in memory.
#[derive(Debug, Default)]
pub(crate) struct Accounts(pub(crate) Mutex<BTreeMap<TenantId, Work>>);

impl Account for Accounts {
    fn worked(&self, tenant: &TenantId, work: Work) {
        let mut accounts = self.0.lock().unwrap();
        let sum = accounts.entry(tenant.clone()).or_default();
        sum.reads += work.reads;
        sum.computed_tokens += work.computed_tokens;
        sum.cached_tokens += work.cached_tokens;
    }
}

impl Accounts {
    /// All tokens that were run.
    pub(crate) fn computed(&self) -> u64 {
        self.0.lock().unwrap().values().map(|work| work.computed_tokens).sum()
    }
}

/// Tokens at their positions.
#[derive(Debug, Clone)]
pub(crate) struct FakeSegment {
    tokens: Arc<[u32]>,
    start: u32,
    bytes: u64,
}

impl Segment for FakeSegment {
    fn tokens(&self) -> u32 {
        u32::try_from(self.tokens.len()).unwrap()
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn slice(&self, tokens: Range<u32>) -> Self {
        let start = self.start + tokens.start;
        let pages = (self.start + tokens.end).div_ceil(64) - start / 64;
        let all_pages = (self.start + self.tokens()).div_ceil(64) - self.start / 64;
        let bytes = self.bytes / u64::from(all_pages) * u64::from(pages);
        let tokens = self.tokens[tokens.start as usize..tokens.end as usize].into();
        Self { tokens, start, bytes }
    }
}

impl Engine for FakeEngine {
    type Segment = FakeSegment;

    fn caps(&self) -> Caps {
        self.caps.clone()
    }

    fn submit(&self, step: Step<FakeSegment>, done: Completion<FakeSegment>) {
        let has = |token| {
            step.rows.iter().any(|row| row.suffix.contains(&token))
                || step.chunks.iter().any(|chunk| chunk.tokens.contains(&token))
        };
        assert!(!has(PANIC), "the engine was told to panic");
        if self.busy.swap(true, Ordering::SeqCst) {
            self.overlaps.fetch_add(1, Ordering::SeqCst);
        }
        let fault = self.faults.lock().unwrap().pop_front().flatten();
        let elapsed = self.step_cost + self.token_cost * step.tokens();
        let (busy, tokens) = (Arc::clone(&self.busy), Arc::clone(&self.tokens));
        let result = match fault {
            Some(Fault::Drop) => None,
            Some(Fault::Fail(error)) => Some(Err(error)),
            Some(Fault::Nan) => Some(Ok(not_finite(run(&step, elapsed, &self.caps)))),
            None if has(DEATH) => Some(Err(EngineError::Dead("told to die".to_owned()))),
            None if has(CRASH) => Some(Err(EngineError::Panic("crash".to_owned()))),
            None if step.tokens() > self.memory_tokens.load(Ordering::SeqCst) => {
                Some(Err(EngineError::OutOfMemory("no room".to_owned())))
            }
            None if has(POISON) => Some(Err(EngineError::Forward("poison".to_owned()))),
            None => Some(Ok(run(&step, elapsed, &self.caps))),
        };
        let computed = u64::from(step.tokens());
        tokio::spawn(async move {
            tokio::time::sleep(elapsed).await;
            busy.store(false, Ordering::SeqCst);
            match result {
                None => drop(done),
                Some(result) => {
                    tokens.fetch_add(computed * u64::from(result.is_ok()), Ordering::SeqCst);
                    done.finish(result);
                }
            }
        });
    }

    fn abandon(&self, step: u64, row: usize) {
        self.abandoned.lock().unwrap().push((step, row));
    }

    fn rehearse(&self, actor: ActorKind) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, acts) in lost.iter_mut().filter(|(doomed, _)| *doomed == actor) {
            *acts -= 1;
        }
        let is_lost = lost.iter().any(|(_, acts)| *acts == 0);
        lost.retain(|(_, acts)| *acts > 0);
        drop(lost);
        assert!(!is_lost, "the {} was told to panic", actor.as_str());
    }
}

fn run(step: &Step<FakeSegment>, elapsed: Duration, caps: &Caps) -> StepOutcome<FakeSegment> {
    let mut chunks: Vec<FakeSegment> = Vec::new();
    for chunk in &step.chunks {
        assert!(!chunk.tokens.is_empty(), "an empty chunk");
        let start = u32::try_from(tokens_of(&chunk.path, &chunks).len()).unwrap();
        let tokens = Arc::clone(&chunk.tokens);
        let bytes = caps.segment_bytes(start, u32::try_from(tokens.len()).unwrap());
        chunks.push(FakeSegment { tokens, start, bytes });
    }
    let rows = step.rows.iter().map(|row| {
        let mut prompt = tokens_of(&row.path, &chunks);
        prompt.extend_from_slice(&row.suffix);
        if row.suffix.contains(&NAN) {
            Err(EngineError::NonFinite)
        } else {
            Ok(read(&prompt, &row.labels))
        }
    });
    let rows = rows.collect();
    StepOutcome { chunks, rows, elapsed }
}

/// The outcome with its first row, where it has one, spoilt.
fn not_finite(mut outcome: StepOutcome<FakeSegment>) -> StepOutcome<FakeSegment> {
    if let Some(first) = outcome.rows.first_mut() {
        *first = Err(EngineError::NonFinite);
    }
    outcome
}

/// All tokens of a path; every part must start where the one before it ends.
fn tokens_of(path: &[PathPart<FakeSegment>], chunks: &[FakeSegment]) -> Vec<u32> {
    let mut tokens: Vec<u32> = Vec::new();
    for part in path {
        let segment = match part {
            PathPart::Segment(segment) => segment,
            PathPart::Chunk(index) => &chunks[*index],
        };
        assert_eq!(segment.start as usize, tokens.len(), "a gap in a path");
        tokens.extend_from_slice(&segment.tokens);
    }
    tokens
}

fn read(prompt: &[u32], labels: &[u32]) -> RowOutcome {
    let hash = |label: u32| {
        let tokens = prompt.iter().chain(std::iter::once(&label));
        tokens.fold(0xcbf2_9ce4_8422_2325_u64, |hash, token| {
            (hash ^ u64::from(*token)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
        })
    };
    let logprob = |label: &u32| -((hash(*label) >> 40) as f32) / 1e6;
    let logprobs = labels.iter().map(logprob).collect();
    RowOutcome { logprobs, log_mass: Some(-0.5), greedy_is_label: true, hidden: None }
}

/// What a read of `spec` on `prefix` must give, computed alone.
pub(crate) fn expected(prefix: &Prefix, spec: &ReadSpec) -> RowOutcome {
    let parts = [&prefix.head.tokens, &prefix.state.tokens, &spec.suffix];
    let prompt: Vec<u32> = parts.into_iter().flat_map(|part| part.iter().copied()).collect();
    read(&prompt, &spec.labels)
}

/// `count` tokens that depend on `name`.
pub(crate) fn tokens(name: u32, count: u32) -> Arc<[u32]> {
    (0..count).map(|index| name * 4_099 + index % 997).collect()
}

/// A prefix with a head of 20 tokens and a state of `count`; one of the same name and more tokens has
/// grown out of it.
pub(crate) fn prefix(tenant: u32, name: u32, count: u32) -> Prefix {
    prefix_of(tenant, &[(name, count)])
}

/// A prefix with a head of 20 tokens, and a state that is a row of runs: each a name and a number of
/// tokens.
pub(crate) fn prefix_of(tenant: u32, runs: &[(u32, u32)]) -> Prefix {
    let head = SegmentSpec::head(SegmentKey::root(b"fake"), tokens(7, 20));
    let run = |(name, count): &(u32, u32)| tokens(*name, *count).to_vec();
    let state = runs.iter().flat_map(run).collect();
    Prefix { state: SegmentSpec::state(&head, &tenant.to_le_bytes(), state), head }
}

/// A read with a suffix of `count` tokens that depends on `name`.
pub(crate) fn spec(name: u32, count: u32) -> ReadSpec {
    let labels = Arc::from([1, 2, 3]);
    ReadSpec { suffix: tokens(name + 50_000, count), labels, want_hidden: false, want_mass: false }
}

/// A read whose suffix begins with a special token.
pub(crate) fn faulty(token: u32) -> ReadSpec {
    ReadSpec { suffix: Arc::from([token, 5, 6]), ..spec(0, 1) }
}

/// A decision of one stage on `prefix`.
pub(crate) fn meta(prefix: &Prefix, lane: Lane, reads: usize) -> DecisionMeta {
    DecisionMeta {
        tenant: TenantId(Arc::from("t")),
        lane,
        deadline: None,
        deadline_is_asked: false,
        prefix: prefix.clone(),
        first_reads: reads,
        first_tokens: 20 * reads as u64,
        suffix_tokens_max: 40,
    }
}

/// The time that an outcome accounts for.
pub(crate) fn accounted(outcome: &ReadOutcome) -> Duration {
    let timing = &outcome.timing;
    timing.queue_wait + timing.state_wait + timing.engine_wait + timing.engine_time
}
