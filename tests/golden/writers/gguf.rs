//! GGUF files as llama.cpp's converter writes them.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use candle_core::quantized::gguf_file::{self, Value};
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use docket::files::{Architecture, DecoderConfig, GgufVocabulary, HostTensor, RopeScaling};

use super::vocabulary::{byte_level, sentencepiece};

/// The types of the golden tests.
pub(crate) const KINDS: [GgmlDType; 7] = [
    GgmlDType::F16,
    GgmlDType::BF16,
    GgmlDType::Q8_0,
    GgmlDType::Q4K,
    GgmlDType::Q6K,
    GgmlDType::Q4_1,
    GgmlDType::Q5_0,
];

/// Metadata in writing order.
pub(crate) type Entries = Vec<(String, Value)>;

/// Writes a model; matrices as `kind`, vectors as F32.
pub(crate) fn write(
    path: &Path,
    config: &DecoderConfig,
    tensors: &BTreeMap<String, HostTensor>,
    kind: GgmlDType,
) {
    let mut metadata = hyper_parameters(config);
    metadata.extend(vocabulary_entries(&vocabulary(config)));
    write_raw(path, &metadata, &stored(config, tensors, kind));
}

/// Writes metadata and tensors as they are.
pub(crate) fn write_raw(path: &Path, metadata: &Entries, tensors: &[(String, QTensor)]) {
    let metadata: Vec<_> = metadata.iter().map(|(key, value)| (key.as_str(), value)).collect();
    let tensors: Vec<_> = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor)).collect();
    gguf_file::write(&mut File::create(path).unwrap(), &metadata, &tensors).unwrap();
}

/// The tensors under their GGUF names and in the converter's form.
pub(crate) fn stored(
    config: &DecoderConfig,
    tensors: &BTreeMap<String, HostTensor>,
    kind: GgmlDType,
) -> Vec<(String, QTensor)> {
    let mut stored = Vec::new();
    if let RopeScaling::PerFrequency(factors) = &config.rope.scaling {
        let factors = HostTensor { shape: vec![factors.len()], values: factors.clone() };
        stored.push(("rope_freqs.weight".to_owned(), quantise(&factors, GgmlDType::F32)));
    }
    for (name, tensor) in tensors {
        let kind = if tensor.shape.len() == 1 { GgmlDType::F32 } else { kind };
        let tensor = converted(config, name, tensor);
        stored.push((gguf_name(config.architecture, name), quantise(&tensor, kind)));
    }
    stored
}

/// A tensor in one of ggml's types.
pub(crate) fn quantise(tensor: &HostTensor, kind: GgmlDType) -> QTensor {
    let tensor = Tensor::from_slice(&tensor.values, tensor.shape.clone(), &Device::Cpu).unwrap();
    QTensor::quantize(&tensor, kind).unwrap()
}

/// What a tensor's values are after being stored as `kind`.
pub(crate) fn dequantised(tensor: &HostTensor, kind: GgmlDType) -> HostTensor {
    let values = quantise(tensor, kind).dequantize(&Device::Cpu).unwrap();
    let values = values.flatten_all().unwrap().to_vec1().unwrap();
    HostTensor { shape: tensor.shape.clone(), values }
}

fn converted(config: &DecoderConfig, name: &str, tensor: &HostTensor) -> HostTensor {
    let mut tensor = tensor.clone();
    if config.norm_plus_one && name.ends_with("norm.weight") {
        for value in &mut tensor.values {
            *value += 1.0;
        }
    }
    let is_rotated = name.contains("q_proj") || name.contains("k_proj");
    if config.architecture == Architecture::Llama && is_rotated {
        tensor.values = interleaved(&tensor, config.head_dim);
    }
    tensor
}

/// The converter's `permute`: reshape to [heads, 2, half, width], swap the middle two, flatten.
fn interleaved(tensor: &HostTensor, head_dim: usize) -> Vec<f32> {
    let width = tensor.values.len() / tensor.shape[0];
    let half = head_dim / 2;
    let mut values = Vec::with_capacity(tensor.values.len());
    for head in 0..tensor.shape[0] / head_dim {
        for pair in 0..half {
            for side in 0..2 {
                let row = head * head_dim + side * half + pair;
                values.extend_from_slice(&tensor.values[row * width..(row + 1) * width]);
            }
        }
    }
    values
}

