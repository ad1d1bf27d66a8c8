//! The product with the dot instruction of AVX-512 VNNI: four products a lane and instruction.
//!
//! A tile holds the integer sums of a block and the `f32` sums of its share of the depth, both in
//! registers: 6 rows x 2 vectors of each, so a block ends without a store.

#![expect(unsafe_code, reason = "vector loads and stores, and calls into detected CPU features")]

use std::arch::x86_64::{
    __m128i, __m512, __m512i, _MM_HINT_T0, _mm_prefetch, _mm_storeu_si128, _mm512_abs_ps,
    _mm512_add_epi32, _mm512_add_ps, _mm512_castps_si512, _mm512_castsi512_ps,
    _mm512_cvtepi32_epi8, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_loadu_si512, _mm512_max_epu32, _mm512_mul_ps, _mm512_reduce_add_epi32,
    _mm512_reduce_max_epu32, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512,
    _mm512_storeu_ps, _mm512_sub_epi32,
};

use super::super::{Level, PANEL_COLUMNS, STRIP_ROWS};
use super::panels::{BLOCK_BYTES, FACTORS, ROUNDER, VALUES};
use super::strips::{
    BLOCK_WORDS, Int8Strips, Quantised, SCALES, STRIP_WORDS, SUMS, lay_out, scales,
};
use super::{BLOCK, SHARE_BLOCKS};

/// `f32` lanes of a vector.
const LANES: usize = 16;
/// Vectors of a panel's columns.
const VECTORS: usize = PANEL_COLUMNS / LANES;
/// Rows of the highest tile.
const TILE_ROWS: usize = STRIP_ROWS / 2;

/// Adds the product of `left` and one panel to `out`, `[rows, padded to strips][PANEL_COLUMNS]`.
pub(super) fn multiply(level: Level, left: &Int8Strips, right: &[u8], out: &mut [f32]) {
    assert!(level.has_int8_dot(), "{} has no 8-bit dot product", level.name());
    // SAFETY: `has_int8_dot` is only true where all features of the function were detected.
    unsafe { multiply_detected(left, right, out) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
fn multiply_detected(left: &Int8Strips, right: &[u8], out: &mut [f32]) {
    let (right, _) = right.as_chunks::<BLOCK_BYTES>();
    for (share, right) in right.chunks(SHARE_BLOCKS).enumerate() {
        let first = share * SHARE_BLOCKS;
        let (outs, _) = out.as_chunks_mut::<{ STRIP_ROWS * PANEL_COLUMNS }>();
        for (strip, out) in outs.iter_mut().enumerate() {
            let left_blocks = &left.strip(strip)[first..first + right.len()];
            let rows = STRIP_ROWS.min(left.rows() - strip * STRIP_ROWS);
            // The next strip's sums: a product is too large to stay in the cache between panels.
            prefetch(std::ptr::from_ref(out).wrapping_add(1));
            multiply_strip(left_blocks, rows, right, out);
        }
    }
}

/// Covers a strip's rows with one tile, or two of about the same height.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
#[inline]
fn multiply_strip(
    left: &[[u32; STRIP_WORDS]],
    rows: usize,
    right: &[[u8; BLOCK_BYTES]],
    out: &mut [f32; STRIP_ROWS * PANEL_COLUMNS],
) {
    let upper = if rows > TILE_ROWS { rows.div_ceil(2) } else { rows };
    for (first, rows) in [(0, upper), (upper, rows - upper)] {
        match rows {
            0 => {}
            1 => tile::<1>(left, first, right, out),
            2 => tile::<2>(left, first, right, out),
            3 => tile::<3>(left, first, right, out),
            4 => tile::<4>(left, first, right, out),
            5 => tile::<5>(left, first, right, out),
            _ => tile::<TILE_ROWS>(left, first, right, out),
        }
    }
}

/// Adds the product of rows `first..first + R`: the arithmetic of an element is the same for all `R`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
fn tile<const R: usize>(
    left: &[[u32; STRIP_WORDS]],
    first: usize,
    right: &[[u8; BLOCK_BYTES]],
    out: &mut [f32; STRIP_ROWS * PANEL_COLUMNS],
) {
    assert!(first <= STRIP_ROWS - R, "{R} rows from row {first} of a strip");
    let outs = &mut out.as_chunks_mut::<LANES>().0[first * VECTORS..][..R * VECTORS];
    let mut totals: [[__m512; VECTORS]; R] =
        std::array::from_fn(|r| std::array::from_fn(|v| load_f32(&outs[r * VECTORS + v])));
    for (left, right) in left.iter().zip(right) {
        let (vectors, _) = right.as_chunks::<{ 4 * LANES }>();
        let sums = dots::<R>(left, first, vectors);
        let factors = |from: usize| -> [__m512; VECTORS] {
            std::array::from_fn(|v| _mm512_castsi512_ps(load(&vectors[from / (4 * LANES) + v])))
        };
        let (scales, minima) = (factors(VALUES), factors(VALUES + FACTORS));
        for r in 0..R {
            let scale = _mm512_set1_ps(f32::from_bits(left[SCALES + first + r]));
            let sum = _mm512_set1_ps(f32::from_bits(left[SUMS + first + r]));
            for v in 0..VECTORS {
                let product = _mm512_mul_ps(scales[v], _mm512_cvtepi32_ps(sums[r][v]));
                let value = _mm512_fmadd_ps(minima[v], sum, product);
                totals[r][v] = _mm512_fmadd_ps(value, scale, totals[r][v]);
            }
        }
    }
    for (out, total) in outs.iter_mut().zip(totals.as_flattened()) {
        store(out, *total);
    }
}

/// The integer sums of one block, of rows `first..first + R`.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
#[inline]
fn dots<const R: usize>(
    left: &[u32; STRIP_WORDS],
    first: usize,
    right: &[[u8; 4 * LANES]],
) -> [[__m512i; VECTORS]; R] {
    let mut sums = [[_mm512_setzero_si512(); VECTORS]; R];
    for word in 0..BLOCK_WORDS {
        let weights: [__m512i; VECTORS] = std::array::from_fn(|v| load(&right[word * VECTORS + v]));
        for r in 0..R {
            let four = _mm512_set1_epi32(left[word * STRIP_ROWS + first + r].cast_signed());
            for v in 0..VECTORS {
                sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], weights[v], four);
            }
        }
    }
    sums
}

