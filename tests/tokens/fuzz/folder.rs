//! Safetensors folders with damage in one of their files.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use docket::files::Architecture;
use safetensors::Dtype;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::draw::{Draw, EXTREMES};
use crate::writers::folder;

/// A folder's files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

static BASES: LazyLock<Vec<Files>> = LazyLock::new(|| {
    let kinds = [
        (Architecture::Llama, Dtype::F32, 1),
        (Architecture::Qwen2, Dtype::BF16, 2),
        (Architecture::Qwen3, Dtype::F16, 1),
        (Architecture::Gemma3, Dtype::BF16, 1),
    ];
    let write = |(architecture, dtype, shards)| {
        let home = TempDir::new().unwrap();
        let model = super::small(architecture);
        folder::write(home.path(), &model.config_json, &model.tensors, dtype, shards);
        let entries = std::fs::read_dir(home.path()).unwrap().map(Result::unwrap);
        let file = |path: &Path| std::fs::read(path).unwrap();
        entries.map(|e| (e.file_name().into_string().unwrap(), file(&e.path()))).collect()
    };
    kinds.map(write).into()
});

/// The folder of a seed.
pub(crate) fn mutated(seed: u64) -> Files {
    let mut draw = Draw::new(seed);
    let mut files = draw.pick(&BASES).clone();
    let name = (*draw.pick(&files.keys().collect::<Vec<_>>())).clone();
    if draw.below(30) == 0 {
        files.remove(&name);
        return files;
    }
    let bytes = files.get_mut(&name).unwrap();
    match draw.below(6) {
        0 => draw.shift(bytes),
        1 => draw.flip(bytes),
        _ if name.ends_with(".safetensors") => damage_weights(bytes, &mut draw),
        _ => damage_text(bytes, &mut draw),
    }
    files
}

/// The folders without damage.
pub(crate) fn whole() -> impl Iterator<Item = Files> {
    BASES.iter().cloned()
}

/// The length of the header, the header, or the numbers after it.
fn damage_weights(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    let end = 8 + usize::try_from(length).unwrap();
    match draw.below(5) {
        0 => bytes[..8].copy_from_slice(&draw.extreme(length).to_le_bytes()),
        1 => draw.poison(&mut bytes[end..]),
        _ => {
            let mut header = bytes[8..end].to_vec();
            damage_text(&mut header, draw);
            let length = (header.len() as u64).to_le_bytes();
            bytes.splice(..end, [&length[..], &header].concat());
        }
    }
}

fn damage_text(bytes: &mut Vec<u8>, draw: &mut Draw) {
    let mut root: Value = serde_json::from_slice(bytes).unwrap();
    let chosen = node(&mut root, draw);
    match (draw.below(4), &mut *chosen) {
        (0, Value::Object(map)) if !map.is_empty() => {
            let key = map.keys().nth(draw.below(map.len())).unwrap().clone();
            map.remove(&key);
        }
        (0, Value::Array(items)) if !items.is_empty() => {
            let again = draw.pick(items).clone();
            items.push(again);
        }
        _ => *chosen = strange(draw),
    }
    let mut text = root.to_string();
    // The same key twice, which no value can hold.
    if draw.below(6) == 0
        && let Value::Object(map) = &root
        && !map.is_empty()
    {
        let key = map.keys().nth(draw.below(map.len())).unwrap();
        let value = strange(draw);
        text.insert_str(1, &format!("{}:{value},", json!(key)));
    }
    *bytes = text.into_bytes();
}

/// A value at some depth.
fn node<'v>(value: &'v mut Value, draw: &mut Draw) -> &'v mut Value {
    let children = value.as_object().map_or(0, Map::len) + value.as_array().map_or(0, Vec::len);
    if children == 0 || draw.below(5) == 0 {
        return value;
    }
    let at = draw.below(children);
    if value.is_array() {
        return node(&mut value[at], draw);
    }
    let key = value.as_object().and_then(|map| map.keys().nth(at)).unwrap().clone();
    node(&mut value[&key], draw)
}

/// What nobody expects.
fn strange(draw: &mut Draw) -> Value {
    match draw.below(24) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!(-1),
        3 => json!(1e308),
        4 => json!(0.5),
        5 => json!(""),
        6 => json!("x".repeat(10_000)),
        7 => json!([]),
        8 => json!({}),
        9 => json!([EXTREMES, EXTREMES]),
        10 => (0..=draw.below(400)).fold(json!(0), |inner, _| json!([inner])),
        11 => Value::Object(Map::from_iter([("type".to_owned(), json!("ByteLevel"))])),
        _ => json!(draw.extreme(256)),
    }
}
