//! Recorded values of the public systems that speak this API, against our own arithmetic.
//!
//! Goal: where we state a formula, it is theirs. Method: `data/*.json` (see README.md for where each
//! came from) read as data, one test a formula.

use serde_json::Value;

use docket::readout::{LabelReading, Reading, ReadingKind, ReadingSpec, confidence, softmax};

const TOLERANCE: f64 = 1e-9;

#[cfg(test)]
mod support {
    use super::Value;

    pub(crate) fn recorded(name: &str) -> Value {
        let path = format!("{}/tests/conformance/data/{name}.json", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
        serde_json::from_str(&text).expect("the data is JSON")
    }

    pub(crate) fn numbers(value: &Value) -> Vec<f64> {
        let list = value.as_array().expect("a list");
        list.iter().map(|n| n.as_f64().expect("a number")).collect()
    }

    /// Rows of a list of lists.
    pub(crate) fn rows(value: &Value) -> &Vec<Value> {
        let rows = value.as_array().expect("a list");
        assert!(!rows.is_empty(), "no recorded values");
        rows
    }
}
use support::{numbers, recorded, rows};

fn assert_close(got: f64, want: f64, what: &Value) {
    assert!((got - want).abs() < TOLERANCE, "{what}: got {got}, recorded {want}");
}

#[test]
fn choice_confidence_is_the_recorded_one() {
    for row in rows(&recorded("decisio")["choice_confidence"]) {
        let got = confidence::of_choice(&numbers(&row[0]));
        assert_close(got, row[1].as_f64().expect("a number"), row);
    }
}

#[test]
fn score_confidence_is_the_recorded_one() {
    for row in rows(&recorded("decisio")["score_confidence"]) {
        let got = confidence::of_score(&numbers(&row[0]));
        assert_close(got, row[1].as_f64().expect("a number"), row);
    }
}

#[test]
fn temperature_is_the_recorded_one() {
    for row in rows(&recorded("decisio")["temperature"]) {
        let divisor = row[1].as_f64().expect("a number");
        let got = softmax::temper(numbers(&row[0]), divisor);
        for (got, want) in got.iter().zip(numbers(&row[2])) {
            assert_close(*got, want, row);
        }
    }
}

#[test]
fn probabilities_of_labels_are_those_that_vllm_gives() {
    let recorded = &recorded("vllm")["answers"]["score"];
    let mut reading = Reading::new(ReadingSpec {
        kind: ReadingKind::Score { legend: vec!["lo".into(), "mid".into(), "hi".into()] },
        labels_max: 26,
        orders: 1,
        temperature: 1.0,
        correction: None,
    });
    // The log-probabilities behind the recorded answers (README.md).
    let logprobs = vec![-0.1, -3.0, -5.0];
    let read = LabelReading { logprobs, log_mass: None, greedy_is_label: true, hidden: None };
    reading.absorb(vec![read]).expect("finite");
    let docket::question::answer::Value::Score { mean, probabilities, .. } = reading.finish().0
    else {
        panic!("a score is answered by a score")
    };
    // Log-probabilities are f32 on this boundary, so the comparison is to f32's precision.
    assert!((mean - recorded["score"].as_f64().expect("a number")).abs() < 1e-7);
    for (level, got) in probabilities.iter().enumerate() {
        let want = recorded["probabilities"][level.to_string()].as_f64().expect("a number");
        assert!((got - want).abs() < 1e-7, "level {level}: got {got}, recorded {want}");
    }
}
