//! The `cuda` engine beside the `cpu` engine, on a real model: how far its numbers drift, and what
//! merged steps are worth on it.
//!
//! Drift is measured on decisions of both kinds of questions, each read merged with the others on
//! its state and each alone, against the `cpu` engine in `f32`. Speed is that of questions on one
//! resident state, all in one step and one by one; of questions on several states in one step; and
//! of states being read.

use std::time::{Duration, Instant};

use actors::{Chunk, Engine, Origin, PathPart, Prefix, ReadSpec, Row, RowOutcome, Segment};
use anyhow::Context as _;
use docket::config::DeviceChoice;
use docket::engine::kernels::Precision;
use docket::engine::{CpuEngine, EngineOptions, TensorDevice, TensorEngine};
use docket::files::{self, ModelFiles};
use docket::json::Json;
use docket::models::{self, ModelRef, Progress, Store};
use docket::prompt::Prompter;
use docket::prompt::layout;
use docket::prompt::tokens::model::ModelTokenizer;
use docket::question::{ChoiceOption, Kind, Question, Shown};

use crate::{RUNS, ask};

/// Questions on each state of the drift.
const QUESTIONS: usize = 10;
/// Most tokens and rows of one step.
const STEP_TOKENS: u32 = 8192;
const ROWS: u32 = 256;

/// What is compared.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    /// Catalogue name or path.
    pub(crate) model: &'a str,
    /// The CUDA device; `cpu` runs the same code on the CPU, slowly, and measures drift only.
    pub(crate) device: DeviceChoice,
    pub(crate) precision: Precision,
    /// Of the `cpu` engine.
    pub(crate) threads: usize,
    /// Reads of the drift.
    pub(crate) reads: usize,
}

/// A state's prefix and the reads on it.
struct Case {
    prefix: Prefix,
    reads: Vec<ReadSpec>,
}

/// How far readings are from each other.
#[derive(Debug, Default)]
struct Drift {
    reads: usize,
    same_top: usize,
    /// Of label probabilities, normalised over the labels.
    sum: f64,
    labels: usize,
    largest: f64,
}

impl Comparison<'_> {
    /// Measures and prints.
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let home = <docket::cli::Cli as clap::Parser>::try_parse_from(["docket", "models"])?.home();
        let reference = ModelRef::parse(self.model)?;
        let path = models::ensure(&Store::new(&home), &reference, false, &mut Progress::detect())?;
        let files = files::open(&path)?;
        let cases = cases(&files, &reference.served_name(), self.reads)?;
        let device = match self.device {
            DeviceChoice::Cpu => TensorDevice::cpu(),
            DeviceChoice::Cuda(number) => TensorDevice::cuda(number as usize)?,
        };
        let ModelFiles { config, tensors, .. } = &files;
        let options = EngineOptions {
            threads: self.threads,
            step_tokens_max: STEP_TOKENS,
            rows_max: ROWS,
            ..EngineOptions::default()
        };
        let started = Instant::now();
        let ours = EngineOptions { precision: self.precision, ..options.clone() };
        let engine = TensorEngine::load(config, &**tensors, &device, &ours, &mut |_, _| {})?;
        println!(
            "{} in {} on {:?}: loaded in {:.2?}, {:?}",
            self.model,
            self.precision,
            device.facts(),
            started.elapsed(),
            engine.memory()
        );
        if self.device == DeviceChoice::Cpu {
            println!("no speeds: the CPU is not what this engine is for");
        } else {
            speed(&engine, u32::try_from(config.vocab)?);
        }
        let oracle = CpuEngine::load(config, &**tensors, &options, &mut |_, _| {})?;
        drift(&engine, &oracle, &cases)
    }
}

