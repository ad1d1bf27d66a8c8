//! Damaged, foreign and unsupported files are refused with a clear error, and never by a panic.

use std::path::Path;
use std::sync::LazyLock;

use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use docket::files::{Architecture, FilesError, nature, open, open_prompt};
use proptest::prelude::*;
use safetensors::Dtype;
use tempfile::TempDir;

use super::writers::gguf::{Entries, hyper_parameters, stored, vocabulary, vocabulary_entries};
use super::writers::gguf::{write, write_raw};
use super::writers::{folder, wide};

fn message(path: &Path) -> String {
    let error = open(path).unwrap_err();
    // Each names its file.
    assert!(error.to_string().contains(path.file_name().unwrap().to_str().unwrap()), "{error}");
    error.to_string()
}

fn entries(model: &wide::WideModel) -> Entries {
    let mut entries = hyper_parameters(&model.config);
    entries.extend(vocabulary_entries(&vocabulary(&model.config)));
    entries
}

/// What `open` says to a file whose metadata entry `key` is `value`.
fn with_entry(key: &str, value: Value) -> String {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let model = wide::wide(Architecture::Llama);
    let mut entries = entries(&model);
    entries.retain(|(known, _)| known != key);
    entries.push((key.to_owned(), value));
    write_raw(&path, &entries, &stored(&model.config, &model.tensors, GgmlDType::F16));
    message(&path)
}

#[test]
fn another_architecture_is_refused_by_name_with_the_supported_ones() {
    let message = with_entry("general.architecture", Value::String("mamba".to_owned()));
    assert!(message.contains("mamba") && message.contains("llama, qwen2, qwen3, gemma3"));
}

#[test]
fn what_would_change_the_computation_is_refused() {
    let text = |text: &str| Value::String(text.to_owned());
    for (key, value, part) in [
        ("llama.expert_count", Value::U32(8), "experts"),
        ("llama.rope.scaling.type", text("yarn"), "yarn"),
        ("llama.rope.dimension_count", Value::U32(32), "dimension_count is 32"),
        ("llama.attention.head_count", Value::U32(0), "number of heads is 0"),
        ("llama.attention.head_count_kv", Value::U32(3), "4 heads cannot share 3"),
        ("llama.attention.head_count", Value::U32(1 << 31), "number of heads"),
        ("llama.block_count", Value::U32(u32::MAX), "number of layers"),
        ("llama.embedding_length", Value::I32(-1), "embedding_length is -1"),
        ("llama.rope.freq_base", Value::F32(f32::NAN), "rope base is NaN"),
        ("split.count", Value::U16(2), "one of 2 parts"),
        ("general.alignment", Value::U32(0), "general.alignment"),
    ] {
        let message = with_entry(key, value);
        assert!(message.contains(part), "{key}: {message}");
    }
}

#[test]
fn a_missing_or_misshapen_tensor_is_named() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let mut model = wide::wide(Architecture::Qwen3);
    let name = "model.layers.1.self_attn.k_norm.weight";
    let tensor = model.tensors.remove(name).unwrap();
    write(&path, &model.config, &model.tensors, GgmlDType::F16);
    assert!(matches!(open(&path), Err(FilesError::MissingTensor { .. })));
    assert!(message(&path).contains(name) && message(&path).contains("blk.1.attn_k_norm.weight"));
    model.tensors.insert(name.to_owned(), tensor.rows(0..32).unwrap());
    write(&path, &model.config, &model.tensors, GgmlDType::F16);
    assert!(message(&path).contains("[32]; [64] is wanted"), "{}", message(&path));
}

#[test]
fn a_tensor_that_the_decoder_would_leave_out_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let mut model = wide::wide(Architecture::Llama);
    let bias = model.tensors["model.layers.0.input_layernorm.weight"].clone();
    model.tensors.insert("model.layers.0.self_attn.o_proj.bias".to_owned(), bias);
    write(&path, &model.config, &model.tensors, GgmlDType::F16);
    assert!(message(&path).contains("blk.0.attn_output.bias"));
    let home = home.path();
    folder::write(home, &model.config_json, &model.tensors, Dtype::F32, 1);
    assert!(open(home).unwrap_err().to_string().contains("o_proj.bias"));
}

