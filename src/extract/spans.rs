//! A text as a tree of stretches, so that a piece of a long one is found in stages.
//!
//! The tree is not kept: a node is a range of pieces, and its options follow from it and from how many
//! there may be. Borders that are stronger (paragraphs, records) are preferred where there is a choice.

use std::ops::Range;

use super::cut::shown;
use super::leaves::{Leaf, leaves};

/// Longest text of an option, in characters.
pub const SHOWN_CHARS_MAX: usize = 200;

/// The pieces of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spans {
    pub(super) leaves: Vec<Leaf>,
}

/// Pieces that follow each other, by their indices.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Node(pub Range<usize>);

impl Node {
    /// Whether there is nothing more to choose within it.
    pub fn is_leaf(&self) -> bool {
        self.0.len() <= 1
    }
}

/// An option of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanOption {
    /// What is chosen with it.
    pub node: Node,
    /// Where it stands in the text, in bytes.
    pub range: Range<usize>,
    /// One line of at most [`SHOWN_CHARS_MAX`] characters.
    pub shown: String,
}

/// Cuts a text into its pieces; at most [`super::SPANS_MAX`], linear in the text.
pub fn spans(text: &str) -> Spans {
    Spans { leaves: leaves(text) }
}

impl Spans {
    /// The pieces in the order of the text; they do not overlap.
    pub fn leaves(&self) -> &[Leaf] {
        &self.leaves
    }

    /// All pieces.
    pub fn root(&self) -> Node {
        Node(0..self.leaves.len())
    }

    /// What may be chosen within a node: its pieces, or stretches of them where they are more than
    /// `options_max`, which is taken for at least 2. At most that many, in the order of the text, and
    /// together all of the node.
    ///
    /// * `text`: the one that was cut.
    pub fn options(&self, text: &str, node: &Node, options_max: usize) -> Vec<SpanOption> {
        let nodes = self.children(node, options_max.max(2));
        nodes.into_iter().map(|node| self.option(text, node)).collect()
    }

    /// The nodes of the options of a node.
    pub(super) fn children(&self, node: &Node, options_max: usize) -> Vec<Node> {
        let Range { start, end } = node.0;
        let end = end.min(self.leaves.len());
        let count = end.saturating_sub(start);
        if count <= options_max {
            return (start..end).map(|leaf| Node(leaf..leaf + 1)).collect();
        }
        let mut found = Vec::with_capacity(options_max);
        let mut from = start;
        for block in 1..=options_max {
            let to = if block == options_max {
                end
            } else {
                self.border(start, count, block, options_max)
            };
            if to > from {
                found.push(Node(from..to));
                from = to;
            }
        }
        found
    }

    /// Where block `block` of `blocks` equal ones ends, moved to the strongest border nearby.
    fn border(&self, start: usize, count: usize, block: usize, blocks: usize) -> usize {
        let even = start + count * block / blocks;
        let reach = count / blocks / 3;
        let near = even - reach..=(even + reach).min(start + count - 1);
        let distance = |at: usize| std::cmp::Reverse(at.abs_diff(even));
        near.max_by_key(|at| (self.leaves[*at].gap, distance(*at))).unwrap_or(even)
    }

    /// A stretch as an option; it has one piece at least.
    pub fn option(&self, text: &str, node: Node) -> SpanOption {
        let (first, last) = (&self.leaves[node.0.start], &self.leaves[node.0.end - 1]);
        let range = first.range.start..last.range.end;
        let written = &text[first.shown.start..last.shown.end];
        let path = first.path.as_ref().map(|path| shown(&text[path.clone()], PATH_CHARS_MAX));
        let shown = match path {
            Some(path) => {
                let room = SHOWN_CHARS_MAX.saturating_sub(path.chars().count() + 2);
                format!("{path}: {}", shown(written, room))
            }
            None => shown(written, SHOWN_CHARS_MAX),
        };
        SpanOption { node, range, shown }
    }

    /// The index of the piece in which a place is, or of the last one ahead of it.
    pub(super) fn leaf_at(&self, place: usize) -> Option<usize> {
        let behind = self.leaves.partition_point(|leaf| leaf.range.start <= place);
        if self.leaves.is_empty() { None } else { Some(behind.saturating_sub(1)) }
    }
}

/// Longest key that is shown ahead of a piece.
pub(super) const PATH_CHARS_MAX: usize = 40;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The ranges of all pieces that the options of a node lead to, and how many stages it took.
    fn walk(
        spans: &Spans,
        text: &str,
        node: &Node,
        options_max: usize,
    ) -> (Vec<Range<usize>>, usize) {
        let mut found = Vec::new();
        let mut depth = 0;
        for option in spans.options(text, node, options_max) {
            if option.node.is_leaf() {
                found.push(option.range);
            } else {
                let (inner, below) = walk(spans, text, &option.node, options_max);
                found.extend(inner);
                depth = depth.max(below);
            }
        }
        (found, depth + 1)
    }

    #[test]
    fn blocks_end_at_paragraphs_where_they_can() {
        let text = "a\nb\nc\n\nd\ne\nf\ng\n\nh\ni";
        let shown: Vec<String> = spans(text)
            .options(text, &Node(0..9), 3)
            .into_iter()
            .map(|option| option.shown)
            .collect();
        assert_eq!(shown, ["a b c", "d e f g", "h i"]);
    }

    #[test]
    fn options_show_their_keys() {
        let text = r#"{"customer": {"name": "Ann", "note": "One. Two."}, "n": 3}"#;
        let found = spans(text);
        let shown: Vec<String> =
            found.options(text, &found.root(), 9).into_iter().map(|option| option.shown).collect();
        assert_eq!(
            shown,
            [r#"customer: "name": "Ann""#, r#"customer: "note": "One."#, "note: Two.", r#""n": 3"#]
        );
    }

    proptest! {
        #[test]
        fn all_pieces_are_reached_once_in_order(
            text in prop_oneof!["[a-z .\n]{0,300}", "(\\{|\\[|\"|,|:|\\}|\\]|a|1| |\\\\|\n|é|。){0,60}", ".{0,60}"],
            options_max in 2_usize..9,
        ) {
            let found = spans(&text);
            let (ranges, depth) = walk(&found, &text, &found.root(), options_max);
            prop_assert_eq!(ranges.len(), found.leaves().len());
            prop_assert!(depth < 16);
            let mut last = 0;
            for range in ranges {
                prop_assert!(range.start >= last && range.end > range.start, "{range:?}");
                let piece = text.get(range.clone()).expect("on characters' borders");
                prop_assert_eq!(piece.trim(), piece);
                last = range.end;
            }
        }
    }
}
