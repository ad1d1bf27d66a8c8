//! `docket serve`: its flags, and the configuration they mean.

mod http;
mod images;
mod letters;
mod traces;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::listed::Listed;
use super::switch::switch;
use crate::config::quantity::{parse_bytes, parse_duration};
use crate::config::{
    BoundaryRegistration, Config, ContextLimit, DeviceChoice, DialectChoice, EngineConfig,
    EngineKind, FakeConfig, FakeFaults, Faults, KvBytes, LayoutChoice, PrecisionChoice, Readout,
    SamplesDefault,
};
use crate::models::ModelRef;
use crate::models::catalogue::DEFAULT_MODEL;
use crate::prompt::layout::named::LAYOUTS;
use http::HttpArgs;
use images::ImagesArgs;
use letters::LettersArgs;
use traces::TracesArgs;

/// What to serve, and how.
#[derive(Debug, Default, Args)]
pub struct ServeArgs {
    /// A name from `docket models`, hf:OWNER/REPO, hf:OWNER/REPO:FILE, a GGUF file or a folder of
    /// safetensors [default: qwen2.5-coder:1.5b]
    #[arg(value_name = "NAME|PATH")]
    pub positional: Option<String>,

    /// The same as NAME|PATH
    #[arg(long, env = "DOCKET_MODEL", value_name = "NAME|PATH")]
    pub model: Option<String>,

    /// Name that the model is served under; repeatable, and split at commas in the environment
    /// variable [default: the model's own]
    #[arg(long, env = "DOCKET_SERVED_NAME", value_name = "NAME")]
    pub served_name: Vec<Listed>,

    /// Longest prompt in tokens [default: the model's]
    #[arg(long, env = "DOCKET_CONTEXT", value_name = "TOKENS")]
    pub context: Option<u32>,

    /// Fail instead of pulling a model that is absent
    #[arg(long, env = "DOCKET_OFFLINE", value_parser = switch)]
    pub offline: bool,

    /// File of settings, in TOML: all of these, and profiles that requests ask for by name. Flags and
    /// environment variables win over it; `docket config example` prints one [default: none]
    #[arg(long = "config", env = "DOCKET_CONFIG", value_name = "FILE")]
    pub config_file: Option<PathBuf>,

    #[command(flatten)]
    http: HttpArgs,

    #[command(flatten)]
    traces: TracesArgs,

    #[command(flatten)]
    images: ImagesArgs,

    #[command(flatten)]
    decision: DecisionArgs,

    #[command(flatten)]
    letters: LettersArgs,

    #[command(flatten)]
    engine: EngineArgs,

    #[command(flatten)]
    scheduler: SchedulerArgs,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Decisions")]
struct DecisionArgs {
    /// Time from a request's first byte to its answer where it sets none [default: 60s]
    #[arg(long, env = "DOCKET_TIMEOUT", value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,

    /// Longest time that a request may set [default: 600s]
    #[arg(long, env = "DOCKET_TIMEOUT_MAX", value_name = "TIME", value_parser = parse_duration)]
    timeout_max: Option<Duration>,

    /// Most questions of one request [default: 64]
    #[arg(long, env = "DOCKET_MAX_QUESTIONS", value_name = "COUNT")]
    max_questions: Option<u32>,

    /// Most orders of its options that a question is read in [default: 32]
    #[arg(long, env = "DOCKET_SAMPLES_MAX", value_name = "COUNT")]
    samples_max: Option<u32>,

    /// Orders where a request says nothing; `default` is the model profile's [default: default]
    #[arg(long, env = "DOCKET_SAMPLES", value_name = "COUNT|default")]
    samples: Option<SamplesDefault>,

    /// Wire format of routes that name none: systemone, decisio, self, vllm, gmlx, openai
    /// [default: systemone]
    #[arg(long, env = "DOCKET_DIALECT", value_enum, hide_possible_values = true)]
    dialect: Option<DialectChoice>,

    /// How prompts are arranged [default: as the model's profile says]
    #[arg(long, env = "DOCKET_LAYOUT", value_name = "NAME", hide_possible_values = true)]
    #[arg(value_parser = PossibleValuesParser::new(LAYOUTS.map(|layout| layout.id)))]
    layout: Option<String>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "The engine")]
struct EngineArgs {
    /// What runs the model: cpu, reference (slow, also other architectures), fake (no model), or auto:
    /// cpu where it has the architecture, else reference [default: auto]
    #[arg(long, env = "DOCKET_ENGINE", value_enum, hide_possible_values = true)]
    engine: Option<EngineKind>,

    /// Where the model runs: cpu, or the CUDA device of a number (cuda is cuda:0), for which the
    /// binary must be built with --features cuda [default: cpu]
    #[arg(long, env = "DOCKET_DEVICE", value_name = "cpu|cuda[:N]")]
    device: Option<DeviceChoice>,

    /// Threads of the forward pass [default: the physical cores]
    #[arg(long, env = "DOCKET_THREADS", value_name = "COUNT")]
    threads: Option<u32>,

