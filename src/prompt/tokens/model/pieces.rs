//! The bytes that each token stands for, in one flat buffer.

use super::Token;

/// Bytes by token id.
#[derive(Debug)]
pub(super) struct Pieces {
    bytes: Vec<u8>,
    /// Where each token's bytes end.
    ends: Vec<usize>,
}

impl Pieces {
    /// Collects the bytes of `tokens`, whose ids ascend; `plain` gives those of a plain token, the
    /// others stand for their own text. An id without a token gets no bytes.
    pub(super) fn new(tokens: &[Token<'_>], plain: impl Fn(&str, &mut Vec<u8>)) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for token in tokens {
            ends.resize(token.id as usize, bytes.len());
            if token.is_literal() {
                bytes.extend_from_slice(token.text.as_bytes());
            } else {
                plain(token.text, &mut bytes);
            }
            ends.push(bytes.len());
        }
        Self { bytes, ends }
    }

    /// The bytes of a token; none for an id outside the vocabulary.
    pub(super) fn get(&self, id: u32) -> &[u8] {
        let id = id as usize;
        let Some(&end) = self.ends.get(id) else { return &[] };
        let start = id.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..end]
    }

    /// Number of ids.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }
}
