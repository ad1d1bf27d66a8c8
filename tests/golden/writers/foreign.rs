//! GGUF files of architectures that only the reference engine has, as llama.cpp's converter writes
//! them: seeded tensors under their GGUF names, in the smallest shapes that every type can have.

use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use docket::files::{GgufVocabulary, HostTensor};

use super::gguf::{Entries, quantise, vocabulary_entries};
use super::vocabulary::{byte_level, sentencepiece};
use super::wide::{VOCAB, seeded};

/// Width of the residual stream.
const HIDDEN: usize = 256;
/// Width of the MLP.
const INNER: usize = 512;
/// Width of one of the four heads.
const HEAD: usize = 64;
/// Rows of two key/value heads.
const KEYS: usize = 2 * HEAD;

/// A model: settings without the architecture in front, and tensors by GGUF name.
#[derive(Debug, Clone)]
pub(crate) struct ForeignModel {
    pub(crate) name: &'static str,
    pub(crate) settings: Vec<(&'static str, Value)>,
    pub(crate) tensors: Vec<(String, HostTensor)>,
    pub(crate) vocabulary: GgufVocabulary,
}

impl ForeignModel {
    /// Metadata, the vocabulary's included.
    pub(crate) fn entries(&self) -> Entries {
        let general = Value::String(self.name.to_owned());
        let settings = self.settings.iter();
        let settings = settings.map(|(key, value)| (format!("{}.{key}", self.name), value.clone()));
        let mut entries: Entries =
            std::iter::once(("general.architecture".to_owned(), general)).chain(settings).collect();
        entries.extend(vocabulary_entries(&self.vocabulary));
        entries
    }

    /// Tensors to be written, matrices as `kind`.
    pub(crate) fn stored(&self, kind: GgmlDType) -> Vec<(String, QTensor)> {
        let stored = |(name, tensor): &(String, HostTensor)| {
            (name.clone(), quantise(tensor, kind_of(name, tensor, kind)))
        };
        self.tensors.iter().map(stored).collect()
    }

