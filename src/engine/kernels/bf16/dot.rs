//! The bf16 dot product and its like: the only intrinsics of this module, behind checked calls.
//!
//! `vdpbf16ps` takes 16 lanes of two pairs each; it is twice the work of a fused multiply-add in
//! the same time. The compiler does not make it out of plain Rust.

#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "vdpbf16ps exists as an intrinsic only, and it works on pointers"
    )
)]
#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::super::portable::{Level, Out};
use super::super::{BLOCK_KEYS, PANEL_COLUMNS, STRIP_ROWS};
use super::strip::KEY_PAIRS;
use super::wide::{LeftWords, RightPairs};

/// Proof that the CPU has the instruction.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dot(Proof);

#[cfg(target_arch = "x86_64")]
type Proof = ();
#[cfg(not(target_arch = "x86_64"))]
type Proof = std::convert::Infallible;

impl Dot {
    /// The instruction, where `level` has it.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn of(level: Level) -> Option<Self> {
        level.has_bf16_dot().then_some(Self(()))
    }

    /// The instruction, where `level` has it: nowhere on this architecture.
    #[cfg(not(target_arch = "x86_64"))]
    pub(super) fn of(_: Level) -> Option<Self> {
        None
    }

    /// Adds the product of `rows` rows of `left` (1 to [`STRIP_ROWS`]) and one panel of `right` to
    /// `out`. Each element is one chain of the instruction, ascending in the depth, so that its
    /// value does not depend on the number of rows.
    pub(super) fn accumulate<const ROW: usize, const PAIR: usize>(
        self,
        left: LeftWords<'_, ROW, PAIR>,
        rows: usize,
        right: RightPairs<'_>,
        out: Out<'_>,
    ) {
        self.multiply((left, rows), None, right, out);
    }

    /// As [`Self::accumulate`], but where there is a bias, sums start from it.
    pub(super) fn multiply<const ROW: usize, const PAIR: usize>(
        self,
        (left, rows): (LeftWords<'_, ROW, PAIR>, usize),
        bias: Option<&[f32; PANEL_COLUMNS]>,
        right: RightPairs<'_>,
        out: Out<'_>,
    ) {
        let Out { values: sums, stride, first } = out;
        let pairs = right.pairs();
        assert!((1..=STRIP_ROWS).contains(&rows), "a tile of {rows} rows");
        assert!(
            pairs > 0 && left.words.len() > (rows - 1) * ROW + (pairs - 1) * PAIR,
            "short rows"
        );
        assert!(right.first + PANEL_COLUMNS <= right.stride, "columns past the right operand");
        let end = (rows - 1) * stride + first + PANEL_COLUMNS;
        assert!(sums.len() >= end, "sums for fewer than {rows} rows");
        #[cfg(not(target_arch = "x86_64"))]
        match self.0 {}
        #[cfg(target_arch = "x86_64")]
        {
            let Self(()) = self;
            let out = sums[first..].as_mut_ptr();
            let (from, from_step) =
                bias.map_or((out.cast_const(), stride), |bias| (bias.as_ptr(), 0));
            let tile = x86::Tile {
                left: left.words.as_ptr(),
                right: right.values[2 * right.first..].as_ptr(),
                right_step: 2 * right.stride,
                pairs,
                ahead: left.ahead,
                from,
                from_step,
                out,
                out_step: stride,
            };
            // SAFETY: `self` proves the features; the asserts above prove the tile's extent.
            unsafe { tile.run::<ROW, PAIR>(rows) }
        }
    }
}

/// Where there is no such instruction there is no [`Dot`] to call these on.
#[cfg(not(target_arch = "x86_64"))]
impl Dot {
    pub(super) fn highest(self, _: &[[f32; BLOCK_KEYS]], _: &mut [f32]) {
        match self.0 {}
    }

    pub(super) fn round(self, _: &[[f32; BLOCK_KEYS]], _: &mut [[u32; KEY_PAIRS]], _: &mut [f32]) {
        match self.0 {}
    }
}

#[cfg(target_arch = "x86_64")]
impl Dot {
    /// The largest score of each row.
    pub(super) fn highest(self, scores: &[[f32; BLOCK_KEYS]], out: &mut [f32]) {
        let Self(()) = self;
        for (scores, out) in scores.iter().zip(out) {
            // SAFETY: `self` proves the features.
            *out = unsafe { x86::highest(scores) };
        }
    }

