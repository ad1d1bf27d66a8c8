//! The key by which a request is routed: the one that it was sent with, else one made from its body.
//!
//! A gateway has no tokenizer and no tenants. Its keys are made from what was sent: the key of the client (the
//! one that says who asks, not of a state), the sub-tenant and salt that keep states apart, and the state
//! itself without what JSON lets vary, its white space and its escapes. So a state that is sent twice has one key
//! if it would be one text to the model, and what is no JSON has a key of its bytes.

use axum::http::HeaderMap;

use super::route::About;
use crate::http::one_value;
use crate::json::{Json, Limits};
use crate::state_key::{HEADER, Secret, StateKey};

/// Members of a body that are the state, or stand before it in a prompt.
const STATES: [&str; 4] = ["context", "state", "states", "input"];

/// Headers by which states of one tenant are kept apart.
const APART: [&str; 2] = ["x-gateway-inference-fairness-id", "x-docket-salt"];

/// The key that a request was sent with.
pub(super) fn sent(headers: &HeaderMap) -> Option<StateKey> {
    one_value(headers, HEADER).ok().flatten()?.to_str().ok()?.parse().ok()
}

/// The key of what a request is about, made from the request; `None` where it is about nothing.
///
/// * `text`: its body, decompressed.
pub(super) fn made(
    secret: &Secret,
    headers: &HeaderMap,
    about: About,
    text: &[u8],
) -> Option<StateKey> {
    let mut parts: Vec<&[u8]> = vec![b"gateway", credential(headers)];
    parts.extend(APART.map(|name| value(headers, name)));
    let states;
    match about {
        About::Nothing | About::Pin => return None,
        About::Tasks => parts.push(b"tasks"),
        About::State | About::States => {
            states = stated(text);
            for (name, state) in &states {
                parts.extend([name.as_bytes(), state.as_bytes()]);
            }
            if states.is_empty() {
                parts.extend([b"body", text]);
            }
        }
    }
    Some(secret.key(&parts))
}

/// The members that are about the state, each as compact JSON; none of what is no JSON object.
fn stated(text: &[u8]) -> Vec<(&'static str, String)> {
    let Ok(json) = Json::parse(text, Limits::default()) else { return Vec::new() };
    let found = STATES.iter().filter_map(|name| Some((*name, json.get(name)?.compact())));
    found.collect()
}

/// What says who asks, by either header.
fn credential(headers: &HeaderMap) -> &[u8] {
    let bearer = value(headers, "authorization");
    let token = bearer.split_at_checked("bearer ".len());
    let token = token.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    match token {
        Some((_, token)) => token.trim_ascii(),
        None if bearer.is_empty() => value(headers, "x-api-key"),
        None => bearer,
    }
}

/// The one value of a header; empty where there is none, or two of which a backend will take none.
fn value<'h>(headers: &'h HeaderMap, name: &'static str) -> &'h [u8] {
    let found = one_value(headers, name).ok().flatten();
    found.map_or(b"", |value| value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(headers: &[(&'static str, &str)], about: About, text: &str) -> Option<StateKey> {
        let headers =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
        made(&Secret::of(b"the secret of a test"), &headers.collect(), about, text.as_bytes())
    }

    fn of_state(text: &str) -> Option<StateKey> {
        of(&[], About::State, text)
    }

    #[test]
    fn a_state_has_one_key_whatever_is_asked_and_however_it_is_written() {
        let key = of_state(r#"{"state":{"a":"é","b":[1.0]},"questions":{"q":{"type":"noul"}}}"#);
        for same in [
            r#"{"questions":{"other":{"type":"noul"}},"state":{"a":"é","b":[1.0]}}"#,
            r#"{ "state" : { "a" : "\u00e9", "b" : [ 1.0 ] } , "samples" : 4 }"#,
        ] {
            assert_eq!(of_state(same), key, "{same}");
        }
        for other in [
            r#"{"state":{"b":[1.0],"a":"é"}}"#,
            r#"{"state":{"a":"é","b":[1]}}"#,
            r#"{"state":{"a":"é","b":[1.0]},"context":"c"}"#,
            r#"{"input":{"a":"é","b":[1.0]}}"#,
        ] {
            assert_ne!(of_state(other), key, "another text to the model: {other}");
        }
    }

    #[test]
    fn who_asks_is_in_the_key_and_how_the_key_is_sent_is_not() {
        let body = r#"{"state":"s"}"#;
        let of = |headers: &[(&'static str, &str)]| of(headers, About::State, body);
        let key = of(&[("authorization", "Bearer k")]);
        assert_eq!(of(&[("authorization", "bearer  k")]), key);
        assert_eq!(of(&[("x-api-key", "k")]), key);
        for other in [
            &[("x-api-key", "l")][..],
            &[("authorization", "Basic k")],
            &[("x-api-key", "k"), ("x-docket-salt", "s")],
            &[("x-api-key", "k"), ("x-gateway-inference-fairness-id", "s")],
            &[],
        ] {
            assert_ne!(of(other), key, "{other:?}");
        }
    }

    #[test]
    fn what_is_no_json_has_the_key_of_its_bytes() {
        assert_eq!(of_state("--form"), of_state("--form"));
        assert_ne!(of_state("--form"), of_state("--from"));
        assert_ne!(of_state(r#"{"questions":{}}"#), of_state("{}"));
    }

    #[test]
    fn tasks_of_a_key_are_together_and_what_is_about_nothing_has_no_key() {
        assert_eq!(of(&[], About::Tasks, "a"), of(&[], About::Tasks, "b"));
        assert_ne!(of(&[], About::Tasks, ""), of(&[("x-api-key", "k")], About::Tasks, ""));
        assert_eq!(of(&[], About::Nothing, "a"), None);
        assert_eq!(of(&[], About::Pin, "a"), None);
    }

    #[test]
    fn a_key_that_was_sent_is_taken_where_it_is_one() {
        let sent = |values: &[&str]| {
            let pairs =
                values.iter().map(|value| (HEADER.parse().unwrap(), value.parse().unwrap()));
            sent(&pairs.collect())
        };
        assert_eq!(sent(&["00000000000000ff"]), Some(StateKey(255)));
        assert_eq!(sent(&["00000000000000ff", "00000000000000ff"]), Some(StateKey(255)));
        assert_eq!(sent(&["00000000000000ff", "00000000000000fe"]), None);
        assert_eq!(sent(&["ff"]), None);
        assert_eq!(sent(&[]), None);
    }
}
