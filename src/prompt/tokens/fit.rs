//! Whether a text fits: told without tokenising all of a text that certainly does not.
//!
//! A few kilobytes on the wire can be many megabytes of text, and a context holds little of that. So
//! a text that is long for its limit is judged by its bytes first, then by its beginning.

use std::time::Instant;

use super::{Gone, TextTokenizer};
use crate::telemetry;

/// More bytes a token than nearly any text has: shorter texts are tokenised whole, so that what is
/// said of their length is exact.
const BYTES_PER_TOKEN_MANY: usize = 16;

/// Tokens by which those of a text's beginning may differ from the beginning of the text's tokens;
/// merges reach over a few words at most.
const CUT_TOKENS: usize = 1024;

/// How much longer each beginning is than the one tried before it.
const GROWTH: usize = 4;

/// Why a text was not tokenised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It has at least so many tokens, which is more than fit.
    AtLeast(usize),
    /// Nobody waits for it any more.
    Gone,
}

/// The tokens of `text`: all of them, which may be more than `tokens_max` where that was not worth
/// telling beforehand.
///
/// # Errors
/// [`Unfit::AtLeast`] with a number above `tokens_max`; [`Unfit::Gone`].
pub fn encode_within(
    tokenizer: &dyn TextTokenizer,
    text: &str,
    tokens_max: usize,
    gone: &Gone,
) -> Result<Vec<u32>, Unfit> {
    let mut bytes = tokens_max.saturating_mul(BYTES_PER_TOKEN_MANY);
    if text.len() > bytes {
        within(tokenizer.tokens_min(text), tokens_max)?;
    }
    while bytes < text.len() && !gone.is_set() {
        let (beginning, rest) = text.split_at(text.floor_char_boundary(bytes));
        let tokens = tokenizer.encode(beginning).len().saturating_sub(CUT_TOKENS);
        within(tokens + tokenizer.tokens_min(rest).saturating_sub(1), tokens_max)?;
        bytes = bytes.saturating_mul(GROWTH);
    }
    if gone.is_set() {
        return Err(Unfit::Gone);
    }
    let began = Instant::now();
    let ids = tokenizer.encode(text);
    telemetry::tokenised(began.elapsed());
    Ok(ids)
}

fn within(tokens: usize, tokens_max: usize) -> Result<(), Unfit> {
    if tokens > tokens_max { Err(Unfit::AtLeast(tokens)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// One token for each `x`, none for anything else; certain of nothing unless told to be.
    #[derive(Debug, Default)]
    struct Counting {
        is_certain: bool,
        encoded_bytes: AtomicUsize,
    }

    impl TextTokenizer for Counting {
        fn encode(&self, text: &str) -> Vec<u32> {
            self.encoded_bytes.fetch_add(text.len(), Ordering::Relaxed);
            text.bytes().filter(|byte| *byte == b'x').map(u32::from).collect()
        }

        fn tokens_min(&self, text: &str) -> usize {
            if self.is_certain { text.bytes().filter(|byte| *byte == b'x').count() } else { 0 }
        }

        fn controls(&self) -> &[(String, u32)] {
            &[]
        }

        fn decode(&self, _: &[u32]) -> Vec<u8> {
            Vec::new()
        }

        fn vocab_size(&self) -> usize {
            256
        }
    }

    fn tried(is_certain: bool, text: &str, max: usize) -> (Result<usize, Unfit>, usize) {
        let tokenizer = Counting { is_certain, ..Counting::default() };
        let ids = encode_within(&tokenizer, text, max, &Gone::default());
        (ids.map(|ids| ids.len()), tokenizer.encoded_bytes.into_inner())
    }

    #[test]
    fn a_text_that_is_a_little_too_long_is_counted_to_its_end() {
        assert_eq!(tried(true, &"x".repeat(1_600), 100), (Ok(1_600), 1_600));
    }

    #[test]
    fn what_its_bytes_say_for_certain_refuses_a_text_untokenised() {
        assert_eq!(tried(true, &"x".repeat(1_000_000), 100), (Err(Unfit::AtLeast(1_000_000)), 0));
    }

    #[test]
    fn a_beginning_that_is_too_long_ends_the_search() {
        let (refused, encoded) = tried(false, &"x".repeat(10_000_000), 1_000);
        assert_eq!(refused, Err(Unfit::AtLeast(16_000 - CUT_TOKENS)));
        assert_eq!(encoded, 16_000);
    }

    #[test]
    fn beginnings_grow_until_one_tells() {
        let sparse = format!("x{}", " ".repeat(63)).repeat(200_000);
        let (refused, encoded) = tried(false, &sparse, 1_000);
        assert!(matches!(refused, Err(Unfit::AtLeast(tokens)) if tokens > 1_000));
        assert!(encoded < sparse.len() / 10, "{encoded} of {}", sparse.len());
    }

    #[test]
    fn a_text_of_many_bytes_and_few_tokens_fits() {
        let text = " ".repeat(1_000_000) + "x";
        assert_eq!(tried(false, &text, 10).0, Ok(1));
        assert_eq!(tried(true, &text, 10).0, Ok(1));
    }

    #[test]
    fn nothing_more_is_tokenised_once_nobody_waits() {
        let tokenizer = Counting::default();
        let gone = Gone::default();
        gone.set();
        assert_eq!(encode_within(&tokenizer, "xxx", 100, &gone), Err(Unfit::Gone));
        assert_eq!(tokenizer.encoded_bytes.into_inner(), 0);
    }
}
