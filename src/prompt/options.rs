//! Options as one line each: which text is shown for an option's key and description.
//!
//! Names that a caller made for programs (`option_3`, `card_arrival`) help a model less than what
//! they mean, so a description is shown alone where the descriptions tell the options apart.
//! Answers always use the caller's own keys.

pub mod rules;

use std::borrow::Cow;

use super::layout::{Layout, NoulStyle};
use super::state::{compact_text, write_quoted};
use crate::json::Json;
use crate::question::{ChoiceOption, Kind};
use rules::KeyRules;

/// Whether a described option's key is shown too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// Only where the descriptions do not tell the options apart.
    WhereNeeded,
    /// Always, unless the keys are a mere enumeration (`option_1`, `option_2`).
    Beside,
    /// As decisio's rules say, all texts as they were sent.
    Rules(KeyRules),
}

impl Keys {
    /// What a side of a noul means, where the request says so.
    pub fn meaning(self, criterion: Option<&Json>) -> Option<String> {
        match self {
            Self::WhereNeeded | Self::Beside => meaning(criterion),
            Self::Rules(_) => rules::sent_meaning(criterion),
        }
    }
}

/// The texts shown for a question's options, by option index; but for [`Keys::Rules`] never blank,
/// and distinct for a choice.
pub fn shown_texts(layout: &Layout, kind: &Kind) -> Vec<String> {
    match layout.keys {
        Keys::WhereNeeded => texts(kind, false),
        Keys::Beside => texts(kind, true),
        Keys::Rules(rules) => texts_by(rules, kind, layout.noul),
    }
}

/// The texts of what a question's labels stand for, by option index: [`shown_texts`], and nothing
/// for a noul that is asked by words.
pub fn shown(layout: &Layout, kind: &Kind) -> Vec<String> {
    match layout.noul.words(kind) {
        Some(_) => Vec::new(),
        None => shown_texts(layout, kind),
    }
}

fn texts_by(rules: KeyRules, kind: &Kind, noul: NoulStyle) -> Vec<String> {
    match kind {
        Kind::Noul { when_true, when_false } => {
            let named = noul.names_sides(kind);
            rules::side_texts(when_true.as_ref(), when_false.as_ref(), named).into()
        }
        Kind::Choice { options } => rules.choice_texts(options),
        Kind::Score { levels } => {
            levels.iter().map(|level| rules::sent_text(Some(level)).into_owned()).collect()
        }
    }
}

fn texts(kind: &Kind, beside: bool) -> Vec<String> {
    match kind {
        Kind::Noul { when_true, when_false } => {
            vec![sided("No", when_false.as_ref()), sided("Yes", when_true.as_ref())]
        }
        Kind::Choice { options } => choice_texts(options, beside),
        Kind::Score { levels } => levels.iter().map(|level| or_quotes(one_line(level))).collect(),
    }
}

/// What a side of a noul means, where the request says so.
fn meaning(criterion: Option<&Json>) -> Option<String> {
    let json = criterion.filter(|json| **json != Json::Null)?;
    Some(one_line(json)).filter(|text| !text.is_empty())
}

fn sided(name: &str, criterion: Option<&Json>) -> String {
    meaning(criterion).map_or_else(|| name.to_owned(), |text| format!("{name}: {text}"))
}

/// The ladder for a choice: the first of these whose texts are not blank and tell all options apart.
///
/// 1. descriptions alone, and keys where there is none, words joined by `_` as words;
/// 2. `key: description`, or `key`;
/// 3. the same with the keys quoted as JSON strings, which differ where the keys do.
///
/// [`Keys::Beside`] begins at 2, unless nothing would be lost by 1.
fn choice_texts(options: &[ChoiceOption], beside: bool) -> Vec<String> {
    let described: Vec<(&str, Option<String>)> = options
        .iter()
        .map(|option| (option.key.as_str(), meaning(option.description.as_ref())))
        .collect();
    let undescribed = described.iter().all(|(_, text)| text.is_none());
    if !beside || undescribed || is_enumeration(&described) {
        let alone: Vec<String> = described
            .iter()
            .map(|(key, text)| text.clone().unwrap_or_else(|| collapse(&as_words(key))))
            .collect();
        if tell_apart(&alone) {
            return alone;
        }
    }
    let keyed: Vec<String> =
        described.iter().map(|(key, text)| with_key(&collapse(key), text.as_deref())).collect();
    if tell_apart(&keyed) {
        return keyed;
    }
    described.iter().map(|(key, text)| with_key(&quote(key), text.as_deref())).collect()
}

