//! Speed of the CPU engine: its matrix product, and whole steps of a model shaped like
//! SmolLM2-135M with made-up weights.
//!
//! `cargo bench --bench engine -- [products|steps] [--precision int8] [--threads 1]` prints, for 1 and 2 threads, GFLOP of the shapes
//! that matter and tokens of steps, by second of CPU time (all threads together; not disturbed by
//! other processes except through caches) and by second of the clock. Best of a few runs each.
//!
//! `cargo bench --features cuda --bench engine -- --device cuda --precision bf16,f32` compares the
//! `cuda` engine with the `cpu` engine on a real model (`--model`) instead, see `device.rs`.

#![expect(clippy::print_stdout, reason = "a bench's output")]

mod device;
mod peer;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Instant;

use actors::{Chunk, Completion, Engine, Origin, PathPart, Row, Step, StepOutcome};
use clap::Parser;
use docket::config::DeviceChoice;
use docket::engine::kernels::{Level, Operand, Precision, Product, Weights, multiply};
use docket::engine::{CpuEngine, EngineOptions};
use docket::files::{
    Activation, Architecture, DecoderConfig, FilesError, RopeConfig, RopeScaling, TensorSource,
};

/// Runs of each measurement; the best is printed.
const RUNS: usize = 5;

/// Operations of one run of products, about: the clock of CPU time is coarse.
const RUN_GFLOP: f64 = 10.0;

/// `[depth, columns]` of the products of SmolLM2-135M and of Qwen2.5-1.5B.
const SHAPES: [(usize, usize); 6] =
    [(576, 960), (576, 576), (576, 3072), (1536, 576), (1536, 8960), (8960, 1536)];

/// The shortest times of a few runs.
struct Best {
    cpu: f64,
    clock: f64,
}

impl Best {
    fn of(mut run: impl FnMut()) -> Self {
        let mut best = Self { cpu: f64::INFINITY, clock: f64::INFINITY };
        for _ in 0..RUNS {
            let (cpu, clock) = (cpu_seconds(), Instant::now());
            run();
            best.cpu = best.cpu.min(cpu_seconds() - cpu);
            best.clock = best.clock.min(clock.elapsed().as_secs_f64());
        }
        best
    }
}

/// Time that all threads of this process have run.
fn cpu_seconds() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    let nanoseconds = stats.filter_map(|stat| stat.split(' ').next()?.parse::<f64>().ok());
    nanoseconds.sum::<f64>() / 1e9
}

/// Small numbers without a pattern that a cache or predictor could use.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    (0..count).map(|_| next()).collect()
}

fn products(pool: &rayon::ThreadPool, precision: Precision) {
    for level in Level::all() {
        for (depth, columns) in SHAPES {
            let mut weights = Weights::zeros(precision, columns, depth);
            weights.pack(0, &numbers(columns * depth, 1));
            for rows in [1, 8, 60, 512] {
                product(pool, (precision, level), &weights, rows);
            }
        }
    }
}

fn product(
    pool: &rayon::ThreadPool,
    (precision, level): (Precision, Level),
    weights: &Weights,
    rows: usize,
) {
    let (depth, columns) = (weights.depth(), weights.columns());
    let (mut left, mut out) = (Operand::new(precision), Product::default());
    let values = numbers(rows * depth, 2);
    left.fill(level, (rows, depth), |first, rows| {
        rows.copy_from_slice(&values[first * depth..][..rows.len()]);
    });
    let work = 2.0 * (rows * depth * columns) as f64 / 1e9;
    let repeats = whole(RUN_GFLOP / work);
    let best = pool.install(|| {
        Best::of(|| (0..repeats).for_each(|_| multiply(level, &left, weights, None, &mut out)))
    });
    let work = f64::from(repeats) * work;
    println!(
        "{precision} {} {} threads, {rows} rows {depth} x {columns}: {:.1} GFLOP/CPU s, {:.1} GFLOP/s",
        level.name(),
        pool.current_num_threads(),
        work / best.cpu,
        work / best.clock,
    );
}

