//! The search for a number: at once where a text has few, else within the stretches in which it is
//! probably stated.
//!
//! The probability of a number is that of the stretches looked into times its own among their numbers,
//! so with "not stated" these sum to 1, or to less where stretches were passed over. "Not stated" is an
//! option of the first read and of the last, and composed of both as in a search for an excerpt.

use std::ops::Range;

use super::numbers::{CANDIDATES_MAX, NumberCandidate};
use super::spans::{Node, Spans};

/// Most stretches that a stage looks into.
const STRETCHES_MAX: usize = 2;

/// A stretch less probable than this is not looked into, but for the most probable one.
const STRETCH_MIN: f64 = 0.1;

/// A search in progress.
#[derive(Debug, Clone, PartialEq)]
pub struct NumberSearch {
    /// All numbers of the text; once they are few enough, those to be chosen from.
    candidates: Vec<NumberCandidate>,
    /// Where the number is looked for.
    open: Vec<Open>,
    stage: Stage,
    limits: Limits,
    /// "Not stated" of the first read, where stretches were read.
    first_not_stated: f64,
}

/// Most options of the reads.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limits {
    numbers: usize,
    stretches: usize,
}

/// A stretch, and the probability that the number is in it.
#[derive(Debug, Clone, PartialEq)]
struct Open {
    node: Node,
    probability: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    /// Within each open stretch, the stretches that have numbers.
    Stretches {
        asks_not_stated: bool,
    },
    Numbers,
    /// What was read of the numbers, "not stated" last.
    Over(Vec<f64>),
}

/// What is to be read next.
#[derive(Debug, Clone, PartialEq)]
pub enum NumberWanted<'a> {
    /// A choice among the stretches of each of these nodes, with "not stated" behind them or not.
    Stretches(Vec<Vec<Node>>, bool),
    /// A choice among these numbers and "not stated".
    Numbers(&'a [NumberCandidate]),
    /// Nothing more.
    Nothing,
}

impl NumberSearch {
    /// Begins a search among all numbers of a text.
    ///
    /// * `numbers_max`: most numbers of the last read, at least 1; more stand in it only where one piece
    ///   of the text has more.
    /// * `stretches_max`: most stretches of a read, at least 2.
    pub fn new(
        spans: &Spans,
        candidates: Vec<NumberCandidate>,
        numbers_max: usize,
        stretches_max: usize,
    ) -> Self {
        let limits = Limits { numbers: numbers_max.max(1), stretches: stretches_max.max(2) };
        let root = Open { node: spans.root(), probability: 1.0 };
        let stage = Stage::Stretches { asks_not_stated: true };
        let mut search =
            Self { candidates, open: vec![root], stage, limits, first_not_stated: 0.0 };
        search.narrow(spans);
        search
    }

