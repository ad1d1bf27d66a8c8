//! The product with the dot instruction of AVX-512 VNNI: four products a lane and instruction.
//!
//! A tile holds the integer sums of a block and the `f32` sums of its share of the depth, both in
//! registers: 6 rows x 2 vectors of each, so a block ends without a store.

#![expect(unsafe_code, reason = "vector loads and stores, and calls into detected CPU features")]

use std::arch::x86_64::{
    __m128i, __m512, __m512i, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch, _mm_storeu_si128,
    _mm512_abs_ps, _mm512_add_epi32, _mm512_add_ps, _mm512_castps_si512, _mm512_castsi512_ps,
    _mm512_cvtepi32_epi8, _mm512_cvtepi32_ps, _mm512_dpbusd_epi32, _mm512_fmadd_ps,
    _mm512_loadu_ps, _mm512_loadu_si512, _mm512_max_epu32, _mm512_mul_ps, _mm512_reduce_add_epi32,
    _mm512_reduce_max_epu32, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_si512,
    _mm512_storeu_ps, _mm512_sub_epi32,
};

use super::super::product::{Piece, Run};
use super::super::{Level, PANEL_COLUMNS, STRIP_ROWS};
use super::panels::{BLOCK_BYTES, FACTORS, Int8Panels, ROUNDER, VALUES};
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
/// Strips that each panel of a run takes in turn: their shares, 270 KiB, stay in the second-level
/// cache from one panel to the next.
const GROUP_STRIPS: usize = 32;
/// Bytes of a left operand that stays in the second-level cache without being asked for.
const LEFT_CACHED: u64 = 512 << 10;

/// What a strip's sums start from, if not from what is there, and where they are.
type Sums<'a> = (Option<&'a [f32; PANEL_COLUMNS]>, &'a mut [f32; STRIP_ROWS * PANEL_COLUMNS]);

/// The product of `left` and a run of panels.
pub(super) fn multiply(level: Level, left: &Int8Strips, right: &Int8Panels, run: Run<'_>) {
    assert!(level.has_int8_dot(), "{} has no 8-bit dot product", level.name());
    // SAFETY: `has_int8_dot` is only true where all features of the function were detected.
    unsafe { multiply_detected(left, right, run) };
}

#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
fn multiply_detected(left: &Int8Strips, right: &Int8Panels, mut run: Run<'_>) {
    let blocks = left.depth().div_ceil(BLOCK);
    // One tile reads the weights once: nothing is gained by coming back to them.
    let size = if left.rows() > TILE_ROWS { SHARE_BLOCKS } else { blocks };
    let far = left.bytes() > LEFT_CACHED;
    for (share, first) in (0..blocks).step_by(size).enumerate() {
        let last = blocks.min(first + size);
        run.pieces((left.rows(), GROUP_STRIPS), share, |piece: Piece<'_>| {
            let Piece { strip, more, panel, rows, bias, out } = piece;
            let right = &right.panel(panel).as_chunks::<BLOCK_BYTES>().0[first..last];
            let left = left.strip(strip);
            let ahead = (more && far).then(|| left.as_ptr_range().end.wrapping_add(first));
            // The next strip's sums: a product is too large to stay in the cache between shares.
            if more {
                prefetch(std::ptr::from_ref(out).wrapping_add(1));
            }
            multiply_strip((&left[first..last], ahead), rows, right, (bias, out));
        });
    }
}

/// Covers a strip's rows with one tile, or two of about the same height.
///
/// * `left`: the strip's share, and where that of the next strip begins: it is brought near.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
#[inline]
fn multiply_strip(
    left: (&[[u32; STRIP_WORDS]], Option<*const [u32; STRIP_WORDS]>),
    rows: usize,
    right: &[[u8; BLOCK_BYTES]],
    (bias, out): Sums<'_>,
) {
    let upper = if rows > TILE_ROWS { rows.div_ceil(2) } else { rows };
    for (first, rows) in [(0, upper), (upper, rows - upper)] {
        match rows {
            0 => {}
            1 => tile::<1>(left.0, first, right, (bias, &mut *out), |_| ()),
            2 => tile::<2>(left.0, first, right, (bias, &mut *out), |_| ()),
            3 => tile::<3>(left.0, first, right, (bias, &mut *out), |_| ()),
            4 => tile::<4>(left.0, first, right, (bias, &mut *out), |_| ()),
            5 => tile::<5>(left.0, first, right, (bias, &mut *out), |_| ()),
            // A strip that another follows is full.
            _ => match left.1 {
                Some(ahead) => tile::<TILE_ROWS>(left.0, first, right, (bias, &mut *out), |at| {
                    prefetch_half(ahead.wrapping_add(at), first > 0);
                }),
                None => tile::<TILE_ROWS>(left.0, first, right, (bias, &mut *out), |_| ()),
            },
        }
    }
}

/// Adds the product of rows `first..first + R`: the arithmetic of an element is the same for all `R`.
///
/// * `prefetch`: called with the number of each block, to ask for what comes later.
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx512vnni,avx2,fma")]
fn tile<const R: usize>(
    left: &[[u32; STRIP_WORDS]],
    first: usize,
    right: &[[u8; BLOCK_BYTES]],
    (bias, out): Sums<'_>,
    prefetch: impl Fn(usize),
) {
    assert!(first <= STRIP_ROWS - R, "{R} rows from row {first} of a strip");
    let outs = &mut out.as_chunks_mut::<LANES>().0[first * VECTORS..][..R * VECTORS];
    let mut totals: [[__m512; VECTORS]; R] = match bias {
        Some(bias) => [std::array::from_fn(|v| load_f32(&bias.as_chunks().0[v])); R],
        None => std::array::from_fn(|r| std::array::from_fn(|v| load_f32(&outs[r * VECTORS + v]))),
    };
    for (at, (left, right)) in left.iter().zip(right).enumerate() {
        prefetch(at);
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

/// Asks for half of the lines of a strip's block to be brought into the second-level cache; they may
/// be anywhere. The hardware would miss each strip's share anew, as it follows no address that far.
#[inline]
fn prefetch_half(block: *const [u32; STRIP_WORDS], second: bool) {
    const HALF: usize = (size_of::<[u32; STRIP_WORDS]>() / 2).next_multiple_of(4 * LANES);
    let from = if second { HALF } else { 0 };
    for line in (from..from + HALF).step_by(4 * LANES) {
        // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(block.cast::<i8>().wrapping_add(line)) };
    }
}
