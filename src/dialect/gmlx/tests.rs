//! Decoding and encoding against what gmlx 0.5.3 was recorded to do.

mod answers;
mod fuzz;

use std::collections::BTreeMap;
use std::time::Duration;

use actors::Lane;
use serde_json::{Value as Wire, json};

use crate::dialect::problem::{Fault, FullStatus};
use crate::dialect::{Decoded, Dialect, RequestLimits, Undecoded};
use crate::error::DecideError;
use crate::json::{Json, Limits};
use crate::question::{Adaptive, Decision, Samples};

/// What gmlx 0.5.3's own functions gave.
const RECORDED: &str = include_str!("../../../tests/conformance/data/gmlx.json");

fn recorded() -> Wire {
    serde_json::from_str(RECORDED).unwrap()
}

fn parsed(body: &Wire) -> Json {
    Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap()
}

fn decode(body: &Wire) -> Result<Decoded<Decision>, Undecoded> {
    Dialect::Gmlx.decision(parsed(body), &RequestLimits::default())
}

fn accepted(body: &Wire) -> Decision {
    decode(body).unwrap().request
}

/// Status, type and message of a refusal.
fn refused(fault: impl Into<Fault>) -> (u16, String, String) {
    let refusal = Dialect::Gmlx.refusal(&fault.into(), FullStatus::default());
    let body: Wire = serde_json::from_str(&refusal.body).unwrap();
    let text = |name: &str| body["error"][name].as_str().unwrap().to_owned();
    (refusal.status, text("type"), text("message"))
}

fn fault(body: &Wire) -> (u16, String, String) {
    refused(DecideError::Invalid(decode(body).unwrap_err().faults))
}

fn noul() -> Wire {
    json!({"type": "noul", "instructions": "Is it?"})
}

fn asked(questions: &Wire) -> Wire {
    json!({"state": "s", "questions": questions})
}

fn with(field: &str, value: &Wire) -> Wire {
    let mut body = asked(&json!({"q": noul()}));
    body[field] = value.clone();
    body
}

fn waiting(ask_if: &Wire) -> Wire {
    let mut b = noul();
    b["ask_if"] = ask_if.clone();
    asked(&json!({"a": noul(), "b": b}))
}

fn question(question: &Wire) -> Wire {
    asked(&json!({"q": question}))
}

fn choice(criteria: &Wire) -> Wire {
    question(&json!({"type": "choice", "instructions": "Which?", "criteria": criteria}))
}

fn score(criteria: &Wire) -> Wire {
    question(&json!({"type": "score", "instructions": "How?", "criteria": criteria}))
}

fn named(id: &str) -> Wire {
    asked(&Wire::Object([(id.to_owned(), noul())].into_iter().collect()))
}

/// What was sent for each recorded message.
fn sent() -> BTreeMap<&'static str, Wire> {
    let q = json!({"q": noul()});
    let of = |count: usize, value: &Wire| -> Wire {
        let members = (0..count).map(|n| (format!("o{n}"), value.clone()));
        Wire::Object(members.collect())
    };
    let mut field = noul();
    field["weight"] = json!(3);
    let mut dependent = waiting(&json!({"a": ["yes"]}));
    dependent["ask"] = json!(["b"]);
    let mut alone = asked(&json!({"b": noul()}));
    alone["questions"]["b"]["ask_if"] = json!({"a": ["yes"]});
    let mut circle = waiting(&json!({"a": ["yes"]}));
    circle["questions"]["a"]["ask_if"] = json!({"b": ["yes"]});
    let criteria = |criteria: Wire| {
        question(&json!({"type": "noul", "instructions": "Is it?", "criteria": criteria}))
    };
    BTreeMap::from([
        ("no state", json!({"questions": q})),
        ("state null", json!({"state": null, "questions": q})),
        ("state empty", json!({"state": "", "questions": q})),
        ("no questions", json!({"state": "s"})),
        ("empty questions", asked(&json!({}))),
        ("questions list", asked(&json!([noul()]))),
        ("unknown type", question(&json!({"type": "essay", "instructions": "x"}))),
        ("type bool", question(&json!({"type": "bool", "instructions": "x"}))),
        ("no instr", question(&json!({"type": "noul"}))),
        ("instr empty", question(&json!({"type": "noul", "instructions": ""}))),
        ("instr dict", question(&json!({"type": "noul", "instructions": {"ask": "é", "n": 1}}))),
        ("choice 1 opt", choice(&json!({"a": null}))),
        ("choice list", choice(&json!(["a", "b"]))),
        ("choice none", choice(&json!(null))),
        ("score map", score(&json!({"a": null, "b": null}))),
        ("score 1", score(&json!(["a"]))),
        ("noul list crit", criteria(json!(["a"]))),
        ("noul extra crit", criteria(json!({"true": "t", "maybe": "m"}))),
        ("colon id", named("a:b")),
        ("newline id", named("a\nb")),
        ("blank id", named(" ")),
        ("unknown field q", question(&field)),
        ("unknown field top", with("nope", &json!(1))),
        ("samples 0", with("samples", &json!(0))),
        ("samples true", with("samples", &json!(true))),
        ("samples 4.0", with("samples", &json!(4.0))),
        ("65 q", asked(&of(65, &noul()))),
        ("ask unknown", with("ask", &json!(["z"]))),
        ("ask empty", with("ask", &json!([]))),
        ("ask missing dep", dependent),
        ("ask_if unknown dep", alone),
        ("ask_if bad value", waiting(&json!({"a": ["maybe"]}))),
        ("ask_if bool value", waiting(&json!({"a": [true]}))),
        ("ask_if self", waiting(&json!({"b": ["yes"]}))),
        ("ask_if cycle", circle),
        ("ask_if empty list", waiting(&json!({"a": []}))),
        ("60 options", choice(&of(60, &json!(null)))),
    ])
}

