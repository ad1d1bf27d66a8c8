//! Option texts by rules that can be switched off one by one, as decisio's flags name them.
//!
//! These texts are what was sent, line breaks and all: tasks fitted under decisio are found by them,
//! and its clients know them. Numbers in a key are ASCII digits.

use std::borrow::Cow;

use super::{are_distinct, as_words, is_enumeration, with_key};
use crate::json::Json;
use crate::prompt::state::compact_text;
use crate::question::{ChoiceOption, Kind};

/// Which rules say how a choice's options are shown; a noul's and a score's are shown by none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRules {
    /// Keys that only count (`option_1`, `option_2`), all of them described, are not shown.
    pub hide_index: bool,
    /// A description is shown without its key, where that tells the options apart.
    pub describe: bool,
    /// A label of lower-case words joined by `_` is shown with spaces.
    pub desnake: bool,
}

impl KeyRules {
    /// The texts of a choice's options. The first that holds:
    ///
    /// 1. `hide_index`, and the keys only count: the descriptions;
    /// 2. no option is described: the keys;
    /// 3. `describe`, and all texts differ: the descriptions, and the keys of those without;
    /// 4. `key: description`, and the keys of those without.
    ///
    /// `desnake` rewrites what is shown by 1 and 2, and the keys that are shown by 3. Only 3 makes
    /// sure that texts differ.
    pub fn choice_texts(self, options: &[ChoiceOption]) -> Vec<String> {
        let described: Vec<(&str, Option<String>)> = options
            .iter()
            .map(|option| (option.key.as_str(), description(option).map(Cow::into_owned)))
            .collect();
        if let Some(labels) = self.bare_labels(&described) {
            return labels;
        }
        let alone: Vec<String> = described
            .iter()
            .map(|(key, text)| text.clone().unwrap_or_else(|| self.label(key)))
            .collect();
        if self.describe && are_distinct(&alone) {
            return alone;
        }
        described.iter().map(|(key, text)| with_key(key, text.as_deref())).collect()
    }

    /// Rules 1 and 2.
    fn bare_labels(self, described: &[(&str, Option<String>)]) -> Option<Vec<String>> {
        let is_blank = |text: &Option<String>| text.as_ref().is_some_and(|t| t.trim().is_empty());
        let hides = self.hide_index
            && !described.iter().any(|(_, text)| is_blank(text))
            && is_enumeration(described);
        let is_bare = hides || described.iter().all(|(_, text)| text.is_none());
        is_bare.then(|| {
            described.iter().map(|(key, text)| self.label(text.as_deref().unwrap_or(key))).collect()
        })
    }

    fn label(self, text: &str) -> String {
        if self.desnake { as_words(text).into_owned() } else { text.to_owned() }
    }

    /// Whether `describe` changes how these options are shown.
    pub fn describes(self, options: &[ChoiceOption]) -> bool {
        let without = Self { describe: false, ..self };
        self.describe && self.choice_texts(options) != without.choice_texts(options)
    }
}

/// A value as it was sent: nothing for null, a string as it is, else compact JSON.
pub fn sent_text(value: Option<&Json>) -> Cow<'_, str> {
    match value {
        None | Some(Json::Null) => Cow::Borrowed(""),
        Some(json) => compact_text(json),
    }
}

/// The texts of a noul's sides, no before yes.
///
/// * `named`: whether the name stands before what a side means, and not only where that is not said.
pub fn side_texts(when_true: Option<&Json>, when_false: Option<&Json>, named: bool) -> [String; 2] {
    let side = |name: &str, criterion: Option<&Json>| match sent_meaning(criterion) {
        Some(text) if named => with_key(name, Some(&text)),
        Some(text) => text,
        None => name.to_owned(),
    };
    [side("No", when_false), side("Yes", when_true)]
}

/// Whether a noul's sides would read the same without their names.
pub fn sides_read_alike(kind: &Kind) -> bool {
    let Kind::Noul { when_true, when_false } = kind else { return false };
    let [no, yes] = side_texts(when_true.as_ref(), when_false.as_ref(), false);
    no == yes
}

