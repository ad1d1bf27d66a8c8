//! `tokenizer.json` files, through the tokenizers crate.
//!
//! The file is changed before the crate sees it: special tokens are taken out (user text must not
//! match them), and with them the post-processor, truncation and padding (nothing may be added to or
//! cut from a text).

use std::collections::{BTreeMap, HashSet};
use std::panic::catch_unwind;
use std::path::Path;

use serde_json::Value;
use tokenizers::Tokenizer;

use super::literals::Literals;
use super::pieces::Pieces;
use super::{
    CONTROL, CONTROL_TEXTS, Encoder, ModelTokenizer, Token, USER_DEFINED, bytelevel, longest_first,
    sentencepiece,
};
use crate::files::{FilesError, regular};

/// Largest file that is read (gemma's has 33 MB).
const BYTES_MAX: u64 = 256 << 20;
/// Ids are below this; the largest vocabularies have a sixteenth of it. Tables by id are made before
/// the embedding's rows are known.
const IDS_MAX: u32 = 1 << 22;
/// Characters that hardly any vocabulary has, encoded once at start: what a tokenizer does with
/// unknown characters must be known then.
const TRIAL: &str = "a \u{10FFFD}\u{0}\u{E000}\n";

/// Reads a `tokenizer.json`.
pub(super) fn open(path: &Path) -> Result<ModelTokenizer, FilesError> {
    let size = regular(path)?;
    if size > BYTES_MAX {
        let message = format!("{size} bytes; a tokenizer.json may have {BYTES_MAX}");
        return Err(FilesError::format(path, message));
    }
    let text = std::fs::read_to_string(path).map_err(|error| FilesError::io(path, error))?;
    build(&text).map_err(|message| FilesError::format(path, message))
}

fn build(text: &str) -> Result<ModelTokenizer, String> {
    let mut root: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    require_bpe(&root)?;
    for key in ["post_processor", "truncation", "padding"] {
        root[key] = Value::Null;
    }
    let style = format!("{}{}", root["decoder"], root["pre_tokenizer"]);
    let piece =
        if style.contains("\"ByteLevel\"") { bytelevel::piece } else { sentencepiece::piece };
    let entries = entries(&root)?;
    let tokens: Vec<_> =
        entries.iter().map(|(id, (text, kind))| Token { text, id: *id, kind: *kind }).collect();
    let pieces = Pieces::new(&tokens, piece);
    let controls: Vec<_> = tokens
        .iter()
        .filter(|token| token.kind == CONTROL)
        .map(|token| (token.text.to_owned(), token.id))
        .collect();
    let stripping = stripping(&root);
    remove_controls(&mut root, &controls)?;
    check_merges(&root["model"])?;
    let changed = serde_json::to_vec(&root).map_err(|error| error.to_string())?;
    // The crate trusts a file in more places than are checked here.
    let tokenizer = catch_unwind(|| tried(&changed))
        .unwrap_or_else(|_| Err("the tokenizers crate panicked over it".to_owned()))?;
    Ok(ModelTokenizer {
        encoder: Encoder::Json(Box::new(tokenizer)),
        literals: Literals::default(),
        controls: longest_first(controls),
        stripping,
        pieces,
        shares: None,
    })
}

/// Added tokens that swallow white space behind them.
fn stripping(root: &Value) -> Vec<u32> {
    let added = root["added_tokens"].as_array().map_or(&[][..], Vec::as_slice);
    let strips = added.iter().filter(|token| token["rstrip"] == true);
    strips.filter_map(|token| u32::try_from(token["id"].as_u64()?).ok()).collect()
}

/// The crate's tokenizer, after it has encoded something.
fn tried(text: &[u8]) -> Result<Tokenizer, String> {
    let tokenizer = Tokenizer::from_bytes(text).map_err(|error| error.to_string())?;
    tokenizer
        .encode_fast(TRIAL, false)
        .map_err(|error| format!("the tokenizer cannot encode {TRIAL:?}: {error}"))?;
    Ok(tokenizer)
}

