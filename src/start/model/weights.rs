//! Models with weights: our own engine, the reference, and those that neither can read.

mod cuda;
pub(super) mod remote;

use std::path::Path;
use std::sync::Arc;

use actors::Engine as _;
use serde_json::{Value, json};

use super::{AnyEngine, Loaded, Opened, StartError, check_room, context, facts, manners};
use crate::config::{Config, ContextLimit, DeviceChoice, EngineKind, PrecisionChoice, Readout};
use crate::decide::prompters::Prompters;
use crate::engine::kernels::{Level, Precision};
use crate::engine::{CpuEngine, EngineOptions, LoadError, Packed, PackedFolder, ReferenceEngine};
use crate::files::{self, Architecture, ModelFiles, Nature, PromptFiles, Witness};
use crate::models::catalogue;
use crate::prompt::PromptError;
use crate::prompt::tokens::TextTokenizer;
use crate::prompt::tokens::model::ModelTokenizer;

/// Opens a model on the engine that is asked for or, by itself, on the one that has its architecture.
pub(super) fn open(config: &Config, path: &Path) -> Result<Opened, StartError> {
    let loaded = match files::nature(path)? {
        Nature::NotCausal(architecture) => {
            let why = format!("{architecture} is not causal: no next token comes out of it");
            return Ok(unreadable(config, &architecture, why));
        }
        Nature::Foreign(architecture) => match config.engine.kind {
            EngineKind::Cpu => Err(StartError::Setting {
                flag: "--engine",
                message: format!(
                    "cpu has no architecture {architecture}; reference has it, and is taken for it \
                     where no engine is named"
                ),
            }),
            EngineKind::Auto
            | EngineKind::Reference
            | EngineKind::Vllm
            | EngineKind::Sglang
            | EngineKind::LlamaServer
            | EngineKind::Fake => match config.engine.device {
                DeviceChoice::Cpu => foreign(config, path, &architecture),
                DeviceChoice::Cuda(_) => Err(no_device_for(config, &architecture)),
            },
        },
        Nature::Decoder => match config.engine.kind {
            EngineKind::Reference => reference(config, path),
            EngineKind::Auto
            | EngineKind::Cpu
            | EngineKind::Vllm
            | EngineKind::Sglang
            | EngineKind::LlamaServer
            | EngineKind::Fake => match config.engine.device {
                DeviceChoice::Cpu => cpu(config, path),
                DeviceChoice::Cuda(number) => cuda::open(config, path, number),
            },
        },
    };
    match loaded {
        Ok(loaded) => Ok(Opened::Readable(Box::new(loaded))),
        Err(StartError::Prompt(error @ PromptError::Labels { .. })) => {
            Ok(unreadable(config, "", error.to_string()))
        }
        Err(error) => Err(error),
    }
}

/// A model that no question can be read from.
fn unreadable(config: &Config, architecture: &str, why: String) -> Opened {
    let name = config.model.model.served_name();
    tracing::warn!("{name} answers no questions, every one is refused: {why}");
    let details = json!({
        "engine": null, "architecture": architecture, "read_strategy": null, "reason": why,
    });
    let (title, release_date) = title(&name);
    let description = format!("{title} (answers no questions: {why})");
    let facts = Box::new(facts(config, &description, release_date, details));
    Opened::Unreadable { facts, why }
}

/// A model on our own engine.
fn cpu(config: &Config, path: &Path) -> Result<Loaded, StartError> {
    tracing::info!("opening {}", path.display());
    // Before anything is read: what is packed is kept only if nothing changes from here on.
    let witness = Witness::of(path)?;
    let ModelFiles { config: decoder, tokenizer, prompt, tensors, fingerprint, .. } =
        files::open(path)?;
    let parts = PromptFiles { tokenizer, prompt, fingerprint, rows: Some(decoder.vocab) };
    let prompters = prompters(config, path, &parts, Some(decoder.architecture))?;
    let context_tokens = context(config, u32::try_from(decoder.context).unwrap_or(u32::MAX))?;
    check_room(config, &prompters, context_tokens)?;
    let packed = packed(config, path, witness)?;
    let options = EngineOptions { packed, ..options(config, Some(context_tokens)) };
    let (layers, precision, threads) = (decoder.layers, options.precision, options.threads);
    tracing::info!("loading weights: {layers} layers, {precision}, {threads} threads");
    let engine = CpuEngine::load(&decoder, &*tensors, &options, &mut tenths())
        .map_err(|error| failed(&error))?;
    let memory = engine.memory();
    let details = json!({
        "engine": "cpu",
        "cpu_features": engine.features(),
        "precision": options.precision.name(),
        "kv_stored_as": engine.kv_stored_as(),
        "threads": options.threads,
        "architecture": format!("{:?}", decoder.architecture).to_lowercase(),
        "layers": decoder.layers,
        "hidden": decoder.hidden,
        "vocabulary": decoder.vocab,
        "memory": {
            "weights_bytes": memory.weights_bytes,
            "scratch_bytes": memory.scratch_bytes,
            "kv_bytes_per_token": memory.kv_bytes_per_token,
        },
    });
    Ok(loaded(config, AnyEngine::Cpu(engine), prompters, &parts, (context_tokens, details)))
}

