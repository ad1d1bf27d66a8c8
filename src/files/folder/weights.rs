//! The tensors of a safetensors folder: one file, or shards behind an index.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

use super::super::fingerprint::Fingerprint;
use super::super::map::FileMap;
use super::super::{
    DecoderConfig, FilesError, TensorSource, check, finite, regular_if_there, rows_error,
};
use super::read_text;

/// Most shards of a model.
const SHARDS_MAX: usize = 1024;

/// Where a tensor lies.
#[derive(Debug, Clone)]
struct Entry {
    shard: usize,
    /// Bytes in the shard's file.
    range: Range<usize>,
    shape: Vec<usize>,
    width: Width,
}

/// How values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    F32,
    F16,
    Bf16,
}

impl Width {
    fn bytes(self) -> usize {
        match self {
            Self::F32 => 4,
            Self::F16 | Self::Bf16 => 2,
        }
    }
}

/// The tensors that a decoder needs.
#[derive(Debug)]
pub(super) struct FolderTensors {
    shards: Vec<FileMap>,
    entries: BTreeMap<String, Entry>,
}

impl FolderTensors {
    /// Maps the folder's files and finds each tensor of `config`.
    pub(super) fn open(
        folder: &Path,
        config: &DecoderConfig,
        fingerprint: &mut Fingerprint,
    ) -> Result<Self, FilesError> {
        let mut found = BTreeMap::new();
        let mut shards = Vec::new();
        for path in shard_paths(folder)? {
            let map = FileMap::open(&path)?;
            let header = list(&map, shards.len(), &mut found)?;
            fingerprint.add_file(map.bytes(), header);
            shards.push(map);
        }
        let mut entries = BTreeMap::new();
        for (name, shape) in check::tensors(config) {
            let found = found.remove(&name).ok_or_else(|| FilesError::missing(folder, &name))?;
            let (entry, path) = supported(found, &shards, &name)?;
            check::shape(path, &name, &entry.shape, &shape)?;
            entries.insert(name, entry);
        }
        refuse_strangers(folder, found.keys())?;
        Ok(Self { shards, entries })
    }

    fn entry(&self, name: &str) -> Result<&Entry, FilesError> {
        let folder = self.shards.first().map_or(Path::new(""), FileMap::path);
        self.entries.get(name).ok_or_else(|| FilesError::missing(folder, name))
    }
}

/// A listed tensor whose type was not looked at yet.
#[derive(Debug)]
struct Listed {
    entry: Entry,
    dtype: Dtype,
}

/// A layer's tensor that the decoder would leave out means another architecture.
fn refuse_strangers<'a>(
    folder: &Path,
    mut rest: impl Iterator<Item = &'a String>,
) -> Result<(), FilesError> {
    let is_stranger =
        |name: &&String| name.starts_with("model.layers.") && !name.contains("rotary_emb.");
    match rest.find(is_stranger) {
        None => Ok(()),
        Some(name) => {
            let message = format!("tensor {name} is not part of a decoder of this architecture");
            Err(FilesError::unsupported(folder, message))
        }
    }
}

fn supported<'a>(
    listed: Listed,
    shards: &'a [FileMap],
    name: &str,
) -> Result<(Entry, &'a Path), FilesError> {
    let path = shards.get(listed.entry.shard).map_or(Path::new(""), FileMap::path);
    let mut entry = listed.entry;
    entry.width = if listed.dtype == Dtype::F32 {
        Width::F32
    } else if listed.dtype == Dtype::F16 {
        Width::F16
    } else if listed.dtype == Dtype::BF16 {
        Width::Bf16
    } else {
        let message = format!(
            "tensor {name} has the type {:?}, which is not supported; supported are F32, F16, BF16",
            listed.dtype
        );
        return Err(FilesError::unsupported(path, message));
    };
    Ok((entry, path))
}

/// The files with weights: `model.safetensors`, or those that the index names.
fn shard_paths(folder: &Path) -> Result<Vec<PathBuf>, FilesError> {
    let index = folder.join("model.safetensors.index.json");
    if regular_if_there(&index)?.is_none() {
        return Ok(vec![folder.join("model.safetensors")]);
    }
    let text = read_text(&index)?;
    let root: Value = serde_json::from_str(&text)
        .map_err(|error| FilesError::format(&index, format!("not JSON: {error}")))?;
    let Some(map) = root["weight_map"].as_object() else {
        return Err(FilesError::format(&index, "weight_map is missing"));
    };
    let names: BTreeSet<&str> = map.values().filter_map(Value::as_str).collect();
    if names.len() > SHARDS_MAX {
        let message = format!("{} shards; the limit is {SHARDS_MAX}", names.len());
        return Err(FilesError::format(&index, message));
    }
    // Only plain names: an index must not reach outside of its folder.
    if let Some(name) = names.iter().find(|name| Path::new(name).file_name() != Some(name.as_ref()))
    {
        return Err(FilesError::format(&index, format!("{name:?} is not a file in this folder")));
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

/// Adds a shard's tensors to `found`; returns the length of its header.
fn list(
    map: &FileMap,
    shard: usize,
    found: &mut BTreeMap<String, Listed>,
) -> Result<usize, FilesError> {
    let damaged = |error| FilesError::format(map.path(), format!("not safetensors: {error:?}"));
    let (header, metadata) = SafeTensors::read_metadata(map.bytes()).map_err(damaged)?;
    let data = header + size_of::<u64>();
    for (name, tensor) in metadata.tensors() {
        let (start, end) = tensor.data_offsets;
        let range = data.saturating_add(start)..data.saturating_add(end);
        map.slice(range.clone()).map_err(|_| {
            let message =
                format!("the file is cut off: tensor {name} needs bytes up to {}", range.end);
            FilesError::format(map.path(), message)
        })?;
        let entry = Entry { shard, range, shape: tensor.shape.clone(), width: Width::F32 };
        if found.insert(name.clone(), Listed { entry, dtype: tensor.dtype }).is_some() {
            let message = format!("tensor {name} is in another file of the folder too");
            return Err(FilesError::format(map.path(), message));
        }
    }
    Ok(data)
}

impl TensorSource for FolderTensors {
    fn shape(&self, name: &str) -> Result<Vec<usize>, FilesError> {
        self.entry(name).map(|entry| entry.shape.clone())
    }

    fn read_rows(
        &self,
        name: &str,
        rows: Range<usize>,
        values: &mut Vec<f32>,
    ) -> Result<(), FilesError> {
        let entry = self.entry(name)?;
        let map = &self.shards[entry.shard];
        let total = entry.shape.first().copied().unwrap_or(0);
        if rows.start > rows.end || rows.end > total {
            return Err(rows_error(map.path(), name, &rows));
        }
        let row_bytes = entry.shape.iter().skip(1).product::<usize>() * entry.width.bytes();
        let first = entry.range.start;
        let bytes = map.slice(first + rows.start * row_bytes..first + rows.end * row_bytes)?;
        let before = values.len();
        widen(bytes, entry.width, values);
        finite(map.path(), name, &values[before..])
    }
}

fn widen(bytes: &[u8], width: Width, values: &mut Vec<f32>) {
    let halves = || bytes.as_chunks().0.iter().map(|raw| u16::from_le_bytes(*raw));
    match width {
        Width::F32 => {
            values.extend(bytes.as_chunks().0.iter().map(|raw| f32::from_le_bytes(*raw)));
        }
        Width::F16 => values.extend(halves().map(|bits| f16::from_bits(bits).to_f32())),
        Width::Bf16 => values.extend(halves().map(|bits| bf16::from_bits(bits).to_f32())),
    }
}
