//! Decoding and encoding against the contract, field by field.

mod prewarm;
mod staging;

use std::time::Duration;

use actors::{Lane, Tier};
use proptest::prelude::*;
use serde_json::json;

use crate::dialect::{Decoded, Dialect, Extras, FAULTS_MAX, RequestLimits, Undecoded};
use crate::error::{DecideError, Problem, Step};
use crate::json::{Json, Limits};
use crate::question::answer::{Answer, Cost, Diagnostics, Learned, Value};
use crate::question::{Decision, Kind, Samples};
use crate::service::Decided;

fn decode_noting(body: &serde_json::Value) -> Result<Decoded<Decision>, Undecoded> {
    let body = Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap();
    Dialect::Systemone.decision(body, &RequestLimits::default())
}

fn decode(body: &serde_json::Value) -> Result<Decoded<Decision>, Vec<Problem>> {
    decode_noting(body).map_err(|undecoded| undecoded.faults)
}

fn with_question(question: &serde_json::Value) -> serde_json::Value {
    json!({"state": "s", "questions": {"q": question}})
}

fn kind(question: &serde_json::Value) -> Kind {
    decode(&with_question(question)).unwrap().request.questions.remove(0).kind
}

/// Code and path of each fault.
fn faults(body: &serde_json::Value) -> Vec<(&'static str, String)> {
    places(&decode(body).unwrap_err())
}

fn places(problems: &[Problem]) -> Vec<(&'static str, String)> {
    let dotted = |path: &[Step]| {
        let step = |step: &Step| match step {
            Step::Key(key) => key.clone(),
            Step::Index(index) => index.to_string(),
        };
        path.iter().map(step).collect::<Vec<_>>().join(".")
    };
    problems.iter().map(|problem| (problem.code, dotted(&problem.path))).collect()
}

fn question_fault(question: &serde_json::Value) -> (&'static str, String) {
    let mut found = faults(&with_question(question));
    assert_eq!(found.len(), 1);
    found.remove(0)
}

