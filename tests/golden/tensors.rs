//! The `cuda` engine's code on the CPU device, beside the `cpu` engine in `f32`.
//!
//! What is one engine to the scheduler must read alike: each read is arranged in many ways (prefix
//! resident or not, cut anywhere, merged with others) and must come near the `cpu` engine's numbers
//! for its prompt alone.

use actors::{Engine, PathPart, Row, RowOutcome, Segment};
use docket::engine::kernels::Precision;
use docket::engine::{EngineOptions, LoadError, TensorDevice, TensorEngine, TensorSegment};
use proptest::prelude::*;

use crate::steps::{LABELS, ask, chunk, load, load_in, options, read_alone, row};
use crate::tiny::{self, Seeded, TinyModel};

/// Largest difference of log-probabilities, label mass and hidden states; measured: 2e-5.
const DIFFERENCE_MAX: f32 = 1e-4;

/// The same in `bf16`, from the `cpu` engine's, which rounds at other places; measured: 0.06.
const BF16_DIFFERENCE_MAX: f32 = 0.2;

/// Lengths around the window (10, 100) and around powers of two.
const LENGTHS: [usize; 8] = [1, 2, 9, 13, 64, 65, 130, 250];

pub(crate) fn on_tensors(model: &TinyModel, scores_max: usize) -> TensorEngine {
    with_options(model, scores_max, &options(1)).unwrap()
}

pub(crate) fn with_options(
    model: &TinyModel,
    scores_max: usize,
    options: &EngineOptions,
) -> Result<TensorEngine, LoadError> {
    let device = TensorDevice::cpu().with_scores_max(scores_max);
    TensorEngine::load(&model.config, model, &device, options, &mut |_, _| {})
}

