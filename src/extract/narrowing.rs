//! The search for an excerpt or for citations in stages: which reads are wanted next, and what they
//! make probable.
//!
//! The probability of a piece is that of the stretch it is in times its own within that, and so on
//! down. "Not stated" is an option of the first reads and of the last: with n1 and n2 it is
//! 1 - (1 - n1)(1 - n2).

use super::spans::{Node, Spans};

/// A stretch less probable than this is not looked into, but for the most probable one.
const STRETCH_MIN: f64 = 0.1;
/// A read that is wanted: a choice among the options of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Whose [`Spans::options`] are the options.
    pub node: Node,
    /// Whether "not stated" is one more option, behind them.
    pub asks_not_stated: bool,
}

/// A node to be read and the probability of being in it.
#[derive(Debug, Clone, PartialEq)]
struct Open {
    node: Node,
    probability: f64,
}

/// A search in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct Narrowing {
    options_max: usize,
    stretches_max: usize,
    is_first: bool,
    open: Vec<Open>,
    /// Pieces found, with their probabilities as composed.
    pieces: Vec<(usize, f64)>,
    /// "Not stated" of the first read.
    first_not_stated: f64,
    /// Sums over the last reads: probability of their nodes, and that times "not stated".
    last: (f64, f64),
}

impl Narrowing {
    /// Begins a search.
    ///
    /// * `options_max`: most options of a read, without "not stated"; at least 2.
    /// * `stretches_max`: most stretches that a stage looks into; at least 1.
    pub fn new(spans: &Spans, options_max: usize, stretches_max: usize) -> Self {
        let root = Open { node: spans.root(), probability: 1.0 };
        Self {
            options_max: options_max.max(2),
            stretches_max: stretches_max.max(1),
            is_first: true,
            open: if spans.leaves().is_empty() { Vec::new() } else { vec![root] },
            pieces: Vec::new(),
            first_not_stated: if spans.leaves().is_empty() { 1.0 } else { 0.0 },
            last: (0.0, 0.0),
        }
    }

    /// The reads of the next stage; none when the search is over.
    pub fn wanted(&self) -> Vec<Wanted> {
        let wanted = |open: &Open| Wanted {
            node: open.node.clone(),
            asks_not_stated: self.is_first || self.is_last(&open.node),
        };
        self.open.iter().map(wanted).collect()
    }

    /// Most options of a read, for [`Spans::options`].
    pub fn options_max(&self) -> usize {
        self.options_max
    }

    fn is_last(&self, node: &Node) -> bool {
        node.0.len() <= self.options_max
    }

    /// Takes what the wanted reads gave.
    ///
    /// * `distributions`: `[wanted][options, or options + 1 where "not stated" was asked]`, each sums to
    ///   1. What is missing is 0.
    pub fn read(&mut self, spans: &Spans, distributions: &[Vec<f64>]) {
        let mut found: Vec<Open> = Vec::new();
        for (index, open) in std::mem::take(&mut self.open).into_iter().enumerate() {
            let distribution = distributions.get(index).map_or(&[][..], Vec::as_slice);
            self.read_one(spans, &open, distribution, &mut found);
        }
        self.is_first = false;
        self.open = self.chosen(found);
    }

    /// Takes one distribution; stretches that could be looked into are added to `found`.
    fn read_one(
        &mut self,
        spans: &Spans,
        open: &Open,
        distribution: &[f64],
        found: &mut Vec<Open>,
    ) {
        let at = |option: usize| distribution.get(option).copied().unwrap_or(0.0);
        let children = spans.children(&open.node, self.options_max);
        let is_last = self.is_last(&open.node);
        if self.is_first {
            self.first_not_stated = at(children.len());
        } else if is_last {
            self.last.0 += open.probability;
            self.last.1 += open.probability * at(children.len());
        }
        for (option, node) in children.into_iter().enumerate() {
            let probability = open.probability * at(option);
            if !node.is_leaf() {
                found.push(Open { node, probability });
                continue;
            }
            self.pieces.push((node.0.start, probability));
            // A piece that stands alone in an earlier stage is not doubted again.
            self.last.0 += if is_last { 0.0 } else { probability };
        }
    }

