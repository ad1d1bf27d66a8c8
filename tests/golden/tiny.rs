//! Tiny models with seeded weights: odd sizes, so that every kind of tail is met.
//!
//! Sizes are no multiples of a panel (32), a strip (12) or a vector (16), key/value heads are
//! shared, and the sliding window is shorter than the prompts. `config_json` says the same as
//! `config` in the words of a model folder.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use docket::files::{
    Activation, Architecture, DecoderConfig, FilesError, HostTensor, RopeConfig, RopeScaling,
    TensorSource,
};
use serde_json::{Value, json};

/// Rows of every tiny embedding.
pub(crate) const VOCAB: usize = 301;
/// Longest prompt.
pub(crate) const CONTEXT: usize = 640;

/// A tiny model: configuration and tensors by Hugging Face name.
#[derive(Debug, Clone)]
pub(crate) struct TinyModel {
    pub(crate) config: DecoderConfig,
    pub(crate) config_json: Value,
    pub(crate) tensors: BTreeMap<String, HostTensor>,
}

impl TensorSource for TinyModel {
    fn shape(&self, name: &str) -> Result<Vec<usize>, FilesError> {
        let missing =
            || FilesError::MissingTensor { path: PathBuf::from("memory"), name: name.to_owned() };
        self.tensors.get(name).map(|tensor| tensor.shape.clone()).ok_or_else(missing)
    }

    fn read_rows(
        &self,
        name: &str,
        rows: Range<usize>,
        values: &mut Vec<f32>,
    ) -> Result<(), FilesError> {
        values.extend(self.tensors[name].rows(rows).unwrap().values);
        Ok(())
    }
}

/// Numbers from a seed (splitmix64).
#[derive(Debug, Clone)]
pub(crate) struct Seeded(pub(crate) u64);

impl Seeded {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    /// In -1..1.
    pub(crate) fn number(&mut self) -> f32 {
        (self.next() >> 40) as f32 / 8_388_608.0 - 1.0
    }

    /// Token ids.
    pub(crate) fn tokens(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| u32::try_from(self.below(VOCAB)).unwrap()).collect()
    }
}

/// Llama with an output matrix of its own.
pub(crate) fn llama() -> TinyModel {
    build(1, plain(Architecture::Llama), &json!({ "model_type": "llama" }))
}

/// Llama 3: tied, and with its stretched rope.
pub(crate) fn llama3() -> TinyModel {
    let mut config = DecoderConfig { tied: true, ..plain(Architecture::Llama) };
    let (factor, low, high, original) = (8.0_f32, 1.0_f32, 4.0_f32, 128.0_f32);
    let stretch = |i: usize| {
        let frequency = config.rope.theta.powf(-2.0 * i as f32 / config.head_dim as f32);
        let length = 2.0 * std::f32::consts::PI / frequency;
        let smooth = ((original / length - low) / (high - low)).clamp(0.0, 1.0);
        1.0 / ((1.0 - smooth) / factor + smooth)
    };
    let factors = (0..config.head_dim / 2).map(stretch).collect();
    config.rope.scaling = RopeScaling::PerFrequency(factors);
    let scaling = json!({
        "rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
        "original_max_position_embeddings": 128,
    });
    build(2, config, &json!({ "model_type": "llama", "rope_scaling": scaling }))
}

/// Qwen 2: biases, tied.
pub(crate) fn qwen2() -> TinyModel {
    let config =
        DecoderConfig { qkv_bias: true, tied: true, kv_heads: 3, ..plain(Architecture::Qwen2) };
    let more = json!({
        "model_type": "qwen2", "sliding_window": CONTEXT, "max_window_layers": 2,
        "use_sliding_window": false,
    });
    build(3, config, &more)
}

/// Qwen 3: norms on q and k, a head width of its own.
pub(crate) fn qwen3() -> TinyModel {
    let base = plain(Architecture::Qwen3);
    let config = DecoderConfig {
        qk_norm: true,
        heads: 4,
        head_dim: 20,
        attention_scale: 20.0_f32.powf(-0.5),
        ..base
    };
    let more = json!({
        "model_type": "qwen3", "attention_bias": false, "max_window_layers": 2,
        "use_sliding_window": false,
    });
    build(4, config, &more)
}

/// Gemma 3: four norms, scaled embedding, two ropes, windows of `window` on two layers of three.
pub(crate) fn gemma3(window: usize) -> TinyModel {
    let config = DecoderConfig {
        layers: 4,
        heads: 4,
        kv_heads: 1,
        head_dim: 40,
        norm_plus_one: true,
        qk_norm: true,
        post_norms: true,
        embedding_scale: 72.0_f32.sqrt(),
        attention_scale: 40.0_f32.powf(-0.5),
        activation: Activation::GeluTanh,
        tied: true,
        rope: RopeConfig { theta: 1_000_000.0, scaling: RopeScaling::None },
        rope_local: Some(RopeConfig { theta: 10_000.0, scaling: RopeScaling::None }),
        sliding_window: Some(window),
        sliding_pattern: 3,
        ..plain(Architecture::Gemma3)
    };
    let more = json!({
        "model_type": "gemma3_text", "attention_bias": false, "query_pre_attn_scalar": 40,
        "rope_local_base_freq": 10_000.0, "sliding_window": window, "sliding_window_pattern": 3,
        "final_logit_softcapping": null, "attn_logit_softcapping": null,
    });
    build(5, config, &more)
}

