//! Decoding, errors and headers against what decisio's own server says.

use std::collections::BTreeMap;
use std::time::Duration;

use actors::{Lane, ReadError, RejectReason, Tier};
use serde_json::{Value as Wire, json};

use crate::dialect::problem::{Fault, FullStatus, RequestFault};
use crate::dialect::{Debug, Decoded, Dialect, Extras, RequestLimits, Undecoded, letters};
use crate::error::DecideError;
use crate::json::{Json, Limits};
use crate::question::answer::{
    Abstention, Answer, Certified, Cost, Diagnostics, Learned, RowTokens, Value,
};
use crate::question::{Decision, Kind, Manner, Samples};
use crate::service::Decided;

/// Errors as decisio 0.11.1 gave them, by what was sent; `"ok"` where it was accepted.
const RECORDED: &str = include_str!("../../../tests/conformance/data/decisio_errors.json");

fn parsed(body: &Wire) -> Json {
    Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap()
}

fn decode(body: &Wire) -> Result<Decoded<Decision>, Undecoded> {
    Dialect::Decisio.decision(parsed(body), &RequestLimits::default())
}

fn refused(fault: impl Into<Fault>) -> (u16, Wire) {
    let refusal = Dialect::Decisio.refusal(&fault.into(), FullStatus::default());
    (refusal.status, serde_json::from_str(&refusal.body).unwrap())
}

fn with(question: &Wire) -> Wire {
    json!({"state": "s", "questions": {"q": question}})
}

/// What was sent for each recorded answer.
fn sent() -> BTreeMap<&'static str, Wire> {
    let noul = json!({"type": "noul"});
    let many: serde_json::Map<String, Wire> =
        (0..256).map(|n| (format!("k{n}"), Wire::Null)).collect();
    BTreeMap::from([
        ("missing state", json!({"questions": {"q": noul}})),
        ("null state", json!({"state": null, "questions": {"q": noul}})),
        ("int state", json!({"state": 3, "questions": {"q": noul}})),
        ("missing questions", json!({"state": "s"})),
        ("empty questions", json!({"state": "s", "questions": {}})),
        ("questions list", json!({"state": "s", "questions": [noul]})),
        ("no type", with(&json!({}))),
        ("bad type", with(&json!({"type": "number"}))),
        ("choice no criteria", with(&json!({"type": "choice"}))),
        ("choice empty", with(&json!({"type": "choice", "criteria": {}}))),
        ("choice list", with(&json!({"type": "choice", "criteria": ["a"]}))),
        ("256", with(&json!({"type": "choice", "criteria": many}))),
        ("score empty", with(&json!({"type": "score", "criteria": []}))),
        ("score obj", with(&json!({"type": "score", "criteria": {"a": null}}))),
        ("noul crit list", with(&json!({"type": "noul", "criteria": ["a"]}))),
        ("empty name", json!({"state": "s", "questions": {"": noul}})),
        ("empty state", json!({"state": "", "questions": {"q": noul}})),
        ("1 option", with(&json!({"type": "choice", "criteria": {"a": null}}))),
        ("unknown field", json!({"state": "s", "seed": 1, "questions": {"q": noul}})),
        ("model int", json!({"state": "s", "model": 3, "questions": {"q": noul}})),
    ])
}

#[test]
fn faults_are_those_that_decisio_reports() {
    let recorded: BTreeMap<String, Wire> = serde_json::from_str(RECORDED).unwrap();
    let sent = sent();
    assert!(recorded.keys().map(String::as_str).eq(sent.keys().copied()), "{:?}", sent.keys());
    for (name, expected) in recorded {
        let decoded = decode(&sent[name.as_str()]);
        if expected == json!("ok") {
            assert!(decoded.is_ok(), "{name}: {decoded:?}");
            continue;
        }
        let faults = DecideError::Invalid(decoded.unwrap_err().faults);
        let (status, body) = refused(faults);
        assert_eq!(status, 422);
        let key = |entry: &Wire| {
            [&entry["type"], &entry["loc"], &entry["msg"], &entry["ctx"]].map(Wire::clone)
        };
        let listed = |list: &Wire| list.as_array().unwrap().iter().map(key).collect::<Vec<_>>();
        assert_eq!(listed(&body["detail"]), listed(&expected), "{name}");
    }
}

