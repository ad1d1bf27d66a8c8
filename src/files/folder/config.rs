//! A decoder's configuration from a Hugging Face `config.json`.
//!
//! The file is read into candle-transformers' own configuration types, so that both engines see one
//! reading of it. Fields that Hugging Face leaves out when they have their default are filled in
//! first; what changes the computation and is not supported is refused, not ignored.

use std::path::Path;

use candle_nn::Activation as CandleActivation;
use candle_transformers::models::{gemma3, llama, qwen2, qwen3};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::super::nature::FOREIGN_FOLDERS;
use super::super::{Activation, Architecture, DecoderConfig, FilesError};
use super::rope::{Ropes, read_ropes};

/// Names in `model_type`.
const MODEL_TYPES: [(&str, Architecture); 4] = [
    ("llama", Architecture::Llama),
    ("qwen2", Architecture::Qwen2),
    ("qwen3", Architecture::Qwen3),
    ("gemma3_text", Architecture::Gemma3),
];

/// Fields that are counts.
const COUNTS: [&str; 10] = [
    "hidden_size",
    "intermediate_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "vocab_size",
    "max_position_embeddings",
    "sliding_window",
    "query_pre_attn_scalar",
];

/// A `config.json` being read.
pub(super) struct ConfigFile<'a> {
    pub(super) path: &'a Path,
    pub(super) root: Map<String, Value>,
}

/// Reads the configuration.
pub(super) fn read(path: &Path, text: &str) -> Result<DecoderConfig, FilesError> {
    let root: Value = serde_json::from_str(text)
        .map_err(|error| FilesError::format(path, format!("not JSON: {error}")))?;
    let Value::Object(root) = root else {
        return Err(FilesError::format(path, "not a JSON object"));
    };
    let mut file = ConfigFile { path, root };
    let architecture = file.architecture()?;
    file.check_counts()?;
    let ropes = read_ropes(&file, architecture)?;
    file.refuse_unsupported()?;
    file.fill(architecture);
    file.root.insert("rope_theta".to_owned(), json!(ropes.full.theta));
    match architecture {
        Architecture::Llama => file.llama(ropes),
        Architecture::Qwen2 => file.qwen2(ropes),
        Architecture::Qwen3 => file.qwen3(ropes),
        Architecture::Gemma3 => file.gemma3(ropes),
    }
}

