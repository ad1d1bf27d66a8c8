//! Ratios: of a measure in B to the same in A, by pairs, against the ratios among runs of A.

use super::measures::{Better, Measure};
use super::pairs;
use super::runs::Run;

/// What a ratio means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Inside of what runs of A differ by, or in one pair more and in another less.
    WithinNoise,
    Better,
    Worse,
    /// Outside of it, and neither better nor worse by itself.
    Different,
    /// There is one run of A only, so that noise is not known.
    NoiseUnknown,
    /// Both are 0.
    Equal,
    /// There is no ratio, as A has 0 or one of them nothing.
    NoRatio,
}

impl Meaning {
    /// The words of reports.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::WithinNoise => "within noise",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Different => "different",
            Self::NoiseUnknown => "noise unknown",
            Self::Equal => "equal",
            Self::NoRatio => "-",
        }
    }
}

/// From where to where.
pub(super) type Range = (f64, f64);

/// A measure on both sides.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ratio {
    pub(super) measure: Measure,
    /// Medians over the runs.
    pub(super) a: Option<f64>,
    pub(super) b: Option<f64>,
    /// Median over the pairs, and their range.
    pub(super) median: Option<f64>,
    pub(super) range: Option<Range>,
    /// Of the ratios among the runs of A, in both directions; of what is searched for at least as
    /// wide as the search is precise.
    pub(super) noise: Option<Range>,
}

impl Ratio {
    /// Of two sides; none where neither has the measure.
    pub(super) fn of(measure: Measure, a: &[Run], b: &[Run]) -> Option<Self> {
        let values =
            |runs: &[Run]| runs.iter().filter_map(|run| measure.value(run)).collect::<Vec<f64>>();
        let (of_a, of_b) = (values(a), values(b));
        if of_a.is_empty() && of_b.is_empty() {
            return None;
        }
        let both = pairs(a, b).filter_map(|(a, b)| quotient(measure.value(b)?, measure.value(a)?));
        let both: Vec<f64> = both.collect();
        let precision = a.iter().map(|run| measure.precision(run)).fold(0.0, f64::max);
        Some(Self {
            a: median(&of_a),
            b: median(&of_b),
            median: median(&both),
            range: range(&both),
            noise: range(&among(&of_a)).map(|noise| widened(noise, precision)),
            measure,
        })
    }

    /// What it means.
    pub(super) fn meaning(&self) -> Meaning {
        let Some(ratio) = self.median else {
            let is_zero =
                |value: Option<f64>| value.is_some_and(|value| value.abs() < f64::EPSILON);
            let is_equal = is_zero(self.a) && is_zero(self.b);
            return if is_equal { Meaning::Equal } else { Meaning::NoRatio };
        };
        let Some((low, high)) = self.noise else { return Meaning::NoiseUnknown };
        // Pairs that contradict each other: whatever B differs by, it differs from itself by more.
        let is_torn = self.range.is_some_and(|(least, most)| least < 1.0 && most > 1.0);
        if is_torn || (low..=high).contains(&ratio) {
            return Meaning::WithinNoise;
        }
        match (self.measure.better, ratio > 1.0) {
            (Better::Neither, _) => Meaning::Different,
            (Better::More, true) | (Better::Less, false) => Meaning::Better,
            (Better::More, false) | (Better::Less, true) => Meaning::Worse,
        }
    }
}

/// None where there is nothing to divide by.
fn quotient(value: f64, by: f64) -> Option<f64> {
    let quotient = value / by;
    (quotient.is_finite() && by > 0.0).then_some(quotient)
}

/// Ratios of every two values, in both directions; of 0 and something else, 0 and infinity.
fn among(values: &[f64]) -> Vec<f64> {
    let others = |n: usize| values.iter().skip(n + 1);
    let two =
        values.iter().enumerate().flat_map(|(n, one)| others(n).map(move |other| one / other));
    let both = two.flat_map(|ratio| [ratio, 1.0 / ratio]);
    both.filter(|ratio| !ratio.is_nan()).collect()
}

fn widened((low, high): Range, precision: f64) -> Range {
    (low.min(1.0 / (1.0 + precision)), high.max(1.0 + precision))
}

/// The one in the middle, or the mean of the two there.
fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let high = sorted.get(sorted.len() / 2).copied()?;
    let low = sorted.get(sorted.len().saturating_sub(1) / 2).copied()?;
    Some(f64::midpoint(low, high))
}

fn range(values: &[f64]) -> Option<Range> {
    let low = values.iter().copied().min_by(f64::total_cmp)?;
    let high = values.iter().copied().max_by(f64::total_cmp)?;
    Some((low, high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_ranges_and_noise_are_those_of_the_values() {
        assert_eq!(
            [median(&[]), median(&[3.0]), median(&[4.0, 1.0])],
            [None, Some(3.0), Some(2.5)]
        );
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(range(&[2.0, 1.0, 4.0]), Some((1.0, 4.0)));
        assert_eq!(range(&among(&[10.0, 8.0])), Some((0.8, 1.25)));
        assert_eq!(range(&among(&[10.0])), None);
        assert_eq!(range(&among(&[0.0, 2.0])), Some((0.0, f64::INFINITY)));
        assert_eq!(range(&among(&[0.0, 0.0])), None);
        assert_eq!(
            [quotient(1.0, 0.0), quotient(0.0, 0.0), quotient(0.0, 2.0)],
            [None, None, Some(0.0)]
        );
    }
}
