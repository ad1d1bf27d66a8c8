//! Thresholds for abstaining: fitted to examples with and without an answer, and kept only if
//! leaving one out shows that they help.

use std::fmt;

use super::{Malformed, check_length};

/// Examples that a threshold needs.
pub const EXAMPLES_MIN: usize = 10;
/// Examples with, and examples without an answer that a threshold needs.
pub const EXAMPLES_OF_EACH_MIN: usize = 2;
/// Probabilities are kept this far from 0 and 1 where log-odds are taken.
const LOG_ODDS_MARGIN: f64 = 1e-9;
/// The candidate above which nothing is: never abstain.
const NEVER: f64 = 1.0;

/// What each example says; all lists are `[examples]`.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// Probability of the abstain option, as it is served.
    pub p_abs: &'a [f64],
    /// Whether the example has no answer.
    pub unanswerable: &'a [bool],
    /// Whether the best other option is the answer.
    pub answer_ok: &'a [bool],
    /// Whether the question would be answered rightly without a threshold.
    pub plain_right: &'a [bool],
    /// Whether it would abstain wrongly without a threshold.
    pub plain_false: &'a [bool],
}

/// A fitted threshold, or why there is none.
#[derive(Debug, Clone, PartialEq)]
pub struct Abstention {
    /// Whether questions of the task are answered with the threshold.
    pub applied: bool,
    /// The threshold that is applied: abstain above it.
    pub threshold: Option<f64>,
    /// The threshold of all examples, applied or not; `None` where there were too few.
    pub fitted_threshold: Option<f64>,
    /// Examples right with a threshold fitted to all others.
    pub loo_right: usize,
    /// Examples with an answer on which that threshold abstains.
    pub loo_false: usize,
    /// Examples right without a threshold.
    pub right_plain: usize,
    /// Wrong abstentions without a threshold.
    pub false_plain: usize,
    /// Examples.
    pub n: usize,
    /// Examples without an answer.
    pub n_unanswerable: usize,
    /// Why it is applied or not.
    pub reason: Reason,
}

/// Why a threshold is applied or not, with what [`Abstention`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Leaving one out, more examples are right and no more wrongly abstained on.
    Gain {
        /// Right with it.
        right: usize,
        /// Right without it.
        plain: usize,
        /// Examples.
        examples: usize,
    },
    /// They are not.
    NoGain {
        /// Right and wrongly abstained on, with it.
        fitted: (usize, usize),
        /// The same without it.
        plain: (usize, usize),
    },
    /// Fewer than [`EXAMPLES_MIN`] examples.
    TooFewExamples {
        /// The examples.
        examples: usize,
    },
    /// Fewer than [`EXAMPLES_OF_EACH_MIN`] with an answer, or without one.
    TooFewOfOneKind {
        /// With an answer.
        answerable: usize,
        /// Without one.
        unanswerable: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gain { right, plain, examples } => {
                write!(f, "leaving one out, {right} of {examples} are right, and {plain} without")
            }
            Self::NoGain { fitted, plain } => write!(
                f,
                "leaving one out, {} are right and {} wrongly abstained on, and {} and {} without \
                 a threshold",
                fitted.0, fitted.1, plain.0, plain.1
            ),
            Self::TooFewExamples { examples } => {
                write!(f, "{examples} examples; a threshold needs at least {EXAMPLES_MIN}")
            }
            Self::TooFewOfOneKind { answerable, unanswerable } => write!(
                f,
                "{answerable} examples with and {unanswerable} without an answer; a threshold \
                 needs at least {EXAMPLES_OF_EACH_MIN} of each"
            ),
        }
    }
}

/// Thresholds that tell examples apart, ascending.
///
/// Midpoints in log-odds between neighbouring probabilities, one a unit of log-odds below the
/// least, and 1 (never abstain).
///
/// * `p_abs`: `[examples]`, each between 0 and 1.
pub fn candidates(p_abs: &[f64]) -> Vec<f64> {
    let mut sorted = p_abs.to_vec();
    sorted.sort_by(f64::total_cmp);
    candidates_of(sorted.into_iter())
}