/// Whether the keys only count: two or more, all described, one stem, and the numbers 0..n-1 or
/// 1..n in any order.
fn is_enumeration(described: &[(&str, Option<String>)]) -> bool {
    let counted = |(key, text): &(&str, Option<String>)| {
        text.as_ref().and_then(|_| numbered(key)).map(|(stem, number)| (number, stem))
    };
    let Some(mut counts) = described.iter().map(counted).collect::<Option<Vec<_>>>() else {
        return false;
    };
    counts.sort();
    let from = counts.first().map_or(0, |(number, _)| *number);
    let in_step = counts.iter().zip(from..).all(|((number, _), expected)| *number == expected);
    counts.len() >= 2 && from <= 1 && in_step && counts.iter().all(|(_, s)| *s == counts[0].1)
}

/// A key's stem in lower case and its number: letters, at most one of `_`, `-`, space, then digits.
fn numbered(key: &str) -> Option<(String, usize)> {
    let stem = key.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = key[stem.len()..].parse().ok()?;
    let letters = stem.strip_suffix(['_', '-', ' ']).unwrap_or(stem);
    let is_stem = letters.bytes().all(|b| b.is_ascii_alphabetic())
        && (stem.len() == letters.len() || !letters.is_empty());
    is_stem.then(|| (stem.to_ascii_lowercase(), number))
}

fn with_key(key: &str, description: Option<&str>) -> String {
    description.map_or_else(|| key.to_owned(), |text| format!("{key}: {text}"))
}

fn tell_apart(texts: &[String]) -> bool {
    texts.iter().all(|text| !text.is_empty()) && are_distinct(texts)
}

fn are_distinct(texts: &[String]) -> bool {
    let mut sorted: Vec<&str> = texts.iter().map(String::as_str).collect();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair[0] != pair[1])
}

/// Lower-case words joined by `_` as words; anything else as it is.
fn as_words(key: &str) -> Cow<'_, str> {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase());
    if key.contains('_') && key.split('_').all(is_word) {
        Cow::Owned(key.replace('_', " "))
    } else {
        Cow::Borrowed(key)
    }
}

fn one_line(json: &Json) -> String {
    collapse(&compact_text(json))
}

/// Trims, and replaces each run of line breaks by one space: an option is one line.
fn collapse(text: &str) -> String {
    let lines = text.split(['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}']);
    let mut one = String::new();
    for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
        one.push_str(if one.is_empty() { "" } else { " " });
        one.push_str(line);
    }
    one
}

fn quote(text: &str) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_quoted(&mut out, text);
    out
}