#[test]
fn a_decision_is_read_by_letters_in_one_order_and_waits_long() {
    let decoded = decode(&with(&json!({"type": "noul"}))).unwrap().request;
    assert_eq!((decoded.manner, decoded.samples), (Manner::Letters, None));
    assert_eq!(decoded.timeout_default, Some(Duration::from_mins(10)));
    assert!(decoded.applies_tasks);
    let twice = |orders: Wire| {
        let body = json!({"state": "s", "orders": orders, "questions": {"q": {"type": "noul"}}});
        decode(&body).unwrap().request.samples
    };
    for orders in [json!(2), json!("2"), json!(2.9), json!(" 2 ")] {
        assert_eq!(twice(orders.clone()), Some(Samples::Count(2)), "{orders}");
    }
    for orders in [json!(1), json!(3), json!("two"), json!(null), json!([2]), json!(1.99)] {
        assert_eq!(twice(orders.clone()), None, "{orders}");
    }
}

#[test]
fn dockets_fields_are_read_where_they_are_sound_and_else_ignored() {
    let body = |priority: Wire| json!({"state": "s", "priority": priority, "seed": 1, "questions": {"q": {"type": "noul"}}});
    let decoded = decode(&body(json!("urgent"))).unwrap();
    assert_eq!(decoded.request.lane, Some(Lane::Urgent));
    assert_eq!(decoded.ignored, ["seed"]);
    let decoded = decode(&body(json!(7))).unwrap();
    assert_eq!(decoded.request.lane, None);
    assert_eq!(decoded.ignored, ["priority", "seed"]);
    let inside = decode(&with(&json!({"type": "noul", "weight": 2}))).unwrap();
    assert_eq!(inside.ignored, ["questions.q.weight"]);
}

#[test]
fn a_question_that_is_no_object_and_instructions_that_are_none_are_named() {
    let fault = |question: Wire| {
        let (_, body) = refused(DecideError::Invalid(decode(&with(&question)).unwrap_err().faults));
        (body["detail"][0]["type"].clone(), body["detail"][0]["loc"].clone())
    };
    let (code, loc) = fault(json!("noul"));
    assert_eq!((code, loc), (json!("model_attributes_type"), json!(["body", "questions", "q"])));
    let (code, loc) = fault(json!({"type": "noul", "instructions": 3}));
    let expected = json!(["body", "questions", "q", "noul", "instructions", "str"]);
    assert_eq!((code, loc), (json!("string_type"), expected));
}