    /// Rounds each row of weights (not negative, none subnormal) to words; sums what they became.
    pub(super) fn round(
        self,
        weights: &[[f32; BLOCK_KEYS]],
        words: &mut [[u32; KEY_PAIRS]],
        sums: &mut [f32],
    ) {
        let Self(()) = self;
        for ((weights, words), sum) in weights.iter().zip(words).zip(sums) {
            // SAFETY: `self` proves the features.
            *sum = unsafe { x86::round(weights, words) };
        }
    }
}

/// Four rows of four words as columns.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(super) fn transposed(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
    x86::transposed(rows)
}

/// Four rows of four words as columns.
#[inline(always)]
#[cfg(not(target_arch = "x86_64"))]
pub(super) fn transposed(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
    let [a, b, c, d] = rows;
    [
        [a[0], b[0], c[0], d[0]],
        [a[1], b[1], c[1], d[1]],
        [a[2], b[2], c[2], d[2]],
        [a[3], b[3], c[3], d[3]],
    ]
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{BLOCK_KEYS, KEY_PAIRS, STRIP_ROWS};
    use std::arch::x86_64::{
        __m128i, __m512, __m512bh, __m512i, _MM_HINT_T0, _MM_HINT_T1, _mm_prefetch,
        _mm_unpackhi_epi32, _mm_unpackhi_epi64, _mm_unpacklo_epi32, _mm_unpacklo_epi64,
        _mm512_cvtne2ps_pbh, _mm512_dpbf16_ps, _mm512_loadu_epi16, _mm512_loadu_ps, _mm512_max_ps,
        _mm512_reduce_add_ps, _mm512_reduce_max_ps, _mm512_set1_epi32, _mm512_set1_ps,
        _mm512_setzero_ps, _mm512_storeu_ps,
    };
    use std::mem::transmute;

    /// Sums of one row: two vectors, the width of a panel.
    type Sums = [__m512; 2];

    /// Lanes of a vector.
    const LANES: usize = 16;

    /// Where a tile's operands are. Steps are in elements.
    #[derive(Clone, Copy)]
    pub(super) struct Tile {
        /// Words of the first row.
        pub(super) left: *const u32,
        /// The first pair of the depth, `PANEL_COLUMNS` columns.
        pub(super) right: *const u16,
        /// From one pair of the depth to the next.
        pub(super) right_step: usize,
        pub(super) pairs: usize,
        /// As in `LeftWords`.
        pub(super) ahead: usize,
        /// What the first row's sums start from.
        pub(super) from: *const f32,
        /// From one row to the next.
        pub(super) from_step: usize,
        /// Sums of the first row.
        pub(super) out: *mut f32,
        /// From one row to the next.
        pub(super) out_step: usize,
    }

    impl Tile {
        /// Runs the tile of exactly `rows` rows.
        ///
        /// # Safety
        /// `rows` is 1 to 12. `left` has a word at `row * ROW + pair * PAIR`, `right` has 64 values
        /// from `pair * right_step`, `out` 32 from
        /// `row * out_step` and `from` 32 from `row * from_step`, for all rows and pairs.
        #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
        pub(super) unsafe fn run<const ROW: usize, const PAIR: usize>(self, rows: usize) {
            macro_rules! heights {
                ($($height:literal)*) => {
                    match rows {
                        // SAFETY: the caller's promise.
                        $($height => unsafe { self.rows::<$height, ROW, PAIR>() },)*
                        _ => {}
                    }
                };
            }
            if self.ahead > 0 {
                self.prefetch_sums();
            }
            heights!(1 2 3 4 5 6 7 8 9 10 11 12);
        }

        /// Asks for the next strip's sums to be brought near: they may be anywhere.
        #[inline]
        fn prefetch_sums(self) {
            for vector in 0..2 * STRIP_ROWS {
                let row = self.out.wrapping_add((STRIP_ROWS + vector / 2) * self.out_step);
                let sums = row.wrapping_add(vector % 2 * LANES);
                // SAFETY: a prefetch reads nothing that the program could see, and faults nowhere.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(sums.cast()) };
            }
        }

        /// # Safety
        /// As [`Self::run`].
        #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
        unsafe fn rows<const R: usize, const ROW: usize, const PAIR: usize>(self) {
            let mut sums: [Sums; R] = [[_mm512_setzero_ps(); 2]; R];
            for (row, [low, high]) in sums.iter_mut().enumerate() {
                let from = self.from.wrapping_add(row * self.from_step);
                // SAFETY: 32 sums for this row are there.
                *low = unsafe { _mm512_loadu_ps(from) };
                // SAFETY: as above.
                *high = unsafe { _mm512_loadu_ps(from.wrapping_add(LANES)) };
            }
            for pair in 0..self.pairs {
                // SAFETY: the caller's promise, for this pair.
                unsafe { self.step::<R, ROW, PAIR>(pair, &mut sums) };
            }
            for (row, [low, high]) in sums.into_iter().enumerate() {
                let out = self.out.wrapping_add(row * self.out_step);
                // SAFETY: 32 sums of this row are there.
                unsafe { _mm512_storeu_ps(out, low) };
                // SAFETY: as above.
                unsafe { _mm512_storeu_ps(out.wrapping_add(LANES), high) };
            }
        }

        /// Adds one pair of the depth.
        ///
        /// # Safety
        /// As [`Self::run`], for this pair.
        #[inline]
        #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
        unsafe fn step<const R: usize, const ROW: usize, const PAIR: usize>(
            self,
            pair: usize,
            sums: &mut [Sums; R],
        ) {
            let right = self.right.wrapping_add(pair * self.right_step);
            // SAFETY: 64 values of this pair are there, two vectors.
            let right_low = unsafe { load(right) };
            // SAFETY: as above.
            let right_high = unsafe { load(right.wrapping_add(2 * LANES)) };
            let ahead = self.left.wrapping_add(pair * PAIR + self.ahead);
            _mm_prefetch::<_MM_HINT_T1>(ahead.cast());
            for (row, [low, high]) in sums.iter_mut().enumerate() {
                // SAFETY: this row has a word for this pair.
                let word = unsafe { self.left.wrapping_add(row * ROW + pair * PAIR).read() };
                let left = pairs_of(word);
                *low = _mm512_dpbf16_ps(*low, left, right_low);
                *high = _mm512_dpbf16_ps(*high, left, right_high);
            }
        }
    }

    /// The largest score of a row, not-a-numbers left out.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) fn highest(scores: &[f32; BLOCK_KEYS]) -> f32 {
        // The second operand is what comes out where the first is not a number.
        let lanes = vectors(scores)
            .into_iter()
            .fold(_mm512_set1_ps(f32::NEG_INFINITY), |a, b| _mm512_max_ps(b, a));
        _mm512_reduce_max_ps(lanes)
    }

    /// Rounds a row of weights; returns the sum of what they became.
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    pub(super) fn round(weights: &[f32; BLOCK_KEYS], words: &mut [u32; KEY_PAIRS]) -> f32 {
        let [a, b, c, d] = vectors(weights);
        let rounded = [_mm512_cvtne2ps_pbh(b, a), _mm512_cvtne2ps_pbh(d, c)];
        // SAFETY: both are 128 bytes of plain values.
        *words = unsafe { transmute::<[__m512bh; 2], [u32; KEY_PAIRS]>(rounded) };
        let ones = pairs_of(0x3f80_3f80);
        let sums = _mm512_dpbf16_ps(_mm512_setzero_ps(), rounded[0], ones);
        _mm512_reduce_add_ps(_mm512_dpbf16_ps(sums, rounded[1], ones))
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn vectors(row: &[f32; BLOCK_KEYS]) -> [__m512; 4] {
        // SAFETY: both are 256 bytes of plain values.
        unsafe { transmute::<[f32; BLOCK_KEYS], [__m512; 4]>(*row) }
    }

    /// Four rows of four words as columns.
    #[inline(always)]
    pub(super) fn transposed(rows: [[u32; 4]; 4]) -> [[u32; 4]; 4] {
        // SAFETY: both are 64 bytes of plain values.
        let rows = unsafe { transmute::<[[u32; 4]; 4], [__m128i; 4]>(rows) };
        // SAFETY: every CPU of this architecture has SSE2.
        let columns = unsafe { unpack(rows) };
        // SAFETY: both are 64 bytes of plain values.
        unsafe { transmute::<[__m128i; 4], [[u32; 4]; 4]>(columns) }
    }

    /// Eight unpacks; of plain Rust the compiler makes a scatter, which takes far longer.
    #[inline]
    #[target_feature(enable = "sse2")]
    fn unpack([a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        [
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ab_high, cd_high),
            _mm_unpackhi_epi64(ab_high, cd_high),
        ]
    }

    /// # Safety
    /// 32 values are at `values`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512bf16")]
    unsafe fn load(values: *const u16) -> __m512bh {
        // SAFETY: the caller's promise.
        let values = unsafe { _mm512_loadu_epi16(values.cast()) };
        // SAFETY: both are 64 bytes of plain values.
        unsafe { transmute::<__m512i, __m512bh>(values) }
    }

    /// One word in all lanes.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn pairs_of(word: u32) -> __m512bh {
        let words = _mm512_set1_epi32(word.cast_signed());
        // SAFETY: both are 64 bytes of plain values.
        unsafe { transmute::<__m512i, __m512bh>(words) }
    }
}
