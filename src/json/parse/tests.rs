//! The parser against `serde_json`, against every fault of the case list, and against the clock.

use proptest::prelude::*;

use super::super::{DEPTH_MAX, Json, Limits};
use crate::error::{Problem, Step};

fn parse(text: &[u8]) -> Result<Json, Problem> {
    Json::parse(text, Limits::default())
}

fn fault(text: &[u8]) -> Problem {
    parse(text).unwrap_err()
}

fn number(spelling: &str) -> Json {
    Json::Number(spelling.to_owned())
}

#[test]
fn numbers_keep_their_spelling() {
    for spelling in ["0", "-0", "1.50", "1E+2", "1e-400", "123456789012345678901234567890"] {
        assert_eq!(parse(spelling.as_bytes()), Ok(number(spelling)));
    }
    for spelling in ["01", "+1", ".5", "1.", "1e", "-", "0x1", "1_000"] {
        assert_eq!(fault(spelling.as_bytes()).code, "json_invalid", "{spelling}");
    }
}

#[test]
fn case_39_nul_is_kept() {
    assert_eq!(parse(br#""yes\u0000 no""#), Ok(Json::String("yes\0 no".to_owned())));
}

#[test]
fn case_37_bad_utf8_is_refused_by_offset_without_an_echo() {
    let problem = fault(b"{\"state\":\"\xff\"}");
    assert_eq!(problem.code, "json_invalid");
    assert_eq!(problem.message, "not UTF-8 at byte 10");
}

#[test]
fn case_38_a_lone_surrogate_names_its_field() {
    for text in [
        r#"{"state":{"a":["x","\ud800"]}}"#,
        r#"{"state":{"a":["x","\ud800\u0041"]}}"#,
        r#"{"state":{"a":["x","\udc00"]}}"#,
    ] {
        let problem = fault(text.as_bytes());
        assert_eq!(problem.code, "lone_surrogate");
        assert_eq!(problem.path, vec![Step::from("state"), "a".into(), 1.into()]);
    }
    assert_eq!(parse(br#""\ud83d\ude00""#), Ok(Json::String("😀".to_owned())));
}

#[test]
fn case_40_depth_is_limited_before_the_stack_is() {
    let nested = |depth: usize| [vec![b'['; depth], vec![b']'; depth]].concat();
    assert!(parse(&nested(DEPTH_MAX)).is_ok());
    assert_eq!(fault(&nested(DEPTH_MAX + 1)).code, "json_depth");
    assert_eq!(fault(&nested(10_000)).code, "json_depth");
    assert_eq!(fault(&b"{\"a\":".repeat(10_000)).code, "json_depth");
}

#[test]
fn case_41_duplicate_keys_are_refused() {
    let problem = fault(br#"{"questions":{"a":1,"b":{"c":1,"\u0063":2}}}"#);
    assert_eq!(problem.code, "duplicate_key");
    assert_eq!(problem.path, vec![Step::from("questions"), "b".into(), "c".into()]);
    let many: Vec<String> = (0..1_000).map(|i| format!("\"k{i}\":0")).collect();
    assert!(parse(format!("{{{}}}", many.join(",")).as_bytes()).is_ok());
    for again in ["k0", "k15", "k16", "k999"] {
        let text = format!("{{{},\"{again}\":1}}", many.join(","));
        assert_eq!(fault(text.as_bytes()).path, vec![Step::from(again)]);
    }
}

#[test]
fn faults_say_where() {
    for (text, message) in [
        ("", "empty body, expected a JSON value"),
        (" \n", "empty body, expected a JSON value"),
        ("{} x", "unexpected text after the JSON value at byte 3"),
        ("[NaN]", "NaN and Infinity are not JSON: found one at byte 1"),
        ("-Infinity", "NaN and Infinity are not JSON: found one at byte 1"),
        ("[1,]", "expected a JSON value at byte 3"),
        ("{\"a\" 1}", "expected a colon after a key at byte 5"),
        ("{\"a\":1,}", "expected a key in double quotes at byte 7"),
        ("[1 2]", "expected a comma or the array's end at byte 3"),
        ("\"a\nb\"", "a control character must be escaped: found one at byte 2"),
        ("\"a", "the text ends inside a string at byte 2"),
        ("\"\\x\"", "unknown escape at byte 1"),
        ("\"\\u12g4\"", "expected four hexadecimal digits after the escape at byte 1"),
        ("nul", "expected true, false or null at byte 0"),
        ("\u{feff}1", "expected a JSON value at byte 0"),
    ] {
        let problem = fault(text.as_bytes());
        assert_eq!((problem.code, problem.message.as_str()), ("json_invalid", message));
    }
}

#[test]
fn the_number_of_values_is_limited() {
    let limits = Limits { values_max: 4, ..Limits::default() };
    assert!(Json::parse(b"[1,2,3]", limits).is_ok());
    assert_eq!(Json::parse(b"[1,2,3,4]", limits).unwrap_err().code, "json_size");
}

/// Quadratic work on these would take minutes.
#[test]
fn a_body_of_32_mib_is_parsed_whole() {
    let size = 32 << 20;
    let string = format!("\"{}\"", "x".repeat(size));
    let escapes = format!("\"{}\"", "\\n\\u00e9".repeat(size / 8));
    let keys: Vec<String> = (0..999_999).map(|i| format!("\"{i:025}\":1")).collect();
    let object = format!("{{{}}}", keys.join(","));
    for text in [string, escapes, object] {
        assert!(parse(text.as_bytes()).is_ok());
    }
}

/// Text of the JSON alphabet: near enough to JSON that many texts are.
fn json_like() -> impl Strategy<Value = String> {
    let token = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\"a\"", "\"b\"", "1", "-", "0", ".5", "e3", "true",
        "null", " ", "\\", "\\n", "\\u0041", "\\ud800", "\\udc00", "é", "\n", "\"k\":",
    ]);
    prop::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

/// A whole JSON value with distinct keys.
fn value() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i64>().prop_map(|n| Json::Number(n.to_string())),
        any::<String>().prop_map(Json::String),
    ];
    leaf.prop_recursive(4, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Json::Array),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_bytes_give_a_value_or_a_fault(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(&bytes);
    }

    /// What serde_json accepts is accepted, but for duplicate keys.
    #[test]
    fn accepts_what_serde_json_accepts(text in json_like()) {
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        match parse(text.as_bytes()) {
            Ok(_) => prop_assert!(theirs.is_ok(), "{text}"),
            Err(problem) => prop_assert!(
                theirs.is_err() || problem.code == "duplicate_key", "{text}: {problem:?}"
            ),
        }
    }

    #[test]
    fn what_is_written_is_read_back(value in value()) {
        prop_assert_eq!(parse(value.compact().as_bytes()), Ok(value.clone()));
        prop_assert_eq!(parse(value.spaced().as_bytes()), Ok(value));
    }

    #[test]
    fn reads_the_same_value_as_serde_json(value in value()) {
        let text = value.compact();
        let theirs: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(serde_json::to_string(&theirs).unwrap(), text);
    }
}
