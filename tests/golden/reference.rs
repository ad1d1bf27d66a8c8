//! The reference engine gives candle's numbers, from parts and from folders.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use actors::{Engine, PathPart, RowOutcome};
use candle_core::{Device, Tensor};
use docket::engine::{LoadError, ReferenceEngine};
use docket::files::{DecoderConfig, HostTensor, RopeScaling};
use serde_json::json;

use crate::oracle::candle_logprobs;
use crate::steps::{LABELS, ask, chunk, load, options, read_alone, row};
use crate::tiny::{self, Seeded, TinyModel};

fn from_parts(model: &TinyModel) -> Result<ReferenceEngine, LoadError> {
    ReferenceEngine::load(&model.config, Arc::new(model.clone()), &options(1))
}

fn assert_near(ours: &RowOutcome, theirs: &RowOutcome, limit: f32) {
    for (ours, theirs) in ours.logprobs.iter().zip(&theirs.logprobs) {
        assert!((ours - theirs).abs() < limit, "{ours}, not {theirs}");
    }
}

/// Writes a folder as the hub has them.
fn write_folder(folder: &Path, model: &TinyModel) {
    let tensors: HashMap<String, Tensor> = model
        .tensors
        .iter()
        .map(|(name, tensor)| {
            let shape = tensor.shape.as_slice();
            (name.clone(), Tensor::from_slice(&tensor.values, shape, &Device::Cpu).unwrap())
        })
        .collect();
    candle_core::safetensors::save(&tensors, folder.join("model.safetensors")).unwrap();
    std::fs::write(folder.join("config.json"), model.config_json.to_string()).unwrap();
}

fn from_folder(model: &TinyModel) -> Result<ReferenceEngine, LoadError> {
    let folder = tempfile::tempdir().unwrap();
    write_folder(folder.path(), model);
    ReferenceEngine::open_folder(folder.path(), &options(1))
}

#[test]
fn the_reference_engine_reads_chunks_and_suffix_as_one_prompt() {
    for model in [tiny::llama(), tiny::qwen2(), tiny::qwen3(), tiny::gemma3(10)] {
        let engine = from_parts(&model).unwrap();
        assert!(!engine.caps().keeps_segments);
        let prompt = Seeded(11).tokens(80);
        let made = ask(&engine, vec![chunk(&[], &prompt[..30])], Vec::new()).unwrap().chunks;
        let path = [PathPart::Segment(made[0].clone()), PathPart::Chunk(0)];
        let chunks = vec![chunk(&path[..1], &prompt[30..50])];
        let rows = vec![row(&path, &prompt[50..])];
        let read = ask(&engine, chunks, rows).unwrap().rows.remove(0).unwrap();
        let theirs = candle_logprobs(&model, &prompt);
        for (label, logprob) in LABELS.iter().zip(&read.logprobs) {
            assert!((f64::from(*logprob) - theirs[*label as usize]).abs() < 1e-5);
        }
    }
}

#[test]
fn a_folders_weights_that_are_not_finite_or_there_twice_are_refused_by_tensor() {
    let mut model = tiny::qwen2();
    let name = "model.layers.0.mlp.up_proj.weight";
    let folder = tempfile::tempdir().unwrap();
    let told = || ReferenceEngine::open_folder(folder.path(), &options(1)).unwrap_err().to_string();
    write_folder(folder.path(), &model);
    assert!(ReferenceEngine::open_folder(folder.path(), &options(1)).is_ok());
    let weights = folder.path().join("model.safetensors");
    let copy = folder.path().join("model-copy.safetensors");
    std::fs::copy(&weights, &copy).unwrap();
    assert!(told().contains("is in another file"), "{}", told());
    std::fs::remove_file(copy).unwrap();
    model.tensors.get_mut(name).unwrap().values[7] = f32::NAN;
    write_folder(folder.path(), &model);
    assert!(told().contains(&format!("tensor {name} is damaged")), "{}", told());
    let narrow = candle_core::safetensors::load(&weights, &Device::Cpu).unwrap();
    let narrow = narrow
        .into_iter()
        .map(|(name, tensor)| (name, tensor.to_dtype(candle_core::DType::BF16).unwrap()));
    candle_core::safetensors::save(&narrow.collect::<HashMap<_, _>>(), &weights).unwrap();
    assert!(told().contains(&format!("tensor {name} is damaged")), "{}", told());
}