#[test]
fn messages_are_those_that_gmlx_gives() {
    let recorded = recorded();
    let recorded = recorded["validation"].as_object().unwrap();
    let sent = sent();
    let names: Vec<&str> = recorded.keys().map(String::as_str).collect();
    assert!(names.iter().all(|name| sent.contains_key(name)) && names.len() == sent.len());
    for (name, expected) in recorded {
        // Where both of gmlx's parsers refuse, the route tells what the first says.
        let expected = [&expected["route_error"], &expected["letters"]];
        let expected = expected.into_iter().find(|message| message.is_string()).unwrap();
        if expected == "ok" {
            assert!(decode(&sent[name.as_str()]).is_ok(), "{name}");
            continue;
        }
        let (status, error_type, message) = fault(&sent[name.as_str()]);
        assert_eq!((status, error_type.as_str()), (422, "validation_error"), "{name}");
        assert_eq!(&json!(message), expected, "{name}");
    }
}

#[test]
fn a_body_that_is_no_object_or_has_images_is_400() {
    let refused = |body: &Wire| {
        let (status, error_type, message) = fault(body);
        assert_eq!((status, error_type.as_str()), (400, "invalid_request_error"), "{body}");
        message
    };
    assert!(refused(&json!([1])).starts_with("invalid body: "));
    let images = "images are not supported: the served model is text-only";
    for value in
        [json!(["data:image/png;base64,AA=="]), json!(true), json!(1), json!("x"), json!({"a": 1})]
    {
        assert_eq!(refused(&with("images", &value)), images);
    }
    for value in [json!([]), json!(null), json!(false), json!(0), json!(""), json!({})] {
        assert!(decode(&with("images", &value)).is_ok(), "{value}");
    }
    for (key, value) in [
        ("screenshot", "data:image/png;base64,AA=="),
        ("image", "data:image/x"),
        ("image", &"x".repeat(2_001)),
    ] {
        assert_eq!(refused(&with("state", &json!({"a": 1, key: value}))), images);
    }
    for state in [
        json!({"image": "x".repeat(2_000)}),
        json!({"photo": "data:image/png"}),
        json!("data:image/png"),
        json!({"image": 3}),
    ] {
        assert!(decode(&with("state", &state)).is_ok(), "{state}");
    }
    let missing = json!({"images": [1], "questions": 3});
    assert_eq!(refused(&missing), images, "ahead of the fields");
}

#[test]
fn what_only_the_letter_readout_refuses_comes_last() {
    let questions = json!({"a": {"type": "noul"}, "b": {"type": "essay", "instructions": "x"}});
    assert_eq!(fault(&asked(&questions)).2, "question 'b': unknown type 'essay'");
    let mut body = question(&json!({"type": "noul"}));
    body["samples"] = json!(true);
    body["state"] = json!({"image": "data:image/png"});
    assert_eq!(fault(&body).2, "question 'q': instructions is required");
    body["questions"]["q"]["instructions"] = json!("x");
    assert!(fault(&body).2.starts_with("schema: samples"));
}

