//! Seeded models whose rows are wide enough for every quantised type (multiples of 256).

use std::collections::BTreeMap;

use docket::files::{Activation, Architecture, DecoderConfig, HostTensor, RopeConfig, RopeScaling};
use serde_json::{Value, json};

/// Rows of the embedding.
pub(crate) const VOCAB: usize = 320;

/// A model: configuration, the same as a `config.json`, and tensors by Hugging Face name.
#[derive(Debug, Clone)]
pub(crate) struct WideModel {
    pub(crate) config: DecoderConfig,
    pub(crate) config_json: Value,
    pub(crate) tensors: BTreeMap<String, HostTensor>,
}

/// The model of one architecture; the same numbers on every call.
pub(crate) fn wide(architecture: Architecture) -> WideModel {
    model(config(architecture))
}

fn config(architecture: Architecture) -> DecoderConfig {
    let base = DecoderConfig {
        architecture,
        hidden: 256,
        intermediate: 512,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 64,
        vocab: VOCAB,
        context: 512,
        norm_eps: 1e-5,
        norm_plus_one: false,
        qkv_bias: false,
        qk_norm: false,
        post_norms: false,
        embedding_scale: 1.0,
        attention_scale: 0.125,
        activation: Activation::Silu,
        tied: false,
        rope: RopeConfig { theta: 10_000.0, scaling: RopeScaling::None },
        rope_local: None,
        sliding_window: None,
        sliding_pattern: 1,
    };
    match architecture {
        Architecture::Llama => base,
        Architecture::Qwen2 => DecoderConfig { qkv_bias: true, tied: true, ..base },
        Architecture::Qwen3 => DecoderConfig { qk_norm: true, tied: true, ..base },
        Architecture::Gemma3 => DecoderConfig {
            layers: 6,
            // candle cannot run gemma with more: its cache wants contiguous values.
            kv_heads: 1,
            norm_plus_one: true,
            qk_norm: true,
            post_norms: true,
            embedding_scale: 16.0,
            activation: Activation::GeluTanh,
            tied: true,
            rope: RopeConfig { theta: 1_000_000.0, scaling: RopeScaling::Linear(8.0) },
            rope_local: Some(RopeConfig { theta: 10_000.0, scaling: RopeScaling::None }),
            sliding_window: Some(16),
            sliding_pattern: 6,
            ..base
        },
    }
}

/// The model of a configuration; the same numbers on every call.
pub(crate) fn model(config: DecoderConfig) -> WideModel {
    let tensors = shapes(&config)
        .into_iter()
        .enumerate()
        .map(|(index, (name, shape))| {
            let tensor = seeded(index as u64 + 1, &name, shape, config.norm_plus_one);
            (name, tensor)
        })
        .collect();
    WideModel { config_json: config_json(&config), config, tensors }
}

fn shapes(config: &DecoderConfig) -> Vec<(String, Vec<usize>)> {
    let (hidden, inner) = (config.hidden, config.intermediate);
    let (queries, keys) = (config.heads * config.head_dim, config.kv_heads * config.head_dim);
    let mut shapes = vec![
        ("model.embed_tokens.weight".to_owned(), vec![config.vocab, hidden]),
        ("model.norm.weight".to_owned(), vec![hidden]),
    ];
    if !config.tied {
        shapes.push(("lm_head.weight".to_owned(), vec![config.vocab, hidden]));
    }
    for layer in 0..config.layers {
        let mut add = |name: &str, shape: &[usize]| {
            shapes.push((format!("model.layers.{layer}.{name}"), shape.to_vec()));
        };
        add("input_layernorm.weight", &[hidden]);
        add("post_attention_layernorm.weight", &[hidden]);
        for (part, rows) in [("q", queries), ("k", keys), ("v", keys)] {
            add(&format!("self_attn.{part}_proj.weight"), &[rows, hidden]);
            if config.qkv_bias {
                add(&format!("self_attn.{part}_proj.bias"), &[rows]);
            }
        }
        add("self_attn.o_proj.weight", &[hidden, queries]);
        add("mlp.gate_proj.weight", &[inner, hidden]);
        add("mlp.up_proj.weight", &[inner, hidden]);
        add("mlp.down_proj.weight", &[hidden, inner]);
        if config.qk_norm {
            add("self_attn.q_norm.weight", &[config.head_dim]);
            add("self_attn.k_norm.weight", &[config.head_dim]);
        }
        if config.post_norms {
            add("pre_feedforward_layernorm.weight", &[hidden]);
            add("post_feedforward_layernorm.weight", &[hidden]);
        }
    }
    shapes
}

/// Numbers from a seed (splitmix64), of a size that keeps activations near 1; norms lie around 1,
/// or around 0 where one is added when they are used.
pub(crate) fn seeded(seed: u64, name: &str, shape: Vec<usize>, plus_one: bool) -> HostTensor {
    let is_norm = name.ends_with("norm.weight");
    let center = if is_norm && !plus_one { 1.0 } else { 0.0 };
    let inputs = if shape.len() == 2 { shape[1] } else { 16 };
    let spread = 2.0 / (inputs as f32).sqrt();
    let count: usize = shape.iter().product();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut number = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 40) as f32 / 8_388_608.0 - 1.0
    };
    let values = (0..count).map(|_| center + spread * number()).collect();
    HostTensor { shape, values }
}

fn config_json(config: &DecoderConfig) -> Value {
    let mut root = json!({
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
        "eos_token_id": [1, 2],
        "torch_dtype": "float32",
    });
    let (name, key, activation) = match config.architecture {
        Architecture::Llama => ("llama", "hidden_act", "silu"),
        Architecture::Qwen2 => ("qwen2", "hidden_act", "silu"),
        Architecture::Qwen3 => ("qwen3", "hidden_act", "silu"),
        Architecture::Gemma3 => ("gemma3_text", "hidden_activation", "gelu_pytorch_tanh"),
    };
    root["model_type"] = json!(name);
    root[key] = json!(activation);
    if config.architecture == Architecture::Gemma3 {
        root["query_pre_attn_scalar"] = json!(config.head_dim);
        root["sliding_window"] = json!(config.sliding_window);
        root["rope_scaling"] = json!({ "rope_type": "linear", "factor": 8.0 });
    }
    root
}
