//! Readout: label log-probabilities of a question's reads to its answer.
//!
//! Pure arithmetic in f64. It says which reads it wants (orders and chunks of options), takes what
//! they gave, and composes the distribution; it never sees JSON, a token or a tensor.

pub mod chunks;
pub mod confidence;
mod correction;
pub mod noul;
pub mod orders;
pub mod softmax;

use std::sync::Arc;

use chunks::Round;
use orders::Reordering;
pub use softmax::NonFinite;

pub use crate::question::Shown;
use crate::question::answer::{Diagnostics, Value};
use crate::question::correction::Correction;

/// What a question's readout needs to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadingSpec {
    /// Type and names of the answers.
    pub kind: ReadingKind,
    /// Most options of one read; at least 2.
    pub labels_max: usize,
    /// Orders to read each list of options in; lowered to those that differ.
    pub orders: u32,
    /// Where the orders are read one after the other: the entropy in nats at which a list's average is
    /// certain enough, so that no further one is.
    pub entropy_max: Option<f64>,
    /// Divisor of the log-probabilities, above 0; 1 leaves them as they are.
    pub temperature: f64,
    /// What was learned about the question; in place of the temperature, and only where all options
    /// are read in one list.
    pub correction: Option<Arc<Correction>>,
}

/// A question's type, with the names of its answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadingKind {
    /// Option 0 is no, option 1 yes.
    Noul {
        /// Whether the first order shows yes before no.
        yes_first: bool,
    },
    /// One of several options.
    Choice {
        /// Their keys, in request order; 1 or more.
        keys: Vec<String>,
    },
    /// A level on a scale.
    Score {
        /// The levels' texts, lowest first; may repeat; 1 or more.
        legend: Vec<String>,
    },
}

impl ReadingKind {
    fn options(&self) -> usize {
        match self {
            Self::Noul { .. } => 2,
            Self::Choice { keys } => keys.len(),
            Self::Score { legend } => legend.len(),
        }
    }

    fn reordering(&self) -> Reordering {
        match self {
            Self::Choice { .. } => Reordering::Rotations,
            Self::Noul { .. } | Self::Score { .. } => Reordering::Directions,
        }
    }

    /// All options in the first order.
    fn first_order(&self) -> Vec<usize> {
        match self {
            Self::Noul { yes_first: true } => vec![1, 0],
            Self::Noul { yes_first: false } | Self::Choice { .. } | Self::Score { .. } => {
                (0..self.options()).collect()
            }
        }
    }

    /// Position in `list` of its most probable option. Among equals: the key that is first in
    /// code-point order; else the option listed first.
    fn top(&self, list: &[usize], probabilities: &[f64]) -> usize {
        let first = confidence::first_top(probabilities);
        let Self::Choice { keys } = self else { return first };
        let equals = (first..list.len())
            .filter(|&at| probabilities[at].total_cmp(&probabilities[first]).is_eq());
        equals.min_by_key(|&at| &keys[list[at]]).unwrap_or(first)
    }
}

/// What one read gave.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelReading {
    /// Natural log-probabilities of the labels, in displayed order: `[labels]`.
    pub logprobs: Vec<f32>,
    /// Log of the probability of all labels together, where the engine knows it.
    pub log_mass: Option<f32>,
    /// Whether the most probable token of the vocabulary is one of the labels.
    pub greedy_is_label: bool,
    /// The hidden state before the output head, where it was wanted: `[hidden]`.
    pub hidden: Option<Vec<f32>>,
}

/// A question being read, round by round.
///
/// `wanted` gives the reads of this round, `absorb` takes what they gave; when nothing more is
/// wanted, `finish` gives the answer.
#[derive(Debug, Clone)]
pub struct Reading {
    spec: ReadingSpec,
    /// Rounds already read.
    done: Vec<Round>,
    /// Lists of options of the round to be read; empty once decided.
    lists: Vec<Vec<usize>>,
    /// What was read of each list in orders that are read one after the other: `[lists][orders]`.
    partly: Vec<Vec<LabelReading>>,
    tally: Tally,
    /// Hidden state of the first order, of a question that is read in one list.
    hidden: Option<Vec<f32>>,
    /// The average of a corrected list before it was: `[options]`.
    uncorrected: Option<Vec<f64>>,
}

impl Reading {
    /// Begins a question.
    ///
    /// # Panics
    /// When `spec` has no option, fewer than 2 labels or a temperature that is not above 0: the
    /// caller has checked the request and the settings.
    pub fn new(spec: ReadingSpec) -> Self {
        assert!(spec.kind.options() > 0, "a question has at least one option");
        assert!(spec.labels_max >= 2, "at least 2 labels, not {}", spec.labels_max);
        assert!(spec.temperature > 0.0, "temperature {} is not above 0", spec.temperature);
        let lists = chunks::split(&spec.kind.first_order(), spec.labels_max);
        let mut spec = spec;
        let options = spec.kind.options();
        spec.correction =
            spec.correction.filter(|learned| lists.len() == 1 && learned.options() == options);
        Self {
            spec,
            done: Vec::new(),
            partly: vec![Vec::new(); lists.len()],
            lists,
            tally: Tally::default(),
            hidden: None,
            uncorrected: None,
        }
    }

