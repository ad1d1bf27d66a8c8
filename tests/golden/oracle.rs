//! Our forward pass against candle-transformers' `f32` models, fed the same tensors.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{gemma3, llama, qwen2, qwen3};
use docket::engine::kernels::{Level, Precision};
use serde_json::{Value, json};

use crate::steps::{LABELS, ask, load, load_at, read_alone, row};
use crate::tiny::{self, Seeded, TinyModel};

/// The promise of issue 2 for label log-probabilities.
const DIFFERENCE_MAX: f64 = 1e-3;

/// Lengths around strips (12), blocks of keys (64) and windows (10, 100).
const LENGTHS: [usize; 10] = [1, 2, 9, 13, 63, 64, 65, 128, 130, 250];

/// Log-probabilities of the whole vocabulary after `prompt`, by candle.
pub(crate) fn candle_logprobs(model: &TinyModel, prompt: &[u32]) -> Vec<f64> {
    let logits = candle_logits(model, prompt).unwrap();
    let logits: Vec<f32> = logits.flatten_all().unwrap().to_vec1().unwrap();
    let highest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |logit: &f32| (f64::from(*logit) - f64::from(highest)).exp();
    let log_sum = f64::from(highest) + logits.iter().map(weight).sum::<f64>().ln();
    logits.iter().map(|logit| f64::from(*logit) - log_sum).collect()
}

fn candle_logits(model: &TinyModel, prompt: &[u32]) -> candle_core::Result<Tensor> {
    let variables = variables(model)?;
    let ids = Tensor::new(prompt, &Device::Cpu)?.unsqueeze(0)?;
    let config = model.config_json.clone();
    match config["model_type"].as_str().unwrap() {
        "llama" => {
            let config = parse::<llama::LlamaConfig>(config).into_config(false);
            let mut cache = llama::Cache::new(false, DType::F32, &config, &Device::Cpu)?;
            llama::Llama::load(variables, &config)?.forward(&ids, 0, &mut cache)
        }
        "qwen2" => qwen2::ModelForCausalLM::new(&parse(config), variables)?.forward(&ids, 0),
        "qwen3" => qwen3::ModelForCausalLM::new(&parse(config), variables)?.forward(&ids, 0),
        "gemma3_text" => {
            // candle's mask also shows the key at distance `sliding_window`; the model's does not.
            let mut config: gemma3::Config = parse(config);
            config.sliding_window -= 1;
            gemma3::Model::new(false, &config, variables)?.forward(&ids, 0)
        }
        other => panic!("no oracle for {other}"),
    }
}

fn parse<C: serde::de::DeserializeOwned>(config: Value) -> C {
    serde_json::from_value(config).unwrap()
}

fn variables(model: &TinyModel) -> candle_core::Result<VarBuilder<'static>> {
    let mut tensors = HashMap::new();
    for (name, tensor) in &model.tensors {
        let tensor = Tensor::from_slice(&tensor.values, tensor.shape.as_slice(), &Device::Cpu)?;
        tensors.insert(name.clone(), tensor);
    }
    Ok(VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu))
}

fn compare(model: &TinyModel) {
    for level in Level::all() {
        compare_at(model, level);
    }
}

fn compare_at(model: &TinyModel, level: Level) {
    let engine = load_at(model, Precision::F32, level);
    assert_eq!(engine.features(), level.features());
    let mut seeded = Seeded(7);
    let mut largest = 0.0_f64;
    for length in LENGTHS {
        let prompt = seeded.tokens(length);
        let ours = read_alone(&engine, &prompt);
        let theirs = candle_logprobs(model, &prompt);
        for (label, ours) in LABELS.iter().zip(&ours.logprobs) {
            let difference = (f64::from(*ours) - theirs[*label as usize]).abs();
            largest = largest.max(difference);
            assert!(difference < DIFFERENCE_MAX, "{length} tokens, label {label}: {difference}");
        }
        let mass: f64 = LABELS.iter().map(|label| theirs[*label as usize].exp()).sum();
        assert!((f64::from(ours.log_mass.unwrap()) - mass.ln()).abs() < 1e-3);
        let best = theirs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        assert_eq!(ours.greedy_is_label, LABELS.iter().any(|label| *label as usize == best));
    }
    println!("{} at {level:?}: largest difference {largest:e}", model.config_json["model_type"]);
}

#[test]
fn llama_is_candles_llama() {
    compare(&tiny::llama());
}

#[test]
fn llama_with_a_stretched_rope_is_candles() {
    compare(&tiny::llama3());
}

#[test]
fn qwen2_is_candles_qwen2() {
    compare(&tiny::qwen2());
}

#[test]
fn qwen3_is_candles_qwen3() {
    compare(&tiny::qwen3());
}

#[test]
fn gemma3_is_candles_gemma3() {
    compare(&tiny::gemma3(10));
    compare(&tiny::gemma3(100));
}

#[test]
fn the_most_probable_token_is_known_to_be_a_label() {
    let model = tiny::qwen2();
    let engine = load(&model, 1);
    let prompt = Seeded(3).tokens(40);
    let theirs = candle_logprobs(&model, &prompt);
    let best = theirs.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
    let best = u32::try_from(best).unwrap();
    for (labels, expected) in [([best, 5], true), ([(best + 1) % 301, (best + 2) % 301], false)] {
        let mut row = row(&[], &prompt);
        row.labels = labels.into();
        let outcome = ask(&engine, Vec::new(), vec![row]).unwrap().rows.remove(0).unwrap();
        assert_eq!(outcome.greedy_is_label, expected);
    }
}

#[test]
fn a_scaled_config_changes_the_numbers() {
    // The comparison above can fail: each of these is a mistake that it must see.
    let model = tiny::gemma3(10);
    let prompt = Seeded(3).tokens(90);
    let right = read_alone(&load(&model, 1), &prompt);
    let mistakes: [fn(&mut TinyModel); 6] = [
        |model| model.config.sliding_window = Some(11),
        |model| model.config.sliding_pattern = 2,
        |model| model.config.rope_local = None,
        |model| model.config.norm_plus_one = false,
        |model| model.config.attention_scale *= 1.1,
        |model| model.config.embedding_scale = 1.0,
    ];
    for (index, mistake) in mistakes.into_iter().enumerate() {
        let mut wrong = model.clone();
        mistake(&mut wrong);
        let wrong = read_alone(&load(&wrong, 1), &prompt);
        let pairs = right.logprobs.iter().zip(&wrong.logprobs);
        let largest = pairs.map(|(a, b)| f64::from((a - b).abs())).fold(0.0, f64::max);
        assert!(largest > 2.0 * DIFFERENCE_MAX, "mistake {index} changes only {largest}");
    }
    assert_eq!(model.config_json["sliding_window"], json!(10));
}