#[test]
fn samples_adapt_unless_they_are_counted() {
    let samples = |fields: Wire| {
        let mut body = asked(&json!({"q": noul()}));
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let decoded = decode(&body).unwrap();
        (decoded.request.samples.unwrap(), decoded.ignored)
    };
    let adaptive =
        |entropy_max, orders_max| Samples::Adaptive(Adaptive { entropy_max, orders_max });
    let none: Vec<String> = Vec::new();
    assert_eq!(samples(json!({})), (adaptive(0.1, 4), none.clone()));
    assert_eq!(
        samples(json!({"samples": "auto", "auto_max": 2})),
        (adaptive(0.1, 2), none.clone())
    );
    let both = json!({"samples": null, "auto_threshold": 0, "auto_max": 99});
    assert_eq!(samples(both), (adaptive(0.0, 99), none.clone()));
    assert_eq!(samples(json!({"samples": 7})), (Samples::Count(7), none));
    let beside = samples(json!({"samples": 2, "auto_threshold": 0.5, "auto_max": 3}));
    assert_eq!(
        beside,
        (Samples::Count(2), vec!["auto_max".to_owned(), "auto_threshold".to_owned()])
    );
    for (field, value) in [
        ("samples", json!("7")),
        ("samples", json!(-1)),
        ("samples", json!(false)),
        ("auto_max", json!(0)),
        ("auto_max", json!(true)),
        ("auto_threshold", json!(-0.1)),
        ("auto_threshold", json!("low")),
    ] {
        let (status, _, message) = fault(&with(field, &value));
        assert!(
            status == 422 && message.starts_with(&format!("schema: {field} must")),
            "{message}"
        );
    }
}

#[test]
fn ids_are_trimmed_wherever_they_stand() {
    let mut body = waiting(&json!({" a ": ["yes"]}));
    let a = body["questions"].as_object_mut().unwrap().remove("a").unwrap();
    body["questions"][" a\t"] = a;
    body["ask"] = json!([" b", "a"]);
    let decision = accepted(&body);
    let ids: Vec<&str> = decision.questions.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids, ["b", "a"], "in the order of the request");
    assert_eq!(decision.questions[0].ask_if[0].question, "a");
    let twice = asked(&json!({"a": noul(), "a ": noul()}));
    assert!(fault(&twice).2.starts_with("question 'a': is given twice"));
}

#[test]
fn only_what_is_asked_for_is_read() {
    let mut body = waiting(&json!({"a": ["yes"]}));
    body["questions"]["c"] = noul();
    for (ask, expected) in [
        (json!(["a"]), vec!["a"]),
        (json!(["b", "a"]), vec!["a", "b"]),
        (json!(null), vec!["a", "b", "c"]),
    ] {
        body["ask"] = ask;
        let ids: Vec<String> = accepted(&body).questions.into_iter().map(|q| q.id).collect();
        assert_eq!(ids, expected);
    }
    body["ask"] = json!(["a"]);
    body["questions"]["c"] = json!({"type": "noul"});
    assert_eq!(fault(&body).2, "question 'c': instructions is required", "though it is not read");
    for ask in [json!("a"), json!([1]), json!({})] {
        assert_eq!(
            fault(&with("ask", &ask)).2,
            "schema: ask must list question ids from this schema"
        );
    }
}

#[test]
fn what_the_letter_readout_does_not_use_is_ignored_and_named() {
    let mut body = asked(&json!({"q": noul(), "r": noul()}));
    body["questions"]["r"]["depends_on"] = json!("anything");
    body["questions"]["r"]["alone"] = json!(true);
    for field in [
        "steps",
        "think",
        "think_threshold",
        "think_budget",
        "chunk_rows",
        "chunk_prompt",
        "sequential",
        "seed",
        "instructions",
    ] {
        body[field] = json!({"odd": []});
    }
    let decoded = decode(&body).unwrap();
    let mut ignored = decoded.ignored;
    ignored.sort();
    let expected = [
        "chunk_prompt",
        "chunk_rows",
        "instructions",
        "questions.r.alone",
        "questions.r.depends_on",
        "seed",
        "sequential",
        "steps",
        "think",
        "think_budget",
        "think_threshold",
    ];
    assert_eq!(ignored, expected);
    assert!(decoded.request.questions[1].depends_on.is_empty());
    assert_eq!(decoded.request.context, None);
}

#[test]
fn a_profile_is_named_in_its_field_or_behind_the_model() {
    let profile = |model: Wire, profile: Wire| {
        let mut body = with("model", &model);
        body["profile"] = profile;
        accepted(&body).profile
    };
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(profile(json!("openjev@fast"), json!(null)), named("fast"));
    assert_eq!(profile(json!("openjev@fast"), json!("wide")), named("wide"));
    assert_eq!(profile(json!("openjev"), json!("")), None);
    assert_eq!(profile(json!(3), json!(null)), None, "a model that is no text falls back");
    assert_eq!(fault(&with("profile", &json!(3))).2, "profile: must be a string");
    assert_eq!(accepted(&with("model", &json!("nobody"))).model, None, "an unknown one falls back");
}

#[test]
fn dockets_own_fields_are_read_where_they_are_sound() {
    let mut body = with("priority", &json!("batch"));
    body["timeout_ms"] = json!(0);
    let decoded = decode(&body).unwrap();
    assert_eq!((decoded.request.lane, decoded.request.timeout), (Some(Lane::Batch), None));
    assert_eq!(decoded.ignored, ["timeout_ms"]);
    assert_eq!(decoded.request.timeout_default, Some(Duration::from_mins(10)));
}
