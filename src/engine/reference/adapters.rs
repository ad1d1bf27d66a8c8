//! candle-transformers' models of the four architectures, from our configuration.
//!
//! Where candle fixes what [`DecoderConfig`] leaves open (the factor on q . k, gemma's embedding
//! scale), weights are changed so that the function computed is the configured one. What cannot be
//! expressed is refused by name.

use std::sync::Arc;

use candle_core::{DType, Device};
use candle_nn::VarBuilder;
use candle_transformers::models::{gemma3, llama, qwen2, qwen3};

use super::weights::{self, Adjust};
use super::{Forward, Oracle};
use crate::engine::{EngineOptions, LoadError, narrow};
use crate::files::{Activation, Architecture, DecoderConfig, RopeScaling, TensorSource};

/// Builds the model of `config`'s architecture.
pub(super) fn from_config(
    config: &DecoderConfig,
    tensors: Arc<dyn TensorSource>,
    options: &EngineOptions,
) -> Result<Oracle, LoadError> {
    check(config)?;
    let variables = weights::variables(tensors, adjust(config));
    let context = options.context_tokens.map_or(config.context, |tokens| tokens as usize);
    // Tables of positions are made for the whole context, so no more than is used.
    let config = &DecoderConfig { context: config.context.min(context), ..config.clone() };
    let forward = match config.architecture {
        Architecture::Llama => llama_forward(&llama_config(config), variables),
        Architecture::Qwen2 => qwen2_forward(&qwen2_config(config), variables),
        Architecture::Qwen3 => qwen3_forward(&qwen3_config(config), variables),
        Architecture::Gemma3 => gemma3_forward(&gemma3_config(config), variables),
    };
    let forward = forward.map_err(|error| LoadError::Config(error.to_string()))?;
    Ok(Oracle { forward, vocab: config.vocab, context: config.context })
}

/// Llama without a cache of keys; its masks, kept by length, are dropped after each call.
pub(super) fn llama_forward(
    config: &llama::Config,
    variables: VarBuilder<'_>,
) -> candle_core::Result<Forward> {
    let model = llama::Llama::load(variables, config)?;
    let cache = llama::Cache::new(false, DType::F32, config, &Device::Cpu)?;
    Ok(Box::new(move |ids| model.forward(ids, 0, &mut cache.clone())))
}

pub(super) fn qwen2_forward(
    config: &qwen2::Config,
    variables: VarBuilder<'_>,
) -> candle_core::Result<Forward> {
    let mut model = qwen2::ModelForCausalLM::new(config, variables)?;
    Ok(Box::new(move |ids| {
        model.clear_kv_cache();
        model.forward(ids, 0)
    }))
}

pub(super) fn qwen3_forward(
    config: &qwen3::Config,
    variables: VarBuilder<'_>,
) -> candle_core::Result<Forward> {
    let mut model = qwen3::ModelForCausalLM::new(config, variables)?;
    Ok(Box::new(move |ids| {
        model.clear_kv_cache();
        model.forward(ids, 0)
    }))
}

pub(super) fn gemma3_forward(
    config: &gemma3::Config,
    variables: VarBuilder<'_>,
) -> candle_core::Result<Forward> {
    let mut model = gemma3::Model::new(false, config, variables)?;
    Ok(Box::new(move |ids| {
        model.clear_kv_cache();
        model.forward(ids, 0)
    }))
}

fn llama_config(config: &DecoderConfig) -> llama::Config {
    llama::Config {
        hidden_size: config.hidden,
        intermediate_size: config.intermediate,
        vocab_size: config.vocab,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        num_key_value_heads: config.kv_heads,
        use_flash_attn: false,
        rms_norm_eps: f64::from(config.norm_eps),
        rope_theta: config.rope.theta,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling: None,
        max_position_embeddings: config.context,
        tie_word_embeddings: config.tied,
    }
}

fn qwen2_config(config: &DecoderConfig) -> qwen2::Config {
    qwen2::Config {
        vocab_size: config.vocab,
        hidden_size: config.hidden,
        intermediate_size: config.intermediate,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        num_key_value_heads: config.kv_heads,
        max_position_embeddings: config.context,
        // candle masks by this width whatever the next fields say.
        sliding_window: config.context,
        max_window_layers: config.layers,
        tie_word_embeddings: config.tied,
        rope_theta: f64::from(config.rope.theta),
        rms_norm_eps: f64::from(config.norm_eps),
        use_sliding_window: false,
        hidden_act: activation(config.activation),
    }
}

fn qwen3_config(config: &DecoderConfig) -> qwen3::Config {
    qwen3::Config {
        vocab_size: config.vocab,
        hidden_size: config.hidden,
        intermediate_size: config.intermediate,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        head_dim: config.head_dim,
        attention_bias: false,
        num_key_value_heads: config.kv_heads,
        max_position_embeddings: config.context,
        sliding_window: None,
        max_window_layers: config.layers,
        tie_word_embeddings: config.tied,
        rope_theta: f64::from(config.rope.theta),
        rms_norm_eps: f64::from(config.norm_eps),
        use_sliding_window: false,
        hidden_act: activation(config.activation),
    }
}

