//! Numbers and pieces that are found in a text: every range is one of the text, on borders of
//! characters, in order and within the limits.

use std::ops::Range;

use docket::extract::{
    CANDIDATES_MAX, Narrowing, Node, NumberCandidate, NumberCriteria, NumberSearch, NumberWanted,
    OPTION_CHARS_MAX, Offsets, SHOWN_CHARS_MAX, SPANS_MAX, Spans, code_points, numbers, spans,
};

use super::repeated;

/// Most options of a read that are tried.
const OPTIONS_MAX: usize = 9;

/// Stages of a search: each halves what is left at least.
const STAGES_MAX: usize = 64;

/// The first two bytes are the criteria, the rest the text.
pub fn run(input: &[u8]) {
    if let Some(bytes) = repeated(input) {
        let text = String::from_utf8_lossy(&bytes);
        searched(&text, &NumberCriteria::default());
        return;
    }
    let (head, rest) = input.split_at(input.len().min(2));
    let text = String::from_utf8_lossy(rest);
    searched(&text, &criteria(head));
}

fn criteria(head: &[u8]) -> NumberCriteria {
    let [first, second] = [0, 1].map(|at| head.get(at).copied().unwrap_or_default());
    let steps = [None, Some(0.0), Some(0.01), Some(0.05), Some(1.0), Some(100.0), Some(1e-300)];
    let bounded = |is: bool, value: f64| is.then_some(value);
    NumberCriteria {
        min: bounded(first & 1 > 0, f64::from(second) - 100.0),
        max: bounded(first & 2 > 0, f64::from(second) * 10.0),
        precision: steps[usize::from(first >> 2) % steps.len()],
    }
}

fn searched(text: &str, criteria: &NumberCriteria) {
    let found = numbers(text, criteria);
    let pieces = spans(text);
    cut(text, &pieces);
    counted(text, &found, criteria);
    for candidate in found.iter().take(OPTIONS_MAX) {
        let shown = pieces.number_option(text, candidate);
        assert!(shown.chars().count() <= OPTION_CHARS_MAX, "{shown:?}");
        for place in candidate.places.iter().take(3) {
            let around = pieces.context(text, place);
            inside(text, &around);
            assert!(around.start <= place.start && place.end <= around.end, "{around:?} {place:?}");
            assert!(pieces.context_text(text, place).chars().count() <= OPTION_CHARS_MAX);
            pieces.passage(text, place);
        }
    }
    narrowed(text, &pieces);
    chosen(&pieces, found);
}

fn inside(text: &str, range: &Range<usize>) {
    assert!(text.get(range.clone()).is_some(), "{range:?} is no part of the text");
}

fn cut(text: &str, pieces: &Spans) {
    let leaves = pieces.leaves();
    assert!(leaves.len() <= SPANS_MAX, "{} pieces", leaves.len());
    let offsets = Offsets::new(text);
    let mut end = 0;
    for leaf in leaves {
        inside(text, &leaf.range);
        inside(text, &leaf.shown);
        leaf.path.iter().chain(&leaf.scope).for_each(|range| inside(text, range));
        assert!(leaf.range.start >= end && !leaf.range.is_empty(), "{leaf:?} after {end}");
        end = leaf.range.end;
    }
    for leaf in leaves.iter().take(OPTIONS_MAX) {
        let counted = offsets.range(text, &leaf.range);
        assert_eq!(counted, code_points(text, &leaf.range));
        assert_eq!(counted.len(), text[leaf.range.clone()].chars().count());
    }
}

fn counted(text: &str, found: &[NumberCandidate], criteria: &NumberCriteria) {
    assert!(found.len() <= CANDIDATES_MAX, "{} numbers", found.len());
    let mut values: Vec<u64> = found.iter().map(|candidate| candidate.value.to_bits()).collect();
    values.sort_unstable();
    values.dedup();
    assert_eq!(values.len(), found.len(), "a value is there twice");
    for candidate in found {
        let value = candidate.value;
        assert!(value.is_finite() && !candidate.places.is_empty(), "{candidate:?}");
        assert!(criteria.min.is_none_or(|min| value >= min), "{candidate:?}");
        assert!(criteria.max.is_none_or(|max| value <= max), "{candidate:?}");
        for place in &candidate.places {
            inside(text, place);
            assert!(!place.is_empty(), "{candidate:?}");
        }
        let starts = candidate.places.iter().map(|place| place.start);
        assert!(starts.is_sorted(), "{candidate:?}");
    }
}

/// A distribution over `options` and "not stated", which leans to one of them.
fn leaning(options: usize) -> Vec<f64> {
    let mut all = vec![0.5 / (options + 1) as f64; options + 1];
    all[options / 2] += 0.5;
    all
}

fn options(text: &str, pieces: &Spans, node: &Node, options_max: usize) -> usize {
    let options = pieces.options(text, node, options_max);
    assert!(options.len() <= options_max.max(2), "{} options", options.len());
    let mut at = node.0.start;
    for option in &options {
        inside(text, &option.range);
        assert!(option.shown.chars().count() <= SHOWN_CHARS_MAX, "{:?}", option.shown);
        assert!(
            option.node.0.start == at && option.node.0.end > at,
            "{:?} after {at}",
            option.node
        );
        at = option.node.0.end;
    }
    assert_eq!(at, node.0.end, "options of {node:?} leave something out");
    options.len()
}

fn narrowed(text: &str, pieces: &Spans) {
    let mut search = Narrowing::new(pieces, OPTIONS_MAX, 2);
    for _ in 0..STAGES_MAX {
        let wanted = search.wanted();
        if wanted.is_empty() {
            break;
        }
        let count = |node: &Node| options(text, pieces, node, search.options_max());
        let reads = wanted.iter().map(|one| {
            let count = count(&one.node);
            leaning(if one.asks_not_stated { count } else { count - 1 })
        });
        let reads: Vec<Vec<f64>> = reads.collect();
        search.read(pieces, &reads);
    }
    assert!(search.wanted().is_empty(), "the search has no end");
    let answer = search.excerpt(text, pieces);
    assert!((0.0..=1.0).contains(&answer.probability), "{answer:?}");
    let parts =
        answer.parts.into_iter().chain(search.citations(text, pieces).into_iter().map(|c| c.part));
    for part in parts {
        let same: String = text.chars().skip(part.start).take(part.end - part.start).collect();
        assert_eq!(same, part.text);
    }
}

fn chosen(pieces: &Spans, found: Vec<NumberCandidate>) {
    let mut search = NumberSearch::new(pieces, found, OPTIONS_MAX, OPTIONS_MAX);
    for _ in 0..STAGES_MAX {
        let reads: Vec<Vec<f64>> = match search.wanted(pieces) {
            NumberWanted::Nothing => break,
            NumberWanted::Numbers(numbers) => vec![leaning(numbers.len())],
            NumberWanted::Stretches(nodes, asks_not_stated) => {
                let count =
                    |all: &Vec<Node>| if asks_not_stated { all.len() } else { all.len() - 1 };
                nodes.iter().map(|all| leaning(count(all))).collect()
            }
        };
        search.read(pieces, reads);
    }
    assert!(matches!(search.wanted(pieces), NumberWanted::Nothing), "the search has no end");
    let sum: f64 = search.distribution().iter().sum();
    assert!(sum <= 1.0 + 1e-9, "{sum}");
}