#[test]
fn a_full_request_is_decoded_in_order() {
    let decoded = decode(&json!({
        "model": "jev-latest", "state": {"b": 1, "a": null}, "samples": 4, "x_priority": "urgent",
        "timeout_ms": 2500, "diagnostics": true,
        "questions": {
            "z": {"type": "noul", "instructions": null, "criteria": {"true": "yes", "false": null}},
            "a": {"type": "choice", "instructions": ["pick"], "criteria": {"B": null, "A": {"x": 1}},
                  "x_samples": "auto"},
            "m": {"type": "score", "criteria": ["low", {"l": 1}, ["high"]]},
        },
    }))
    .unwrap();
    let decision = decoded.request;
    assert_eq!(decision.state.compact(), r#"{"b":1,"a":null}"#);
    assert_eq!(decision.samples, Some(Samples::Count(4)));
    assert_eq!(decision.lane, Some(Lane::Urgent));
    assert_eq!(decision.timeout, Some(Duration::from_millis(2500)));
    assert!(decision.diagnostics);
    let ids: Vec<&str> = decision.questions.iter().map(|q| q.id.as_str()).collect();
    assert_eq!(ids, ["z", "a", "m"]);
    assert_eq!(decision.questions[0].instructions, None);
    assert_eq!(decision.questions[1].samples, Some(Samples::Auto));
    let Kind::Choice { options } = &decision.questions[1].kind else { panic!("not a choice") };
    assert_eq!((options[0].key.as_str(), &options[0].description), ("B", &None));
    assert_eq!(options[1].description.as_ref().unwrap().compact(), r#"{"x":1}"#);
    assert_eq!(decision.questions[2].kind.options(), 3);
    assert_eq!(decoded.ignored, Vec::<String>::new());
}

#[test]
fn unknown_fields_are_ignored_and_listed() {
    let mut body = with_question(&json!({
        "type": "noul", "alone": true, "criteria": {"true": 1, "maybe": 2}
    }));
    body["seed"] = json!(7);
    body["asks"] = json!(["q"]);
    let decoded = decode(&body).unwrap();
    assert_eq!(
        decoded.ignored,
        ["seed", "asks", "questions.q.alone", "questions.q.criteria.maybe"]
    );
    for name in 0..40 {
        body[format!("u{name}")] = json!(0);
    }
    assert_eq!(decode(&body).unwrap().ignored.len(), 16);
}

#[test]
fn a_misspelt_field_is_listed_beside_the_fault_it_causes() {
    let mut body = with_question(&json!({"type": "choice", "critera": ["a"]}));
    body["sample"] = json!(2);
    let undecoded = decode_noting(&body).unwrap_err();
    assert_eq!(undecoded.faults[0].code, "missing");
    assert_eq!(undecoded.ignored, ["sample", "questions.q.critera"]);
}

#[test]
fn both_spellings_of_an_extension_contradict_each_other() {
    let mut body = with_question(&json!({"type": "noul"}));
    body["samples"] = json!(2);
    body["x_samples"] = json!(3);
    assert_eq!(faults(&body), [("duplicate_key", "x_samples".to_owned())]);
}

#[test]
fn a_choice_may_be_a_list_of_distinct_names() {
    let Kind::Choice { options } = kind(&json!({"type": "choice", "criteria": ["a", "b"]})) else {
        panic!("not a choice")
    };
    assert_eq!(options.len(), 2);
    let twice = json!({"type": "choice", "criteria": ["a", "b", "a"]});
    assert_eq!(question_fault(&twice), ("duplicate_key", "questions.q.criteria.2".to_owned()));
}

#[test]
fn case_52_255_options_are_accepted_and_256_are_not() {
    let options = |count: usize| -> serde_json::Value {
        (0..count).map(|i| (format!("o{i}"), json!(null))).collect::<serde_json::Map<_, _>>().into()
    };
    let choice = |count| json!({"type": "choice", "criteria": options(count)});
    assert_eq!(kind(&choice(1)).options(), 1);
    assert_eq!(kind(&choice(255)).options(), 255);
    assert_eq!(question_fault(&choice(256)).0, "too_many");
    assert_eq!(question_fault(&choice(0)).0, "too_few");
    let score = |count| json!({"type": "score", "criteria": vec!["x"; count]});
    assert_eq!(kind(&score(2)).options(), 2);
    assert_eq!(kind(&score(255)).options(), 255);
    assert_eq!(question_fault(&score(1)).0, "too_few");
    assert_eq!(question_fault(&score(256)).0, "too_many");
}

#[test]
fn each_wrong_field_is_named() {
    let at = |field: &str| format!("questions.q{field}");
    for (question, code, path) in [
        (json!(1), "wrong_type", at("")),
        (json!({}), "missing", at(".type")),
        (json!({"type": null}), "wrong_type", at(".type")),
        (json!({"type": "boolean"}), "unknown_type", at(".type")),
        (json!({"type": "noul", "criteria": ["a"]}), "wrong_type", at(".criteria")),
        (json!({"type": "noul", "samples": 0}), "samples_invalid", at(".samples")),
        (json!({"type": "noul", "samples": 1.5}), "samples_invalid", at(".samples")),
        (json!({"type": "noul", "samples": true}), "samples_invalid", at(".samples")),
        (json!({"type": "choice"}), "missing", at(".criteria")),
        (json!({"type": "choice", "criteria": "a"}), "wrong_type", at(".criteria")),
        (json!({"type": "choice", "criteria": [1]}), "wrong_type", at(".criteria.0")),
        (json!({"type": "choice", "criteria": {"": 1}}), "option_blank", at(".criteria")),
        (json!({"type": "score", "criteria": {"0": "a"}}), "wrong_type", at(".criteria")),
        (json!({"type": "score", "criteria": ["a", null]}), "wrong_type", at(".criteria.1")),
    ] {
        assert_eq!(question_fault(&question), (code, path), "{question}");
    }
    let noul = json!({"q": {"type": "noul"}});
    for (body, code, path) in [
        (json!([]), "wrong_type", ""),
        (json!({"questions": noul}), "missing", "state"),
        (json!({"state": null, "questions": noul}), "wrong_type", "state"),
        (json!({"state": 1}), "missing", "questions"),
        (json!({"state": 1, "questions": {}}), "too_few", "questions"),
        (json!({"state": 1, "questions": []}), "wrong_type", "questions"),
        (json!({"state": 1, "questions": {"": {"type": "noul"}}}), "id_empty", "questions."),
        (
            json!({"state": 1, "questions": noul, "priority": "high"}),
            "priority_invalid",
            "priority",
        ),
        (json!({"state": 1, "questions": noul, "timeout_ms": 0}), "timeout_invalid", "timeout_ms"),
        (
            json!({"state": 1, "questions": noul, "timeout_ms": 600_001}),
            "timeout_invalid",
            "timeout_ms",
        ),
        (json!({"state": 1, "questions": noul, "x_diagnostics": 1}), "wrong_type", "x_diagnostics"),
    ] {
        assert_eq!(faults(&body), [(code, path.to_owned())], "{body}");
    }
}

#[test]
fn all_faults_are_found_up_to_the_limit() {
    let found = faults(&json!({"questions": {"a": {"type": "x"}, "b": 1, "c": {"type": "noul"}}}));
    assert_eq!(found.len(), 3);
    let many: serde_json::Map<_, _> = (0..40).map(|i| (format!("q{i}"), json!(0))).collect();
    assert_eq!(faults(&json!({"questions": many})).len(), FAULTS_MAX);
}

#[test]
fn questions_are_limited_and_the_message_names_both_numbers() {
    let many: serde_json::Map<_, _> =
        (0..65).map(|i| (format!("q{i}"), json!({"type": "noul"}))).collect();
    let problems = decode(&json!({"state": 1, "questions": many})).unwrap_err();
    assert_eq!(problems[0].message, "questions has 65 members, at most 64 are answered");
}

#[test]
fn messages_do_not_grow_with_the_request() {
    let long = "x".repeat(1 << 20);
    for body in [
        with_question(&json!({"type": long})),
        with_question(&json!({"type": [long]})),
        with_question(&json!({"type": "choice", "criteria": [long, long]})),
        json!({"state": 1, "questions": long}),
        json!({"state": 1, "questions": {"q": {"type": "noul"}}, "priority": long}),
    ] {
        for problem in decode(&body).unwrap_err() {
            assert!(problem.message.len() < 300, "{}", problem.message);
        }
    }
}

fn cost() -> Cost {
    Cost {
        lane: Lane::Normal,
        input_tokens: 12,
        prompt_tokens: 30,
        computed_tokens: 20,
        cached_tokens: 10,
        prepare: Duration::from_millis(1),
        queue_wait: Duration::from_millis(1),
        state_wait: Duration::from_millis(2),
        state_time: Duration::from_millis(2),
        engine_wait: Duration::from_millis(3),
        engine_time: Duration::from_millis(4),
        steps_time: Duration::from_millis(4),
        behind_registration: true,
        state_tokenisations: 1,
        rows: Vec::new(),
        prefix_tokens: 0,
        runs: 1,
    }
}

fn decided(value: Value) -> Decided {
    let diagnostics = Diagnostics { label_mass: Some(0.75), ..Diagnostics::default() };
    Decided {
        answers: vec![Answer {
            id: "q \"1\"".to_owned(),
            value,
            diagnostics,
            raw: Vec::new(),
            hidden: None,
            learned: Learned::default(),
            citations: None,
        }],
        tasks: Vec::new(),
        cost: cost(),
        model: "m".to_owned(),
        stages: Vec::new(),
        reused: false,
        tier: Tier::Exact,
        state_text: None,
        state_key: None,
        served: Box::new(|| {}),
    }
}

fn encode(value: Value, diagnostics: bool) -> serde_json::Value {
    let text = Dialect::Systemone
        .decided(&decided(value), &Extras { diagnostics, ..Extras::default() })
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn answers_have_the_official_shapes() {
    let noul = encode(Value::Noul { yes: 0.1 + 0.2 }, false);
    assert_eq!(
        noul,
        json!({
            "model": "m",
            "answers": {"q \"1\"": {"type": "noul", "noul": 0.1 + 0.2}},
            "usage": {"input_tokens": 12, "output_tokens": 0},
        })
    );
    let choice = Value::Choice {
        chosen: 1,
        keys: vec!["b".to_owned(), "환불".to_owned()],
        probabilities: vec![0.25, 0.75],
        confidence: 0.5,
    };
    assert_eq!(
        encode(choice, false)["answers"]["q \"1\""],
        json!({"type": "choice", "choice": "환불", "confidence": 0.5,
               "probabilities": {"b": 0.25, "환불": 0.75}})
    );
    let score = Value::Score {
        mean: 0.5,
        legend: vec!["low".to_owned(), "high".to_owned()],
        probabilities: vec![0.5, 0.5],
        confidence: 0.0,
    };
    assert_eq!(
        encode(score, false)["answers"]["q \"1\""],
        json!({"type": "score", "score": 0.5, "confidence": 0.0,
               "legend": {"0": "low", "1": "high"}, "probabilities": {"0": 0.5, "1": 0.5}})
    );
}

#[test]
fn diagnostics_come_only_when_asked_for() {
    let body = encode(Value::Noul { yes: 0.5 }, true);
    let reading = &body["answers"]["q \"1\""]["x_diagnostics"];
    assert_eq!(
        reading,
        &json!({"label_mass": 0.75, "argmax_is_label": false, "entropy": 0.0, "orders": 0,
                "order_consistency": 0.0, "reads": 0})
    );
    let cost = &body["x_diagnostics"];
    assert_eq!((&cost["queue_ms"], &cost["engine_ms"]), (&json!(4.0), &json!(4.0)));
    assert_eq!(cost["lane"], "normal");
    assert_eq!(cost["wait_behind"], "registration");
}

#[test]
fn case_42_a_number_that_is_not_finite_is_an_error_and_never_nan_on_the_wire() {
    for yes in [f64::NAN, f64::INFINITY] {
        let error = Dialect::Systemone
            .decided(&decided(Value::Noul { yes }), &Extras::default())
            .unwrap_err();
        assert!(matches!(error, DecideError::Internal { .. }));
    }
}

/// Any JSON, mostly of the names that requests have.
fn any_json() -> impl Strategy<Value = Json> {
    let name = || {
        prop::sample::select(vec![
            "state",
            "states",
            "questions",
            "type",
            "criteria",
            "instructions",
            "samples",
            "x_samples",
            "priority",
            "timeout_ms",
            "diagnostics",
            "noul",
            "choice",
            "score",
            "true",
            "",
        ])
        .prop_map(str::to_owned)
    };
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::Bool),
        any::<i32>().prop_map(|n| Json::Number(n.to_string())),
        name().prop_map(Json::String),
    ];
    leaf.prop_recursive(5, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Json::Array),
            prop::collection::btree_map(name(), inner, 0..6)
                .prop_map(|members| Json::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_is_decoded_or_refused_with_faults(body in any_json()) {
        let limits = RequestLimits::default();
        let decided = Dialect::Systemone.decision(body.clone(), &limits).map(|_| ());
        let prewarmed = Dialect::Systemone.prewarm(body, &limits).map(|_| ());
        for undecoded in [decided, prewarmed].into_iter().filter_map(Result::err) {
            prop_assert!((1..=FAULTS_MAX).contains(&undecoded.faults.len()));
        }
    }
}