/// To the next whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small and positive")]
fn whole(repeats: f64) -> u32 {
    repeats.ceil() as u32
}

#[derive(Debug)]
struct MadeUp(DecoderConfig);

impl MadeUp {
    fn dimensions(&self, name: &str) -> Option<Vec<usize>> {
        let config = &self.0;
        let (hidden, heads) = (config.hidden, config.heads * config.head_dim);
        let part = name.rsplit('.').nth(1)?;
        Some(match part {
            "embed_tokens" => vec![config.vocab, hidden],
            "q_proj" => vec![heads, hidden],
            "k_proj" | "v_proj" => vec![config.kv_heads * config.head_dim, hidden],
            "o_proj" => vec![hidden, heads],
            "gate_proj" | "up_proj" => vec![config.intermediate, hidden],
            "down_proj" => vec![hidden, config.intermediate],
            _ => vec![hidden],
        })
    }
}

impl TensorSource for MadeUp {
    fn shape(&self, name: &str) -> Result<Vec<usize>, FilesError> {
        let path = PathBuf::from("made up");
        self.dimensions(name).ok_or(FilesError::MissingTensor { path, name: name.into() })
    }

    fn read_rows(
        &self,
        name: &str,
        rows: Range<usize>,
        values: &mut Vec<f32>,
    ) -> Result<(), FilesError> {
        let shape = self.shape(name)?;
        let scale = 1.0 / (shape[shape.len() - 1] as f32).sqrt();
        let seed: u32 = name.bytes().map(u32::from).sum();
        for row in rows {
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            let numbers = numbers(shape[1..].iter().product(), seed ^ row.rotate_right(16));
            values.extend(numbers.iter().map(|value| value * scale));
        }
        Ok(())
    }
}

fn smollm2_135m() -> DecoderConfig {
    DecoderConfig {
        architecture: Architecture::Llama,
        hidden: 576,
        intermediate: 1536,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        vocab: 49_152,
        context: 8192,
        norm_eps: 1e-5,
        norm_plus_one: false,
        qkv_bias: false,
        qk_norm: false,
        post_norms: false,
        embedding_scale: 1.0,
        attention_scale: 0.125,
        activation: Activation::Silu,
        tied: true,
        rope: RopeConfig { theta: 100_000.0, scaling: RopeScaling::None },
        rope_local: None,
        sliding_window: None,
        sliding_pattern: 1,
    }
}

#[expect(clippy::expect_used, reason = "a bench may stop")]
fn ask<E: Engine>(
    engine: &E,
    chunks: Vec<Chunk<E::Segment>>,
    rows: Vec<Row<E::Segment>>,
) -> StepOutcome<E::Segment> {
    let (sender, receiver) = mpsc::channel();
    let step = Step { id: 1, epoch: 1, chunks, rows };
    let report = move |outcome| sender.send(outcome).expect("the bench waits");
    engine.submit(step, Completion::new(report));
    receiver.recv().expect("the engine answers").expect("the step runs")
}

fn tokens(count: u32) -> Vec<u32> {
    (0..count).map(|index| index * 7919 % 49_152).collect()
}

