//! ARCHITECTURE D6: a read's numbers are the same bits however the engine comes by them.
//!
//! The base line is each prompt read alone, all of it as one suffix. Everything else (prefix
//! resident or computed in the same step, cut anywhere, rows merged in any order, other threads)
//! must give the same bits, hidden state and label mass included.

use actors::{Engine, PathPart, RowOutcome};
use docket::engine::kernels::{Level, Precision};
use docket::engine::{CpuEngine, CpuSegment};
use proptest::prelude::*;

use crate::steps::{ask, bits, chunk, load_at, load_in, read_alone, row};
use crate::tiny::{self, Seeded, TinyModel};

/// A prefix and some suffixes after it, with each prompt's base line.
struct World {
    engine: CpuEngine,
    prefix: Vec<u32>,
    suffixes: Vec<Vec<u32>>,
    base: Vec<Vec<u32>>,
}

impl World {
    fn new(model: &TinyModel, precision: Precision, prefix: usize, suffixes: &[usize]) -> Self {
        Self::on(load_in(model, precision, 1), prefix, suffixes)
    }

    /// With the base line of this engine.
    fn on(engine: CpuEngine, prefix: usize, suffixes: &[usize]) -> Self {
        let mut seeded = Seeded(prefix as u64);
        let prefix = seeded.tokens(prefix);
        let suffixes: Vec<Vec<u32>> = suffixes.iter().map(|count| seeded.tokens(*count)).collect();
        let prompt = |suffix: &Vec<u32>| [prefix.as_slice(), suffix].concat();
        let base = suffixes.iter().map(|s| bits(&read_alone(&engine, &prompt(s)))).collect();
        Self { engine, prefix, suffixes, base }
    }

    /// Makes the prefix resident, cut into runs of these lengths (the rest is a last run); runs
    /// that are marked are computed in a step of their own, others together with the next one.
    fn make_resident(
        &self,
        engine: &CpuEngine,
        runs: &[(usize, bool)],
    ) -> Vec<PathPart<CpuSegment>> {
        let mut path: Vec<PathPart<CpuSegment>> = Vec::new();
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
                let outcome = ask(engine, std::mem::take(&mut chunks), Vec::new()).unwrap();
                path.extend(outcome.chunks.into_iter().map(PathPart::Segment));
            }
        }
        path
    }

    /// Reads the suffixes of this order in one step on `path`.
    fn read(
        &self,
        engine: &CpuEngine,
        path: &[PathPart<CpuSegment>],
        order: &[usize],
    ) -> Vec<Vec<u32>> {
        let rows = order.iter().map(|index| row(path, &self.suffixes[*index])).collect();
        outcomes(ask(engine, Vec::new(), rows).unwrap().rows)
    }

    fn expected(&self, order: &[usize]) -> Vec<Vec<u32>> {
        order.iter().map(|index| self.base[*index].clone()).collect()
    }
}

fn outcomes(rows: Vec<Result<RowOutcome, actors::EngineError>>) -> Vec<Vec<u32>> {
    rows.into_iter().map(|row| bits(&row.unwrap())).collect()
}

/// Every tiny model in every precision.
fn models() -> Vec<(TinyModel, Precision)> {
    let in_each = |model: TinyModel| Precision::ALL.map(|precision| (model.clone(), precision));
    tiny::all().into_iter().flat_map(in_each).collect()
}

fn worlds() -> impl Iterator<Item = World> {
    let models = models().into_iter();
    models.map(|(model, precision)| World::new(&model, precision, 187, &[1, 5, 13, 70, 30]))
}

#[test]
fn a_resident_prefix_gives_the_same_bits_as_none() {
    for world in worlds() {
        for run in [187, 64, 128, 1, 37, 63, 65, 100] {
            let runs = vec![(run, true); 187_usize.div_ceil(run)];
            let path = world.make_resident(&world.engine, &runs);
            for index in 0..world.suffixes.len() {
                let read = world.read(&world.engine, &path, &[index]);
                assert_eq!(read, world.expected(&[index]), "runs of {run}, suffix {index}");
            }
        }
    }
}

