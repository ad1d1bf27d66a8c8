//! From a model's files to an engine and a prompter, by the kind of engine asked for.

mod manners;
mod weights;

use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use actors::Handle;
use serde_json::json;

use super::StartError;
use super::serving::ModelFacts;
use crate::config::{
    BoundaryRegistration, Config, ContextLimit, EngineKind, KvBytes, LayoutChoice,
};
use crate::decide::prompters::Prompters;
use crate::engine::fake::{self, FakeEngine, FakeOptions};
use crate::engine::{CpuEngine, ReferenceEngine, TensorEngine};
use crate::models::{Progress, Store, ensure, verify};
use crate::prompt::Prompter;
use crate::prompt::fixed::FixedTokens;
use crate::prompt::layout::{self, Profile};
use crate::prompt::tokens::TextTokenizer;
use crate::prompt::tokens::bytes::ByteTokenizer;

/// Share of the free memory that keys and values may take where no size is given.
const KV_SHARE: u64 = 4;
/// Share of a device's free memory, once the weights are on it, that keys and values may take where
/// no size is given: what steps need is bounded, and nothing else wants that memory.
const DEVICE_KV_SHARE: u64 = 2;
/// Bytes for keys and values where free memory cannot be read.
const KV_BYTES_FALLBACK: u64 = 1 << 30;

/// What a model's files turned out to be.
pub(super) enum Opened {
    /// A model that questions can be read from.
    Readable(Box<Loaded>),
    /// One that none can be read from.
    Unreadable {
        /// What it is all the same.
        facts: Box<ModelFacts>,
        /// What it lacks.
        why: String,
    },
}

/// A model, ready to be put behind the actors.
pub(super) struct Loaded {
    pub(super) engine: AnyEngine,
    pub(super) prompters: Prompters,
    pub(super) facts: ModelFacts,
    pub(super) context_tokens: u32,
}

/// The engines that this binary has.
pub(super) enum AnyEngine {
    Cpu(CpuEngine),
    Cuda(TensorEngine),
    Reference(ReferenceEngine),
    Fake(FakeEngine),
}

impl AnyEngine {
    /// Starts the actors over it.
    pub(super) async fn start(self, config: actors::Config) -> Result<Handle, actors::StartError> {
        match self {
            Self::Cpu(engine) => actors::start(Arc::new(engine), config).await,
            Self::Cuda(engine) => actors::start(Arc::new(engine), config).await,
            Self::Reference(engine) => actors::start(Arc::new(engine), config).await,
            Self::Fake(engine) => actors::start(Arc::new(engine), config).await,
        }
    }

    /// Bytes for keys and values where none are given: a share of what is free now where they lie.
    pub(super) fn kv_bytes(&self) -> u64 {
        let (free, share) = match self {
            Self::Cuda(engine) => (engine.device().free_bytes(), DEVICE_KV_SHARE),
            Self::Cpu(_) | Self::Reference(_) | Self::Fake(_) => (free_bytes(), KV_SHARE),
        };
        free.map_or(KV_BYTES_FALLBACK, |free| free / share)
    }
}

/// Finds, before anything is pulled or loaded, what the parts would refuse after it.
pub(super) fn check(config: &Config) -> Result<(), StartError> {
    actor_config(config, KV_BYTES_FALLBACK).validate().map_err(actors::StartError::Config)?;
    profile(config, layout::profile_for("", None))?;
    Ok(())
}

/// Loads what `config` asks for.
pub(super) fn load(config: &Config) -> Result<Opened, StartError> {
    match config.engine.kind {
        EngineKind::Fake => Ok(Opened::Readable(Box::new(fake(config)?))),
        EngineKind::Auto | EngineKind::Cpu | EngineKind::Reference => whole(config),
    }
}

/// Loads the model's files, pulling them first if they are absent, and refuses what is not as it was
/// installed. The hashes are taken meanwhile: both read the same bytes, one of them from the page
/// cache.
fn whole(config: &Config) -> Result<Opened, StartError> {
    let store = Store::new(&config.model.home);
    let model = &config.model.model;
    let path = ensure(&store, model, config.model.offline, &mut Progress::detect())?;
    let (verified, opened) = thread::scope(|scope| {
        let verified = scope.spawn(|| verify(&store, model));
        let opened = weights::open(config, &path);
        (verified.join(), opened)
    });
    // Damage explains a failed load better than the failure itself.
    if let Some(verified) = verified.unwrap_or_else(|panic| resume_unwind(panic))? {
        tracing::info!("verified {} bytes in {:.1?}", verified.bytes, verified.elapsed);
    }
    let mut opened = opened?;
    if let Opened::Readable(loaded) = &mut opened
        && let AnyEngine::Cpu(engine) = &mut loaded.engine
    {
        engine.keep_packed();
    }
    Ok(opened)
}

