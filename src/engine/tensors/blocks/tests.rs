//! How items are cut into blocks: all tokens once, bounded scores, bounded padding.

use actors::{Origin, PathPart, Row, Step};
use candle_core::{DType, Device, Tensor};
use proptest::prelude::*;

use super::super::device::TensorDevice;
use super::super::segment::{HeldShape, TensorSegment};
use super::*;
use crate::engine::pack::PackLimits;

const HEADS: usize = 3;
const SHAPE: HeldShape = HeldShape { layers: 1, kv_heads: 1, head_dim: 2, stored: DType::F32 };

fn segment(tokens: usize) -> PathPart<TensorSegment> {
    let zeros = Tensor::zeros((1, 2, 1, tokens, 2), DType::F32, &Device::Cpu).unwrap();
    PathPart::Segment(TensorSegment::new(SHAPE, &TensorDevice::cpu(), 0, zeros))
}

/// Rows of these lengths, the first half of them on one prefix of so many tokens.
fn step(prefix: usize, lengths: &[usize]) -> Step<TensorSegment> {
    let path = if prefix == 0 { Vec::new() } else { vec![segment(prefix)] };
    let row = |(index, length): (usize, &usize)| {
        let path = if 2 * index < lengths.len() { path.clone() } else { Vec::new() };
        Row {
            path,
            suffix: vec![1; *length].into(),
            labels: [1].into(),
            want_hidden: false,
            want_mass: false,
            origin: Origin::NONE,
        }
    };
    let rows = lengths.iter().enumerate().map(row).collect();
    Step { id: 1, epoch: 1, chunks: Vec::new(), rows }
}

/// The pack of `step` and its blocks.
fn cut(step: &Step<TensorSegment>, scores_max: usize) -> (Pack<'_, TensorSegment>, Blocks) {
    let pack = Pack::new(step, PackLimits { shape: SHAPE, vocab: 2, context: 10_000 }).unwrap();
    let blocks = Blocks::new(&pack, BlockLimits { heads: HEADS, scores_max }).unwrap();
    (pack, blocks)
}

#[test]
fn rows_of_one_length_are_one_block_and_need_no_padding() {
    let step = step(10, &[4, 4, 4, 4]);
    let (_, blocks) = cut(&step, 10_000);
    let rows: Vec<_> = blocks.list.iter().map(|block| (block.group, block.rows)).collect();
    assert_eq!(rows, [(0, 2), (1, 2)]);
    assert!(blocks.are_as_packed());
}

#[test]
fn a_short_row_is_padded_by_its_own_last_token() {
    let step = step(0, &[2, 3]);
    let (_, blocks) = cut(&step, 10_000);
    assert_eq!(blocks.list, [Block { group: 0, rows: 2, first: 0, queries: 0..3 }]);
    assert_eq!(blocks.padded, [2, 3, 4, 0, 1, 1]);
    assert_eq!(blocks.unpadded, [3, 4, 0, 1, 2]);
}

#[test]
fn a_row_of_too_many_scores_is_cut_by_its_queries() {
    let step = step(10, &[5]);
    let (_, blocks) = cut(&step, HEADS * 15 * 2);
    let queries: Vec<_> = blocks.list.iter().map(|block| block.queries.clone()).collect();
    assert_eq!(queries, [0..2, 2..4, 4..5]);
}

proptest! {
    /// Every token is asked for once, within the limits, whatever the lengths.
    #[test]
    fn blocks_cover_the_step(
        prefix in 0_usize..50,
        lengths in prop::collection::vec(1_usize..40, 1..20),
        scores_max in 1_usize..20_000,
    ) {
        let step = step(prefix, &lengths);
        let (pack, Blocks { list: blocks, padded, unpadded }) = cut(&step, scores_max);
        prop_assert!(padded.len() < 2 * pack.tokens());
        for (token, at) in unpadded.iter().enumerate() {
            prop_assert_eq!(padded[*at as usize] as usize, token);
        }
        let mut asked = vec![0; padded.len()];
        for block in &blocks {
            let width = block.queries.len();
            let before = pack.items[pack.groups[block.group].start].start + block.queries.start;
            let scores = HEADS * block.rows * width * (before + width);
            prop_assert!(scores <= scores_max || (block.rows == 1 && width == 1), "{}", scores);
            for row in 0..block.rows {
                let first = block.first + row * width + block.queries.start;
                asked[first..first + width].iter_mut().for_each(|count| *count += 1);
            }
        }
        prop_assert!(asked.iter().all(|count| *count == 1));
        let groups: Vec<usize> = blocks.iter().map(|block| block.group).collect();
        prop_assert!(groups.is_sorted());
    }
}
