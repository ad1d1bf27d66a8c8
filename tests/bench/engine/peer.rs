//! The engine as one side of a comparison: requests as JSON lines in, times as JSON lines out.
//!
//! `peers.py` keeps one such process a side and asks them in turn, so that both see the same
//! machine. What is timed is what a caller waits for, from the step's tokens to its label
//! log-probabilities.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use actors::{Chunk, Origin, PathPart, Row};
use anyhow::{Context as _, bail};
use docket::engine::kernels::Precision;
use docket::engine::{CpuEngine, CpuSegment, EngineOptions};
use docket::files::{self, ModelFiles};
use docket::models::{self, ModelRef, Progress, Store};
use serde::Deserialize;
use serde_json::json;

use crate::{ask, cpu_seconds};

/// Labels of every row: 26, as letters are.
const LABELS: std::ops::Range<u32> = 300..326;

/// Most tokens of one step.
const STEP_TOKENS: u32 = 4096;

/// One request.
#[derive(Debug, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
enum Request {
    /// Tokens of a prompt, read whole, with one row at its end.
    Prefill { tokens: u32 },
    /// A resident state, then that many questions in one step; only the questions are timed.
    Warm { state: u32, questions: u32, question_tokens: u32 },
    /// The end.
    Quit,
}

/// What the process measures.
pub(crate) struct Peer {
    engine: CpuEngine,
    vocab: u32,
}

impl Peer {
    /// Loads a model by catalogue name or path.
    pub(crate) fn load(model: &str, precision: Precision, threads: usize) -> anyhow::Result<Self> {
        let home = <docket::cli::Cli as clap::Parser>::try_parse_from(["docket", "models"])?.home();
        let reference = ModelRef::parse(model)?;
        let path = models::ensure(&Store::new(&home), &reference, false, &mut Progress::detect())?;
        let ModelFiles { config, tensors, .. } = files::open(&path)?;
        let options = EngineOptions {
            threads,
            precision,
            step_tokens_max: STEP_TOKENS,
            ..EngineOptions::default()
        };
        let engine = CpuEngine::load(&config, &*tensors, &options, &mut |_, _| {})?;
        Ok(Self { engine, vocab: u32::try_from(config.vocab)? })
    }

    /// Answers lines until the end of the input.
    pub(crate) fn serve(&self) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        for line in io::stdin().lock().lines() {
            let line = line?;
            let request: Request = serde_json::from_str(&line).with_context(|| line.clone())?;
            let (cpu, clock) = match request {
                Request::Prefill { tokens } => self.prefill(tokens)?,
                Request::Warm { state, questions, question_tokens } => {
                    self.warm(state, questions, question_tokens)?
                }
                Request::Quit => return Ok(()),
            };
            writeln!(out, "{}", json!({ "seconds": clock, "cpu_seconds": cpu }))?;
            out.flush()?;
        }
        Ok(())
    }

    fn prefill(&self, tokens: u32) -> anyhow::Result<(f64, f64)> {
        check(tokens)?;
        let rows = vec![row(Vec::new(), self.tokens(tokens, 1))];
        Ok(self.timed(Vec::new(), rows))
    }

    fn warm(&self, state: u32, questions: u32, tokens: u32) -> anyhow::Result<(f64, f64)> {
        check(state.max(questions.saturating_mul(tokens)))?;
        let chunk =
            Chunk { origin: Origin::NONE, path: Vec::new(), tokens: self.tokens(state, 2).into() };
        let made = ask(&self.engine, vec![chunk], Vec::new()).chunks.remove(0);
        let path = vec![PathPart::Segment(made)];
        let question = |number| row(path.clone(), self.tokens(tokens, 3 + number));
        Ok(self.timed(Vec::new(), (0..questions).map(question).collect()))
    }

    fn timed(&self, chunks: Vec<Chunk<CpuSegment>>, rows: Vec<Row<CpuSegment>>) -> (f64, f64) {
        let (cpu, clock) = (cpu_seconds(), Instant::now());
        ask(&self.engine, chunks, rows);
        (cpu_seconds() - cpu, clock.elapsed().as_secs_f64())
    }

    /// Fixed token ids without a pattern.
    fn tokens(&self, count: u32, seed: u32) -> Vec<u32> {
        (0..count).map(|at| (at * 7919 + seed * 104_729) % self.vocab).collect()
    }
}

fn row(path: Vec<PathPart<CpuSegment>>, tokens: Vec<u32>) -> Row<CpuSegment> {
    Row {
        path,
        suffix: tokens.into(),
        labels: LABELS.collect(),
        want_hidden: false,
        want_mass: false,
        origin: Origin::NONE,
    }
}

fn check(tokens: u32) -> anyhow::Result<()> {
    if tokens == 0 || tokens > STEP_TOKENS {
        bail!("{tokens} tokens in a step, 1 to {STEP_TOKENS} are measured");
    }
    Ok(())
}
