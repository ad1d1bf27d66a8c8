//! A decoder's configuration from GGUF metadata.
//!
//! Keys and defaults are llama.cpp's (`llama-model.cpp`, `models/{llama,qwen2,qwen3,gemma3}.cpp`);
//! what changes the computation and is not supported is refused, not ignored.

use std::path::Path;

use super::super::{
    Activation, Architecture, DecoderConfig, FOREIGN_GGUF, FilesError, RopeConfig, RopeScaling,
    check,
};
use super::header::{Header, Value};

/// Names in `general.architecture`.
const ARCHITECTURES: [(&str, Architecture); 4] = [
    ("llama", Architecture::Llama),
    ("qwen2", Architecture::Qwen2),
    ("qwen3", Architecture::Qwen3),
    ("gemma3", Architecture::Gemma3),
];

/// Rope base where a file names none.
const ROPE_BASE: f32 = 10_000.0;
/// Rope base of gemma 3's sliding layers.
const GEMMA_LOCAL_ROPE_BASE: f32 = 10_000.0;
/// Every sixth layer of gemma 3 attends to everything.
const GEMMA_PATTERN: usize = 6;
/// Layers of the one gemma 3 (27B) whose attention scale comes from the width, not the head size.
const GEMMA_27B_LAYERS: usize = 62;

/// Metadata of one file, read by keys without the architecture in front.
pub(super) struct Metadata<'a> {
    path: &'a Path,
    header: &'a Header,
    architecture: Architecture,
    prefix: &'static str,
}

impl<'a> Metadata<'a> {
    /// Finds the architecture; any but the supported ones is refused by name.
    pub(super) fn new(path: &'a Path, header: &'a Header) -> Result<Self, FilesError> {
        let name = architecture_name(path, header)?;
        let known = ARCHITECTURES.iter().find(|(known, _)| *known == name);
        let Some(&(prefix, architecture)) = known else {
            let message = format!(
                "the architecture {name} is not supported; supported are {} and, by the reference \
                 engine, {}",
                ARCHITECTURES.map(|(name, _)| name).join(", "),
                FOREIGN_GGUF.join(", ")
            );
            return Err(FilesError::unsupported(path, message));
        };
        Ok(Self { path, header, architecture, prefix })
    }

    fn value(&self, key: &str) -> (String, Option<&'a Value>) {
        let key = format!("{}.{key}", self.prefix);
        let value = self.header.metadata.get(&key);
        (key, value)
    }

    fn count(&self, key: &str) -> Result<Option<usize>, FilesError> {
        match self.value(key) {
            (_, None) => Ok(None),
            (key, Some(Value::Integer(number))) => {
                let message = || FilesError::format(self.path, format!("{key} is {number}"));
                usize::try_from(*number).map(Some).map_err(|_| message())
            }
            (key, Some(_)) => {
                Err(FilesError::format(self.path, format!("{key} is not a single integer")))
            }
        }
    }

    fn needed(&self, key: &str) -> Result<usize, FilesError> {
        let found = self.count(key)?;
        found.ok_or_else(|| {
            FilesError::format(self.path, format!("metadata {}.{key} is missing", self.prefix))
        })
    }

    #[expect(clippy::cast_possible_truncation, reason = "the file's own values are f32")]
    fn float(&self, key: &str) -> Result<Option<f32>, FilesError> {
        match self.value(key) {
            (_, None) => Ok(None),
            (_, Some(Value::Float(number))) => Ok(Some(*number as f32)),
            (key, Some(_)) => Err(FilesError::format(self.path, format!("{key} is not a float"))),
        }
    }

    /// Reads the configuration. `frequencies` are the values of `rope_freqs.weight`, if present.
    pub(super) fn config(
        &self,
        frequencies: Option<Vec<f32>>,
    ) -> Result<DecoderConfig, FilesError> {
        self.refuse_unsupported()?;
        let hidden = self.needed("embedding_length")?;
        let heads = self.needed("attention.head_count")?;
        let head_dim = match self.count("attention.key_length")? {
            Some(length) => length,
            None => hidden.checked_div(heads).unwrap_or(0),
        };
        let layers = self.needed("block_count")?;
        let architecture = self.architecture;
        let gemma = architecture == Architecture::Gemma3;
        let norm_eps = self.float("attention.layer_norm_rms_epsilon")?;
        let config = DecoderConfig {
            architecture,
            hidden,
            intermediate: self.needed("feed_forward_length")?,
            layers,
            heads,
            kv_heads: self.count("attention.head_count_kv")?.unwrap_or(heads),
            head_dim,
            vocab: self.vocab()?,
            context: self.needed("context_length")?,
            norm_eps: norm_eps.ok_or_else(|| {
                let key = format!("{}.attention.layer_norm_rms_epsilon", self.prefix);
                FilesError::format(self.path, format!("metadata {key} is missing"))
            })?,
            norm_plus_one: gemma,
            qkv_bias: self.has_tensor("blk.0.attn_q.bias"),
            qk_norm: matches!(architecture, Architecture::Qwen3 | Architecture::Gemma3),
            post_norms: gemma,
            embedding_scale: if gemma { (hidden as f32).sqrt() } else { 1.0 },
            attention_scale: self.attention_scale(hidden, heads, head_dim, layers),
            activation: if gemma { Activation::GeluTanh } else { Activation::Silu },
            tied: !self.has_tensor("output.weight"),
            rope: self.rope(frequencies)?,
            rope_local: self.rope_local()?,
            sliding_window: if gemma { self.window()? } else { None },
            sliding_pattern: self.pattern()?,
        };
        check::config(self.path, &config)?;
        self.check_head(&config)?;
        Ok(config)
    }

