//! Real models against llama.cpp: natural decisions, prompts by our own prompter.
//!
//! Goal: on weights that people use, the `cpu` engine says what llama.cpp says. Method: llama.cpp's
//! label log-probabilities are kept as data (README.md), once for the file as shipped and once for
//! the same weights stored as F32. The second is the strict comparison: llama.cpp multiplies
//! quantised weights with activations rounded to 8 bits, which moves its own numbers by more than
//! any fault that a test should let through.

use std::path::PathBuf;
use std::sync::Arc;

use actors::{Chunk, Origin, PathPart, ReadSpec, Row};
use docket::dialect::{Dialect, RequestLimits};
use docket::engine::kernels::Precision;
use docket::engine::{CpuEngine, CpuSegment, EngineOptions};
use docket::files::{ModelFiles, open};
use docket::json::{Json, Limits};
use docket::models::{ModelRef, Store, Thoroughness};
use docket::prompt::Prompter;
use docket::prompt::layout::{DEFAULT_PROFILE, Profile, named};
use docket::prompt::tokens::model::ModelTokenizer;
use docket::prompt::wording::first_order;
use docket::question::Decision;
use serde::{Deserialize, Serialize};

use crate::steps::{ask, chunk, options};

/// Median and largest difference on the same weights as F32, nearly twice what was measured
/// (README.md). A rope base that is 1 % off moves the smaller model's median further.
const F32_MEDIAN: f64 = 0.002;
const F32_MAX: f64 = 0.015;
/// Median and largest difference on the file as shipped (issue 2). Where llama.cpp's rounding of
/// activations alone moves the median further, that takes the median's place.
const SHIPPED_MEDIAN: f64 = 0.05;
const SHIPPED_MAX: f64 = 0.4;
/// Median difference on the file as shipped where we round too: both sides' rounding together.
const ROUNDED_MEDIAN: f64 = 0.08;
/// Log-probabilities further apart than this are told apart by any sound engine (issue 2).
const CLEAR: f64 = 0.4;
/// Sizes of chunks in which a prefix is read to the same bits (issue 3).
const CHUNKS_TOKENS: [usize; 4] = [32, 100, 192, 1024];
/// Reads of the recorded data, as many as issue 2 asks for.
const READS: usize = 20;

/// A model of the catalogue.
struct Model {
    name: &'static str,
    /// Its name in the files of [`the_prompts_are_written_where_asked`].
    file: &'static str,
    /// What llama.cpp said.
    data: &'static str,
}

const SMOLLM2: Model =
    Model { name: "smollm2:135m", file: "smollm2", data: include_str!("data/smollm2.json") };
const QWEN: Model =
    Model { name: "qwen2.5-coder:1.5b", file: "qwen", data: include_str!("data/qwen.json") };

/// A prompt and its labels.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Read {
    prompt: Vec<u32>,
    labels: Vec<u32>,
}

/// A read with llama.cpp's log-probabilities of its labels.
#[derive(Debug, Deserialize)]
struct Recorded {
    #[serde(flatten)]
    read: Read,
    /// From the file as it is shipped.
    shipped: Vec<f64>,
    /// From the same weights as F32.
    f32: Vec<f64>,
}

/// A decision's tokens: what its reads share, and the reads.
struct Rendered {
    prefix: Vec<u32>,
    reads: Vec<ReadSpec>,
}

impl Rendered {
    fn whole(&self) -> impl Iterator<Item = Read> {
        self.reads.iter().map(|read| Read {
            prompt: [&self.prefix, &read.suffix[..]].concat(),
            labels: read.labels.to_vec(),
        })
    }

    /// Label log-probabilities of all reads, run as a server runs them: the prefix once.
    fn run(&self, engine: &CpuEngine) -> Vec<Vec<f64>> {
        self.read(engine, &[PathPart::Chunk(0)], vec![chunk(&[], &self.prefix)])
    }

    /// The same bits, but for a fault: the prefix in chunks of so many tokens, each a step.
    fn run_cut(&self, engine: &CpuEngine, chunk_tokens: usize) -> Vec<Vec<f64>> {
        let mut path = Vec::new();
        for tokens in self.prefix.chunks(chunk_tokens) {
            let outcome = ask(engine, vec![chunk(&path, tokens)], Vec::new()).unwrap();
            path.extend(outcome.chunks.into_iter().map(PathPart::Segment));
        }
        self.read(engine, &path, Vec::new())
    }

