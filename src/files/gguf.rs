//! GGUF files: one file with metadata, vocabulary and (usually quantised) weights.

mod config;
mod header;
mod names;
mod types;
mod weights;

use std::path::Path;

use rayon::prelude::*;

use self::config::Metadata;
use self::header::{Header, Value};
use self::weights::{GgufTensors, Stored};
use super::fingerprint::Fingerprint;
use super::map::FileMap;
use super::nature::{self, Nature};
use super::{
    DecoderConfig, FilesError, GgufVocabulary, KvShape, ModelFiles, PromptFacts, PromptFiles,
    TokenizerSource, check,
};

/// llama.cpp's name of the embedding.
const EMBEDDING: &str = "token_embd.weight";

/// llama.cpp's tensor with one rope factor per frequency.
const ROPE_FACTORS: &str = "rope_freqs.weight";

/// Pre-tokenizers whose sequences begin with BOS unless a file says otherwise (llama.cpp's llama 3
/// group).
const BOS_BY_DEFAULT: [&str; 7] =
    ["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"];

/// Opens a GGUF file.
pub(super) fn open(path: &Path) -> Result<ModelFiles, FilesError> {
    let map = FileMap::open(path)?;
    let header = Header::read(path, map.bytes())?;
    let config = read_config(&map, &header)?;
    let vocabulary = read_vocabulary(path, &header)?;
    check_vocabulary(path, &vocabulary, config.vocab)?;
    let prompt = prompt_facts(&header, &vocabulary);
    let mut fingerprint = Fingerprint::default();
    fingerprint.add_file(map.bytes(), header.data_start);
    let tensors = GgufTensors::new(map, &header, &config)?;
    Ok(ModelFiles {
        path: path.to_owned(),
        config,
        tokenizer: TokenizerSource::Gguf(Box::new(vocabulary)),
        prompt,
        tensors: Box::new(tensors),
        fingerprint: fingerprint.finish(),
    })
}

/// Who can read the file's model.
pub(super) fn nature(path: &Path) -> Result<Nature, FilesError> {
    let map = FileMap::open(path)?;
    let header = Header::read(path, map.bytes())?;
    let name = config::architecture_name(path, &header)?;
    let causal = header.metadata.get(&format!("{name}.attention.causal"));
    Ok(nature::of_gguf(name, causal != Some(&Value::Bool(false))))
}

/// The shape of keys and values, by the names that all architectures have.
pub(super) fn kv_shape(path: &Path) -> Result<Option<KvShape>, FilesError> {
    let map = FileMap::open(path)?;
    let header = Header::read(path, map.bytes())?;
    let name = config::architecture_name(path, &header)?;
    let count = |key: &str| match header.metadata.get(&format!("{name}.{key}")) {
        Some(Value::Integer(number)) => u64::try_from(*number).ok(),
        Some(_) | None => None,
    };
    let shape = || {
        let heads = count("attention.head_count")?;
        let head_dim = match count("attention.key_length") {
            Some(length) => length,
            None => count("embedding_length")?.checked_div(heads)?,
        };
        let heads = count("attention.head_count_kv").unwrap_or(heads);
        Some(KvShape { layers: count("block_count")?, heads, head_dim })
    };
    Ok(shape())
}

/// Opens what prompts need, whatever the architecture.
pub(super) fn open_prompt(path: &Path) -> Result<PromptFiles, FilesError> {
    let map = FileMap::open(path)?;
    let header = Header::read(path, map.bytes())?;
    let vocabulary = read_vocabulary(path, &header)?;
    let rows = header.tensors.get(EMBEDDING).and_then(|entry| entry.shape.first().copied());
    if let Some(rows) = rows {
        check_vocabulary(path, &vocabulary, rows)?;
    }
    let mut fingerprint = Fingerprint::default();
    fingerprint.add_file(map.bytes(), header.data_start);
    Ok(PromptFiles {
        prompt: prompt_facts(&header, &vocabulary),
        tokenizer: TokenizerSource::Gguf(Box::new(vocabulary)),
        fingerprint: fingerprint.finish(),
        rows,
    })
}

/// Refuses weights that are not finite, whatever the architecture.
pub(super) fn check_finite(path: &Path) -> Result<(), FilesError> {
    let map = &FileMap::open(path)?;
    let header = Header::read(path, map.bytes())?;
    header.tensors.par_iter().try_for_each(|(name, entry)| Stored { map, name, entry }.check())
}