/// Fixed decisions: short reports, asked ten things each.
fn cases(files: &ModelFiles, name: &str, reads: usize) -> anyhow::Result<Vec<Case>> {
    let profile = layout::profile_for(name, Some(files.config.architecture));
    let tokenizer = std::sync::Arc::new(ModelTokenizer::open(files)?);
    let prompter = Prompter::new(tokenizer, &files.prompt, profile, &files.fingerprint)?;
    let case = |number: usize| {
        let prefix = prompter.prefix(&Json::String(report(number)), &[]).prefix;
        let read = |asked: usize| {
            let question = question(number + asked, asked);
            let options = (0..question.kind.options()).collect();
            prompter.suffix(&question, &Shown { options })
        };
        let asked = QUESTIONS.min(reads - number * QUESTIONS);
        Case { prefix, reads: (0..asked).map(read).collect() }
    };
    Ok((0..reads.div_ceil(QUESTIONS)).map(case).collect())
}

const PLACES: [&str; 5] =
    ["the Leeds office", "hall 3", "the web shop", "gate B7", "the night train"];
const THINGS: [&str; 7] = [
    "the card reader",
    "a parcel",
    "the invoice",
    "my account",
    "the heating",
    "a seat",
    "the app",
];
const EVENTS: [&str; 4] = [
    "has not worked since Monday",
    "was charged twice",
    "arrived two days early and in perfect order",
    "keeps asking for a password that I never set",
];

/// Some sentences that differ from report to report.
fn report(number: usize) -> String {
    let sentence = |at: usize| {
        let place = PLACES[(number + at) % PLACES.len()];
        let thing = THINGS[(number * 3 + at) % THINGS.len()];
        let event = EVENTS[(number / 2 + at * 3) % EVENTS.len()];
        format!("At {place}, {thing} {event} (note {}). ", number * 17 + at)
    };
    (0..4 + number % 9).map(sentence).collect()
}

/// Yes-or-no questions and choices in turn.
fn question(seed: usize, asked: usize) -> Question {
    let thing = THINGS[seed % THINGS.len()];
    let kind = if asked.is_multiple_of(2) {
        Kind::Noul { when_true: None, when_false: None }
    } else {
        let option = |key: &&str| ChoiceOption { key: (*key).to_owned(), description: None };
        Kind::Choice { options: PLACES[..2 + asked / 2 % 4].iter().map(option).collect() }
    };
    let instructions = match &kind {
        Kind::Noul { .. } => format!("Is the writer unhappy about {thing}?"),
        Kind::Choice { .. } | Kind::Score { .. } => format!("Where did it happen to {thing}?"),
    };
    let instructions = Some(Json::String(instructions));
    Question::new(String::new(), kind, instructions)
}

fn rows<S: Segment>(path: &[PathPart<S>], reads: &[ReadSpec]) -> Vec<Row<S>> {
    let row = |read: &ReadSpec| Row {
        path: path.to_vec(),
        suffix: std::sync::Arc::clone(&read.suffix),
        labels: std::sync::Arc::clone(&read.labels),
        want_hidden: false,
        want_mass: false,
        origin: Origin::NONE,
    };
    reads.iter().map(row).collect()
}

/// The state once, then its reads: all in one step, and one by one.
fn read<E: Engine>(engine: &E, case: &Case) -> anyhow::Result<(Vec<RowOutcome>, Vec<RowOutcome>)> {
    let tokens = [&*case.prefix.head.tokens, &*case.prefix.state.tokens].concat();
    let chunk = Chunk { origin: Origin::NONE, path: Vec::new(), tokens: tokens.into() };
    let path: Vec<_> =
        ask(engine, vec![chunk], Vec::new()).chunks.into_iter().map(PathPart::Segment).collect();
    let merged = ask(engine, Vec::new(), rows(&path, &case.reads)).rows;
    let alone = rows(&path, &case.reads).into_iter();
    let alone = alone.flat_map(|row| ask(engine, Vec::new(), vec![row]).rows);
    let merged = merged.into_iter().collect::<Result<_, _>>()?;
    Ok((merged, alone.collect::<Result<_, _>>().context("a read failed")?))
}

