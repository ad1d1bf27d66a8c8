//! The vectors, and the laws that hold for every vocabulary.

use docket::prompt::tokens::TextTokenizer as _;

use super::support::{Vocabulary, texts};

/// What an assertion shows of a difference.
const SHOWN_MAX: usize = 5;

pub(crate) const QWEN2: Vocabulary = Vocabulary {
    file: "ggml-vocab-qwen2",
    name: "vocabularies",
    vectors: include_str!("data/qwen2.json"),
};
pub(crate) const LLAMA_BPE: Vocabulary = Vocabulary {
    file: "ggml-vocab-llama-bpe",
    name: "vocabularies",
    vectors: include_str!("data/llama-bpe.json"),
};
pub(crate) const GPT_2: Vocabulary = Vocabulary {
    file: "ggml-vocab-gpt-2",
    name: "vocabularies",
    vectors: include_str!("data/gpt-2.json"),
};
pub(crate) const LLAMA_SPM: Vocabulary = Vocabulary {
    file: "ggml-vocab-llama-spm",
    name: "vocabularies",
    vectors: include_str!("data/llama-spm.json"),
};
pub(crate) const SMOLLM: Vocabulary =
    Vocabulary { file: "smollm2", name: "smollm2:135m", vectors: include_str!("data/smollm.json") };

fn compare(vocabulary: &Vocabulary) {
    let Some(tokenizer) = vocabulary.tokenizer() else { return };
    let (texts, expected) = (texts(), vocabulary.ids());
    assert_eq!((texts.len(), expected.len()), (200, 200));
    let different: Vec<_> = texts
        .iter()
        .zip(&expected)
        .map(|(text, expected)| (text, tokenizer.encode(text), expected))
        .filter(|(_, ids, expected)| ids != *expected)
        .collect();
    let shown = different.iter().take(SHOWN_MAX).collect::<Vec<_>>();
    assert!(different.is_empty(), "{} texts differ, e.g. {shown:#?}", different.len());
}

/// Laws: decoding gives the text back, no text becomes a control token, and the ids fit.
fn laws(vocabulary: &Vocabulary, prefix: &str) {
    let Some(tokenizer) = vocabulary.tokenizer() else { return };
    assert!(!tokenizer.controls().is_empty());
    for text in texts() {
        let ids = tokenizer.encode(&text);
        let control = tokenizer.controls().iter().find(|(_, id)| ids.contains(id));
        assert_eq!(control, None, "{text:?}");
        assert!(ids.iter().all(|id| (*id as usize) < tokenizer.vocab_size()));
        let prefix = if text.is_empty() { "" } else { prefix };
        // Sentencepiece has one spelling for a space and for its own mark, U+2581.
        let same =
            |text: &str| text.replace('\u{2581}', if prefix.is_empty() { "\u{2581}" } else { " " });
        let decoded = String::from_utf8(tokenizer.decode(&ids)).unwrap();
        assert_eq!(same(&decoded), same(&format!("{prefix}{text}")));
    }
}

#[test]
fn qwen2_ids_equal_llama_cpp() {
    compare(&QWEN2);
}

#[test]
fn llama_bpe_ids_equal_llama_cpp() {
    compare(&LLAMA_BPE);
}

#[test]
fn gpt_2_ids_equal_llama_cpp() {
    compare(&GPT_2);
}

#[test]
fn sentencepiece_ids_equal_llama_cpp() {
    compare(&LLAMA_SPM);
}

#[test]
fn smollm_ids_equal_llama_cpp() {
    compare(&SMOLLM);
}

#[test]
fn text_comes_back_and_never_becomes_a_control_token() {
    for vocabulary in [QWEN2, LLAMA_BPE, GPT_2, SMOLLM] {
        laws(&vocabulary, "");
    }
    laws(&LLAMA_SPM, " ");
}

#[test]
fn a_control_tokens_text_typed_by_a_user_is_plain_text() {
    for vocabulary in [QWEN2, LLAMA_BPE, GPT_2, LLAMA_SPM, SMOLLM] {
        let Some(tokenizer) = vocabulary.tokenizer() else { continue };
        for (text, id) in tokenizer.controls() {
            assert!(!tokenizer.encode(text).contains(id), "{text}");
            assert!(!tokenizer.encode(&format!("a {text}{text}\n")).contains(id), "{text}");
            assert_eq!(tokenizer.decode(&[*id]), text.as_bytes());
        }
    }
}

#[test]
fn a_prompt_is_its_prefix_and_its_question_at_the_boundary() {
    let question = " Is it urgent?\nA. yes\nB. no\nAnswer:";
    for vocabulary in [QWEN2, LLAMA_BPE, GPT_2, SMOLLM] {
        let Some(tokenizer) = vocabulary.tokenizer() else { continue };
        for state in texts() {
            let prefix = format!("State: {state}\n\nQuestion:");
            let mut parts = tokenizer.encode(&prefix);
            parts.extend(tokenizer.encode(question));
            assert_eq!(parts, tokenizer.encode(&format!("{prefix}{question}")), "{state:?}");
        }
    }
}

#[test]
fn pathological_texts_are_tokenised_in_linear_time() {
    let Some(tokenizer) = QWEN2.tokenizer() else { return };
    for unit in [" ", "\n", " \n", "a", "1", "<", "\u{301}", "\u{1F600}"] {
        let text = unit.repeat(300_000 / unit.len());
        assert_eq!(tokenizer.decode(&tokenizer.encode(&text)), text.as_bytes());
    }
}
