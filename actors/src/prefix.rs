//! Prefixes: what lies before a read's suffix, and the keys by which its blocks are found again.
//!
//! A state that has grown, was cut short or begins as another one does shares its beginning with it.
//! So a segment names, besides itself, each whole block of its tokens by a key over all tokens up to
//! the block's end; two segments have a block in common exactly where they have its key in common.

use std::sync::Arc;

use crate::engine::PAGE_TOKENS;
use crate::read::SegmentKey;

/// Keys of the whole blocks of a segment, each over the block's tokens and the key before it.
///
/// Blocks end at absolute multiples of [`PAGE_TOKENS`]: the first one of a segment that starts at
/// position `p` has `64 - p mod 64` tokens. Tokens behind the last such end belong to no block. The
/// chain's root is salted as the segment is, so no chain meets that of another tenant.
#[derive(Debug, Clone)]
pub(crate) struct BlockChain(Arc<Chain>);

#[derive(Debug)]
struct Chain {
    root: SegmentKey,
    /// Absolute position of the segment's first token.
    start: u32,
    keys: Vec<SegmentKey>,
}

impl BlockChain {
    fn new(root: SegmentKey, start: u32, tokens: &[u32]) -> Self {
        Self(Arc::new(Chain { root, start, keys: Vec::new() })).grown(tokens)
    }

    /// The chain of `tokens`, which begin with the tokens of this one.
    fn grown(&self, tokens: &[u32]) -> Self {
        let Chain { root, start, ref keys } = *self.0;
        let mut keys = keys.clone();
        let mut from = self.tokens_to(keys.len());
        let mut parent = keys.last().copied().unwrap_or(root);
        loop {
            let end = self.tokens_to(keys.len() + 1);
            let Some(block) = tokens.get(from as usize..end as usize) else { break };
            parent = parent.child(&[], block);
            keys.push(parent);
            from = end;
        }
        Self(Arc::new(Chain { root, start, keys }))
    }

    /// Tokens of the segment up to the end of its first `blocks` blocks.
    pub(crate) fn tokens_to(&self, blocks: usize) -> u32 {
        let blocks = u32::try_from(blocks).unwrap_or(u32::MAX);
        let end = (self.0.start / PAGE_TOKENS).saturating_add(blocks).saturating_mul(PAGE_TOKENS);
        if blocks == 0 { 0 } else { end - self.0.start }
    }

    /// Whole blocks within the first `tokens` tokens.
    pub(crate) fn blocks_in(&self, tokens: u32) -> usize {
        (((self.0.start + tokens) / PAGE_TOKENS - self.0.start / PAGE_TOKENS) as usize)
            .min(self.0.keys.len())
    }

    /// The block that comes after `done` tokens, which end with a block; `None` where no whole one
    /// follows.
    pub(crate) fn next(&self, done: u32) -> Option<SegmentKey> {
        self.0.keys.get(self.blocks_in(done)).copied()
    }

    /// The key of what comes after `done` tokens, and where that ends: the next block, or the rest of
    /// the segment `whole` of `len` tokens.
    pub(crate) fn piece(&self, done: u32, (whole, len): (SegmentKey, u32)) -> (SegmentKey, u32) {
        let block = self.blocks_in(done);
        let key = self.0.keys.get(block);
        key.map_or((whole, len), |key| (*key, self.tokens_to(block + 1)))
    }

    /// The key of the last piece of the segment `whole` of `len` tokens.
    pub(crate) fn end(&self, (whole, len): (SegmentKey, u32)) -> SegmentKey {
        let last = self.0.keys.last().filter(|_| self.tokens_to(self.0.keys.len()) == len);
        last.copied().unwrap_or(whole)
    }

    /// How many tokens of the segment `whole` of `len` tokens are held, by what is held of its pieces.
    /// A piece is held only if all before it are.
    pub(crate) fn held(
        &self,
        (whole, len): (SegmentKey, u32),
        is_held: impl Fn(SegmentKey) -> bool,
    ) -> u32 {
        if is_held(self.end((whole, len))) {
            return len;
        }
        self.tokens_to(self.0.keys.partition_point(|key| is_held(*key)))
    }