#[test]
fn what_no_schema_knows_is_a_text() {
    let texts = [
        (b"\xff".as_slice(), "UTF-8"),
        (br#"{"state": "\ud800"}"#, "surrogate"),
        (br#"{"state": 1, "state": 2}"#, "twice"),
        (b"{", "key"),
    ];
    for (text, said) in texts {
        let problem = Json::parse(text, Limits::default()).unwrap_err();
        let (status, body) = refused(DecideError::Invalid(vec![problem]));
        let detail = body["detail"].as_str().expect("a text");
        assert!(status == 422 && detail.contains(said), "{detail}");
    }
    let undecoded = Dialect::Decisio.decision(Json::Array(vec![]), &RequestLimits::default());
    let (_, body) = refused(DecideError::Invalid(undecoded.unwrap_err().faults));
    assert!(body["detail"].as_str().unwrap().contains("object"), "{body}");
}

#[test]
fn statuses_and_texts_of_what_is_not_answered() {
    let long = ReadError::Rejected(RejectReason::TooLong { tokens: 40_112, tokens_max: 32_768 });
    let (status, body) = refused(DecideError::from(long));
    assert_eq!(status, 422);
    let expected = "the prompt is 40112 tokens, at most 32768 fit";
    assert!(body["detail"].as_str().unwrap().contains(expected), "{body}");
    let (status, body) = refused(DecideError::Unsupported("no images here".to_owned()));
    assert_eq!((status, body["detail"].as_str()), (400, Some("no images here")));
    let retry_after = Duration::from_secs(1);
    let full = RejectReason::QueueFull { reads_waiting: 7, reads_max: 4, retry_after };
    let (status, body) = refused(DecideError::from(ReadError::Rejected(full)));
    assert_eq!((status, body["detail"].as_str()), (429, Some("7 reads wait, at most 4 may")));
    let (status, body) = refused(RequestFault::EngineDead { reason: "why".to_owned() });
    assert_eq!((status, body["detail"].as_str()), (503, Some("the engine is dead: why")));
    let (status, body) = refused(RequestFault::MediaType { found: "text/plain".to_owned() });
    assert!(status == 415 && body["detail"].is_string(), "{body}");
}

#[test]
fn a_prompt_over_the_context_is_told_in_one_text() {
    let path = vec!["questions".into(), "q".into()];
    let long = crate::error::Problem::new(path, "too_long", "the prompt is 9 tokens".to_owned());
    let (status, body) = refused(DecideError::Invalid(vec![long]));
    assert_eq!(status, 422);
    let detail = body["detail"].as_str().unwrap();
    assert_eq!(detail, "the rendered prompt is longer than the context: the prompt is 9 tokens");
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
        steps_time: ms(40),
        behind_registration: true,
        state_tokenisations: 1,
        rows: vec![RowTokens { prompt: 15, cached: 5 }, RowTokens { prompt: 17, cached: 7 }],
        prefix_tokens: 5,
        runs: 1,
    }
}

fn decided(values: Vec<(Value, Vec<f64>)>) -> Decided {
    let answer = |(index, (value, raw)): (usize, (Value, Vec<f64>))| Answer {
        id: index.to_string(),
        value,
        diagnostics: Diagnostics::default(),
        raw,
        hidden: None,
        learned: Learned::default(),
        citations: None,
    };
    Decided {
        answers: values.into_iter().enumerate().map(answer).collect(),
        cost: cost(),
        tasks: vec!["a".to_owned(), "b".to_owned()],
        model: "m".to_owned(),
        stages: Vec::new(),
        reused: false,
        tier: Tier::Exact,
        state_text: None,
        state_key: None,
        served: Box::new(|| {}),
    }
}

fn noul(yes: f64) -> (Value, Vec<f64>) {
    (Value::Noul { yes }, vec![1.0 - yes, yes])
}

#[test]
fn answers_count_one_output_token_each_and_say_what_was_learned() {
    let mut two = decided(vec![noul(0.25), noul(0.5)]);
    two.answers[0].learned = Learned {
        abstention: Some(Abstention { unknown: 0.1, abstained: false }),
        certified: Some(Certified { is_certified: false, reason: Some("low".to_owned()) }),
    };
    let text = Dialect::Decisio.decided(&two, &Extras::default()).unwrap();
    let body: Wire = serde_json::from_str(&text).unwrap();
    assert_eq!(body["usage"], json!({"input_tokens": 12, "output_tokens": 2}));
    let learned = json!({
        "type": "noul", "noul": 0.25, "unknown_probability": 0.1, "abstained": false,
        "certified": false, "certified_reason": "low",
    });
    assert_eq!(body["answers"]["0"], learned);
    assert_eq!(body["answers"]["1"], json!({"type": "noul", "noul": 0.5}));
    let extras = Extras { with_images: true, debug: Some(Debug::Readout), ..Extras::default() };
    let text = Dialect::Decisio.decided(&two, &extras).unwrap();
    let body: Wire = serde_json::from_str(&text).unwrap();
    assert_eq!(body["answers"]["1"]["unknown_probability"], 0.0);
    assert_eq!(body["answers"]["1"]["abstained"], false);
    assert_eq!(body["decisio_debug"]["0"]["probabilities"], json!([0.75, 0.25]));
}

#[test]
fn the_stages_are_the_whole_time() {
    let headers: BTreeMap<_, _> = Dialect::Decisio
        .headers(&decided(vec![noul(0.5)]), Duration::from_millis(180))
        .into_iter()
        .collect();
    assert_eq!(headers["x-decisio-server-ms"], "180.0");
    assert_eq!(headers["x-decisio-route"], "text");
    assert_eq!(headers["x-decisio-tasks"], "a,b");
    assert_eq!(headers["x-decisio-wait-behind"], "registration");
    let stages = "prepare=5.0;warm=15.0;questions=40.0;readout=8.0;engine=68.0;wait=112.0";
    assert_eq!(headers["x-decisio-stages"], stages);
}

#[test]
fn a_step_that_read_the_state_and_a_question_counts_once() {
    let ms = Duration::from_millis;
    let mut all = decided(vec![noul(0.5)]);
    // The first question was read in the step that completed the state.
    let cost =
        Cost { queue_wait: ms(0), engine_wait: ms(0), steps_time: ms(50), ..all.cost.clone() };
    all.cost = Cost { state_wait: ms(20), state_time: ms(20), engine_time: ms(40), ..cost };
    let headers: BTreeMap<_, _> = Dialect::Decisio.headers(&all, ms(70)).into_iter().collect();
    let stages = "prepare=5.0;warm=20.0;questions=40.0;readout=5.0;engine=70.0;wait=0.0";
    assert_eq!(headers["x-decisio-stages"], stages);
}

#[test]
fn request_headers_have_two_names_and_debugging_needs_a_flag() {
    let read = |name: &'static str, value: &'static str, allowed| {
        let header = move |asked: &str| (asked == name).then(|| value.to_owned());
        Dialect::Decisio.headed(&header, allowed)
    };
    assert_eq!(read("x-decisio-route", "text", false).unwrap().image_route, Some(false));
    assert_eq!(read("x-rlcd-route", "image", false).unwrap().image_route, Some(true));
    assert_eq!(read("x-rlcd-debug", "hidden", true).unwrap().debug, Some(Debug::Hidden));
    for (name, value, allowed) in [
        ("x-decisio-route", "audio", false),
        ("x-decisio-debug", "readout", false),
        ("x-decisio-debug", "all", true),
    ] {
        let fault = read(name, value, allowed).unwrap_err();
        let (status, body) = refused(fault);
        assert!(status == 422 && body["detail"].as_str().unwrap().contains(name), "{body}");
    }
    let unknown = |_: &str| Some("nonsense".to_owned());
    assert!(Dialect::Systemone.headed(&unknown, false).is_ok(), "none of its headers");
}

fn lettered(questions: &Wire) -> Result<letters::Wanted, Undecoded> {
    let body = parsed(&json!({"state": "s", "questions": questions}));
    letters::decode(body, &RequestLimits::default())
}

#[test]
fn the_letters_route_answers_raw_probabilities_in_its_own_order() {
    let wanted = lettered(&json!([
        {"kind": "noul", "instructions": "Late?"},
        {"instructions": "Which?", "options": ["a", "b"]},
        {"derive": {"from": 1, "option": "b"}},
    ]))
    .unwrap();
    let decision = &wanted.decision;
    assert_eq!((decision.questions.len(), decision.applies_tasks), (2, false));
    assert!(matches!(decision.questions[1].kind, Kind::Choice { .. }));
    let choice = Value::Choice {
        chosen: 0,
        keys: vec!["a".to_owned(), "b".to_owned()],
        probabilities: vec![0.9, 0.1],
        confidence: 0.8,
    };
    let decided = decided(vec![noul(0.25), (choice, vec![0.6, 0.4])]);
    let text = letters::encode(&wanted, &decided, Duration::from_millis(180)).unwrap();
    let body: Wire = serde_json::from_str(&text).unwrap();
    assert_eq!(body["answers"][0], json!({"options": ["yes", "no"], "probs": [0.25, 0.75]}));
    assert_eq!(body["answers"][1], json!({"options": ["a", "b"], "probs": [0.6, 0.4]}));
    assert_eq!(body["answers"][2], json!({"options": ["yes", "no"], "probs": [0.4, 0.6]}));
    let timing = &body["timing"];
    assert_eq!((&timing["waited_ms"], &timing["warm_ms"]), (&json!(112.0), &json!(15.0)));
    assert_eq!(timing["waited_behind_registration"], true);
    assert_eq!(
        (&timing["cached_tokens_mean"], &timing["prompt_tokens"]),
        (&json!(6.0), &json!([15, 17]))
    );
    assert_eq!(timing["state_boundary"]["found"], true);
}

#[test]
fn faults_of_the_letters_route_name_their_place() {
    for (questions, code, loc) in [
        (json!([]), "too_short", json!(["body", "questions"])),
        (json!({}), "list_type", json!(["body", "questions"])),
        (json!([{"kind": "choice"}]), "too_short", json!(["body", "questions", 0, "options"])),
        (json!([{"kind": "x"}]), "literal_error", json!(["body", "questions", 0, "kind"])),
        (
            json!([{"options": ["a", "a"]}]),
            "value_error",
            json!(["body", "questions", 0, "options", 1]),
        ),
        (
            json!([{"derive": {"from": 0, "option": "a"}}]),
            "value_error",
            json!(["body", "questions", 0, "derive"]),
        ),
    ] {
        let faults = lettered(&questions).unwrap_err().faults;
        let (status, body) = refused(DecideError::Invalid(faults));
        assert_eq!(status, 422);
        assert_eq!((&body["detail"][0]["type"], &body["detail"][0]["loc"]), (&json!(code), &loc));
    }
}