/// Tells the log of every tenth of the tensors.
fn tenths() -> impl FnMut(usize, usize) {
    let mut said = 0;
    move |done, total| {
        let tenths = done * 10 / total.max(1);
        if tenths > said {
            said = tenths;
            tracing::info!("loading weights: {} %", tenths * 10);
        }
    }
}

/// Why a model of an architecture that only the reference engine has is on no device.
fn no_device_for(config: &Config, architecture: &str) -> StartError {
    let device = config.engine.device;
    StartError::Setting {
        flag: "--device",
        message: format!(
            "the cuda engine has no architecture {architecture}, so nothing can run on {device}; on \
             the cpu the reference engine has it"
        ),
    }
}

/// A model of an architecture that only the reference engine has.
fn foreign(config: &Config, path: &Path, architecture: &str) -> Result<Loaded, StartError> {
    let why = format!("the cpu engine has no architecture {architecture}");
    warn_of_reference(config, &why);
    let (prompters, parts) = unread(config, path)?;
    let options = options(config, wanted_context(config));
    let (engine, precision) = if path.is_dir() {
        (ReferenceEngine::open_folder(path, &options), "f32")
    } else {
        (ReferenceEngine::open_gguf(path, &options), "the file's")
    };
    let engine = engine.map_err(|error| failed(&error))?;
    let details = json!({
        "precision": precision,
        "architecture": architecture,
        "reason": why,
    });
    referred(config, engine, prompters, &parts, details)
}

/// Tells the log, once a start, what whoever compares speeds should know.
fn warn_of_reference(config: &Config, why: &str) {
    let name = config.model.model.served_name();
    tracing::warn!(
        "{name} runs on the reference engine ({why}): slower, and no read shares anything with another"
    );
}

/// A model of ours on the reference engine, because that was asked for.
fn reference(config: &Config, path: &Path) -> Result<Loaded, StartError> {
    let why = "--engine reference";
    warn_of_reference(config, why);
    let options = options(config, wanted_context(config));
    let (engine, prompters, parts) = if path.is_dir() {
        let (prompters, parts) = unread(config, path)?;
        (ReferenceEngine::open_folder(path, &options), prompters, parts)
    } else {
        let ModelFiles { config: decoder, tokenizer, prompt, tensors, fingerprint, .. } =
            files::open(path)?;
        let context_tokens = context(config, u32::try_from(decoder.context).unwrap_or(u32::MAX))?;
        let parts = PromptFiles { tokenizer, prompt, fingerprint, rows: Some(decoder.vocab) };
        let prompters = prompters(config, path, &parts, Some(decoder.architecture))?;
        check_room(config, &prompters, context_tokens)?;
        (ReferenceEngine::load(&decoder, Arc::from(tensors), &options), prompters, parts)
    };
    let engine = engine.map_err(|error| failed(&error))?;
    let details = json!({ "precision": "f32", "reason": why });
    referred(config, engine, prompters, &parts, details)
}

/// What the reference engine needs beside a model that it opens by itself, and whatever can be found
/// wrong with the settings before it does.
fn unread(config: &Config, path: &Path) -> Result<(Prompters, PromptFiles), StartError> {
    let context_tokens = ReferenceEngine::context_tokens(path).map_err(|error| failed(&error))?;
    let context_tokens = context(config, context_tokens)?;
    let parts = files::open_prompt(path)?;
    let prompters = prompters(config, path, &parts, None)?;
    check_room(config, &prompters, context_tokens)?;
    Ok((prompters, parts))
}