fn gemma3_config(config: &DecoderConfig) -> gemma3::Config {
    let local = config.rope_local.as_ref().unwrap_or(&config.rope);
    let (window, pattern) = match config.sliding_window {
        // candle's mask lets through the key at distance `sliding_window` too; Hugging Face's
        // does not.
        Some(window) => (window - 1, config.sliding_pattern),
        None => (config.context, 1),
    };
    gemma3::Config {
        attention_bias: false,
        head_dim: config.head_dim,
        hidden_activation: activation(config.activation),
        hidden_size: config.hidden,
        intermediate_size: config.intermediate,
        num_attention_heads: config.heads,
        num_hidden_layers: config.layers,
        num_key_value_heads: config.kv_heads,
        rms_norm_eps: f64::from(config.norm_eps),
        rope_theta: f64::from(config.rope.theta),
        rope_local_base_freq: f64::from(local.theta),
        vocab_size: config.vocab,
        final_logit_softcapping: None,
        attn_logit_softcapping: None,
        query_pre_attn_scalar: config.head_dim,
        sliding_window: window,
        sliding_window_pattern: pattern,
        max_position_embeddings: config.context,
    }
}

fn activation(activation: Activation) -> candle_nn::Activation {
    match activation {
        Activation::Silu => candle_nn::Activation::Silu,
        Activation::GeluTanh => candle_nn::Activation::GeluPytorchTanh,
    }
}

/// What candle's model of the family cannot be told.
fn check(config: &DecoderConfig) -> Result<(), LoadError> {
    let family = config.architecture;
    let is_gemma = family == Architecture::Gemma3;
    let scaled = |scaling: &RopeScaling| *scaling != RopeScaling::None;
    let ropes = [Some(&config.rope), config.rope_local.as_ref()];
    let own_head_dim = matches!(family, Architecture::Llama | Architecture::Qwen2);
    let rules = [
        (ropes.into_iter().flatten().any(|rope| scaled(&rope.scaling)), "a stretched rope"),
        (own_head_dim && config.heads * config.head_dim != config.hidden, "its own head width"),
        (config.sliding_window.is_some() && !is_gemma, "sliding windows"),
        (config.sliding_window.is_some_and(|window| window < 2), "a window of one token"),
        (config.qkv_bias != (family == Architecture::Qwen2), "these biases"),
        (
            config.qk_norm != matches!(family, Architecture::Qwen3 | Architecture::Gemma3),
            "q/k norms",
        ),
        (config.post_norms != is_gemma || config.norm_plus_one != is_gemma, "these norms"),
        (!is_gemma && (config.embedding_scale - 1.0).abs() > 0.0, "a scaled embedding"),
        (is_gemma && !config.tied, "a head apart from the embedding"),
        (family == Architecture::Llama && config.activation != Activation::Silu, "this activation"),
    ];
    match rules.into_iter().find(|(broken, _)| *broken) {
        Some((_, what)) => Err(LoadError::Config(format!(
            "the reference engine's {family:?} model does not do {what} as this model has it"
        ))),
        None => Ok(()),
    }
}

/// Puts the configured scales into the weights.
///
/// q . k: into q's norm where there is one, else into q's projection. Gemma's embedding scale: the
/// residual stream may be scaled as a whole, since every reader norms it first, so what the layers
/// add is scaled by the same factor.
fn adjust(config: &DecoderConfig) -> Adjust {
    let query = f64::from(config.attention_scale) * (config.head_dim as f64).sqrt();
    let stream = match config.architecture {
        Architecture::Gemma3 => (config.hidden as f64).sqrt() / f64::from(config.embedding_scale),
        Architecture::Llama | Architecture::Qwen2 | Architecture::Qwen3 => 1.0,
    };
    let (qk_norm, shift) = (config.qk_norm, if config.norm_plus_one { 1.0 } else { 0.0 });
    let post_norms = config.post_norms;
    Box::new(move |name, values| {
        let (factor, shift) = match name {
            name if qk_norm && name.ends_with("q_norm.weight") => (query, shift),
            name if !qk_norm && name.contains("q_proj.") => (query, 0.0),
            name if post_norms && name.ends_with("post_attention_layernorm.weight") => {
                (stream, shift)
            }
            name if post_norms && name.ends_with("post_feedforward_layernorm.weight") => {
                (stream, shift)
            }
            _ => return,
        };
        // Scales that agree but for rounding leave the weights as they are.
        if (factor - 1.0).abs() > 1e-6 {
            for value in values {
                *value = narrow((f64::from(*value) + shift) * factor - shift);
            }
        }
    })
}
