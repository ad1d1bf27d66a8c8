//! GGUF files with damage where it hurts: counts, lengths, types, dimensions and offsets.

use std::ops::Range;
use std::sync::LazyLock;

use candle_core::quantized::GgmlDType;
use docket::files::Architecture;
use tempfile::TempDir;

use super::draw::Draw;
use crate::writers::gguf;

/// Bytes between tensors are padded to this.
const ALIGNMENT: usize = 32;

/// Whole files: every architecture, and the types of blocks.
static BASES: LazyLock<Vec<Base>> = LazyLock::new(|| {
    let kinds = [
        (Architecture::Llama, GgmlDType::Q8_0),
        (Architecture::Llama, GgmlDType::Q4K),
        (Architecture::Qwen2, GgmlDType::Q4_1),
        (Architecture::Qwen3, GgmlDType::BF16),
        (Architecture::Gemma3, GgmlDType::Q6K),
    ];
    kinds.map(|(architecture, kind)| Base::write(architecture, kind)).into()
});

/// A file, and where its header has what.
#[derive(Debug, Clone, Default)]
struct Base {
    header: Vec<u8>,
    weights: Vec<u8>,
    /// Lengths, counts, dimensions and offsets, of 8 bytes.
    numbers: Vec<usize>,
    /// Types of values, arrays and tensors, and numbers of dimensions, of 4 bytes.
    kinds: Vec<usize>,
    entries: Vec<Range<usize>>,
    tensors: Vec<Range<usize>>,
}

/// The file of a seed.
pub(crate) fn mutated(seed: u64) -> Vec<u8> {
    let mut draw = Draw::new(seed);
    let mut base = draw.pick(&BASES).clone();
    base.damage(&mut draw);
    if draw.below(4) == 0 {
        draw.flip(&mut base.header);
    }
    let mut bytes = base.joined();
    match draw.below(12) {
        0 => bytes.truncate(draw.below(bytes.len())),
        1 => draw.flip(&mut bytes),
        2 => bytes.extend([0; 100]),
        _ => {}
    }
    bytes
}

/// The files without damage.
pub(crate) fn whole() -> impl Iterator<Item = Vec<u8>> {
    BASES.iter().map(Base::joined)
}

impl Base {
    fn write(architecture: Architecture, kind: GgmlDType) -> Self {
        let home = TempDir::new().unwrap();
        let path = home.path().join("model.gguf");
        let model = super::small(architecture);
        gguf::write(&path, &model.config, &model.tensors, kind);
        let bytes = std::fs::read(&path).unwrap();
        let mut walk = Walk { bytes: &bytes, at: 8, base: Self::default() };
        walk.header();
        let Walk { at, mut base, .. } = walk;
        base.header = bytes[..at].to_vec();
        base.weights = bytes[at.next_multiple_of(ALIGNMENT)..].to_vec();
        base
    }

    fn joined(&self) -> Vec<u8> {
        let mut bytes = self.header.clone();
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes.extend_from_slice(&self.weights);
        bytes
    }

    fn damage(&mut self, draw: &mut Draw) {
        match draw.below(9) {
            0 => draw.flip(&mut self.header),
            1 => draw.shift(&mut self.header),
            2 | 3 => {
                let at = *draw.pick(&self.numbers);
                let now = u64::from_le_bytes(self.header[at..at + 8].try_into().unwrap());
                self.header[at..at + 8].copy_from_slice(&draw.extreme(now).to_le_bytes());
            }
            4 => {
                let at = *draw.pick(&self.kinds);
                let kind = u32::try_from(draw.below(48)).unwrap();
                self.header[at..at + 4].copy_from_slice(&kind.to_le_bytes());
            }
            5 => {
                let (one, other) = (*draw.pick(&self.numbers), *draw.pick(&self.numbers));
                let number = self.header[one..one + 8].to_vec();
                self.header[other..other + 8].copy_from_slice(&number);
            }
            6 => self.edit_list(draw),
            7 => self.add_entry(draw),
            _ => draw.poison(&mut self.weights),
        }
    }

    /// Doubles, or leaves out, a metadata entry or a tensor.
    fn edit_list(&mut self, draw: &mut Draw) {
        let (list, count_at) =
            if draw.below(2) == 0 { (&self.tensors, 8) } else { (&self.entries, 16) };
        let span = draw.pick(list).clone();
        let doubled = if draw.below(2) == 0 { self.header[span.clone()].to_vec() } else { vec![] };
        let added = if doubled.is_empty() { u64::MAX } else { 1 };
        let kept = if doubled.is_empty() { span } else { span.end..span.end };
        self.header.splice(kept, doubled);
        self.add_to_count(count_at, added);
    }

    /// Adds an array of arrays, or one of a count that no file can have.
    fn add_entry(&mut self, draw: &mut Draw) {
        let depth = 1 + draw.below(2) * draw.below(2_000);
        let mut entry = [&1_u64.to_le_bytes()[..], b"x"].concat();
        for _ in 0..depth {
            entry.extend(9_u32.to_le_bytes());
            if depth == 1 {
                entry.extend(u32::try_from(draw.below(13)).unwrap().to_le_bytes());
                entry.extend(draw.extreme(1).to_le_bytes());
            } else {
                entry.extend(9_u32.to_le_bytes());
                entry.extend(1_u64.to_le_bytes());
            }
        }
        self.header.splice(24..24, entry);
        self.add_to_count(16, 1);
    }

    fn add_to_count(&mut self, at: usize, added: u64) {
        let count = u64::from_le_bytes(self.header[at..at + 8].try_into().unwrap());
        self.header[at..at + 8].copy_from_slice(&count.wrapping_add(added).to_le_bytes());
    }
}

/// A walk over a header that is known to be whole.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    base: Base,
}

impl Walk<'_> {
    fn header(&mut self) {
        let (tensors, entries) = (self.number(), self.number());
        for _ in 0..entries {
            let start = self.at;
            self.text();
            let kind = self.kind();
            self.value(kind);
            self.base.entries.push(start..self.at);
        }
        for _ in 0..tensors {
            let start = self.at;
            self.text();
            for _ in 0..self.kind() {
                self.number();
            }
            self.kind();
            self.number();
            self.base.tensors.push(start..self.at);
        }
    }

    fn number(&mut self) -> u64 {
        self.base.numbers.push(self.at);
        self.at += 8;
        u64::from_le_bytes(self.bytes[self.at - 8..self.at].try_into().unwrap())
    }

    fn kind(&mut self) -> u32 {
        self.base.kinds.push(self.at);
        self.at += 4;
        u32::from_le_bytes(self.bytes[self.at - 4..self.at].try_into().unwrap())
    }

    fn text(&mut self) {
        self.at += usize::try_from(self.number()).unwrap();
    }

    fn value(&mut self, kind: u32) {
        match kind {
            0 | 1 | 7 => self.at += 1,
            2 | 3 => self.at += 2,
            4..=6 => self.at += 4,
            8 => self.text(),
            9 => {
                let kind = self.kind();
                for _ in 0..self.number() {
                    self.value(kind);
                }
            }
            _ => self.at += 8,
        }
    }
}
