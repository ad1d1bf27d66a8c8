//! The fake engine: answers from a hash of the tokens, in a time that a cost model says.
//!
//! It exists for tests of everything around a model (wire, scheduling, overload, faults) where the
//! answers may be arbitrary but must depend on every token of the prompt, so that a mixed-up row is a
//! wrong answer. It is reached by `--engine fake` only and never by default.

pub mod fault;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actors::{
    ActorKind, Caps, Completion, Engine, EngineError, PathPart, Row, RowOutcome, Segment, Step,
    StepOutcome,
};
use sha2::{Digest, Sha256};

use super::thread::EngineThread;
use fault::{Fault, FaultKind};

/// Longest prompt that the fake engine says it can hold where it is not told.
pub const CONTEXT_TOKENS: u32 = 32_768;
/// Bytes that one token is said to occupy, so that byte budgets can be tested.
const KV_BYTES_PER_TOKEN: u64 = 64;
/// Spread of the fake logits: uniform in `[-SPREAD, SPREAD]`.
const SPREAD: f64 = 2.0;
/// Logit that stands for the whole rest of the vocabulary.
const REST: f64 = -1.0;
/// What an injected fault says of itself.
const INJECTED: &str = "injected by --fake-fault";

/// What a step costs and what goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub struct FakeOptions {
    /// Longest prompt.
    pub context_tokens: u32,
    /// Time of each step.
    pub step: Duration,
    /// Time of each computed token.
    pub token: Duration,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

impl Default for FakeOptions {
    fn default() -> Self {
        let free = Duration::ZERO;
        Self { context_tokens: CONTEXT_TOKENS, step: free, token: free, faults: Vec::new() }
    }
}

/// The tokens themselves, which is all that the fake engine needs of a prefix.
#[derive(Debug, Clone)]
pub struct FakeSegment {
    tokens: Arc<[u32]>,
}

impl Segment for FakeSegment {
    fn tokens(&self) -> u32 {
        u32::try_from(self.tokens.len()).unwrap_or(u32::MAX)
    }

    fn bytes(&self) -> u64 {
        self.tokens.len() as u64 * KV_BYTES_PER_TOKEN
    }

    fn slice(&self, tokens: Range<u32>) -> Self {
        Self { tokens: self.tokens[tokens.start as usize..tokens.end as usize].into() }
    }
}

/// The fake model.
#[derive(Debug)]
pub struct FakeModel {
    options: FakeOptions,
    steps: u64,
}

impl FakeModel {
    /// Makes a model with these costs and faults.
    pub fn new(options: FakeOptions) -> Self {
        Self { options, steps: 0 }
    }

    /// What it says it can do with prompts of at most `context_tokens`.
    pub fn caps(context_tokens: u32) -> Caps {
        Caps {
            name: "fake".to_owned(),
            context_tokens,
            step_tokens_max: 4096,
            rows_max: 256,
            kv_bytes_per_token: KV_BYTES_PER_TOKEN,
            keeps_segments: true,
            sees_images: false,
        }
    }

    /// Runs one step: waits as long as the cost model says, then answers.
    ///
    /// # Errors
    /// The injected fault, where one hits the step.
    pub fn run(
        &mut self,
        step: &Step<FakeSegment>,
    ) -> Result<StepOutcome<FakeSegment>, EngineError> {
        self.steps += 1;
        let hits = |fault: &&Fault| fault.hits_step(self.steps, step);
        let faults: Vec<&Fault> = self.options.faults.iter().filter(hits).collect();
        let mut elapsed = self.options.step + self.options.token * step.tokens();
        for fault in &faults {
            if let FaultKind::Hang(time) = fault.kind {
                elapsed += time;
            }
        }
        wait(elapsed);
        for fault in &faults {
            fail(fault.kind)?;
        }
        let chunks: Vec<FakeSegment> =
            step.chunks.iter().map(|c| FakeSegment { tokens: Arc::clone(&c.tokens) }).collect();
        let mut rows: Vec<_> = step.rows.iter().map(|row| Ok(answer(row, &chunks))).collect();
        for fault in faults.iter().filter(|fault| fault.kind == FaultKind::Nan) {
            for index in fault.rows_hit(step) {
                rows[index] = Err(EngineError::NonFinite);
            }
        }
        Ok(StepOutcome { chunks, rows, elapsed })
    }
}

