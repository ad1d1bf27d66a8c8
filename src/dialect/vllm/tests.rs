//! Decoding and errors against what vLLM's own functions gave and its documents say.

mod answers;

use std::time::Duration;

use actors::{EngineError, Lane, ReadError, RejectReason};
use serde_json::{Value as Wire, json};

use crate::dialect::problem::{Fault, FullStatus, RequestFault};
use crate::dialect::{Dialect, RequestLimits, Undecoded};
use crate::error::DecideError;
use crate::json::{Json, Limits};
use crate::question::{Decision, Kind, Manner};
use crate::service::ModelEntry;

/// Errors and answers of vLLM 0.33.0.
const RECORDED: &str = include_str!("../../../tests/conformance/data/vllm.json");

fn recorded(part: &str) -> serde_json::Map<String, Wire> {
    let all: Wire = serde_json::from_str(RECORDED).unwrap();
    all[part].as_object().unwrap().clone()
}

fn parsed(body: &Wire) -> Json {
    Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap()
}

fn decode(body: &Wire) -> Result<Decision, Undecoded> {
    let decoded = Dialect::Vllm.decision(parsed(body), &RequestLimits::default())?;
    assert_eq!(decoded.ignored, Vec::<String>::new());
    Ok(decoded.request)
}

fn refused(fault: impl Into<Fault>) -> (u16, Wire) {
    let refusal = Dialect::Vllm.refusal(&fault.into(), FullStatus::default());
    (refusal.status, serde_json::from_str(&refusal.body).unwrap())
}

/// The error of a body that is refused.
fn error(body: &Wire) -> Wire {
    let faults = decode(body).unwrap_err().faults;
    let (status, body) = refused(DecideError::Invalid(faults));
    assert_eq!((status, &body["error"]["code"]), (400, &json!(400)), "{body}");
    body["error"].clone()
}

fn with(question: &Wire) -> Wire {
    json!({"state": "s", "questions": {"q": question}})
}

fn plus(name: &str, value: Wire) -> Wire {
    let mut body = with(&json!({"type": "noul"}));
    body[name] = value;
    body
}

fn options(count: usize) -> Wire {
    (0..count).map(|n| (format!("k{n}"), Wire::Null)).collect::<serde_json::Map<_, _>>().into()
}

#[test]
fn what_makes_no_sense_is_told_as_vllm_tells_it() {
    let eleven: Vec<String> = (0..11).map(|n| n.to_string()).collect();
    let sent = |name: &str| match name {
        "empty id" => json!({"state": "s", "questions": {"": {"type": "noul"}}}),
        "unknown" => with(&json!({"type": "essay"})),
        "choice list" => with(&json!({"type": "choice", "criteria": ["a"]})),
        "choice empty" => with(&json!({"type": "choice", "criteria": {}})),
        "noul list" => with(&json!({"type": "noul", "criteria": ["a"]})),
        "noul extra" => with(&json!({"type": "noul", "criteria": {"true": "t", "maybe": "m"}})),
        "score1" => with(&json!({"type": "score", "criteria": ["a"]})),
        "score dup" => with(&json!({"type": "score", "criteria": ["a", "a"]})),
        "score 11" => with(&json!({"type": "score", "criteria": eleven})),
        "choice 27" => with(&json!({"type": "choice", "criteria": options(27)})),
        "score map" => with(&json!({"type": "score", "criteria": {"a": "b"}})),
        other => panic!("{other} is not known"),
    };
    let recorded = recorded("errors");
    assert_eq!(recorded.len(), 11);
    for (name, message) in recorded {
        let expected =
            json!({"message": message, "type": "BadRequestError", "param": null, "code": 400});
        assert_eq!(error(&sent(&name)), expected, "{name}");
    }
    let unknown = error(&with(&json!({"type": "noul", "samples": 2, "depends_on": []})));
    assert_eq!(unknown["message"], "question 'q': unknown field(s) ['depends_on', 'samples']");
}

