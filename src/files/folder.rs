//! Safetensors folders as Hugging Face publishes them.
//!
//! `config.json`, `tokenizer.json`, `tokenizer_config.json` and `chat_template.jinja` (if present),
//! and the weights in `model.safetensors` or in shards behind `model.safetensors.index.json`.

mod config;
mod rope;
mod weights;

use std::path::{Path, PathBuf};

use serde_json::Value;

use self::weights::FolderTensors;
use super::fingerprint::Fingerprint;
use super::nature::{self, Nature};
use super::{
    FilesError, KvShape, ModelFiles, PromptFacts, PromptFiles, TokenizerSource, check, regular,
    regular_if_there,
};

/// Largest JSON or template file that is read here.
const TEXT_BYTES_MAX: u64 = 64 << 20;

/// Opens a folder.
pub(super) fn open(folder: &Path) -> Result<ModelFiles, FilesError> {
    let config_path = config_file(folder)?;
    let config_text = read_text(&config_path)?;
    let config = config::read(&config_path, &config_text)?;
    check::config(&config_path, &config)?;
    let tokenizer = tokenizer_file(folder)?;
    let mut fingerprint = Fingerprint::default();
    fingerprint.add(config_text.as_bytes());
    let tensors = FolderTensors::open(folder, &config, &mut fingerprint)?;
    Ok(ModelFiles {
        path: folder.to_owned(),
        config,
        prompt: prompt_facts(folder, &tokenizer)?,
        tokenizer: TokenizerSource::Json(tokenizer),
        tensors: Box::new(tensors),
        fingerprint: fingerprint.finish(),
    })
}

/// Who can read the folder's model.
pub(super) fn nature(folder: &Path) -> Result<Nature, FilesError> {
    let config = read_json(&config_file(folder)?)?;
    let causal = config["is_causal"].as_bool().unwrap_or(true);
    Ok(nature::of_folder(config["model_type"].as_str().unwrap_or_default(), causal))
}

/// The shape of keys and values, by the names that most architectures have.
pub(super) fn kv_shape(folder: &Path) -> Result<Option<KvShape>, FilesError> {
    let config = read_json(&config_file(folder)?)?;
    // Models that see have one for what they read.
    let config = if config["text_config"].is_object() { &config["text_config"] } else { &config };
    let count = |key: &str| config[key].as_u64();
    let shape = || {
        let heads = count("num_attention_heads")?;
        let head_dim = match count("head_dim") {
            Some(head_dim) => head_dim,
            None => count("hidden_size")?.checked_div(heads)?,
        };
        let heads = count("num_key_value_heads").unwrap_or(heads);
        Some(KvShape { layers: count("num_hidden_layers")?, heads, head_dim })
    };
    Ok(shape())
}

/// Opens what prompts need, whatever the architecture.
pub(super) fn open_prompt(folder: &Path) -> Result<PromptFiles, FilesError> {
    let tokenizer = tokenizer_file(folder)?;
    let mut fingerprint = Fingerprint::default();
    let config_path = folder.join("config.json");
    let config_text = read_text(&config_path)?;
    fingerprint.add(config_text.as_bytes());
    let config = parse_json(&config_path, &config_text)?;
    let io = |error| FilesError::io(folder, error);
    let mut sizes = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.path().extension().is_some_and(|extension| extension == "safetensors") {
            sizes.push((entry.file_name(), regular(&entry.path())?));
        }
    }
    sizes.sort();
    for (name, size) in sizes {
        fingerprint.add(name.as_encoded_bytes());
        fingerprint.add(&size.to_le_bytes());
    }
    Ok(PromptFiles {
        prompt: prompt_facts(folder, &tokenizer)?,
        tokenizer: TokenizerSource::Json(tokenizer),
        fingerprint: fingerprint.finish(),
        rows: config["vocab_size"].as_u64().and_then(|rows| usize::try_from(rows).ok()),
    })
}

/// `config.json`, without which a folder holds no model.
fn config_file(folder: &Path) -> Result<PathBuf, FilesError> {
    let config = folder.join("config.json");
    if regular_if_there(&config)?.is_some() {
        return Ok(config);
    }
    let wanted = "this is no model folder: there is no config.json in it; wanted are config.json, \
                  tokenizer.json and *.safetensors";
    let is_gguf = |path: &PathBuf| path.extension().is_some_and(|found| found == "gguf");
    let entries = std::fs::read_dir(folder).map_err(|error| FilesError::io(folder, error))?;
    let gguf = entries.filter_map(Result::ok).map(|entry| entry.path()).filter(is_gguf).min();
    let message = gguf.map_or_else(
        || wanted.to_owned(),
        |file| format!("{wanted}; to serve its GGUF file, name that: {}", file.display()),
    );
    Err(FilesError::format(folder, message))
}

