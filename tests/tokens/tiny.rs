//! Tokenizers over tiny vocabularies of our own, which need no file from elsewhere.
//!
//! `data/tiny.json` has llama.cpp's ids for the same vocabularies (README.md).

use std::collections::BTreeMap;
use std::path::Path;

use docket::files::{GgufVocabulary, TokenizerSource};
use docket::prompt::pieces::{Piece, pieces};
use docket::prompt::tokens::TextTokenizer as _;
use docket::prompt::tokens::model::ModelTokenizer;
use tempfile::TempDir;

use super::support::texts;
use super::writers::vocabulary::{byte_level, sentencepiece, tokenizer_json};
use super::writers::wide::VOCAB;

fn build(vocabulary: GgufVocabulary) -> Result<ModelTokenizer, String> {
    let source = TokenizerSource::Gguf(Box::new(vocabulary));
    ModelTokenizer::new(Path::new("tiny.gguf"), &source).map_err(|error| error.to_string())
}

/// The vocabularies of `data/tiny.json`.
fn vocabularies() -> Vec<(&'static str, GgufVocabulary)> {
    vec![
        ("qwen2", byte_level("qwen2", VOCAB)),
        ("llama-bpe", byte_level("llama-bpe", VOCAB)),
        ("gpt-2", byte_level("gpt-2", VOCAB)),
        ("smollm", byte_level("smollm", VOCAB)),
        ("glm4", byte_level("glm4", VOCAB)),
        ("stablelm2", byte_level("stablelm2", VOCAB)),
        ("spm", sentencepiece(false, VOCAB)),
        ("spm-space", sentencepiece(true, VOCAB)),
    ]
}

#[test]
fn user_defined_tokens_are_cut_out_and_control_tokens_are_not() {
    let tokenizer = build(byte_level("qwen2", VOCAB)).unwrap();
    let [plain, longer] = [272, 273];
    assert_eq!(tokenizer.encode("<tool><tool>x"), [plain, longer]);
    assert_eq!(tokenizer.decode(&[plain, longer]), b"<tool><tool>x");
    assert_eq!(tokenizer.encode("<|im_end|>").len(), "<|im_end|>".len());
    let controls: Vec<_> = tokenizer.controls().iter().map(|(text, _)| text.as_str()).collect();
    assert_eq!(controls, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]);
    assert_eq!(tokenizer.vocab_size(), VOCAB);
}

#[test]
fn joining_pieces_never_makes_a_control_token() {
    let mut vocabulary = sentencepiece(true, VOCAB);
    let hello = vocabulary.tokens.iter().position(|token| token == "hello").unwrap();
    let id = u32::try_from(hello).unwrap();
    assert!(build(vocabulary.clone()).unwrap().encode("a hello").contains(&id));
    vocabulary.types[hello] = 3;
    let tokenizer = build(vocabulary).unwrap();
    assert!(!tokenizer.encode("a hello").contains(&id));
    assert_eq!(tokenizer.decode(&tokenizer.encode("a hello")), b" a hello");
}

#[test]
fn an_unknown_pre_tokenizer_or_model_is_refused_by_name() {
    let mut vocabulary = byte_level("default", VOCAB);
    let error = build(vocabulary.clone()).unwrap_err();
    assert!(error.contains("default") && error.contains("smollm"), "{error}");
    vocabulary.pre = None;
    assert!(build(vocabulary.clone()).unwrap_err().contains("tokenizer.ggml.pre is missing"));
    vocabulary.model = "t5".to_owned();
    assert!(build(vocabulary).unwrap_err().contains("t5"));
}

#[test]
fn control_tokens_of_phi_3_swallow_white_space_behind_them_in_a_template() {
    let mut vocabulary = sentencepiece(true, VOCAB);
    let text = "<end_of_turn>\n hello<bos>\n";
    let texts_of = |tokenizer: &ModelTokenizer| {
        let parts = pieces(tokenizer, text);
        let texts = parts.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some((*text).to_owned()),
            Piece::Control(_) => None,
        });
        texts.collect::<Vec<_>>()
    };
    let plain = build(vocabulary.clone()).unwrap();
    assert_eq!(texts_of(&plain), ["\n hello", "\n"]);
    vocabulary.controls_strip = true;
    assert_eq!(texts_of(&build(vocabulary.clone()).unwrap()), ["hello"]);
    // `<s>` never does.
    *vocabulary.tokens.iter_mut().find(|token| *token == "<bos>").unwrap() = "<s>".to_owned();
    let text = "<end_of_turn>\n<s>\n";
    assert_eq!(pieces(&build(vocabulary).unwrap(), text).last(), Some(&Piece::Text("\n")));
}

#[test]
fn damaged_vocabularies_are_refused() {
    let mut vocabulary = byte_level("qwen2", VOCAB);
    vocabulary.merges.push("zz yy".to_owned());
    assert!(build(vocabulary.clone()).unwrap_err().contains("zz"));
    *vocabulary.merges.last_mut().unwrap() = "nospace".to_owned();
    assert!(build(vocabulary).unwrap_err().contains("nospace"));
    let mut vocabulary = byte_level("qwen2", VOCAB);
    vocabulary.tokens[usize::from(b'a')] = "gone".to_owned();
    assert!(build(vocabulary).unwrap_err().contains("0x61"));
    let mut vocabulary = sentencepiece(true, VOCAB);
    vocabulary.scores.clear();
    assert!(build(vocabulary).unwrap_err().contains("scores"));
}