/// The settings of the actors, with `kv_bytes` for keys and values where the operator set none.
pub(super) fn actor_config(config: &Config, kv_bytes: u64) -> actors::Config {
    let scheduler = &config.scheduler;
    let mut actors = actors::Config::default();
    actors.scheduler.step_tokens_max = scheduler.step_tokens;
    actors.scheduler.rows_max = scheduler.rows_max;
    actors.scheduler.chunk_tokens = scheduler.chunk_tokens;
    actors.scheduler.reads_max = scheduler.reads_max as usize;
    actors.scheduler.tenant_reads_max = scheduler.tenant_reads_max as usize;
    actors.scheduler.tenant_rate = scheduler.tenant_rate;
    actors.scheduler.tenant_burst = scheduler.tenant_burst;
    actors.scheduler.wait_urgent = scheduler.wait_urgent;
    actors.scheduler.wait_normal = scheduler.wait_normal;
    actors.scheduler.wait_batch = scheduler.wait_batch;
    actors.scheduler.order.step_target = scheduler.step_target;
    actors.scheduler.order.raise_after = scheduler.raise_after;
    actors.scheduler.order.age_max = scheduler.age_max;
    actors.scheduler.drain_timeout = config.http.drain_timeout;
    actors.cache.kv_bytes = match scheduler.kv_bytes {
        KvBytes::Exactly(bytes) => bytes,
        KvBytes::OfFreeMemory => kv_bytes,
    };
    let tenants: BTreeSet<_> = config.http.api_keys.iter().map(|key| &key.tenant).collect();
    if tenants.len() < 2 && config.http.keys.is_none() {
        // Nobody else could use what it leaves; a key file may name others at any time.
        actors.cache.pin_tenant_ratio = 1.0;
    }
    actors.registration.when = match scheduler.register_boundary {
        BoundaryRegistration::After | BoundaryRegistration::Before => actors::Register::After,
        BoundaryRegistration::Off => actors::Register::Off,
    };
    actors
}

/// Free memory as the kernel sees it; `None` where it does not say.
fn free_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

fn fake(config: &Config) -> Result<Loaded, StartError> {
    let fake = &config.engine.fake;
    let context_tokens = context(config, fake::CONTEXT_TOKENS)?;
    let options = FakeOptions {
        context_tokens,
        step: Duration::from_millis(fake.step_ms),
        token: Duration::from_micros(fake.token_us),
        faults: fake.faults.0.clone(),
    };
    let bytes: Arc<dyn TextTokenizer> = Arc::new(ByteTokenizer::new());
    let named = ("fake", None);
    let prompters = manners::prompters(config, &bytes, &ByteTokenizer::facts(), named, "fake")?;
    check_room(config, &prompters, context_tokens)?;
    let engine = FakeEngine::start(options).map_err(|e| StartError::System(e.to_string()))?;
    let mut details = json!({ "engine": "fake" });
    manners::details(&prompters, &mut details);
    let facts = facts(config, "no model: answers from a hash, for tests", "", details);
    Ok(Loaded { engine: AnyEngine::Fake(engine), prompters, facts, context_tokens })
}

/// Tokens of the layout's own text: of the head, which is computed once, and of each read behind the
/// state.
fn layout_tokens(prompter: &Prompter) -> serde_json::Value {
    let fixed = prompter.fixed_tokens();
    let listed = |FixedTokens { read, option }| json!({ "read": read, "option": option });
    json!({
        "head": prompter.head().tokens.len(),
        "noul": { "read": fixed.noul.read },
        "choice": listed(fixed.choice),
        "score": listed(fixed.score),
    })
}

/// The profile, with the layout that the operator asked for.
fn profile(config: &Config, profile: Profile) -> Result<Profile, StartError> {
    let LayoutChoice::Named(name) = &config.decision.layout else { return Ok(profile) };
    let layout = layout::layout(name).ok_or_else(|| StartError::Setting {
        flag: "--layout",
        message: format!(
            "{name:?} is none of {}",
            layout::named::LAYOUTS.map(|layout| layout.id).join(", ")
        ),
    })?;
    Ok(Profile { layout, ..profile })
}