#[expect(clippy::expect_used, reason = "a bench may stop")]
fn steps(precision: Precision, threads: usize) {
    let config = smollm2_135m();
    let options = EngineOptions { threads, precision, ..EngineOptions::default() };
    let started = Instant::now();
    let made_up = MadeUp(config.clone());
    let engine = CpuEngine::load(&config, &made_up, &options, &mut |_, _| {}).expect("loads");
    let (loaded, memory) = (started.elapsed(), engine.memory());
    println!(
        "{precision} {threads} threads: made and loaded in {loaded:.2?}, {memory:?}{}",
        resident()
    );

    let mut path = Vec::new();
    for length in [64, 512, 1024] {
        let chunk =
            || Chunk { origin: Origin::NONE, path: Vec::new(), tokens: tokens(length).into() };
        let run = || {
            let made = ask(&engine, vec![chunk()], Vec::new()).chunks.remove(0);
            path = vec![PathPart::Segment(made)];
        };
        report(
            &format!("{precision} {threads} threads: chunk of {length}"),
            f64::from(length),
            &Best::of(run),
        );
    }
    for (count, length) in [(1, 1), (1, 60), (8, 4), (8, 16), (8, 60)] {
        let labels = (300..326).collect();
        let row = Row {
            path: path.clone(),
            suffix: tokens(length).into(),
            labels,
            want_hidden: false,
            want_mass: false,
            origin: Origin::NONE,
        };
        let run = || drop(ask(&engine, Vec::new(), vec![row.clone(); count]));
        let name = format!("{precision} {threads} threads: {count} rows of {length} on 1024");
        report(&name, (count * length as usize) as f64, &Best::of(run));
    }
}

fn report(name: &str, tokens: f64, best: &Best) {
    let (cpu, clock) = (tokens / best.cpu, tokens / best.clock);
    println!("{name}: {cpu:.0} tokens/CPU s, {clock:.0} tokens/s, {:.1} ms of CPU", best.cpu * 1e3);
}

/// Memory of the process, where the system tells it.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines =
        status.lines().filter(|line| line.starts_with("RssAnon") || line.starts_with("VmHWM"));
    lines.fold(String::new(), |all, line| all + ", " + &line.replace(['\t', ' '], ""))
}

/// What to measure.
#[derive(Debug, Parser)]
struct Arguments {
    /// `products` or `steps` [default: both]
    what: Option<String>,
    /// Precisions to measure
    #[arg(long, value_delimiter = ',', default_value = "f32,bf16,int8", value_parser = precision)]
    precision: Vec<Precision>,
    /// Numbers of threads
    #[arg(long, value_delimiter = ',', default_value = "1,2")]
    threads: Vec<usize>,
    /// Catalogue name or path of the model of `--serve-lines` and `--device`
    #[arg(long, default_value = "smollm2:135m")]
    model: String,
    /// Answer requests of peers.py on standard input
    #[arg(long)]
    serve_lines: bool,
    /// Compare the cuda engine on this device with the cpu engine; `cpu` takes the drift there
    #[arg(long)]
    device: Option<DeviceChoice>,
    /// Reads of the comparison
    #[arg(long, default_value_t = 200)]
    reads: usize,
    /// What `cargo bench` passes to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn precision(name: &str) -> Result<Precision, String> {
    let known = Precision::ALL.into_iter().find(|precision| precision.name() == name);
    known.ok_or_else(|| format!("{name:?} is none of f32, bf16, int8"))
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    if arguments.serve_lines {
        let (precision, threads) = (arguments.precision[0], arguments.threads[0]);
        return peer::Peer::load(&arguments.model, precision, threads)?.serve();
    }
    if let Some(device) = arguments.device {
        for precision in &arguments.precision {
            if *precision == Precision::Int8 {
                println!("int8 is not computed on {device}");
                continue;
            }
            let Arguments { model, reads, .. } = &arguments;
            let (reads, threads) = (*reads, arguments.threads.iter().copied().max().unwrap_or(1));
            device::Comparison { model, device, precision: *precision, threads, reads }.run()?;
        }
        return Ok(());
    }
    let is_wanted = |name: &str| arguments.what.as_deref().is_none_or(|wanted| wanted == name);
    for threads in &arguments.threads {
        if is_wanted("products") {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(*threads).build()?;
            arguments.precision.iter().for_each(|precision| products(&pool, *precision));
        }
        if is_wanted("steps") {
            arguments.precision.iter().for_each(|precision| steps(*precision, *threads));
        }
    }
    Ok(())
}
