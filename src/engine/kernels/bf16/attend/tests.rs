//! What attention on bf16 promises: the softmax of what is visible, and rows on their own.

use super::super::rounding::{halves, widen};
use super::super::{fill, write_key, write_value};
use super::*;
use crate::engine::kernels::sample::numbers;

/// A head with two blocks of keys and values, and queries on them.
struct Head {
    dim: usize,
    keys: Vec<Vec<u16>>,
    values: Vec<Vec<u16>>,
    /// `[queries][dim]`.
    queries: Vec<f32>,
}

impl Head {
    fn new(dim: usize, queries: usize) -> Self {
        let page = |seed| {
            let width = dim.next_multiple_of(PANEL_COLUMNS);
            let (mut keys, mut values) = (vec![0; dim * BLOCK_KEYS], vec![0; width * BLOCK_KEYS]);
            for (slot, token) in numbers(2 * dim * BLOCK_KEYS, seed).chunks(2 * dim).enumerate() {
                write_key(&mut keys, slot, &token[..dim]);
                write_value(&mut values, slot, &token[dim..]);
            }
            (keys, values)
        };
        let (keys, values) = [page(1), page(2)].into_iter().unzip();
        Self { dim, keys, values, queries: numbers(queries * dim, 3) }
    }

    fn block(&self, index: usize) -> Block16<'_> {
        Block16 { keys: &self.keys[index], values: &self.values[index] }
    }

    fn width(&self) -> usize {
        self.dim.next_multiple_of(PANEL_COLUMNS)
    }

    /// Lets some queries attend to both blocks; `visible` is for each block and query.
    fn attend(&self, level: Level, rows: Range<usize>, visible: [&[Range<usize>]; 2]) -> Softmax {
        let mut softmax = Softmax::new(rows.len(), self.width());
        let queries = self.packed(level, rows);
        for (block, visible) in visible.into_iter().enumerate() {
            softmax.attend(level, self.block(block), &queries, visible);
        }
        softmax
    }

    fn packed(&self, level: Level, rows: Range<usize>) -> Vec<u32> {
        let rows = &self.queries[rows.start * self.dim..rows.end * self.dim];
        let mut queries = Vec::new();
        for rows in rows.chunks(STRIP_ROWS * self.dim) {
            let mut strip = vec![0; self.dim / 2 * STRIP_ROWS];
            fill(level, rows, self.dim, &mut strip);
            queries.extend(strip);
        }
        queries
    }

    /// What a query sees, in f64: softmax over `visible` keys of both blocks, element `d`.
    fn exact(&self, query: usize, visible: &[Range<usize>; 2], d: usize) -> f64 {
        let rounded = |x: f32| f64::from(widen(super::super::narrow(x)));
        let query = &self.queries[query * self.dim..][..self.dim];
        let key =
            |at: usize, d: usize| widen(self.keys[at / 64][d / 2 * KEY_ROW + at % 64 * 2 + d % 2]);
        let value = |at: usize| {
            let pair = (at % 64 / 2 * self.width() + d) * 2;
            f64::from(widen(self.values[at / 64][pair + at % 2]))
        };
        let score = |at: usize| -> f64 {
            query.iter().enumerate().map(|(d, q)| rounded(*q) * f64::from(key(at, d))).sum()
        };
        let seen = || visible[0].clone().chain(visible[1].clone().map(|key| 64 + key));
        let total: f64 = seen().map(|at| score(at).exp()).sum();
        seen().map(|at| score(at).exp() / total * value(at)).sum()
    }
}

#[derive(Debug, Clone, PartialEq)]
struct Softmax {
    score_max: Vec<f32>,
    weight_sum: Vec<f32>,
    mixed: Vec<f32>,
}

impl Softmax {
    fn new(rows: usize, width: usize) -> Self {
        let score_max = vec![QueryRows16::NO_SCORE; rows];
        Self { score_max, weight_sum: vec![0.0; rows], mixed: vec![0.0; rows * width] }
    }

    fn attend(
        &mut self,
        level: Level,
        block: Block16<'_>,
        queries: &[u32],
        visible: &[Range<usize>],
    ) {
        let Self { score_max, weight_sum, mixed } = self;
        attend(level, block, QueryRows16 { queries, visible, score_max, weight_sum, mixed });
    }

    /// All bits of one row.
    fn row(&self, row: usize) -> Vec<u32> {
        let width = self.mixed.len() / self.score_max.len();
        let state = [self.score_max[row], self.weight_sum[row]];
        state.iter().chain(&self.mixed[row * width..][..width]).map(|x| x.to_bits()).collect()
    }
}

/// Uneven ranges of visible keys, some of them empty.
fn ranges(count: usize, seed: usize) -> Vec<Range<usize>> {
    let range = |row: usize| match (row * 5 + seed) % 7 {
        0 => 0..0,
        1 => 0..64,
        step => step..20 + (row * 11 + seed) % 45,
    };
    (0..count).map(range).collect()
}

