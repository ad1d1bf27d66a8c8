//! What can be done with a model, by what its files call themselves.
//!
//! Asked first of all, from the header alone: a model goes to our decoder, to a model of
//! candle-transformers, or to nothing, because it does not predict the next token.

use std::path::Path;

use super::{FilesError, folder, gguf};

/// Who can read a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Nature {
    /// The `cpu` engine's decoder, one of [`super::Architecture`].
    Decoder,
    /// A dense decoder that only the `reference` engine has, with its architecture's name.
    Foreign(String),
    /// No next token comes out of it: an encoder, or a decoder whose attention looks ahead. With its
    /// architecture's name.
    NotCausal(String),
}

/// Architectures of GGUF files that candle-transformers has as quantised dense decoders and the
/// `cpu` engine has not.
pub const FOREIGN_GGUF: [&str; 5] = ["glm4", "lfm2", "phi2", "phi3", "stablelm"];

/// Architectures of GGUF files whose tokens see those after them (llama.cpp's names): encoders,
/// encoders with a decoder, and diffusion models.
const NOT_CAUSAL_GGUF: [&str; 16] = [
    "bert",
    "clip",
    "dream",
    "eurobert",
    "gemma-embedding",
    "jina-bert-v2",
    "jina-bert-v3",
    "llada",
    "llada-moe",
    "modern-bert",
    "neo-bert",
    "nomic-bert",
    "nomic-bert-moe",
    "t5",
    "t5encoder",
    "wavtokenizer-dec",
];

/// `model_type` of folders that only the reference engine has.
pub(super) const FOREIGN_FOLDERS: [&str; 5] = ["gemma", "gemma2", "mistral", "olmo", "phi3"];

/// `model_type` of folders whose tokens see those after them.
const NOT_CAUSAL_FOLDERS: [&str; 16] = [
    "albert",
    "bart",
    "bert",
    "camembert",
    "deberta",
    "deberta-v2",
    "distilbert",
    "electra",
    "modernbert",
    "mpnet",
    "mt5",
    "nomic_bert",
    "roberta",
    "t5",
    "umt5",
    "xlm-roberta",
];

/// What a GGUF file says: its architecture, and whether attention is causal where it says so.
pub(super) fn of_gguf(architecture: &str, causal: bool) -> Nature {
    let name = architecture.to_owned();
    if !causal || NOT_CAUSAL_GGUF.contains(&architecture) {
        Nature::NotCausal(name)
    } else if FOREIGN_GGUF.contains(&architecture) {
        Nature::Foreign(name)
    } else {
        Nature::Decoder
    }
}

/// The same of a folder's `config.json`.
pub(super) fn of_folder(model_type: &str, causal: bool) -> Nature {
    let name = model_type.to_owned();
    if !causal || NOT_CAUSAL_FOLDERS.contains(&model_type) {
        Nature::NotCausal(name)
    } else if FOREIGN_FOLDERS.contains(&model_type) {
        Nature::Foreign(name)
    } else {
        Nature::Decoder
    }
}

/// Who can read the model at `path`, from its header or `config.json`. What nobody knows counts as
/// [`Nature::Decoder`], whose reader refuses it by name.
///
/// # Errors
/// [`FilesError`] when there is no such file, or it is damaged.
pub fn nature(path: &Path) -> Result<Nature, FilesError> {
    let metadata = std::fs::metadata(path).map_err(|error| FilesError::io(path, error))?;
    if metadata.is_dir() { folder::nature(path) } else { gguf::nature(path) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_that_looks_ahead_outweighs_the_name() {
        assert_eq!(of_gguf("qwen2", true), Nature::Decoder);
        assert_eq!(of_gguf("qwen2", false), Nature::NotCausal("qwen2".to_owned()));
        assert_eq!(of_gguf("phi3", true), Nature::Foreign("phi3".to_owned()));
        assert_eq!(of_gguf("bert", true), Nature::NotCausal("bert".to_owned()));
        assert_eq!(of_gguf("mamba", true), Nature::Decoder, "refused by the decoder's reader");
        assert_eq!(of_folder("mistral", true), Nature::Foreign("mistral".to_owned()));
        assert_eq!(of_folder("t5", true), Nature::NotCausal("t5".to_owned()));
        assert_eq!(of_folder("qwen2", false), Nature::NotCausal("qwen2".to_owned()));
    }
}
