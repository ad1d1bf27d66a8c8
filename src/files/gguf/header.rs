//! A GGUF file's header: metadata and tensor directory, checked against the file's length.
//!
//! candle has a reader too; this one exists because every count, length and offset is checked before
//! anything is allocated, because an alignment of zero must not panic, and because the faults must
//! name the tensor and the byte. Source of the form: ggml's `docs/gguf.md`, versions 2 and 3.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

use super::super::FilesError;
use super::types::TensorType;

/// Most metadata entries.
const ENTRIES_MAX: u64 = 65_536;
/// Most tensors.
const TENSORS_MAX: u64 = 65_536;
/// Most dimensions of a tensor (ggml's own limit).
const DIMENSIONS_MAX: u32 = 4;
/// Alignment of tensors where the file says nothing.
const ALIGNMENT: u64 = 32;

/// A metadata value; kinds that no supported model uses are skipped while reading.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// Any integer type.
    Integer(i128),
    /// Either float type.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// A string.
    Text(String),
    /// An array of strings.
    Texts(Vec<String>),
    /// An array of 32-bit floats.
    Floats(Vec<f32>),
    /// An array of 32-bit integers.
    Integers(Vec<i32>),
    /// An array of another type.
    Skipped,
}

/// One tensor of the directory.
#[derive(Debug, Clone)]
pub(super) struct TensorEntry {
    /// Dimensions, outermost first.
    pub(super) shape: Vec<usize>,
    /// How the values are stored.
    pub(super) kind: TensorType,
    /// First byte, from the file's begin.
    pub(super) start: usize,
}

/// The header of a GGUF file.
#[derive(Debug)]
pub(super) struct Header {
    /// Metadata by key.
    pub(super) metadata: BTreeMap<String, Value>,
    /// Tensors by GGUF name.
    pub(super) tensors: BTreeMap<String, TensorEntry>,
    /// Where the tensors' bytes begin.
    pub(super) data_start: usize,
}

impl Header {
    /// Reads the header of a whole file's bytes.
    pub(super) fn read(path: &Path, bytes: &[u8]) -> Result<Self, FilesError> {
        let mut cursor = Cursor { path, bytes, at: 0 };
        let (tensor_count, entry_count) = cursor.preamble()?;
        let mut metadata = BTreeMap::new();
        for _ in 0..entry_count {
            let key = cursor.text("a metadata key")?;
            let kind = cursor.u32()?;
            let value = cursor.value(&key, kind)?;
            if metadata.insert(key.clone(), value).is_some() {
                return Err(cursor.fault(format!("metadata {key} is listed twice")));
            }
        }
        let mut tensors = BTreeMap::new();
        for _ in 0..tensor_count {
            let (name, entry) = cursor.tensor()?;
            if tensors.insert(name.clone(), entry).is_some() {
                return Err(cursor.fault(format!("tensor {name} is listed twice")));
            }
        }
        let mut header = Self { metadata, tensors, data_start: 0 };
        header.place(&cursor)?;
        Ok(header)
    }

    /// Makes offsets absolute and checks that each tensor lies inside the file and that together
    /// they fill it.
    fn place(&mut self, cursor: &Cursor<'_>) -> Result<(), FilesError> {
        let alignment = match self.metadata.get("general.alignment") {
            None => ALIGNMENT,
            Some(Value::Integer(value)) if *value > 0 && *value <= 65_536 && value % 8 == 0 => {
                u64::try_from(*value).unwrap_or(ALIGNMENT)
            }
            Some(value) => return Err(cursor.fault(format!("general.alignment is {value:?}"))),
        };
        let alignment = usize::try_from(alignment).unwrap_or(usize::MAX);
        self.data_start = cursor.at.next_multiple_of(alignment);
        for (name, entry) in &mut self.tensors {
            if entry.start % alignment != 0 {
                return Err(cursor.fault(format!(
                    "tensor {name} begins at offset {}, which is not a multiple of {alignment}",
                    entry.start
                )));
            }
            let begin = entry.start.checked_add(self.data_start);
            let end = begin.zip(entry.bytes()).and_then(|(begin, bytes)| begin.checked_add(bytes));
            let length = cursor.bytes.len();
            match (begin, end) {
                (Some(begin), Some(end)) if end <= length => entry.start = begin,
                _ => {
                    return Err(cursor.fault(format!(
                        "the file is cut off: tensor {name} needs bytes up to {}, the file has {length}",
                        end.map_or_else(|| "2^64".to_owned(), |end| end.to_string())
                    )));
                }
            }
        }
        self.check_layout(cursor, alignment)
    }