/// The largest difference of any number of two outcomes.
fn difference(ours: &RowOutcome, theirs: &RowOutcome) -> f32 {
    let numbers = |outcome: &RowOutcome| {
        let hidden = outcome.hidden.clone().unwrap_or_default();
        [outcome.logprobs.clone(), outcome.log_mass.into_iter().collect(), hidden].concat()
    };
    let (ours, theirs) = (numbers(ours), numbers(theirs));
    assert_eq!(ours.len(), theirs.len());
    assert!(ours.iter().all(|number| number.is_finite()));
    ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn assert_near(ours: &RowOutcome, theirs: &RowOutcome, what: &str) {
    let difference = difference(ours, theirs);
    assert!(difference < DIFFERENCE_MAX, "{what}: {difference}");
}

/// Both engines on one model, a prefix, and suffixes with what the `cpu` engine reads after it.
struct World {
    engine: TensorEngine,
    prefix: Vec<u32>,
    suffixes: Vec<Vec<u32>>,
    base: Vec<RowOutcome>,
}

impl World {
    fn new(model: &TinyModel, scores_max: usize, prefix: usize, suffixes: &[usize]) -> Self {
        let mut seeded = Seeded(prefix as u64);
        let prefix = seeded.tokens(prefix);
        let suffixes: Vec<Vec<u32>> = suffixes.iter().map(|count| seeded.tokens(*count)).collect();
        let cpu = load(model, 1);
        let prompt = |suffix: &Vec<u32>| [prefix.as_slice(), suffix].concat();
        let base = suffixes.iter().map(|suffix| read_alone(&cpu, &prompt(suffix))).collect();
        Self { engine: on_tensors(model, scores_max), prefix, suffixes, base }
    }

    /// Makes the prefix resident in runs of these lengths, each in a step of its own or together
    /// with the next one; the rest is a last run.
    fn make_resident(&self, runs: &[(usize, bool)]) -> Vec<PathPart<TensorSegment>> {
        let mut path: Vec<PathPart<TensorSegment>> = Vec::new();
        let mut chunks = Vec::new();
        let mut rest = self.prefix.as_slice();
        let mut runs = runs.iter().copied();
        while !rest.is_empty() {
            let (count, ends_step) = runs.next().unwrap_or((rest.len(), true));
            let (run, tail) = rest.split_at(count.min(rest.len()));
            rest = tail;
            let in_step: Vec<_> = (0..chunks.len()).map(PathPart::Chunk).collect();
            chunks.push(chunk(&[path.as_slice(), &in_step].concat(), run));
            if ends_step || rest.is_empty() {
                let made = ask(&self.engine, std::mem::take(&mut chunks), Vec::new()).unwrap();
                path.extend(made.chunks.into_iter().map(PathPart::Segment));
            }
        }
        path
    }

    /// Reads all suffixes in one step on `path`, in this order, and compares.
    fn check(&self, path: &[PathPart<TensorSegment>], order: &[usize], what: &str) {
        let rows = order.iter().map(|index| row(path, &self.suffixes[*index])).collect();
        let read = ask(&self.engine, Vec::new(), rows).unwrap().rows;
        for (read, index) in read.into_iter().zip(order) {
            assert_near(&read.unwrap(), &self.base[*index], &format!("{what}, suffix {index}"));
        }
    }
}

/// Every tiny model, with room for all scores and with so little that blocks are cut by queries.
fn worlds() -> impl Iterator<Item = World> {
    let limits = [TensorDevice::SCORES_MAX, 3000];
    let worlds =
        tiny::all().into_iter().flat_map(move |model| limits.map(|max| (model.clone(), max)));
    worlds.map(|(model, max)| World::new(&model, max, 187, &[1, 5, 13, 70, 30, 5]))
}

#[test]
fn every_architecture_reads_like_the_cpu_engine() {
    for model in tiny::all() {
        let (cpu, tensors) = (load(&model, 1), on_tensors(&model, TensorDevice::SCORES_MAX));
        let mut seeded = Seeded(7);
        let mut largest = 0.0_f32;
        for length in LENGTHS {
            let prompt = seeded.tokens(length);
            let (ours, theirs) = (read_alone(&tensors, &prompt), read_alone(&cpu, &prompt));
            assert_eq!(ours.greedy_is_label, theirs.greedy_is_label);
            largest = largest.max(difference(&ours, &theirs));
        }
        assert!(largest < DIFFERENCE_MAX, "{}: {largest}", model.config_json["model_type"]);
        println!("{}: largest difference {largest:e}", model.config_json["model_type"]);
    }
}

#[test]
fn bf16_reads_near_the_cpu_engine_in_bf16() {
    for model in tiny::all() {
        let in_bf16 = EngineOptions { precision: Precision::Bf16, ..options(1) };
        let tensors = with_options(&model, TensorDevice::SCORES_MAX, &in_bf16).unwrap();
        let cpu = load_in(&model, Precision::Bf16, 1);
        let prompt = Seeded(9).tokens(120);
        let chunks = vec![chunk(&[], &prompt[..70])];
        let made = ask(&tensors, chunks, Vec::new()).unwrap().chunks.remove(0);
        assert_eq!(made.bytes(), 70 * tensors.caps().kv_bytes_per_token);
        let rows = vec![row(&[PathPart::Segment(made)], &prompt[70..])];
        let ours = ask(&tensors, Vec::new(), rows).unwrap().rows.remove(0).unwrap();
        let theirs = read_alone(&cpu, &prompt);
        let difference =
            |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let difference = difference(&ours.logprobs, &theirs.logprobs);
        assert!(difference < BF16_DIFFERENCE_MAX, "{difference}");
        println!("{} in bf16: {difference}", model.config_json["model_type"]);
    }
}

#[test]
fn a_resident_prefix_reads_like_none_wherever_it_was_cut() {
    for world in worlds() {
        world.check(&world.make_resident(&[]), &[0, 1, 2, 3, 4, 5], "whole");
        for run in [64, 1, 37, 100] {
            let path = world.make_resident(&vec![(run, true); 187_usize.div_ceil(run)]);
            world.check(&path, &[3], &format!("runs of {run}"));
        }
    }
}

#[test]
fn blocks_of_a_state_that_begins_alike_read_like_its_own() {
    use actors::Segment;
    for world in worlds() {
        let head = world.make_resident(&[(30, true)]).swap_remove(0);
        let other = [&world.prefix[30..150], &[1, 2, 3]].concat();
        let made = ask(&world.engine, vec![chunk(std::slice::from_ref(&head), &other)], Vec::new());
        let made = made.unwrap().chunks.remove(0);
        // The state starts at position 30, so its blocks end at 34 and 98.
        for cuts in [&[0, 98][..], &[0, 34, 98]] {
            let shared = cuts.windows(2).map(|cut| PathPart::Segment(made.slice(cut[0]..cut[1])));
            let mut path: Vec<_> = [head.clone()].into_iter().chain(shared).collect();
            let tail = vec![chunk(&path, &world.prefix[128..])];
            let tail = ask(&world.engine, tail, Vec::new()).unwrap().chunks.remove(0);
            path.push(PathPart::Segment(tail));
            world.check(&path, &[4, 0, 3, 1, 2], &format!("{cuts:?}"));
        }
    }
}

#[test]
fn a_merged_row_reads_like_one_alone() {
    for world in worlds() {
        let path = world.make_resident(&[(40, false)]);
        for order in [vec![0, 1, 2, 3, 4, 5], vec![4, 2, 0, 3, 1], vec![3, 3, 3], vec![1, 0]] {
            world.check(&path, &order, "merged");
        }
        for index in 0..world.suffixes.len() {
            world.check(&path, &[index], "alone");
        }
    }
}

#[test]
fn rows_on_different_paths_share_a_step() {
    for world in worlds() {
        let (whole, cut) = (world.make_resident(&[]), world.make_resident(&[(70, true)]));
        let prompt = [world.prefix.as_slice(), &world.suffixes[1]].concat();
        let rows = vec![
            row(&whole, &world.suffixes[0]),
            row(&[], &prompt),
            row(&cut, &world.suffixes[2]),
            row(&[], &world.suffixes[3]),
            row(&whole, &world.suffixes[4]),
        ];
        let read = ask(&world.engine, Vec::new(), rows).unwrap().rows;
        for (row, suffix) in [(0, 0), (1, 1), (2, 2), (4, 4)] {
            assert_near(read[row].as_ref().unwrap(), &world.base[suffix], "other paths");
        }
    }
}

#[test]
fn rows_see_the_chunks_of_their_own_step() {
    for world in worlds() {
        let path = world.make_resident(&[(30, true), (40, true)]);
        let head = &path[..1];
        let on_first = [head, &[PathPart::Chunk(0)]].concat();
        let on_both = [head, &[PathPart::Chunk(0), PathPart::Chunk(1)]].concat();
        let chunks = vec![
            chunk(head, &world.prefix[30..130]),
            chunk(&on_first, &world.prefix[130..]),
            // Lies beside the first one, whose path it has, and not behind the second.
            chunk(head, &world.suffixes[3]),
        ];
        let rows = (0..5).map(|index| row(&on_both, &world.suffixes[index])).collect();
        let outcome = ask(&world.engine, chunks, rows).unwrap();
        for (index, read) in outcome.rows.iter().enumerate() {
            assert_near(read.as_ref().unwrap(), &world.base[index], "in the chunks' step");
        }
        let made = outcome.chunks.iter().take(2).cloned().map(PathPart::Segment);
        let path: Vec<_> = head.iter().cloned().chain(made).collect();
        world.check(&path, &[4, 1, 3], "on what the step made");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// However a prefix is cut and whoever shares the step, a read comes near its base line.
    #[test]
    fn any_arrangement_reads_alike(
        model in 0_usize..6,
        scores_max in 100_usize..60_000,
        runs in prop::collection::vec((1_usize..90, any::<bool>()), 0..6),
        suffixes in prop::collection::vec(1_usize..40, 1..6),
        prefix in 1_usize..200,
    ) {
        let world = World::new(&tiny::all()[model], scores_max, prefix, &suffixes);
        let order: Vec<usize> = (0..suffixes.len()).collect();
        world.check(&world.make_resident(&runs), &order, "arranged");
    }
}

#[test]
fn memory_is_stated_and_segments_take_what_they_hold() {
    let engine = on_tensors(&tiny::gemma3(10), TensorDevice::SCORES_MAX);
    let (caps, memory) = (engine.caps(), engine.memory());
    let weights: usize = tiny::gemma3(10)
        .tensors
        .values()
        .filter(|tensor| tensor.shape.len() == 2)
        .map(|tensor| tensor.values.len() * 4)
        .sum();
    assert_eq!(memory.weights_bytes, weights as u64);
    assert_eq!(memory.kv_bytes_per_token, 2 * 4 * 40 * 4);
    assert!(memory.scratch_bytes > 0 && caps.keeps_segments);
    let made = ask(&engine, vec![chunk(&[], &[1, 2, 3])], Vec::new()).unwrap().chunks.remove(0);
    assert_eq!((made.tokens(), made.bytes()), (3, 3 * memory.kv_bytes_per_token));
    assert!(made.bytes() <= caps.segment_bytes(0, 3));
}

#[test]
fn an_empty_step_gives_nothing() {
    let outcome = ask(&on_tensors(&tiny::llama(), 1), Vec::new(), Vec::new()).unwrap();
    assert!(outcome.chunks.is_empty() && outcome.rows.is_empty());
}

#[test]
fn int8_is_refused_with_what_is_possible() {
    let options = EngineOptions { precision: Precision::Int8, ..options(1) };
    let refused = with_options(&tiny::llama(), 1, &options).unwrap_err().to_string();
    assert!(refused.contains("bf16 or f32, not in int8"), "{refused}");
}

#[test]
fn a_binary_without_cuda_opens_no_cuda_device() {
    if !cfg!(feature = "cuda") {
        let refused = TensorDevice::cuda(3).unwrap_err().to_string();
        assert!(refused.contains("cuda:3"), "{refused}");
    }
}

#[test]
fn label_rows_alone_give_up_the_mass_and_nothing_else() {
    let model = tiny::qwen2();
    let prompt = Seeded(5).tokens(33);
    let full = read_alone(&on_tensors(&model, TensorDevice::SCORES_MAX), &prompt);
    let rows_only = EngineOptions { readout_rows_only: true, ..options(1) };
    let engine = with_options(&model, TensorDevice::SCORES_MAX, &rows_only).unwrap();
    let part = read_alone(&engine, &prompt);
    assert_eq!(part.log_mass, None);
    for index in 0..LABELS.len() {
        let shifted = full.logprobs[index] - full.log_mass.unwrap();
        assert!((shifted - part.logprobs[index]).abs() < 1e-5);
    }
    // A row that asks for it has it, and the one beside it does without.
    let wanting = Row { want_mass: true, ..row(&[], &prompt) };
    let both = ask(&engine, Vec::new(), vec![row(&[], &prompt), wanting]).unwrap().rows;
    let [part_again, whole] = [0, 1].map(|index: usize| both[index].as_ref().unwrap());
    assert_near(part_again, &part, "beside one that asks");
    assert_near(whole, &full, "asks");
}

#[test]
fn what_a_mistake_changes_is_seen_by_these_tests() {
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
        let wrong = read_alone(&on_tensors(&wrong, TensorDevice::SCORES_MAX), &prompt);
        let difference = difference(&right, &wrong);
        assert!(difference > 10.0 * DIFFERENCE_MAX, "mistake {index}: {difference}");
    }
}
