//! What a decoder needs of its files: sane dimensions, and each tensor in its shape.
//!
//! Both file formats are checked against the one list here, so that a missing or misshapen tensor is
//! a clear error at start and never a panic inside the forward pass.

use std::path::Path;

use super::{DecoderConfig, FilesError};

/// Largest width, vocabulary or context that is believed.
const DIMENSION_MAX: usize = 1 << 24;
/// Most layers that are believed.
const LAYERS_MAX: usize = 1024;

/// Refuses dimensions that no decoder can have.
pub(super) fn config(path: &Path, config: &DecoderConfig) -> Result<(), FilesError> {
    let dimensions = [
        ("hidden size", config.hidden, DIMENSION_MAX),
        ("intermediate size", config.intermediate, DIMENSION_MAX),
        ("number of layers", config.layers, LAYERS_MAX),
        ("number of heads", config.heads, DIMENSION_MAX),
        ("number of key/value heads", config.kv_heads, DIMENSION_MAX),
        ("head size", config.head_dim, DIMENSION_MAX),
        ("vocabulary", config.vocab, DIMENSION_MAX),
        ("context", config.context, DIMENSION_MAX),
        ("sliding window", config.sliding_window.unwrap_or(1), DIMENSION_MAX),
        ("sliding pattern", config.sliding_pattern, DIMENSION_MAX),
    ];
    for (what, value, limit) in dimensions {
        if !(1..=limit).contains(&value) {
            let message = format!("the {what} is {value}; 1 to {limit} are allowed");
            return Err(FilesError::format(path, message));
        }
    }
    if !config.heads.is_multiple_of(config.kv_heads) {
        let message = format!(
            "{} heads cannot share {} key/value heads evenly",
            config.heads, config.kv_heads
        );
        return Err(FilesError::format(path, message));
    }
    if !config.head_dim.is_multiple_of(2) {
        let message = format!("the head size is {}; it must be even", config.head_dim);
        return Err(FilesError::format(path, message));
    }
    scalars(path, config)
}

fn scalars(path: &Path, config: &DecoderConfig) -> Result<(), FilesError> {
    let scalars = [
        ("norm epsilon", config.norm_eps),
        ("rope base", config.rope.theta),
        ("local rope base", config.rope_local.as_ref().map_or(1.0, |rope| rope.theta)),
        ("embedding scale", config.embedding_scale),
        ("attention scale", config.attention_scale),
    ];
    for (what, value) in scalars {
        if !(value.is_finite() && value > 0.0) {
            let message = format!("the {what} is {value}; it must be positive");
            return Err(FilesError::format(path, message));
        }
    }
    Ok(())
}

/// All tensors that the decoder reads, by Hugging Face name, with their shapes.
pub(super) fn tensors(config: &DecoderConfig) -> Vec<(String, Vec<usize>)> {
    let mut list = vec![
        ("model.embed_tokens.weight".to_owned(), vec![config.vocab, config.hidden]),
        ("model.norm.weight".to_owned(), vec![config.hidden]),
    ];
    if !config.tied {
        list.push(("lm_head.weight".to_owned(), vec![config.vocab, config.hidden]));
    }
    for layer in 0..config.layers {
        for (name, shape) in layer_tensors(config) {
            list.push((format!("model.layers.{layer}.{name}"), shape));
        }
    }
    list
}

fn layer_tensors(config: &DecoderConfig) -> Vec<(&'static str, Vec<usize>)> {
    let (hidden, inner) = (config.hidden, config.intermediate);
    let queries = config.heads * config.head_dim;
    let keys = config.kv_heads * config.head_dim;
    let mut list = vec![
        ("input_layernorm.weight", vec![hidden]),
        ("self_attn.q_proj.weight", vec![queries, hidden]),
        ("self_attn.k_proj.weight", vec![keys, hidden]),
        ("self_attn.v_proj.weight", vec![keys, hidden]),
        ("self_attn.o_proj.weight", vec![hidden, queries]),
        ("post_attention_layernorm.weight", vec![hidden]),
        ("mlp.gate_proj.weight", vec![inner, hidden]),
        ("mlp.up_proj.weight", vec![inner, hidden]),
        ("mlp.down_proj.weight", vec![hidden, inner]),
    ];
    if config.qkv_bias {
        list.push(("self_attn.q_proj.bias", vec![queries]));
        list.push(("self_attn.k_proj.bias", vec![keys]));
        list.push(("self_attn.v_proj.bias", vec![keys]));
    }
    if config.qk_norm {
        list.push(("self_attn.q_norm.weight", vec![config.head_dim]));
        list.push(("self_attn.k_norm.weight", vec![config.head_dim]));
    }
    if config.post_norms {
        list.push(("pre_feedforward_layernorm.weight", vec![hidden]));
        list.push(("post_feedforward_layernorm.weight", vec![hidden]));
    }
    list
}

/// Compares a tensor's shape with the wanted one.
pub(super) fn shape(
    path: &Path,
    name: &str,
    found: &[usize],
    wanted: &[usize],
) -> Result<(), FilesError> {
    if found == wanted {
        return Ok(());
    }
    let message = format!("tensor {name} has the shape {found:?}; {wanted:?} is wanted");
    Err(FilesError::format(path, message))
}
