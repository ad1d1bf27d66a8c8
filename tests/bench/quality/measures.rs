//! Measures of labelled distributions: accuracy, log loss, Brier score, calibration error and what
//! each kind adds. Pure f64 arithmetic over probabilities that were read elsewhere.

/// Probabilities below this count as this in a logarithm, so that one miss cannot be infinite.
const PROBABILITY_MIN: f64 = 1e-12;
/// Bins of the expected calibration error.
const BINS: usize = 10;
/// Standard normal quantile of a two-sided 95 % interval.
const Z_95: f64 = 1.959_963_985;

/// One distribution and the index of its right answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Labelled {
    /// `[answers]`, sums to 1.
    pub(crate) probabilities: Vec<f64>,
    /// The right one.
    pub(crate) gold: usize,
}

impl Labelled {
    /// Index of the largest probability; the first of equals.
    pub(crate) fn top(&self) -> usize {
        top(&self.probabilities)
    }

    /// Whether the top answer is the right one.
    pub(crate) fn is_right(&self) -> bool {
        self.top() == self.gold
    }
}

/// Index of the largest value; the first of equals.
pub(crate) fn top(values: &[f64]) -> usize {
    let mut best = 0;
    for (index, value) in values.iter().enumerate() {
        if *value > values[best] {
            best = index;
        }
    }
    best
}

/// Softmax of natural log-probabilities, over themselves only.
pub(crate) fn softmax(logprobs: &[f64]) -> Vec<f64> {
    let max = logprobs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = logprobs.iter().map(|logprob| (logprob - max).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / total).collect()
}

/// Mean of the first `orders` distributions (all of them, if there are fewer).
pub(crate) fn average(distributions: &[Vec<f64>], orders: usize) -> Vec<f64> {
    let used = &distributions[..orders.min(distributions.len())];
    let answers = used.first().map_or(0, Vec::len);
    (0..answers).map(|at| mean(used.iter().map(|distribution| distribution[at]))).collect()
}

/// A distribution at a temperature: softmax of its logarithms divided by it.
pub(crate) fn tempered(probabilities: &[f64], temperature: f64) -> Vec<f64> {
    let logs: Vec<f64> =
        probabilities.iter().map(|p| p.max(PROBABILITY_MIN).ln() / temperature).collect();
    softmax(&logs)
}

/// Arithmetic mean; 0 for nothing.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    if count == 0 { 0.0 } else { sum / f64::from(count) }
}

/// How many top answers are right.
pub(crate) fn right(cases: &[Labelled]) -> usize {
    cases.iter().filter(|case| case.is_right()).count()
}

/// Share of top answers that are right.
pub(crate) fn accuracy(cases: &[Labelled]) -> f64 {
    mean(cases.iter().map(|case| f64::from(u8::from(case.is_right()))))
}

/// Mean negative natural logarithm of the right answer's probability, in nats.
pub(crate) fn log_loss(cases: &[Labelled]) -> f64 {
    mean(cases.iter().map(|case| -case.probabilities[case.gold].max(PROBABILITY_MIN).ln()))
}

/// Mean squared distance from the right one-hot vector, summed over answers: 0 to 2.
///
/// Source: Brier 1950, the original multi-class form.
pub(crate) fn brier(cases: &[Labelled]) -> f64 {
    mean(cases.iter().map(|case| {
        let squares = case.probabilities.iter().enumerate().map(|(index, probability)| {
            let truth = f64::from(u8::from(index == case.gold));
            (probability - truth).powi(2)
        });
        squares.sum()
    }))
}

/// Expected calibration error of the top answer over ten equal bins of its probability.
///
/// Source: Naeini et al. 2015: the mean gap between a bin's accuracy and its confidence, weighted by
/// how many cases are in it.
pub(crate) fn calibration_error(cases: &[Labelled]) -> f64 {
    let mut bins = [(0.0_f64, 0.0_f64); BINS];
    for case in cases {
        let confidence = case.probabilities[case.top()];
        let (gap, _) = &mut bins[bin(confidence)];
        *gap += confidence - f64::from(u8::from(case.is_right()));
    }
    for (gap, error) in &mut bins {
        *error = gap.abs();
    }
    bins.iter().map(|(_, error)| error).sum::<f64>() / (cases.len().max(1) as f64)
}

fn bin(confidence: f64) -> usize {
    let edge = |index: usize| (index + 1) as f64 / BINS as f64;
    (0..BINS - 1).find(|index| confidence <= edge(*index)).unwrap_or(BINS - 1)
}

/// Mean distance in levels between a score's mean level and the right one.
pub(crate) fn level_error(cases: &[Labelled]) -> f64 {
    mean(cases.iter().map(|case| {
        let levels = case.probabilities.iter().enumerate();
        let level: f64 = levels.map(|(index, probability)| index as f64 * probability).sum();
        (level - case.gold as f64).abs()
    }))
}

/// Probability that a case whose right answer is 1 (yes) gets a higher probability of it than one
/// whose right answer is 0 (no); ties count half. `None` when one side is empty.
pub(crate) fn area_under_curve(cases: &[Labelled]) -> Option<f64> {
    let side = |yes: bool| {
        let chosen = cases.iter().filter(move |case| (case.gold == 1) == yes);
        chosen.map(|case| case.probabilities[1]).collect::<Vec<f64>>()
    };
    let (positives, negatives) = (side(true), side(false));
    let mut won = 0.0;
    for positive in &positives {
        for negative in &negatives {
            won += match positive.total_cmp(negative) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    let pairs = positives.len() * negatives.len();
    (pairs > 0).then(|| won / pairs as f64)
}

/// Share of the orders whose top answer is that of their average.
pub(crate) fn order_consistency(distributions: &[Vec<f64>]) -> f64 {
    let average_top = top(&average(distributions, distributions.len()));
    mean(distributions.iter().map(|order| f64::from(u8::from(top(order) == average_top))))
}

/// Wilson's 95 % interval of a share.
///
/// Source: Wilson 1927; unlike the normal interval it stays within 0 and 1 for few cases.
pub(crate) fn wilson(right: usize, total: usize) -> (f64, f64) {
    if total == 0 {
        return (0.0, 1.0);
    }
    let (total, share) = (total as f64, right as f64 / total as f64);
    let square = Z_95 * Z_95;
    let centre = share + square / (2.0 * total);
    let spread = Z_95 * (share * (1.0 - share) / total + square / (4.0 * total * total)).sqrt();
    let scale = 1.0 + square / total;
    ((centre - spread) / scale, (centre + spread) / scale)
}