    fn read(
        &self,
        engine: &CpuEngine,
        path: &[PathPart<CpuSegment>],
        chunks: Vec<Chunk<CpuSegment>>,
    ) -> Vec<Vec<f64>> {
        let row = |read: &ReadSpec| Row::<CpuSegment> {
            path: path.to_vec(),
            suffix: Arc::clone(&read.suffix),
            labels: Arc::clone(&read.labels),
            want_hidden: false,
            want_mass: false,
            origin: Origin::NONE,
        };
        let rows = self.reads.iter().map(row).collect();
        let outcome = ask(engine, chunks, rows).unwrap();
        let logprobs = outcome.rows.into_iter().map(|row| row.unwrap().logprobs);
        logprobs.map(|row| row.into_iter().map(f64::from).collect()).collect()
    }
}

impl Model {
    /// Where it is installed; `None`, after saying so, where it is not and need not be.
    fn path(&self) -> Option<PathBuf> {
        let folder = |name| variable(name).map(PathBuf::from);
        let cache = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
        let home = folder("DOCKET_HOME").or_else(|| Some(cache()?.join("docket")))?;
        let slug = ModelRef::parse(self.name).unwrap().slug();
        let found = Store::new(&home).find(&slug, Thoroughness::Quick).unwrap();
        assert!(found.is_some() || !self.is_required(), "{} is required, but absent", self.name);
        if found.is_none() {
            say_skipped(&format!("no model {}", self.name));
        }
        found
    }

    fn is_required(&self) -> bool {
        let required = variable("DOCKET_TEST_REQUIRE_MODEL").unwrap_or_default();
        required.split(',').any(|name| name == self.name)
    }
}

#[expect(clippy::disallowed_methods, reason = "tests may read where the models are")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The request bodies of `data/decisions.json`.
fn decisions() -> Vec<Decision> {
    let text = include_bytes!("data/decisions.json");
    let Json::Array(bodies) = Json::parse(text, Limits::default()).unwrap() else {
        panic!("the decisions are no list")
    };
    let limits = RequestLimits::default();
    let decode = |body| Dialect::Systemone.decision(body, &limits).unwrap().request;
    bodies.into_iter().map(decode).collect()
}

fn render(files: &ModelFiles) -> Vec<Rendered> {
    let layout = &named::BARE;
    let profile = Profile { layout, ..DEFAULT_PROFILE };
    let tokenizer = Arc::new(ModelTokenizer::open(files).unwrap());
    let prompter = Prompter::new(tokenizer, &files.prompt, profile, &files.fingerprint).unwrap();
    let render = |decision: &Decision| {
        let prefix = prompter.prefix(&decision.state, b"").prefix;
        let prefix = [&prefix.head.tokens[..], &prefix.state.tokens].concat();
        let questions = decision.questions.iter();
        let reads = questions.map(|q| prompter.suffix(q, &first_order(layout, &q.kind))).collect();
        Rendered { prefix, reads }
    };
    decisions().iter().map(render).collect()
}

/// How two sets of label log-probabilities differ.
#[derive(Debug)]
struct Difference {
    median: f64,
    largest: f64,
    /// Reads with another top label, among those whose expected top two are further apart than
    /// [`CLEAR`].
    other_tops: usize,
}

impl Difference {
    fn between(found: &[Vec<f64>], expected: &[Vec<f64>]) -> Self {
        let mut all: Vec<f64> = found
            .iter()
            .zip(expected)
            .flat_map(|(found, expected)| {
                assert_eq!(found.len(), expected.len());
                found.iter().zip(expected).map(|(found, expected)| (found - expected).abs())
            })
            .collect();
        all.sort_by(f64::total_cmp);
        let other_top = |(found, expected): &(&Vec<f64>, &Vec<f64>)| {
            let (expected, found) = (descending(expected), descending(found));
            expected[0].1 - expected[1].1 > CLEAR && expected[0].0 != found[0].0
        };
        Self {
            median: f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2]),
            largest: all[all.len() - 1],
            other_tops: found.iter().zip(expected).filter(other_top).count(),
        }
    }

    fn assert_within(&self, median: f64, largest: f64, what: &str) {
        println!("{what}: {self:.4?}");
        let near = self.median <= median && self.largest <= largest && self.other_tops == 0;
        assert!(near, "{what}: {self:?}, at most {median} and {largest}");
    }
}