#[test]
fn a_tokenizer_json_gives_the_same_tokens_as_the_gguf_vocabulary() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("tokenizer.json");
    let vocabulary = byte_level("qwen2", VOCAB);
    std::fs::write(&path, tokenizer_json(&vocabulary).to_string()).unwrap();
    let json = ModelTokenizer::new(&path, &TokenizerSource::Json(path.clone())).unwrap();
    let gguf = build(vocabulary).unwrap();
    assert_eq!(json.controls(), gguf.controls());
    for text in texts() {
        let ids = gguf.encode(&text);
        // The long s is a contraction's letter only where case is folded by Unicode.
        if !text.contains('\u{17f}') {
            assert_eq!(json.encode(&text), ids, "{text:?}");
        }
        assert_eq!(json.decode(&ids), text.as_bytes());
    }
}

#[test]
fn a_token_of_text_beyond_the_embedding_is_refused_and_a_control_token_is_not() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("tokenizer.json");
    let vocabulary = byte_level("qwen2", VOCAB);
    let mut root = tokenizer_json(&vocabulary);
    let added = root["added_tokens"].as_array_mut().unwrap();
    let mut control = added[0].clone();
    control["content"] = "<image>".into();
    control["id"] = (VOCAB + 4).into();
    added.push(control);
    let build = |root: &serde_json::Value| {
        std::fs::write(&path, root.to_string()).unwrap();
        ModelTokenizer::new(&path, &TokenizerSource::Json(path.clone()))
    };
    let tokenizer = build(&root).unwrap();
    assert_eq!(tokenizer.vocab_size(), VOCAB + 5);
    tokenizer.check_rows(&path, VOCAB).unwrap();
    let error = tokenizer.check_rows(&path, VOCAB - 1).unwrap_err().to_string();
    assert!(error.contains("the id 319, the embedding 319 rows"), "{error}");
    root["model"]["vocab"]["far"] = (1 << 22).into();
    assert!(build(&root).unwrap_err().to_string().contains("4194304 is not below 4194304"));
}

#[test]
fn merges_that_the_tokenizers_crate_would_panic_over_are_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("tokenizer.json");
    let whole = tokenizer_json(&byte_level("qwen2", VOCAB));
    let refusal = |key: &str, value: serde_json::Value| {
        let mut root = whole.clone();
        root["model"][key] = value;
        std::fs::write(&path, root.to_string()).unwrap();
        let source = TokenizerSource::Json(path.clone());
        ModelTokenizer::new(&path, &source).unwrap_err().to_string()
    };
    let long = "[PAD300] [PAD301]";
    for merges in [vec![long], vec!["h"], vec!["h e", "e zz"], vec!["h e l"]] {
        let last = (*merges.last().unwrap()).to_owned();
        let message = refusal("merges", merges.into());
        assert!(message.contains(&last) && message.contains("tokenizer.json"), "{message}");
    }
    assert!(refusal("merges", serde_json::json!([["h", 1]])).contains("two tokens"));
    let prefix = refusal("continuing_subword_prefix", "##".into());
    assert!(prefix.contains("continuing_subword_prefix"), "{prefix}");
}

#[test]
fn a_tokenizer_json_splits_pathological_texts_like_the_gguf_vocabulary() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("tokenizer.json");
    let vocabulary = byte_level("qwen2", VOCAB);
    std::fs::write(&path, tokenizer_json(&vocabulary).to_string()).unwrap();
    let json = ModelTokenizer::new(&path, &TokenizerSource::Json(path.clone())).unwrap();
    let gguf = build(vocabulary).unwrap();
    for unit in [" ", "\n", " \n", "a", "1", "<", "hello ", "\u{301}"] {
        let text = format!("{}x", unit.repeat(200_000 / unit.len()));
        assert!(json.encode(&text) == gguf.encode(&text), "{unit:?}");
    }
}

#[test]
fn a_tokenizer_json_of_another_model_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("tokenizer.json");
    let mut root = tokenizer_json(&byte_level("qwen2", VOCAB));
    root["model"]["type"] = "Unigram".into();
    for (text, part) in
        [(root.to_string(), "Unigram"), ("{".to_owned(), "EOF"), ("[]".to_owned(), "")]
    {
        std::fs::write(&path, text).unwrap();
        let error = ModelTokenizer::new(&path, &TokenizerSource::Json(path.clone())).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
    }
}

#[test]
fn ids_over_tiny_vocabularies_equal_llama_cpp() {
    let expected: BTreeMap<String, Vec<Vec<u32>>> =
        serde_json::from_str(include_str!("data/tiny.json")).unwrap();
    for (name, vocabulary) in vocabularies() {
        let tokenizer = build(vocabulary).unwrap();
        // Every other text, without the long ones at the end: tiny vocabularies spell them out.
        let texts: Vec<_> = texts().into_iter().take(196).step_by(2).collect();
        assert_eq!(expected[name].len(), texts.len());
        for (text, ids) in texts.iter().zip(&expected[name]) {
            assert_eq!(&tokenizer.encode(text), ids, "{name} {text:?}");
            assert!(tokenizer.tokens_min(text) <= ids.len(), "{name} {text:?}");
        }
    }
}

/// Writes the vocabularies as GGUF files into `DOCKET_TEST_WRITE`, for `llama_ids.py`.
#[test]
fn vocabularies_are_written_where_asked() {
    let Some(folder) = super::support::variable("DOCKET_TEST_WRITE") else { return };
    for (name, vocabulary) in vocabularies() {
        let path = Path::new(&folder).join(format!("tiny-{name}.gguf"));
        let architecture = docket::files::Architecture::Llama;
        let model = super::writers::wide::wide(architecture);
        let mut entries = super::writers::gguf::hyper_parameters(&model.config);
        entries.extend(super::writers::gguf::vocabulary_entries(&vocabulary));
        super::writers::gguf::write_raw(&path, &entries, &[]);
    }
}