/// Does what a fault does to a whole step.
fn fail(kind: FaultKind) -> Result<(), EngineError> {
    match kind {
        #[expect(clippy::panic, reason = "the injected fault is a panic")]
        FaultKind::Panic => panic!("{INJECTED}"),
        FaultKind::Error => Err(EngineError::Forward(INJECTED.to_owned())),
        FaultKind::OutOfMemory => Err(EngineError::OutOfMemory(INJECTED.to_owned())),
        FaultKind::Nan | FaultKind::Hang(_) | FaultKind::Actor(_) => Ok(()),
    }
}

/// The fake model behind the engine trait, on a thread of its own like a real one.
#[derive(Debug)]
pub struct FakeEngine {
    caps: Caps,
    thread: EngineThread<FakeSegment>,
    faults: Vec<Fault>,
    /// How often each actor was about to act.
    acts: [AtomicU64; 3],
}

impl FakeEngine {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(options: FakeOptions) -> std::io::Result<Self> {
        let (caps, faults) = (FakeModel::caps(options.context_tokens), options.faults.clone());
        let mut model = FakeModel::new(options);
        let thread = EngineThread::spawn(move |step| model.run(step))?;
        Ok(Self { caps, thread, faults, acts: Default::default() })
    }
}

impl Engine for FakeEngine {
    type Segment = FakeSegment;

    fn caps(&self) -> Caps {
        self.caps.clone()
    }

    fn submit(&self, step: Step<FakeSegment>, done: Completion<FakeSegment>) {
        self.thread.submit(step, done);
    }

    fn rehearse(&self, actor: ActorKind) {
        let act = self.acts[actor as usize].fetch_add(1, Ordering::Relaxed) + 1;
        let is_hit = self.faults.iter().any(|fault| fault.hits_actor(actor, act));
        assert!(!is_hit, "{INJECTED}");
    }
}

/// Blocks this (engine) thread; a channel that never speaks is the wait.
fn wait(time: Duration) {
    if !time.is_zero() {
        let _ = crossbeam_channel::never::<()>().recv_timeout(time);
    }
}

/// A reading that depends on every token of the prompt and on nothing else.
fn answer(row: &Row<FakeSegment>, chunks: &[FakeSegment]) -> RowOutcome {
    let mut prompt = Sha256::new();
    for part in &row.path {
        let segment = match part {
            PathPart::Segment(segment) => segment,
            PathPart::Chunk(index) => &chunks[*index],
        };
        update(&mut prompt, &segment.tokens);
    }
    update(&mut prompt, &row.suffix);
    let prompt = prompt.finalize();
    let logits: Vec<f64> = row.labels.iter().map(|label| logit(&prompt, *label)).collect();
    let labels: f64 = logits.iter().map(|x| x.exp()).sum();
    let total = (labels + REST.exp()).ln();
    #[expect(clippy::cast_possible_truncation, reason = "logprobs are f32 on this boundary")]
    RowOutcome {
        logprobs: logits.iter().map(|x| (x - total) as f32).collect(),
        log_mass: Some((labels.ln() - total) as f32),
        greedy_is_label: logits.iter().any(|x| *x >= REST),
        hidden: row.want_hidden.then(|| prompt.iter().map(|b| f32::from(*b) / 255.0).collect()),
    }
}

fn update(hash: &mut Sha256, tokens: &[u32]) {
    for token in tokens {
        hash.update(token.to_le_bytes());
    }
}

