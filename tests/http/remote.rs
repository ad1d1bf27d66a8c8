//! The remote engine against stubs of the three servers, which take exactly the fields that docket is to
//! send and answer from a distribution that the tests know.
//!
//! Goal: the same distributions as the server's own, its cache used, nothing sent twice that may have
//! been executed, and an end for every step, whatever happens on the wire.

mod answers;
mod failing;
mod reading;
mod starting;
mod stub;
mod truth;

use std::sync::mpsc;
use std::time::Duration;

use actors::{
    Chunk, Completion, Engine as _, EngineError, Origin, PathPart, Row, RowOutcome, SegmentKey,
    Step, StepOutcome,
};
use docket::engine::remote::{
    Protocol, RemoteEngine, RemoteError, RemoteOptions, RemoteSegment, Target,
};
use tokio::runtime::{Builder, Runtime};

use stub::{Nature, Stub};
use truth::logprobs;

/// Longest time for anything to come about.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

const ALL: [Protocol; 3] = [Protocol::Vllm, Protocol::Sglang, Protocol::LlamaServer];

type Outcome = Result<StepOutcome<RemoteSegment>, EngineError>;

/// What stubs and engine run on.
fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

fn options(stubs: &[&Stub]) -> RemoteOptions {
    let protocol = stubs[0].protocol();
    RemoteOptions {
        protocol,
        targets: stubs.iter().map(|stub| Target::parse(&stub.url()).unwrap()).collect(),
        key: None,
        model: None,
        authorities: None,
        window: 8,
        timeout: Duration::from_secs(10),
        retry_for: Duration::from_secs(10),
        wait: Duration::ZERO,
    }
}

fn connect(runtime: &Runtime, options: RemoteOptions) -> Result<RemoteEngine, RemoteError> {
    RemoteEngine::connect(options, truth::expected(), runtime.handle())
}

/// One stub and an engine on it, whose checks the stub has forgotten.
fn started(runtime: &Runtime, nature: Nature) -> (Stub, RemoteEngine) {
    let stub = Stub::start(runtime.handle(), nature);
    let engine = connect(runtime, options(&[&stub])).unwrap();
    stub.forget();
    (stub, engine)
}

fn origin(name: u32) -> Origin {
    let key = |tag: &[u8]| SegmentKey::root(&[tag, &name.to_le_bytes()].concat());
    Origin { state: key(b"state"), salt: SegmentKey::root(b"tenant") }
}

/// The tokens of a state, all below the vocabulary.
fn state(name: u32, count: u32) -> Vec<u32> {
    (0..count).map(|at| (name * 37 + at * 11) % truth::VOCAB).collect()
}

fn row(
    name: u32,
    path: Vec<PathPart<RemoteSegment>>,
    suffix: &[u32],
    labels: &[u32],
) -> Row<RemoteSegment> {
    Row {
        origin: origin(name),
        path,
        suffix: suffix.into(),
        labels: labels.into(),
        want_hidden: false,
        want_mass: false,
    }
}

fn chunk(name: u32, tokens: &[u32]) -> Chunk<RemoteSegment> {
    Chunk { origin: origin(name), path: Vec::new(), tokens: tokens.into() }
}

fn step(
    id: u64,
    chunks: Vec<Chunk<RemoteSegment>>,
    rows: Vec<Row<RemoteSegment>>,
) -> Step<RemoteSegment> {
    Step { id, epoch: 1, chunks, rows }
}

/// Hands a step over; its outcome comes by the channel.
fn submit(engine: &RemoteEngine, step: Step<RemoteSegment>) -> mpsc::Receiver<Outcome> {
    let (sender, receiver) = mpsc::channel();
    engine.submit(step, Completion::new(move |outcome| drop(sender.send(outcome))));
    receiver
}

fn ask(engine: &RemoteEngine, step: Step<RemoteSegment>) -> Outcome {
    submit(engine, step).recv_timeout(PATIENCE).expect("the step ends")
}

/// One read of a whole prompt, alone.
fn ask_one(engine: &RemoteEngine, id: u64, name: u32) -> Result<RowOutcome, EngineError> {
    // One label, which a llama-server always tells at once.
    let rows = vec![row(name, Vec::new(), &state(name, 20), &[5])];
    ask(engine, step(id, Vec::new(), rows))?.rows.remove(0)
}

/// Whether an outcome is what the model says of a prompt.
fn assert_true(outcome: &RowOutcome, prompt: &[u32], labels: &[u32]) {
    let truth = logprobs(prompt);
    for (label, logprob) in labels.iter().zip(&outcome.logprobs) {
        let expected = truth[*label as usize];
        assert!((f64::from(*logprob) - expected).abs() < 1e-4, "{label}: {logprob}, {expected}");
    }
    let mass: f64 = labels.iter().map(|label| truth[*label as usize].exp()).sum();
    let told = f64::from(outcome.log_mass.unwrap()).exp();
    assert!((told - mass).abs() < 1e-4, "{told} instead of {mass}");
    assert_eq!(outcome.greedy_is_label, labels.contains(&truth::best(&truth)));
    assert_eq!(outcome.hidden, None);
}

/// Waits until the engine's servers are all so.
fn until_servers(engine: &RemoteEngine, are_up: bool) {
    let status = engine.status();
    let began = std::time::Instant::now();
    while status.servers().iter().any(|server| server.down.is_none() != are_up) {
        assert!(began.elapsed() < PATIENCE, "{status:?}");
        std::thread::yield_now();
    }
}

/// A segment that is held, as a step before would have made it.
fn held(engine: &RemoteEngine, id: u64, name: u32, tokens: &[u32]) -> Vec<PathPart<RemoteSegment>> {
    let outcome = ask(engine, step(id, vec![chunk(name, tokens)], Vec::new())).unwrap();
    outcome.chunks.into_iter().map(PathPart::Segment).collect()
}

/// The rows of several suffixes on one path.
fn rows(
    name: u32,
    path: &[PathPart<RemoteSegment>],
    count: u32,
    labels: &[u32],
) -> Vec<Row<RemoteSegment>> {
    (0..count).map(|number| row(name, path.to_vec(), &[300 + number, 7], labels)).collect()
}