#[test]
fn a_gguf_file_cut_off_anywhere_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let model = wide::wide(Architecture::Qwen2);
    write(&path, &model.config, &model.tensors, GgmlDType::Q4K);
    let whole = std::fs::read(&path).unwrap();
    let steps = (0..600).chain((600..whole.len()).step_by(1_009)).chain([whole.len() - 33]);
    for length in steps {
        std::fs::write(&path, &whole[..length]).unwrap();
        let message = message(&path);
        assert!(message.contains("cut off") || length < 4, "{length}: {message}");
    }
}

/// A file's bytes with 8 of them, in the directory entry of `tensor`, replaced by `number`; `back`
/// bytes before the entry's end.
fn with_number(bytes: &[u8], tensor: &str, back: usize, number: u64) -> Vec<u8> {
    let name = [&(tensor.len() as u64).to_le_bytes()[..], tensor.as_bytes()].concat();
    let start = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len();
    let dimensions = u32::from_le_bytes(bytes[start..start + 4].try_into().unwrap());
    let at = start + 4 + 8 * dimensions as usize + 4 + 8 - back;
    let mut bytes = bytes.to_vec();
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    bytes
}

#[test]
fn tensors_that_overlap_or_leave_room_are_named() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let model = wide::wide(Architecture::Llama);
    write(&path, &model.config, &model.tensors, GgmlDType::F16);
    let whole = std::fs::read(&path).unwrap();
    let tensor = "blk.1.attn_k.weight";
    for (offset, part) in [
        (0, "overlaps"),
        (32, "overlaps"),
        (1, "not a multiple of 32"),
        (1 << 40, "cut off"),
        (u64::MAX - 31, "cut off"),
    ] {
        std::fs::write(&path, with_number(&whole, tensor, 8, offset)).unwrap();
        let message = message(&path);
        assert!(message.contains(part) && message.contains("tensor "), "{offset}: {message}");
    }
    // Fewer rows leave a gap, and so does more at the end.
    std::fs::write(&path, with_number(&whole, "token_embd.weight", 20, 288)).unwrap();
    assert!(message(&path).contains("begins after a gap"), "{}", message(&path));
    std::fs::write(&path, [whole.as_slice(), &[0; 64]].concat()).unwrap();
    assert!(message(&path).contains("the last tensor"), "{}", message(&path));
    std::fs::write(&path, whole).unwrap();
    open(&path).unwrap();
}

#[test]
fn a_tensor_in_two_shards_is_refused() {
    let home = TempDir::new().unwrap();
    let model = wide::wide(Architecture::Llama);
    folder::write(home.path(), &model.config_json, &model.tensors, Dtype::F32, 2);
    let shard = |number: usize| home.path().join(format!("model-{number:05}-of-00002.safetensors"));
    std::fs::copy(shard(1), shard(2)).unwrap();
    let message = message(home.path());
    assert!(message.contains("00002.safetensors: tensor ") && message.contains("another file"));
}

#[test]
fn metadata_that_is_listed_twice_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let model = wide::wide(Architecture::Llama);
    let mut entries = entries(&model);
    entries.push(entries[3].clone());
    write_raw(&path, &entries, &stored(&model.config, &model.tensors, GgmlDType::F16));
    assert!(message(&path).contains(&format!("{} is listed twice", entries[3].0)));
}

#[test]
fn a_vocabulary_beyond_the_embedding_is_refused() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let mut model = wide::wide(Architecture::Qwen2);
    let name = "model.embed_tokens.weight";
    let entries = entries(&model);
    let fewer = model.tensors[name].rows(0..model.config.vocab - 1).unwrap();
    model.tensors.insert(name.to_owned(), fewer);
    write_raw(&path, &entries, &stored(&model.config, &model.tensors, GgmlDType::F16));
    assert!(message(&path).contains("320 tokens, the embedding 319 rows"), "{}", message(&path));
}

#[test]
fn weights_that_are_not_finite_are_refused_by_tensor() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let mut model = wide::wide(Architecture::Llama);
    let name = "model.layers.1.self_attn.q_proj.weight";
    for kind in [GgmlDType::F32, GgmlDType::BF16, GgmlDType::F16] {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            model.tensors.get_mut(name).unwrap().values[70_000 / 2] = bad;
            write(&path, &model.config, &model.tensors, kind);
            let files = open(&path).unwrap();
            let error = files.tensors.load(name).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("model.gguf"), "{error}");
            assert!(files.tensors.load("model.norm.weight").is_ok());
        }
    }
    folder::write(home.path(), &model.config_json, &model.tensors, Dtype::BF16, 1);
    let error = open(home.path()).unwrap().tensors.load(name).unwrap_err().to_string();
    assert!(error.contains(name) && error.contains("inf"), "{error}");
}