#[test]
fn a_row_gives_the_same_bits_in_any_company_and_place() {
    for world in worlds() {
        let path = world.make_resident(&world.engine, &[(40, false)]);
        for order in [vec![0, 1, 2, 3, 4], vec![4, 2, 0, 3, 1], vec![3, 3, 3], vec![1, 0]] {
            assert_eq!(world.read(&world.engine, &path, &order), world.expected(&order));
        }
    }
}

#[test]
fn rows_on_different_paths_share_a_step_without_a_trace() {
    for world in worlds() {
        let whole = world.make_resident(&world.engine, &[]);
        let cut = world.make_resident(&world.engine, &[(70, true)]);
        let prompt = [world.prefix.as_slice(), &world.suffixes[1]].concat();
        let rows = vec![
            row(&whole, &world.suffixes[0]),
            row(&[], &prompt),
            row(&cut, &world.suffixes[2]),
            row(&[], &world.suffixes[3]),
            row(&whole, &world.suffixes[4]),
        ];
        let read = outcomes(ask(&world.engine, Vec::new(), rows).unwrap().rows);
        for (row, suffix) in [(0, 0), (1, 1), (2, 2), (4, 4)] {
            assert_eq!(read[row], world.base[suffix]);
        }
    }
}

#[test]
fn rows_see_the_chunks_of_their_own_step() {
    for world in worlds() {
        let head = world.make_resident(&world.engine, &[(30, true)]);
        let (state, rest) = world.prefix[30..].split_at(90);
        let first = [head[0].clone()];
        let second = [head[0].clone(), PathPart::Chunk(0)];
        let path = [head[0].clone(), PathPart::Chunk(0), PathPart::Chunk(1)];
        let rows = world.suffixes.iter().map(|suffix| row(&path, suffix)).collect();
        let chunks = vec![chunk(&first, state), chunk(&second, rest)];
        let read = outcomes(ask(&world.engine, chunks, rows).unwrap().rows);
        assert_eq!(read, world.base);
    }
}

