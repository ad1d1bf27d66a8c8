//! Tensor names and forms: GGUF's against Hugging Face's.
//!
//! llama.cpp's converter renames every tensor and changes the values of some: it reorders the rows
//! of llama's q and k for interleaved rope, and adds one to gemma's norm weights. The engine knows
//! the Hugging Face form only, so both are undone while reading.

use super::super::{Architecture, DecoderConfig};

/// How the stored values differ from the Hugging Face ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Not at all.
    Plain,
    /// Rows of each head interleaved: row `2 i + j` of a head is row `j * half + i`.
    Interleaved {
        /// Half the rows of one head.
        half: usize,
    },
    /// One was added.
    PlusOne,
}

/// The GGUF name of a tensor.
pub(super) fn gguf_name(architecture: Architecture, name: &str) -> Option<String> {
    match name {
        "model.embed_tokens.weight" => return Some("token_embd.weight".to_owned()),
        "model.norm.weight" => return Some("output_norm.weight".to_owned()),
        "lm_head.weight" => return Some("output.weight".to_owned()),
        _ => {}
    }
    let (layer, rest) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let (stem, suffix) = rest.rsplit_once('.')?;
    let stem = match stem {
        "input_layernorm" => "attn_norm",
        "self_attn.q_proj" => "attn_q",
        "self_attn.k_proj" => "attn_k",
        "self_attn.v_proj" => "attn_v",
        "self_attn.o_proj" => "attn_output",
        "self_attn.q_norm" => "attn_q_norm",
        "self_attn.k_norm" => "attn_k_norm",
        "post_attention_layernorm" if architecture == Architecture::Gemma3 => "post_attention_norm",
        "post_attention_layernorm" | "pre_feedforward_layernorm" => "ffn_norm",
        "post_feedforward_layernorm" => "post_ffw_norm",
        "mlp.gate_proj" => "ffn_gate",
        "mlp.up_proj" => "ffn_up",
        "mlp.down_proj" => "ffn_down",
        _ => return None,
    };
    Some(format!("blk.{layer}.{stem}.{suffix}"))
}

/// The form in which the converter stores a tensor.
pub(super) fn form(config: &DecoderConfig, name: &str) -> Form {
    let projection = [".q_proj.", ".k_proj."].iter().any(|part| name.contains(part));
    if config.architecture == Architecture::Llama && projection {
        return Form::Interleaved { half: config.head_dim / 2 };
    }
    if config.norm_plus_one && name.ends_with("norm.weight") {
        return Form::PlusOne;
    }
    Form::Plain
}

/// The stored row that holds row `row` of an interleaved tensor.
pub(super) fn interleaved_row(row: usize, half: usize) -> usize {
    let (head, within) = (row / (2 * half), row % (2 * half));
    head * 2 * half + 2 * (within % half) + within / half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interleaved_rows_pair_the_halves_of_each_head() {
        // Two heads of six rows; the converter stores rows 0 3 1 4 2 5 of each.
        let rows: Vec<_> = (0..12).map(|row| interleaved_row(row, 3)).collect();
        assert_eq!(rows, [0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11]);
    }

    #[test]
    fn gemma_and_llama_name_their_norms_differently() {
        let name = "model.layers.3.post_attention_layernorm.weight";
        assert_eq!(gguf_name(Architecture::Llama, name).unwrap(), "blk.3.ffn_norm.weight");
        let gemma = gguf_name(Architecture::Gemma3, name).unwrap();
        assert_eq!(gemma, "blk.3.post_attention_norm.weight");
        assert_eq!(gguf_name(Architecture::Llama, "model.layers.3.strange.weight"), None);
    }
}