/// Fits a threshold to labelled examples and decides whether to apply it.
///
/// The threshold makes most examples right, and is the largest that does: one without an answer is
/// right if its probability is above it, another if it is not and the best other option is the
/// answer. It is applied if thresholds fitted to all examples but one make at least one example
/// more right than none does, with no more wrong abstentions.
///
/// Source: decisio's abstention tasks, docs/DECISIO.md "Abstention".
///
/// # Errors
/// [`Malformed`] where the lists differ in length or a probability is not one.
pub fn fit(evidence: &Evidence<'_>) -> Result<Abstention, Malformed> {
    check(evidence)?;
    let n = evidence.p_abs.len();
    let n_unanswerable = count(evidence.unanswerable);
    let (right_plain, false_plain) = (count(evidence.plain_right), count(evidence.plain_false));
    let kind = (n - n_unanswerable, n_unanswerable);
    let mut abstention = Abstention {
        applied: false,
        threshold: None,
        fitted_threshold: None,
        loo_right: 0,
        loo_false: 0,
        right_plain,
        false_plain,
        n,
        n_unanswerable,
        reason: Reason::TooFewExamples { examples: n },
    };
    if n < EXAMPLES_MIN {
        return Ok(abstention);
    }
    if kind.0.min(kind.1) < EXAMPLES_OF_EACH_MIN {
        let (answerable, unanswerable) = kind;
        abstention.reason = Reason::TooFewOfOneKind { answerable, unanswerable };
        return Ok(abstention);
    }
    decide(&mut abstention, &sorted(evidence));
    Ok(abstention)
}

/// What the fit needs of an example.
#[derive(Clone, Copy)]
struct Example {
    p_abs: f64,
    unanswerable: bool,
    answer_ok: bool,
}

fn decide(abstention: &mut Abstention, examples: &[Example]) {
    for (left_out, example) in examples.iter().enumerate() {
        let abstains = example.p_abs > best(examples, Some(left_out));
        let right = if example.unanswerable { abstains } else { !abstains && example.answer_ok };
        abstention.loo_right += usize::from(right);
        abstention.loo_false += usize::from(abstains && !example.unanswerable);
    }
    let (right, plain) = (abstention.loo_right, abstention.right_plain);
    let (falsely, falsely_plain) = (abstention.loo_false, abstention.false_plain);
    let threshold = best(examples, None);
    abstention.applied = right > plain && falsely <= falsely_plain;
    abstention.threshold = abstention.applied.then_some(threshold);
    abstention.fitted_threshold = Some(threshold);
    abstention.reason = if abstention.applied {
        Reason::Gain { right, plain, examples: examples.len() }
    } else {
        Reason::NoGain { fitted: (right, falsely), plain: (plain, falsely_plain) }
    };
}

/// The largest threshold that makes most examples right.
///
/// * `examples`: ascending by probability.
fn best(examples: &[Example], left_out: Option<usize>) -> f64 {
    let kept = || {
        let each = examples.iter().enumerate();
        each.filter(move |&(place, _)| Some(place) != left_out).map(|(_, example)| example)
    };
    let mut best = (0, NEVER);
    let mut passed = kept().peekable();
    // Nothing is passed yet: all abstain.
    let mut right = kept().filter(|example| example.unanswerable).count();
    for threshold in candidates_of(kept().map(|example| example.p_abs)) {
        while let Some(example) = passed.next_if(|example| example.p_abs <= threshold) {
            if example.unanswerable {
                right -= 1;
            } else {
                right += usize::from(example.answer_ok);
            }
        }
        if right >= best.0 {
            best = (right, threshold);
        }
    }
    best.1
}

/// Candidates of ascending probabilities.
fn candidates_of(ascending: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut candidates = Vec::new();
    let mut last: Option<f64> = None;
    for p_abs in ascending {
        match last {
            None => candidates.push(probability(log_odds(p_abs) - 1.0)),
            Some(below) if p_abs > below => {
                candidates.push(probability(log_odds(below).midpoint(log_odds(p_abs))));
            }
            Some(_) => {}
        }
        last = Some(p_abs);
    }
    candidates.push(NEVER);
    candidates
}

fn log_odds(p: f64) -> f64 {
    let p = p.clamp(LOG_ODDS_MARGIN, 1.0 - LOG_ODDS_MARGIN);
    (p / (1.0 - p)).ln()
}

fn probability(log_odds: f64) -> f64 {
    1.0 / (1.0 + (-log_odds).exp())
}

fn sorted(evidence: &Evidence<'_>) -> Vec<Example> {
    let kinds = evidence.unanswerable.iter().zip(evidence.answer_ok);
    let each = evidence.p_abs.iter().zip(kinds);
    let example =
        |(&p_abs, (&unanswerable, &answer_ok))| Example { p_abs, unanswerable, answer_ok };
    let mut examples: Vec<Example> = each.map(example).collect();
    examples.sort_by(|a, b| a.p_abs.total_cmp(&b.p_abs));
    examples
}

