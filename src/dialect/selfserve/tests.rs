//! What the vectors cannot say of the `self` dialect: the numbers in answers, what is decoded, and
//! failures that no request brings about.

use std::time::Duration;

use actors::{EngineError, Lane, ReadError, RejectReason};
use serde_json::{Value as Wire, json};

use crate::dialect::problem::{Fault, FullStatus, ImageRefusal, ImageRefusalKind, RequestFault};
use crate::dialect::{Decoded, Dialect, Extras, RequestLimits, Undecoded, loaded};
use crate::error::{DecideError, Problem};
use crate::json::{Json, Limits};
use crate::question::answer::{
    Answer, Citation, Cost, Diagnostics, ExcerptFound, Learned, NumberFound, NumberRead, Part,
    Value,
};
use crate::question::{Decision, Finds, Kind, Manner, NumberCriteria};
use crate::service::{Decided, Health, ModelEntry};

fn decode(body: &Wire) -> Result<Decoded<Decision>, Undecoded> {
    let json = Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap();
    Dialect::SelfServe.decision(json, &RequestLimits::default())
}

fn asked(question: &Wire) -> crate::question::Question {
    let body = json!({"state": "s", "questions": {"q": question}});
    decode(&body).unwrap().request.questions.remove(0)
}

fn refused(fault: impl Into<Fault>) -> (u16, String, String) {
    let refusal = Dialect::SelfServe.refusal(&fault.into(), FullStatus::default());
    let body: Wire = serde_json::from_str(&refusal.body).unwrap();
    let error = &body["error"];
    assert_eq!(body, json!({"error": {"type": error["type"], "message": error["message"]}}));
    let text = |name: &str| error[name].as_str().unwrap().to_owned();
    (refusal.status, text("type"), text("message"))
}

fn cost() -> Cost {
    let ms = Duration::from_millis;
    Cost {
        lane: Lane::Normal,
        input_tokens: 12,
        prompt_tokens: 30,
        computed_tokens: 20,
        cached_tokens: 10,
        prepare: ms(5),
        queue_wait: ms(100),
        state_wait: ms(20),
        state_time: ms(15),
        engine_wait: ms(7),
        engine_time: ms(40),
        steps_time: Duration::from_micros(40_040),
        behind_registration: false,
        state_tokenisations: 1,
        rows: Vec::new(),
        prefix_tokens: 5,
        runs: 1,
    }
}

/// The one answer of a decision, and its usage.
fn encoded(value: Value, citations: Option<Vec<Citation>>) -> (Wire, Wire) {
    let answer = Answer {
        id: "q".to_owned(),
        value,
        diagnostics: Diagnostics::default(),
        raw: Vec::new(),
        hidden: None,
        learned: Learned::default(),
        citations,
    };
    let decided = Decided {
        answers: vec![answer],
        cost: cost(),
        tasks: Vec::new(),
        model: "m".to_owned(),
        stages: Vec::new(),
        reused: false,
        tier: actors::Tier::Exact,
        state_text: None,
        state_key: None,
        served: Box::new(|| {}),
    };
    let text = Dialect::SelfServe.decided(&decided, &Extras::default()).unwrap();
    let mut body: Wire = serde_json::from_str(&text).unwrap();
    assert_eq!(body["model"], "m");
    (body["answers"]["q"].take(), body["usage"].take())
}

fn part(text: &str, start: usize) -> Part {
    Part { text: text.to_owned(), start, end: start + text.chars().count() }
}

#[test]
fn the_confidence_of_a_noul_is_its_distance_from_even_odds() {
    for (yes, noul, confidence) in [
        (0.2159, 0.2159, 0.5682),
        (0.5, 0.5, 0.0),
        (0.999_99, 1.0, 1.0),
        (0.123_45, 0.1235, 0.7531),
    ] {
        let (answer, _) = encoded(Value::Noul { yes }, None);
        assert_eq!(answer, json!({"type": "noul", "noul": noul, "confidence": confidence}));
    }
}