    /// Refuses tensors that overlap or leave room between them, as llama.cpp does: an offset, type or
    /// dimension is damaged then.
    fn check_layout(&self, cursor: &Cursor<'_>, alignment: usize) -> Result<(), FilesError> {
        let ends = |(name, entry): (_, &TensorEntry)| {
            (entry.start, entry.start + entry.bytes().unwrap_or(0), name)
        };
        let mut places: Vec<(usize, usize, &String)> = self.tensors.iter().map(ends).collect();
        places.sort_unstable();
        let mut expected = self.data_start;
        for (begin, end, name) in &places {
            let fault = |what| format!("tensor {name} {what}: byte {begin} instead of {expected}");
            match begin.cmp(&expected) {
                Ordering::Less => return Err(cursor.fault(fault("overlaps the one before it"))),
                Ordering::Greater => return Err(cursor.fault(fault("begins after a gap"))),
                Ordering::Equal => expected = end.next_multiple_of(alignment),
            }
        }
        let length = cursor.bytes.len();
        match places.last() {
            Some((_, end, name)) if length > expected => Err(cursor.fault(format!(
                "the last tensor, {name}, ends at byte {end}, but the file has {length}"
            ))),
            _ => Ok(()),
        }
    }
}

impl TensorEntry {
    /// Number of values; `None` if it does not fit.
    pub(super) fn elements(&self) -> Option<usize> {
        self.shape.iter().try_fold(1_usize, |product, &dimension| product.checked_mul(dimension))
    }

    /// Bytes occupied; `None` if they do not fit.
    fn bytes(&self) -> Option<usize> {
        (self.elements()? / self.kind.block()).checked_mul(self.kind.block_bytes())
    }
}