/// The context that is served: the operator's, at most the model's.
fn context(config: &Config, model_tokens: u32) -> Result<u32, StartError> {
    match config.model.context {
        ContextLimit::OfModel => Ok(model_tokens),
        ContextLimit::Tokens(tokens) if tokens <= model_tokens => Ok(tokens),
        ContextLimit::Tokens(tokens) => Err(StartError::Setting {
            flag: "--context",
            message: format!("{tokens} is more than the model's {model_tokens}"),
        }),
    }
}

/// Refuses a context without room for a state and a question of one token each: nothing could ever be
/// asked.
fn check_room(
    config: &Config,
    prompters: &Prompters,
    context_tokens: u32,
) -> Result<(), StartError> {
    check_room_of(config, &prompters.profile, context_tokens)?;
    check_room_of(config, &prompters.letters, context_tokens)?;
    for named in prompters.profiles.values() {
        check_room_of(config, named, context_tokens)?;
    }
    check_room_of(config, &prompters.plain, context_tokens)
}

fn check_room_of(
    config: &Config,
    prompter: &Prompter,
    context_tokens: u32,
) -> Result<(), StartError> {
    let head = u32::try_from(prompter.head().tokens.len()).unwrap_or(u32::MAX);
    let fixed = prompter.fixed_tokens();
    let read = fixed.noul.read.min(fixed.choice.of(1)).min(fixed.score.of(2));
    let least = head.saturating_add(read).saturating_add(2);
    if context_tokens >= least {
        return Ok(());
    }
    let fewer = format!("fewer than the {least} that the shortest prompt has ({head} in its head)");
    Err(match config.model.context {
        ContextLimit::Tokens(_) => StartError::Setting {
            flag: "--context",
            message: format!("{context_tokens} tokens are {fewer}"),
        },
        ContextLimit::OfModel => {
            StartError::Engine(format!("its context is {context_tokens} tokens, {fewer}"))
        }
    })
}

fn facts(
    config: &Config,
    description: &str,
    release_date: &str,
    details: serde_json::Value,
) -> ModelFacts {
    ModelFacts {
        served_names: config.model.served_names.clone(),
        description: description.to_owned(),
        release_date: release_date.to_owned(),
        details,
        settings: serde_json::Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::KeysFrom;
    use crate::models::ModelRef;
    use crate::prompt::layout::letters::AnswerSlot;

    #[test]
    fn every_setting_of_the_letters_starts_on_the_fake_engine() {
        let model = ModelRef::parse("smollm2:135m").unwrap();
        let mut config = Config::new(PathBuf::from("home"), model);
        for slot in [AnswerSlot::Template, AnswerSlot::Prefill] {
            config.letters.settings.answer_slot = slot;
            let loaded = fake(&config);
            assert!(loaded.is_ok(), "{slot}: {:?}", loaded.err());
        }
    }

    #[test]
    fn one_tenant_takes_all_pins_only_where_there_can_be_no_other() {
        let model = ModelRef::parse("smollm2:135m").unwrap();
        let mut config = Config::new(PathBuf::from("home"), model);
        let ratio = |config: &Config| actor_config(config, 1 << 30).cache.pin_tenant_ratio;
        let usual = actors::CacheConfig::default().pin_tenant_ratio;
        assert!((ratio(&config) - 1.0).abs() < 1e-12 && usual < 1.0);
        config.http.keys = Some(KeysFrom::File(PathBuf::from("keys.toml")));
        assert!((ratio(&config) - usual).abs() < 1e-12);
    }

    #[test]
    fn a_context_without_room_for_a_prompt_is_refused_with_both_numbers() {
        let model = ModelRef::parse("smollm2:135m").unwrap();
        let mut config = Config::new(PathBuf::from("home"), model);
        let profile = profile(&config, layout::profile_for("fake", None)).unwrap();
        let facts = ByteTokenizer::facts();
        let prompter =
            Prompter::new(Arc::new(ByteTokenizer::new()), &facts, profile, "fake").unwrap();
        let told = check_room_of(&config, &prompter, 1).unwrap_err().to_string();
        assert!(told.contains("its context is 1 tokens, fewer than the "), "{told}");
        let least = told.split("the ").nth(2).and_then(|rest| rest.split(' ').next());
        let least: u32 = least.unwrap().parse().unwrap();
        check_room_of(&config, &prompter, least).unwrap();
        config.model.context = ContextLimit::Tokens(least - 1);
        let told = check_room_of(&config, &prompter, least - 1).unwrap_err().to_string();
        assert!(told.starts_with(&format!("--context: {} tokens are fewer", least - 1)), "{told}");
    }
}
