//! Keys and values rounded to bf16 in their page, a slot a token.
//!
//! A page's keys are `[head_dim / 2][BLOCK_KEYS][2]`: the two elements that a dot product adds lie
//! together. Its values are `[BLOCK_KEYS / 2][width][2]`: there it adds over keys.

use std::ops::Range;

use super::super::BLOCK_KEYS;
use super::Block16;
use super::rounding::narrow;

/// Values of a key row: one pair of elements for each key.
const KEY_ROW: usize = 2 * BLOCK_KEYS;

/// Rounds one token's key, `[head_dim]`, into its slot of `keys`.
pub fn write_key(keys: &mut [u16], slot: usize, key: &[f32]) {
    assert!(slot < BLOCK_KEYS, "slot {slot} of a page of {BLOCK_KEYS}");
    assert_eq!(keys.len(), key.len() * BLOCK_KEYS, "keys of another head");
    for (row, pair) in keys.chunks_exact_mut(KEY_ROW).zip(key.as_chunks::<2>().0) {
        row[2 * slot..][..2].copy_from_slice(&pair.map(narrow));
    }
}

/// Rounds one token's value, `[head_dim]`, into its slot of `values`; padding is left alone.
pub fn write_value(values: &mut [u16], slot: usize, value: &[f32]) {
    assert!(slot < BLOCK_KEYS, "slot {slot} of a page of {BLOCK_KEYS}");
    let width = values.len() / BLOCK_KEYS;
    assert!(value.len() <= width, "a value of {} for a width of {width}", value.len());
    let row = &mut values[slot / 2 * 2 * width..][..2 * width];
    for (pair, value) in row.as_chunks_mut::<2>().0.iter_mut().zip(value) {
        pair[slot % 2] = narrow(*value);
    }
}

/// Copies some slots of a page into another of the same shape, for a block that lies across
/// segments.
pub fn copy_slots(from: Block16<'_>, slots: Range<usize>, keys: &mut [u16], values: &mut [u16]) {
    assert!(slots.start <= slots.end && slots.end <= BLOCK_KEYS, "slots {slots:?}");
    assert_eq!(from.keys.len(), keys.len(), "keys of another shape");
    assert_eq!(from.values.len(), values.len(), "values of another shape");
    let run = 2 * slots.start..2 * slots.end;
    for (to, from) in keys.chunks_exact_mut(KEY_ROW).zip(from.keys.chunks_exact(KEY_ROW)) {
        to[run.clone()].copy_from_slice(&from[run.clone()]);
    }
    let width = values.len() / BLOCK_KEYS;
    for slot in slots {
        let row = slot / 2 * 2 * width..(slot / 2 + 1) * 2 * width;
        let pairs = values[row.clone()].as_chunks_mut::<2>().0;
        for (to, from) in pairs.iter_mut().zip(from.values[row].as_chunks::<2>().0) {
            to[slot % 2] = from[slot % 2];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounding::widen;
    use super::*;

    const DIM: usize = 6;
    const WIDTH: usize = 32;

    fn page(seed: usize) -> (Vec<u16>, Vec<u16>) {
        let (mut keys, mut values) = (vec![0; DIM * BLOCK_KEYS], vec![0; WIDTH * BLOCK_KEYS]);
        for slot in 0..BLOCK_KEYS {
            write_key(&mut keys, slot, &token(seed, slot));
            write_value(&mut values, slot, &token(seed + 1, slot));
        }
        (keys, values)
    }

    /// Small whole numbers: bf16 has them exactly.
    fn token(seed: usize, slot: usize) -> Vec<f32> {
        (0..DIM).map(|d| ((seed * 7 + slot * DIM + d) % 201) as f32).collect()
    }

    fn key(keys: &[u16], slot: usize) -> Vec<f32> {
        (0..DIM).map(|d| widen(keys[d / 2 * KEY_ROW + 2 * slot + d % 2])).collect()
    }

    fn value(values: &[u16], slot: usize) -> Vec<f32> {
        (0..WIDTH).map(|d| widen(values[(slot / 2 * WIDTH + d) * 2 + slot % 2])).collect()
    }

    #[test]
    fn each_token_lies_in_its_own_slot() {
        let (keys, values) = page(0);
        for slot in 0..BLOCK_KEYS {
            assert_eq!(key(&keys, slot), token(0, slot));
            assert_eq!(value(&values, slot)[..DIM], token(1, slot));
            assert_eq!(value(&values, slot)[DIM..], [0.0; WIDTH - DIM]);
        }
    }

    #[test]
    fn copied_slots_replace_those_and_no_others() {
        for slots in [0..0, 0..64, 5..8, 6..7, 7..64, 0..33] {
            let (old, new) = (page(0), page(11));
            let (mut keys, mut values) = old.clone();
            let from = Block16 { keys: &new.0, values: &new.1 };
            copy_slots(from, slots.clone(), &mut keys, &mut values);
            let expected = |slot| if slots.contains(&slot) { &new } else { &old };
            for slot in 0..BLOCK_KEYS {
                let (key_page, value_page) = expected(slot);
                assert_eq!(key(&keys, slot), key(key_page, slot), "{slots:?} {slot}");
                assert_eq!(value(&values, slot), value(value_page, slot), "{slots:?} {slot}");
            }
        }
    }
}
