//! Model folders as Hugging Face publishes them.

use std::collections::BTreeMap;
use std::path::Path;

use docket::files::HostTensor;
use half::{bf16, f16};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, serialize_to_file};
use serde_json::{Value, json};

use super::vocabulary::{byte_level, tokenizer_json};

/// Writes a folder: `config.json`, a tokenizer with its settings, and the weights in `shards` files.
pub(crate) fn write(
    folder: &Path,
    config_json: &Value,
    tensors: &BTreeMap<String, HostTensor>,
    dtype: Dtype,
    shards: usize,
) {
    let rows = config_json["vocab_size"].as_u64().unwrap();
    let tokenizer = tokenizer_json(&byte_level("qwen2", usize::try_from(rows).unwrap()));
    let settings = json!({
        "chat_template": "{{ messages }}", "eos_token": "<|im_end|>", "bos_token": null,
    });
    for (name, value) in [
        ("config.json", config_json),
        ("tokenizer.json", &tokenizer),
        ("tokenizer_config.json", &settings),
    ] {
        std::fs::write(folder.join(name), value.to_string()).unwrap();
    }
    write_weights(folder, tensors, dtype, shards);
}

fn write_weights(
    folder: &Path,
    tensors: &BTreeMap<String, HostTensor>,
    dtype: Dtype,
    shards: usize,
) {
    let bytes: Vec<_> = tensors
        .iter()
        .map(|(name, tensor)| (name.clone(), tensor.shape.clone(), encoded(&tensor.values, dtype)))
        .collect();
    let mut map = serde_json::Map::new();
    for (index, part) in bytes.chunks(bytes.len().div_ceil(shards)).enumerate() {
        let file = match shards {
            1 => "model.safetensors".to_owned(),
            _ => format!("model-{:05}-of-{shards:05}.safetensors", index + 1),
        };
        let views = part.iter().map(|(name, shape, bytes)| {
            map.insert(name.clone(), json!(file));
            (name.clone(), TensorView::new(dtype, shape.clone(), bytes).unwrap())
        });
        serialize_to_file(views.collect::<Vec<_>>(), None, &folder.join(&file)).unwrap();
    }
    if shards > 1 {
        let index = json!({ "metadata": {}, "weight_map": map });
        let path = folder.join("model.safetensors.index.json");
        std::fs::write(path, index.to_string()).unwrap();
    }
}

/// Values in a floating-point type of the file.
fn encoded(values: &[f32], dtype: Dtype) -> Vec<u8> {
    if dtype == Dtype::F16 {
        return values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect();
    }
    if dtype == Dtype::BF16 {
        return values.iter().flat_map(|value| bf16::from_f32(*value).to_le_bytes()).collect();
    }
    assert_eq!(dtype, Dtype::F32);
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
