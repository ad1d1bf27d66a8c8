//! A model's own tokenizer, built from its files.
//!
//! Token ids are llama.cpp's for GGUF vocabularies (`tests/tokens` has the vectors) and Hugging
//! Face's for a `tokenizer.json`. Text is always plain: a control token that somebody types is
//! tokenised as the characters it is made of, and control ids come from [`TextTokenizer::controls`]
//! only.

mod bytelevel;
mod json;
mod literals;
mod pieces;
mod pre;
mod sentencepiece;
mod shares;

use std::path::Path;

use tokenizers::Tokenizer;

use self::bytelevel::ByteLevel;
use self::literals::{Fragment, Literals};
use self::pieces::Pieces;
use self::sentencepiece::Sentencepiece;
use self::shares::Shares;
use super::TextTokenizer;
use crate::files::{FilesError, GgufVocabulary, ModelFiles, TokenizerSource};

/// `tokenizer.ggml.token_type` of the unknown token.
const UNKNOWN: i32 = 2;
/// Of control tokens.
const CONTROL: i32 = 3;
/// Of tokens that are matched literally in text before anything else.
const USER_DEFINED: i32 = 4;

/// Texts that are control tokens even where a file calls them user-defined, as in llama.cpp
/// (`llama-vocab.cpp`: end of turn, end of message, fill in the middle). `</s>` is left out: where it
/// is the end of a sequence files say so, and elsewhere it is a word of HTML.
const CONTROL_TEXTS: [&str; 57] = [
    "<|eot_id|>",
    "<|im_end|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|flush|>",
    "<|calls|>",
    "<end_of_turn>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eom_id|>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<end_of_utterance>",
    "<eos>",
    "<turn|>",
    "<|tool_response>",
    "<｜end▁of▁sentence｜>",
    "[e~[",
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<｜fim▁begin｜>",
    "<PRE>",
    "▁<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<｜fim▁hole｜>",
    "<SUF>",
    "▁<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<｜fim▁end｜>",
    "<MID>",
    "▁<MID>",
    "<|code_middle|>",
    "<|middle|>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
    "<|im_start|>",
];

/// Control tokens that leave the white space behind them even where others swallow it (llama.cpp).
const NEVER_STRIP: [&str; 3] = ["<unk>", "<s>", "<|endoftext|>"];

/// A tokenizer of one of the supported kinds.
#[derive(Debug)]
pub struct ModelTokenizer {
    encoder: Encoder,
    literals: Literals,
    controls: Vec<(String, u32)>,
    /// Control tokens that swallow white space behind them.
    stripping: Vec<u32>,
    pieces: Pieces,
    /// `None` where text is changed before it is cut into tokens, so that its bytes tell nothing.
    shares: Option<Shares>,
}

/// The kinds.
#[derive(Debug)]
enum Encoder {
    ByteLevel(Box<ByteLevel>),
    Sentencepiece(Box<Sentencepiece>),
    Json(Box<Tokenizer>),
}

impl ModelTokenizer {
    /// Builds the tokenizer of an opened model.
    ///
    /// # Errors
    /// [`FilesError`] when the vocabulary is damaged or of a kind that is not supported; an unknown
    /// `tokenizer.ggml.pre` is refused by name, because any guess would change the tokens.
    pub fn open(files: &ModelFiles) -> Result<Self, FilesError> {
        let tokenizer = Self::new(&files.path, &files.tokenizer)?;
        tokenizer.check_rows(&files.path, files.config.vocab)?;
        Ok(tokenizer)
    }

    /// Refuses a tokenizer by which text could become an id that the embedding has no row for. Control
    /// tokens may lie beyond it: gemma 3 has one for images.
    ///
    /// # Errors
    /// [`FilesError`] with the token and the number of rows; `path` is for its message.
    pub fn check_rows(&self, path: &Path, rows: usize) -> Result<(), FilesError> {
        let ids = u32::try_from(rows).unwrap_or(u32::MAX)..;
        let beyond = ids.take(self.pieces.len().saturating_sub(rows)).find(|id| {
            !self.pieces.get(*id).is_empty() && !self.controls.iter().any(|(_, known)| known == id)
        });
        match beyond {
            None => Ok(()),
            Some(id) => {
                let message = format!("the tokenizer has the id {id}, the embedding {rows} rows");
                Err(FilesError::format(path, message))
            }
        }
    }

    /// Builds a tokenizer; `path` is for errors.
    ///
    /// # Errors
    /// As [`ModelTokenizer::open`].
    pub fn new(path: &Path, source: &TokenizerSource) -> Result<Self, FilesError> {
        match source {
            TokenizerSource::Json(path) => json::open(path),
            TokenizerSource::Gguf(vocabulary) => from_gguf(path, vocabulary),
        }
    }