#[test]
fn a_choice_has_four_decimals_and_the_first_of_equals() {
    let value = Value::Choice {
        chosen: 1,
        keys: vec!["b".to_owned(), "a".to_owned(), "c".to_owned()],
        probabilities: vec![0.4, 0.4, 0.2],
        confidence: 0.099_999_999_999_999_98,
    };
    let (answer, _) = encoded(value, None);
    let probabilities = json!({"b": 0.4, "a": 0.4, "c": 0.2});
    let expected = json!({
        "type": "choice", "choice": "b", "probabilities": probabilities, "confidence": 0.1,
    });
    assert_eq!(answer, expected);
}

#[test]
fn a_score_has_no_legend() {
    let value = Value::Score {
        mean: 1.800_049,
        legend: vec!["low".to_owned(), "low".to_owned(), "high".to_owned()],
        probabilities: vec![0.049_96, 0.100_02, 0.850_02],
        confidence: 0.61,
    };
    let (answer, _) = encoded(value, None);
    let probabilities = json!({"0": 0.05, "1": 0.1, "2": 0.85});
    let expected = json!({
        "type": "score", "score": 1.8, "probabilities": probabilities, "confidence": 0.61,
    });
    assert_eq!(answer, expected);
}

#[test]
fn a_number_keeps_its_value_and_may_have_none() {
    let read =
        NumberRead { value: 1_250.505_05, probability: 0.912_34, context: "for 1250".into() };
    let found = NumberFound {
        value: Some(1_250.505_05),
        probability: 0.912_34,
        not_stated: 0.087_66,
        confidence: Some(0.824_68),
        candidates: vec![read],
    };
    let (answer, _) = encoded(Value::Number(found), None);
    let candidate = json!({"value": 1_250.505_05, "probability": 0.9123, "context": "for 1250"});
    let expected = json!({
        "type": "number", "value": 1_250.505_05, "probability": 0.9123, "not_stated": 0.0877,
        "confidence": 0.8247, "candidates": [candidate],
    });
    assert_eq!(answer, expected);
    let (probability, not_stated) = (1.0, 1.0);
    let (value, confidence, candidates) = (None, None, Vec::new());
    let none = NumberFound { value, probability, not_stated, confidence, candidates };
    let (answer, _) = encoded(Value::Number(none), None);
    assert_eq!((&answer["value"], &answer["confidence"]), (&Wire::Null, &Wire::Null));
}

#[test]
fn an_excerpt_has_offsets_only_where_it_is_found_and_parts_only_where_there_are() {
    let found = |found: Option<Part>, parts: Vec<Part>| {
        let found = ExcerptFound { found, probability: 0.5, not_stated: 0.5, parts };
        encoded(Value::Excerpt(found), None).0
    };
    let none = json!({"type": "excerpt", "text": null, "probability": 0.5});
    assert_eq!(found(None, Vec::new()), none);
    let whole = json!({
        "type": "excerpt", "text": "ab", "probability": 0.5, "start": 3, "end": 5,
    });
    assert_eq!(found(Some(part("ab", 3)), Vec::new()), whole);
    let parts = found(Some(part("a, b", 3)), vec![part("a", 3), part("b", 6)]);
    let expected =
        json!([{"text": "a", "start": 3, "end": 4}, {"text": "b", "start": 6, "end": 7}]);
    assert_eq!(parts["parts"], expected);
}

#[test]
fn citations_stand_beside_any_answer_that_was_to_have_them() {
    let cited = Citation { part: part("late", 14), probability: 0.777_77 };
    let (answer, _) = encoded(Value::Noul { yes: 1.0 }, Some(vec![cited]));
    let place = json!({"text": "late", "start": 14, "end": 18, "probability": 0.7778});
    assert_eq!(answer["citations"], json!([place]));
    let (answer, _) = encoded(Value::Noul { yes: 1.0 }, Some(Vec::new()));
    assert_eq!(answer["citations"], json!([]));
}

#[test]
fn usage_tells_running_from_waiting() {
    let (_, usage) = encoded(Value::Noul { yes: 1.0 }, None);
    // Of 167 ms from admission to the last outcome 15 and 40.04 were steps of its own.
    let expected = json!({
        "input_tokens": 12, "output_tokens": 0, "images": 0, "latency_ms": 55.0, "queue_ms": 112.0,
    });
    assert_eq!(usage, expected);
}

