//! A step laid out flat: all its tokens in one list without padding, grouped by what they share.
//!
//! Items (chunks and rows) whose path is the same lie next to each other, so that attention reads
//! the keys and values of that path once for all of them.

use actors::{EngineError, PathPart, Step};

use super::segment::CpuSegment;

/// What laying out a step must know of an engine's segments.
pub(super) trait Placed {
    /// Sizes that all segments of one model share.
    type Shape: Copy + PartialEq;

    /// Sizes of the model that it belongs to.
    fn shape(&self) -> Self::Shape;

    /// Its first position and the one after its last.
    fn ends(&self) -> (usize, usize);

    /// Whether both are clones of one segment.
    fn is_clone_of(&self, other: &Self) -> bool;
}

/// Limits that a step must keep.
#[derive(Debug, Clone, Copy)]
pub(super) struct PackLimits<T> {
    /// Sizes of the model's segments.
    pub(super) shape: T,
    pub(super) vocab: usize,
    pub(super) context: usize,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemKind {
    /// Chunk of this number.
    Chunk(usize),
    /// Row of this number.
    Row(usize),
}

/// One chunk or row.
#[derive(Debug)]
pub(super) struct Item<'a, S = CpuSegment> {
    pub(super) kind: ItemKind,
    pub(super) path: &'a [PathPart<S>],
    pub(super) tokens: &'a [u32],
    /// Absolute position of its first token.
    pub(super) start: usize,
    /// Index of its first token in the pack.
    pub(super) first: usize,
}

impl<S> Item<'_, S> {
    /// Absolute position after its last token.
    pub(super) fn end(&self) -> usize {
        self.start + self.tokens.len()
    }

    /// Index after its last token in the pack.
    pub(super) fn last(&self) -> usize {
        self.first + self.tokens.len()
    }
}

/// A step's items, laid out.
#[derive(Debug)]
pub(super) struct Pack<'a, S = CpuSegment> {
    /// In the order in which their tokens lie.
    pub(super) items: Vec<Item<'a, S>>,
    /// Ranges of `items` that have one path.
    pub(super) groups: Vec<std::ops::Range<usize>>,
    /// Token ids: `[tokens]`.
    pub(super) ids: Vec<u32>,
    /// Absolute positions: `[tokens]`.
    pub(super) positions: Vec<usize>,
}

impl<'a, S: Placed> Pack<'a, S> {
    /// Checks `step` and lays it out.
    ///
    /// # Errors
    /// [`EngineError::Forward`] naming the chunk or row that breaks a rule of [`Step`] or a limit.
    pub(super) fn new(
        step: &'a Step<S>,
        limits: PackLimits<S::Shape>,
    ) -> Result<Self, EngineError> {
        let mut items = Vec::with_capacity(step.chunks.len() + step.rows.len());
        let mut chunk_ends = Vec::with_capacity(step.chunks.len());
        for (index, chunk) in step.chunks.iter().enumerate() {
            let kind = ItemKind::Chunk(index);
            let item = Item { kind, path: &chunk.path, tokens: &chunk.tokens, start: 0, first: 0 };
            let item = place(item, &chunk_ends, limits)?;
            chunk_ends.push((item.start, item.end()));
            items.push(item);
        }
        for (index, row) in step.rows.iter().enumerate() {
            let kind = ItemKind::Row(index);
            let item = Item { kind, path: &row.path, tokens: &row.suffix, start: 0, first: 0 };
            check_labels(index, &row.labels, limits.vocab)?;
            items.push(place(item, &chunk_ends, limits)?);
        }
        Ok(Self::lay_out(items))
    }

    /// Number of tokens.
    pub(super) fn tokens(&self) -> usize {
        self.ids.len()
    }

    fn lay_out(items: Vec<Item<'a, S>>) -> Self {
        let mut bundles: Vec<Vec<Item<'a, S>>> = Vec::new();
        for item in items {
            match bundles.iter_mut().find(|bundle| same_path(bundle[0].path, item.path)) {
                Some(bundle) => bundle.push(item),
                None => bundles.push(vec![item]),
            }
        }
        let mut pack =
            Self { items: Vec::new(), groups: Vec::new(), ids: Vec::new(), positions: Vec::new() };
        for bundle in bundles {
            let first = pack.items.len();
            for item in bundle {
                pack.append(item);
            }
            pack.groups.push(first..pack.items.len());
        }
        pack
    }

    fn append(&mut self, mut item: Item<'a, S>) {
        item.first = self.ids.len();
        self.ids.extend_from_slice(item.tokens);
        self.positions.extend(item.start..item.end());
        self.items.push(item);
    }
}

