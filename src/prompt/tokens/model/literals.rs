//! Literal tokens: user-defined tokens that are cut out of a text before it is tokenised.
//!
//! llama.cpp looks for the longest token in the whole text first, then for the next one in what is
//! left. Done token by token that is quadratic (gemma has 6,000 of them), so tokens of one length
//! are looked for together: one pass a length gives the same cuts, since tokens of one length are
//! in no promised order there either.

use aho_corasick::{AhoCorasick, BuildError, MatchKind};

/// A finder of literal tokens.
#[derive(Debug, Default)]
pub(super) struct Literals {
    /// Finds any token at all; most texts have none.
    any: Option<AhoCorasick>,
    /// Finders of the tokens of one length, longest first.
    classes: Vec<Class>,
}

#[derive(Debug)]
struct Class {
    finder: AhoCorasick,
    /// Token id by pattern number.
    ids: Vec<u32>,
}

/// A piece of a text that was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fragment<'t> {
    /// Text between tokens; never empty.
    Text(&'t str),
    /// A token.
    Token(u32),
}

impl Literals {
    /// Prepares the search for `tokens`.
    pub(super) fn new<'a>(tokens: impl Iterator<Item = (&'a str, u32)>) -> Result<Self, String> {
        let mut tokens: Vec<_> = tokens.filter(|(text, _)| !text.is_empty()).collect();
        if tokens.is_empty() {
            return Ok(Self::default());
        }
        tokens.sort_by_key(|(text, id)| (std::cmp::Reverse(text.len()), *id));
        let message = |error: BuildError| error.to_string();
        let any = finder(tokens.iter().map(|(text, _)| *text)).map_err(message)?;
        let mut classes = Vec::new();
        for class in tokens.chunk_by(|left, right| left.0.len() == right.0.len()) {
            let finder = finder(class.iter().map(|(text, _)| *text)).map_err(message)?;
            classes.push(Class { finder, ids: class.iter().map(|(_, id)| *id).collect() });
        }
        Ok(Self { any: Some(any), classes })
    }

    /// Cuts `text` at its literal tokens.
    pub(super) fn split<'t>(&self, text: &'t str) -> Vec<Fragment<'t>> {
        if text.is_empty() {
            return Vec::new();
        }
        let mut fragments = vec![Fragment::Text(text)];
        if self.any.as_ref().is_some_and(|any| any.is_match(text)) {
            for class in &self.classes {
                fragments = fragments.into_iter().flat_map(|each| class.cut(each)).collect();
            }
        }
        fragments
    }
}

impl Class {
    fn cut<'t>(&self, fragment: Fragment<'t>) -> Vec<Fragment<'t>> {
        let Fragment::Text(text) = fragment else { return vec![fragment] };
        let mut cuts = Vec::new();
        let mut done = 0;
        for found in self.finder.find_iter(text) {
            cuts.extend(nonempty(&text[done..found.start()]));
            cuts.push(Fragment::Token(self.ids[found.pattern().as_usize()]));
            done = found.end();
        }
        cuts.extend(nonempty(&text[done..]));
        cuts
    }
}

fn nonempty(text: &str) -> Option<Fragment<'_>> {
    (!text.is_empty()).then_some(Fragment::Text(text))
}

fn finder<'a>(texts: impl Iterator<Item = &'a str>) -> Result<AhoCorasick, BuildError> {
    AhoCorasick::builder().match_kind(MatchKind::LeftmostFirst).build(texts)
}

#[cfg(test)]
mod tests {
    use super::Fragment::{Text, Token};
    use super::*;

    #[test]
    fn the_longest_token_wins_even_where_a_shorter_one_begins_earlier() {
        let tokens = [("ab", 1), ("bcd", 2), ("x", 3)];
        let literals = Literals::new(tokens.into_iter()).unwrap();
        assert_eq!(literals.split("abcd ab"), [Text("a"), Token(2), Text(" "), Token(1)]);
        assert_eq!(literals.split("xx"), [Token(3), Token(3)]);
        assert_eq!(literals.split("né"), [Text("né")]);
        assert_eq!(literals.split(""), []);
    }

    #[test]
    fn without_tokens_nothing_is_cut() {
        let literals = Literals::new(std::iter::empty()).unwrap();
        assert_eq!(literals.split("a <b>"), [Text("a <b>")]);
    }
}