/// Joins the parts of a model on the reference engine, and says what that means.
fn referred(
    config: &Config,
    engine: ReferenceEngine,
    prompters: Prompters,
    parts: &PromptFiles,
    mut details: Value,
) -> Result<Loaded, StartError> {
    details["engine"] = "reference".into();
    details["shared"] = "nothing: each read computes its whole prompt".into();
    let context_tokens = context(config, engine.caps().context_tokens)?;
    Ok(loaded(config, AnyEngine::Reference(engine), prompters, parts, (context_tokens, details)))
}

fn failed(error: &LoadError) -> StartError {
    StartError::Engine(error.to_string())
}

fn wanted_context(config: &Config) -> Option<u32> {
    match config.model.context {
        ContextLimit::OfModel => None,
        ContextLimit::Tokens(tokens) => Some(tokens),
    }
}

fn options(config: &Config, context_tokens: Option<u32>) -> EngineOptions {
    EngineOptions {
        threads: config.engine.threads as usize,
        context_tokens,
        // The scheduler keeps steps to its own budget; one suffix may be as long as the context.
        step_tokens_max: context_tokens.unwrap_or(u32::MAX),
        step_tokens_usual: config.scheduler.step_tokens,
        rows_max: config.scheduler.rows_max,
        readout_rows_only: config.engine.readout == Readout::Rows,
        precision: precision(config),
        ..EngineOptions::default()
    }
}

/// Where packed weights of this model are kept. They are found by the hash of all its bytes, so
/// that a changed file is never served from what was packed of the old one.
fn packed(config: &Config, path: &Path, witness: Witness) -> Result<Option<Packed>, StartError> {
    let bytes_max = config.engine.packed_bytes_max;
    if bytes_max == 0 {
        return Ok(None);
    }
    let folder = PackedFolder { folder: config.model.home.join("packed"), bytes_max };
    Ok(Some(Packed { folder, hash: files::hash(path)?, witness }))
}

/// The precision asked for. `auto` takes what the quality bench justified for the model (see
/// docs/BENCHMARKS.md), where the CPU computes it faster than `f32`.
fn precision(config: &Config) -> Precision {
    match config.engine.precision {
        PrecisionChoice::F32 => Precision::F32,
        PrecisionChoice::Bf16 => Precision::Bf16,
        PrecisionChoice::Int8 => Precision::Int8,
        PrecisionChoice::Auto if config.engine.device != DeviceChoice::Cpu => Precision::Bf16,
        PrecisionChoice::Auto => {
            let level = Level::detect();
            let known = catalogue::by_name(&config.model.model.served_name());
            match known {
                Some(model) if model.int8_justified && level.has_int8_dot() => Precision::Int8,
                _ if level.has_fast_bf16_dot() => Precision::Bf16,
                _ => Precision::F32,
            }
        }
    }
}

fn prompters(
    config: &Config,
    path: &Path,
    parts: &PromptFiles,
    architecture: Option<Architecture>,
) -> Result<Prompters, StartError> {
    let tokenizer = ModelTokenizer::new(path, &parts.tokenizer)?;
    if let Some(rows) = parts.rows {
        tokenizer.check_rows(path, rows)?;
    }
    let tokenizer: Arc<dyn TextTokenizer> = Arc::new(tokenizer);
    let name = config.model.model.served_name();
    let named = (name.as_str(), architecture);
    manners::prompters(config, &tokenizer, &parts.prompt, named, &parts.fingerprint)
}

/// Joins the parts, and says what operators should know of the model.
fn loaded(
    config: &Config,
    engine: AnyEngine,
    prompters: Prompters,
    parts: &PromptFiles,
    (context_tokens, mut details): (u32, Value),
) -> Loaded {
    details["context_tokens"] = context_tokens.into();
    details["fingerprint"] = parts.fingerprint.as_str().into();
    manners::details(&prompters, &mut details);
    let name = config.model.model.served_name();
    let known = catalogue::by_name(&name);
    if let Some(note) = known.map(|model| model.note).filter(|note| !note.is_empty()) {
        tracing::info!("{name}: {note}");
    }
    let (title, release_date) = title(&name);
    let facts = facts(config, &title, release_date, details);
    Loaded { engine, prompters, facts, context_tokens }
}

/// The model's title and release date in the catalogue, else its name and nothing.
fn title(name: &str) -> (String, &'static str) {
    match catalogue::by_name(name) {
        Some(model) => (model.title.to_owned(), model.release_date),
        None => (name.to_owned(), ""),
    }
}
