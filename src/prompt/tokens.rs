//! Tokenizers: text to ids, with control tokens only where a template says so.

pub mod model;

use std::fmt;

/// A text tokenizer. Implementations: `tokens/bytes.rs` (the fake engine's), `tokens/model.rs`.
pub trait TextTokenizer: Send + Sync + fmt::Debug {
    /// Tokenises text as plain text: no BOS, and never a control token whatever the text says.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// All control tokens (`<|im_start|>`, ...) with their ids, longest text first.
    fn controls(&self) -> &[(String, u32)];

    /// The bytes that these tokens stand for; control tokens give their text.
    fn decode(&self, ids: &[u32]) -> Vec<u8>;

    /// Number of ids.
    fn vocab_size(&self) -> usize;
}