    /// The key above its first block: one for all chains of a parent and a salt.
    pub(crate) fn root(&self) -> SegmentKey {
        self.0.root
    }

    /// How many blocks it has in common with `other`.
    pub(crate) fn common(&self, other: &Self) -> usize {
        let pairs = self.0.keys.iter().zip(&other.0.keys);
        pairs.take_while(|(mine, theirs)| mine == theirs).count()
    }

    /// The key of the last of its first `blocks` blocks.
    pub(crate) fn last_of(&self, blocks: usize) -> Option<SegmentKey> {
        self.0.keys.get(blocks.checked_sub(1)?).copied()
    }
}

/// One logical segment of a prefix: the template head, or a state.
#[derive(Debug, Clone)]
pub struct SegmentSpec {
    /// Identity, parent included.
    pub key: SegmentKey,
    /// Its tokens; may be empty only for the head.
    pub tokens: Arc<[u32]>,
    /// Its whole blocks. Made here only, so that key and blocks name the same tokens.
    pub(crate) blocks: BlockChain,
}

impl SegmentSpec {
    /// The head of all prompts of one model and rendering, whose key is `root`.
    pub fn head(root: SegmentKey, tokens: Arc<[u32]>) -> Self {
        let blocks = BlockChain::new(root, 0, &tokens);
        Self { key: root.child(&[], &tokens), tokens, blocks }
    }

    /// A state after `head`, under a tenant's `salt`. Hashes all tokens twice: not for a handler.
    pub fn state(head: &Self, salt: &[u8], tokens: Arc<[u32]>) -> Self {
        let start = u32::try_from(head.tokens.len()).unwrap_or(u32::MAX);
        let blocks = BlockChain::new(head.key.child(salt, &[]), start, &tokens);
        Self { key: head.key.child(salt, &tokens), tokens, blocks }
    }

    /// This segment with more tokens behind it: a key of its own under `salt`, the same blocks as far
    /// as they go.
    #[must_use]
    pub fn extended(&self, salt: &[u8], tokens: &[u32]) -> Self {
        let key = self.key.child(salt, tokens);
        let tokens: Arc<[u32]> = self.tokens.iter().chain(tokens).copied().collect();
        let blocks = self.blocks.grown(&tokens);
        Self { key, tokens, blocks }
    }

    /// Tokens that are not held, by what is held of its pieces.
    pub(crate) fn missing(&self, is_held: impl Fn(SegmentKey) -> bool) -> u32 {
        let len = u32::try_from(self.tokens.len()).unwrap_or(u32::MAX);
        if len == 0 { 0 } else { len - self.blocks.held((self.key, len), is_held) }
    }

    /// The keys of the pieces that these tokens are in.
    pub(crate) fn pieces_missing(
        &self,
        is_held: impl Fn(SegmentKey) -> bool,
    ) -> impl Iterator<Item = SegmentKey> {
        let len = u32::try_from(self.tokens.len()).unwrap_or(u32::MAX);
        let mut done = len - self.missing(is_held);
        std::iter::from_fn(move || {
            let (key, end) = (done < len).then(|| self.blocks.piece(done, (self.key, len)))?;
            done = end;
            Some(key)
        })
    }
}

/// The tokens before a read's suffix: head, then state; shared by all reads of a state.
#[derive(Debug, Clone)]
pub struct Prefix {
    /// The template head, the same for every request and tenant; kept resident from its first use.
    pub head: SegmentSpec,
    /// The state, salted by tenant.
    pub state: SegmentSpec,
}

