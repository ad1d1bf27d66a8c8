//! D6 through the binary: the same request gives the same bytes, whatever else the server does.
//!
//! Goal: no bit of an answer depends on load, residency, cuts, threads or the process. Method:
//! random decision sets, in each precision, are asked alone of a server of one thread that packed
//! its weights from the model's file and keeps no state; then of servers started after it was killed,
//! which read the weights that it packed: warm and in company, with states cut into small or large
//! chunks, and with so little memory that a state is dropped and read again. Probabilities are not
//! rounded on the wire, so equal text is equal bits; label mass and entropy are compared too.
//!
//! `DOCKET_TEST_DETERMINISM_MODELS` (default `smollm2:135m`) and `DOCKET_TEST_DETERMINISM_SETS`
//! (default 3) make a longer run, `DOCKET_TEST_SEED` another one.

#[path = "../tokens/fuzz/draw.rs"]
#[expect(dead_code, reason = "the fuzz tests draw more")]
mod draw;
mod sets;

use std::fmt::Debug;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::str::FromStr;
use std::sync::Mutex;
use std::thread;

use serde_json::{Value, json};
use tempfile::TempDir;

use self::draw::Draw;
use self::sets::Set;
use crate::server::{Reply, Server, installed, say, try_post};

/// Sets from which on a run is a long one.
const SETS_MANY: usize = 10;

/// Clients that ask at the same time.
const CLIENTS: usize = 12;

/// How often it is tried to drive a state out.
const EVICTIONS_TRIED: usize = 40;

/// Room beyond the longest state's tokens: its first and its last page, and none for another state.
const SLACK_TOKENS: u64 = 128;

/// Steps so small that everything is cut: chunks of one page, and few rows.
const SMALL_STEPS: [&str; 6] = ["--chunk-tokens", "64", "--step-tokens", "96", "--rows-max", "3"];

/// Steps that take a whole state at once.
const LARGE_STEPS: [&str; 4] = ["--chunk-tokens", "1024", "--step-tokens", "2048"];

#[test]
fn random_decisions_have_the_same_bytes_alone_in_company_warm_evicted_cut_and_after_a_restart() {
    let seed = setting("DOCKET_TEST_SEED", 1);
    let count = setting("DOCKET_TEST_DETERMINISM_SETS", 3);
    let models = setting("DOCKET_TEST_DETERMINISM_MODELS", "smollm2:135m".to_owned());
    for model in models.split(',') {
        let Some(folder) = installed(model) else { continue };
        let mut seen: Vec<Vec<String>> = Vec::new();
        for precision in ["f32", "bf16", "int8"] {
            say(&format!("{count} random decision sets of {model} in {precision}, seed {seed}"));
            let mut world = World::new(model, &folder, precision, (seed, count));
            let cost = world.warm_and_in_company();
            world.evicted_and_cut(&cost);
            say(&format!("{} answers are the same bytes", world.compared));
            seen.push(world.alone.into_iter().map(|asked| asked.answers).collect());
        }
        assert!(seen[0] != seen[1] && seen[1] != seen[2], "the precision makes no difference");
    }
}

/// A setting of the test.
#[expect(clippy::disallowed_methods, reason = "tests may be told how long to run")]
fn setting<T: FromStr<Err: Debug>>(name: &str, default: T) -> T {
    std::env::var(name).map_or(default, |value| value.parse().expect(name))
}

/// What a request gave and cost.
#[derive(Debug)]
struct Asked {
    answers: String,
    computed_tokens: u64,
}

impl Asked {
    fn of(reply: &Reply) -> Self {
        assert_eq!(reply.status, 200, "{reply:?}");
        let computed_tokens = reply.number("x-docket-computed-tokens");
        Self { answers: reply.body["answers"].to_string(), computed_tokens }
    }
}

/// What a state and the questions about it cost.
#[derive(Debug)]
struct Cost {
    /// The state with what stands before it.
    prefix_tokens: u64,
    /// The questions, where the state is resident.
    own_tokens: u64,
    /// Keys and values of one token.
    token_bytes: u64,
}

/// Random decision sets of one model in one precision, and what each gave alone.
struct World {
    model: String,
    precision: &'static str,
    /// With the model's files and the packed weights of this test.
    home: TempDir,
    sets: Vec<Set>,
    /// Requests that are only there to be in the way.
    others: Vec<Value>,
    alone: Vec<Asked>,
    compared: usize,
}

impl World {
    /// Asks each set alone: cold, one thread, weights packed from the file.
    fn new(
        model: &str,
        folder: &Path,
        precision: &'static str,
        (seed, count): (u64, usize),
    ) -> Self {
        let home = TempDir::new().expect("a folder");
        let models = home.path().join("models");
        std::fs::create_dir(&models).expect("a folder");
        symlink(folder, models.join(folder.file_name().expect("a name"))).expect("a link");
        let draw = &mut Draw::new(seed);
        // With two thousand tokens among many, so that chunks of 1,024 are cut too.
        let mut sets = vec![Set::long(draw, if count < SETS_MANY { 1 } else { 2 })];
        sets.extend((1..count).map(|_| Set::short(draw)));
        let others = (0..count).map(|_| Set::short(draw).request).collect();
        let (model, alone) = (model.to_owned(), Vec::new());
        let mut world = Self { model, precision, home, sets, others, alone, compared: 0 };
        let server = world.start(&["--threads", "1", "--register-boundary", "off"]);
        let ask = |set: &Set| Asked::of(&server.post("/v1/systemone", &set.request));
        world.alone = world.sets.iter().map(ask).collect();
        world
    }

