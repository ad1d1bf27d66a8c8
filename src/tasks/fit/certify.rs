//! Certified answers: a confidence above which, with a stated probability, answers err no more
//! often than a stated rate.
//!
//! Learn then Test (Angelopoulos et al. 2021): thresholds are hypotheses "the error rate above it
//! exceeds alpha", tested on held-out examples with exact binomial bounds (Clopper and Pearson), in
//! two arms at delta / 2 each. One tests from the strictest threshold down and stops at the first
//! that fails; the other tests all at once, each at its share of the level (Bonferroni).
//!
//! The thresholds tested are chosen from the confidences alone. Testing every confidence would stop
//! the first arm at the first error after the least number of examples; a coarse grid gives each
//! step enough new examples to be a test.

mod binomial;

use std::fmt;

pub use self::binomial::upper_bound;
use super::{Malformed, check_length};

/// Error rate that certified answers keep below, unless a task says otherwise.
pub const ALPHA: f64 = 0.05;
/// Probability that they do not, unless a task says otherwise.
pub const DELTA: f64 = 0.1;
/// Share of the examples that is held out, unless a task says otherwise.
pub const HOLDOUT: f64 = 0.5;
/// Steps of the grid over the distinct confidences.
const STEPS: usize = 8;

/// What was certified, and of how many examples.
#[derive(Debug, Clone, PartialEq)]
pub struct Certificate {
    /// Error rate aimed at.
    pub alpha: f64,
    /// Probability of missing it.
    pub delta: f64,
    /// Held-out examples.
    pub examples: usize,
    /// Share of them that is right, whatever the confidence.
    pub accuracy: f64,
    /// Largest share of them whose error rate is at most alpha, by looking at their answers: what
    /// no test can promise, but more examples may come near.
    pub empirical_share: f64,
    /// What came out.
    pub outcome: Outcome,
}

impl Certificate {
    /// Whether an answer of this confidence is certified.
    pub fn covers(&self, confidence: f64) -> bool {
        match self.outcome {
            Outcome::Certified(threshold) => confidence >= threshold.confidence,
            Outcome::TooFewExamples { .. } | Outcome::NoneHolds => false,
        }
    }
}

/// Result of the tests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// A threshold holds.
    Certified(Threshold),
    /// Even without an error, the examples would not do.
    TooFewExamples {
        /// The examples.
        examples: usize,
        /// See [`minimum_examples`].
        needed: usize,
    },
    /// No threshold holds.
    NoneHolds,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certified(threshold) => write!(
                f,
                "{} errors in {} held-out answers of confidence {} or more",
                threshold.errors, threshold.examples, threshold.confidence
            ),
            Self::TooFewExamples { examples, needed } => {
                write!(f, "{examples} held-out examples; a certificate needs at least {needed}")
            }
            Self::NoneHolds => f.write_str("no threshold keeps the error rate"),
        }
    }
}

/// A threshold that holds, with the held-out examples at or above it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold {
    /// Answers of this confidence or more are certified.
    pub confidence: f64,
    /// Examples at or above it.
    pub examples: usize,
    /// Their share of all held-out examples.
    pub share: f64,
    /// Wrong ones among them.
    pub errors: usize,
    /// Their share.
    pub error_rate: f64,
    /// Upper bound of the error rate, at the level of the arm.
    pub upper_bound: f64,
    /// The arm that found it.
    pub arm: Arm,
}

/// How a threshold was tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arm {
    /// From the strictest down, until one fails.
    FixedSequence,
    /// All at once, each at its share of the level.
    Bonferroni,
}

/// Least number of held-out examples of which, all right, a threshold can hold.
///
/// * `alpha`, `delta`: above 0 and below 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a quotient of two negative logarithms; out of range it saturates"
)]
pub fn minimum_examples(alpha: f64, delta: f64) -> usize {
    ((delta / 2.0).ln() / (1.0 - alpha).ln()).ceil() as usize
}

/// Splits a permutation of examples into those to fit to and those held out, both ascending.
///
/// * `share`: held out, of the examples; the number is rounded up.
pub fn split_holdout(permutation: &[usize], share: f64) -> (Vec<usize>, Vec<usize>) {
    let examples = permutation.len();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to the number of examples; nothing is held out of a share that is NaN"
    )]
    let held = (examples as f64 * share).ceil().clamp(0.0, examples as f64) as usize;
    let (fit, held) = permutation.split_at(examples - held);
    let ascending = |places: &[usize]| {
        let mut places = places.to_vec();
        places.sort_unstable();
        places
    };
    (ascending(fit), ascending(held))
}