/// A token beyond the embedding would have no row there.
fn check_vocabulary(
    path: &Path,
    vocabulary: &GgufVocabulary,
    rows: usize,
) -> Result<(), FilesError> {
    let tokens = vocabulary.tokens.len();
    if tokens <= rows {
        return Ok(());
    }
    let message = format!("the vocabulary has {tokens} tokens, the embedding {rows} rows");
    Err(FilesError::format(path, message))
}

/// Reads only the vocabulary of a GGUF file, which may be a file without any tensor.
///
/// # Errors
/// [`FilesError`] when the file is damaged or has no vocabulary.
pub fn open_vocabulary(path: &Path) -> Result<GgufVocabulary, FilesError> {
    let map = FileMap::open(path)?;
    let header = Header::read(path, map.bytes())?;
    read_vocabulary(path, &header)
}

fn read_config(map: &FileMap, header: &Header) -> Result<DecoderConfig, FilesError> {
    let metadata = Metadata::new(map.path(), header)?;
    let frequencies = match header.tensors.get(ROPE_FACTORS) {
        None => None,
        Some(entry) => {
            let mut values = Vec::new();
            let stored = Stored { map, name: ROPE_FACTORS, entry };
            stored.read(0, entry.elements().unwrap_or(0), &mut values)?;
            Some(values)
        }
    };
    let factors = frequencies.as_ref().map(Vec::len);
    let config = metadata.config(frequencies)?;
    if let Some(count) = factors {
        check::shape(map.path(), ROPE_FACTORS, &[count], &[config.head_dim / 2])?;
    }
    Ok(config)
}

fn read_vocabulary(path: &Path, header: &Header) -> Result<GgufVocabulary, FilesError> {
    let get = |key: &str| header.metadata.get(&format!("tokenizer.ggml.{key}"));
    let (Some(Value::Text(model)), Some(Value::Texts(tokens))) = (get("model"), get("tokens"))
    else {
        let message = "the file has no vocabulary (tokenizer.ggml.model and .tokens)";
        return Err(FilesError::format(path, message));
    };
    let vocabulary = GgufVocabulary {
        model: model.clone(),
        pre: text(get("pre")),
        types: match get("token_type") {
            Some(Value::Integers(types)) => types.clone(),
            _ => vec![1; tokens.len()],
        },
        scores: match get("scores") {
            Some(Value::Floats(scores)) => scores.clone(),
            _ => Vec::new(),
        },
        merges: match get("merges") {
            Some(Value::Texts(merges)) => merges.clone(),
            _ => Vec::new(),
        },
        add_space_prefix: match get("add_space_prefix") {
            Some(Value::Bool(add)) => *add,
            _ => model == "llama",
        },
        controls_strip: controls_strip(header),
        tokens: tokens.clone(),
    };
    let (types, scores) = (vocabulary.types.len(), vocabulary.scores.len());
    if types != tokens.len() || (scores != 0 && scores != tokens.len()) {
        let message = format!("{} tokens have {types} types and {scores} scores", tokens.len());
        return Err(FilesError::format(path, message));
    }
    Ok(vocabulary)
}

fn controls_strip(header: &Header) -> bool {
    let name = text(header.metadata.get("general.name")).unwrap_or_default().to_lowercase();
    ["phi-3", "phi3"].iter().any(|part| name.contains(part))
}

fn text(value: Option<&Value>) -> Option<String> {
    match value {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    }
}

fn prompt_facts(header: &Header, vocabulary: &GgufVocabulary) -> PromptFacts {
    let token = |key: &str| match header.metadata.get(key) {
        Some(Value::Integer(id)) => {
            usize::try_from(*id).ok().and_then(|id| vocabulary.tokens.get(id).cloned())
        }
        _ => None,
    };
    PromptFacts {
        chat_template: text(header.metadata.get("tokenizer.chat_template")),
        bos: token("tokenizer.ggml.bos_token_id"),
        eos: token("tokenizer.ggml.eos_token_id"),
        add_bos: adds_bos(header, vocabulary),
    }
}

fn adds_bos(header: &Header, vocabulary: &GgufVocabulary) -> bool {
    if let Some(Value::Bool(adds)) = header.metadata.get("tokenizer.ggml.add_bos_token") {
        return *adds;
    }
    // llama.cpp's defaults: sentencepiece and llama 3 vocabularies begin with BOS.
    let pre = vocabulary.pre.as_deref().unwrap_or_default();
    vocabulary.model == "llama" || BOS_BY_DEFAULT.contains(&pre)
}
