//! A step as requests: which rows go to which state, and what is sent ahead of them.
//!
//! No clock and no socket. Rows of one state are one batch, which goes to one server; a batch has its
//! prefix sent ahead, so that the server computes it once and its rows find it. That is left out where
//! the server has it already, and where one row stands on it, which then is what warms the cache.

use std::collections::BTreeMap;

use actors::{Origin, SegmentKey, Step};

use super::segment::{RemoteSegment, ids_of};

/// What a step asks about one state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Batch {
    pub(super) origin: Origin,
    /// The longest run of tokens from position 0 that the step has of the state.
    pub(super) prefix: Vec<u32>,
    /// Rows of the step on it, by number.
    pub(super) rows: Vec<usize>,
}

impl Batch {
    /// Whether its prefix is to be sent ahead.
    ///
    /// * `is_held`: whether the server is believed to have it.
    pub(super) fn needs_warming(&self, is_held: bool) -> bool {
        match self.rows.len() {
            // Nothing else would have the server read it.
            0 => true,
            1 => false,
            _ => !is_held && !self.prefix.is_empty(),
        }
    }

    /// Tokens of its prefix.
    pub(super) fn prefix_tokens(&self) -> u32 {
        u32::try_from(self.prefix.len()).unwrap_or(u32::MAX)
    }
}

/// The batches of a step, in the order of their first items.
///
/// # Errors
/// A text where a path names a chunk that the step has not.
pub(super) fn batches(step: &Step<RemoteSegment>) -> Result<Vec<Batch>, String> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut places: BTreeMap<SegmentKey, usize> = BTreeMap::new();
    let mut of = |batches: &mut Vec<Batch>, origin: Origin| {
        *places.entry(origin.state).or_insert_with(|| {
            batches.push(Batch { origin, prefix: Vec::new(), rows: Vec::new() });
            batches.len() - 1
        })
    };
    let foreign = || "a path names a chunk that is not of this step".to_owned();
    for chunk in &step.chunks {
        let at = of(&mut batches, chunk.origin);
        let mut prefix = ids_of(step, &chunk.path).ok_or_else(foreign)?;
        prefix.extend_from_slice(&chunk.tokens);
        let batch = &mut batches[at];
        if prefix.len() > batch.prefix.len() {
            batch.prefix = prefix;
        }
    }
    for (number, row) in step.rows.iter().enumerate() {
        let at = of(&mut batches, row.origin);
        let batch = &mut batches[at];
        if batch.rows.is_empty() {
            let prefix = ids_of(step, &row.path).ok_or_else(foreign)?;
            if prefix.len() > batch.prefix.len() {
                batch.prefix = prefix;
            }
        }
        batch.rows.push(number);
    }
    Ok(batches)
}

/// The whole prompt of a row; `None` where its path names a chunk that the step has not.
pub(super) fn prompt(step: &Step<RemoteSegment>, row: usize) -> Option<Vec<u32>> {
    let row = step.rows.get(row)?;
    let mut ids = ids_of(step, &row.path)?;
    ids.extend_from_slice(&row.suffix);
    Some(ids)
}

#[cfg(test)]
mod tests {
    use actors::{Chunk, PathPart, Row};

    use super::*;

    fn origin(name: u8) -> Origin {
        let key = SegmentKey::root(&[name]);
        Origin { state: key, salt: key }
    }

    fn held(tokens: &[u32]) -> PathPart<RemoteSegment> {
        PathPart::Segment(RemoteSegment::new(tokens.into(), 0, 1))
    }

    fn row(name: u8, path: Vec<PathPart<RemoteSegment>>, suffix: &[u32]) -> Row<RemoteSegment> {
        Row {
            origin: origin(name),
            path,
            suffix: suffix.into(),
            labels: [1].into(),
            want_hidden: false,
            want_mass: false,
        }
    }

    fn chunk(name: u8, path: Vec<PathPart<RemoteSegment>>, tokens: &[u32]) -> Chunk<RemoteSegment> {
        Chunk { origin: origin(name), path, tokens: tokens.into() }
    }

    #[test]
    fn chunks_and_rows_of_a_state_are_one_batch() {
        let chunks = vec![
            chunk(1, Vec::new(), &[1, 2]),
            chunk(1, vec![PathPart::Chunk(0)], &[3]),
            chunk(2, vec![held(&[1, 2])], &[9]),
        ];
        let rows = vec![
            row(3, vec![held(&[1, 2]), held(&[7])], &[50]),
            row(1, vec![PathPart::Chunk(0), PathPart::Chunk(1)], &[51]),
            row(3, vec![held(&[1, 2]), held(&[7])], &[52]),
        ];
        let step = Step { id: 1, epoch: 0, chunks, rows };
        let batches = batches(&step).unwrap();
        let seen: Vec<_> =
            batches.iter().map(|batch| (batch.prefix.clone(), batch.rows.clone())).collect();
        let expected =
            [(vec![1, 2, 3], vec![1]), (vec![1, 2, 9], vec![]), (vec![1, 2, 7], vec![0, 2])];
        assert_eq!(seen, expected);
        assert_eq!(prompt(&step, 1), Some(vec![1, 2, 3, 51]));
        assert_eq!(prompt(&step, 3), None);
    }

    #[test]
    fn a_prefix_goes_ahead_where_it_saves_or_is_all_there_is() {
        let batch = |rows: usize| Batch {
            origin: origin(1),
            prefix: vec![1, 2],
            rows: (0..rows).collect(),
        };
        assert!(batch(0).needs_warming(false) && batch(0).needs_warming(true));
        assert!(!batch(1).needs_warming(false));
        assert!(batch(2).needs_warming(false) && !batch(2).needs_warming(true));
        let bare = Batch { prefix: Vec::new(), ..batch(2) };
        assert!(!bare.needs_warming(false), "there is nothing to warm");
    }

    #[test]
    fn a_path_without_its_chunk_is_an_error() {
        let rows = vec![row(1, vec![PathPart::Chunk(4)], &[5])];
        let step = Step { id: 1, epoch: 0, chunks: Vec::new(), rows };
        assert!(batches(&step).unwrap_err().contains("not of this step"));
    }
}