    /// The most probable stretches, in the order of the text among equal ones.
    fn chosen(&self, mut found: Vec<Open>) -> Vec<Open> {
        found.sort_by(|one, other| other.probability.total_cmp(&one.probability));
        found.truncate(self.stretches_max);
        let best = found.first().map_or(0.0, |open| open.probability);
        found.retain(|open| open.probability >= STRETCH_MIN.min(best));
        found
    }

    /// That nothing fits, as far as was read.
    pub fn not_stated(&self) -> f64 {
        let last = if self.last.0 > 0.0 { self.last.1 / self.last.0 } else { 0.0 };
        1.0 - (1.0 - self.first_not_stated) * (1.0 - last)
    }

    /// Pieces by index and probability, the most probable first; equal ones in the order of the text.
    pub(super) fn ranked(&self) -> Vec<(usize, f64)> {
        let mut ranked = self.pieces.clone();
        ranked.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        ranked
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::spans::spans;
    use super::*;

    #[test]
    fn probabilities_are_composed_over_stages() {
        let text = "a\nb\n\nc\nd";
        let found = spans(text);
        let mut search = Narrowing::new(&found, 2, 2);
        assert_eq!(search.wanted(), [Wanted { node: Node(0..4), asks_not_stated: true }]);
        search.read(&found, &[vec![0.2, 0.6, 0.2]]);
        assert_eq!(
            search.wanted(),
            [
                Wanted { node: Node(2..4), asks_not_stated: true },
                Wanted { node: Node(0..2), asks_not_stated: true },
            ]
        );
        search.read(&found, &[vec![0.1, 0.8, 0.1], vec![0.5, 0.5, 0.0]]);
        // n2 = (0.6 * 0.1 + 0.2 * 0) / 0.8 = 0.075
        assert!((search.not_stated() - (1.0 - 0.8 * 0.925)).abs() < 1e-12);
        let answer = search.excerpt(text, &found);
        assert_eq!(answer.text.as_deref(), Some("d"));
        assert!((answer.probability - 0.48).abs() < 1e-12);
    }

    #[test]
    fn a_piece_found_early_is_not_doubted_again() {
        let text = "a\nb\nc";
        let found = spans(text);
        let mut search = Narrowing::new(&found, 2, 2);
        search.read(&found, &[vec![0.5, 0.4, 0.1]]);
        search.read(&found, &[vec![0.5, 0.0, 0.5]]);
        // The last read says 0.5 of 0.4, and nothing of the other 0.5: 0.2 / 0.9.
        assert!((search.not_stated() - 0.3).abs() < 1e-12);
        let total: f64 = search.ranked().iter().map(|piece| piece.1).sum();
        assert!((total - 0.7).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn a_search_ends_with_probabilities_that_sum_to_one_at_most(
            lines in 1_usize..400,
            options_max in 2_usize..30,
            stretches_max in 1_usize..4,
            seed in 0_u64..1000,
        ) {
            let text = "word\n".repeat(lines);
            let found = spans(&text);
            let mut search = Narrowing::new(&found, options_max, stretches_max);
            let mut draw = seed;
            let mut stages = 0;
            while !search.wanted().is_empty() {
                let mut distributions = Vec::new();
                for wanted in search.wanted() {
                    let options = found.options(&text, &wanted.node, options_max).len();
                    let mut weights = Vec::new();
                    for _ in 0..options + usize::from(wanted.asks_not_stated) {
                        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        weights.push((draw >> 40) as f64 + 1.0);
                    }
                    let total: f64 = weights.iter().sum();
                    distributions.push(weights.into_iter().map(|weight| weight / total).collect());
                }
                search.read(&found, &distributions);
                stages += 1;
                prop_assert!(stages < 20);
            }
            let answer = search.excerpt(&text, &found);
            let total: f64 = search.pieces.iter().map(|piece| piece.1).sum();
            prop_assert!(total + search.not_stated() < 1.0 + 1e-9);
            prop_assert!((0.0..=1.0).contains(&answer.probability));
        }
    }
}
