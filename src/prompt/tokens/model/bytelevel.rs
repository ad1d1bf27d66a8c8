//! Byte-level BPE: every byte has a printable stand-in, so that any text can be spelled.

use std::path::Path;
use std::sync::LazyLock;

use tokenizers::Model as _;
use tokenizers::models::bpe::{BPE, Vocab};

use super::Token;
use super::pre::PreTokenizer;
use crate::files::{FilesError, GgufVocabulary};

/// Stand-in of each byte: itself where it is printable, else a character from U+0100 on, in order
/// (GPT-2's `bytes_to_unicode`).
static STAND_INS: LazyLock<[char; 256]> = LazyLock::new(|| {
    let mut next = 0x100;
    std::array::from_fn(|byte| {
        let printable = matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
        let code = if printable { u32::try_from(byte).unwrap_or(0) } else { next };
        next += u32::from(!printable);
        char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
    })
});

/// The byte of each stand-in, by code point; stand-ins end before U+0144.
static BYTES: LazyLock<[Option<u8>; 0x144]> = LazyLock::new(|| {
    let mut bytes = [None; 0x144];
    for (byte, stand_in) in (0..=u8::MAX).zip(STAND_INS.iter()) {
        bytes[*stand_in as usize] = Some(byte);
    }
    bytes
});

/// The encoder.
#[derive(Debug)]
pub(super) struct ByteLevel {
    pre: PreTokenizer,
    bpe: BPE,
}

impl ByteLevel {
    /// Builds the encoder. Control tokens stay outside its vocabulary, so no text can become one.
    pub(super) fn new(
        path: &Path,
        vocabulary: &GgufVocabulary,
        tokens: &[Token<'_>],
    ) -> Result<Self, FilesError> {
        let Some(name) = &vocabulary.pre else {
            let message = "tokenizer.ggml.pre is missing; without it the tokens would be a guess";
            return Err(FilesError::unsupported(path, message));
        };
        let pre =
            PreTokenizer::new(name).map_err(|message| FilesError::unsupported(path, message))?;
        let plain = tokens.iter().filter(|token| token.is_plain());
        let vocab: Vocab = plain.map(|token| (token.text.to_owned(), token.id)).collect();
        let has = |byte: u8| vocab.contains_key(&STAND_INS[usize::from(byte)].to_string());
        if let Some(byte) = (0..=u8::MAX).find(|byte| is_needed(*byte) && !has(*byte)) {
            let message = format!("the vocabulary has no token for the byte {byte:#04x}");
            return Err(FilesError::format(path, message));
        }
        let merges = merges(&vocabulary.merges, &vocab);
        let merges = merges.map_err(|message| FilesError::format(path, message))?;
        let bpe = BPE::builder()
            .vocab_and_merges(vocab, merges)
            .ignore_merges(pre.ignores_merges)
            .build()
            .map_err(|error| FilesError::format(path, format!("the vocabulary: {error}")))?;
        Ok(Self { pre, bpe })
    }

    /// Appends the ids of `text`.
    /// A byte without a token (see [`is_needed`]) is left out, as in llama.cpp.
    #[expect(clippy::expect_used, reason = "fails only where an unknown token is set; none is")]
    pub(super) fn encode(&self, text: &str, ids: &mut Vec<u32>) {
        let mut spelled = String::new();
        self.pre.split(text, |word| {
            spelled.clear();
            spelled.extend(word.bytes().map(|byte| STAND_INS[usize::from(byte)]));
            let tokens = self.bpe.tokenize(&spelled).expect("no unknown token is set");
            ids.extend(tokens.iter().map(|token| token.id));
        });
    }
}

/// Bytes without which text would be lost: all but ASCII controls and those that begin no assigned
/// character (`SmolLM2`'s vocabulary, made from text, lacks some of them).
fn is_needed(byte: u8) -> bool {
    matches!(byte, b'\n' | b' '..=b'~' | 0x80..=0xBF | 0xC2..=0xF0)
}

/// Splits the merges and checks that what each makes is a token (the builder relies on it).
fn merges(lines: &[String], vocab: &Vocab) -> Result<Vec<(String, String)>, String> {
    let mut merges = Vec::with_capacity(lines.len());
    for line in lines {
        // A part may begin with a space only in vocabularies that are not byte-level.
        let Some((left, right)) = line.split_once(' ') else {
            return Err(format!("the merge {line:?} is not two tokens"));
        };
        let made = format!("{left}{right}");
        if let Some(unknown) =
            [left, right, &made].into_iter().find(|text| !vocab.contains_key(*text))
        {
            return Err(format!(
                "the merge {line:?} needs the token {unknown:?}, which is not there"
            ));
        }
        merges.push((left.to_owned(), right.to_owned()));
    }
    Ok(merges)
}

/// Appends the bytes that a plain token stands for.
pub(super) fn piece(text: &str, bytes: &mut Vec<u8>) {
    for character in text.chars() {
        match BYTES.get(character as usize).copied().flatten() {
            Some(byte) => bytes.push(byte),
            None => bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_a_stand_in_of_its_own_and_back() {
        assert_eq!(STAND_INS[usize::from(b' ')], 'Ġ');
        assert_eq!(STAND_INS[usize::from(b'\n')], 'Ċ');
        assert_eq!(STAND_INS[0xAD], '\u{143}');
        for byte in 0..=u8::MAX {
            let mut back = Vec::new();
            piece(&STAND_INS[usize::from(byte)].to_string(), &mut back);
            assert_eq!(back, [byte]);
        }
    }
}