fn or_quotes(text: String) -> String {
    if text.is_empty() { "\"\"".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Json {
        Json::String(text.to_owned())
    }

    /// A choice from `key` or `key=description` items.
    fn choice(items: &[&str]) -> Kind {
        let option = |item: &&str| {
            let (key, text) = item.split_once('=').map_or((*item, None), |(k, d)| (k, Some(d)));
            ChoiceOption { key: key.to_owned(), description: text.map(string) }
        };
        Kind::Choice { options: items.iter().map(option).collect() }
    }

    fn needed(items: &[&str]) -> Vec<String> {
        texts(&choice(items), false)
    }

    fn beside(items: &[&str]) -> Vec<String> {
        texts(&choice(items), true)
    }

    #[test]
    fn bare_keys_are_shown_as_words() {
        // Recorded from decisio 0.11.1, as the other option texts of these tests.
        let keys = ["billing", "card_arrival", "Refund_not_x"];
        assert_eq!(needed(&keys), ["billing", "card arrival", "Refund_not_x"]);
        assert_eq!(beside(&keys), ["billing", "card arrival", "Refund_not_x"]);
        assert_eq!(needed(&["a_", "_b", "c__d", "e2_f"]), ["a_", "_b", "c__d", "e2_f"]);
    }

    #[test]
    fn a_description_is_shown_alone_or_beside_its_key() {
        let described = ["billing=Money", "access=Login"];
        assert_eq!(needed(&described), ["Money", "Login"]);
        assert_eq!(beside(&described), ["billing: Money", "access: Login"]);
    }

    #[test]
    fn an_option_without_description_shows_its_key() {
        let mixed = ["low_prio", "medium=Degraded", "empty= "];
        assert_eq!(needed(&mixed), ["low prio", "Degraded", "empty"]);
        assert_eq!(beside(&mixed), ["low_prio", "medium: Degraded", "empty"]);
    }

    #[test]
    fn other_descriptions_than_strings_are_compact_json() {
        let outage = Json::Array(vec![string("outage"), Json::Null]);
        let option = |key: &str, description| ChoiceOption { key: key.to_owned(), description };
        let options = vec![option("high", Some(outage)), option("none", Some(Json::Null))];
        let shown = texts(&Kind::Choice { options }, false);
        assert_eq!(shown, ["[\"outage\",null]", "none"]);
    }

    #[test]
    fn equal_descriptions_bring_the_keys_back() {
        assert_eq!(needed(&["a=Same", "b=Same"]), ["a: Same", "b: Same"]);
        assert_eq!(needed(&["x y", "x_y"]), ["x y", "x_y"], "not twice `x y`");
    }

    #[test]
    fn an_enumeration_of_keys_is_not_shown() {
        assert_eq!(
            beside(&["option_0=card arrival", "option_1=top up"]),
            ["card arrival", "top up"]
        );
        assert_eq!(beside(&["2=two", "1=one", "3=three"]), ["two", "one", "three"]);
        assert_eq!(beside(&["sku_12=Red", "sku_14=Blue"]), ["sku_12: Red", "sku_14: Blue"]);
        assert_eq!(beside(&["a1=x", "b2=y"]), ["a1: x", "b2: y"], "two stems");
        assert_eq!(beside(&["1=x"]), ["1: x"], "one option counts nothing");
        assert_eq!(beside(&["x1=x", "x2"]), ["x1: x", "x2"], "not all are described");
        assert_eq!(beside(&["_1=x", "_2=y"]), ["_1: x", "_2: y"], "a sign is no stem");
    }

    #[test]
    fn options_without_text_can_still_be_told_apart() {
        assert_eq!(needed(&["", " "]), ["\"\"", "\" \""]);
        assert_eq!(needed(&["", "\"\""]), ["\"\"", "\"\\\"\\\"\""]);
        assert_eq!(needed(&["a\nb", "a b"]), ["\"a\\nb\"", "\"a b\""]);
    }

    #[test]
    fn an_option_is_one_line() {
        assert_eq!(
            needed(&["k= first \r\n\n second\u{2028}third\n", "l=x"])[0],
            "first second third"
        );
        let levels = vec![string("low\nest"), string("\n"), Json::Number("2".to_owned())];
        let shown = texts(&Kind::Score { levels }, false);
        assert_eq!(shown, ["low est", "\"\"", "2"]);
    }

    #[test]
    fn a_noul_names_its_sides_and_what_they_mean() {
        let plain = Kind::Noul { when_true: None, when_false: Some(Json::Null) };
        assert_eq!(texts(&plain, false), ["No", "Yes"]);
        let told =
            Kind::Noul { when_true: Some(string("Money back")), when_false: Some(string("Else")) };
        assert_eq!(texts(&told, false), ["No: Else", "Yes: Money back"]);
    }
}
