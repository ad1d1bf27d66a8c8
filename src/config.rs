//! What the server runs with: every setting with its unit, default and range, checked as a whole.
//!
//! The command line (`cli/serve.rs`) fills a [`Config`]; [`Config::validate`] reports all faults at
//! once, each with its flag, the value and the limit. A config does not change after the start.

mod choices;
mod decision;
mod defaults;
mod faults;
mod gateway;
mod images;
pub mod keys;
mod letters;
mod pretence;
pub mod profiles;
pub mod quantity;
mod traces;
mod wire;

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use actors::PAGE_TOKENS;

pub use self::choices::{
    BoundaryRegistration, ContextLimit, DeviceChoice, DialectChoice, EngineKind, KvBytes,
    LayoutChoice, PrecisionChoice, Readout, SamplesDefault, UsageDir,
};
pub use self::decision::DecisionConfig;
pub use self::faults::{Fault, Faults};
pub use self::gateway::{
    BackendConfig, EjectionConfig, GatewayConfig, LoadConfig, ProbeConfig, RequestConfig,
    RetryConfig,
};
pub use self::images::ImagesConfig;
pub use self::letters::LettersConfig;
pub use self::pretence::FakeFaults;
pub use self::traces::TracesConfig;
pub use self::wire::{TlsFiles, WireConfig};

use self::keys::ApiKey;
use crate::dialect::problem::FullStatus;
use crate::models::ModelRef;

/// Most `--served-name`s, and the length of one in bytes.
const SERVED_NAMES_MAX: usize = 64;
const SERVED_NAME_BYTES_MAX: usize = 200;

/// Most API keys on the command line.
const API_KEYS_MAX: usize = crate::http::KEYS_MAX;

/// Most `--chunk-tokens`.
const CHUNK_TOKENS_MAX: u32 = 8192;

/// Everything the server runs with.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The wire.
    pub http: HttpConfig,
    /// What is told of requests.
    pub traces: TracesConfig,
    /// From where images may be fetched.
    pub images: ImagesConfig,
    /// What a decision may ask.
    pub decision: DecisionConfig,
    /// How questions are shown and read out in the letters manner.
    pub letters: LettersConfig,
    /// Which model.
    pub model: ModelConfig,
    /// What runs the model.
    pub engine: EngineConfig,
    /// What runs when, and what stays in memory.
    pub scheduler: SchedulerConfig,
}

/// The wire.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpConfig {
    /// Host name or address to listen on. Default `127.0.0.1`: only this machine can ask.
    pub host: String,
    /// Port to listen on, 0 to 65,535. Default 8000; 0 takes a free one.
    pub port: u16,
    /// Most bytes of a request's body, after decompression. Default 32 MiB; 1 KiB to 1 GiB.
    pub body_limit_bytes: u64,
    /// Most open connections. Default 1,024; 1 to 65,536. More wait in the kernel's queue.
    pub connections_max: u32,
    /// Longest time to finish admitted work after a signal to stop. Default 30 s; 0 to 1 h.
    pub drain_timeout: Duration,
    /// With which status a request is refused for which there is no room now: 429, the default, or
    /// 503.
    pub queue_full_status: FullStatus,
    /// After what time without the end of a step, while reads wait, the server is not ready. Default
    /// 60 s; 10 ms to a day.
    pub stall_after: Duration,
    /// Keys that are let in, of operators without limits. At most 1,024, all different.
    pub api_keys: Vec<ApiKey>,
    /// File of tenants and their keys. Default none; with neither this nor `api_keys` everybody is let
    /// in.
    pub keys: Option<PathBuf>,
    /// Whether everybody may be let in from other machines too. Default no.
    pub insecure_open: bool,
    /// Whether `/metrics` needs no key where others do. Default no.
    pub open_metrics: bool,
    /// File of the secret that states' keys are made with. Default none: a random one at each start.
    pub state_key_secret: Option<PathBuf>,
    /// Where usage is kept. Default: a folder beside the models, unless another server counts there.
    pub usage: UsageDir,
    /// How connections are taken.
    pub wire: WireConfig,
}

/// Which model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelConfig {
    /// The model. Default `qwen2.5-coder:1.5b`.
    pub model: ModelRef,
    /// Names it is served under, the first being the one answered. Default: the model's own name.
    /// 1 to 64, each 1 to 200 bytes.
    pub served_names: Vec<String>,
    /// Folder of the models. Default: `docket` in the user's cache folder.
    pub home: PathBuf,
    /// Whether a model that is absent is an error instead of being pulled. Default no.
    pub offline: bool,
    /// Longest prompt in tokens. Default: the model's own limit. At least 128; above the model's
    /// limit it is refused at the start.
    pub context: ContextLimit,
}