#[test]
fn questions_are_decoded_to_what_is_asked() {
    let number = asked(&json!({
        "type": "number", "instructions": "How much?", "cite": true,
        "criteria": {"min": -1, "max": 1e3, "precision": 0.01},
    }));
    let criteria = NumberCriteria { min: Some(-1.0), max: Some(1e3), precision: Some(0.01) };
    assert_eq!((number.finds, number.cites), (Some(Finds::Number(criteria)), true));
    let excerpt = asked(&json!({"type": "excerpt", "instructions": "Where?"}));
    assert_eq!((excerpt.finds, excerpt.cites), (Some(Finds::Excerpt), false));
    let bounds = json!({"min": 2, "max": 2, "precision": null});
    let bounded = asked(&json!({"type": "number", "instructions": "x", "criteria": bounds}));
    let criteria = NumberCriteria { min: Some(2.0), max: Some(2.0), precision: None };
    assert_eq!(bounded.finds, Some(Finds::Number(criteria)));
    let noul = asked(&json!({"type": "noul", "instructions": "Is it?"}));
    assert_eq!(noul.kind, Kind::Noul { when_true: None, when_false: None });
    assert_eq!(noul.instructions, Some(Json::String("Is it?".to_owned())));
    let choice = json!({"type": "choice", "instructions": "x", "criteria": {"b": "B", "a": null}});
    let Kind::Choice { options } = asked(&choice).kind else { panic!("a choice") };
    let keys: Vec<&str> = options.iter().map(|option| option.key.as_str()).collect();
    assert_eq!(keys, ["b", "a"]);
    assert_eq!(options[0].description, Some(Json::String("B".to_owned())));
    assert_eq!(options[1].description, None);
}

#[test]
fn a_decision_asks_for_nothing_beside_its_questions() {
    let body = json!({"state": [1], "model": "x", "questions": {
        "q": {"type": "noul", "instructions": "x"},
    }});
    let decoded = decode(&body).unwrap();
    assert!(decoded.ignored.is_empty());
    let Decision { state, questions, samples, lane, timeout, manner, .. } = decoded.request;
    assert_eq!(state.compact(), "[1]");
    assert_eq!((questions.len(), samples, lane, timeout), (1, None, None, None));
    assert_eq!(manner, Manner::Profile);
}

#[test]
fn a_bound_that_no_double_holds_is_refused() {
    let text = br#"{"state":"s","questions":{"q":{"type":"number","instructions":"x",
                    "criteria":{"max":1e999}}}}"#;
    let json = Json::parse(text, Limits::default()).unwrap();
    let undecoded = Dialect::SelfServe.decision(json, &RequestLimits::default()).unwrap_err();
    let (status, kind, message) = refused(DecideError::Invalid(undecoded.faults));
    assert_eq!((status, kind.as_str()), (400, "invalid_request"));
    assert!(
        message.contains("questions.q.criteria: max must be a finite number, not 1e999"),
        "{message}"
    );
}

