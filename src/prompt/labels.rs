//! The label alphabet: which codes are exactly one token where the answer begins.
//!
//! Whether `A` is one token depends on what stands before it (after a colon some tokenizers merge
//! `:A`), so every code is tried behind the prompt's own tail (ARCHITECTURE D9).

use super::PromptError;
use super::tokens::TextTokenizer;
use crate::question::OPTIONS_MAX;

/// Fewest labels with which anything can be asked.
const LABELS_MIN: usize = 2;

const CAPITALS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const SMALL: &str = "abcdefghijklmnopqrstuvwxyz";

/// Which codes may be labels, in the order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeSet {
    /// A-Z, a-z, then pairs of capitals, then of small letters.
    AllLetters,
    /// A-Z, then pairs of capitals, as decisio has them.
    Capitals,
}

/// Codes and their token ids, distinct, in the order in which they are given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alphabet {
    /// What is shown: `A`, `B`, ...
    pub codes: Vec<String>,
    /// What is read: one id a code.
    pub ids: Vec<u32>,
}

/// Where a label stands: the plain text before it, back to the last control token, and what
/// separates them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The prompt's last run of plain text.
    pub tail: String,
    /// Written before a label; it is part of the label's token.
    pub lead: &'static str,
}

/// Finds the alphabet for a slot: the codes of the set, as far as they are one token each and differ;
/// at most [`OPTIONS_MAX`].
///
/// # Errors
/// [`PromptError::Labels`] where fewer than two are.
pub fn alphabet(
    tokenizer: &dyn TextTokenizer,
    slot: &Slot,
    codes: CodeSet,
) -> Result<Alphabet, PromptError> {
    let mut found = Alphabet { codes: Vec::new(), ids: Vec::new() };
    for code in candidates(codes) {
        if found.codes.len() == OPTIONS_MAX {
            break;
        }
        if let Some(id) = id_in_slot(tokenizer, slot, &code).filter(|id| !found.ids.contains(id)) {
            found.codes.push(code);
            found.ids.push(id);
        }
    }
    if found.codes.len() < LABELS_MIN {
        let tail = slot.tail.clone();
        return Err(PromptError::Labels { found: found.codes.len(), tail });
    }
    Ok(found)
}

/// The ids of words that serve as labels.
///
/// # Errors
/// [`PromptError::Word`] naming a word that is not one token of its own.
pub fn words(
    tokenizer: &dyn TextTokenizer,
    slot: &Slot,
    words: [&'static str; 2],
) -> Result<[u32; 2], PromptError> {
    let id = |word| {
        let refused = || PromptError::Word { word, tail: slot.tail.clone() };
        id_in_slot(tokenizer, slot, word).ok_or_else(refused)
    };
    let [first, second] = [id(words[0])?, id(words[1])?];
    if first == second {
        return Err(PromptError::Word { word: words[1], tail: slot.tail.clone() });
    }
    Ok([first, second])
}

/// The one token that `label` adds to the slot's tail, if it is one.
fn id_in_slot(tokenizer: &dyn TextTokenizer, slot: &Slot, label: &str) -> Option<u32> {
    let before = tokenizer.encode(&slot.tail);
    let after = tokenizer.encode(&format!("{}{}{label}", slot.tail, slot.lead));
    match after.strip_prefix(before.as_slice()) {
        Some(&[id]) => Some(id),
        Some(_) | None => None,
    }
}

/// All codes of a set, whatever the tokenizer.
pub fn candidates(codes: CodeSet) -> impl Iterator<Item = String> {
    let small = match codes {
        CodeSet::AllLetters => SMALL,
        CodeSet::Capitals => "",
    };
    let singles = CAPITALS.chars().chain(small.chars()).map(String::from);
    singles.chain(pairs(CAPITALS)).chain(pairs(small))
}

fn pairs(letters: &'static str) -> impl Iterator<Item = String> {
    letters.chars().flat_map(|a| letters.chars().map(move |b| [a, b].iter().collect()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prompt::tokens::bytes::ByteTokenizer;

    /// Knows some pairs as one token each, merges `:A`, and calls C and D the same.
    #[derive(Debug)]
    struct Merging;

    impl TextTokenizer for Merging {
        fn encode(&self, text: &str) -> Vec<u32> {
            let merged = text.replace(":A", "\u{1}").replace('D', "C");
            let merged =
                merged.replace("AB", "\u{2}").replace("zz", "\u{3}").replace(" A", "\u{4}");
            merged.chars().map(u32::from).collect()
        }

        fn controls(&self) -> &[(String, u32)] {
            &[]
        }

        fn decode(&self, _: &[u32]) -> Vec<u8> {
            Vec::new()
        }

        fn vocab_size(&self) -> usize {
            128
        }
    }

    fn slot(tail: &str, lead: &'static str) -> Slot {
        Slot { tail: tail.to_owned(), lead }
    }

    #[test]
    fn bytes_give_52_letters() {
        let found =
            alphabet(&ByteTokenizer::new(), &slot("assistant\n", ""), CodeSet::AllLetters).unwrap();
        assert_eq!(found.codes.len(), 52);
        assert_eq!((found.codes[0].as_str(), found.ids[0]), ("A", 65));
        assert_eq!((found.codes[26].as_str(), found.ids[51]), ("a", 122));
    }

    #[test]
    fn capitals_alone_are_26_letters_and_then_pairs() {
        let slot = slot("assistant\n", "");
        let found = alphabet(&ByteTokenizer::new(), &slot, CodeSet::Capitals).unwrap();
        assert_eq!((found.codes.len(), found.codes[25].as_str()), (26, "Z"));
        let all: Vec<String> = candidates(CodeSet::Capitals).collect();
        assert_eq!((all.len(), all[26].as_str(), all[701].as_str()), (702, "AA", "ZZ"));
    }

    #[test]
    fn case_52_codes_are_one_token_and_distinct_in_context() {
        let found = alphabet(&Merging, &slot("Answer:", ""), CodeSet::AllLetters).unwrap();
        assert!(!found.codes.contains(&"A".to_owned()), "`:A` merges after this tail");
        assert!(found.codes.contains(&"C".to_owned()) && !found.codes.contains(&"D".to_owned()));
        assert_eq!(found.codes[found.codes.len() - 1], "zz", "pairs come last");
        assert!(!found.codes.contains(&"yy".to_owned()));
        let found = alphabet(&Merging, &slot("reply\n", ""), CodeSet::AllLetters).unwrap();
        assert!(found.codes.contains(&"A".to_owned()) && found.codes.contains(&"AB".to_owned()));
    }

    #[test]
    fn a_lead_is_part_of_the_label() {
        let found = alphabet(&Merging, &slot("Answer:", " "), CodeSet::AllLetters).unwrap_err();
        assert_eq!(
            found,
            PromptError::Labels { found: 1, tail: "Answer:".to_owned() },
            "` A` only"
        );
    }

    #[test]
    fn words_that_are_not_one_token_are_refused_by_name() {
        let error = words(&ByteTokenizer::new(), &slot("\n", ""), ["no", "yes"]).unwrap_err();
        assert!(error.to_string().contains("`no`"), "{error}");
        assert_eq!(words(&ByteTokenizer::new(), &slot("\n", ""), ["n", "y"]), Ok([110, 121]));
        assert!(words(&Merging, &slot("\n", ""), ["C", "D"]).is_err(), "one id for both");
    }
}
