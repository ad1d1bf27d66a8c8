//! The fake engine: answers from a hash of the tokens, in a time that a cost model says.
//!
//! It exists for tests of everything around a model (wire, scheduling, overload, faults) where the
//! answers may be arbitrary but must depend on every token of the prompt, so that a mixed-up row is a
//! wrong answer. It is reached by `--engine fake` only and never by default.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use actors::{
    Caps, Completion, Engine, EngineError, PathPart, Row, RowOutcome, Segment, Step, StepOutcome,
};
use sha2::{Digest, Sha256};

use super::thread::EngineThread;

/// Longest prompt that the fake engine says it can hold where it is not told.
pub const CONTEXT_TOKENS: u32 = 32_768;
/// Bytes that one token is said to occupy, so that byte budgets can be tested.
const KV_BYTES_PER_TOKEN: u64 = 64;
/// Spread of the fake logits: uniform in `[-SPREAD, SPREAD]`.
const SPREAD: f64 = 2.0;
/// Logit that stands for the whole rest of the vocabulary.
const REST: f64 = -1.0;

/// What a step costs and which one goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FakeOptions {
    /// Longest prompt.
    pub context_tokens: u32,
    /// Time of each step.
    pub step: Duration,
    /// Time of each computed token.
    pub token: Duration,
    /// A fault to inject.
    pub fault: Option<Fault>,
}

impl Default for FakeOptions {
    fn default() -> Self {
        let free = Duration::ZERO;
        Self { context_tokens: CONTEXT_TOKENS, step: free, token: free, fault: None }
    }
}

/// A fault, and the number of the step (from 1) at which it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// At which step.
    pub at: u64,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The forward pass panics.
    Panic,
    /// The forward pass returns an error.
    Error,
    /// The first row's logits are not finite.
    Nan,
    /// The step takes a minute.
    Hang,
    /// There is not enough memory.
    OutOfMemory,
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
        }
    }

    /// Runs one step: waits as long as the cost model says, then answers.
    ///
    /// # Errors
    /// The injected fault, when its step has come.
    pub fn run(
        &mut self,
        step: &Step<FakeSegment>,
    ) -> Result<StepOutcome<FakeSegment>, EngineError> {
        self.steps += 1;
        let fault = self.options.fault.filter(|fault| fault.at == self.steps).map(|f| f.kind);
        let mut cost = self.options.step + self.options.token * step.tokens();
        match fault {
            Some(FaultKind::Hang) => cost += Duration::from_mins(1),
            #[expect(clippy::panic, reason = "the injected fault is a panic")]
            Some(FaultKind::Panic) => panic!("injected by --fake-fault"),
            Some(FaultKind::Error) => {
                return Err(EngineError::Forward("injected by --fake-fault".to_owned()));
            }
            Some(FaultKind::OutOfMemory) => {
                return Err(EngineError::OutOfMemory("injected by --fake-fault".to_owned()));
            }
            Some(FaultKind::Nan) | None => {}
        }
        wait(cost);
        let chunks: Vec<FakeSegment> =
            step.chunks.iter().map(|c| FakeSegment { tokens: Arc::clone(&c.tokens) }).collect();
        let mut rows: Vec<_> = step.rows.iter().map(|row| Ok(answer(row, &chunks))).collect();
        if let (Some(FaultKind::Nan), Some(first)) = (fault, rows.first_mut()) {
            *first = Err(EngineError::NonFinite);
        }
        Ok(StepOutcome { chunks, rows, elapsed: cost })
    }
}

/// The fake model behind the engine trait, on a thread of its own like a real one.
#[derive(Debug)]
pub struct FakeEngine {
    caps: Caps,
    thread: EngineThread<FakeSegment>,
}

impl FakeEngine {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(options: FakeOptions) -> std::io::Result<Self> {
        let mut model = FakeModel::new(options);
        let thread = EngineThread::spawn(move |step| model.run(step))?;
        Ok(Self { caps: FakeModel::caps(options.context_tokens), thread })
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
    use super::*;

    fn row(path: &[&[u32]], suffix: &[u32]) -> Row<FakeSegment> {
        let path = path
            .iter()
            .map(|tokens| PathPart::Segment(FakeSegment { tokens: (*tokens).into() }))
            .collect();
        Row { path, suffix: suffix.into(), labels: [7, 8].into(), want_hidden: false }
    }

    #[test]
    fn an_answer_depends_on_all_tokens_and_not_on_where_segments_end() {
        let whole = answer(&row(&[&[1, 2, 3]], &[4]), &[]);
        assert_eq!(whole, answer(&row(&[&[1], &[2, 3]], &[4]), &[]));
        assert_ne!(whole, answer(&row(&[&[1, 2, 9]], &[4]), &[]));
        assert_ne!(whole, answer(&row(&[&[1, 2, 3]], &[5]), &[]));
    }

    #[test]
    fn a_fault_happens_at_its_step_only() {
        let fault = Some(Fault { kind: FaultKind::Error, at: 2 });
        let mut model = FakeModel::new(FakeOptions { fault, ..FakeOptions::default() });
        let step = Step { id: 1, epoch: 0, chunks: Vec::new(), rows: vec![row(&[], &[1])] };
        assert!(model.run(&step).is_ok());
        assert!(matches!(model.run(&step), Err(EngineError::Forward(_))));
        assert!(model.run(&step).is_ok());
    }
}