fn drift(engine: &TensorEngine, oracle: &CpuEngine, cases: &[Case]) -> anyhow::Result<()> {
    let (mut merged, mut alone, mut company) =
        (Drift::default(), Drift::default(), Drift::default());
    for case in cases {
        let (ours, ours_alone) = read(engine, case)?;
        let (theirs, _) = read(oracle, case)?;
        for ((ours, ours_alone), theirs) in ours.iter().zip(&ours_alone).zip(&theirs) {
            merged.add(ours, theirs);
            alone.add(ours_alone, theirs);
            company.add(ours, ours_alone);
        }
    }
    merged.print("merged, from the cpu engine in f32");
    alone.print("alone, from the cpu engine in f32");
    company.print("merged, from itself alone");
    Ok(())
}

impl Drift {
    fn add(&mut self, ours: &RowOutcome, theirs: &RowOutcome) {
        let (ours, theirs) = (softmax(&ours.logprobs), softmax(&theirs.logprobs));
        let top =
            |weights: &[f64]| (0..weights.len()).max_by(|a, b| weights[*a].total_cmp(&weights[*b]));
        self.reads += 1;
        self.same_top += usize::from(top(&ours) == top(&theirs));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let difference = (ours - theirs).abs();
            self.sum += difference;
            self.labels += 1;
            self.largest = self.largest.max(difference);
        }
    }

    fn print(&self, what: &str) {
        let mean = self.sum / self.labels.max(1) as f64;
        println!(
            "{} reads {what}: largest |dp| {:.5}, mean |dp| {mean:.6}, same answer {}",
            self.reads, self.largest, self.same_top
        );
    }
}

fn softmax(logprobs: &[f32]) -> Vec<f64> {
    let weights: Vec<f64> = logprobs.iter().map(|logprob| f64::from(*logprob).exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| weight / sum).collect()
}

/// Steps of the sizes that matter, best of a few.
fn speed(engine: &TensorEngine, vocab: u32) {
    let tokens = |count: u32, seed: u32| -> Vec<u32> {
        (0..count).map(|at| (at * 7919 + seed * 104_729) % vocab).collect()
    };
    let held = |count: u32, seed: u32| {
        let chunk =
            Chunk { origin: Origin::NONE, path: Vec::new(), tokens: tokens(count, seed).into() };
        vec![PathPart::Segment(ask(engine, vec![chunk], Vec::new()).chunks.remove(0))]
    };
    for count in [64, 512, 2048] {
        let time = best(|| drop(held(count, 1)));
        println!(
            "a state of {count}: {:.0} tokens/s, {time:.2?}",
            f64::from(count) / time.as_secs_f64()
        );
    }
    let row = |path: &[PathPart<_>], seed: u32| {
        let labels = (300..326).collect();
        Row {
            path: path.to_vec(),
            suffix: tokens(60, seed).into(),
            labels,
            want_hidden: false,
            want_mass: false,
            origin: Origin::NONE,
        }
    };
    let state = held(500, 2);
    for count in [1, 8, 32, 64] {
        let rows: Vec<_> = (0..count).map(|seed| row(&state, 3 + seed)).collect();
        let merged = best(|| drop(ask(engine, Vec::new(), rows.clone())));
        let single =
            best(|| rows.iter().for_each(|row| drop(ask(engine, Vec::new(), vec![row.clone()]))));
        let rate = |time: Duration| f64::from(count) / time.as_secs_f64();
        println!(
            "{count} reads of 60 on one state of 500: {:.0} reads/s in one step, {:.0} one by one",
            rate(merged),
            rate(single)
        );
    }
    let states: Vec<_> = (0..16).map(|seed| held(500, 80 + seed)).collect();
    let rows: Vec<_> =
        (0..64).map(|seed| row(&states[seed as usize % states.len()], seed)).collect();
    let time = best(|| drop(ask(engine, Vec::new(), rows.clone())));
    println!(
        "64 reads of 60 on 16 states of 500 in one step: {:.0} reads/s",
        64.0 / time.as_secs_f64()
    );
}

/// The shortest of a few runs; the first one, which loads kernels, is not counted.
fn best(mut run: impl FnMut()) -> Duration {
    run();
    let time = |_| {
        let started = Instant::now();
        run();
        started.elapsed()
    };
    (0..RUNS).map(time).min().unwrap_or_default()
}
