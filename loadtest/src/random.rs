//! A seeded random number generator, and the distributions that arrivals and workloads are drawn from.
//!
//! Own code, so that a seed gives the same requests with every version of every crate.

use std::f64::consts::TAU;

/// The odd constant of `SplitMix64`: 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// A stream of random numbers.
///
/// Source: `SplitMix64`, Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014.
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream below `seed` that is named by `path`; streams of different names are independent.
    pub(crate) fn of(seed: u64, path: &[u64]) -> Self {
        let step = |state: u64, part: &u64| mix(state.wrapping_add(GAMMA) ^ mix(*part));
        Self { state: path.iter().fold(mix(seed.wrapping_add(GAMMA)), step) }
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// Uniform in (0, 1].
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in 0 to `count` - 1; 0 where `count` is 0.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let product = u128::from(self.bits()) * count as u128;
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Uniform in `low` to `high`, both included.
    pub(crate) fn between(&mut self, [low, high]: [u32; 2]) -> u32 {
        let width = high.saturating_sub(low) as usize + 1;
        low + u32::try_from(self.below(width)).unwrap_or(0)
    }

    /// Exponential: the gap between two arrivals of a Poisson process.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * self.unit().ln()
    }

    /// Gamma with a mean of `shape * scale` and a squared coefficient of variation of 1 / `shape`.
    ///
    /// Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000; a shape
    /// below 1 is drawn one higher and scaled down by a power of a uniform number.
    pub(crate) fn gamma(&mut self, shape: f64, scale: f64) -> f64 {
        if shape < 1.0 {
            let power = self.unit().powf(1.0 / shape);
            return power * self.gamma(shape + 1.0, scale);
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        // One draw in twenty is rejected at most.
        loop {
            let normal = self.normal();
            let cube = (1.0 + c * normal).powi(3);
            let bound = 0.5 * normal * normal + d - d * cube + d * cube.ln();
            if cube > 0.0 && self.unit().ln() < bound {
                return scale * d * cube;
            }
        }
    }

    /// Lognormal: half the values are below `median`; `sigma` is the deviation of the logarithm.
    pub(crate) fn lognormal(&mut self, median: f64, sigma: f64) -> f64 {
        median * (sigma * self.normal()).exp()
    }

    /// Normal with mean 0 and deviation 1, by the Box-Muller transform.
    fn normal(&mut self) -> f64 {
        (-2.0 * self.unit().ln()).sqrt() * (TAU * self.unit()).cos()
    }
}

/// The finaliser of `SplitMix64`.
fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// A choice among weighted things.
#[derive(Debug, Clone)]
pub(crate) struct Shares {
    /// Sum of the weights up to each thing.
    ends: Vec<f64>,
}

impl Shares {
    /// A choice in proportion to `weights`, which are not negative and have a positive sum.
    pub(crate) fn of(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let add = |weight| {
            sum += weight;
            sum
        };
        Self { ends: weights.into_iter().map(add).collect() }
    }

    /// Zipf's law over `count` ranks: rank k, from 1, has weight k^-`skew`. Uniform where `skew` is 0.
    pub(crate) fn zipf(count: u32, skew: f64) -> Self {
        Self::of((1..=count).map(|rank| f64::from(rank).powf(-skew)))
    }

    /// The index of one of the things.
    pub(crate) fn pick(&self, random: &mut Random) -> usize {
        let point = random.unit() * self.ends.last().copied().unwrap_or(0.0);
        let index = self.ends.partition_point(|end| *end < point);
        index.min(self.ends.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWS: usize = 100_000;

    #[test]
    fn a_seed_and_a_path_name_one_stream() {
        let draw = |seed, path: &[u64]| Random::of(seed, path).bits();
        assert_eq!(draw(1, &[2, 3]), draw(1, &[2, 3]));
        let others = [draw(1, &[3, 2]), draw(2, &[2, 3]), draw(1, &[2]), draw(1, &[2, 3, 0])];
        assert!(others.iter().all(|other| *other != draw(1, &[2, 3])), "{others:?}");
    }

    #[test]
    fn whole_numbers_are_uniform_and_inside_their_range() {
        let mut random = Random::of(1, &[]);
        let mut counts = [0_u32; 7];
        for _ in 0..DRAWS {
            counts[(random.between([3, 9]) - 3) as usize] += 1;
        }
        // Each is binomial with mean 14,286 and deviation 111.
        assert!(counts.iter().all(|count| (13_700..14_900).contains(count)), "{counts:?}");
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn half_of_a_lognormal_is_below_its_median_and_two_thirds_within_a_deviation() {
        let mut random = Random::of(2, &[]);
        let values: Vec<f64> = (0..DRAWS).map(|_| random.lognormal(350.0, 0.5)).collect();
        let share = |test: &dyn Fn(f64) -> bool| {
            values.iter().filter(|v| test(**v)).count() as f64 / DRAWS as f64
        };
        assert!((share(&|v| v < 350.0) - 0.5).abs() < 0.01);
        assert!((share(&|v| (v / 350.0).ln().abs() < 0.5) - 0.6827).abs() < 0.01);
    }

    #[test]
    fn a_gamma_has_its_mean_and_its_variance_on_both_sides_of_shape_one() {
        for shape in [0.25, 0.5, 1.0, 4.0] {
            let mut random = Random::of(6, &[]);
            let values: Vec<f64> = (0..DRAWS).map(|_| random.gamma(shape, 2.0)).collect();
            let mean = values.iter().sum::<f64>() / DRAWS as f64;
            let variance =
                values.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / DRAWS as f64;
            // Variance is shape times the scale squared; 3 % is over three deviations of either.
            assert!((mean / (shape * 2.0) - 1.0).abs() < 0.03, "shape {shape}: mean {mean}");
            let ratio = variance / (shape * 4.0);
            assert!((ratio - 1.0).abs() < 0.06, "shape {shape}: variance {variance}");
        }
    }

    #[test]
    fn a_gamma_of_shape_one_is_exponential() {
        let mut random = Random::of(7, &[]);
        let above = (0..DRAWS).filter(|_| random.gamma(1.0, 1.0) > 1.0).count() as f64;
        assert!((above / DRAWS as f64 - (-1.0_f64).exp()).abs() < 0.006, "{above}");
    }

    #[test]
    fn zipf_gives_rank_one_twice_what_rank_two_gets() {
        let (shares, mut random) = (Shares::zipf(4, 1.0), Random::of(3, &[]));
        let mut counts = [0.0; 4];
        for _ in 0..DRAWS {
            counts[shares.pick(&mut random)] += 1.0 / DRAWS as f64;
        }
        // 1 + 1/2 + 1/3 + 1/4 = 25/12.
        for (rank, count) in counts.iter().enumerate() {
            let expected = 12.0 / 25.0 / (rank + 1) as f64;
            assert!((count - expected).abs() < 0.01, "rank {rank}: {count}, expected {expected}");
        }
    }

    #[test]
    fn zipf_without_skew_is_uniform() {
        let (shares, mut random) = (Shares::zipf(10, 0.0), Random::of(4, &[]));
        let mut counts = [0_u32; 10];
        for _ in 0..DRAWS {
            counts[shares.pick(&mut random)] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn what_has_no_share_is_never_picked() {
        let (shares, mut random) = (Shares::of([0.0, 1.0, 0.0]), Random::of(5, &[]));
        assert!((0..1_000).all(|_| shares.pick(&mut random) == 1));
    }
}