/// One model an architecture.
pub(crate) fn all() -> Vec<TinyModel> {
    vec![llama(), llama3(), qwen2(), qwen3(), gemma3(10), gemma3(100)]
}

fn plain(architecture: Architecture) -> DecoderConfig {
    DecoderConfig {
        architecture,
        hidden: 72,
        intermediate: 100,
        layers: 2,
        heads: 6,
        kv_heads: 2,
        head_dim: 12,
        vocab: VOCAB,
        context: CONTEXT,
        norm_eps: 1e-5,
        norm_plus_one: false,
        qkv_bias: false,
        qk_norm: false,
        post_norms: false,
        embedding_scale: 1.0,
        attention_scale: 12.0_f32.powf(-0.5),
        activation: Activation::Silu,
        tied: false,
        rope: RopeConfig { theta: 10_000.0, scaling: RopeScaling::None },
        rope_local: None,
        sliding_window: None,
        sliding_pattern: 1,
    }
}

fn build(seed: u64, config: DecoderConfig, more: &Value) -> TinyModel {
    let activation = match config.activation {
        Activation::Silu => "silu",
        Activation::GeluTanh => "gelu_pytorch_tanh",
    };
    let mut config_json = json!({
        "hidden_size": config.hidden,
        "intermediate_size": config.intermediate,
        "num_hidden_layers": config.layers,
        "num_attention_heads": config.heads,
        "num_key_value_heads": config.kv_heads,
        "head_dim": config.head_dim,
        "vocab_size": config.vocab,
        "max_position_embeddings": config.context,
        "rms_norm_eps": config.norm_eps,
        "rope_theta": config.rope.theta,
        "tie_word_embeddings": config.tied,
        "hidden_act": activation,
        "hidden_activation": activation,
    });
    for (key, value) in more.as_object().unwrap() {
        config_json[key] = value.clone();
    }
    let tensors = tensors(&mut Seeded(seed), &config);
    TinyModel { config, config_json, tensors }
}

/// Seeded weights for all tensors of `config`: numbers whose size keeps activations near 1.
fn tensors(seeded: &mut Seeded, config: &DecoderConfig) -> BTreeMap<String, HostTensor> {
    let mut tensors = BTreeMap::new();
    let mut add = |name: String, shape: &[usize], center: f32, spread: f32| {
        let count = shape.iter().product();
        let values = (0..count).map(|_| center + spread * seeded.number()).collect();
        tensors.insert(name, HostTensor { shape: shape.to_vec(), values });
    };
    let DecoderConfig { hidden, intermediate, heads, kv_heads, head_dim, vocab, .. } = *config;
    let norm = if config.norm_plus_one { 0.0 } else { 1.0 };
    let linear = |inputs: usize| 2.5 / (inputs as f32).sqrt();
    add("model.embed_tokens.weight".to_owned(), &[vocab, hidden], 0.0, 0.5);
    if !config.tied {
        add("lm_head.weight".to_owned(), &[vocab, hidden], 0.0, 0.5);
    }
    add("model.norm.weight".to_owned(), &[hidden], norm, 0.3);
    for layer in 0..config.layers {
        let name = |part: &str| format!("model.layers.{layer}.{part}");
        let mut norms = vec!["input_layernorm", "post_attention_layernorm"];
        if config.post_norms {
            norms.extend(["pre_feedforward_layernorm", "post_feedforward_layernorm"]);
        }
        for part in norms {
            add(name(&format!("{part}.weight")), &[hidden], norm, 0.3);
        }
        for (part, count) in [("q", heads), ("k", kv_heads), ("v", kv_heads)] {
            let (columns, part) = (count * head_dim, format!("self_attn.{part}_proj"));
            add(name(&format!("{part}.weight")), &[columns, hidden], 0.0, linear(hidden));
            if config.qkv_bias {
                add(name(&format!("{part}.bias")), &[columns], 0.0, 0.5);
            }
        }
        if config.qk_norm {
            for part in ["q_norm", "k_norm"] {
                add(name(&format!("self_attn.{part}.weight")), &[head_dim], norm, 0.3);
            }
        }
        let columns = heads * head_dim;
        add(name("self_attn.o_proj.weight"), &[hidden, columns], 0.0, linear(columns));
        for part in ["gate", "up"] {
            let spread = linear(hidden);
            add(name(&format!("mlp.{part}_proj.weight")), &[intermediate, hidden], 0.0, spread);
        }
        add(name("mlp.down_proj.weight"), &[hidden, intermediate], 0.0, linear(intermediate));
    }
    tensors
}
