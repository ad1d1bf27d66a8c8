//! Safetensors folders of any dense architecture that candle-transformers has in `f32`.
//!
//! `config.json` goes straight into candle's own configuration types, and tensors by their names in
//! the files into candle's model: nothing of ours lies between, which is what an oracle needs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{gemma, gemma2, gemma3, llama, mistral, olmo, phi3, qwen2};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Forward, Oracle, ReferenceEngine, adapters};
use crate::engine::{EngineOptions, LoadError};
use crate::files::{FilesError, regular};

/// Opens the folder's model.
pub(super) fn open(path: &Path, options: &EngineOptions) -> Result<Oracle, LoadError> {
    let file = path.join("config.json");
    let mut settings = Settings::read(file)?;
    let context = settings.limit_context(options)?;
    let vocab = settings.number("vocab_size")?;
    let variables = VarBuilder::from_tensors(tensors(path)?, DType::F32, &Device::Cpu);
    let forward = build(&settings, variables)?;
    Ok(Oracle { forward, vocab, context })
}

/// `config.json`.
struct Settings {
    path: PathBuf,
    values: Value,
}

impl Settings {
    fn read(path: PathBuf) -> Result<Self, LoadError> {
        regular(&path)?;
        let text = fs::read_to_string(&path)
            .map_err(|source| FilesError::Io { path: path.clone(), source })?;
        let values: Value = serde_json::from_str(&text).map_err(|error| format(&path, &error))?;
        let mut settings = Self { path, values };
        // Either a number or a list, which serde cannot tell apart with exact numbers; not needed.
        if let Some(object) = settings.values.as_object_mut() {
            object.retain(|key, _| key != "bos_token_id" && key != "eos_token_id");
        }
        Ok(settings)
    }

    /// Lowers the context to what is wanted and what candle's masks do right; returns it.
    fn limit_context(&mut self, options: &EngineOptions) -> Result<usize, LoadError> {
        let mut context = self.number("max_position_embeddings")?;
        if let Some(wanted) = options.context_tokens {
            context = context.min(wanted as usize);
        }
        // candle's windows are one key wider than the models' (or missing): stay inside them.
        if matches!(self.model_type(), "mistral" | "gemma2" | "phi3")
            && let Ok(window) = self.number("sliding_window")
        {
            context = context.min(window);
        }
        self.values["max_position_embeddings"] = Value::from(context);
        Ok(context)
    }

    fn model_type(&self) -> &str {
        self.values["model_type"].as_str().unwrap_or("")
    }

    fn number(&self, key: &str) -> Result<usize, LoadError> {
        let number = self.values[key].as_u64().and_then(|number| usize::try_from(number).ok());
        number.ok_or_else(|| format(&self.path, &format!("{key} is no whole number")))
    }

    fn parse<C: DeserializeOwned>(&self) -> Result<C, LoadError> {
        serde_json::from_value(self.values.clone()).map_err(|error| format(&self.path, &error))
    }
}

/// Builds the model that `model_type` names.
fn build(settings: &Settings, variables: VarBuilder<'static>) -> Result<Forward, LoadError> {
    let forward = match settings.model_type() {
        "llama" => {
            let config: llama::LlamaConfig = settings.parse()?;
            adapters::llama_forward(&config.into_config(false), variables)
        }
        "qwen2" => {
            let mut config: qwen2::Config = settings.parse()?;
            // candle masks by the width even where the model says that there is no window.
            if !config.use_sliding_window {
                config.sliding_window = config.max_position_embeddings;
            }
            adapters::qwen2_forward(&config, variables)
        }
        "qwen3" => adapters::qwen3_forward(&settings.parse()?, variables),
        "gemma3_text" => {
            let mut config: gemma3::Config = settings.parse()?;
            // candle's mask is one key wider than the model's.
            config.sliding_window = config.sliding_window.saturating_sub(1).max(1);
            adapters::gemma3_forward(&config, variables)
        }
        _ => build_other(settings, variables)?,
    };
    forward.map_err(|error| format(&settings.path, &error))
}

/// Builds a forward function of a model with candle's usual three functions.
macro_rules! forward {
    ($model:expr) => {
        $model.map(|mut model| -> Forward {
            Box::new(move |ids| {
                model.clear_kv_cache();
                model.forward(ids, 0)
            })
        })
    };
}

/// The architectures that the `cpu` engine does not know.
fn build_other(
    settings: &Settings,
    variables: VarBuilder<'static>,
) -> Result<candle_core::Result<Forward>, LoadError> {
    Ok(match settings.model_type() {
        "gemma" => forward!(gemma::Model::new(false, &settings.parse()?, variables)),
        "gemma2" => forward!(gemma2::Model::new(false, &settings.parse()?, variables)),
        "mistral" => forward!(mistral::Model::new(&settings.parse()?, variables)),
        "olmo" => forward!(olmo::Model::new(&settings.parse()?, variables)),
        "phi3" => {
            let config: phi3::Config = settings.parse()?;
            if config.rope_scaling.is_some() {
                let what = "phi3 with rope_scaling is not supported by the reference engine";
                return Err(unsupported(settings, what.to_owned()));
            }
            forward!(phi3::Model::new(&config, variables))
        }
        other => {
            let known = ReferenceEngine::MODEL_TYPES.join(", ");
            return Err(unsupported(settings, format!("model_type {other:?} is none of {known}")));
        }
    })
}

/// All tensors of the folder's safetensors files.
fn tensors(folder: &Path) -> Result<HashMap<String, Tensor>, LoadError> {
    let io = |source| FilesError::Io { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(io)?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(io)?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort();
    let mut tensors = HashMap::new();
    for path in paths {
        regular(&path)?;
        let shard = candle_core::safetensors::load(&path, &Device::Cpu);
        tensors.extend(shard.map_err(|error| format(&path, &error))?);
    }
    if tensors.is_empty() {
        return Err(format(folder, &"no tensors in *.safetensors"));
    }
    Ok(tensors)
}

fn format(path: &Path, message: &dyn std::fmt::Display) -> LoadError {
    FilesError::Format { path: path.to_owned(), message: message.to_string() }.into()
}

fn unsupported(settings: &Settings, message: String) -> LoadError {
    FilesError::Unsupported { path: settings.path.clone(), message }.into()
}