#[test]
fn failures_have_selfs_statuses_and_types() {
    let retry_after = Duration::from_secs(1);
    let rejected = |reason| DecideError::from(ReadError::Rejected(reason));
    let full = RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
    let expired = ReadError::Expired { waited: retry_after, spent: None };
    let problem = |code| DecideError::Invalid(vec![Problem::new(Vec::new(), code, "x".into())]);
    let model = DecideError::UnknownModel { name: "x".into(), available: vec!["m".into()] };
    let profile = DecideError::UnknownProfile { name: "x".into(), available: Vec::new() };
    let engine = |error| DecideError::from(ReadError::Engine(error));
    let image = |kind| {
        Fault::from(ImageRefusal { kind, path: Vec::new(), message: "bad image".to_owned() })
    };
    let cases: Vec<(Fault, u16, &str)> = vec![
        (rejected(full).into(), 429, "queue_full"),
        (rejected(RejectReason::Displaced { retry_after }).into(), 429, "queue_full"),
        (rejected(RejectReason::Draining).into(), 503, "shutting_down"),
        (rejected(RejectReason::EngineDead("/x".into())).into(), 503, "runtime_crashed"),
        (
            rejected(RejectReason::TooLong { tokens: 9, tokens_max: 8 }).into(),
            400,
            "invalid_request",
        ),
        (DecideError::from(expired).into(), 504, "timeout"),
        (DecideError::from(ReadError::Draining).into(), 503, "shutting_down"),
        (DecideError::from(ReadError::Unavailable).into(), 503, "runtime_crashed"),
        (engine(EngineError::NonFinite).into(), 500, "internal_error"),
        (engine(EngineError::OutOfMemory("/x".into())).into(), 503, "runtime_crashed"),
        (DecideError::Internal { detail: "/x".into() }.into(), 500, "internal_error"),
        (DecideError::Capability("x".into()).into(), 422, "unsupported_capability"),
        (DecideError::NoReadStrategy("x".into()).into(), 422, "unsupported_capability"),
        (DecideError::Template("x".into()).into(), 400, "invalid_request"),
        (model.into(), 404, "model_not_found"),
        (profile.into(), 400, "invalid_request"),
        (problem("unsupported_capability").into(), 422, "unsupported_capability"),
        (image(ImageRefusalKind::Form), 400, "invalid_request"),
        (image(ImageRefusalKind::Unsupported), 400, "unsupported_image"),
        (image(ImageRefusalKind::TooLarge), 413, "image_too_large"),
        (image(ImageRefusalKind::Count), 422, "unsupported_capability"),
        (image(ImageRefusalKind::Capability), 422, "unsupported_capability"),
        (image(ImageRefusalKind::Fetch), 502, "image_fetch_failed"),
        (problem("oversize").into(), 400, "invalid_request"),
        (RequestFault::EngineDead { reason: "x".into() }.into(), 503, "runtime_crashed"),
        (RequestFault::BodiesFull { bytes_max: 1 }.into(), 503, "queue_full"),
        (RequestFault::Panicked.into(), 500, "internal_error"),
        (RequestFault::NoPrewarm { handle: "x".into() }.into(), 404, "not_found"),
    ];
    for (fault, status, kind) in cases {
        let (found, found_kind, message) = refused(fault.clone());
        assert_eq!((found, found_kind.as_str()), (status, kind), "{fault:?}");
        assert!(!message.contains("/x") && !message.is_empty(), "{message}");
        assert_eq!(status == 500, message == "Internal server error.", "{message}");
    }
}

#[test]
fn a_capability_is_told_only_where_nothing_else_is_wrong() {
    let problem = |code| Problem::new(Vec::new(), code, "x".to_owned());
    let both = vec![problem("unsupported_capability"), problem("missing")];
    assert_eq!(refused(DecideError::Invalid(both)).1, "invalid_request");
}

#[test]
fn a_full_queue_has_the_status_that_the_operator_wants() {
    let retry_after = Duration::from_secs(1);
    let full = RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
    let fault = DecideError::from(ReadError::Rejected(full)).into();
    let refusal = Dialect::SelfServe.refusal(&fault, FullStatus::ServiceUnavailable);
    assert_eq!((refusal.status, refusal.retry_after), (503, Some(retry_after)));
}

#[test]
fn a_model_that_answers_nothing_can_do_nothing() {
    let entry = |is_readable| ModelEntry {
        name: "m".to_owned(),
        precision: Some("q8".to_owned()),
        context_tokens: Some(4096),
        is_readable,
        ..ModelEntry::default()
    };
    let body = |is_readable| -> Wire {
        serde_json::from_str(&loaded::encode(&entry(is_readable))).unwrap()
    };
    let (able, unable) = (body(true), body(false));
    assert_eq!((&able["quant"], &able["info"]), (&json!("q8"), &json!({"context_length": 4096})));
    let output = |body: &Wire, name: &str| body["capabilities"]["output"][name].clone();
    for name in ["choice", "score", "noul", "number", "excerpt", "cite"] {
        assert_eq!((output(&able, name), output(&unable, name)), (json!(true), json!(false)));
    }
    assert_eq!(output(&able, "max_options"), 255);
    assert_eq!(output(&unable, "max_options"), 0);
}

#[test]
fn health_says_what_the_runner_does() {
    let health = |ready, dead: Option<&str>| {
        let (reason, dead) = (None, dead.map(str::to_owned));
        let health = Health { ready, reason, dead, details: Wire::Null };
        Dialect::SelfServe.health(&health, "m").unwrap()
    };
    let told =
        |status: &str, runner: &str| json!({"status": status, "model": "m", "runner": runner});
    assert_eq!(health(true, None), told("ok", "ready"));
    assert_eq!(health(false, None), told("unavailable", "stopping"));
    assert_eq!(health(false, Some("gone")), told("unavailable", "crashed"));
}
