//! Identities of questions: the hashes by which tasks and abstention find the questions they are for.
//!
//! They are decisio's: SHA-256 in lower-case hex of a JSON text with `", "` and `": "` and without
//! escapes that JSON does not need. Its `criteria` of a noul, where present without either side, are
//! hashed as absent ones, for both ask the same. A layout of ours has no rendering of its own in
//! them: a task is fitted under a layout's id anyway.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::layout::{Layout, NoulStyle};
use super::options::Keys;
use super::options::rules::sent_text;
use crate::json::Json;
use crate::question::{ChoiceOption, Kind, Question};

/// The rendering of a choice that [`KeyRules::describe`](super::options::rules::KeyRules::describe)
/// changes.
pub const DESCRIBED: &str = "describe_options";

/// What a layout does to a question beside showing what was sent, as it is part of a task's key.
pub fn rendering(layout: &Layout, kind: &Kind) -> Option<&'static str> {
    match (kind, layout.keys, layout.noul) {
        (Kind::Choice { .. }, Keys::Rules(_), _) => described(layout, kind),
        (Kind::Noul { .. }, Keys::Rules(_), NoulStyle::Sides { .. }) => {
            let by_letters = layout.noul.words(kind).is_none();
            let name = if layout.noul.names_sides(kind) { "letters-keys" } else { "letters" };
            by_letters.then_some(name)
        }
        _ => None,
    }
}

/// The key of the task that a question is of: its options in order and, but for a choice, its
/// instructions, as this layout shows them.
pub fn task_key(layout: &Layout, question: &Question) -> String {
    task_key_in(rendering(layout, &question.kind), question)
}

/// The key of the task that a question is of in a rendering ([`rendering`]).
pub fn task_key_in(rendering: Option<&str>, question: &Question) -> String {
    let asked = ("instructions", string(&sent_text(question.instructions.as_ref())));
    let mut members = match &question.kind {
        Kind::Choice { options } => {
            vec![("options", Json::Array(options.iter().map(pair).collect()))]
        }
        Kind::Score { levels } => vec![asked, ("options", Json::Array(texts(levels)))],
        Kind::Noul { when_true: None, when_false: None } => vec![("criteria", Json::Null), asked],
        Kind::Noul { when_true, when_false } => {
            let sides = [when_true, when_false];
            let texts = sides.map(|side| string(&sent_text(side.as_ref())));
            vec![("criteria", Json::Array(texts.into())), asked]
        }
    };
    members.extend(rendering.map(|name| ("rendering", string(name))));
    members.push(("type", string(question.kind.name())));
    digest(members)
}

/// The identity of a choice's options in any order, as this layout shows them; all nouls have the
/// same, and all scores.
pub fn option_set(layout: &Layout, kind: &Kind) -> String {
    option_set_in(described(layout, kind), kind)
}

/// The identity of a choice's options in a rendering: [`DESCRIBED`] or none.
pub fn option_set_in(rendering: Option<&str>, kind: &Kind) -> String {
    let criteria = match kind {
        Kind::Choice { options } => Json::Array(by_key(options).into_iter().map(pair).collect()),
        Kind::Noul { .. } | Kind::Score { .. } => Json::Null,
    };
    let mut members = vec![("type", string(kind.name())), ("criteria", criteria)];
    members.extend(rendering.map(|name| ("rendering", string(name))));
    digest(members)
}

/// The identity of a choice's keys in any order, whatever they mean.
pub fn option_keys(kind: &Kind) -> String {
    let keys = match kind {
        Kind::Choice { options } => {
            Json::Array(by_key(options).into_iter().map(|option| string(&option.key)).collect())
        }
        Kind::Noul { .. } | Kind::Score { .. } => Json::Null,
    };
    digest(vec![("type", string(kind.name())), ("keys", keys)])
}

fn described(layout: &Layout, kind: &Kind) -> Option<&'static str> {
    match (layout.keys, kind) {
        (Keys::Rules(rules), Kind::Choice { options }) => {
            rules.describes(options).then_some(DESCRIBED)
        }
        _ => None,
    }
}

/// By code point, which is the order of UTF-8's bytes.
fn by_key(options: &[ChoiceOption]) -> Vec<&ChoiceOption> {
    let mut sorted: Vec<&ChoiceOption> = options.iter().collect();
    sorted.sort_unstable_by(|a, b| a.key.cmp(&b.key));
    sorted
}

fn pair(option: &ChoiceOption) -> Json {
    Json::Array(vec![string(&option.key), string(&sent_text(option.description.as_ref()))])
}

fn texts(values: &[Json]) -> Vec<Json> {
    values.iter().map(|value| string(&sent_text(Some(value)))).collect()
}

fn string(text: &str) -> Json {
    Json::String(text.to_owned())
}

fn digest(members: Vec<(&str, Json)>) -> String {
    let members = members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    hex_of(&Json::Object(members).spaced())
}

fn hex_of(text: &str) -> String {
    Sha256::digest(text).iter().fold(String::new(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_sorted_by_code_point_and_hashed_without_escapes_that_json_does_not_need() {
        let option = |key: &str| ChoiceOption { key: key.to_owned(), description: None };
        let options = ["\u{1f600}", "\u{ffee}", "é\n\u{7f}"].map(option).into();
        // Python's hashlib over json.dumps(..., ensure_ascii=False) of the sorted keys.
        let expected = "b834e3e6af825e32959212515356d38811dbbe5df6e1029cad22947becec2d74";
        assert_eq!(option_keys(&Kind::Choice { options }), expected);
    }

    #[test]
    fn a_nouls_key_has_both_sides_where_one_is_told() {
        let noul = |when_true: Option<&str>| {
            let kind = Kind::Noul { when_true: when_true.map(string), when_false: None };
            Question::new("q".to_owned(), kind, None)
        };
        let key = |when_true| task_key_in(None, &noul(when_true));
        let told = r#"{"criteria": ["x", ""], "instructions": "", "type": "noul"}"#;
        assert_eq!(key(Some("x")), hex_of(told));
        assert_ne!(key(Some("x")), key(None));
    }
}