#[test]
fn two_blocks_give_the_softmax_of_all_visible_keys() {
    for (level, dim) in Level::all().into_iter().flat_map(|l| [40, 64, 80, 128].map(|d| (l, d))) {
        let head = Head::new(dim, 30);
        let (first, second) = (ranges(30, 1), ranges(30, 3));
        let softmax = head.attend(level, 0..30, [&first, &second]);
        for row in 0..30 {
            let visible = [first[row].clone(), second[row].clone()];
            if visible.iter().all(Range::is_empty) {
                continue;
            }
            for d in [0, 1, dim - 1] {
                let found = softmax.mixed[row * head.width() + d] / softmax.weight_sum[row];
                let exact = head.exact(row, &visible, d);
                // Weights have 8 bits each; they average out over the keys.
                let difference = (f64::from(found) - exact).abs();
                assert!(difference < 3e-3, "{level:?} {dim} {row} {d}: {found}, not {exact}");
            }
            let padding = &softmax.mixed[row * head.width() + dim..(row + 1) * head.width()];
            assert!(padding.iter().all(|x| x.to_bits() == 0), "{level:?} {dim} {row}");
        }
    }
}

#[test]
fn weights_sum_to_what_they_mix() {
    let mut head = Head::new(64, 13);
    head.values = vec![vec![0x3f80; 64 * BLOCK_KEYS]; 2];
    for level in Level::all() {
        let softmax = head.attend(level, 0..13, [&ranges(13, 2), &ranges(13, 4)]);
        for (row, sum) in softmax.weight_sum.iter().enumerate() {
            let mixed = softmax.mixed[row * 64];
            assert!((mixed - sum).abs() <= 1e-6 * sum, "{level:?} {row}: {mixed} of {sum}");
        }
    }
}

#[test]
fn a_block_without_a_visible_key_changes_no_bit() {
    let head = Head::new(40, 14);
    for level in Level::all() {
        let queries = head.packed(level, 0..14);
        let mut softmax = head.attend(level, 0..14, [&ranges(14, 1), &ranges(14, 2)]);
        // What a sum of products would change: a negative zero and a subnormal.
        let values = softmax.mixed.chunks_exact_mut(head.width());
        values.for_each(|row| (row[0], row[1]) = (-0.0, 1e-40));
        let before = softmax.clone();
        let mut visible = vec![0..64; 14];
        (visible[0], visible[7]) = (0..0, 9..9);
        softmax.attend(level, head.block(0), &queries, &visible);
        for (row, visible) in visible.iter().enumerate() {
            let same = softmax.row(row) == before.row(row);
            assert_eq!(same, visible.is_empty(), "{level:?} row {row}");
        }
    }
}

#[test]
fn a_query_does_not_depend_on_who_shares_its_strip() {
    let head = Head::new(80, 40);
    let (first, second) = (ranges(40, 1), ranges(40, 3));
    for level in Level::all() {
        let together = head.attend(level, 0..40, [&first, &second]);
        let parts = (0..40).flat_map(|row| (1..=(40 - row).min(14)).map(move |n| row..row + n));
        for rows in parts {
            let visible = [&first[rows.clone()], &second[rows.clone()]];
            let alone = head.attend(level, rows.clone(), visible);
            for (at, row) in rows.clone().enumerate() {
                assert_eq!(alone.row(at), together.row(row), "{level:?} row {row} of {rows:?}");
            }
        }
    }
}

#[test]
fn all_fusing_levels_give_the_same_bits() {
    let head = Head::new(80, 30);
    let visible: [&[Range<usize>]; 2] = [&ranges(30, 1), &ranges(30, 3)];
    let expected = head.attend(Level::detect(), 0..30, visible);
    for level in Level::all() {
        let same = head.attend(level, 0..30, visible) == expected;
        assert!(same || level.name() == "portable", "{level:?}");
    }
}

#[test]
fn what_a_masked_slot_holds_does_not_matter() {
    let mut head = Head::new(64, 12);
    let visible = vec![3..50; 12];
    for level in Level::all() {
        let before = head.attend(level, 0..12, [&visible, &visible]);
        for slot in (0..3).chain(50..64) {
            write_key(&mut head.keys[0], slot, &[9.0; 64]);
            write_value(&mut head.values[0], slot, &[-7.0; 64]);
        }
        assert_eq!(before, head.attend(level, 0..12, [&visible, &visible]), "{level:?}");
    }
}

#[test]
fn a_score_that_is_not_a_number_is_not_hidden() {
    let mut head = Head::new(64, 12);
    write_key(&mut head.keys[0], 5, &[f32::NAN; 64]);
    for level in Level::all() {
        let softmax = head.attend(level, 0..12, [&[const { 0..64 }; 12], &[const { 0..64 }; 12]]);
        assert!(softmax.mixed.iter().all(|x| x.is_nan()), "{level:?}");
    }
    assert!(halves(head.packed(Level::all()[0], 0..1)[0])[0].is_finite());
}