    /// The reads of this round; empty when the question is decided.
    pub fn wanted(&self) -> Vec<Shown> {
        let orders = (0..self.lists.len()).flat_map(|at| self.next_orders(at));
        orders.map(|options| Shown { options }).collect()
    }

    /// Takes one round's readings, in the order of [`Self::wanted`].
    ///
    /// # Errors
    /// [`NonFinite`] when a read has no finite label; the question is then lost.
    ///
    /// # Panics
    /// When the readings are not those that were wanted.
    pub fn absorb(&mut self, readings: Vec<LabelReading>) -> Result<(), NonFinite> {
        assert_eq!(readings.len(), self.wanted().len(), "one reading for each read wanted");
        let mut readings = readings.into_iter();
        for at in 0..self.lists.len() {
            let orders = self.next_orders(at).len();
            self.partly[at].extend(readings.by_ref().take(orders));
        }
        if !self.wanted().is_empty() {
            return Ok(());
        }
        let lists = std::mem::take(&mut self.lists);
        let partly = std::mem::take(&mut self.partly);
        let mut round = Round { lists, probabilities: Vec::new(), winners: Vec::new() };
        let alone = round.lists.len() == 1;
        for (list, readings) in round.lists.iter().zip(partly) {
            let orders = self.orders_of(list, alone).into_iter().zip(readings);
            let (p, winner) = self.read_list(list, orders)?;
            round.probabilities.push(p);
            round.winners.push(winner);
        }
        if !alone {
            let winners = round.lists.iter().zip(&round.winners).map(|(list, &at)| list[at]);
            self.lists = chunks::split(&winners.collect::<Vec<_>>(), self.spec.labels_max);
            self.partly = vec![Vec::new(); self.lists.len()];
        }
        self.done.push(round);
        Ok(())
    }

    /// The answer, and how the reading went.
    ///
    /// # Panics
    /// When reads are still wanted.
    pub fn finish(self) -> (Value, Diagnostics) {
        assert!(self.lists.is_empty() && !self.done.is_empty(), "the question is not decided yet");
        let composed = chunks::compose(&self.done, self.spec.kind.options());
        let temperature = match self.spec.correction {
            Some(_) => 1.0,
            None => self.spec.temperature,
        };
        let probabilities = softmax::temper(composed, temperature);
        let diagnostics = self.tally.diagnostics(softmax::entropy(&probabilities));
        (value(self.spec.kind, probabilities), diagnostics)
    }

    /// The hidden state of the first order, where it was wanted and all options are read in one list.
    pub fn take_hidden(&mut self) -> Option<Vec<f32>> {
        self.hidden.take()
    }

    /// The distribution before corrections and temperature: `[options]`.
    ///
    /// # Panics
    /// When reads are still wanted.
    pub fn raw(&self) -> Vec<f64> {
        assert!(self.lists.is_empty() && !self.done.is_empty(), "the question is not decided yet");
        let composed = || chunks::compose(&self.done, self.spec.kind.options());
        self.uncorrected.clone().unwrap_or_else(composed)
    }

    /// Averages the orders of one list: its distribution, and the position of its winner.
    fn read_list(
        &mut self,
        list: &[usize],
        orders: impl Iterator<Item = (Vec<usize>, LabelReading)>,
    ) -> Result<(Vec<f64>, usize), NonFinite> {
        let (kind, correction) = (&self.spec.kind, self.spec.correction.as_deref());
        let by_label = !matches!(kind, ReadingKind::Noul { .. });
        let (mut readings, mut uncorrected) = (Vec::new(), Vec::new());
        for (shown, reading) in orders {
            assert_eq!(reading.logprobs.len(), shown.len(), "one log-probability for each label");
            self.tally.count(&reading);
            let p = softmax::softmax(&reading.logprobs)?;
            if correction.is_some() {
                uncorrected.push((shown.clone(), p.clone()));
            }
            let p = correction::of_order(correction, (&shown, by_label), p);
            if readings.is_empty() {
                self.hidden = reading.hidden;
            }
            readings.push((shown, p));
        }
        if readings.is_empty() {
            return Ok((vec![1.0], 0));
        }
        if correction.is_some() {
            let average = orders::average(list, &uncorrected);
            self.uncorrected = Some(by_option(list, &average));
        }
        let average = orders::average(list, &readings);
        let average = correction::of_average(correction, (list, self.hidden.as_deref()), average);
        let winner = kind.top(list, &average);
        let agrees = |shown: &[usize], p: &[f64]| shown[kind.top(shown, p)] == list[winner];
        let agreeing = readings.iter().filter(|(shown, p)| agrees(shown, p)).count();
        self.tally.agreeing += u32::try_from(agreeing).unwrap_or(u32::MAX);
        let count = u32::try_from(readings.len()).unwrap_or(u32::MAX);
        self.tally.orders = self.tally.orders.max(count);
        Ok((average, winner))
    }