/// What a side of a noul means, where that is said.
pub fn sent_meaning(criterion: Option<&Json>) -> Option<String> {
    let text = sent_text(criterion);
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// An option's description; an empty one is none.
fn description(option: &ChoiceOption) -> Option<Cow<'_, str>> {
    Some(sent_text(option.description.as_ref())).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: KeyRules = KeyRules { hide_index: true, describe: true, desnake: true };

    fn options(items: &[&str]) -> Vec<ChoiceOption> {
        let option = |item: &&str| {
            let (key, text) = item.split_once('=').map_or((*item, None), |(k, d)| (k, Some(d)));
            let description = text.map(|text| Json::String(text.to_owned()));
            ChoiceOption { key: key.to_owned(), description }
        };
        items.iter().map(option).collect()
    }

    fn texts(rules: KeyRules, items: &[&str]) -> Vec<String> {
        rules.choice_texts(&options(items))
    }

    #[test]
    fn each_rule_can_be_switched_off() {
        let counted = ["option_0=card_arrival", "option_1=top up"];
        assert_eq!(texts(ALL, &counted), ["card arrival", "top up"]);
        let shown = KeyRules { hide_index: false, ..ALL };
        assert_eq!(texts(shown, &counted), ["card_arrival", "top up"], "described");
        let keyed = KeyRules { describe: false, ..shown };
        assert_eq!(texts(keyed, &counted), ["option_0: card_arrival", "option_1: top up"]);
        let snake = KeyRules { desnake: false, ..ALL };
        assert_eq!(texts(snake, &counted), ["card_arrival", "top up"]);
        assert_eq!(texts(snake, &["low_prio", "high"]), ["low_prio", "high"]);
    }

    #[test]
    fn texts_are_what_was_sent() {
        assert_eq!(texts(ALL, &["k= two\nlines ", "l_m"]), [" two\nlines ", "l m"]);
        assert_eq!(texts(ALL, &["k= ", "l="]), [" ", "l"], "only nothing is no description");
        assert_eq!(texts(ALL, &["k_1= ", "k_2=x"]), [" ", "x"]);
        let keyed = KeyRules { describe: false, ..ALL };
        assert_eq!(texts(keyed, &["k_1= ", "k_2=x"]), ["k_1:  ", "k_2: x"], "not all described");
    }

    #[test]
    fn equal_texts_bring_the_keys_back_unless_they_only_count() {
        assert_eq!(texts(ALL, &["x y=", "x_y", "z=Same"]), ["x y", "x_y", "z: Same"]);
        assert_eq!(texts(ALL, &["a1=Same", "a2=Same"]), ["Same", "Same"]);
    }

    #[test]
    fn what_describe_changes_is_known() {
        assert!(ALL.describes(&options(&["billing=Money", "access"])));
        assert!(!ALL.describes(&options(&["billing", "access"])), "nothing is described");
        assert!(!ALL.describes(&options(&["a=Same", "b=Same"])), "it does not tell apart");
        assert!(!ALL.describes(&options(&["1=one", "2=two"])), "shown so without it");
        let off = KeyRules { describe: false, ..ALL };
        assert!(!off.describes(&options(&["billing=Money", "access"])));
    }

    #[test]
    fn sides_without_meaning_keep_their_names() {
        let text = |text: &str| Some(Json::String(text.to_owned()));
        let (late, blank) = (text(" late "), text(" \n"));
        assert_eq!(side_texts(late.as_ref(), blank.as_ref(), false), ["No", "late"]);
        assert_eq!(side_texts(late.as_ref(), blank.as_ref(), true), ["No", "Yes: late"]);
        let noul = |when_true, when_false| Kind::Noul { when_true, when_false };
        assert!(sides_read_alike(&noul(text("x"), text("x "))));
        assert!(sides_read_alike(&noul(text("No"), None)));
        assert!(!sides_read_alike(&noul(None, None)));
        assert!(!sides_read_alike(&Kind::Choice { options: options(&["No", "No "]) }));
    }
}