impl ConfigFile<'_> {
    fn architecture(&self) -> Result<Architecture, FilesError> {
        let name = self.root.get("model_type").and_then(Value::as_str).unwrap_or("of no name");
        let known = MODEL_TYPES.iter().find(|(known, _)| *known == name);
        known.map(|(_, architecture)| *architecture).ok_or_else(|| {
            let message = format!(
                "the model type {name} is not supported; supported are {} and, by the reference \
                 engine, {}",
                MODEL_TYPES.map(|(name, _)| name).join(", "),
                FOREIGN_FOLDERS.join(", ")
            );
            self.unsupported(message)
        })
    }

    pub(super) fn unsupported(&self, message: impl Into<String>) -> FilesError {
        FilesError::unsupported(self.path, message)
    }

    pub(super) fn fault(&self, message: impl Into<String>) -> FilesError {
        FilesError::format(self.path, message)
    }

    fn flag(&self, key: &str) -> Option<bool> {
        self.root.get(key).and_then(Value::as_bool)
    }

    pub(super) fn count(&self, key: &str) -> Option<usize> {
        let number = self.root.get(key).and_then(Value::as_u64)?;
        usize::try_from(number).ok()
    }

    /// serde's own message would not name the field.
    fn check_counts(&self) -> Result<(), FilesError> {
        let given = COUNTS.iter().filter_map(|key| Some((key, self.root.get(*key)?)));
        let mut wrong = given.filter(|(_, value)| !value.is_null() && value.as_u64().is_none());
        match wrong.next() {
            None => Ok(()),
            Some((key, value)) => {
                Err(self.fault(format!("{key} is {value}; a whole number is wanted")))
            }
        }
    }

    fn refuse_unsupported(&self) -> Result<(), FilesError> {
        for key in ["attention_bias", "mlp_bias", "use_sliding_window"] {
            if self.flag(key) == Some(true) {
                return Err(self.unsupported(format!("{key} is not supported")));
            }
        }
        for key in ["final_logit_softcapping", "attn_logit_softcapping", "quantization_config"] {
            if self.root.get(key).is_some_and(|value| !value.is_null()) {
                return Err(self.unsupported(format!("{key} is not supported")));
            }
        }
        Ok(())
    }

    /// Puts in the defaults of Hugging Face's configuration classes, and takes out what candle's
    /// types would stumble over (its token ids do not survive `serde_json`'s exact numbers).
    fn fill(&mut self, architecture: Architecture) {
        for key in ["bos_token_id", "eos_token_id", "rope_scaling", "rope_parameters"] {
            self.root.remove(key);
        }
        let heads = self.root.get("num_attention_heads").cloned().unwrap_or(Value::Null);
        let shared = json!({ "num_key_value_heads": heads, "attention_bias": false });
        let special = match architecture {
            Architecture::Llama => json!({
                "rms_norm_eps": 1e-6, "max_position_embeddings": 2048, "hidden_act": "silu",
                "tie_word_embeddings": false,
            }),
            Architecture::Qwen2 | Architecture::Qwen3 => json!({
                "rms_norm_eps": 1e-6, "max_position_embeddings": 32_768, "hidden_act": "silu",
                "tie_word_embeddings": false, "sliding_window": 4096, "max_window_layers": 28,
                "use_sliding_window": false, "head_dim": 128,
            }),
            Architecture::Gemma3 => json!({
                "rms_norm_eps": 1e-6, "max_position_embeddings": 131_072, "vocab_size": 262_208,
                "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": true,
                "head_dim": 256, "query_pre_attn_scalar": 256, "rope_local_base_freq": 10_000.0,
                "sliding_window": 4096, "sliding_window_pattern": 6,
            }),
        };
        if let Some(pattern) = self.root.get("_sliding_window_pattern").cloned() {
            self.root.entry("sliding_window_pattern").or_insert(pattern);
        }
        for defaults in [special, shared] {
            let Value::Object(defaults) = defaults else { continue };
            self.root.retain(|_, value| !value.is_null());
            for (key, value) in defaults {
                self.root.entry(key).or_insert(value);
            }
        }
    }

    fn typed<T: DeserializeOwned>(&self) -> Result<T, FilesError> {
        serde_json::from_value(Value::Object(self.root.clone()))
            .map_err(|error| self.fault(error.to_string()))
    }

    fn activation(&self, activation: CandleActivation) -> Result<Activation, FilesError> {
        if activation == CandleActivation::Silu {
            Ok(Activation::Silu)
        } else if matches!(
            activation,
            CandleActivation::GeluPytorchTanh | CandleActivation::NewGelu
        ) {
            Ok(Activation::GeluTanh)
        } else {
            Err(self.unsupported(format!(
                "the activation {activation:?} is not supported; supported are silu and \
                 gelu_pytorch_tanh"
            )))
        }
    }

    fn llama(&self, ropes: Ropes) -> Result<DecoderConfig, FilesError> {
        let typed: llama::LlamaConfig = self.typed()?;
        let activation: CandleActivation = self.hidden_act()?;
        let heads = typed.num_attention_heads;
        let head_dim = self.count("head_dim");
        Ok(DecoderConfig {
            intermediate: typed.intermediate_size,
            kv_heads: typed.num_key_value_heads(),
            context: typed.max_position_embeddings,
            norm_eps: narrow(typed.rms_norm_eps),
            activation: self.activation(activation)?,
            tied: typed.tie_word_embeddings.unwrap_or(false),
            ..plain(
                Architecture::Llama,
                &Widths {
                    hidden: typed.hidden_size,
                    layers: typed.num_hidden_layers,
                    heads,
                    head_dim: head_dim
                        .or_else(|| typed.hidden_size.checked_div(heads))
                        .unwrap_or(0),
                    vocab: typed.vocab_size,
                },
                ropes,
            )
        })
    }

    fn hidden_act(&self) -> Result<CandleActivation, FilesError> {
        let name = self.root.get("hidden_act").cloned().unwrap_or(Value::Null);
        let text = name.to_string();
        serde_json::from_value(name)
            .map_err(|_| self.unsupported(format!("the activation {text} is not supported")))
    }

    fn qwen2(&self, ropes: Ropes) -> Result<DecoderConfig, FilesError> {
        let typed: qwen2::Config = self.typed()?;
        let heads = typed.num_attention_heads;
        Ok(DecoderConfig {
            intermediate: typed.intermediate_size,
            kv_heads: typed.num_key_value_heads,
            context: typed.max_position_embeddings,
            norm_eps: narrow(typed.rms_norm_eps),
            activation: self.activation(typed.hidden_act)?,
            tied: typed.tie_word_embeddings,
            qkv_bias: true,
            ..plain(
                Architecture::Qwen2,
                &Widths {
                    hidden: typed.hidden_size,
                    layers: typed.num_hidden_layers,
                    heads,
                    head_dim: typed.hidden_size.checked_div(heads).unwrap_or(0),
                    vocab: typed.vocab_size,
                },
                ropes,
            )
        })
    }

    fn qwen3(&self, ropes: Ropes) -> Result<DecoderConfig, FilesError> {
        let typed: qwen3::Config = self.typed()?;
        Ok(DecoderConfig {
            intermediate: typed.intermediate_size,
            kv_heads: typed.num_key_value_heads,
            context: typed.max_position_embeddings,
            norm_eps: narrow(typed.rms_norm_eps),
            activation: self.activation(typed.hidden_act)?,
            tied: typed.tie_word_embeddings,
            qk_norm: true,
            ..plain(
                Architecture::Qwen3,
                &Widths {
                    hidden: typed.hidden_size,
                    layers: typed.num_hidden_layers,
                    heads: typed.num_attention_heads,
                    head_dim: typed.head_dim,
                    vocab: typed.vocab_size,
                },
                ropes,
            )
        })
    }

    fn gemma3(&self, ropes: Ropes) -> Result<DecoderConfig, FilesError> {
        let typed: gemma3::Config = self.typed()?;
        self.check_layer_types(typed.sliding_window_pattern)?;
        Ok(DecoderConfig {
            intermediate: typed.intermediate_size,
            kv_heads: typed.num_key_value_heads,
            context: typed.max_position_embeddings,
            norm_eps: narrow(typed.rms_norm_eps),
            activation: self.activation(typed.hidden_activation)?,
            tied: self.flag("tie_word_embeddings").unwrap_or(true),
            qk_norm: true,
            post_norms: true,
            norm_plus_one: true,
            embedding_scale: (typed.hidden_size as f32).sqrt(),
            attention_scale: 1.0 / (typed.query_pre_attn_scalar as f32).sqrt(),
            sliding_window: Some(typed.sliding_window),
            sliding_pattern: typed.sliding_window_pattern,
            ..plain(
                Architecture::Gemma3,
                &Widths {
                    hidden: typed.hidden_size,
                    layers: typed.num_hidden_layers,
                    heads: typed.num_attention_heads,
                    head_dim: typed.head_dim,
                    vocab: typed.vocab_size,
                },
                ropes,
            )
        })
    }

    /// Newer files list the kind of each layer; it must be the regular pattern.
    fn check_layer_types(&self, pattern: usize) -> Result<(), FilesError> {
        let kinds = self.root.get("layer_types").and_then(Value::as_array);
        for (layer, kind) in kinds.into_iter().flatten().enumerate() {
            let is_full = (layer + 1).checked_rem(pattern) == Some(0);
            let wanted = if is_full { "full_attention" } else { "sliding_attention" };
            if kind != wanted {
                return Err(self.unsupported(format!(
                    "layer_types[{layer}] is {kind}; only full attention in every {pattern}th layer \
                     is supported"
                )));
            }
        }
        Ok(())
    }
}

/// The widths that all families have.
struct Widths {
    hidden: usize,
    layers: usize,
    heads: usize,
    head_dim: usize,
    vocab: usize,
}

/// A decoder without any family's differences.
fn plain(architecture: Architecture, widths: &Widths, ropes: Ropes) -> DecoderConfig {
    DecoderConfig {
        architecture,
        hidden: widths.hidden,
        intermediate: 0,
        layers: widths.layers,
        heads: widths.heads,
        kv_heads: widths.heads,
        head_dim: widths.head_dim,
        vocab: widths.vocab,
        context: 0,
        norm_eps: 0.0,
        norm_plus_one: false,
        qkv_bias: false,
        qk_norm: false,
        post_norms: false,
        embedding_scale: 1.0,
        attention_scale: 1.0 / (widths.head_dim as f32).sqrt(),
        activation: Activation::Silu,
        tied: false,
        rope: ropes.full,
        rope_local: ropes.local,
        sliding_window: None,
        sliding_pattern: 1,
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the decoder computes in f32")]
fn narrow(value: f64) -> f32 {
    value as f32
}