    /// Replaces a setting, or adds it; `None` removes it.
    pub(crate) fn set(&mut self, key: &'static str, value: Option<Value>) {
        self.settings.retain(|(known, _)| *known != key);
        self.settings.extend(value.map(|value| (key, value)));
    }
}

/// Vectors and convolutions stay F32, as in the converter.
pub(crate) fn kind_of(name: &str, tensor: &HostTensor, kind: GgmlDType) -> GgmlDType {
    if tensor.shape.len() == 1 || name.contains("shortconv.conv") { GgmlDType::F32 } else { kind }
}

/// The models; the same numbers on every call.
pub(crate) fn all() -> Vec<ForeignModel> {
    vec![glm4(), lfm2(), phi2(), phi3(), stablelm()]
}

fn number(value: usize) -> Value {
    Value::U32(u32::try_from(value).unwrap())
}

/// Settings that all of them have.
fn settings(layers: usize, rotated: Option<usize>) -> Vec<(&'static str, Value)> {
    let mut settings = vec![
        ("context_length", number(512)),
        ("embedding_length", number(HIDDEN)),
        ("feed_forward_length", number(INNER)),
        ("block_count", number(layers)),
        ("attention.head_count", number(4)),
        ("attention.head_count_kv", number(2)),
    ];
    settings.extend(rotated.map(|rotated| ("rope.dimension_count", number(rotated))));
    settings
}

const EPSILON: f32 = 1e-5;

/// Builds the tensors from shapes, each from its own seed.
fn build(
    name: &'static str,
    settings: Vec<(&'static str, Value)>,
    shapes: &[(String, Vec<usize>)],
    vocabulary: GgufVocabulary,
) -> ForeignModel {
    let tensors = shapes.iter().enumerate().map(|(index, (name, shape))| {
        (name.clone(), seeded(index as u64 + 1, name, shape.clone(), false))
    });
    ForeignModel { name, settings, tensors: tensors.collect(), vocabulary }
}

/// Names and shapes: a weight, and a bias where `biases` says so.
fn shapes(
    outer: &[(&str, &[usize])],
    layers: &[&[(&str, &[usize])]],
    biases: fn(&str) -> bool,
) -> Vec<(String, Vec<usize>)> {
    let mut shapes = Vec::new();
    let mut add = |name: String, stem: &str, shape: &[usize]| {
        shapes.push((format!("{name}.weight"), shape.to_vec()));
        if biases(stem) {
            shapes.push((format!("{name}.bias"), vec![shape[0]]));
        }
    };
    for (stem, shape) in outer {
        add((*stem).to_owned(), stem, shape);
    }
    for (index, layer) in layers.iter().enumerate() {
        for (stem, shape) in *layer {
            add(format!("blk.{index}.{stem}"), stem, shape);
        }
    }
    shapes
}

const EMBEDDING: (&str, &[usize]) = ("token_embd", &[VOCAB, HIDDEN]);
const OUTPUT: (&str, &[usize]) = ("output", &[VOCAB, HIDDEN]);
const OUTPUT_NORM: (&str, &[usize]) = ("output_norm", &[HIDDEN]);

fn glm4() -> ForeignModel {
    let layer: &[(&str, &[usize])] = &[
        ("attn_norm", &[HIDDEN]),
        ("attn_q", &[HIDDEN, HIDDEN]),
        ("attn_k", &[KEYS, HIDDEN]),
        ("attn_v", &[KEYS, HIDDEN]),
        ("attn_output", &[HIDDEN, HIDDEN]),
        ("post_attention_norm", &[HIDDEN]),
        ("ffn_norm", &[HIDDEN]),
        ("ffn_up", &[2 * INNER, HIDDEN]),
        ("ffn_down", &[HIDDEN, INNER]),
        ("post_ffw_norm", &[HIDDEN]),
    ];
    let biases = |stem: &str| ["attn_q", "attn_k", "attn_v"].contains(&stem);
    let mut settings = settings(2, Some(HEAD / 2));
    settings.push(("attention.layer_norm_rms_epsilon", Value::F32(EPSILON)));
    settings.push(("attention.key_length", number(HEAD)));
    settings.push(("attention.value_length", number(HEAD)));
    settings.push(("rope.freq_base", Value::F32(20_000.0)));
    let shapes = shapes(&[EMBEDDING, OUTPUT_NORM, OUTPUT], &[layer, layer], biases);
    build("glm4", settings, &shapes, byte_level("glm4", VOCAB))
}

fn lfm2() -> ForeignModel {
    let attention: &[(&str, &[usize])] = &[
        ("attn_norm", &[HIDDEN]),
        ("attn_q", &[HIDDEN, HIDDEN]),
        ("attn_k", &[KEYS, HIDDEN]),
        ("attn_v", &[KEYS, HIDDEN]),
        ("attn_q_norm", &[HEAD]),
        ("attn_k_norm", &[HEAD]),
        ("attn_output", &[HIDDEN, HIDDEN]),
        ("ffn_norm", &[HIDDEN]),
        ("ffn_gate", &[INNER, HIDDEN]),
        ("ffn_up", &[INNER, HIDDEN]),
        ("ffn_down", &[HIDDEN, INNER]),
    ];
    let convolution: &[(&str, &[usize])] = &[
        ("attn_norm", &[HIDDEN]),
        ("shortconv.in_proj", &[3 * HIDDEN, HIDDEN]),
        ("shortconv.conv", &[HIDDEN, 3]),
        ("shortconv.out_proj", &[HIDDEN, HIDDEN]),
        ("ffn_norm", &[HIDDEN]),
        ("ffn_gate", &[INNER, HIDDEN]),
        ("ffn_up", &[INNER, HIDDEN]),
        ("ffn_down", &[HIDDEN, INNER]),
    ];
    let mut settings = settings(3, None);
    settings.retain(|(key, _)| *key != "attention.head_count_kv");
    let counts = [0, 2, 0].map(Value::I32).to_vec();
    settings.push(("attention.head_count_kv", Value::Array(counts)));
    settings.push(("attention.layer_norm_rms_epsilon", Value::F32(EPSILON)));
    settings.push(("rope.freq_base", Value::F32(1_000_000.0)));
    settings.push(("shortconv.l_cache", number(3)));
    settings.push(("vocab_size", number(VOCAB)));
    let outer = [EMBEDDING, ("token_embd_norm", &[HIDDEN][..])];
    let shapes = shapes(&outer, &[convolution, attention, convolution], |_| false);
    build("lfm2", settings, &shapes, byte_level("lfm2", VOCAB))
}

fn phi2() -> ForeignModel {
    let layer: &[(&str, &[usize])] = &[
        ("attn_norm", &[HIDDEN]),
        ("attn_qkv", &[3 * HIDDEN, HIDDEN]),
        ("attn_output", &[HIDDEN, HIDDEN]),
        ("ffn_up", &[INNER, HIDDEN]),
        ("ffn_down", &[HIDDEN, INNER]),
    ];
    let mut settings = settings(2, Some(HEAD / 2));
    settings.retain(|(key, _)| *key != "attention.head_count_kv");
    settings.push(("attention.head_count_kv", number(4)));
    settings.push(("attention.layer_norm_epsilon", Value::F32(EPSILON)));
    let biases = |stem: &str| stem != "token_embd";
    let shapes = shapes(&[EMBEDDING, OUTPUT_NORM, OUTPUT], &[layer, layer], biases);
    build("phi2", settings, &shapes, byte_level("gpt-2", VOCAB))
}

fn phi3() -> ForeignModel {
    let layer: &[(&str, &[usize])] = &[
        ("attn_norm", &[HIDDEN]),
        ("attn_qkv", &[HIDDEN + 2 * KEYS, HIDDEN]),
        ("attn_output", &[HIDDEN, HIDDEN]),
        ("ffn_norm", &[HIDDEN]),
        ("ffn_up", &[2 * INNER, HIDDEN]),
        ("ffn_down", &[HIDDEN, INNER]),
    ];
    let mut settings = settings(2, Some(HEAD));
    settings.push(("attention.layer_norm_rms_epsilon", Value::F32(EPSILON)));
    settings.push(("rope.freq_base", Value::F32(10_000.0)));
    let shapes = shapes(&[EMBEDDING, OUTPUT_NORM, OUTPUT], &[layer, layer], |_| false);
    build("phi3", settings, &shapes, sentencepiece(false, VOCAB))
}

fn stablelm() -> ForeignModel {
    let layer: &[(&str, &[usize])] = &[
        ("attn_norm", &[HIDDEN]),
        ("attn_q", &[HIDDEN, HIDDEN]),
        ("attn_k", &[KEYS, HIDDEN]),
        ("attn_v", &[KEYS, HIDDEN]),
        ("attn_output", &[HIDDEN, HIDDEN]),
        ("ffn_norm", &[HIDDEN]),
        ("ffn_gate", &[INNER, HIDDEN]),
        ("ffn_up", &[INNER, HIDDEN]),
        ("ffn_down", &[HIDDEN, INNER]),
    ];
    let mut settings = settings(2, Some(HEAD / 4));
    settings.push(("attention.layer_norm_epsilon", Value::F32(EPSILON)));
    // The converter says so of every file; the norm before the MLP says that it is not.
    settings.push(("use_parallel_residual", Value::Bool(true)));
    let biases =
        |stem: &str| stem.ends_with("norm") || ["attn_q", "attn_k", "attn_v"].contains(&stem);
    let shapes = shapes(&[EMBEDDING, OUTPUT_NORM, OUTPUT], &[layer, layer], biases);
    build("stablelm", settings, &shapes, byte_level("stablelm2", VOCAB))
}
