//! The tensors of a GGUF file, dequantised on demand and brought to Hugging Face form.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use super::super::map::FileMap;
use super::super::{DecoderConfig, FilesError, TensorSource, check, finite, rows_error};
use super::header::{Header, TensorEntry};
use super::names::{Form, form, gguf_name, interleaved_row};

/// Tensors that may be there without being used: tables that the engine computes itself.
const IGNORED: [&str; 2] = ["rope_freqs.weight", "attn_rot_embd"];

/// The tensors that a decoder needs, by Hugging Face name.
#[derive(Debug)]
pub(super) struct GgufTensors {
    map: FileMap,
    entries: BTreeMap<String, (TensorEntry, Form)>,
}

impl GgufTensors {
    /// Finds each tensor of `config` in the file.
    pub(super) fn new(
        map: FileMap,
        header: &Header,
        config: &DecoderConfig,
    ) -> Result<Self, FilesError> {
        let mut entries = BTreeMap::new();
        let mut used = Vec::new();
        for (name, shape) in check::tensors(config) {
            let stored = gguf_name(config.architecture, &name);
            let entry = stored.as_ref().and_then(|stored| header.tensors.get(stored));
            let entry = entry.ok_or_else(|| {
                let stored = stored.as_deref().unwrap_or("no GGUF name");
                FilesError::missing(map.path(), &format!("{name} ({stored})"))
            })?;
            check::shape(map.path(), &name, &entry.shape, &shape)?;
            let form = form(config, &name);
            entries.insert(name, (entry.clone(), form));
            used.extend(stored);
        }
        used.sort_unstable();
        refuse_strangers(map.path(), header, &used)?;
        Ok(Self { map, entries })
    }

    fn entry(&self, name: &str) -> Result<&(TensorEntry, Form), FilesError> {
        self.entries.get(name).ok_or_else(|| FilesError::missing(self.map.path(), name))
    }
}

/// A layer's tensor that the decoder would leave out means another architecture, whatever the
/// metadata says.
fn refuse_strangers(path: &Path, header: &Header, used: &[String]) -> Result<(), FilesError> {
    let stranger = header.tensors.keys().find(|name| {
        name.starts_with("blk.")
            && used.binary_search(name).is_err()
            && !IGNORED.iter().any(|ignored| name.contains(ignored))
    });
    match stranger {
        None => Ok(()),
        Some(name) => {
            let message = format!("tensor {name} is not part of a decoder of this architecture");
            Err(FilesError::unsupported(path, message))
        }
    }
}

/// A tensor of a file.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) map: &'a FileMap,
    pub(super) name: &'a str,
    pub(super) entry: &'a TensorEntry,
}

impl Stored<'_> {
    /// Dequantises `count` values from value `first` on, both in whole blocks, and appends them.
    pub(super) fn read(
        self,
        first: usize,
        count: usize,
        values: &mut Vec<f32>,
    ) -> Result<(), FilesError> {
        let kind = self.entry.kind;
        let (block, bytes) = (kind.block(), kind.block_bytes());
        let start = self.entry.start + first / block * bytes;
        let blocks = self.map.slice(start..start + count / block * bytes)?;
        for chunk in blocks.chunks(kind.chunk_bytes()) {
            let before = values.len();
            let decoded = kind.dequantise(chunk, values);
            decoded.map_err(|error| FilesError::format(self.map.path(), error))?;
            finite(self.map.path(), self.name, &values[before..])?;
        }
        Ok(())
    }

    /// Refuses it where a value is not finite; holds few of them at a time.
    pub(super) fn check(self) -> Result<(), FilesError> {
        let kind = self.entry.kind;
        let (total, few) = (self.entry.elements().unwrap_or(0), kind.chunk_values());
        let mut values = Vec::new();
        for first in (0..total).step_by(few) {
            values.clear();
            self.read(first, few.min(total - first), &mut values)?;
        }
        Ok(())
    }
}

impl TensorSource for GgufTensors {
    fn shape(&self, name: &str) -> Result<Vec<usize>, FilesError> {
        self.entry(name).map(|(entry, _)| entry.shape.clone())
    }

    fn read_rows(
        &self,
        name: &str,
        rows: Range<usize>,
        values: &mut Vec<f32>,
    ) -> Result<(), FilesError> {
        let (entry, form) = self.entry(name)?;
        let total = entry.shape.first().copied().unwrap_or(0);
        if rows.start > rows.end || rows.end > total {
            return Err(rows_error(self.map.path(), name, &rows));
        }
        let width: usize = entry.shape.iter().skip(1).product();
        let stored = Stored { map: &self.map, name, entry };
        if !width.is_multiple_of(entry.kind.block()) {
            // A quantised vector: its rows are single values, so it is decoded as a whole.
            let mut whole = Vec::with_capacity(total);
            stored.read(0, total, &mut whole)?;
            values.extend_from_slice(&whole[rows.start * width..rows.end * width]);
            return Ok(());
        }
        let before = values.len();
        values.reserve(rows.len() * width);
        match *form {
            Form::Interleaved { half } => {
                for row in rows {
                    stored.read(interleaved_row(row, half) * width, width, values)?;
                }
            }
            Form::Plain | Form::PlusOne => {
                stored.read(rows.start * width, rows.len() * width, values)?;
            }
        }
        if *form == Form::PlusOne {
            for value in &mut values[before..] {
                *value -= 1.0;
            }
        }
        Ok(())
    }
}