    /// What is to be read next.
    pub fn wanted(&self, spans: &Spans) -> NumberWanted<'_> {
        match &self.stage {
            Stage::Numbers => NumberWanted::Numbers(&self.candidates),
            Stage::Stretches { asks_not_stated } => {
                let divided = self.open.iter().filter(|open| !open.node.is_leaf());
                let nodes = divided.map(|open| self.children(spans, &open.node)).collect();
                NumberWanted::Stretches(nodes, *asks_not_stated)
            }
            Stage::Over(_) => NumberWanted::Nothing,
        }
    }

    /// Takes what was wanted.
    ///
    /// * `distributions`: of each read, `[options]` or `[options + 1]` with "not stated"; each sums to 1.
    ///   What is missing is 0.
    pub fn read(&mut self, spans: &Spans, distributions: Vec<Vec<f64>>) {
        match self.stage {
            Stage::Numbers => {
                self.stage = Stage::Over(distributions.into_iter().next().unwrap_or_default());
            }
            Stage::Stretches { asks_not_stated } => {
                let open = std::mem::take(&mut self.open);
                let (pieces, divided): (Vec<_>, Vec<_>) =
                    open.into_iter().partition(|open| open.node.is_leaf());
                let mut found = pieces;
                for (open, distribution) in divided.into_iter().zip(distributions) {
                    let within = self.divided(spans, &open, &distribution, asks_not_stated);
                    found.extend(within);
                }
                self.open = chosen(found);
                self.stage = Stage::Stretches { asks_not_stated: false };
                self.narrow(spans);
            }
            Stage::Over(_) => {}
        }
    }

    /// The stretches of one, with what was read of them.
    fn divided(
        &mut self,
        spans: &Spans,
        open: &Open,
        distribution: &[f64],
        asks_not_stated: bool,
    ) -> Vec<Open> {
        let at = |option: usize| distribution.get(option).copied().unwrap_or(0.0);
        let children = self.children(spans, &open.node);
        if asks_not_stated {
            self.first_not_stated = at(children.len());
        }
        let within = children.into_iter().enumerate();
        within
            .map(|(option, node)| Open { node, probability: open.probability * at(option) })
            .collect()
    }

    /// The numbers to be chosen from.
    pub fn candidates(&self) -> &[NumberCandidate] {
        &self.candidates
    }

    /// The distribution over them and "not stated"; empty until the search is over.
    pub fn distribution(&self) -> Vec<f64> {
        let Stage::Over(read) = &self.stage else { return Vec::new() };
        let mass: f64 = self.open.iter().map(|open| open.probability).sum();
        let mut distribution: Vec<f64> = read.iter().map(|p| mass * p).collect();
        if let Some((own, last)) = distribution.last_mut().zip(read.last()) {
            *own = self.first_not_stated + (1.0 - self.first_not_stated) * last;
        }
        distribution
    }

    /// Goes on to the numbers where those of the open stretches are few enough or cannot be divided;
    /// steps into stretches where there is but one to choose.
    fn narrow(&mut self, spans: &Spans) {
        loop {
            let inside = inside(spans, &self.candidates, &self.open);
            let are_pieces = self.open.iter().all(|open| open.node.is_leaf());
            if are_pieces && inside.len() > CANDIDATES_MAX && self.open.len() > 1 {
                self.open.sort_by(|one, other| other.probability.total_cmp(&one.probability));
                self.open.pop();
                continue;
            }
            if are_pieces || inside.len() <= self.limits.numbers {
                self.candidates = inside;
                self.stage = Stage::Numbers;
                return;
            }
            let deeper: Vec<Node> = self.open.iter().map(|open| self.deeper(spans, open)).collect();
            if self.open.iter().zip(&deeper).all(|(open, deeper)| open.node == *deeper) {
                return;
            }
            for (open, node) in self.open.iter_mut().zip(deeper) {
                open.node = node;
            }
        }
    }

    /// The only stretch of one that has numbers, else the whole of it.
    fn deeper(&self, spans: &Spans, open: &Open) -> Node {
        let mut children = self.children(spans, &open.node);
        if children.len() == 1 { children.remove(0) } else { open.node.clone() }
    }

    /// The stretches of a node that have numbers, at most as many as a read may have.
    fn children(&self, spans: &Spans, node: &Node) -> Vec<Node> {
        if node.is_leaf() {
            return vec![node.clone()];
        }
        let mut leaves: Vec<usize> = self
            .candidates
            .iter()
            .flat_map(|candidate| &candidate.places)
            .filter_map(|place| spans.leaf_at(place.start))
            .filter(|leaf| node.0.contains(leaf))
            .collect();
        leaves.sort_unstable();
        leaves.dedup();
        let has_numbers = |node: &Node| {
            let first = leaves.partition_point(|leaf| *leaf < node.0.start);
            leaves.get(first).is_some_and(|leaf| *leaf < node.0.end)
        };
        if leaves.len() <= self.limits.stretches {
            return leaves.into_iter().map(|leaf| Node(leaf..leaf + 1)).collect();
        }
        spans.children(node, self.limits.stretches).into_iter().filter(has_numbers).collect()
    }
}

/// The most probable stretches, in the order of the text.
fn chosen(mut found: Vec<Open>) -> Vec<Open> {
    found.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    found.truncate(STRETCHES_MAX);
    let best = found.first().map_or(0.0, |open| open.probability);
    found.retain(|open| open.probability >= STRETCH_MIN.min(best));
    found.sort_by_key(|open| open.node.0.start);
    found
}