fn gguf_name(architecture: Architecture, name: &str) -> String {
    let after_attention =
        if architecture == Architecture::Gemma3 { "post_attention_norm" } else { "ffn_norm" };
    [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers", "blk"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", after_attention),
        ("pre_feedforward_layernorm", "ffn_norm"),
        ("post_feedforward_layernorm", "post_ffw_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ]
    .iter()
    .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

/// The vocabulary that goes with a configuration.
pub(crate) fn vocabulary(config: &DecoderConfig) -> GgufVocabulary {
    match config.architecture {
        Architecture::Gemma3 => sentencepiece(false, config.vocab),
        Architecture::Llama => byte_level("llama-bpe", config.vocab),
        Architecture::Qwen2 | Architecture::Qwen3 => byte_level("qwen2", config.vocab),
    }
}

/// `tokenizer.ggml.*`.
pub(crate) fn vocabulary_entries(vocabulary: &GgufVocabulary) -> Entries {
    let texts = |texts: &[String]| {
        Value::Array(texts.iter().map(|text| Value::String(text.clone())).collect())
    };
    let mut entries = vec![
        ("model", Value::String(vocabulary.model.clone())),
        ("pre", Value::String(vocabulary.pre.clone().unwrap())),
        ("tokens", texts(&vocabulary.tokens)),
        ("token_type", Value::Array(vocabulary.types.iter().copied().map(Value::I32).collect())),
        ("eos_token_id", Value::U32(id(vocabulary, &["<|im_end|>", "<eos>"]))),
        ("bos_token_id", Value::U32(id(vocabulary, &["<|endoftext|>", "<bos>"]))),
        ("add_bos_token", Value::Bool(vocabulary.model == "llama")),
        ("add_space_prefix", Value::Bool(vocabulary.add_space_prefix)),
    ];
    if !vocabulary.merges.is_empty() {
        entries.push(("merges", texts(&vocabulary.merges)));
    }
    if !vocabulary.scores.is_empty() {
        let scores = vocabulary.scores.iter().copied().map(Value::F32).collect();
        entries.push(("scores", Value::Array(scores)));
    }
    entries.into_iter().map(|(key, value)| (format!("tokenizer.ggml.{key}"), value)).collect()
}

fn id(vocabulary: &GgufVocabulary, texts: &[&str]) -> u32 {
    let found = vocabulary.tokens.iter().position(|token| texts.contains(&token.as_str()));
    u32::try_from(found.unwrap()).unwrap()
}

/// The model's keys as the converter writes them for its architecture.
pub(crate) fn hyper_parameters(config: &DecoderConfig) -> Entries {
    let name = match config.architecture {
        Architecture::Llama => "llama",
        Architecture::Qwen2 => "qwen2",
        Architecture::Qwen3 => "qwen3",
        Architecture::Gemma3 => "gemma3",
    };
    let count = |value: usize| Value::U32(u32::try_from(value).unwrap());
    let mut entries = vec![
        ("context_length", count(config.context)),
        ("embedding_length", count(config.hidden)),
        ("block_count", count(config.layers)),
        ("feed_forward_length", count(config.intermediate)),
        ("attention.head_count", count(config.heads)),
        ("attention.head_count_kv", count(config.kv_heads)),
        ("attention.layer_norm_rms_epsilon", Value::F32(config.norm_eps)),
        ("rope.freq_base", Value::F32(config.rope.theta)),
    ];
    match config.architecture {
        Architecture::Llama => {
            entries.push(("rope.dimension_count", count(config.head_dim)));
            entries.push(("vocab_size", count(config.vocab)));
        }
        Architecture::Qwen2 => {}
        Architecture::Qwen3 | Architecture::Gemma3 => {
            entries.push(("attention.key_length", count(config.head_dim)));
            entries.push(("attention.value_length", count(config.head_dim)));
        }
    }
    if let Some(window) = config.sliding_window {
        entries.push(("attention.sliding_window", count(window)));
    }
    if let RopeScaling::Linear(factor) = config.rope.scaling {
        entries.push(("rope.scaling.type", Value::String("linear".to_owned())));
        entries.push(("rope.scaling.factor", Value::F32(factor)));
    }
    let general = ("general.architecture".to_owned(), Value::String(name.to_owned()));
    let entries = entries.into_iter().map(|(key, value)| (format!("{name}.{key}"), value));
    std::iter::once(general).chain(entries).collect()
}
