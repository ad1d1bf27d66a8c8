//! What the vectors cannot say of the `openai` dialect: numbers in answers, and how values are shown.

use std::time::Duration;

use actors::Lane;
use serde_json::{Value as Wire, json};

use crate::dialect::decisions::{self, Asked};
use crate::dialect::{Dialect, Extras, RequestLimits};
use crate::error::DecideError;
use crate::json::{Json, Limits};
use crate::question::Kind;
use crate::question::answer::{Answer, Cost, Diagnostics, Learned, RowTokens, Value};
use crate::service::Decided;

fn asked(questions: &Wire) -> Asked {
    let body = json!({"model": "m", "input": "s", "questions": questions});
    let json = Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap();
    decisions::decode(json, &RequestLimits::default()).unwrap()
}

fn keys(choices: &Wire) -> Vec<String> {
    let questions = json!([{"type": "choice", "instructions": "x", "choices": choices}]);
    let Kind::Choice { options } = asked(&questions).decision.questions.remove(0).kind else {
        panic!("a choice")
    };
    options.into_iter().map(|option| option.key).collect()
}

fn decided(values: Vec<Value>) -> Decided {
    let answer = |(index, value): (usize, Value)| Answer {
        id: index.to_string(),
        value,
        diagnostics: Diagnostics::default(),
        raw: Vec::new(),
        hidden: None,
        learned: Learned::default(),
        citations: None,
    };
    let zero = Duration::ZERO;
    let cost = Cost {
        lane: Lane::Normal,
        input_tokens: 12,
        prompt_tokens: 50,
        computed_tokens: 34,
        cached_tokens: 16,
        prepare: zero,
        queue_wait: zero,
        state_wait: zero,
        state_time: zero,
        engine_wait: zero,
        engine_time: zero,
        steps_time: zero,
        behind_registration: false,
        state_tokenisations: 1,
        rows: vec![RowTokens { prompt: 24, cached: 0 }, RowTokens { prompt: 26, cached: 16 }],
        prefix_tokens: 16,
        runs: 1,
    };
    Decided {
        answers: values.into_iter().enumerate().map(answer).collect(),
        cost,
        tasks: Vec::new(),
        model: "m".to_owned(),
        stages: Vec::new(),
        reused: false,
        tier: actors::Tier::Exact,
        state_text: None,
        state_key: None,
        served: Box::new(|| {}),
    }
}

fn three() -> Vec<Value> {
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    vec![
        Value::Noul { yes: 0.123_456_789 },
        Value::Choice {
            chosen: 1,
            keys: texts(&["true", "false"]),
            probabilities: vec![0.5, 0.5],
            confidence: 0.0,
        },
        Value::Score {
            mean: 0.75,
            legend: texts(&["low: x", "high"]),
            probabilities: vec![0.25, 0.75],
            confidence: 0.5,
        },
    ]
}

#[test]
fn answers_are_a_list_with_names_and_values_as_sent() {
    let asked = asked(&json!([
        {"type": "predicate", "instructions": "x", "name": "late"},
        {"type": "choice", "instructions": "x", "choices": [{"value": true}, {"value": false}]},
        {"type": "score", "instructions": "x", "name": "late",
         "levels": [{"label": "low", "description": "x"}, {"label": "high"}]},
    ]));
    let text = decisions::encode(&asked.wanted, &decided(three())).unwrap();
    let body: Wire = serde_json::from_str(&text).unwrap();
    let expected = json!([
        {"type": "predicate", "name": "late", "probability": 0.123_456_789},
        {"type": "choice", "name": null, "choice": true, "probabilities": [
            {"value": true, "probability": 0.5}, {"value": false, "probability": 0.5},
        ], "confidence": 0.0},
        {"type": "score", "name": "late", "score": 0.75, "probabilities": [
            {"value": 0, "label": "low", "probability": 0.25},
            {"value": 1, "label": "high", "probability": 0.75},
        ], "confidence": 0.5},
    ]);
    assert_eq!(body["answers"], expected);
    let Kind::Score { levels } = &asked.decision.questions[2].kind else { panic!("a score") };
    assert_eq!(levels[0], Json::String("low: x".to_owned()));
    assert_eq!(levels[1], Json::String("high".to_owned()));
}

#[test]
fn usage_counts_prompts_and_what_of_them_was_found_and_written() {
    let text = Dialect::Openai.decided(&decided(three()), &Extras::default()).unwrap();
    let body: Wire = serde_json::from_str(&text).unwrap();
    let expected = json!({
        "input_tokens": 50,
        "input_tokens_details": {"cached_tokens": 16, "cache_write_tokens": 16},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 50,
    });
    assert_eq!((&body["model"], &body["usage"]), (&json!("m"), &expected));
    assert_eq!(body["answers"][1]["choice"], "true");
}

#[test]
fn a_value_is_shown_as_it_is_unless_that_tells_nothing() {
    assert_eq!(keys(&json!([{"value": "a b"}, {"value": true}])), ["a b", "true"]);
    assert_eq!(keys(&json!([{"value": "true"}, {"value": true}])), ["\"true\"", "true"]);
    assert_eq!(keys(&json!([{"value": " "}, {"value": "b"}])), ["\" \"", "\"b\""]);
}

#[test]
fn messages_are_told_apart_by_an_empty_line_and_parts_by_a_line_end() {
    let body = json!({"model": "m", "questions": [{"type": "predicate", "instructions": "x"}],
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "a"},
                                     {"type": "input_text", "text": "b"}]},
        {"role": "user", "content": "c"},
    ]});
    let json = Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap();
    let asked = decisions::decode(json, &RequestLimits::default()).unwrap();
    assert_eq!(asked.decision.state, Json::String("a\nb\n\nc".to_owned()));
}

#[test]
fn salts_of_different_fields_are_different() {
    let salt = |field: &str| {
        let question = json!([{"type": "predicate", "instructions": "x"}]);
        let body = json!({"model": "m", "input": "s", "questions": question, field: "k"});
        let json = Json::parse(body.to_string().as_bytes(), Limits::default()).unwrap();
        decisions::decode(json, &RequestLimits::default()).unwrap().decision.salt
    };
    assert_eq!(salt("safety_identifier"), None);
    let (one, other) = (salt("cache_salt"), salt("prompt_cache_key"));
    assert!(one.is_some() && other.is_some() && one != other);
}

#[test]
fn a_number_that_is_not_finite_is_our_own_fault() {
    let decided = decided(vec![Value::Noul { yes: f64::NAN }]);
    let encoded = Dialect::Openai.decided(&decided, &Extras::default());
    assert!(matches!(encoded, Err(DecideError::Internal { .. })));
}
