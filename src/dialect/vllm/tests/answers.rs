//! Answers against those that vLLM's own functions gave.

use std::time::Duration;

use actors::Lane;
use serde_json::{Value as Wire, json};

use super::{decode, recorded, with};
use crate::dialect::{Dialect, Extras};
use crate::error::DecideError;
use crate::question::answer::{Answer, Cost, Diagnostics, Learned, Value};
use crate::service::Decided;

/// Log-probabilities of the labels that the recorded answers stand on.
const LOGPROBS: [f64; 3] = [-0.1, -3.0, -5.0];

fn answer(id: &str, value: Value, label_mass: Option<f64>) -> Answer {
    Answer {
        id: id.to_owned(),
        value,
        diagnostics: Diagnostics { label_mass, argmax_is_label: true, ..Diagnostics::default() },
        raw: Vec::new(),
        hidden: None,
        learned: Learned::default(),
        citations: None,
    }
}

fn decided(answers: Vec<Answer>) -> Decided {
    let zero = Duration::ZERO;
    let cost = Cost {
        lane: Lane::Normal,
        input_tokens: 12,
        prompt_tokens: 142,
        computed_tokens: 20,
        cached_tokens: 10,
        prepare: zero,
        queue_wait: zero,
        state_wait: zero,
        state_time: zero,
        engine_wait: zero,
        engine_time: zero,
        steps_time: zero,
        behind_registration: false,
        state_tokenisations: 1,
        rows: Vec::new(),
        prefix_tokens: 5,
        runs: 1,
    };
    Decided {
        answers,
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

fn encode(decided: &Decided) -> Result<Wire, DecideError> {
    let extras = Extras { request_id: "r-1".to_owned(), ..Extras::default() };
    Ok(serde_json::from_str(&Dialect::Vllm.decided(decided, &extras)?).unwrap())
}

/// Shares of the labels, and their mass.
fn shares(logprobs: &[f64]) -> (Vec<f64>, f64) {
    let mass: f64 = logprobs.iter().map(|x| x.exp()).sum();
    (logprobs.iter().map(|x| x.exp() / mass).collect(), mass)
}

/// The recorded answer with every number as near as `f64` sums allow.
fn assert_near(found: &Wire, expected: &Wire) {
    match (found, expected) {
        (Wire::Number(found), Wire::Number(expected)) => {
            let (found, expected) = (found.as_f64().unwrap(), expected.as_f64().unwrap());
            assert!((found - expected).abs() < 1e-12, "{found} and not {expected}");
        }
        (Wire::Object(found), Wire::Object(expected)) => {
            assert!(found.keys().eq(expected.keys()), "{found:?} and not {expected:?}");
            for (key, value) in found {
                assert_near(value, &expected[key]);
            }
        }
        (found, expected) => assert_eq!(found, expected),
    }
}

#[test]
fn answers_are_those_of_vllm_on_the_same_log_probabilities() {
    let (three, mass) = shares(&LOGPROBS);
    let (two, mass_of_two) = shares(&LOGPROBS[..2]);
    let choice = Value::Choice {
        chosen: 1,
        keys: ["a", "b", "c"].map(str::to_owned).to_vec(),
        probabilities: three.clone(),
        confidence: 0.5,
    };
    let score = Value::Score {
        mean: three[1] + 2.0 * three[2],
        legend: ["lo", "mid", "hi"].map(str::to_owned).to_vec(),
        probabilities: three,
        confidence: 0.5,
    };
    let all = decided(vec![
        answer("choice", choice, Some(mass)),
        answer("score", score, Some(mass)),
        answer("noul", Value::Noul { yes: two[0] }, Some(mass_of_two)),
    ]);
    let body = encode(&all).unwrap();
    for (name, expected) in recorded("answers") {
        assert_near(&body["answers"][&name], &expected);
    }
    assert_eq!(body["id"], "decision-r-1");
    assert_eq!((&body["object"], &body["model"]), (&json!("structured_decision"), &json!("m")));
    assert!(body["created"].as_u64().unwrap() > 1_700_000_000);
    assert_eq!(body["usage"], json!({"input_tokens": 142, "output_tokens": 3}));
    let reading = json!({"label_mass": mass, "argmax_is_label": true});
    assert_near(&body["diagnostics"]["choice"], &reading);
    assert_eq!(body.as_object().unwrap().len(), 7, "{body}");
}

#[test]
fn one_option_is_as_sure_as_its_label_and_of_equals_the_first_is_chosen() {
    let choice = |keys: &[&str], probabilities: &[f64]| Value::Choice {
        chosen: keys.len() - 1,
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        probabilities: probabilities.to_vec(),
        confidence: 1.0,
    };
    let all = decided(vec![
        answer("one", choice(&["x"], &[1.0]), Some(0.25)),
        answer("two", choice(&["z", "a"], &[0.5, 0.5]), Some(1.0)),
        answer("no", Value::Noul { yes: 0.25 }, Some(0.5)),
    ]);
    let answers = encode(&all).unwrap()["answers"].clone();
    assert_eq!(
        (&answers["one"]["confidence"], &answers["two"]["choice"]),
        (&json!(0.25), &json!("z"))
    );
    assert_eq!(answers["no"]["confidence"], 0.375);
}

#[test]
fn an_answer_without_label_mass_is_our_fault() {
    let without = decided(vec![answer("q", Value::Noul { yes: 0.5 }, None)]);
    assert!(matches!(encode(&without), Err(DecideError::Internal { .. })));
    let decision = decode(&with(&json!({"type": "noul"}))).unwrap();
    assert!(decision.questions.iter().all(|question| question.wants_mass));
}