/// Puts a pipe in a file's place.
fn pipe(path: &Path) {
    // What is not there need not be removed.
    let _ = std::fs::remove_file(path);
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_pipe_or_device_in_a_files_place_is_refused_and_never_opened() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    pipe(&path);
    assert!(message(&path).contains("a pipe; a regular file is wanted"), "{}", message(&path));
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(message(&path).contains("a device"), "{}", message(&path));
    let told = [nature(&path).map(drop), open_prompt(&path).map(drop)];
    assert!(told.iter().all(|told| told.as_ref().unwrap_err().to_string().contains("a device")));
    let model = wide::wide(Architecture::Llama);
    for name in [
        "config.json",
        "tokenizer.json",
        "tokenizer_config.json",
        "chat_template.jinja",
        "model.safetensors",
        "model.safetensors.index.json",
    ] {
        let home = TempDir::new().unwrap();
        folder::write(home.path(), &model.config_json, &model.tensors, Dtype::F32, 1);
        pipe(&home.path().join(name));
        let error = open(home.path()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("a pipe"), "{error}");
        // Only the list of shards is no matter of prompts.
        let prompt = open_prompt(home.path()).map(drop).map_err(|error| error.to_string());
        let is_refused = prompt.is_err_and(|error| error.contains("a pipe"));
        assert_eq!(is_refused, name != "model.safetensors.index.json", "{name}");
    }
}

#[test]
fn folders_with_faults_name_the_file() {
    let model = wide::wide(Architecture::Llama);
    let home = TempDir::new().unwrap();
    let home = home.path();
    let expect = |part: &str| {
        let message = open(home).unwrap_err().to_string();
        assert!(message.contains(part), "{part}: {message}");
    };
    expect("config.json");
    folder::write(home, &model.config_json, &model.tensors, Dtype::F32, 1);
    let weights = home.join("model.safetensors");
    let whole = std::fs::read(&weights).unwrap();
    for length in [0, 7, 8, 500, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&weights, &whole[..length]).unwrap();
        expect("model.safetensors");
    }
    let index = home.join("model.safetensors.index.json");
    std::fs::write(&index, r#"{"weight_map": {"a": "../other.safetensors"}}"#).unwrap();
    expect("../other.safetensors");
    std::fs::remove_file(&index).unwrap();
    std::fs::write(&weights, &whole).unwrap();
    let mut config = model.config_json.clone();
    for (key, value, part) in [
        ("model_type", serde_json::json!("phi3"), "phi3"),
        ("hidden_act", serde_json::json!("relu"), "Relu"),
        ("attention_bias", serde_json::json!(true), "attention_bias"),
        ("hidden_size", serde_json::json!(-1), "hidden_size"),
        ("rope_scaling", serde_json::json!({ "rope_type": "yarn", "factor": 4 }), "yarn"),
        ("quantization_config", serde_json::json!({ "bits": 4 }), "quantization_config"),
    ] {
        let before = config[key].clone();
        config[key] = value;
        std::fs::write(home.join("config.json"), config.to_string()).unwrap();
        expect(part);
        config[key] = before;
    }
    std::fs::write(home.join("config.json"), config.to_string()).unwrap();
    open(home).unwrap();
    std::fs::remove_file(home.join("tokenizer.json")).unwrap();
    expect("tokenizer.json");
}

/// A file with a whole header and few tensors.
static SMALL: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let home = TempDir::new().unwrap();
    let path = home.path().join("model.gguf");
    let model = wide::wide(Architecture::Gemma3);
    let is_first = |name: &String| name.starts_with("model.layers.0.");
    let few = model.tensors.into_iter().filter(|(name, _)| is_first(name)).collect();
    write(&path, &model.config, &few, GgmlDType::Q8_0);
    std::fs::read(&path).unwrap()
});

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever bytes a header has, opening gives an error (the embedding is missing) and no panic.
    #[test]
    fn a_scrambled_header_never_panics(
        changes in prop::collection::vec((0_usize..12_000, any::<u8>()), 1..8),
    ) {
        let home = TempDir::new().unwrap();
        let path = home.path().join("model.gguf");
        let mut bytes = SMALL.clone();
        for (at, value) in changes {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        std::fs::write(&path, &bytes).unwrap();
        prop_assert!(open(&path).is_err());
    }
}