    fn has_tensor(&self, name: &str) -> bool {
        self.header.tensors.contains_key(name)
    }

    fn vocab(&self) -> Result<usize, FilesError> {
        let entry = self.header.tensors.get("token_embd.weight");
        let rows = entry.and_then(|entry| entry.shape.first().copied());
        rows.ok_or_else(|| FilesError::missing(self.path, "token_embd.weight"))
    }

    fn attention_scale(&self, hidden: usize, heads: usize, head_dim: usize, layers: usize) -> f32 {
        let width = if self.architecture == Architecture::Gemma3 && layers == GEMMA_27B_LAYERS {
            hidden.checked_div(heads).unwrap_or(0)
        } else {
            head_dim
        };
        1.0 / (width as f32).sqrt()
    }

    fn rope(&self, frequencies: Option<Vec<f32>>) -> Result<RopeConfig, FilesError> {
        let theta = self.float("rope.freq_base")?.unwrap_or(ROPE_BASE);
        let factor = match self.float("rope.scaling.factor")? {
            Some(factor) => factor,
            None => self.float("rope.scale_linear")?.unwrap_or(0.0),
        };
        let kind = match self.value("rope.scaling.type") {
            (_, Some(Value::Text(kind))) => kind.as_str(),
            _ => "linear",
        };
        let factor = match kind {
            "none" => 1.0,
            // llama.cpp reads 0 as "not scaled" too.
            "linear" if factor == 0.0 => 1.0,
            "linear" => factor,
            other => {
                let message = format!(
                    "rope scaling {other} is not supported; supported are none, linear and \
                     llama 3's frequency factors"
                );
                return Err(FilesError::unsupported(self.path, message));
            }
        };
        if !(factor.is_finite() && factor > 0.0) {
            let message = format!("the rope scaling factor is {factor}; it must be positive");
            return Err(FilesError::format(self.path, message));
        }
        Ok(RopeConfig { theta, scaling: scaling(factor, frequencies) })
    }

    fn rope_local(&self) -> Result<Option<RopeConfig>, FilesError> {
        if self.architecture != Architecture::Gemma3 || self.window()?.is_none() {
            return Ok(None);
        }
        let theta = self.float("rope.freq_base_swa")?.unwrap_or(GEMMA_LOCAL_ROPE_BASE);
        Ok(Some(RopeConfig { theta, scaling: RopeScaling::None }))
    }

    /// The sliding window; 0 in a file means none.
    fn window(&self) -> Result<Option<usize>, FilesError> {
        Ok(self.count("attention.sliding_window")?.filter(|window| *window > 0))
    }

    fn pattern(&self) -> Result<usize, FilesError> {
        if self.architecture != Architecture::Gemma3 {
            return Ok(1);
        }
        Ok(self.count("attention.sliding_window_pattern")?.unwrap_or(GEMMA_PATTERN))
    }

    /// The parts of a head that the decoder takes as equal must be equal.
    fn check_head(&self, config: &DecoderConfig) -> Result<(), FilesError> {
        for key in ["attention.value_length", "rope.dimension_count"] {
            let length = self.count(key)?.unwrap_or(config.head_dim);
            if length != config.head_dim {
                let message = format!(
                    "{}.{key} is {length}; only the head size, {}, is supported",
                    self.prefix, config.head_dim
                );
                return Err(FilesError::unsupported(self.path, message));
            }
        }
        Ok(())
    }

    fn refuse_unsupported(&self) -> Result<(), FilesError> {
        if self.count("expert_count")?.unwrap_or(0) > 0 {
            let message = "mixtures of experts are not supported, only dense decoders";
            return Err(FilesError::unsupported(self.path, message));
        }
        for key in ["final_logit_softcapping", "attn_logit_softcapping"] {
            if self.float(key)?.unwrap_or(0.0) != 0.0 {
                let message = format!("{}.{key} is not supported", self.prefix);
                return Err(FilesError::unsupported(self.path, message));
            }
        }
        if let Some(Value::Integer(parts)) = self.header.metadata.get("split.count")
            && *parts > 1
        {
            let message = format!("this is one of {parts} parts; merge them into one file first");
            return Err(FilesError::unsupported(self.path, message));
        }
        Ok(())
    }
}

/// The file's `general.architecture`.
pub(super) fn architecture_name<'a>(
    path: &Path,
    header: &'a Header,
) -> Result<&'a str, FilesError> {
    match header.metadata.get("general.architecture") {
        Some(Value::Text(name)) => Ok(name),
        _ => Err(FilesError::format(path, "general.architecture is missing")),
    }
}

fn scaling(factor: f32, frequencies: Option<Vec<f32>>) -> RopeScaling {
    match frequencies {
        Some(frequencies) => {
            RopeScaling::PerFrequency(frequencies.iter().map(|each| each * factor).collect())
        }
        None if (factor - 1.0).abs() < f32::EPSILON => RopeScaling::None,
        None => RopeScaling::Linear(factor),
    }
}
