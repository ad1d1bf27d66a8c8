//! The register tile, and the choice of the instruction set it is compiled for.
//!
//! Kernels are [`Job`]s: plain Rust that is generic over an [`Isa`] and inlined into one function
//! for each instruction set, where the compiler turns its fixed-size loops into vectors. So there
//! is one source for all levels, and no intrinsics. AVX-512 and AVX2 round alike (both fuse
//! multiply and add); the portable level may not fuse and differs from them by rounding.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "calls into functions compiled for detected CPU features")
)]
#![expect(clippy::inline_always, reason = "kernels must be compiled inside their feature function")]

use super::{PANEL_COLUMNS, STRIP_ROWS};

/// The instruction set that kernels run on; exists only where the CPU has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level(Kind);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Portable,
}

impl Level {
    /// The best level of this CPU.
    pub fn detect() -> Self {
        Self::all()[0]
    }

    /// All levels of this CPU, best first; never empty.
    pub fn all() -> Vec<Self> {
        let mut levels = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            let avx512 = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512bw");
            if avx2 && avx512 {
                levels.push(Self(Kind::Avx512));
            }
            if avx2 {
                levels.push(Self(Kind::Avx2));
            }
        }
        levels.push(Self(Kind::Portable));
        levels
    }

    /// Name shown in `/health`.
    pub fn name(self) -> &'static str {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "avx512f",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "avx2+fma",
            Kind::Portable => "portable",
        }
    }

    /// Name, with the dot products that it has: what answers may differ by between CPUs.
    pub fn features(self) -> String {
        let mut features = self.name().to_owned();
        if self.has_int8_dot() {
            features += "+vnni";
        }
        if self.has_bf16_dot() {
            features += "+bf16";
        }
        features
    }

    /// Whether the CPU multiplies and sums pairs of bf16 (`vdpbf16ps`).
    pub fn has_bf16_dot(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => is_x86_feature_detected!("avx512bf16"),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => false,
            Kind::Portable => false,
        }
    }

    /// Whether products in bf16 are the faster ones. On Intel's cores, with their two units for f32,
    /// they are not: `SmolLM2` reads 500 tokens in 1.25 to 1.45 times the time that f32 takes on an
    /// Emerald Rapids, and in half of it on a Zen 4.
    pub fn has_fast_bf16_dot(self) -> bool {
        self.has_bf16_dot() && !is_intel()
    }

    /// Whether the CPU multiplies unsigned by signed bytes and sums four at a time (AVX-512 VNNI).
    pub fn has_int8_dot(self) -> bool {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => is_x86_feature_detected!("avx512vnni"),
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => false,
            Kind::Portable => false,
        }
    }

    /// Runs `job` compiled for this level.
    pub(super) fn run<J: Job>(self, job: J) {
        match self.0 {
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Level` of this kind is only made after all its features were detected.
            Kind::Avx512 => unsafe { run_avx512(job) },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: a `Level` of this kind is only made after all its features were detected.
            Kind::Avx2 => unsafe { run_avx2(job) },
            Kind::Portable => job.run::<Portable>(),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn is_intel() -> bool {
    let leaf = std::arch::x86_64::__cpuid(0);
    [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat() == b"GenuineIntel"
}

#[cfg(not(target_arch = "x86_64"))]
fn is_intel() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma")]
fn run_avx512<J: Job>(job: J) {
    job.run::<Avx512>();
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn run_avx2<J: Job>(job: J) {
    job.run::<Avx2>();
}

/// One piece of work that is compiled for each level; all it calls must be `#[inline(always)]`.
pub(super) trait Job {
    /// Does the work.
    fn run<I: Isa>(self);
}

/// What differs between instruction sets: rounding of `a * b + c`, and the shape of a tile.
pub(super) trait Isa {
    /// Whether multiply and add round once.
    const FUSED: bool;

    /// Adds the product of `rows` rows of `left` and one panel of `right` to `out`, tile by tile.
    fn accumulate<L: Left>(left: &L, rows: usize, right: Right<'_>, out: Out<'_>);
}

/// `a * b + c`, rounded the way of `I`.
#[inline(always)]
pub(super) fn mul_add<I: Isa>(a: f32, b: f32, c: f32) -> f32 {
    if I::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// The left operand of a tile: `[depth]` columns of [`STRIP_ROWS`] values.
pub(super) trait Left {
    /// Rows `first..first + R` at depth `k`.
    fn column<const R: usize>(&self, k: usize, first: usize) -> [f32; R];
}

/// The right operand: `PANEL_COLUMNS` columns from `first` of a row-major `[depth, stride]` matrix.
#[derive(Clone, Copy)]
pub(super) struct Right<'a> {
    pub(super) values: &'a [f32],
    pub(super) stride: usize,
    pub(super) first: usize,
}

/// The sums: `PANEL_COLUMNS` columns from `first` of a row-major `[STRIP_ROWS, stride]` matrix.
pub(super) struct Out<'a> {
    pub(super) values: &'a mut [f32],
    pub(super) stride: usize,
    pub(super) first: usize,
}

/// 32 vector registers of 16 lanes: 24 sums, 2 of the right operand, broadcasts from memory.
#[cfg(target_arch = "x86_64")]
struct Avx512;

#[cfg(target_arch = "x86_64")]
impl Isa for Avx512 {
    const FUSED: bool = true;

    #[inline(always)]
    fn accumulate<L: Left>(left: &L, rows: usize, right: Right<'_>, mut out: Out<'_>) {
        // The two heights that were measured to come out as vectors throughout: 8 rows do not.
        if rows > 8 {
            tile::<Self, L, STRIP_ROWS, PANEL_COLUMNS>(left, 0, right, &mut out);
        } else {
            tiles::<Self, L, 4, PANEL_COLUMNS>(left, rows, right, out);
        }
    }
}

/// 16 vector registers of 8 lanes: 12 sums, 2 of the right operand, 2 for broadcasts.
#[cfg(target_arch = "x86_64")]
struct Avx2;

#[cfg(target_arch = "x86_64")]
impl Isa for Avx2 {
    const FUSED: bool = true;

    #[inline(always)]
    fn accumulate<L: Left>(left: &L, rows: usize, right: Right<'_>, out: Out<'_>) {
        tiles::<Self, L, 6, 16>(left, rows, right, out);
    }
}

/// What every machine has: small tiles, and fused only where that is part of the base set.
pub(super) struct Portable;

impl Isa for Portable {
    const FUSED: bool = cfg!(target_arch = "aarch64");

    #[inline(always)]
    fn accumulate<L: Left>(left: &L, rows: usize, right: Right<'_>, out: Out<'_>) {
        tiles::<Self, L, 4, 8>(left, rows, right, out);
    }
}

/// Covers `rows` rows and a panel's columns with tiles of `R` x `C`.
#[inline(always)]
fn tiles<I: Isa, L: Left, const R: usize, const C: usize>(
    left: &L,
    rows: usize,
    right: Right<'_>,
    mut out: Out<'_>,
) {
    let origin = (right.first, out.first);
    for row in (0..rows).step_by(R) {
        for column in (0..PANEL_COLUMNS).step_by(C) {
            out.first = origin.1 + column;
            let right = Right { first: origin.0 + column, ..right };
            tile::<I, L, R, C>(left, row, right, &mut out);
        }
    }
}

/// `out[r][c] += sum over k of left[k][r] * right[k][c]`, ascending in `k`, sums in registers.
///
/// Each element is one chain of multiply-adds, so its value does not depend on `R`, `C` or place.
#[inline(always)]
fn tile<I: Isa, L: Left, const R: usize, const C: usize>(
    left: &L,
    row: usize,
    right: Right<'_>,
    out: &mut Out<'_>,
) {
    let mut sums = [[0.0_f32; C]; R];
    for (r, sums) in sums.iter_mut().enumerate() {
        sums.copy_from_slice(&out.values[(row + r) * out.stride + out.first..][..C]);
    }
    for (k, right_row) in right.values.chunks_exact(right.stride).enumerate() {
        let a: [f32; R] = left.column(k, row);
        let mut b = [0.0_f32; C];
        b.copy_from_slice(&right_row[right.first..right.first + C]);
        for r in 0..R {
            for c in 0..C {
                sums[r][c] = mul_add::<I>(a[r], b[c], sums[r][c]);
            }
        }
    }
    for (r, sums) in sums.iter().enumerate() {
        out.values[(row + r) * out.stride + out.first..][..C].copy_from_slice(sums);
    }
}