#[test]
fn a_full_request_reaches_the_core() {
    let decision = decode(&json!({
        "model": "m", "state": null, "instructions": "Context.", "cache_salt": "mine",
        "priority": -3, "request_id": "r", "images": [], "audio": null, "videos": [],
        "joint": false, "chat_template_kwargs":
            {"enable_thinking": false, "thinking": null, "tone": {"a": [1]}, "add_generation_prompt": true},
        "questions": {
            "z:1\n": {"type": "choice", "instructions": {"a": true},
                  "criteria": {"b": "", "a": ["é"], "c": null}},
            "s": {"type": "score", "instructions": "", "criteria": ["lo", {"k": 1}, null]},
            "n": {"type": "noul", "criteria": {"true": "T", "false": null}},
        },
    }))
    .unwrap();
    assert_eq!((decision.manner, decision.lane), (Manner::Plain, Some(Lane::Urgent)));
    assert_eq!(decision.state, Json::String("null".to_owned()));
    assert_eq!(decision.model.as_deref(), Some("m"));
    assert_eq!(decision.context.as_deref(), Some("Context."));
    assert_eq!(decision.salt.as_deref(), Some("mine"));
    assert_eq!(decision.request_id.as_deref(), Some("r"));
    let names: Vec<&str> = decision.template.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["tone"]);
    let text = |text: &str| Some(Json::String(text.to_owned()));
    let [choice, score, noul] = &decision.questions[..] else { panic!("three questions") };
    assert_eq!((choice.id.as_str(), &choice.instructions), ("z:1\n", &text("{'a': True}")));
    let Kind::Choice { options } = &choice.kind else { panic!("a choice") };
    let shown: Vec<_> = options.iter().map(|option| option.description.clone()).collect();
    assert_eq!(shown, [None, text("['é']"), None]);
    assert_eq!(score.instructions, None);
    let levels = ["lo", "{'k': 1}", "None"].map(|level| Json::String(level.to_owned())).to_vec();
    assert_eq!(score.kind, Kind::Score { levels });
    assert_eq!(noul.kind, Kind::Noul { when_true: text("T"), when_false: None });
}

#[test]
fn a_priority_is_a_lane() {
    for (priority, lane) in [
        (json!(-1), Some(Lane::Urgent)),
        (json!(i64::MIN), Some(Lane::Urgent)),
        (json!(0), None),
        (json!(null), None),
        (json!(1), Some(Lane::Batch)),
        (json!(i64::MAX), Some(Lane::Batch)),
        (json!(2.0), Some(Lane::Batch)),
    ] {
        assert_eq!(decode(&plus("priority", priority.clone())).unwrap().lane, lane, "{priority}");
    }
    for (priority, code) in [
        (json!(1.5), "int_from_float"),
        (json!("high"), "int_type"),
        (json!(true), "int_type"),
        (json!(9_223_372_036_854_775_808_u64), "int_parsing_size"),
        (serde_json::from_str("-9223372036854775809").unwrap(), "int_parsing_size"),
        (json!(1e300), "int_parsing_size"),
    ] {
        let message = error(&plus("priority", priority))["message"].clone();
        let found = message.as_str().unwrap();
        assert!(
            found.contains(&format!("{{'type': '{code}', 'loc': ('body', 'priority')")),
            "{found}"
        );
    }
}

#[test]
fn a_body_of_the_wrong_form_is_told_all_its_faults() {
    let told = error(&json!({"state": "it's", "model": 3, "seed": [1, null]}));
    assert_eq!((&told["type"], &told["param"]), (&json!("Bad Request"), &json!("body.questions")));
    let expected = "3 validation errors:\n  \
        {'type': 'missing', 'loc': ('body', 'questions'), 'msg': 'Field required', \
        'input': {'state': \"it's\", 'model': 3, 'seed': [1, None]}}\n  \
        {'type': 'string_type', 'loc': ('body', 'model'), 'msg': 'Input should be a valid string', \
        'input': 3}\n  \
        {'type': 'extra_forbidden', 'loc': ('body', 'seed'), \
        'msg': 'Extra inputs are not permitted', 'input': [1, None]}";
    assert_eq!(told["message"], expected);
    let told = error(&json!([]));
    let expected = "1 validation error:\n  {'type': 'model_attributes_type', 'loc': ('body',), 'msg': \
        'Input should be a valid dictionary or object to extract fields from', 'input': []}";
    assert_eq!((&told["message"], &told["param"]), (&json!(expected), &json!("body")));
    let many: serde_json::Map<String, Wire> =
        (0..500).map(|n| (format!("{n:0>3}{}", "x".repeat(9_000)), Wire::Null)).collect();
    let message = error(&Wire::Object(many))["message"].as_str().unwrap().to_owned();
    assert!(message.starts_with("10 validation errors:") && message.len() < 10_000, "{message}");
}

