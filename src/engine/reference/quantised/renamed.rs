//! A GGUF file under Hugging Face's names, for candle's models that know no others.

use std::io::{Cursor, Read, Seek};

use candle_core::quantized::gguf_file::{self, Content};
use candle_core::{Device, Error, Result};
use candle_transformers::models::stable_lm;
use serde_json::json;

use super::family::Sizes;

/// llama.cpp's names and candle's, by parts between dots.
const STABLE_LM: [(&str, &str); 13] = [
    ("token_embd", "model.embed_tokens"),
    ("output_norm", "model.norm"),
    ("attn_norm", "input_layernorm"),
    ("attn_output", "self_attn.o_proj"),
    ("attn_q", "self_attn.q_proj"),
    ("attn_k", "self_attn.k_proj"),
    ("attn_v", "self_attn.v_proj"),
    ("ffn_norm", "post_attention_layernorm"),
    ("ffn_gate", "mlp.gate_proj"),
    ("ffn_up", "mlp.up_proj"),
    ("ffn_down", "mlp.down_proj"),
    ("output", "lm_head"),
    ("blk", "model.layers"),
];

/// The settings of candle's `StableLM`.
pub(super) fn stable_lm_config(content: &Content, sizes: &Sizes) -> Result<stable_lm::Config> {
    let float = |key: &str| content.metadata.get(key).map(gguf_file::Value::to_f32).transpose();
    let epsilon = float("stablelm.attention.layer_norm_epsilon")?;
    let epsilon = epsilon.ok_or_else(|| Error::Msg("the norm's epsilon is missing".to_owned()))?;
    let head_dim = sizes.hidden / sizes.heads;
    let config = json!({
        "vocab_size": sizes.vocab,
        "intermediate_size": sizes.intermediate,
        "hidden_size": sizes.hidden,
        "num_hidden_layers": sizes.layers,
        "num_attention_heads": sizes.heads,
        "num_key_value_heads": sizes.kv_heads,
        "hidden_act": "silu",
        "partial_rotary_factor": sizes.rotated as f64 / head_dim as f64,
        "rope_theta": float("stablelm.rope.freq_base")?.unwrap_or(10_000.0),
        "max_position_embeddings": sizes.context,
        "layer_norm_eps": epsilon,
        // Each prompt is computed by itself.
        "use_cache": false,
        "use_qkv_bias": content.tensor_infos.contains_key("blk.0.attn_q.bias"),
    });
    serde_json::from_value(config).map_err(Error::wrap)
}

/// The tensors as another GGUF file in memory.
pub(super) fn stable_lm_bytes(
    content: &Content,
    reader: &mut (impl Read + Seek),
) -> Result<Vec<u8>> {
    let mut tensors = Vec::new();
    for name in content.tensor_infos.keys() {
        tensors.push((renamed(name), content.tensor(reader, name, &Device::Cpu)?));
    }
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    let mut bytes = Cursor::new(Vec::new());
    gguf_file::write(&mut bytes, &[], &tensors)?;
    Ok(bytes.into_inner())
}

fn renamed(name: &str) -> String {
    let part = |part| {
        let found = STABLE_LM.iter().find(|(from, _)| *from == part);
        found.map_or(part, |(_, to)| *to)
    };
    name.split('.').map(part).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_part_by_part() {
        assert_eq!(renamed("output_norm.bias"), "model.norm.bias");
        assert_eq!(renamed("output.weight"), "lm_head.weight");
        assert_eq!(renamed("blk.3.attn_output.weight"), "model.layers.3.self_attn.o_proj.weight");
        assert_eq!(renamed("blk.0.attn_q.bias"), "model.layers.0.self_attn.q_proj.bias");
    }
}