    fn encode_fragment(&self, text: &str, is_first: bool, ids: &mut Vec<u32>) {
        match &self.encoder {
            Encoder::ByteLevel(encoder) => encoder.encode(text, ids),
            Encoder::Sentencepiece(encoder) => encoder.encode(text, is_first, ids),
            Encoder::Json(encoder) => ids.extend(json::encode(encoder, text)),
        }
    }
}

impl TextTokenizer for ModelTokenizer {
    fn encode(&self, text: &str) -> Vec<u32> {
        let mut ids = Vec::new();
        let mut is_first = true;
        for fragment in self.literals.split(text) {
            match fragment {
                Fragment::Text(text) => self.encode_fragment(text, is_first, &mut ids),
                Fragment::Token(id) => ids.push(id),
            }
            // A literal token starts afresh: sentencepiece puts its space after it.
            is_first = matches!(fragment, Fragment::Token(_));
        }
        ids
    }

    fn tokens_min(&self, text: &str) -> usize {
        self.shares.as_ref().map_or(0, |shares| shares.tokens_min(text))
    }

    fn controls(&self) -> &[(String, u32)] {
        &self.controls
    }

    fn strips_after(&self, control: u32) -> bool {
        self.stripping.contains(&control)
    }

    fn decode(&self, ids: &[u32]) -> Vec<u8> {
        ids.iter().flat_map(|id| self.pieces.get(*id)).copied().collect()
    }

    fn vocab_size(&self) -> usize {
        self.pieces.len()
    }
}

fn from_gguf(path: &Path, vocabulary: &GgufVocabulary) -> Result<ModelTokenizer, FilesError> {
    let tokens = typed_tokens(vocabulary);
    let (encoder, pieces, shares) = match vocabulary.model.as_str() {
        "gpt2" => {
            let encoder = Encoder::ByteLevel(Box::new(ByteLevel::new(path, vocabulary, &tokens)?));
            let shares = Shares::byte_level(&tokens, bytelevel::piece);
            (encoder, Pieces::new(&tokens, bytelevel::piece), shares)
        }
        "llama" => {
            let encoder = Sentencepiece::new(path, vocabulary, &tokens)?;
            let encoder = Encoder::Sentencepiece(Box::new(encoder));
            let shares = Shares::sentencepiece(&tokens);
            (encoder, Pieces::new(&tokens, sentencepiece::piece), shares)
        }
        other => {
            let message = format!(
                "the tokenizer {other} is not supported; supported are gpt2 (byte-level BPE) and \
                 llama (sentencepiece)"
            );
            return Err(FilesError::unsupported(path, message));
        }
    };
    let of_type = |kind: i32| tokens.iter().filter(move |token| token.kind == kind);
    let literals = Literals::new(of_type(USER_DEFINED).map(|token| (token.text, token.id)));
    let literals = literals.map_err(|error| FilesError::format(path, error))?;
    let controls = of_type(CONTROL).map(|token| (token.text.to_owned(), token.id)).collect();
    let strips = |text: &str| vocabulary.controls_strip && !NEVER_STRIP.contains(&text);
    let stripping = of_type(CONTROL).filter(|token| strips(token.text)).map(|token| token.id);
    let stripping = stripping.collect();
    let controls = longest_first(controls);
    Ok(ModelTokenizer { encoder, literals, controls, stripping, pieces, shares: Some(shares) })
}

/// One entry of a vocabulary.
#[derive(Debug, Clone, Copy)]
struct Token<'a> {
    text: &'a str,
    id: u32,
    kind: i32,
}

impl Token<'_> {
    /// Whether user text may become this token.
    fn is_plain(&self) -> bool {
        self.kind != CONTROL && self.kind != UNKNOWN && !self.text.is_empty()
    }

    /// Whether its text is to be taken as it is.
    fn is_literal(&self) -> bool {
        self.kind == CONTROL || self.kind == USER_DEFINED || self.kind == UNKNOWN
    }
}

fn typed_tokens(vocabulary: &GgufVocabulary) -> Vec<Token<'_>> {
    let typed = vocabulary.tokens.iter().zip(&vocabulary.types);
    (0_u32..)
        .zip(typed)
        .map(|(id, (text, kind))| {
            let is_control = *kind == USER_DEFINED && CONTROL_TEXTS.contains(&text.as_str());
            Token { text, id, kind: if is_control { CONTROL } else { *kind } }
        })
        .collect()
}

fn longest_first(mut controls: Vec<(String, u32)>) -> Vec<(String, u32)> {
    controls
        .sort_by(|left, right| right.0.len().cmp(&left.0.len()).then_with(|| left.0.cmp(&right.0)));
    controls
}
