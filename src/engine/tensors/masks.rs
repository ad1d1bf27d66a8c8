//! Masks of a step's attention: made once, shared by all layers and by blocks of one size.
//!
//! A query sees its own item's keys up to itself, and in layers with a sliding window only those
//! less than the window away. Where all keys are seen there is no mask.

use std::collections::BTreeMap;

use candle_core::{Device, Tensor};

/// Where a block's queries stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Sight {
    /// Queries; as many own keys are beside them.
    pub(super) queries: usize,
    /// Keys before the first query that are looked at.
    pub(super) before: usize,
}

/// The masks of one kind of layers: 0 where a key is seen, minus infinity where it is not.
#[derive(Debug)]
pub(super) struct Masks {
    /// Sliding window in tokens.
    window: Option<usize>,
    /// Of the keys before the queries: `[queries, 1, before]`.
    before: BTreeMap<Sight, Tensor>,
    /// Of the keys beside the queries: `[queries, 1, queries]`.
    beside: BTreeMap<usize, Tensor>,
}

impl Masks {
    /// The masks that these blocks need.
    pub(super) fn new(
        sights: impl Iterator<Item = Sight>,
        window: Option<usize>,
        device: &Device,
    ) -> candle_core::Result<Self> {
        let mut masks = Self { window, before: BTreeMap::new(), beside: BTreeMap::new() };
        for sight in sights {
            masks.add(sight, device)?;
        }
        Ok(masks)
    }

    /// The mask of the keys before a block's queries, unless all of them see all.
    pub(super) fn before(&self, sight: Sight) -> Option<&Tensor> {
        self.before.get(&sight)
    }

    /// The mask of the keys beside a block's queries, unless there is one query only.
    pub(super) fn beside(&self, queries: usize) -> Option<&Tensor> {
        self.beside.get(&queries)
    }

    fn add(&mut self, sight: Sight, device: &Device) -> candle_core::Result<()> {
        let Sight { queries, before } = sight;
        let window = self.window.unwrap_or(usize::MAX);
        // The last query is this far from the first key before it.
        if before > 0 && queries - 1 + before >= window && !self.before.contains_key(&sight) {
            let mask = mask((queries, before), |query, key| query + before - key < window, device);
            self.before.insert(sight, mask?);
        }
        if queries > 1 && !self.beside.contains_key(&queries) {
            let sees = |query: usize, key: usize| key <= query && query - key < window;
            self.beside.insert(queries, mask((queries, queries), sees, device)?);
        }
        Ok(())
    }
}

/// `[queries, 1, keys]`.
fn mask(
    (queries, keys): (usize, usize),
    sees: impl Fn(usize, usize) -> bool,
    device: &Device,
) -> candle_core::Result<Tensor> {
    let sees = &sees;
    let row =
        |query| (0..keys).map(move |key| if sees(query, key) { 0.0 } else { f32::NEG_INFINITY });
    let values: Vec<f32> = (0..queries).flat_map(row).collect();
    Tensor::from_vec(values, (queries, 1, keys), device)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(mask: Option<&Tensor>) -> Option<Vec<Vec<usize>>> {
        let rows: Vec<Vec<f32>> = mask?.squeeze(1).unwrap().to_vec2().unwrap();
        let keys = |row: &Vec<f32>| (0..row.len()).filter(|key| row[*key].is_finite()).collect();
        Some(rows.iter().map(keys).collect())
    }

    fn masks(queries: usize, before: usize, window: Option<usize>) -> (Masks, Sight) {
        let sight = Sight { queries, before };
        (Masks::new([sight].into_iter(), window, &Device::Cpu).unwrap(), sight)
    }

    #[test]
    fn a_query_sees_itself_and_all_before_it() {
        let (masks, sight) = masks(3, 5, None);
        assert_eq!(seen(masks.before(sight)), None);
        assert_eq!(seen(masks.beside(3)), Some(vec![vec![0], vec![0, 1], vec![0, 1, 2]]));
    }

    #[test]
    fn a_window_reaches_back_less_than_its_width() {
        let (masks, sight) = masks(4, 2, Some(3));
        let before = vec![vec![0, 1], vec![1], vec![], vec![]];
        assert_eq!(seen(masks.before(sight)), Some(before));
        let beside = vec![vec![0], vec![0, 1], vec![0, 1, 2], vec![1, 2, 3]];
        assert_eq!(seen(masks.beside(4)), Some(beside));
    }

    #[test]
    fn where_all_is_seen_there_is_no_mask() {
        let (masks, sight) = masks(1, 2, Some(3));
        assert_eq!((seen(masks.before(sight)), seen(masks.beside(1))), (None, None));
    }
}