/// Labels with their log-probabilities, the most probable first.
fn descending(logprobs: &[f64]) -> Vec<(usize, f64)> {
    let mut labels: Vec<_> = logprobs.iter().copied().enumerate().collect();
    labels.sort_by(|a, b| b.1.total_cmp(&a.1));
    labels
}

fn agrees_with_llama_cpp(model: &Model) {
    let Some(path) = model.path() else { return };
    let files = open(&path).unwrap();
    let rendered = render(&files);
    let recorded: Vec<Recorded> = serde_json::from_str(model.data).unwrap();
    assert_eq!(recorded.len(), READS);
    let reads = rendered.iter().flat_map(Rendered::whole);
    for (index, (read, recorded)) in reads.zip(&recorded).enumerate() {
        assert_eq!(read, recorded.read, "prompt {index} of {} is another now", model.name);
    }
    let found = |precision| {
        let engine = load(&files, precision);
        assert_same_bits_in_chunks(&engine, &rendered);
        rendered.iter().flat_map(|each| each.run(&engine)).collect::<Vec<_>>()
    };
    assert_near(model.name, &found(Precision::F32), &recorded);
    for precision in [Precision::Bf16, Precision::Int8] {
        let shipped: Vec<_> = recorded.iter().map(|each| each.shipped.clone()).collect();
        let what = format!("{}, as shipped, {precision}", model.name);
        let difference = Difference::between(&found(precision), &shipped);
        difference.assert_within(ROUNDED_MEDIAN, SHIPPED_MAX, &what);
    }
}

/// Reads the decision with the longest prefix in chunks of each size.
fn assert_same_bits_in_chunks(engine: &CpuEngine, rendered: &[Rendered]) {
    let bits = |logprobs: Vec<Vec<f64>>| logprobs.concat().into_iter().map(f64::to_bits).collect();
    let longest = rendered.iter().max_by_key(|each| each.prefix.len()).unwrap();
    let whole: Vec<u64> = bits(longest.run(engine));
    for chunk_tokens in CHUNKS_TOKENS {
        let cut: Vec<u64> = bits(longest.run_cut(engine, chunk_tokens));
        assert_eq!(cut, whole, "in chunks of {chunk_tokens} tokens");
    }
}

fn load(files: &ModelFiles, precision: Precision) -> CpuEngine {
    let threads = std::thread::available_parallelism().unwrap().get();
    let options = EngineOptions { precision, ..options(threads) };
    CpuEngine::load(&files.config, &*files.tensors, &options, &mut |_, _| {}).unwrap()
}

fn assert_near(name: &str, found: &[Vec<f64>], recorded: &[Recorded]) {
    let (shipped, f32): (Vec<_>, Vec<_>) =
        recorded.iter().map(|each| (each.shipped.clone(), each.f32.clone())).unzip();
    let rounding = Difference::between(&shipped, &f32);
    println!("{name}, llama.cpp's two files from each other: {rounding:.4?}");
    Difference::between(found, &f32).assert_within(F32_MEDIAN, F32_MAX, &format!("{name}, F32"));
    let median = SHIPPED_MEDIAN.max(rounding.median + F32_MEDIAN);
    Difference::between(found, &shipped).assert_within(
        median,
        SHIPPED_MAX,
        &format!("{name}, as shipped"),
    );
}

#[test]
fn smollm2_agrees_with_llama_cpp() {
    agrees_with_llama_cpp(&SMOLLM2);
}

/// Takes 7 GB of memory and minutes, so that its being installed is not enough.
#[test]
fn the_default_model_agrees_with_llama_cpp_where_required() {
    if QWEN.is_required() {
        agrees_with_llama_cpp(&QWEN);
    } else {
        say_skipped(&format!("{} is not in DOCKET_TEST_REQUIRE_MODEL", QWEN.name));
    }
}

/// Writes the prompts of installed models into `DOCKET_TEST_WRITE`, for `llama_logprobs.py`.
#[test]
fn the_prompts_are_written_where_asked() {
    let Some(folder) = variable("DOCKET_TEST_WRITE") else { return };
    for model in [SMOLLM2, QWEN] {
        let Some(path) = model.path() else { continue };
        let reads: Vec<Read> =
            render(&open(&path).unwrap()).iter().flat_map(Rendered::whole).collect();
        let path = PathBuf::from(&folder).join(format!("{}-prompts.json", model.file));
        std::fs::write(path, serde_json::to_string(&reads).unwrap()).unwrap();
    }
}

/// Says why a test did not run, past the capture of a passing test's output.
fn say_skipped(why: &str) {
    use std::io::Write as _;

    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}