/// What runs the model.
#[derive(Debug, Clone, PartialEq)]
pub struct EngineConfig {
    /// Which engine. Default `auto`.
    pub kind: EngineKind,
    /// Where the model runs. Default `cpu`.
    pub device: DeviceChoice,
    /// Threads of the forward pass. Default: the physical cores this process may use; 1 to 1,024.
    pub threads: u32,
    /// What the `cpu` and `cuda` engines compute in. Default `auto`.
    pub precision: PrecisionChoice,
    /// Most bytes on disk for packed weights, which make the next start faster. Default 8 GiB; 0
    /// keeps none.
    pub packed_bytes_max: u64,
    /// Over what label probabilities are taken. Default `full`: the whole vocabulary.
    pub readout: Readout,
    /// What the `fake` engine pretends.
    pub fake: FakeConfig,
}

/// What the `fake` engine pretends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeConfig {
    /// Milliseconds of every step. Default 2; 0 to 60,000.
    pub step_ms: u64,
    /// Microseconds of every token of a step. Default 20; 0 to 1,000,000.
    pub token_us: u64,
    /// What goes wrong, and where. Default: nothing.
    pub faults: FakeFaults,
}

/// What runs when, and what stays in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Memory for keys and values. Default: a share of what is free at the start; 0 keeps nothing.
    pub kv_bytes: KvBytes,
    /// Tokens of a state that one step reads at most, so that others get their turn. Default 192;
    /// a multiple of 64, 64 to 8,192.
    pub chunk_tokens: u32,
    /// Tokens of one step at most. Default 512; `chunk_tokens` to 65,536. More gives throughput,
    /// less gives a shorter wait for urgent reads.
    pub step_tokens: u32,
    /// Reads of one step at most. Default 64; 1 to 4,096.
    pub rows_max: u32,
    /// Reads that may wait; more are refused. Default 1,024; `questions_max` to 1,000,000.
    pub reads_max: u32,
    /// Of these and those that run, reads of one tenant. Default 768; `questions_max` to 1,000,000.
    pub tenant_reads_max: u32,
    /// Tokens a second that one tenant may ask for on average. Default 0: no limit; to 1,000,000,000.
    pub tenant_rate: u64,
    /// Tokens that it may ask for at once after a pause. Default 65,536; 1 to 1,000,000,000,000.
    pub tenant_burst: u64,
    /// Longest predicted wait of a decision in the urgent lane; a longer one is refused. Default 1 s;
    /// 1 ms to a day.
    pub wait_urgent: Duration,
    /// Likewise in the normal lane. Default 8 s.
    pub wait_normal: Duration,
    /// Likewise in the batch lane. Default 60 s.
    pub wait_batch: Duration,
    /// How long a step should take; it gets as many tokens as the measured speed allows. Default
    /// 200 ms; 1 ms to a minute.
    pub step_target: Duration,
    /// After what wait a batch or idle read stands one lane higher. Default 30 s; up to a day.
    pub raise_after: Duration,
    /// After what wait a lane comes first in every other step. Default 45 s; 1 ms to a day.
    pub age_max: Duration,
    /// Whether a state is kept for other questions after the response. Default `after`.
    pub register_boundary: BoundaryRegistration,
}

impl Config {
    /// The defaults, for a model store at `home` and `model`.
    pub fn new(home: PathBuf, model: ModelRef) -> Self {
        Self {
            http: HttpConfig::default(),
            traces: TracesConfig::default(),
            images: ImagesConfig::default(),
            decision: DecisionConfig::default(),
            letters: LettersConfig::default(),
            model: ModelConfig {
                served_names: vec![model.served_name()],
                model,
                home,
                offline: false,
                context: ContextLimit::OfModel,
            },
            engine: EngineConfig::default(),
            scheduler: SchedulerConfig::default(),
        }
    }

    /// Checks every range and what settings say about each other.
    ///
    /// # Errors
    /// All faults found, none held back.
    pub fn validate(&self) -> Result<(), Faults> {
        let mut faults = Faults::default();
        self.http.check(&mut faults);
        self.traces.check(&mut faults);
        self.images.check(&mut faults);
        self.decision.check(&mut faults);
        self.letters.check(&mut faults);
        self.model.check(&mut faults);
        self.engine.check(&mut faults);
        self.scheduler.check(self.decision.questions_max, &mut faults);
        if faults.0.is_empty() { Ok(()) } else { Err(faults) }
    }
}

