//! Safetensors folders of any dense architecture that candle-transformers has in `f32`.
//!
//! `config.json` goes straight into candle's own configuration types, and tensors by their names in
//! the files into candle's model: nothing of ours lies between, which is what an oracle needs.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use candle_core::{CpuStorage, DType, Device, Storage, Tensor, WithDType};
use candle_nn::VarBuilder;
use candle_transformers::models::{gemma, gemma2, gemma3, llama, mistral, olmo, phi3, qwen2};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Forward, Oracle, ReferenceEngine, adapters};
use crate::engine::{EngineOptions, LoadError, narrow};
use crate::files::{FilesError, finite, regular};

/// Values that are looked at as `f32` at a time.
const VALUES_AT_ONCE: usize = 1 << 16;

/// Opens the folder's model.
pub(super) fn open(path: &Path, options: &EngineOptions) -> Result<Oracle, LoadError> {
    let file = path.join("config.json");
    let mut settings = Settings::read(file)?;
    let context = settings.limit_context(options.context_tokens)?;
    let vocab = settings.number("vocab_size")?;
    let variables = VarBuilder::from_tensors(tensors(path)?, DType::F32, &Device::Cpu);
    let forward = build(&settings, variables)?;
    Ok(Oracle { forward, vocab, context })
}

/// Tokens that the folder's model can be asked for.
pub(super) fn context(path: &Path) -> Result<usize, LoadError> {
    Settings::read(path.join("config.json"))?.limit_context(None)
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
    fn limit_context(&mut self, wanted: Option<u32>) -> Result<usize, LoadError> {
        let mut context = self.number("max_position_embeddings")?;
        if let Some(wanted) = wanted {
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
        add(&mut tensors, &path, shard.map_err(|error| format(&path, &error))?)?;
    }
    if tensors.is_empty() {
        return Err(format(folder, &"no tensors in *.safetensors"));
    }
    Ok(tensors)
}

/// Adds the tensors of a file, each of which must be the only one of its name, and finite.
fn add(
    tensors: &mut HashMap<String, Tensor>,
    path: &Path,
    shard: HashMap<String, Tensor>,
) -> Result<(), LoadError> {
    for (name, tensor) in shard {
        check_finite(path, &name, &tensor)?;
        if tensors.contains_key(&name) {
            let message = format!("tensor {name} is in another file of the folder too");
            return Err(format(path, &message));
        }
        tensors.insert(name, tensor);
    }
    Ok(())
}

/// Looks at the values as `f32`, which they are computed in; whole numbers always are finite.
fn check_finite(path: &Path, name: &str, tensor: &Tensor) -> Result<(), FilesError> {
    let (storage, _) = tensor.storage_and_layout();
    let Storage::Cpu(storage) = &*storage else { return Ok(()) };
    match storage {
        CpuStorage::F32(values) => finite(path, name, values),
        CpuStorage::F16(values) => check_as_f32(path, name, values),
        CpuStorage::BF16(values) => check_as_f32(path, name, values),
        CpuStorage::F64(values) => check_as_f32(path, name, values),
        CpuStorage::F8E4M3(values) => check_as_f32(path, name, values),
        CpuStorage::U8(_)
        | CpuStorage::U32(_)
        | CpuStorage::I16(_)
        | CpuStorage::I32(_)
        | CpuStorage::I64(_)
        // Of these candle makes no f32.
        | CpuStorage::F6E2M3(_)
        | CpuStorage::F6E3M2(_)
        | CpuStorage::F4(_)
        | CpuStorage::F8E8M0(_) => Ok(()),
    }
}

fn check_as_f32<T: WithDType>(path: &Path, name: &str, values: &[T]) -> Result<(), FilesError> {
    for few in values.chunks(VALUES_AT_ONCE) {
        let few: Vec<f32> = few.iter().map(|value| narrow(value.to_f64())).collect();
        finite(path, name, &few)?;
    }
    Ok(())
}

fn format(path: &Path, message: &dyn std::fmt::Display) -> LoadError {
    FilesError::Format { path: path.to_owned(), message: message.to_string() }.into()
}

fn unsupported(settings: &Settings, message: String) -> LoadError {
    FilesError::Unsupported { path: settings.path.clone(), message }.into()
}
