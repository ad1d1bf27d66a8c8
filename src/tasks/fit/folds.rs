//! Folds of a cross-validation, and the permutations behind them.
//!
//! A permutation is an input, so that a fit that another implementation drew can be repeated; our
//! own come from a seed.

use super::Malformed;

/// Folds of a cross-validation: each example is held out by one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folds {
    /// `[examples]`: the fold that holds the example out.
    of_example: Vec<usize>,
    /// How many folds.
    count: usize,
}

impl Folds {
    /// Consecutive runs of a permutation, of sizes that differ by at most 1, larger ones first.
    ///
    /// * `permutation`: `[examples]`, each place once.
    /// * `folds`: lowered to the number of examples.
    ///
    /// Source: `numpy.array_split` of the permutation.
    ///
    /// # Errors
    /// [`Malformed::Permutation`] where a place is twice or out of range.
    pub fn of(permutation: &[usize], folds: usize) -> Result<Self, Malformed> {
        let count = folds.min(permutation.len());
        let mut of_example = vec![usize::MAX; permutation.len()];
        let mut rest = permutation;
        for fold in 0..count {
            let (run, after) = rest.split_at(rest.len().div_ceil(count - fold));
            for &place in run {
                mark(&mut of_example, place, fold)?;
            }
            rest = after;
        }
        Ok(Self { of_example, count })
    }

    /// Folds as a list that says for each example which one holds it out.
    pub fn assigned(of_example: &[usize]) -> Self {
        let count = of_example.iter().max().map_or(0, |last| last + 1);
        Self { of_example: of_example.to_vec(), count }
    }

    /// Folds of a seeded permutation.
    pub fn seeded(examples: usize, folds: usize, seed: u64) -> Self {
        let count = folds.min(examples);
        let mut of_example = vec![0; examples];
        deal(&permutation(examples, seed), 0, count, &mut of_example);
        Self { of_example, count }
    }

    /// Seeded folds that hold out every answer equally often, within 1.
    ///
    /// * `gold`: `[examples]`, the answers.
    pub fn stratified(gold: &[usize], folds: usize, seed: u64) -> Self {
        let count = folds.min(gold.len());
        let mut of_example = vec![0; gold.len()];
        let mut by_answer = permutation(gold.len(), seed);
        by_answer.sort_by_key(|&place| gold[place]);
        let mut dealt = 0;
        for run in by_answer.chunk_by(|&a, &b| gold[a] == gold[b]) {
            // The next answer goes on where this one ended, so that the folds stay of one size.
            deal(run, dealt, count, &mut of_example);
            dealt += run.len();
        }
        Self { of_example, count }
    }

    /// Number of folds.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of examples.
    pub fn examples(&self) -> usize {
        self.of_example.len()
    }

    /// Places that stay and places that a fold holds out, both ascending.
    pub fn split(&self, fold: usize) -> (Vec<usize>, Vec<usize>) {
        (0..self.of_example.len()).partition(|&place| self.of_example[place] != fold)
    }

    /// Checks that these folds are of so many examples and hold some of them out.
    pub(super) fn check(&self, examples: usize) -> Result<(), Malformed> {
        super::check_length("folds", self.of_example.len(), examples)?;
        if self.count < 2 { Err(Malformed::Folds { got: self.count }) } else { Ok(()) }
    }
}

/// A permutation of `0..examples` by Fisher and Yates' shuffle over splitmix64.
///
/// Source: Steele, Lea and Flood 2014 for the generator; the range is taken by multiplication,
/// whose bias of 2^-64 an example is of no consequence here.
pub fn permutation(examples: usize, seed: u64) -> Vec<usize> {
    let mut state = seed;
    let mut places: Vec<usize> = (0..examples).collect();
    for last in (1..examples).rev() {
        let wide = u128::from(splitmix64(&mut state)) * (last as u128 + 1);
        #[expect(clippy::cast_possible_truncation, reason = "at most `last`, a usize")]
        let drawn = (wide >> 64) as usize;
        places.swap(last, drawn);
    }
    places
}

pub(super) fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Deals places to folds in turn, beginning after `dealt` earlier ones.
fn deal(places: &[usize], dealt: usize, count: usize, of_example: &mut [usize]) {
    for (turn, &place) in places.iter().enumerate() {
        of_example[place] = (dealt + turn) % count;
    }
}

fn mark(of_example: &mut [usize], place: usize, fold: usize) -> Result<(), Malformed> {
    let examples = of_example.len();
    match of_example.get_mut(place) {
        Some(free) if *free == usize::MAX => *free = fold,
        Some(_) | None => return Err(Malformed::Permutation { got: place, examples }),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_first_folds_are_the_larger_ones() {
        let folds = Folds::of(&[6, 5, 4, 3, 2, 1, 0], 3).unwrap();
        let held: Vec<_> = (0..3).map(|fold| folds.split(fold).1).collect();
        assert_eq!(held, [vec![4, 5, 6], vec![2, 3], vec![0, 1]]);
        assert_eq!(folds.split(1).0, [0, 1, 4, 5, 6]);
    }

    #[test]
    fn a_list_that_is_no_permutation_is_refused() {
        for odd in [[0, 1, 1], [0, 1, 3]] {
            let got = Folds::of(&odd, 2).unwrap_err();
            assert_eq!(got, Malformed::Permutation { got: odd[2], examples: 3 });
        }
    }

    #[test]
    fn no_examples_make_no_folds() {
        assert_eq!(Folds::of(&[], 5).unwrap().count(), 0);
        assert_eq!(Folds::seeded(0, 5, 1).count(), 0);
        assert_eq!(Folds::stratified(&[], 5, 1).count(), 0);
        assert_eq!(Folds::assigned(&[]).check(0), Err(Malformed::Folds { got: 0 }));
    }

    #[test]
    fn splitmix64_gives_the_published_numbers() {
        // The first outputs for the seed 1234567, as reference implementations print them.
        let mut state = 1_234_567;
        assert_eq!(splitmix64(&mut state), 6_457_827_717_110_365_317);
        assert_eq!(splitmix64(&mut state), 3_203_168_211_198_807_973);
    }

    proptest! {
        #[test]
        fn a_seed_gives_one_permutation(examples in 0_usize..200, seed: u64) {
            let drawn = permutation(examples, seed);
            prop_assert_eq!(&drawn, &permutation(examples, seed));
            let mut sorted = drawn;
            sorted.sort_unstable();
            prop_assert!(sorted.into_iter().eq(0..examples));
        }

        #[test]
        fn stratified_folds_hold_out_every_answer_equally(
            gold in prop::collection::vec(0_usize..6, 5..80), seed: u64,
        ) {
            let folds = Folds::stratified(&gold, 5, seed);
            for answer in 0..6 {
                let share = |fold| folds.split(fold).1.iter().filter(|&&p| gold[p] == answer).count();
                let counts: Vec<usize> = (0..5).map(share).collect();
                prop_assert!(counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1);
            }
            let sizes: Vec<usize> = (0..5).map(|fold| folds.split(fold).1.len()).collect();
            prop_assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
