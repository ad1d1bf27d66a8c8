//! A lower bound of a text's tokens from its bytes alone.
//!
//! A byte that stands in no token longer than `n` bytes is at least an `n`th of the token that it
//! becomes. So the sum of those shares over a text is at most the number of its tokens: one pass of
//! additions tells that 20 MB of anything do not fit a context.

use super::{Token, sentencepiece};

/// A whole token, as a share.
const WHOLE: u64 = 1 << 32;

/// Share of a token by byte, in units of [`WHOLE`]; 0 for a byte that a text may lose.
#[derive(Debug)]
pub(super) struct Shares(Box<[u64; 256]>);

impl Shares {
    /// Of a byte-level vocabulary; `piece` gives the bytes that a token stands for.
    pub(super) fn byte_level(tokens: &[Token<'_>], piece: impl Fn(&str, &mut Vec<u8>)) -> Self {
        let mut longest = Longest::new();
        for token in tokens.iter().filter(|token| token.is_plain()) {
            let mut bytes = Vec::new();
            if token.is_literal() {
                bytes.extend_from_slice(token.text.as_bytes());
            } else {
                piece(token.text, &mut bytes);
            }
            longest.note(&bytes, bytes.len());
        }
        longest.shares()
    }

    /// Of a sentencepiece vocabulary, in which a token with spaces also stands for the text that
    /// spells them as it does.
    pub(super) fn sentencepiece(tokens: &[Token<'_>]) -> Self {
        let mut longest = Longest::new();
        for token in tokens.iter().filter(|token| token.is_plain()) {
            let mut bytes = Vec::new();
            sentencepiece::piece(token.text, &mut bytes);
            let len = bytes.len().max(token.text.len());
            longest.note(&bytes, len);
            longest.note(token.text.as_bytes(), len);
        }
        longest.shares()
    }

    /// The bound, rounded up.
    pub(super) fn tokens_min(&self, text: &str) -> usize {
        let sum: u64 = text.bytes().map(|byte| self.0[usize::from(byte)]).sum();
        usize::try_from(sum.div_ceil(WHOLE)).unwrap_or(usize::MAX)
    }
}

/// By byte: bytes of the longest token that has it, and whether it is a token itself.
struct Longest {
    bytes: [usize; 256],
    is_token: [bool; 256],
}

impl Longest {
    fn new() -> Self {
        Self { bytes: [0; 256], is_token: [false; 256] }
    }

    fn note(&mut self, token: &[u8], len: usize) {
        for byte in token {
            let longest = &mut self.bytes[usize::from(*byte)];
            *longest = len.max(*longest);
        }
        if let [byte] = token {
            self.is_token[usize::from(*byte)] = true;
        }
    }

    fn shares(&self) -> Shares {
        let share = |byte: usize| match (self.is_token[byte], self.bytes[byte] as u64) {
            (true, longest) => WHOLE / longest.max(1),
            // Without a token of its own it may be left out of a text.
            (false, _) => 0,
        };
        Shares(Box::new(std::array::from_fn(share)))
    }
}
