//! Pages: keys and values of 64 consecutive positions of one head, as the kernels want them.
//!
//! What a page holds is rounded to its stored type when it is written, before anything attends to
//! it (ARCHITECTURE D6 rule 2). No code outside this file asks which type that is, but attention.

use std::collections::TryReserveError;
use std::ops::Range;

use super::kernels::bf16::{self, Block16};
use super::kernels::{BLOCK_KEYS, Block, PANEL_COLUMNS, Precision};

/// What keys and values are stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredAs {
    F32,
    Bf16,
}

impl StoredAs {
    /// As products of this precision want them: exact products get exact keys.
    pub(super) fn under(precision: Precision) -> Self {
        match precision {
            Precision::F32 => Self::F32,
            Precision::Bf16 | Precision::Int8 => Self::Bf16,
        }
    }

    /// Name in `/health`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }

    fn bytes(self) -> usize {
        match self {
            Self::F32 => size_of::<f32>(),
            Self::Bf16 => size_of::<u16>(),
        }
    }
}

/// Sizes that all segments of one model share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageShape {
    pub(super) layers: usize,
    pub(super) kv_heads: usize,
    /// Even.
    pub(super) head_dim: usize,
    pub(super) stored: StoredAs,
}

impl PageShape {
    /// Width of a value row, padded to whole panels.
    pub(super) fn value_width(self) -> usize {
        self.head_dim.next_multiple_of(PANEL_COLUMNS)
    }

    /// Numbers of one page of one head: keys, then values.
    pub(super) fn page_len(self) -> usize {
        BLOCK_KEYS * (self.head_dim + self.value_width())
    }

    /// Bytes of one position over all layers and heads, padding included.
    pub(super) fn bytes_per_token(self) -> usize {
        let per_head = (self.head_dim + self.value_width()) * self.stored.bytes();
        self.layers * self.kv_heads * per_head
    }
}

/// Many pages: `[pages][page_len]`.
#[derive(Debug)]
pub(super) enum PageBuffer {
    F32(Vec<f32>),
    Bf16(Vec<u16>),
}

impl PageBuffer {
    /// Zeros for so many pages.
    ///
    /// # Errors
    /// When the allocator has no room.
    pub(super) fn zeros(shape: PageShape, pages: usize) -> Result<Self, TryReserveError> {
        let len = pages * shape.page_len();
        Ok(match shape.stored {
            StoredAs::F32 => {
                let mut numbers = Vec::new();
                numbers.try_reserve_exact(len)?;
                numbers.resize(len, 0.0);
                Self::F32(numbers)
            }
            StoredAs::Bf16 => {
                let mut numbers = Vec::new();
                numbers.try_reserve_exact(len)?;
                numbers.resize(len, 0);
                Self::Bf16(numbers)
            }
        })
    }

    /// Zeros for one page.
    pub(super) fn one(shape: PageShape) -> Self {
        match shape.stored {
            StoredAs::F32 => Self::F32(vec![0.0; shape.page_len()]),
            StoredAs::Bf16 => Self::Bf16(vec![0; shape.page_len()]),
        }
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Self::F32(numbers) => size_of_val(numbers.as_slice()),
            Self::Bf16(numbers) => size_of_val(numbers.as_slice()),
        }
    }

    /// Page number `index`.
    pub(super) fn page(&self, shape: PageShape, index: usize) -> Page<'_> {
        let keys_len = BLOCK_KEYS * shape.head_dim;
        let range = index * shape.page_len()..(index + 1) * shape.page_len();
        match self {
            Self::F32(numbers) => {
                let (keys, values) = numbers[range].split_at(keys_len);
                Page::F32(Block { keys, values })
            }
            Self::Bf16(numbers) => {
                let (keys, values) = numbers[range].split_at(keys_len);
                Page::Bf16(Block16 { keys, values })
            }
        }
    }

    /// A run of pages to be written, each on its own.
    pub(super) fn pages_mut(&mut self, shape: PageShape, run: Range<usize>) -> Vec<PageMut<'_>> {
        let (len, keys_len) = (shape.page_len(), BLOCK_KEYS * shape.head_dim);
        let range = run.start * len..run.end * len;
        match self {
            Self::F32(numbers) => {
                let pages = numbers[range].chunks_exact_mut(len);
                let pages = pages.map(|page| page.split_at_mut(keys_len));
                pages.map(|(keys, values)| PageMut::F32 { keys, values }).collect()
            }
            Self::Bf16(numbers) => {
                let pages = numbers[range].chunks_exact_mut(len);
                let pages = pages.map(|page| page.split_at_mut(keys_len));
                pages.map(|(keys, values)| PageMut::Bf16 { keys, values }).collect()
            }
        }
    }
}

/// A page to be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Page<'a> {
    F32(Block<'a>),
    Bf16(Block16<'a>),
}

/// A page to be written.
#[derive(Debug)]
pub(super) enum PageMut<'a> {
    F32 { keys: &'a mut [f32], values: &'a mut [f32] },
    Bf16 { keys: &'a mut [u16], values: &'a mut [u16] },
}

impl PageMut<'_> {
    /// Writes key and value, `[head_dim]` each, of the position in `slot`.
    pub(super) fn write(&mut self, slot: usize, key: &[f32], value: &[f32]) {
        match self {
            Self::F32 { keys, values } => {
                for (column, key) in keys.chunks_exact_mut(BLOCK_KEYS).zip(key) {
                    column[slot] = *key;
                }
                let width = values.len() / BLOCK_KEYS;
                values[slot * width..][..value.len()].copy_from_slice(value);
            }
            Self::Bf16 { keys, values } => {
                bf16::write_key(keys, slot, key);
                bf16::write_value(values, slot, value);
            }
        }
    }

    /// Copies some slots of a page of the same shape and type.
    pub(super) fn copy(&mut self, from: Page<'_>, slots: Range<usize>) {
        match (self, from) {
            (Self::F32 { keys, values }, Page::F32(from)) => {
                let rows = keys.chunks_exact_mut(BLOCK_KEYS);
                for (to, from) in rows.zip(from.keys.chunks_exact(BLOCK_KEYS)) {
                    to[slots.clone()].copy_from_slice(&from[slots.clone()]);
                }
                let width = values.len() / BLOCK_KEYS;
                let rows = slots.start * width..slots.end * width;
                values[rows.clone()].copy_from_slice(&from.values[rows]);
            }
            (Self::Bf16 { keys, values }, Page::Bf16(from)) => {
                bf16::copy_slots(from, slots, keys, values);
            }
            (Self::F32 { .. }, Page::Bf16(_)) | (Self::Bf16 { .. }, Page::F32(_)) => {
                unreachable!("pages of one model are of one type");
            }
        }
    }
}