    fn start(&self, arguments: &[&str]) -> Server {
        let home = self.home.path().to_str().expect("text");
        let precision = self.precision;
        // A large model on a busy machine answers after minutes, which is no fault here.
        let patient = ["--timeout", "1h", "--timeout-max", "1h", "--wait-normal", "1h"];
        let own = [self.model.as_str(), "--home", home, "--precision", precision];
        let own = [&own[..], &patient].concat();
        Server::start(&[&own[..], arguments].concat())
    }

    /// Asks set `index`, which must give what it gave alone.
    fn ask(&mut self, server: &Server, index: usize, how: &str) -> Asked {
        let asked = Asked::of(&server.post("/v1/systemone", &self.sets[index].request));
        self.compare(index, &asked, how);
        asked
    }

    fn compare(&mut self, index: usize, asked: &Asked, how: &str) {
        let request = &self.sets[index].request;
        assert_eq!(
            asked.answers, self.alone[index].answers,
            "{how}, {}: {request}",
            self.precision
        );
        self.compared += 1;
    }

    /// On the packed weights of the killed server: states that are resident, then all at once.
    /// Returns what the longest costs.
    fn warm_and_in_company(&mut self) -> Cost {
        let packed = std::fs::read_dir(self.home.path().join("packed")).expect("a folder");
        assert!(
            packed.flatten().any(|file| file.path().extension().is_some()),
            "nothing is packed"
        );
        let server = self.start(&[&["--threads", "2"][..], &LARGE_STEPS].concat());
        let memory = &server.get("/health")["details"]["model"]["memory"];
        let token_bytes = memory["kv_bytes_per_token"].as_u64().expect("a number");
        let mut costs = Vec::new();
        for index in 0..self.sets.len() {
            let warmed = prewarm(&server, &self.sets[index]);
            let prefix_tokens = warmed["prompt_tokens"].as_u64().expect("a number");
            let asked = self.ask(&server, index, "warm");
            let (cold, warm) = (self.alone[index].computed_tokens, asked.computed_tokens);
            assert!(warm < cold, "set {index} cost {warm} tokens warm, {cold} cold");
            costs.push(Cost { prefix_tokens, own_tokens: warm, token_bytes });
        }
        self.in_company(&server, "warm, in company");
        costs.swap_remove(0)
    }

    /// With room for hardly more than the longest state, and everything cut: resident, dropped for
    /// others and read again, in company, and once more after a restart, which keeps no state.
    fn evicted_and_cut(&mut self, longest: &Cost) {
        let room = (longest.prefix_tokens + SLACK_TOKENS) * longest.token_bytes;
        let room = room.to_string();
        let arguments = [&["--threads", "2", "--kv-bytes", &room][..], &SMALL_STEPS].concat();
        let server = self.start(&arguments);
        for index in 0..self.sets.len() {
            let warmed = prewarm(&server, &self.sets[index]);
            if let Some(handle) = warmed["handle"].as_str() {
                assert_eq!(server.delete(&format!("/v1/prewarm/{handle}")), 200);
            }
            self.ask(&server, index, "cut, little memory");
        }
        let resident = longest.own_tokens + longest.prefix_tokens / 2;
        let mut evicted_and_asked = || {
            // What was used again is dropped last; a state as long leaves no room for it all the same.
            // While the last request's hold on its own is on its way back, one runs beyond the budget.
            let rival = Asked::of(&server.post("/v1/systemone", &self.sets[0].rival()));
            assert!(rival.computed_tokens > longest.prefix_tokens / 2, "{rival:?}");
            self.ask(&server, 0, "evicted").computed_tokens
        };
        let cost = (0..EVICTIONS_TRIED).map(|_| evicted_and_asked()).find(|cost| *cost > resident);
        assert!(cost.is_some(), "its state was still there {EVICTIONS_TRIED} times");
        let evictions = server.get("/health")["details"]["residency"]["evictions"].as_u64();
        assert!(evictions > Some(0), "nothing was evicted");
        self.in_company(&server, "cut, little memory, in company");
        drop(server);
        let server = self.start(&arguments);
        let again = self.ask(&server, 0, "after a restart").computed_tokens;
        assert!(again > resident, "{again} tokens: its state was still there");
    }

    /// Asks all sets at the same time, between other requests.
    fn in_company(&mut self, server: &Server, how: &str) {
        let sets = self.sets.iter().enumerate().map(|(n, set)| (Some(n), &set.request));
        let others = self.others.iter().map(|request| (None, request));
        let waiting = Mutex::new(sets.zip(others).flat_map(|(a, b)| [a, b]).collect::<Vec<_>>());
        let next = || waiting.lock().expect("no panic").pop();
        let client = || {
            let answered = |(index, request): (Option<usize>, &Value)| {
                let reply = try_post(server.base(), "/v1/systemone", request).expect("an answer");
                (index, Asked::of(&reply))
            };
            std::iter::from_fn(next).map(answered).collect::<Vec<_>>()
        };
        let answered: Vec<_> = thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
            clients.into_iter().flat_map(|client| client.join().expect("no panic")).collect()
        });
        for (index, asked) in answered {
            if let Some(index) = index {
                self.compare(index, &asked, how);
            }
        }
    }
}

/// Makes a set's state resident.
fn prewarm(server: &Server, set: &Set) -> Value {
    let warmed = server.post("/v1/prewarm", &json!({ "state": set.state }));
    assert_eq!((warmed.status, &warmed.body["ok"]), (200, &json!(true)), "{warmed:?}");
    warmed.body
}