    /// What the engine computes in: auto (measured for the model; bf16 on CUDA), f32, bf16, int8 (not
    /// on CUDA) [default: auto]
    #[arg(long, env = "DOCKET_PRECISION", value_enum, hide_possible_values = true)]
    #[arg(value_name = "auto|f32|bf16|int8")]
    precision: Option<PrecisionChoice>,

    /// Disk for packed weights, which make the next start faster; 0 uses none [default: 8GiB]
    #[arg(long, env = "DOCKET_PACKED_MAX", value_name = "SIZE", value_parser = parse_bytes)]
    packed_max: Option<u64>,

    /// Take probabilities over the full vocabulary, or over the label rows only [default: full]
    #[arg(long, env = "DOCKET_READOUT", value_enum, hide_possible_values = true)]
    #[arg(value_name = "full|rows")]
    readout: Option<Readout>,

    /// Milliseconds of every step of the fake engine [default: 2]
    #[arg(long, env = "DOCKET_FAKE_STEP_MS", value_name = "MS")]
    fake_step_ms: Option<u64>,

    /// Microseconds of every token of the fake engine [default: 20]
    #[arg(long, env = "DOCKET_FAKE_TOKEN_US", value_name = "US")]
    fake_token_us: Option<u64>,

    /// What goes wrong around the fake engine; KIND: panic, error, nan, oom, hang, or an actor;
    /// PLACE: N, N+, N:M, row~TEXT, state~TEXT, over~TOKENS; more after commas; hang@2=90s
    #[arg(long, env = "DOCKET_FAKE_FAULT", value_name = "KIND@PLACE")]
    fake_fault: Option<FakeFaults>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Scheduling and memory")]
struct SchedulerArgs {
    /// Memory for keys and values; 0 keeps nothing [default: auto, from the free memory]
    #[arg(long, env = "DOCKET_KV_BYTES", value_name = "SIZE|auto")]
    kv_bytes: Option<KvBytes>,

    /// Tokens of a state that one step reads at most, a multiple of 64 [default: 192]
    #[arg(long, env = "DOCKET_CHUNK_TOKENS", value_name = "TOKENS")]
    chunk_tokens: Option<u32>,

    /// Tokens of one step at most [default: 512]
    #[arg(long, env = "DOCKET_STEP_TOKENS", value_name = "TOKENS")]
    step_tokens: Option<u32>,

    /// Reads of one step at most [default: 64]
    #[arg(long, env = "DOCKET_ROWS_MAX", value_name = "COUNT")]
    rows_max: Option<u32>,

    /// Reads that may wait at most [default: 1024]
    #[arg(long, env = "DOCKET_READS_MAX", value_name = "COUNT")]
    reads_max: Option<u32>,

    /// Reads of one tenant that may wait or run at most [default: 768]
    #[arg(long, env = "DOCKET_TENANT_READS_MAX", value_name = "COUNT")]
    tenant_reads_max: Option<u32>,

    /// Tokens a second that one tenant may ask for on average; 0 is no limit [default: 0]
    #[arg(long, env = "DOCKET_TENANT_RATE", value_name = "TOKENS")]
    tenant_rate: Option<u64>,

    /// Tokens that one tenant may ask for at once after a pause, where there is a rate [default: 65536]
    #[arg(long, env = "DOCKET_TENANT_BURST", value_name = "TOKENS")]
    tenant_burst: Option<u64>,

    /// Longest predicted wait in the urgent lane; what would wait longer is refused [default: 1s]
    #[arg(long, env = "DOCKET_WAIT_URGENT", value_name = "TIME", value_parser = parse_duration)]
    wait_urgent: Option<Duration>,

    /// Longest predicted wait in the normal lane [default: 8s]
    #[arg(long, env = "DOCKET_WAIT_NORMAL", value_name = "TIME", value_parser = parse_duration)]
    wait_normal: Option<Duration>,

    /// Longest predicted wait in the batch lane [default: 60s]
    #[arg(long, env = "DOCKET_WAIT_BATCH", value_name = "TIME", value_parser = parse_duration)]
    wait_batch: Option<Duration>,

    /// How long a step should take; its tokens follow from the measured speed [default: 200ms]
    #[arg(long, env = "DOCKET_STEP_TARGET", value_name = "TIME", value_parser = parse_duration)]
    step_target: Option<Duration>,

    /// After what wait a batch or idle read stands one lane higher [default: 30s]
    #[arg(long, env = "DOCKET_RAISE_AFTER", value_name = "TIME", value_parser = parse_duration)]
    raise_after: Option<Duration>,

    /// After what wait a lane comes first in every other step [default: 45s]
    #[arg(long, env = "DOCKET_AGE_MAX", value_name = "TIME", value_parser = parse_duration)]
    age_max: Option<Duration>,

    /// Keep a state for other questions: after the response, before it, or not [default: after]
    #[arg(long, env = "DOCKET_REGISTER_BOUNDARY", value_enum, hide_possible_values = true)]
    #[arg(value_name = "after|before|off")]
    register_boundary: Option<BoundaryRegistration>,
}

impl ServeArgs {
    /// The validated configuration that was asked for, with the model store at `home`. What the
    /// configuration file says is among these flags where they come from [`super::settings::parse`].
    ///
    /// # Errors
    /// All faults, each with its flag.
    pub fn config(self, home: PathBuf) -> Result<Config, Faults> {
        let (config, faults) = self.read(home);
        if faults.0.is_empty() { Ok(config) } else { Err(faults) }
    }

