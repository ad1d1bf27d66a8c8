//! Sentencepiece vocabularies of GGUF files: scored tokens, spaces as U+2581, bytes as `<0xNN>`.
//!
//! llama.cpp's rule (`llm_tokenizer_spm`): start from single characters and keep joining the two
//! neighbours whose union is the token of the highest score, leftmost first; what is no token in the
//! end is spelled in bytes. Our own loop, since it is short and merges derived from scores would
//! only nearly be it.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::path::Path;

use super::{Token, UNKNOWN};
use crate::files::{FilesError, GgufVocabulary};

/// What stands for a space.
const SPACE: char = '\u{2581}';

/// The encoder.
#[derive(Debug)]
pub(super) struct Sentencepiece {
    /// Id and score by text; control tokens are not in it.
    tokens: HashMap<Box<str>, (u32, f32)>,
    /// Bytes of the longest token.
    token_bytes_max: usize,
    byte_ids: Box<[u32; 256]>,
    adds_space: bool,
}

/// A run of characters that was joined; linked to its neighbours by index.
#[derive(Debug, Clone, Copy)]
struct Symbol {
    start: usize,
    /// 0 once it was joined to its left neighbour.
    len: usize,
    before: Option<usize>,
    after: Option<usize>,
}

/// Two neighbours that could be joined.
#[derive(Debug, Clone, Copy)]
struct Pair {
    score: f32,
    left: usize,
    right: usize,
    /// Bytes of both when the pair was found; differs later if one was joined meanwhile.
    len: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score.total_cmp(&other.score).then_with(|| other.left.cmp(&self.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Pair {}

impl Sentencepiece {
    /// Builds the encoder.
    pub(super) fn new(
        path: &Path,
        vocabulary: &GgufVocabulary,
        tokens: &[Token<'_>],
    ) -> Result<Self, FilesError> {
        if vocabulary.scores.len() != tokens.len() {
            let message = "tokenizer.ggml.scores is missing; sentencepiece needs it";
            return Err(FilesError::format(path, message));
        }
        let unknown = tokens.iter().find(|token| token.kind == UNKNOWN).map(|token| token.id);
        let plain = tokens.iter().zip(&vocabulary.scores).filter(|(token, _)| token.is_plain());
        let tokens: HashMap<Box<str>, _> =
            plain.map(|(token, score)| (token.text.into(), (token.id, *score))).collect();
        let mut byte_ids = Box::new([0; 256]);
        for (byte, id) in (0..=u8::MAX).zip(byte_ids.iter_mut()) {
            let found = tokens.get(format!("<0x{byte:02X}>").as_str()).map(|(id, _)| *id);
            let Some(found) = found.or(unknown) else {
                let message = format!("the vocabulary has no token for the byte {byte:#04x}");
                return Err(FilesError::format(path, message));
            };
            *id = found;
        }
        Ok(Self {
            token_bytes_max: tokens.keys().map(|text| text.len()).max().unwrap_or(0),
            tokens,
            byte_ids,
            adds_space: vocabulary.add_space_prefix,
        })
    }

    /// Appends the ids of `text`; the first text, and one after a literal token, gets the space
    /// that the vocabulary asks for.
    pub(super) fn encode(&self, text: &str, is_first: bool, ids: &mut Vec<u32>) {
        let mut spelled = String::with_capacity(text.len() + text.len() / 2);
        if self.adds_space && is_first {
            spelled.push(SPACE);
        }
        spelled.extend(text.chars().map(|each| if each == ' ' { SPACE } else { each }));
        for symbol in self.join(&spelled) {
            let text = &spelled[symbol.start..symbol.start + symbol.len];
            match self.tokens.get(text) {
                Some((id, _)) => ids.push(*id),
                None => ids.extend(text.bytes().map(|byte| self.byte_ids[usize::from(byte)])),
            }
        }
    }

    fn join(&self, text: &str) -> impl Iterator<Item = Symbol> + use<> {
        let mut symbols = characters(text);
        let mut pairs = BinaryHeap::new();
        for right in 1..symbols.len() {
            pairs.extend(self.pair(text, &symbols, Some(right - 1), Some(right)));
        }
        while let Some(pair) = pairs.pop() {
            let (left, right) = (symbols[pair.left], symbols[pair.right]);
            if left.len == 0 || right.len == 0 || left.len + right.len != pair.len {
                continue;
            }
            symbols[pair.left].len = pair.len;
            symbols[pair.left].after = right.after;
            symbols[pair.right].len = 0;
            if let Some(after) = right.after {
                symbols[after].before = Some(pair.left);
            }
            pairs.extend(self.pair(text, &symbols, left.before, Some(pair.left)));
            pairs.extend(self.pair(text, &symbols, Some(pair.left), right.after));
        }
        symbols.into_iter().filter(|symbol| symbol.len > 0)
    }

    fn pair(
        &self,
        text: &str,
        symbols: &[Symbol],
        left: Option<usize>,
        right: Option<usize>,
    ) -> Option<Pair> {
        let (left, right) = (left?, right?);
        let start = symbols[left].start;
        let len = symbols[left].len + symbols[right].len;
        if len > self.token_bytes_max {
            return None;
        }
        let (_, score) = *self.tokens.get(&text[start..start + len])?;
        Some(Pair { score, left, right, len })
    }
}

fn characters(text: &str) -> Vec<Symbol> {
    let mut symbols: Vec<Symbol> = Vec::with_capacity(text.len());
    for (start, character) in text.char_indices() {
        let index = symbols.len();
        let after = Some(index + 1);
        symbols.push(Symbol {
            start,
            len: character.len_utf8(),
            before: index.checked_sub(1),
            after,
        });
    }
    if let Some(last) = symbols.last_mut() {
        last.after = None;
    }
    symbols
}

/// Appends the bytes that a plain token stands for.
pub(super) fn piece(text: &str, bytes: &mut Vec<u8>) {
    let code = text.strip_prefix("<0x").and_then(|rest| rest.strip_suffix('>'));
    let byte =
        code.filter(|code| code.len() == 2).and_then(|code| u8::from_str_radix(code, 16).ok());
    match byte {
        Some(byte) => bytes.push(byte),
        None => bytes.extend_from_slice(text.replace(SPACE, " ").as_bytes()),
    }
}