    /// The orders in which a list is to be read next: all at once, or one as long as their average is
    /// not certain enough.
    fn next_orders(&self, at: usize) -> Vec<Vec<usize>> {
        let (list, read) = (&self.lists[at], &self.partly[at]);
        let mut orders = self.orders_of(list, self.lists.len() == 1);
        match self.spec.entropy_max {
            _ if read.len() >= orders.len() => Vec::new(),
            None => orders,
            Some(_) if read.is_empty() => vec![orders.swap_remove(0)],
            Some(entropy_max) if self.entropy(list, &orders, read) > entropy_max => {
                vec![orders.swap_remove(read.len())]
            }
            Some(_) => Vec::new(),
        }
    }

    /// Entropy of the average of what was read of a list, in nats; none where a read is not finite,
    /// which [`Self::absorb`] tells of.
    fn entropy(&self, list: &[usize], orders: &[Vec<usize>], read: &[LabelReading]) -> f64 {
        let of_order = |(order, reading): (&Vec<usize>, &LabelReading)| {
            Ok::<_, NonFinite>((order.clone(), softmax::softmax(&reading.logprobs)?))
        };
        let readings: Result<Vec<_>, _> = orders.iter().zip(read).map(of_order).collect();
        readings.map_or(0.0, |readings| {
            let average = orders::average(list, &readings);
            softmax::entropy(&softmax::temper(average, self.spec.temperature))
        })
    }

    /// The orders to read a list in. A list of one among several needs none: its option has won.
    fn orders_of(&self, list: &[usize], alone: bool) -> Vec<Vec<usize>> {
        if list.len() == 1 && !alone {
            return Vec::new();
        }
        let wanted = usize::try_from(self.spec.orders).unwrap_or(usize::MAX);
        self.spec.kind.reordering().orders(list, wanted)
    }
}

/// What all reads of a question tell beside its distribution.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    reads: u32,
    /// Most orders of one list.
    orders: u32,
    /// Reads whose top option is that of its list's average.
    agreeing: u32,
    greedy_not_label: u32,
    mass_sum: f64,
    mass_unknown: u32,
}

impl Tally {
    fn count(&mut self, reading: &LabelReading) {
        self.reads += 1;
        self.greedy_not_label += u32::from(!reading.greedy_is_label);
        match reading.log_mass {
            // Rounding may lift the mass of all labels a little above 1.
            Some(log_mass) => self.mass_sum += f64::from(log_mass).exp().min(1.0),
            None => self.mass_unknown += 1,
        }
    }

    fn diagnostics(self, entropy: f64) -> Diagnostics {
        let reads = f64::from(self.reads.max(1));
        Diagnostics {
            label_mass: (self.mass_unknown == 0).then_some(self.mass_sum / reads),
            argmax_is_label: self.greedy_not_label == 0,
            entropy,
            orders: self.orders,
            order_consistency: f64::from(self.agreeing) / reads,
            reads: self.reads,
        }
    }
}

/// A distribution of all options after a correction, as one order and its average would have it.
///
/// * `probabilities`: `[options]`, in the order of the options.
pub fn corrected(
    correction: &Correction,
    probabilities: Vec<f64>,
    hidden: Option<&[f32]>,
) -> Vec<f64> {
    let list: Vec<usize> = (0..probabilities.len()).collect();
    let order = correction::of_order(Some(correction), (&list, false), probabilities);
    correction::of_average(Some(correction), (&list, hidden), order)
}

/// What is given by place in `list`, by option; the list has all of them.
fn by_option(list: &[usize], values: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; list.len()];
    for (option, value) in list.iter().zip(values) {
        all[*option] = *value;
    }
    all
}

fn value(kind: ReadingKind, probabilities: Vec<f64>) -> Value {
    let request_order: Vec<usize> = (0..probabilities.len()).collect();
    let chosen = kind.top(&request_order, &probabilities);
    match kind {
        ReadingKind::Noul { .. } => Value::Noul { yes: probabilities[1] },
        ReadingKind::Choice { keys } => {
            let confidence = confidence::of_choice(&probabilities);
            Value::Choice { chosen, keys, probabilities, confidence }
        }
        ReadingKind::Score { legend } => {
            let mean = probabilities.iter().enumerate().map(|(level, p)| level as f64 * p).sum();
            let confidence = confidence::of_score(&probabilities);
            Value::Score { mean, legend, probabilities, confidence }
        }
    }
}

#[cfg(test)]
mod tests;
