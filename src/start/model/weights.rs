//! Models with weights: our own engine, and the reference.

use std::path::Path;
use std::sync::Arc;

use actors::Engine as _;
use serde_json::{Value, json};

use super::{AnyEngine, Loaded, StartError, context, facts, profile};
use crate::config::{Config, ContextLimit, PrecisionChoice, Readout};
use crate::engine::kernels::{Level, Precision};
use crate::engine::{CpuEngine, EngineOptions, Packed, PackedFolder, ReferenceEngine};
use crate::files::{self, DecoderConfig, ModelFiles, PromptFiles};
use crate::models::catalogue;
use crate::prompt::Prompter;
use crate::prompt::layout;
use crate::prompt::tokens::model::ModelTokenizer;

/// A model on our own engine.
pub(super) fn cpu(config: &Config, path: &Path) -> Result<Loaded, StartError> {
    tracing::info!("opening {}", path.display());
    let ModelFiles { config: decoder, tokenizer, prompt, tensors, fingerprint, .. } =
        files::open(path)?;
    tracing::info!("loading weights: {} layers", decoder.layers);
    let parts = PromptFiles { tokenizer, prompt, fingerprint };
    let prompter = prompter(config, path, &parts, Some(&decoder))?;
    let context_tokens = context(config, u32::try_from(decoder.context).unwrap_or(u32::MAX))?;
    let packed = packed(config, path)?;
    let options = EngineOptions { packed, ..options(config, Some(context_tokens)) };
    let mut said = 0;
    let mut progress = |done: usize, total: usize| {
        let tenths = done * 10 / total.max(1);
        if tenths > said {
            said = tenths;
            tracing::info!("loading weights: {} %", tenths * 10);
        }
    };
    let engine = CpuEngine::load(&decoder, &*tensors, &options, &mut progress)
        .map_err(|error| StartError::Engine(error.to_string()))?;
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
    Ok(loaded(config, AnyEngine::Cpu(engine), prompter, &parts, (context_tokens, details)))
}

/// A model on the reference engine: also folders of dense architectures that ours does not know.
pub(super) fn reference(config: &Config, path: &Path) -> Result<Loaded, StartError> {
    let wanted = match config.model.context {
        ContextLimit::OfModel => None,
        ContextLimit::Tokens(tokens) => Some(tokens),
    };
    let options = options(config, wanted);
    let failed = |error: crate::engine::LoadError| StartError::Engine(error.to_string());
    let (engine, parts, decoder) = if path.is_dir() {
        let engine = ReferenceEngine::open_folder(path, &options).map_err(failed)?;
        (engine, files::open_prompt(path)?, None)
    } else {
        let ModelFiles { config: decoder, tokenizer, prompt, tensors, fingerprint, .. } =
            files::open(path)?;
        let engine =
            ReferenceEngine::load(&decoder, Arc::from(tensors), &options).map_err(failed)?;
        let parts = PromptFiles { tokenizer, prompt, fingerprint };
        (engine, parts, Some(decoder))
    };
    let prompter = prompter(config, path, &parts, decoder.as_ref())?;
    let context_tokens = context(config, engine.caps().context_tokens)?;
    let details = json!({ "engine": "reference", "precision": "f32" });
    Ok(loaded(config, AnyEngine::Reference(engine), prompter, &parts, (context_tokens, details)))
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
fn packed(config: &Config, path: &Path) -> Result<Option<Packed>, StartError> {
    let bytes_max = config.engine.packed_bytes_max;
    if bytes_max == 0 {
        return Ok(None);
    }
    let folder = PackedFolder { folder: config.model.home.join("packed"), bytes_max };
    Ok(Some(Packed { folder, hash: files::hash(path)? }))
}

/// The precision asked for. `auto` takes what the quality bench justified for the model (see
/// docs/BENCHMARKS.md), where the CPU computes it faster than `f32`.
fn precision(config: &Config) -> Precision {
    match config.engine.precision {
        PrecisionChoice::F32 => Precision::F32,
        PrecisionChoice::Bf16 => Precision::Bf16,
        PrecisionChoice::Int8 => Precision::Int8,
        PrecisionChoice::Auto => {
            let level = Level::detect();
            let known = catalogue::by_name(&config.model.model.served_name());
            match known {
                Some(model) if model.int8_justified && level.has_int8_dot() => Precision::Int8,
                _ if level.has_bf16_dot() => Precision::Bf16,
                _ => Precision::F32,
            }
        }
    }
}

fn prompter(
    config: &Config,
    path: &Path,
    parts: &PromptFiles,
    decoder: Option<&DecoderConfig>,
) -> Result<Prompter, StartError> {
    let name = config.model.model.served_name();
    let architecture = decoder.map(|decoder| decoder.architecture);
    let profile = profile(config, layout::profile_for(&name, architecture))?;
    let tokenizer = ModelTokenizer::new(path, &parts.tokenizer)?;
    if let Some(decoder) = decoder {
        tokenizer.check_rows(path, decoder.vocab)?;
    }
    Ok(Prompter::new(Arc::new(tokenizer), &parts.prompt, profile, &parts.fingerprint)?)
}

/// Joins the parts, and says what operators should know of the model.
fn loaded(
    config: &Config,
    engine: AnyEngine,
    prompter: Prompter,
    parts: &PromptFiles,
    (context_tokens, mut details): (u32, Value),
) -> Loaded {
    details["context_tokens"] = context_tokens.into();
    details["fingerprint"] = parts.fingerprint.as_str().into();
    details["layout"] = prompter.layout_id().into();
    details["profile"] = prompter.profile().name.into();
    details["labels"] = prompter.label_codes().len().into();
    let name = config.model.model.served_name();
    let known = catalogue::by_name(&name);
    if let Some(note) = known.map(|model| model.note).filter(|note| !note.is_empty()) {
        tracing::info!("{name}: {note}");
    }
    let description = known.map_or_else(|| name.clone(), |model| model.title.to_owned());
    let release_date = known.map_or("", |model| model.release_date);
    let facts = facts(config, &description, release_date, details);
    Loaded { engine, prompter, facts, context_tokens }
}