/// Follows an item's path and gives the item its start.
fn place<'a, S: Placed>(
    mut item: Item<'a, S>,
    chunk_ends: &[(usize, usize)],
    limits: PackLimits<S::Shape>,
) -> Result<Item<'a, S>, EngineError> {
    let wrong = |what: String| Err(EngineError::Forward(format!("{:?}: {what}", item.kind)));
    let mut end = 0;
    for part in item.path {
        let (part_start, part_end) = match part {
            PathPart::Segment(segment) if segment.shape() != limits.shape => {
                return wrong("a segment of another model is in its path".to_owned());
            }
            PathPart::Segment(segment) => segment.ends(),
            PathPart::Chunk(index) => match chunk_ends.get(*index) {
                Some(ends) => *ends,
                None => return wrong(format!("chunk {index} in its path is not an earlier one")),
            },
        };
        if part_start != end {
            return wrong(format!("its path jumps from position {end} to {part_start}"));
        }
        end = part_end;
    }
    if item.tokens.is_empty() {
        return wrong("it has no tokens".to_owned());
    }
    if end + item.tokens.len() > limits.context {
        let context = limits.context;
        return wrong(format!("it ends at {}, at most {context} fit", end + item.tokens.len()));
    }
    if let Some(id) = item.tokens.iter().find(|id| **id as usize >= limits.vocab) {
        return wrong(format!("token {id} is not below {}", limits.vocab));
    }
    item.start = end;
    Ok(item)
}

fn check_labels(row: usize, labels: &[u32], vocab: usize) -> Result<(), EngineError> {
    match labels.iter().find(|id| **id as usize >= vocab) {
        Some(id) => {
            Err(EngineError::Forward(format!("row {row}: label {id} is not below {vocab}")))
        }
        None => Ok(()),
    }
}

fn same_path<S: Placed>(a: &[PathPart<S>], b: &[PathPart<S>]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|parts| same_part(parts.0, parts.1))
}

fn same_part<S: Placed>(a: &PathPart<S>, b: &PathPart<S>) -> bool {
    match (a, b) {
        (PathPart::Segment(a), PathPart::Segment(b)) => a.is_clone_of(b),
        (PathPart::Chunk(a), PathPart::Chunk(b)) => a == b,
        (PathPart::Segment(_), PathPart::Chunk(_)) | (PathPart::Chunk(_), PathPart::Segment(_)) => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use actors::{Chunk, Origin, Row};

    use super::super::page::{PageShape, StoredAs};
    use super::super::segment::Pages;
    use super::*;

    const LIMITS: PackLimits<PageShape> = PackLimits {
        shape: PageShape { layers: 1, kv_heads: 1, head_dim: 2, stored: StoredAs::F32 },
        vocab: 10,
        context: 100,
    };

    fn segment(start: usize, tokens: usize) -> PathPart<CpuSegment> {
        PathPart::Segment(CpuSegment(Arc::new(Pages::new(LIMITS.shape, start, tokens).unwrap())))
    }

    fn row(path: &[PathPart<CpuSegment>], suffix: &[u32]) -> Row<CpuSegment> {
        Row {
            path: path.to_vec(),
            suffix: suffix.into(),
            labels: [1].into(),
            want_hidden: false,
            want_mass: false,
            origin: Origin::NONE,
        }
    }

    fn step(rows: Vec<Row<CpuSegment>>) -> Step<CpuSegment> {
        Step { id: 1, epoch: 1, chunks: Vec::new(), rows }
    }

    fn message(step: &Step<CpuSegment>) -> String {
        Pack::new(step, LIMITS).unwrap_err().to_string()
    }

    #[test]
    fn items_with_one_path_lie_together() {
        let (a, b) = ([segment(0, 5)], [segment(0, 5)]);
        let step = step(vec![row(&a, &[1]), row(&b, &[2]), row(&a, &[3, 4])]);
        let pack = Pack::new(&step, LIMITS).unwrap();
        assert_eq!(pack.ids, [1, 3, 4, 2]);
        assert_eq!(pack.positions, [5, 5, 6, 5]);
        assert_eq!(pack.groups, [0..2, 2..3]);
    }

    #[test]
    fn a_row_may_stand_on_a_chunk_of_its_step() {
        let mut step = step(vec![row(&[PathPart::Chunk(0)], &[7])]);
        step.chunks.push(Chunk {
            origin: Origin::NONE,
            path: Vec::new(),
            tokens: [1, 2, 3].into(),
        });
        let pack = Pack::new(&step, LIMITS).unwrap();
        assert_eq!(pack.positions, [0, 1, 2, 3]);
    }

    #[test]
    fn what_breaks_a_rule_is_named() {
        let path = [segment(0, 5), segment(6, 5)];
        assert!(message(&step(vec![row(&path, &[1])])).contains("jumps from position 5 to 6"));
        assert!(message(&step(vec![row(&[PathPart::Chunk(0)], &[1])])).contains("chunk 0"));
        assert!(message(&step(vec![row(&[], &[])])).contains("no tokens"));
        assert!(message(&step(vec![row(&[], &[10])])).contains("token 10 is not below 10"));
        assert!(message(&step(vec![row(&[], &[1; 101])])).contains("at most 100 fit"));
        let mut labels = row(&[], &[1]);
        labels.labels = [12].into();
        assert!(message(&step(vec![labels])).contains("label 12"));
    }
}