fn tokenizer_file(folder: &Path) -> Result<PathBuf, FilesError> {
    let tokenizer = folder.join("tokenizer.json");
    let missing =
        || FilesError::format(folder, "a model folder needs a tokenizer.json; there is none");
    regular_if_there(&tokenizer)?.ok_or_else(missing)?;
    Ok(tokenizer)
}

fn read_text(path: &Path) -> Result<String, FilesError> {
    let size = regular(path)?;
    if size > TEXT_BYTES_MAX {
        let message = format!("{size} bytes; the limit is {TEXT_BYTES_MAX}");
        return Err(FilesError::format(path, message));
    }
    std::fs::read_to_string(path).map_err(|error| FilesError::io(path, error))
}

/// A JSON file, or null where there is none.
fn read_json(path: &Path) -> Result<Value, FilesError> {
    if regular_if_there(path)?.is_none() {
        return Ok(Value::Null);
    }
    parse_json(path, &read_text(path)?)
}

fn parse_json(path: &Path, text: &str) -> Result<Value, FilesError> {
    serde_json::from_str(text)
        .map_err(|error| FilesError::format(path, format!("not JSON: {error}")))
}

fn prompt_facts(folder: &Path, tokenizer: &Path) -> Result<PromptFacts, FilesError> {
    let settings = read_json(&folder.join("tokenizer_config.json"))?;
    let jinja = folder.join("chat_template.jinja");
    let chat_template = if regular_if_there(&jinja)?.is_some() {
        Some(read_text(&jinja)?)
    } else {
        template(&settings["chat_template"])
    };
    let add_bos = match settings["add_bos_token"].as_bool() {
        Some(add) => add,
        None => begins_with_special(&read_json(tokenizer)?["post_processor"]),
    };
    Ok(PromptFacts {
        chat_template,
        bos: token_text(&settings["bos_token"]),
        eos: token_text(&settings["eos_token"]),
        add_bos,
    })
}

/// A template, or the one called `default` of several.
fn template(value: &Value) -> Option<String> {
    let named = |entry: &&Value| entry["name"] == "default";
    let chosen = match value.as_array() {
        Some(several) => &several.iter().find(named)?["template"],
        None => value,
    };
    chosen.as_str().map(str::to_owned)
}

/// A special token is written as its text or as an object with it.
fn token_text(value: &Value) -> Option<String> {
    value.as_str().or_else(|| value["content"].as_str()).map(str::to_owned)
}

/// Whether a post-processor (or one of a sequence) puts a special token first.
fn begins_with_special(processor: &Value) -> bool {
    let inner = processor["processors"].as_array().into_iter().flatten();
    processor["single"][0]["SpecialToken"].is_object() || inner.into_iter().any(begins_with_special)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bos_is_found_in_a_sequence_of_post_processors() {
        let single = json!([{ "SpecialToken": { "id": "<s>" } }, { "Sequence": { "id": "A" } }]);
        let template = json!({ "type": "TemplateProcessing", "single": single });
        let sequence = json!({ "processors": [{ "type": "ByteLevel" }, template] });
        assert!(begins_with_special(&template) && begins_with_special(&sequence));
        assert!(!begins_with_special(&json!({ "type": "ByteLevel" })));
        assert!(!begins_with_special(&Value::Null));
    }

    #[test]
    fn the_default_one_of_several_templates_is_taken() {
        let several = json!([{ "name": "tool_use", "template": "t" }, { "name": "default", "template": "d" }]);
        assert_eq!(template(&several).as_deref(), Some("d"));
        assert_eq!(template(&json!("x")).as_deref(), Some("x"));
        assert_eq!(token_text(&json!({ "content": "<s>" })).as_deref(), Some("<s>"));
    }

    #[test]
    fn a_folder_without_a_model_is_told_what_was_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let told = || {
            let errors = [open(folder.path()).map(drop), nature(folder.path()).map(drop)];
            let [first, second] = errors.map(|error| error.unwrap_err().to_string());
            assert_eq!(first, second);
            first
        };
        let empty = told();
        assert!(empty.contains("no model folder") && empty.contains("*.safetensors"), "{empty}");
        std::fs::write(folder.path().join("m.gguf"), "GGUF").unwrap();
        assert!(told().ends_with("m.gguf"), "{}", told());
    }
}