fn logit(prompt: &[u8], label: u32) -> f64 {
    let digest = Sha256::new().chain_update(prompt).chain_update(label.to_le_bytes()).finalize();
    let mut word = [0_u8; 4];
    word.copy_from_slice(&digest[..4]);
    (f64::from(u32::from_le_bytes(word)) / f64::from(u32::MAX)).mul_add(2.0 * SPREAD, -SPREAD)
}

#[cfg(test)]
mod tests {
    use actors::Origin;

    use super::fault::Place;
    use super::*;

    fn row(path: &[&[u32]], suffix: &[u32]) -> Row<FakeSegment> {
        let path = path
            .iter()
            .map(|tokens| PathPart::Segment(FakeSegment { tokens: (*tokens).into() }))
            .collect();
        Row {
            path,
            suffix: suffix.into(),
            labels: [7, 8].into(),
            want_hidden: false,
            want_mass: false,
            origin: Origin::NONE,
        }
    }

    #[test]
    fn an_answer_depends_on_all_tokens_and_not_on_where_segments_end() {
        let whole = answer(&row(&[&[1, 2, 3]], &[4]), &[]);
        assert_eq!(whole, answer(&row(&[&[1], &[2, 3]], &[4]), &[]));
        assert_ne!(whole, answer(&row(&[&[1, 2, 9]], &[4]), &[]));
        assert_ne!(whole, answer(&row(&[&[1, 2, 3]], &[5]), &[]));
    }

    fn step(suffixes: &[&str]) -> Step<FakeSegment> {
        let tokens = |text: &str| text.bytes().map(u32::from).collect::<Vec<_>>();
        let rows = suffixes.iter().map(|suffix| row(&[], &tokens(suffix))).collect();
        Step { id: 1, epoch: 0, chunks: Vec::new(), rows }
    }

    fn model(fault: Fault) -> FakeModel {
        FakeModel::new(FakeOptions { faults: vec![fault], ..FakeOptions::default() })
    }

    #[test]
    fn a_fault_happens_at_its_step_only() {
        let place = Place::Nth { first: 2, every: 0 };
        let mut model = model(Fault { kind: FaultKind::Error, place });
        let ends = [(); 4].map(|()| model.run(&step(&["a"])).is_ok());
        assert_eq!(ends, [true, false, true, true]);
    }

    #[test]
    fn a_row_that_is_not_finite_by_its_text_is_alone_in_it() {
        let place = Place::Row("bad".to_owned());
        let mut model = model(Fault { kind: FaultKind::Nan, place });
        let outcome = model.run(&step(&["good", "a bad one", "ba d"])).unwrap();
        let finite: Vec<bool> = outcome.rows.iter().map(Result::is_ok).collect();
        assert_eq!(finite, [true, false, true]);
    }

    #[test]
    fn a_row_by_its_text_spoils_every_step_that_it_is_in() {
        let place = Place::Row("bad".to_owned());
        let mut model = model(Fault { kind: FaultKind::OutOfMemory, place });
        for (texts, is_ok) in [(["good", "fine"], true), (["good", "bad"], false)] {
            assert_eq!(model.run(&step(&texts)).is_ok(), is_ok, "{texts:?}");
        }
    }

    #[test]
    fn an_actor_is_hit_when_its_turn_has_come() {
        let place = Place::Nth { first: 2, every: 0 };
        let faults = vec![Fault { kind: FaultKind::Actor(ActorKind::Cache), place }];
        let engine = FakeEngine::start(FakeOptions { faults, ..FakeOptions::default() }).unwrap();
        engine.rehearse(ActorKind::Scheduler);
        engine.rehearse(ActorKind::Scheduler);
        engine.rehearse(ActorKind::Cache);
        let second = std::panic::AssertUnwindSafe(|| engine.rehearse(ActorKind::Cache));
        assert!(std::panic::catch_unwind(second).is_err());
    }
}