/// States share whole blocks: what a longer or diverging state has up to a block's end is the
/// beginning of this one, in one piece or block by block.
#[test]
fn blocks_of_a_state_that_begins_alike_give_the_same_bits_as_its_own() {
    use actors::Segment;
    for world in worlds() {
        let (engine, mut seeded) = (&world.engine, Seeded(9));
        let head = world.make_resident(engine, &[(30, true)]).swap_remove(0);
        let other = [&world.prefix[30..150], &seeded.tokens(70)].concat();
        let made = ask(engine, vec![chunk(std::slice::from_ref(&head), &other)], Vec::new())
            .unwrap()
            .chunks;
        // The state starts at position 30, so its blocks end at 34, 98 and 162.
        for cuts in [&[0, 98][..], &[0, 34, 98], &[0, 34]] {
            let shared =
                cuts.windows(2).map(|cut| PathPart::Segment(made[0].slice(cut[0]..cut[1])));
            let mut path: Vec<_> = [head.clone()].into_iter().chain(shared).collect();
            let rest = &world.prefix[30 + cuts[cuts.len() - 1] as usize..];
            let tail = ask(engine, vec![chunk(&path, rest)], Vec::new()).unwrap().chunks;
            path.extend(tail.into_iter().map(PathPart::Segment));
            let read = world.read(engine, &path, &[4, 0, 3, 1, 2]);
            assert_eq!(read, world.expected(&[4, 0, 3, 1, 2]), "{cuts:?}");
        }
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    for (model, precision) in models() {
        let world = World::new(&model, precision, 187, &[1, 5, 13, 70, 30]);
        for threads in [2, 3] {
            let engine = load_in(&model, precision, threads);
            let path = world.make_resident(&engine, &[(100, true)]);
            assert_eq!(world.read(&engine, &path, &[0, 1, 2, 3, 4]), world.base);
        }
    }
}

#[test]
fn every_instruction_set_keeps_the_promise() {
    let models = models().into_iter();
    let models = models.flat_map(|model| Level::all().into_iter().map(move |l| (model.clone(), l)));
    for ((model, precision), level) in models {
        let world = World::on(load_at(&model, precision, level), 187, &[1, 5, 13, 70, 30]);
        for run in [187, 50, 64] {
            let path = world.make_resident(&world.engine, &[(run, true), (run, false)]);
            let read = world.read(&world.engine, &path, &[4, 0, 3, 1, 2]);
            assert_eq!(read, world.expected(&[4, 0, 3, 1, 2]), "{level:?}, runs of {run}");
        }
    }
}

#[test]
fn levels_that_fuse_give_the_same_bits() {
    let fuses = |level: &Level| level.name() != "portable";
    for model in tiny::all() {
        let prompt = Seeded(21).tokens(150);
        let engines = Level::all()
            .into_iter()
            .filter(fuses)
            .map(|level| load_at(&model, Precision::F32, level));
        let reads: Vec<_> = engines.map(|engine| bits(&read_alone(&engine, &prompt))).collect();
        assert!(reads.windows(2).all(|pair| pair[0] == pair[1]));
    }
}

#[test]
fn a_segment_that_was_dropped_comes_back_the_same() {
    for world in worlds() {
        for run in [50, 90, 187] {
            let path = world.make_resident(&world.engine, &[(run, true)]);
            assert_eq!(world.read(&world.engine, &path, &[2]), world.expected(&[2]));
            drop(path);
        }
    }
}

#[test]
fn a_long_read_is_shared_out_without_a_trace() {
    for (model, precision) in models() {
        let world = World::new(&model, precision, 70, &[500, 3]);
        let engine = load_in(&model, precision, 2);
        let path = world.make_resident(&engine, &[]);
        assert_eq!(world.read(&engine, &path, &[1, 0]), world.expected(&[1, 0]));
    }
}

#[test]
fn segments_take_the_bytes_that_caps_say() {
    use actors::Segment;
    for precision in Precision::ALL {
        let world = World::new(&tiny::qwen3(), precision, 187, &[1]);
        let path = world.make_resident(&world.engine, &[(30, true), (34, true), (64, true)]);
        let mut start = 0;
        for part in path {
            let PathPart::Segment(segment) = part else { panic!("not a segment") };
            let expected = world.engine.caps().segment_bytes(start, segment.tokens());
            assert_eq!(segment.bytes(), expected);
            start += segment.tokens();
        }
    }
}

/// Largest difference of label log-probabilities from exact products.
fn drift(model: &TinyModel, precision: Precision) -> f32 {
    let prompt = Seeded(5).tokens(150);
    let [exact, rounded] = [Precision::F32, precision]
        .map(|precision| read_alone(&load_in(model, precision, 1), &prompt).logprobs);
    exact.iter().zip(rounded).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn rounded_products_stay_near_the_exact_ones() {
    for model in tiny::all() {
        let (bf16, int8) = (drift(&model, Precision::Bf16), drift(&model, Precision::Int8));
        println!("{:?}: bf16 {bf16}, int8 {int8}", model.config.architecture);
        assert!(bf16 > 0.0 && bf16 < 0.15, "bf16 is off by {bf16}");
        assert!(int8 > 0.0 && int8 < 0.5, "int8 is off by {int8}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// Any cut of the prefix into chunks and steps, and any company, gives the base line's bits.
    #[test]
    fn any_arrangement_gives_the_same_bits(
        model in 0..6_usize,
        precision in prop::sample::select(Precision::ALL.to_vec()),
        prefix in 1..200_usize,
        runs in prop::collection::vec((1..90_usize, any::<bool>()), 0..6),
        suffixes in prop::collection::vec(1..80_usize, 1..5),
        order in prop::collection::vec(0..100_usize, 1..8),
        threads in 1..3_usize,
    ) {
        let model = &tiny::all()[model];
        let world = World::new(model, precision, prefix, &suffixes);
        let engine = load_in(model, precision, threads);
        let path = world.make_resident(&engine, &runs);
        let order: Vec<usize> = order.iter().map(|index| index % suffixes.len()).collect();
        prop_assert_eq!(world.read(&engine, &path, &order), world.expected(&order));
    }
}
