//! What goes wrong inside a step of the `cuda` engine, on the CPU device: contained as in the `cpu`
//! engine.

use actors::{Engine, EngineError, PathPart};
use docket::engine::{EngineOptions, LoadError, TensorDevice, TensorEngine};

use crate::faults::{clean_tokens, poisoned};
use crate::steps::{ask, chunk, options, read_alone, row};
use crate::tensors::{on_tensors, with_options};
use crate::tiny;

const ROOM: usize = TensorDevice::SCORES_MAX;

#[test]
fn a_row_that_is_not_finite_fails_alone() {
    let engine = on_tensors(&poisoned(), ROOM);
    let clean = clean_tokens(30);
    let alone = read_alone(&engine, &clean);
    let poison = [clean.as_slice(), &[7, 9]].concat();
    let rows = vec![row(&[], &clean), row(&[], &poison), row(&[], &clean)];
    let outcome = ask(&engine, Vec::new(), rows).unwrap();
    assert_eq!(outcome.rows[1], Err(EngineError::NonFinite));
    for index in [0, 2] {
        let logprobs = &outcome.rows[index].as_ref().unwrap().logprobs;
        assert!(logprobs.iter().zip(&alone.logprobs).all(|(a, b)| (a - b).abs() < 1e-4));
    }
}

#[test]
fn a_row_on_a_chunk_that_is_not_finite_fails_and_others_do_not() {
    let engine = on_tensors(&poisoned(), ROOM);
    let clean = clean_tokens(20);
    let chunks = vec![chunk(&[], &[1, 7, 2]), chunk(&[], &clean)];
    let paths = [[PathPart::Chunk(0)], [PathPart::Chunk(1)]];
    let rows = vec![row(&paths[0], &clean), row(&paths[1], &clean), row(&[], &clean)];
    let outcome = ask(&engine, chunks, rows).unwrap();
    assert_eq!(outcome.rows[0], Err(EngineError::NonFinite));
    assert!(outcome.rows[1].is_ok() && outcome.rows[2].is_ok());
}

#[test]
fn a_step_that_breaks_a_rule_fails_and_the_next_one_runs() {
    let engine = on_tensors(&tiny::qwen2(), ROOM);
    for row in [row(&[], &[301]), row(&[], &[]), row(&[PathPart::Chunk(0)], &[1])] {
        let failed = ask(&engine, Vec::new(), vec![row]);
        assert!(matches!(failed, Err(EngineError::Forward(_))), "{failed:?}");
    }
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1, 2])]).is_ok());
}

#[test]
fn a_segment_of_another_model_is_refused() {
    let (one, other) = (on_tensors(&tiny::qwen2(), ROOM), on_tensors(&tiny::qwen3(), ROOM));
    let made = ask(&one, vec![chunk(&[], &[1, 2])], Vec::new()).unwrap().chunks.remove(0);
    let refused = ask(&other, Vec::new(), vec![row(&[PathPart::Segment(made)], &[3])]);
    assert!(refused.unwrap_err().to_string().contains("another model"));
}

#[test]
fn limits_are_those_of_the_cpu_engine() {
    let model = tiny::llama();
    let small = EngineOptions { context_tokens: Some(20), ..options(1) };
    let engine = with_options(&model, ROOM, &small).unwrap();
    assert_eq!((engine.caps().context_tokens, engine.caps().name), (20, "tensors".to_owned()));
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1; 20])]).is_ok());
    let message = ask(&engine, Vec::new(), vec![row(&[], &[1; 21])]).unwrap_err().to_string();
    assert!(message.contains("21, at most 20"), "{message}");
    let small = EngineOptions { step_tokens_max: 10, rows_max: 2, ..options(1) };
    let engine = with_options(&model, ROOM, &small).unwrap();
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1; 11])]).is_err());
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1]); 3]).is_err());
    assert!(ask(&engine, Vec::new(), vec![row(&[], &[1; 5]); 2]).is_ok());
}

#[test]
fn tensors_that_are_missing_or_misshapen_are_named() {
    let mut model = tiny::llama();
    let name = "model.layers.1.mlp.up_proj.weight";
    let tensor = model.tensors.remove(name).unwrap();
    let error = with_options(&model, ROOM, &options(1)).unwrap_err();
    assert!(error.to_string().contains(name), "{error}");
    model.tensors.insert(name.to_owned(), tensor);
    model.config.intermediate = 101;
    let error = with_options(&model, ROOM, &options(1)).unwrap_err();
    assert!(matches!(error, LoadError::Shape { .. }), "{error}");
}

#[test]
fn loading_tells_every_tensor_once() {
    for model in tiny::all() {
        let mut told = Vec::new();
        let mut progress = |done, total| told.push((done, total));
        let device = TensorDevice::cpu();
        let options = &options(1);
        TensorEngine::load(&model.config, &model, &device, options, &mut progress).unwrap();
        let total = model.tensors.len();
        let expected: Vec<_> = (1..=total).map(|done| (done, total)).collect();
        assert_eq!(told, expected);
    }
}