#[test]
fn fields_that_cannot_be_are_refused_by_name() {
    for (name, value, place) in [
        ("instructions", json!(["x"]), "('body', 'instructions')"),
        ("request_id", json!(7), "('body', 'request_id')"),
        ("chat_template_kwargs", json!("x"), "('body', 'chat_template_kwargs')"),
        ("cache_salt", json!("x".repeat(129)), "string_too_long"),
        ("cache_salt", json!("a@b"), "value_error"),
        ("cache_salt", json!("a/b"), "value_error"),
        ("cache_salt", json!("a\\b"), "value_error"),
        ("cache_salt", json!("a\0b"), "value_error"),
        ("images", json!("x"), "list_type"),
        ("audio", json!([1]), "('body', 'audio', 0)"),
        ("joint", json!("false"), "bool_type"),
        ("questions", json!([]), "dict_type"),
        ("questions", json!({}), "too_short"),
        ("questions", options(65), "too_long"),
        ("questions", json!({"q": null}), "('body', 'questions', 'q')"),
        ("questions", json!({"q": {}}), "('body', 'questions', 'q', 'type')"),
        ("questions", json!({"q": {"type": null}}), "string_type"),
        ("ask", json!(["q"]), "extra_forbidden"),
    ] {
        let told = error(&plus(name, value));
        assert_eq!(told["type"], "Bad Request", "{name}");
        assert!(told["message"].as_str().unwrap().contains(place), "{told}");
    }
    for (name, value, said) in [
        ("chat_template_kwargs", json!({"enable_thinking": true}), "thinking must be off"),
        ("chat_template_kwargs", json!({"thinking": 1}), "thinking must be off"),
        (
            "chat_template_kwargs",
            json!({"add_generation_prompt": false}),
            "these chat options end the prompt differently",
        ),
        ("chat_template_kwargs", json!({"messages": []}), "must not set messages"),
        ("videos", json!(["https://example.org/v.mp4"]), "reads text only"),
        ("joint", json!(true), "joint must be false"),
    ] {
        let told = error(&plus(name, value));
        assert_eq!((&told["type"], &told["param"]), (&json!("BadRequestError"), &Wire::Null));
        assert!(told["message"].as_str().unwrap().contains(said), "{told}");
    }
    assert!(decode(&plus("cache_salt", json!("é".repeat(128)))).is_ok());
    assert_eq!(decode(&plus("cache_salt", json!(""))).unwrap().salt, None);
    assert_eq!(decode(&plus("model", json!(""))).unwrap().model, None);
    assert_eq!(
        decode(&plus("questions", json!({"q": {"type": "choice", "criteria": options(26)}})))
            .unwrap()
            .questions
            .len(),
        1
    );
}

#[test]
fn what_is_not_answered_has_vllms_type_and_status() {
    let retry_after = Duration::from_secs(1);
    let full = RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
    let long = RejectReason::TooLong { tokens: 9, tokens_max: 8 };
    let model = || DecideError::UnknownModel { name: "x".to_owned(), available: Vec::new() };
    let of_read = |error: ReadError| refused(DecideError::from(error));
    for ((status, body), expected, error_type) in [
        (refused(model()), 404, "NotFoundError"),
        (refused(DecideError::NoReadStrategy("why".to_owned())), 501, "NotImplementedError"),
        (refused(DecideError::Template("differently".to_owned())), 400, "BadRequestError"),
        (refused(DecideError::Unsupported("no images".to_owned())), 400, "BadRequestError"),
        (refused(DecideError::Internal { detail: "x".to_owned() }), 500, "InternalServerError"),
        (of_read(ReadError::Rejected(full)), 503, "Service Unavailable"),
        (of_read(ReadError::Rejected(long)), 400, "BadRequestError"),
        (of_read(ReadError::Draining), 503, "Service Unavailable"),
        (of_read(ReadError::Engine(EngineError::NonFinite)), 500, "InternalServerError"),
        (
            refused(RequestFault::NotFound { method: "GET".to_owned(), path: "/x".to_owned() }),
            404,
            "Not Found",
        ),
        (refused(RequestFault::MediaType { found: "none".to_owned() }), 400, "Bad Request"),
        (refused(RequestFault::BodyTooLarge { bytes_max: 9 }), 413, "Request Entity Too Large"),
    ] {
        assert_eq!((status, &body["error"]["type"]), (expected, &json!(error_type)), "{body}");
        assert_eq!(body["error"]["code"], status);
        let members: Vec<&String> = body["error"].as_object().unwrap().keys().collect();
        assert_eq!(members, ["message", "type", "param", "code"]);
    }
    assert_eq!(refused(model()).1["error"]["param"], "model");
    assert_eq!(refused(RequestFault::Unauthorized), (401, json!({"error": "Unauthorized"})));
}

#[test]
fn the_models_are_openais_list() {
    let entry = |name: &str| ModelEntry {
        name: name.to_owned(),
        description: String::new(),
        release_date: String::new(),
        precision: None,
        context_tokens: None,
        is_readable: true,
    };
    let text = Dialect::Vllm.models(&[entry("a"), entry("b")]).unwrap();
    let body: Wire = serde_json::from_str(&text).unwrap();
    assert_eq!(body["object"], "list");
    assert_eq!(
        (&body["data"][1]["id"], &body["data"][0]["object"]),
        (&json!("b"), &json!("model"))
    );
    assert!(body["data"][0]["created"].is_u64());
}
