//! Steps made short: rows, chunks, and an engine's answer.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use actors::{
    Chunk, Completion, Engine, EngineError, Origin, PathPart, Row, RowOutcome, Step, StepOutcome,
};
use docket::engine::kernels::{Level, Precision};
use docket::engine::{CpuEngine, EngineOptions};

use crate::tiny::TinyModel;

/// Labels of every row: both ends of the vocabulary and a few between.
pub(crate) const LABELS: [u32; 6] = [300, 0, 31, 32, 155, 288];

pub(crate) fn options(threads: usize) -> EngineOptions {
    EngineOptions { threads, ..EngineOptions::default() }
}

pub(crate) fn load(model: &TinyModel, threads: usize) -> CpuEngine {
    load_in(model, Precision::F32, threads)
}

/// An engine with products of this precision.
pub(crate) fn load_in(model: &TinyModel, precision: Precision, threads: usize) -> CpuEngine {
    let options = EngineOptions { precision, ..options(threads) };
    CpuEngine::load(&model.config, model, &options, &mut |_, _| {}).unwrap()
}

pub(crate) fn row<S: Clone>(path: &[PathPart<S>], suffix: &[u32]) -> Row<S> {
    Row {
        path: path.to_vec(),
        suffix: suffix.into(),
        labels: LABELS.into(),
        want_hidden: true,
        want_mass: false,
        origin: Origin::NONE,
    }
}

pub(crate) fn chunk<S: Clone>(path: &[PathPart<S>], tokens: &[u32]) -> Chunk<S> {
    Chunk { origin: Origin::NONE, path: path.to_vec(), tokens: Arc::from(tokens) }
}

/// An engine with the kernels of this instruction set.
pub(crate) fn load_at(model: &TinyModel, precision: Precision, level: Level) -> CpuEngine {
    let options = EngineOptions { level: Some(level), precision, ..options(1) };
    CpuEngine::load(&model.config, model, &options, &mut |_, _| {}).unwrap()
}

/// Runs one step to its end.
pub(crate) fn ask<E: Engine>(
    engine: &E,
    chunks: Vec<Chunk<E::Segment>>,
    rows: Vec<Row<E::Segment>>,
) -> Result<StepOutcome<E::Segment>, EngineError> {
    let (sender, receiver) = mpsc::channel();
    let step = Step { id: 1, epoch: 1, chunks, rows };
    engine.submit(step, Completion::new(move |outcome| sender.send(outcome).unwrap()));
    receiver.recv_timeout(Duration::from_mins(10)).expect("the engine answers")
}

/// Reads one prompt by itself, all of it as suffix.
pub(crate) fn read_alone<E: Engine>(engine: &E, prompt: &[u32]) -> RowOutcome {
    ask(engine, Vec::new(), vec![row(&[], prompt)]).unwrap().rows.remove(0).unwrap()
}

/// All numbers of an outcome, as bits.
pub(crate) fn bits(outcome: &RowOutcome) -> Vec<u32> {
    let hidden = outcome.hidden.iter().flatten();
    outcome.logprobs.iter().chain(&outcome.log_mass).chain(hidden).map(|x| x.to_bits()).collect()
}