    /// The configuration that was asked for, as far as it can be read, and all its faults.
    pub(super) fn read(self, home: PathBuf) -> (Config, Faults) {
        let mut faults = Faults::default();
        let model = self.model_reference(&mut faults);
        let mut config = Config::new(home, model);
        if !self.served_name.is_empty() {
            config.model.served_names = Listed::all(self.served_name);
        } else if self.engine.engine == Some(EngineKind::Fake) {
            config.model.served_names = vec!["fake".to_owned()];
        }
        config.model.offline = self.offline;
        config.model.context = self.context.map_or(ContextLimit::OfModel, ContextLimit::Tokens);
        self.engine.check_fake_flags(&mut faults);
        self.http.fill(&mut config, &mut faults);
        self.traces.fill(&mut config);
        self.images.fill(&mut config);
        self.decision.fill(&mut config);
        self.letters.fill(&mut config);
        self.engine.fill(&mut config);
        self.scheduler.fill(&mut config);
        if let Err(found) = config.validate() {
            faults.0.extend(found.0);
        }
        (config, faults)
    }

    /// The model that was named, or the default when none was or when it is a fault.
    fn model_reference(&self, faults: &mut Faults) -> ModelRef {
        if let (Some(positional), Some(model)) = (&self.positional, &self.model)
            && positional != model
        {
            faults
                .add("--model", format!("{model} and {positional} are both named; one is served"));
        }
        let named = self.positional.as_deref().or(self.model.as_deref());
        ModelRef::parse(named.unwrap_or(DEFAULT_MODEL)).unwrap_or_else(|error| {
            faults.add("--model", error.to_string());
            ModelRef::Path(PathBuf::from(named.unwrap_or(DEFAULT_MODEL)))
        })
    }
}

impl DecisionArgs {
    fn fill(self, config: &mut Config) {
        let decision = &mut config.decision;
        set(&mut decision.timeout, self.timeout);
        set(&mut decision.timeout_max, self.timeout_max);
        set(&mut decision.questions_max, self.max_questions);
        set(&mut decision.samples_max, self.samples_max);
        set(&mut decision.samples, self.samples);
        set(&mut decision.dialect, self.dialect);
        set(&mut decision.layout, self.layout.map(LayoutChoice::Named));
    }
}

impl EngineArgs {
    /// A pretence that nobody would act on is a mistake; one that is the default says nothing.
    fn check_fake_flags(&self, faults: &mut Faults) {
        let FakeConfig { step_ms, token_us, .. } = EngineConfig::default().fake;
        let typed = [
            ("--fake-step-ms", self.fake_step_ms.is_some_and(|typed| typed != step_ms)),
            ("--fake-token-us", self.fake_token_us.is_some_and(|typed| typed != token_us)),
            ("--fake-fault", self.fake_fault.is_some()),
        ];
        for (flag, is_typed) in typed {
            if is_typed && self.engine != Some(EngineKind::Fake) {
                faults.add(flag, "it needs --engine fake");
            }
        }
    }

    fn fill(self, config: &mut Config) {
        let engine = &mut config.engine;
        set(&mut engine.kind, self.engine);
        set(&mut engine.device, self.device);
        set(&mut engine.threads, self.threads);
        set(&mut engine.precision, self.precision);
        set(&mut engine.packed_bytes_max, self.packed_max);
        set(&mut engine.readout, self.readout);
        set(&mut engine.fake.step_ms, self.fake_step_ms);
        set(&mut engine.fake.token_us, self.fake_token_us);
        set(&mut engine.fake.faults, self.fake_fault);
    }
}

impl SchedulerArgs {
    fn fill(self, config: &mut Config) {
        let scheduler = &mut config.scheduler;
        set(&mut scheduler.kv_bytes, self.kv_bytes);
        set(&mut scheduler.chunk_tokens, self.chunk_tokens);
        set(&mut scheduler.step_tokens, self.step_tokens);
        set(&mut scheduler.rows_max, self.rows_max);
        set(&mut scheduler.reads_max, self.reads_max);
        set(&mut scheduler.tenant_reads_max, self.tenant_reads_max);
        set(&mut scheduler.tenant_rate, self.tenant_rate);
        set(&mut scheduler.tenant_burst, self.tenant_burst);
        set(&mut scheduler.wait_urgent, self.wait_urgent);
        set(&mut scheduler.wait_normal, self.wait_normal);
        set(&mut scheduler.wait_batch, self.wait_batch);
        set(&mut scheduler.step_target, self.step_target);
        set(&mut scheduler.raise_after, self.raise_after);
        set(&mut scheduler.age_max, self.age_max);
        set(&mut scheduler.register_boundary, self.register_boundary);
    }
}

pub(super) fn set<T>(setting: &mut T, typed: Option<T>) {
    if let Some(value) = typed {
        *setting = value;
    }
}

#[cfg(test)]
mod tests;