/// Fills a strip, as [`super::fill`] describes it.
pub(super) fn fill(level: Level, rows: &[f32], depth: usize, strip: &mut [u32]) {
    assert!(level.has_int8_dot(), "{} has no 8-bit dot product", level.name());
    // SAFETY: `has_int8_dot` is only true where all features of the function were detected.
    unsafe { fill_detected(rows, depth, strip) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
fn fill_detected(rows: &[f32], depth: usize, strip: &mut [u32]) {
    lay_out(rows, depth, strip, |values| quantise(values));
}

/// What the plain form does: left to itself the compiler takes value by value.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
#[inline]
fn quantise(values: &[f32; BLOCK]) -> Quantised {
    let (halves, _) = values.as_chunks::<LANES>();
    let values = [load_f32(&halves[0]), load_f32(&halves[1])];
    let magnitudes = values.map(|values| _mm512_castps_si512(_mm512_abs_ps(values)));
    let highest = _mm512_reduce_max_epu32(_mm512_max_epu32(magnitudes[0], magnitudes[1]));
    let (scale, inverse) = scales(f32::from_bits(highest));
    let (inverse, rounder) = (_mm512_set1_ps(inverse), _mm512_set1_ps(ROUNDER));
    let bits = values
        .map(|values| _mm512_castps_si512(_mm512_add_ps(_mm512_mul_ps(values, inverse), rounder)));
    let zero = _mm512_castps_si512(rounder);
    let wholes = bits.map(|bits| _mm512_sub_epi32(bits, zero));
    let sum = _mm512_reduce_add_epi32(_mm512_add_epi32(wholes[0], wholes[1]));
    let mut quantised = [0; BLOCK];
    let (halves, _) = quantised.as_chunks_mut::<LANES>();
    store_bytes(&mut halves[0], _mm512_cvtepi32_epi8(bits[0]));
    store_bytes(&mut halves[1], _mm512_cvtepi32_epi8(bits[1]));
    Quantised { scale, sum, values: quantised }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store_bytes(bytes: &mut [u8; LANES], vector: __m128i) {
    // SAFETY: the reference is valid for the 16 bytes written; no alignment is needed.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), vector) };
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load(bytes: &[u8; 4 * LANES]) -> __m512i {
    // SAFETY: the reference is valid for the 64 bytes read; no alignment is needed.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn load_f32(values: &[f32; LANES]) -> __m512 {
    // SAFETY: the reference is valid for the 16 values read; no alignment is needed.
    unsafe { _mm512_loadu_ps(values.as_ptr()) }
}

#[target_feature(enable = "avx512f")]
#[inline]
fn store(values: &mut [f32; LANES], vector: __m512) {
    // SAFETY: the reference is valid for the 16 values written; no alignment is needed.
    unsafe { _mm512_storeu_ps(values.as_mut_ptr(), vector) };
}

/// Asks for the lines of `values` to be brought near; they may be anywhere.
#[inline]
fn prefetch(values: *const [f32; STRIP_ROWS * PANEL_COLUMNS]) {
    for line in (0..size_of::<[f32; STRIP_ROWS * PANEL_COLUMNS]>()).step_by(4 * LANES) {
        // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(values.cast::<i8>().wrapping_add(line)) };
    }
}