/// A reading position in the file.
struct Cursor<'a> {
    path: &'a Path,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    fn fault(&self, message: impl Into<String>) -> FilesError {
        FilesError::format(self.path, message)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], FilesError> {
        let rest = &self.bytes[self.at..];
        match usize::try_from(count).ok().and_then(|count| rest.get(..count)) {
            Some(taken) => {
                self.at += taken.len();
                Ok(taken)
            }
            None => Err(self.fault(format!(
                "the file is cut off: the header wants {count} bytes at byte {}, the file has {}",
                self.at,
                self.bytes.len()
            ))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], FilesError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64)?);
        Ok(array)
    }

    fn u32(&mut self) -> Result<u32, FilesError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, FilesError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Magic, version and the two counts.
    fn preamble(&mut self) -> Result<(u64, u64), FilesError> {
        if self.bytes.get(..4) != Some(b"GGUF") {
            return Err(self.fault("not a GGUF file: it does not begin with \"GGUF\""));
        }
        self.at = 4;
        let version = self.u32()?;
        if !(2..=3).contains(&version) {
            let message = format!("GGUF version {version}; supported are 2 and 3, little-endian");
            return Err(FilesError::unsupported(self.path, message));
        }
        let tensors = self.u64()?;
        let entries = self.u64()?;
        if tensors > TENSORS_MAX || entries > ENTRIES_MAX {
            return Err(self.fault(format!(
                "the header claims {tensors} tensors and {entries} metadata entries; \
                 the limits are {TENSORS_MAX} and {ENTRIES_MAX}"
            )));
        }
        Ok((tensors, entries))
    }

    fn text(&mut self, what: &str) -> Result<String, FilesError> {
        let length = self.u64()?;
        let start = self.at;
        let bytes = self.take(length)?;
        let text = std::str::from_utf8(bytes)
            .map_err(|_| self.fault(format!("{what} at byte {start} is not UTF-8")))?;
        Ok(text.to_owned())
    }

    fn value(&mut self, key: &str, kind: u32) -> Result<Value, FilesError> {
        Ok(match kind {
            0 => Value::Integer(u8::from_le_bytes(self.array()?).into()),
            1 => Value::Integer(i8::from_le_bytes(self.array()?).into()),
            2 => Value::Integer(u16::from_le_bytes(self.array()?).into()),
            3 => Value::Integer(i16::from_le_bytes(self.array()?).into()),
            4 => Value::Integer(self.u32()?.into()),
            5 => Value::Integer(i32::from_le_bytes(self.array()?).into()),
            6 => Value::Float(f32::from_le_bytes(self.array()?).into()),
            7 => Value::Bool(self.array::<1>()? != [0]),
            8 => Value::Text(self.text(key)?),
            9 => self.values(key)?,
            10 => Value::Integer(self.u64()?.into()),
            11 => Value::Integer(i64::from_le_bytes(self.array()?).into()),
            12 => Value::Float(f64::from_le_bytes(self.array()?)),
            _ => return Err(self.fault(format!("metadata {key} has the unknown type {kind}"))),
        })
    }

    fn values(&mut self, key: &str) -> Result<Value, FilesError> {
        let kind = self.u32()?;
        let count = self.u64()?;
        Ok(match kind {
            4 | 5 => Value::Integers(self.words(count)?.map(i32::from_le_bytes).collect()),
            6 => Value::Floats(self.words(count)?.map(f32::from_le_bytes).collect()),
            8 => Value::Texts((0..count).map(|_| self.text(key)).collect::<Result<_, _>>()?),
            0 | 1 | 7 => self.skip(count, 1)?,
            2 | 3 => self.skip(count, 2)?,
            10..=12 => self.skip(count, 8)?,
            _ => {
                let message = format!("metadata {key} is an array of the unsupported type {kind}");
                return Err(self.fault(message));
            }
        })
    }

    fn words(&mut self, count: u64) -> Result<impl Iterator<Item = [u8; 4]> + 'a, FilesError> {
        let (words, _) = self.take(count.saturating_mul(4))?.as_chunks::<4>();
        Ok(words.iter().copied())
    }

    fn skip(&mut self, count: u64, width: u64) -> Result<Value, FilesError> {
        self.take(count.saturating_mul(width))?;
        Ok(Value::Skipped)
    }

    fn tensor(&mut self) -> Result<(String, TensorEntry), FilesError> {
        let name = self.text("a tensor's name")?;
        let dimensions = self.u32()?;
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            let message = format!(
                "tensor {name} has {dimensions} dimensions; 1 to {DIMENSIONS_MAX} are allowed"
            );
            return Err(self.fault(message));
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            shape.push(usize::try_from(self.u64()?).unwrap_or(usize::MAX));
        }
        shape.reverse();
        let code = self.u32()?;
        let offset = self.u64()?;
        let kind = TensorType::from_code(code).ok_or_else(|| {
            let message = TensorType::refusal(&name, code);
            FilesError::unsupported(self.path, message)
        })?;
        let width = shape.last().copied().unwrap_or(1);
        if !width.is_multiple_of(kind.block()) {
            let message = format!(
                "tensor {name} has rows of {width} values; {} needs a multiple of {}",
                kind.name(),
                kind.block()
            );
            return Err(self.fault(message));
        }
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        Ok((name, TensorEntry { shape, kind, start }))
    }
}
