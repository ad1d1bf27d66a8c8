//! A model on a CUDA device.

use std::path::Path;

use serde_json::json;

use super::super::{AnyEngine, Loaded, StartError, check_room, context};
use super::{failed, loaded, options, prompters, tenths};
use crate::config::Config;
use crate::engine::{EngineOptions, TensorDevice, TensorEngine};
use crate::files::{self, ModelFiles, PromptFiles};

/// A model of one of our architectures on the CUDA device of this number.
pub(super) fn open(config: &Config, path: &Path, number: u32) -> Result<Loaded, StartError> {
    tracing::info!("opening {}", path.display());
    let ModelFiles { config: decoder, tokenizer, prompt, tensors, fingerprint, .. } =
        files::open(path)?;
    let parts = PromptFiles { tokenizer, prompt, fingerprint, rows: Some(decoder.vocab) };
    let prompters = prompters(config, path, &parts, Some(decoder.architecture))?;
    let context_tokens = context(config, u32::try_from(decoder.context).unwrap_or(u32::MAX))?;
    check_room(config, &prompters, context_tokens)?;
    let device = TensorDevice::cuda(number as usize).map_err(|error| failed(&error))?;
    let facts = device.facts();
    let options = EngineOptions { threads: 1, ..options(config, Some(context_tokens)) };
    let (layers, precision) = (decoder.layers, options.precision);
    tracing::info!(
        "loading weights: {layers} layers, {precision}, onto cuda:{number}, {}",
        facts.name
    );
    let engine = TensorEngine::load(&decoder, &*tensors, &device, &options, &mut tenths());
    let engine = engine.map_err(|error| failed(&error))?;
    let memory = engine.memory();
    let details = json!({
        "engine": "cuda",
        "device": {
            "id": format!("cuda:{number}"),
            "name": facts.name,
            "memory_bytes": facts.memory_bytes,
        },
        "precision": precision.name(),
        "kv_stored_as": precision.name(),
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
    Ok(loaded(config, AnyEngine::Cuda(engine), prompters, &parts, (context_tokens, details)))
}
