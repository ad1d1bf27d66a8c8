//! Tiny vocabularies: every byte, a few words, control and user-defined tokens.

use docket::files::GgufVocabulary;
use serde_json::{Map, Value, json};

/// Normal, unknown, control, user-defined, unused and byte tokens.
const KINDS: [i32; 6] = [1, 2, 3, 4, 5, 6];

/// A byte-level BPE vocabulary of `rows` tokens with the pre-tokenizer `pre`.
pub(crate) fn byte_level(pre: &str, rows: usize) -> GgufVocabulary {
    let [normal, _, control, user, unused, _] = KINDS;
    let mut tokens: Vec<String> = (0..256).map(|byte| stand_in(byte).to_string()).collect();
    let merges = [
        "h e", "l l", "he ll", "hell o", "Ġ w", "o r", "Ġw or", "l d", "Ġwor ld", "1 2", "Ġ Ġ",
        "Ċ Ċ", "Ġ x",
    ];
    tokens.extend(merges.iter().map(|merge| merge.replace(' ', "")));
    let mut types = vec![normal; tokens.len()];
    for (text, kind) in [
        ("<|im_start|>", control),
        ("<|im_end|>", control),
        ("<|endoftext|>", control),
        ("<tool>", user),
        ("<tool>x", user),
    ] {
        tokens.push(text.to_owned());
        types.push(kind);
    }
    pad(&mut tokens, &mut types, rows, unused);
    GgufVocabulary {
        model: "gpt2".to_owned(),
        pre: Some(pre.to_owned()),
        tokens,
        types,
        merges: merges.map(str::to_owned).to_vec(),
        ..GgufVocabulary::default()
    }
}

/// A sentencepiece vocabulary of `rows` tokens.
pub(crate) fn sentencepiece(add_space_prefix: bool, rows: usize) -> GgufVocabulary {
    let [normal, unknown, control, user, unused, byte_kind] = KINDS;
    let mut tokens: Vec<String> =
        ["<unk>", "<bos>", "<eos>", "<end_of_turn>", "  ", "<b>"].map(str::to_owned).to_vec();
    let mut types = vec![unknown, control, control, control, user, user];
    for byte in 0..256 {
        tokens.push(format!("<0x{byte:02X}>"));
        types.push(byte_kind);
    }
    let words = ["▁", "h", "e", "l", "o", "w", "r", "d", "he", "ll", "hell", "hello", "▁w", "or"];
    for word in words.into_iter().chain(["▁wor", "ld", "▁world", "é", "<", "b", ">", "<b"]) {
        tokens.push(word.to_owned());
        types.push(normal);
    }
    pad(&mut tokens, &mut types, rows, unused);
    let scores = (0..tokens.len()).map(|id| if id < 262 { 0.0 } else { -(id as f32) }).collect();
    GgufVocabulary {
        model: "llama".to_owned(),
        pre: Some("default".to_owned()),
        tokens,
        types,
        scores,
        add_space_prefix,
        ..GgufVocabulary::default()
    }
}

fn pad(tokens: &mut Vec<String>, types: &mut Vec<i32>, rows: usize, unused: i32) {
    while tokens.len() < rows {
        tokens.push(format!("[PAD{}]", tokens.len()));
        types.push(unused);
    }
}

/// The byte-level vocabulary as a `tokenizer.json`.
pub(crate) fn tokenizer_json(vocabulary: &GgufVocabulary) -> Value {
    let entries = || (0_u32..).zip(vocabulary.tokens.iter().zip(&vocabulary.types));
    let added: Vec<_> = entries()
        .filter(|(_, (_, kind))| matches!(**kind, 3 | 4))
        .map(|(id, (text, kind))| {
            json!({
                "id": id, "content": text, "special": *kind == 3, "single_word": false,
                "lstrip": false, "rstrip": false, "normalized": false,
            })
        })
        .collect();
    let vocab: Map<String, Value> = entries()
        .filter(|(_, (_, kind))| !matches!(**kind, 3 | 4))
        .map(|(id, (text, _))| (text.clone(), json!(id)))
        .collect();
    let rule = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";
    let byte_level = json!({
        "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": false, "use_regex": false,
    });
    json!({
        "version": "1.0",
        "truncation": { "direction": "Right", "max_length": 4, "strategy": "LongestFirst", "stride": 0 },
        "padding": null,
        "added_tokens": added,
        "normalizer": null,
        "pre_tokenizer": { "type": "Sequence", "pretokenizers": [
            { "type": "Split", "pattern": { "Regex": rule }, "behavior": "Isolated", "invert": false },
            byte_level,
        ] },
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                { "SpecialToken": { "id": "<|endoftext|>", "type_id": 0 } },
                { "Sequence": { "id": "A", "type_id": 0 } },
            ],
            "pair": [],
            "special_tokens": { "<|endoftext|>": {
                "id": "<|endoftext|>", "ids": [271], "tokens": ["<|endoftext|>"],
            } },
        },
        "decoder": byte_level,
        "model": {
            "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": "",
            "end_of_word_suffix": "", "fuse_unk": false, "byte_fallback": false,
            "ignore_merges": false, "vocab": vocab, "merges": vocabulary.merges,
        },
    })
}

/// GPT-2's printable stand-in of a byte, written anew rather than shared with the reader.
fn stand_in(byte: u32) -> char {
    let is_printable = |byte: u32| matches!(byte, 0x21..=0x7E | 0xA1..=0xAC | 0xAE..=0xFF);
    if is_printable(byte) {
        return char::from_u32(byte).unwrap();
    }
    let before = (0..byte).filter(|each| !is_printable(*each)).count();
    char::from_u32(0x100 + u32::try_from(before).unwrap()).unwrap()
}