/// The numbers of the open stretches, with their places in these.
fn inside(spans: &Spans, candidates: &[NumberCandidate], open: &[Open]) -> Vec<NumberCandidate> {
    let is_inside = |place: &&Range<usize>| {
        let leaf = spans.leaf_at(place.start);
        // A text without pieces has no stretches to be outside of.
        leaf.is_none_or(|leaf| open.iter().any(|open| open.node.0.contains(&leaf)))
    };
    let within = candidates.iter().map(|candidate| NumberCandidate {
        value: candidate.value,
        places: candidate.places.iter().filter(is_inside).cloned().collect(),
    });
    within.filter(|candidate| !candidate.places.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::numbers::{NumberCriteria, first_numbers};
    use super::super::spans::spans;
    use super::*;

    fn values(candidates: &[NumberCandidate]) -> Vec<String> {
        candidates.iter().map(|candidate| candidate.value.to_string()).collect()
    }

    fn search(text: &str, numbers_max: usize, stretches_max: usize) -> (Spans, NumberSearch) {
        let found = spans(text);
        let all = first_numbers(text, &NumberCriteria::default(), 10_000);
        let search = NumberSearch::new(&found, all, numbers_max, stretches_max);
        (found, search)
    }

    #[test]
    fn few_numbers_are_read_at_once() {
        let (found, mut search) = search("Seats: 4\nDays: 9", 2, 2);
        let NumberWanted::Numbers(candidates) = search.wanted(&found) else { panic!("{search:?}") };
        assert_eq!(values(candidates), ["4", "9"]);
        search.read(&found, vec![vec![0.2, 0.7, 0.1]]);
        assert_eq!(search.wanted(&found), NumberWanted::Nothing);
        assert_eq!(search.distribution(), [0.2, 0.7, 0.1]);
    }

    #[test]
    fn many_numbers_are_narrowed_to_the_stretches_that_have_some() {
        let (found, mut search) = search("a 1\nb 2\nwords\nc 3\nd 4\nmore words\ne 5\nf 6", 2, 3);
        let NumberWanted::Stretches(nodes, true) = search.wanted(&found) else {
            panic!("{search:?}")
        };
        assert_eq!(nodes.len(), 1);
        assert_eq!(nodes[0].len(), 3, "{nodes:?}");
        search.read(&found, vec![vec![0.06, 0.04, 0.8, 0.1]]);
        let NumberWanted::Numbers(candidates) = search.wanted(&found) else { panic!("{search:?}") };
        assert_eq!(values(candidates), ["5", "6"]);
        search.read(&found, vec![vec![0.5, 0.25, 0.25]]);
        let [five, six, not_stated] = search.distribution()[..] else { panic!("{search:?}") };
        assert!((five - 0.4).abs() < 1e-12 && (six - 0.2).abs() < 1e-12);
        // 1 - (1 - .1)(1 - .25)
        assert!((not_stated - 0.325).abs() < 1e-12);
    }

    #[test]
    fn a_piece_with_many_numbers_is_read_whole() {
        let (found, search) = search("all of 1 2 3 5 8 13 21 34 in a row", 2, 2);
        let NumberWanted::Numbers(candidates) = search.wanted(&found) else { panic!("{search:?}") };
        assert_eq!(candidates.len(), 8);
    }

    #[test]
    fn of_pieces_with_more_numbers_than_can_be_told_apart_the_most_probable_is_read() {
        let line =
            |from: u32| (from..from + 150).map(|n| n.to_string()).collect::<Vec<_>>().join(";");
        let text = [100, 300, 500].map(line).join("\n\n");
        let (found, mut search) = search(&text, 2, 9);
        search.read(&found, vec![vec![0.1, 0.3, 0.5, 0.1]]);
        let NumberWanted::Numbers(candidates) = search.wanted(&found) else { panic!("{search:?}") };
        assert_eq!((candidates.len(), &*values(candidates)[0]), (150, "500"));
    }

    #[test]
    fn a_text_without_numbers_has_none_to_choose_from() {
        let (found, search) = search("nothing", 2, 2);
        assert_eq!(search.wanted(&found), NumberWanted::Numbers(&[]));
    }

    proptest! {
        #[test]
        fn a_search_ends_and_its_probabilities_sum_to_one_at_most(
            lines in prop::collection::vec((0_u32..500, 0_usize..4), 1..200),
            numbers_max in 1_usize..20,
            stretches_max in 2_usize..17,
            seed in 0_u64..1000,
        ) {
            let line = |(number, words): &(u32, usize)| {
                if *words == 3 { "only words here\n".to_owned() } else {
                    format!("{}item {number}\n", "x ".repeat(*words))
                }
            };
            let text: String = lines.iter().map(line).collect();
            let (found, mut search) = search(&text, numbers_max, stretches_max);
            let mut draw = seed;
            let mut distribution = |options: usize| {
                let mut weights = Vec::new();
                for _ in 0..options {
                    draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    weights.push((draw >> 40) as f64 + 1.0);
                }
                let total: f64 = weights.iter().sum();
                weights.into_iter().map(|weight| weight / total).collect::<Vec<f64>>()
            };
            for stage in 0.. {
                prop_assert!(stage < 16);
                let distributions = match search.wanted(&found) {
                    NumberWanted::Nothing => break,
                    NumberWanted::Numbers(candidates) => vec![distribution(candidates.len() + 1)],
                    NumberWanted::Stretches(nodes, asks) => {
                        for node in &nodes {
                            prop_assert!((2..=stretches_max).contains(&node.len()), "{nodes:?}");
                        }
                        nodes.iter().map(|node| distribution(node.len() + usize::from(asks))).collect()
                    }
                };
                search.read(&found, distributions);
            }
            let total: f64 = search.distribution().iter().sum();
            prop_assert!(total < 1.0 + 1e-9, "{total}");
            prop_assert!(search.distribution().len() == search.candidates().len() + 1);
            if search.candidates().len() > numbers_max {
                let pieces = search.open.iter().filter(|open| open.node.is_leaf()).count();
                prop_assert_eq!(pieces, search.open.len());
            }
        }
    }
}