impl HttpConfig {
    fn check(&self, faults: &mut Faults) {
        if self.host.trim().is_empty() {
            faults.add("--host", "\"\" is no host; write a name or an address");
        }
        faults.check_bytes("--body-limit", self.body_limit_bytes, 1 << 10..=1 << 30);
        faults.check_range("--connections-max", self.connections_max, 1..=65_536);
        self.wire.check(faults);
        let drain = Duration::ZERO..=Duration::from_hours(1);
        faults.check_duration("--drain-timeout", self.drain_timeout, drain);
        let stall = Duration::from_millis(10)..=Duration::from_hours(24);
        faults.check_duration("--stall-after", self.stall_after, stall);
        if self.api_keys.len() > API_KEYS_MAX {
            let count = self.api_keys.len();
            faults.add("--api-key", format!("{count} keys; at most {API_KEYS_MAX} are taken"));
        }
        let is_open = self.api_keys.is_empty() && self.keys.is_none();
        if is_open && !self.insecure_open && !is_loopback(&self.host) {
            let host = &self.host;
            let message = format!(
                "{host} can be reached from other machines, and no key is asked for: give --keys or \
                 --api-key, or say --insecure-open"
            );
            faults.add("--host", message);
        }
        let mut secrets: Vec<&str> = self.api_keys.iter().map(|key| key.secret.reveal()).collect();
        secrets.sort_unstable();
        if secrets.windows(2).any(|pair| pair[0] == pair[1]) {
            faults.add("--api-key", "one key is given twice; each belongs to one tenant");
        }
    }
}

/// Whether a host is this machine's own, which no other can reach.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim().trim_start_matches('[').trim_end_matches(']');
    let is_own = |address: IpAddr| address.is_loopback();
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(is_own)
}

impl ModelConfig {
    fn check(&self, faults: &mut Faults) {
        let count = self.served_names.len();
        faults.check_range("--served-name", count, 1..=SERVED_NAMES_MAX);
        for name in &self.served_names {
            let is_printable = !name.trim().is_empty() && !name.chars().any(char::is_control);
            if !is_printable || name.len() > SERVED_NAME_BYTES_MAX {
                let limit = SERVED_NAME_BYTES_MAX;
                faults
                    .add("--served-name", format!("{name:?} is not 1 to {limit} printable bytes"));
            }
        }
        if let ContextLimit::Tokens(tokens) = self.context {
            faults.check_range("--context", tokens, 128..=1 << 24);
        }
    }
}

impl EngineConfig {
    fn check(&self, faults: &mut Faults) {
        faults.check_range("--threads", self.threads, 1..=1024);
        self.check_device(faults);
        faults.check_range("--fake-step-ms", self.fake.step_ms, 0..=60_000);
        faults.check_range("--fake-token-us", self.fake.token_us, 0..=1_000_000);
    }

    /// What a CUDA device asks of the binary and of other settings.
    fn check_device(&self, faults: &mut Faults) {
        let DeviceChoice::Cuda(_) = self.device else { return };
        let device = self.device;
        if !cfg!(feature = "cuda") {
            let message = format!(
                "{device} needs a binary with CUDA, which this one is not; with the CUDA toolkit \
                 installed, `cargo build --release --features cuda` makes one"
            );
            faults.add("--device", message);
        }
        if let EngineKind::Reference | EngineKind::Fake = self.kind {
            let message = format!(
                "{device} is for --engine auto or cpu; {} runs on the cpu only",
                self.kind.name()
            );
            faults.add("--device", message);
        }
        if self.precision == PrecisionChoice::Int8 {
            let message = format!(
                "int8 is not computed on {device}; auto and bf16 hold weights of any file as bf16, \
                 f32 holds them as f32"
            );
            faults.add("--precision", message);
        }
    }
}

impl SchedulerConfig {
    fn check(&self, questions_max: u32, faults: &mut Faults) {
        let chunk = self.chunk_tokens;
        if !(PAGE_TOKENS..=CHUNK_TOKENS_MAX).contains(&chunk) || !chunk.is_multiple_of(PAGE_TOKENS)
        {
            let message = format!(
                "{chunk} is not a multiple of {PAGE_TOKENS} within {PAGE_TOKENS} to {CHUNK_TOKENS_MAX}"
            );
            faults.add("--chunk-tokens", message);
        }
        faults.check_above("--step-tokens", self.step_tokens, ("--chunk-tokens", chunk), 65_536);
        faults.check_range("--rows-max", self.rows_max, 1..=4096);
        // What is larger than the queue is let in only while nothing else waits.
        let least = ("--max-questions", questions_max);
        faults.check_above("--reads-max", self.reads_max, least, 1_000_000);
        faults.check_above("--tenant-reads-max", self.tenant_reads_max, least, 1_000_000);
        faults.check_range("--tenant-rate", self.tenant_rate, 0..=1_000_000_000);
        faults.check_range("--tenant-burst", self.tenant_burst, 1..=1_000_000_000_000);
        let (shortest, day) = (Duration::from_millis(1), Duration::from_hours(24));
        faults.check_duration("--step-target", self.step_target, shortest..=Duration::from_mins(1));
        faults.check_duration("--raise-after", self.raise_after, Duration::ZERO..=day);
        for (flag, value) in [
            ("--wait-urgent", self.wait_urgent),
            ("--wait-normal", self.wait_normal),
            ("--wait-batch", self.wait_batch),
            ("--age-max", self.age_max),
        ] {
            faults.check_duration(flag, value, shortest..=day);
        }
    }
}