impl Prefix {
    /// Length in tokens.
    pub fn tokens(&self) -> u32 {
        u32::try_from(self.head.tokens.len() + self.state.tokens.len()).unwrap_or(u32::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn head(tokens: u32) -> SegmentSpec {
        SegmentSpec::head(SegmentKey::root(b"model"), (0..tokens).collect())
    }

    fn state(head: &SegmentSpec, salt: &[u8], tokens: &[u32]) -> SegmentSpec {
        SegmentSpec::state(head, salt, tokens.into())
    }

    #[test]
    fn blocks_end_at_absolute_multiples_of_a_page() {
        let tokens: Vec<u32> = (0..200).collect();
        for (start, ends) in [(0, vec![64, 128, 192]), (20, vec![44, 108, 172]), (63, vec![1, 65])]
        {
            let blocks = state(&head(start), b"s", &tokens).blocks;
            let found: Vec<_> =
                (1..=blocks.0.keys.len()).map(|count| blocks.tokens_to(count)).collect();
            assert_eq!(found[..ends.len()], ends, "start {start}");
            assert!(200 - found.last().unwrap() < 64);
        }
    }

    #[test]
    fn another_salt_or_head_shares_no_block() {
        let tokens: Vec<u32> = (0..300).collect();
        let (short, long) = (head(20), head(21));
        let others = [(&short, b"a"), (&short, b"b"), (&long, b"a")];
        let keys = others.map(|(head, salt)| state(head, salt, &tokens).blocks.0.keys.clone());
        let all: BTreeSet<_> = keys.iter().flatten().collect();
        assert_eq!(all.len(), keys.iter().map(Vec::len).sum::<usize>());
    }

    proptest! {
        /// Key soundness: a block is shared exactly where all tokens up to its end are, whatever comes
        /// again behind a difference.
        #[test]
        fn chains_are_shared_as_far_as_tokens_are(
            start in 0u32..130, common in 0u32..300, a in 0usize..150, b in 0usize..150, tail in 0usize..200,
        ) {
            let head = head(start);
            let tokens = |own: usize, mark: u32| -> Vec<u32> {
                let own = std::iter::repeat_n(mark, own);
                (0..common).chain(own).chain(std::iter::repeat_n(5, tail)).collect()
            };
            let (one, two) = (state(&head, b"s", &tokens(a, 7_001)), state(&head, b"s", &tokens(b, 7_002)));
            let alike = one.tokens.iter().zip(&*two.tokens).take_while(|(mine, theirs)| mine == theirs);
            let alike = u32::try_from(alike.count()).unwrap();
            let shared = one.blocks.common(&two.blocks);
            prop_assert_eq!(shared, one.blocks.blocks_in(alike).min(two.blocks.blocks_in(alike)));
            let keys = |spec: &SegmentSpec| spec.blocks.0.keys.iter().copied().collect::<BTreeSet<_>>();
            prop_assert_eq!(keys(&one).intersection(&keys(&two)).count(), shared);
            prop_assert_eq!(keys(&one).len(), one.blocks.0.keys.len());
            prop_assert!(one.key != two.key || one.tokens == two.tokens);
        }

        /// A chain that is extended is the chain of the whole.
        #[test]
        fn an_extended_chain_is_that_of_all_tokens(start in 0u32..70, cut in 0usize..300) {
            let tokens: Vec<u32> = (0..300).collect();
            let head = head(start);
            let extended = state(&head, b"s", &tokens[..cut]).extended(b"x", &tokens[cut..]);
            let whole = state(&head, b"s", &tokens);
            prop_assert_eq!(&extended.blocks.0.keys, &whole.blocks.0.keys);
            prop_assert_eq!(&extended.tokens, &whole.tokens);
            prop_assert_ne!(extended.key, whole.key);
        }

        /// What is held is found by its pieces, at any length.
        #[test]
        fn held_tokens_are_counted_by_pieces(start in 0u32..70, len in 1u32..300, held in 0usize..7) {
            let spec = state(&head(start), b"s", &(0..len).collect::<Vec<_>>());
            let (mut done, mut keys) = (0, BTreeSet::new());
            while done < len && keys.len() < held {
                let (key, end) = spec.blocks.piece(done, (spec.key, len));
                prop_assert!(end > done && end - done <= PAGE_TOKENS);
                keys.insert(key);
                done = end;
            }
            prop_assert_eq!(spec.missing(|key| keys.contains(&key)), len - done);
        }
    }
}