#[test]
fn scales_that_candle_fixes_are_put_into_the_weights() {
    for (mut model, scaled) in
        [(tiny::qwen2(), 1.0), (tiny::qwen3(), 1.0), (tiny::gemma3(10), 1.01)]
    {
        model.config.attention_scale *= 0.7;
        model.config.embedding_scale *= scaled;
        let prompt = Seeded(12).tokens(60);
        let ours = read_alone(&load(&model, 1), &prompt);
        assert_near(&read_alone(&from_parts(&model).unwrap(), &prompt), &ours, 1e-3);
    }
}

/// A change that candle's model cannot follow, and words of the refusal.
type Case = (fn(&mut DecoderConfig), &'static str);

#[test]
fn what_candle_cannot_express_is_refused_by_name() {
    let cases: [Case; 3] = [
        (|config| config.rope.scaling = RopeScaling::Linear(8.0), "stretched rope"),
        (|config| config.tied = false, "head apart"),
        (|config| config.sliding_window = Some(1), "window of one"),
    ];
    for (change, words) in cases {
        let mut model = tiny::gemma3(10);
        change(&mut model.config);
        let message = from_parts(&model).unwrap_err().to_string();
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn folders_of_the_four_architectures_read_like_the_cpu_engine() {
    for model in tiny::all() {
        let prompt = Seeded(13).tokens(120);
        let ours = read_alone(&load(&model, 1), &prompt);
        assert_near(&read_alone(&from_folder(&model).unwrap(), &prompt), &ours, 1e-3);
    }
}

#[test]
fn mistral_and_phi3_folders_are_read_too() {
    // Both are llama but for their settings' names, and phi3 for its joined matrices.
    let llama = tiny::llama();
    let prompt = Seeded(14).tokens(70);
    let ours = read_alone(&load(&llama, 1), &prompt);

    let mut mistral = llama.clone();
    mistral.config_json["model_type"] = json!("mistral");
    assert_near(&read_alone(&from_folder(&mistral).unwrap(), &prompt), &ours, 1e-3);

    let mut phi3 = llama;
    phi3.config_json["model_type"] = json!("phi3");
    for layer in 0..2 {
        let part = |part: &str| format!("model.layers.{layer}.{part}.weight");
        let qkv = ["q", "k", "v"].map(|name| part(&format!("self_attn.{name}_proj")));
        join(&mut phi3, &qkv, part("self_attn.qkv_proj"));
        let gate_up = ["gate", "up"].map(|name| part(&format!("mlp.{name}_proj")));
        join(&mut phi3, &gate_up, part("mlp.gate_up_proj"));
    }
    assert_near(&read_alone(&from_folder(&phi3).unwrap(), &prompt), &ours, 1e-3);
}

fn join(model: &mut TinyModel, names: &[String], joined: String) {
    let parts: Vec<HostTensor> =
        names.iter().map(|name| model.tensors.remove(name).unwrap()).collect();
    let shape = vec![parts.iter().map(|part| part.shape[0]).sum(), parts[0].shape[1]];
    let values = parts.into_iter().flat_map(|part| part.values).collect();
    model.tensors.insert(joined, HostTensor { shape, values });
}

#[test]
fn an_unknown_architecture_is_refused_with_what_is_known() {
    let mut model = tiny::llama();
    model.config_json["model_type"] = json!("mamba");
    let message = from_folder(&model).unwrap_err().to_string();
    assert!(message.contains("mamba") && message.contains("mistral"), "{message}");
}