/// What the crate's builder relies on without looking: a merge makes a token of the vocabulary, and
/// (no supported model has one) no prefix is to be cut from its second part.
fn check_merges(model: &Value) -> Result<(), String> {
    let prefix = &model["continuing_subword_prefix"];
    if !prefix.is_null() && prefix != "" {
        return Err("continuing_subword_prefix is not supported".to_owned());
    }
    let vocab = model["vocab"].as_object().ok_or("the tokenizer has no vocabulary")?;
    for merge in model["merges"].as_array().into_iter().flatten() {
        let parts = merge_parts(merge);
        let is_known = |text: &str| vocab.contains_key(text);
        if parts.len() != 2
            || !parts.iter().all(|part| is_known(part))
            || !is_known(&parts.concat())
        {
            return Err(format!("the merge {merge} is not of two tokens that make a third"));
        }
    }
    Ok(())
}

/// A merge's parts: a line with a space between, or an array.
fn merge_parts(merge: &Value) -> Vec<&str> {
    match merge.as_str() {
        Some(line) => line.splitn(2, ' ').collect(),
        None => merge.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    }
}

/// Other models (unigram, word pieces) belong to none of the supported decoders.
fn require_bpe(root: &Value) -> Result<(), String> {
    let model = &root["model"];
    let name = model["type"].as_str().unwrap_or("of no type");
    if name == "BPE" || (model["type"].is_null() && model["merges"].is_array()) {
        return Ok(());
    }
    Err(format!("the tokenizer model {name} is not supported; supported is BPE"))
}

/// All tokens by id: those of the model, and the added ones, which win.
fn entries(root: &Value) -> Result<BTreeMap<u32, (String, i32)>, String> {
    let id = |value: &Value| {
        let id = value.as_u64().and_then(|id| u32::try_from(id).ok());
        id.filter(|id| *id < IDS_MAX)
            .ok_or_else(|| format!("the token id {value} is not below {IDS_MAX}"))
    };
    let mut entries = BTreeMap::new();
    for (text, value) in root["model"]["vocab"].as_object().into_iter().flatten() {
        entries.insert(id(value)?, (text.clone(), 1));
    }
    for token in root["added_tokens"].as_array().into_iter().flatten() {
        let text = token["content"].as_str().unwrap_or_default().to_owned();
        let is_control = token["special"] == true || CONTROL_TEXTS.contains(&text.as_str());
        let kind = if is_control { CONTROL } else { USER_DEFINED };
        entries.insert(id(&token["id"])?, (text, kind));
    }
    Ok(entries)
}

/// Takes control tokens out of everything that could match or make them.
fn remove_controls(root: &mut Value, controls: &[(String, u32)]) -> Result<(), String> {
    let texts: HashSet<&str> = controls.iter().map(|(text, _)| text.as_str()).collect();
    if let Some(added) = root["added_tokens"].as_array_mut() {
        added.retain(|token| !texts.contains(token["content"].as_str().unwrap_or_default()));
    }
    let unknown = root["model"]["unk_token"].as_str().map(str::to_owned);
    let Some(merges) = root["model"]["merges"].as_array_mut() else {
        return Err("the tokenizer has no merges".to_owned());
    };
    let keeps = |text: &str| !texts.contains(text);
    merges.retain(|merge| {
        let parts = merge_parts(merge);
        keeps(&parts.concat()) && parts.iter().all(|part| keeps(part))
    });
    if let Some(vocab) = root["model"]["vocab"].as_object_mut() {
        vocab.retain(|text, _| keeps(text) || unknown.as_deref() == Some(text));
    }
    Ok(())
}

/// The ids of plain text.
#[expect(clippy::expect_used, reason = "the one way to fail, an unknown character, was tried")]
pub(super) fn encode(tokenizer: &Tokenizer, text: &str) -> Vec<u32> {
    let encoding = tokenizer.encode_fast(text, false).expect("the tokenizer was tried at start");
    encoding.get_ids().to_vec()
}