fn check(evidence: &Evidence<'_>) -> Result<(), Malformed> {
    let examples = evidence.p_abs.len();
    check_length("unanswerable", evidence.unanswerable.len(), examples)?;
    check_length("answer_ok", evidence.answer_ok.len(), examples)?;
    check_length("plain_right", evidence.plain_right.len(), examples)?;
    check_length("plain_false", evidence.plain_false.len(), examples)?;
    let each = evidence.p_abs.iter().enumerate();
    match each.into_iter().find(|(_, p)| !(0.0..=1.0).contains(*p)) {
        Some((example, &got)) => Err(Malformed::Value { what: "p_abs", example, got }),
        None => Ok(()),
    }
}

fn count(flags: &[bool]) -> usize {
    flags.iter().filter(|&&flag| flag).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Evidence in which the plain behaviour never abstains.
    fn fitted(p_abs: &[f64], unanswerable: &[bool]) -> Abstention {
        let answerable: Vec<bool> = unanswerable.iter().map(|none| !none).collect();
        let never = vec![false; p_abs.len()];
        fit(&Evidence {
            p_abs,
            unanswerable,
            answer_ok: &answerable,
            plain_right: &answerable,
            plain_false: &never,
        })
        .unwrap()
    }

    #[test]
    fn too_few_examples_give_no_threshold_and_the_reason() {
        let few = fitted(&[0.1; 9], &[true; 9]);
        assert_eq!(few.reason.to_string(), "9 examples; a threshold needs at least 10");
        let mut one_kind = [false; 12];
        one_kind[3] = true;
        let few = fitted(&[0.1; 12], &one_kind);
        assert_eq!(few.reason, Reason::TooFewOfOneKind { answerable: 11, unanswerable: 1 });
        assert_eq!((few.threshold, few.fitted_threshold, few.applied), (None, None, false));
    }

    #[test]
    fn a_probability_that_is_none_is_refused() {
        let no = [false; 2];
        let lists = (&no, &no, &no, &no);
        let (unanswerable, answer_ok, plain_right, plain_false) = lists;
        let p_abs = &[0.2, 1.5];
        let odd = Evidence { p_abs, unanswerable, answer_ok, plain_right, plain_false };
        let got = fit(&odd).unwrap_err();
        assert_eq!(got, Malformed::Value { what: "p_abs", example: 1, got: 1.5 });
        let short = Evidence { p_abs: &[0.2], ..odd };
        assert!(matches!(fit(&short), Err(Malformed::Length { what: "unanswerable", .. })));
    }

    #[test]
    fn probabilities_closer_to_0_than_the_margin_are_still_told_apart_rightly() {
        let p_abs = [0.0, 1e-15, 1e-12, 0.9, 0.9, 0.8, 1e-14, 0.0, 0.95, 1e-13];
        let unanswerable = p_abs.map(|p| p > 0.5);
        let got = fitted(&p_abs, &unanswerable);
        assert!(got.applied && got.loo_right == 10, "{got:?}");
    }

    proptest! {
        /// The threshold is what trying every candidate on every example would choose.
        #[test]
        fn the_best_threshold_is_that_of_the_definition(
            drawn in prop::collection::vec((0_u8..20, any::<bool>(), any::<bool>()), 1..30),
        ) {
            let mut examples: Vec<Example> = drawn
                .into_iter()
                .map(|(p, unanswerable, answer_ok)| Example {
                    p_abs: f64::from(p) / 19.0, unanswerable, answer_ok,
                })
                .collect();
            examples.sort_by(|a, b| a.p_abs.total_cmp(&b.p_abs));
            let right = |threshold: f64| {
                examples.iter().filter(|example| {
                    let abstains = example.p_abs > threshold;
                    if example.unanswerable { abstains } else { !abstains && example.answer_ok }
                }).count()
            };
            let p_abs: Vec<f64> = examples.iter().map(|example| example.p_abs).collect();
            let all = candidates(&p_abs);
            let most = all.iter().map(|&threshold| right(threshold)).max().unwrap();
            let want = all.iter().rev().find(|&&threshold| right(threshold) == most);
            prop_assert_eq!(Some(&best(&examples, None)), want);
        }
    }
}