/// Tests thresholds on held-out examples and returns the one that certifies most answers.
///
/// * `confidences`: `[examples]`, the top probabilities, each between 0 and 1.
/// * `right`: `[examples]`.
/// * `alpha`, `delta`: above 0 and below 1.
///
/// # Errors
/// [`Malformed`] where the lists differ in length or a value is out of its range.
pub fn threshold(
    confidences: &[f64],
    right: &[bool],
    alpha: f64,
    delta: f64,
) -> Result<Certificate, Malformed> {
    check_length("right", right.len(), confidences.len())?;
    check_rate("alpha", alpha)?;
    check_rate("delta", delta)?;
    let mut odd = confidences.iter().enumerate();
    if let Some((example, &got)) = odd.find(|(_, p)| !(0.0..=1.0).contains(*p)) {
        return Err(Malformed::Value { what: "confidence", example, got });
    }
    let examples = confidences.len();
    let levels = levels(confidences, right);
    let mut certificate = Certificate {
        alpha,
        delta,
        examples,
        accuracy: right.iter().filter(|&&right| right).count() as f64 / examples.max(1) as f64,
        empirical_share: empirical_share(&levels, alpha, examples),
        outcome: Outcome::NoneHolds,
    };
    let needed = minimum_examples(alpha, delta);
    if examples < needed {
        certificate.outcome = Outcome::TooFewExamples { examples, needed };
    } else if let Some(found) = tested(&grid(&levels, needed), alpha, delta) {
        certificate.outcome = Outcome::Certified(found.of(examples));
    }
    Ok(certificate)
}

/// The examples at or above a confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Level {
    confidence: f64,
    examples: usize,
    errors: usize,
}

/// A level whose hypothesis was rejected.
struct Found {
    level: Level,
    arm: Arm,
    upper_bound: f64,
}

impl Found {
    fn of(&self, all: usize) -> Threshold {
        let Level { confidence, examples, errors } = self.level;
        Threshold {
            confidence,
            examples,
            share: examples as f64 / all as f64,
            errors,
            error_rate: errors as f64 / examples as f64,
            upper_bound: self.upper_bound,
            arm: self.arm,
        }
    }
}

fn check_rate(what: &'static str, got: f64) -> Result<(), Malformed> {
    let inside = got > 0.0 && got < 1.0;
    if inside { Ok(()) } else { Err(Malformed::Rate { what, got }) }
}

/// One level a distinct confidence, strictest first.
fn levels(confidences: &[f64], right: &[bool]) -> Vec<Level> {
    let mut pairs: Vec<(f64, bool)> =
        confidences.iter().copied().zip(right.iter().copied()).collect();
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0));
    let mut total = Level { confidence: 1.0, examples: 0, errors: 0 };
    let runs = pairs.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq());
    let level = |run: &[(f64, bool)]| {
        total.confidence = run[0].0;
        total.examples += run.len();
        total.errors += run.iter().filter(|(_, right)| !right).count();
        total
    };
    runs.map(level).collect()
}

fn empirical_share(levels: &[Level], alpha: f64, examples: usize) -> f64 {
    let within = |level: &&Level| level.errors as f64 <= alpha * level.examples as f64;
    let widest = levels.iter().rfind(within).map_or(0, |level| level.examples);
    widest as f64 / examples.max(1) as f64
}

/// Levels that are tested: evenly spaced over the distinct confidences, without those of too few
/// examples to hold.
fn grid(levels: &[Level], needed: usize) -> Vec<Level> {
    let Some(last) = levels.len().checked_sub(1) else { return Vec::new() };
    let mut places: Vec<usize> = (0..=STEPS).map(|step| step * last / STEPS).collect();
    places.dedup();
    let chosen = places.into_iter().map(|place| levels[place]);
    chosen.filter(|level| level.examples >= needed).collect()
}

/// The widest level that either arm finds.
fn tested(grid: &[Level], alpha: f64, delta: f64) -> Option<Found> {
    let found = |level: &Level, arm, share: f64| {
        let upper_bound = upper_bound(level.errors, level.examples, share);
        (upper_bound <= alpha).then_some(Found { level: *level, arm, upper_bound })
    };
    let half = delta / 2.0;
    let share = half / grid.len() as f64;
    let sequence = grid.iter().map_while(|level| found(level, Arm::FixedSequence, half)).last();
    let at_once = grid.iter().rev().find_map(|level| found(level, Arm::Bonferroni, share));
    match (sequence, at_once) {
        (Some(one), Some(other)) if other.level.examples > one.level.examples => Some(other),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests;
