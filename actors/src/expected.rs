//! Blocks that open decisions and prewarms will have computed, so that admission counts once what
//! several of them need.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::prefix::{Prefix, SegmentSpec};
use crate::read::SegmentKey;

/// How many expect each block. Blocks that were resident when somebody came are not here; what is here
/// is bounded by the reads and prewarms that may be open.
#[derive(Debug, Default)]
pub(crate) struct Expected(Mutex<BTreeMap<SegmentKey, usize>>);

impl Expected {
    /// Expects all of `prefix` that is not resident, until the expectation is dropped; beside it the
    /// tokens of that which nobody else expects.
    pub(crate) fn expect(
        self: &Arc<Self>,
        prefix: &Prefix,
        is_resident: impl Fn(SegmentKey) -> bool,
    ) -> (Expectation, u64) {
        let mut counts = self.counts();
        let parts = [&prefix.head, &prefix.state];
        let is_coming = |key| is_resident(key) || counts.contains_key(&key);
        let tokens = parts.map(|part| u64::from(part.missing(is_coming))).iter().sum();
        let missing = |part: &SegmentSpec| part.pieces_missing(&is_resident).collect::<Vec<_>>();
        let keys: Vec<_> = parts.into_iter().flat_map(missing).collect();
        for key in &keys {
            *counts.entry(*key).or_insert(0) += 1;
        }
        drop(counts);
        (Expectation { expected: Arc::clone(self), keys }, tokens)
    }

    /// Tokens of `prefix` that are not resident and that nobody expects.
    pub(crate) fn unexpected(
        &self,
        prefix: &Prefix,
        is_resident: impl Fn(SegmentKey) -> bool,
    ) -> u64 {
        let counts = self.counts();
        let is_coming = |key| is_resident(key) || counts.contains_key(&key);
        [&prefix.head, &prefix.state].map(|part| u64::from(part.missing(is_coming))).iter().sum()
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<SegmentKey, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one decision or prewarm expects.
#[derive(Debug)]
pub(crate) struct Expectation {
    expected: Arc<Expected>,
    keys: Vec<SegmentKey>,
}

impl Drop for Expectation {
    fn drop(&mut self) {
        let mut counts = self.expected.counts();
        for key in &self.keys {
            let Some(count) = counts.get_mut(key) else { continue };
            *count -= 1;
            if *count == 0 {
                counts.remove(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(name: u32, tokens: u32) -> Prefix {
        let head = SegmentSpec::head(SegmentKey::root(b"h"), [1, 2, 3].into());
        // What differs stands behind 200 tokens that all have in common.
        let state = (0..tokens).map(|at| if at < 200 { at } else { at + name * 1_000 }).collect();
        Prefix { state: SegmentSpec::state(&head, b"salt", state), head }
    }

    #[test]
    fn what_several_need_is_counted_for_the_first_of_them() {
        let expected = Arc::new(Expected::default());
        let nothing = |_| false;
        let (first, tokens) = expected.expect(&prefix(1, 300), nothing);
        assert_eq!(tokens, 303);
        let (same, tokens) = expected.expect(&prefix(1, 300), nothing);
        assert_eq!(tokens, 0, "the same state");
        // Three whole blocks end at position 192, of which the head has three tokens.
        let (other, tokens) = expected.expect(&prefix(2, 300), nothing);
        assert_eq!(tokens, 300 - 189);
        drop((first, same));
        let (_, tokens) = expected.expect(&prefix(1, 300), nothing);
        assert_eq!(tokens, 300 - 189, "the other still needs the beginning");
        drop(other);
        assert_eq!(expected.counts().len(), 0);
    }

    #[test]
    fn what_is_resident_is_not_expected() {
        let expected = Arc::new(Expected::default());
        let (expectation, tokens) = expected.expect(&prefix(1, 300), |_| true);
        assert_eq!((tokens, expectation.keys.len()), (0, 0));
    }
}
