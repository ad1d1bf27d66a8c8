//! The fake engine's tokenizer: one id a byte, and the two control tokens of `ChatML`.
//!
//! It needs no model file, so that everything above the engine can be run and tested without one.

use super::TextTokenizer;
use crate::files::PromptFacts;

const TURN_START: &str = "<|im_start|>";
const TURN_END: &str = "<|im_end|>";
/// Ids 0 to 255 are the bytes.
const TURN_START_ID: u32 = 256;
const TURN_END_ID: u32 = 257;

/// Turns framed as `ChatML` does, without a default system turn.
const TEMPLATE: &str = "{% for turn in messages %}{{ '<|im_start|>' ~ turn.role ~ '\\n' ~ turn.content \
     ~ '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// One id a byte.
#[derive(Debug, Clone)]
pub struct ByteTokenizer {
    controls: Vec<(String, u32)>,
}

impl ByteTokenizer {
    /// Makes one.
    pub fn new() -> Self {
        let start = (TURN_START.to_owned(), TURN_START_ID);
        Self { controls: vec![start, (TURN_END.to_owned(), TURN_END_ID)] }
    }

    /// The chat template that goes with it.
    pub fn facts() -> PromptFacts {
        PromptFacts {
            chat_template: Some(TEMPLATE.to_owned()),
            bos: None,
            eos: Some(TURN_END.to_owned()),
            add_bos: false,
        }
    }

    fn text_of(&self, id: u32) -> Option<&str> {
        self.controls.iter().find(|(_, control)| *control == id).map(|(text, _)| text.as_str())
    }
}

impl Default for ByteTokenizer {
    fn default() -> Self {
        Self::new()
    }
}

impl TextTokenizer for ByteTokenizer {
    fn encode(&self, text: &str) -> Vec<u32> {
        text.bytes().map(u32::from).collect()
    }

    fn tokens_min(&self, text: &str) -> usize {
        text.len()
    }

    fn controls(&self) -> &[(String, u32)] {
        &self.controls
    }

    /// Ids that are neither a byte nor a control token stand for nothing.
    fn decode(&self, ids: &[u32]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(ids.len());
        for &id in ids {
            match u8::try_from(id) {
                Ok(byte) => bytes.push(byte),
                Err(_) => bytes.extend(self.text_of(id).unwrap_or_default().bytes()),
            }
        }
        bytes
    }

    fn vocab_size(&self) -> usize {
        258
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_gives_back_what_was_encoded() {
        let tokenizer = ByteTokenizer::new();
        for text in ["", "plain", "é\u{0}😀", "<|im_end|>"] {
            assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text.as_bytes());
        }
    }

    #[test]
    fn case_46_control_strings_in_text_are_bytes() {
        let ids = ByteTokenizer::new().encode("<|im_start|>");
        assert_eq!(ids.len(), 12);
        assert!(ids.iter().all(|&id| id < 256));
    }

    #[test]
    fn control_ids_stand_for_their_text() {
        let tokenizer = ByteTokenizer::new();
        assert_eq!(tokenizer.decode(&[TURN_START_ID, 97, TURN_END_ID]), b"<|im_start|>a<|im_end|>");
        assert_eq!(tokenizer.decode(&[9999]), b"");
    }
}
