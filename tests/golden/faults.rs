//! What goes wrong inside a step: it is reported, contained, and the engine goes on.

use actors::{Engine, EngineError, Row};
use docket::engine::{CpuEngine, EngineOptions, LoadError};

use crate::steps::{LABELS, ask, bits, chunk, load, options, read_alone, row};
use crate::tiny::{self, Seeded, TinyModel};

/// A model whose token 7 has an infinite embedding.
pub(crate) fn poisoned() -> TinyModel {
    let mut model = tiny::llama();
    let embedding = model.tensors.get_mut("model.embed_tokens.weight").unwrap();
    embedding.values[7 * 72 + 3] = f32::INFINITY;
    model
}

pub(crate) fn clean_tokens(count: usize) -> Vec<u32> {
    Seeded(1).tokens(count).into_iter().map(|id| if id == 7 { 8 } else { id }).collect()
}

#[test]
fn a_row_that_is_not_finite_fails_alone() {
    let engine = load(&poisoned(), 1);
    let clean = clean_tokens(30);
    let alone = read_alone(&engine, &clean);
    let poison = [clean.as_slice(), &[7, 9]].concat();
    let rows = vec![row(&[], &clean), row(&[], &poison), row(&[], &clean)];
    let outcome = ask(&engine, Vec::new(), rows).unwrap();
    assert_eq!(outcome.rows[1], Err(EngineError::NonFinite));
    for index in [0, 2] {
        assert_eq!(bits(outcome.rows[index].as_ref().unwrap()), bits(&alone));
    }
}

#[test]
fn a_row_on_a_chunk_that_is_not_finite_fails_and_others_do_not() {
    let engine = load(&poisoned(), 1);
    let clean = clean_tokens(20);
    let chunks = vec![chunk(&[], &[1, 7, 2])];
    let path = [actors::PathPart::Chunk(0)];
    let outcome = ask(&engine, chunks, vec![row(&path, &clean), row(&[], &clean)]).unwrap();
    assert_eq!(outcome.rows[0], Err(EngineError::NonFinite));
    assert!(outcome.rows[1].is_ok());
}

#[test]
fn a_step_that_breaks_a_rule_fails_and_the_next_one_runs() {
    let engine = load(&tiny::qwen2(), 1);
    for row in [row(&[], &[301]), row(&[], &[]), row(&[actors::PathPart::Chunk(0)], &[1])] {
        let failed = ask(&engine, Vec::new(), vec![row]);
        assert!(matches!(failed, Err(EngineError::Forward(_))), "{failed:?}");
    }
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1, 2])]).is_ok());
}

#[test]
fn a_prompt_beyond_the_context_is_refused_with_both_lengths() {
    let small = EngineOptions { context_tokens: Some(20), ..options(1) };
    let model = tiny::llama();
    let engine = CpuEngine::load(&model.config, &model, &small, &mut |_, _| {}).unwrap();
    assert_eq!(engine.caps().context_tokens, 20);
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1; 20])]).is_ok());
    let message = ask(&engine, Vec::new(), vec![row(&[], &[1; 21])]).unwrap_err().to_string();
    assert!(message.contains("21, at most 20"), "{message}");
}

#[test]
fn a_step_beyond_its_limits_is_refused() {
    let small = EngineOptions { step_tokens_max: 10, rows_max: 2, ..options(1) };
    let model = tiny::llama();
    let engine = CpuEngine::load(&model.config, &model, &small, &mut |_, _| {}).unwrap();
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1; 11])]).is_err());
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1]); 3]).is_err());
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1; 5]); 2]).is_ok());
}

#[test]
fn tensors_that_are_missing_or_misshapen_are_named() {
    let mut model = tiny::llama();
    let name = "model.layers.1.mlp.up_proj.weight";
    let tensor = model.tensors.remove(name).unwrap();
    let error = CpuEngine::load(&model.config, &model, &options(1), &mut |_, _| {}).unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
    model.tensors.insert(name.to_owned(), tensor);
    model.config.intermediate = 101;
    let error = CpuEngine::load(&model.config, &model, &options(1), &mut |_, _| {}).unwrap_err();
    assert!(matches!(error, LoadError::Shape { .. }), "{error}");
}

#[test]
fn loading_tells_every_tensor_once() {
    for model in tiny::all() {
        let mut told = Vec::new();
        let mut progress = |done, total| told.push((done, total));
        CpuEngine::load(&model.config, &model, &options(1), &mut progress).unwrap();
        let total = model.tensors.len();
        let expected: Vec<_> = (1..=total).map(|done| (done, total)).collect();
        assert_eq!(told, expected);
    }
}

#[test]
fn reading_label_rows_only_gives_up_the_mass_and_nothing_else() {
    let model = tiny::qwen2();
    let prompt = Seeded(5).tokens(33);
    let full = read_alone(&load(&model, 1), &prompt);
    let rows_only = EngineOptions { readout_rows_only: true, ..options(1) };
    let engine = CpuEngine::load(&model.config, &model, &rows_only, &mut |_, _| {}).unwrap();
    let part = read_alone(&engine, &prompt);
    assert_eq!(part.log_mass, None);
    let mass = full.log_mass.unwrap();
    for index in 0..LABELS.len() {
        assert!((full.logprobs[index] - mass - part.logprobs[index]).abs() < 1e-5);
    }
    // A row that asks for it has it, and the one beside it is not changed by that.
    let wanting = Row { want_mass: true, ..row(&[], &prompt) };
    let both = ask(&engine, Vec::new(), vec![row(&[], &prompt), wanting]).unwrap().rows;
    let [part_again, whole] = [0, 1].map(|index: usize| both[index].as_ref().unwrap());
    assert_eq!((bits(part_again), bits(whole)), (bits(&part), bits(&full)));
    assert_eq!(whole.greedy_is_label, full.greedy_is_label);
}
