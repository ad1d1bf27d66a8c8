//! Pre-tokenizers: how a text is cut into words before merges are applied within each.
//!
//! The rules are llama.cpp's (`llama-vocab.cpp`, `unicode.cpp`) for the names in
//! `tokenizer.ggml.pre`. They need one look-ahead, `\s+(?!\S)`; leaving it out of the expression and
//! giving the last space back keeps matching linear in the text, whatever somebody sends.

use regex::Regex;

/// Letters, then single digits or up to three, then punctuation with line ends, then spaces.
const QWEN2: &str = concat!(
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const LLAMA3: &str = concat!(
    r"'(?:[sStTmMdD]|[rR][eE]|[vV][eE]|[lL][lL])",
    r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
);
const GPT2: &str = r"'(?:[stmd]|re|ve|ll)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+";

/// One rule under all the names that llama.cpp gives it.
struct Rule {
    names: &'static [&'static str],
    words: &'static str,
    isolates_digits: bool,
    lines_end_words: bool,
    ignores_merges: bool,
}

const RULES: [Rule; 5] = [
    Rule {
        names: &["qwen2", "deepseek-r1-qwen", "kormo", "f2llmv2", "megrez", "stablelm2"],
        words: QWEN2,
        isolates_digits: false,
        lines_end_words: true,
        ignores_merges: false,
    },
    Rule {
        names: &["smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"],
        words: GPT2,
        isolates_digits: true,
        lines_end_words: false,
        ignores_merges: false,
    },
    Rule {
        names: &["llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2"],
        words: LLAMA3,
        isolates_digits: false,
        lines_end_words: true,
        ignores_merges: true,
    },
    Rule {
        names: &["chatglm-bpe", "glm4"],
        words: LLAMA3,
        isolates_digits: false,
        lines_end_words: true,
        ignores_merges: false,
    },
    Rule {
        names: &["gpt-2", "phi-2", "gigachat", "a.x-4.0", "mellum", "olmo", "trillion", "exaone4"],
        words: GPT2,
        isolates_digits: false,
        lines_end_words: false,
        ignores_merges: false,
    },
];

/// A pre-tokenizer.
#[derive(Debug)]
pub(super) struct PreTokenizer {
    words: Regex,
    /// Cuts each digit off before words are looked for.
    digits: Option<Regex>,
    /// Whether a run of spaces that ends in a line end is a word of its own.
    lines_end_words: bool,
    /// Whether a word that is a token is taken as such, without merging.
    pub(super) ignores_merges: bool,
}

impl PreTokenizer {
    /// The pre-tokenizer that llama.cpp uses under this name.
    pub(super) fn new(name: &str) -> Result<Self, String> {
        let Some(rule) = RULES.iter().find(|rule| rule.names.contains(&name)) else {
            let names: Vec<_> = RULES.iter().flat_map(|rule| rule.names).copied().collect();
            return Err(format!(
                "the pre-tokenizer {name} is not supported; supported are {}",
                names.join(", ")
            ));
        };
        let compile = |rule: &str| Regex::new(rule).map_err(|error| error.to_string());
        Ok(Self {
            words: compile(rule.words)?,
            digits: rule.isolates_digits.then(|| compile(r"\p{N}")).transpose()?,
            lines_end_words: rule.lines_end_words,
            ignores_merges: rule.ignores_merges,
        })
    }

    /// Calls `each` with the words of `text`, in order; together they are the text.
    pub(super) fn split(&self, text: &str, mut each: impl FnMut(&str)) {
        let Some(digits) = &self.digits else { return self.words(text, &mut each) };
        let mut done = 0;
        for digit in digits.find_iter(text) {
            self.words(&text[done..digit.start()], &mut each);
            each(digit.as_str());
            done = digit.end();
        }
        self.words(&text[done..], &mut each);
    }

    fn words(&self, text: &str, each: &mut impl FnMut(&str)) {
        let mut at = 0;
        while let Some(found) = self.words.find_at(text, at) {
            // The rules match any character, so nothing lies between two words.
            let word = self.give_back(text, found.as_str(), found.end());
            each(word);
            at = found.start() + word.len();
        }
    }

    /// `\s+(?!\S)`: spaces before a word leave it the last one.
    fn give_back<'t>(&self, text: &str, word: &'t str, end: usize) -> &'t str {
        let mut last = word.char_indices();
        let (Some((cut, character)), true) = (last.next_back(), end < text.len()) else {
            return word;
        };
        let is_run = cut > 0 && word.chars().all(char::is_whitespace);
        let ends_line = self.lines_end_words && matches!(character, '\r' | '\n');
        if is_run && !ends_line { &word[..cut] } else { word }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, text: &str) -> Vec<String> {
        let mut words = Vec::new();
        PreTokenizer::new(name).unwrap().split(text, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn spaces_before_a_word_leave_it_the_last_one() {
        for name in ["qwen2", "llama-bpe", "gpt-2", "smollm"] {
            assert_eq!(words(name, "a   b  "), ["a", "  ", " b", "  "], "{name}");
        }
    }

    #[test]
    fn digits_are_single_in_threes_or_together() {
        assert_eq!(words("qwen2", "x 1234"), ["x", " ", "1", "2", "3", "4"]);
        assert_eq!(words("llama-bpe", "x 1234"), ["x", " ", "123", "4"]);
        assert_eq!(words("gpt-2", "x 1234"), ["x", " 1234"]);
        assert_eq!(words("smollm", "x  12"), ["x", "  ", "1", "2"]);
    }

    #[test]
    fn line_ends_close_a_run_of_spaces_only_in_the_newer_rules() {
        assert_eq!(words("qwen2", "a\n\n  b"), ["a", "\n\n", " ", " b"]);
        assert_eq!(words("gpt-2", "a\n\n  b"), ["a", "\n\n ", " b"]);
        assert_eq!(words("gpt-2", "a\n\nb"), ["a", "\n", "\n", "b"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_supported_ones() {
        for name in ["default", "tekken", ""] {
            let error = PreTokenizer::new(name).unwrap_err();
            assert!(error.contains(name) && error.contains("llama-bpe"), "{error}");
        }
    }
}
