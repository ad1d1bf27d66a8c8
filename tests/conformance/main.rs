//! Recorded values of the public systems that speak this API, against our own arithmetic.
//!
//! Goal: where we state a formula, it is theirs. Method: `data/*.json` (see README.md for where each
//! came from) read as data, one test a formula.

use serde_json::Value;

use docket::readout::{
    LabelReading, Reading, ReadingKind, ReadingSpec, Shown, confidence, noul, softmax,
};

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
        entropy_max: None,
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

/// Temperature and scale of gmlx's letter readout, with which its values were recorded.
const GMLX_TEMPERATURE: f64 = 0.85;
const GMLX_NOUL_SCALE: f64 = 1.829_074;

#[test]
fn a_scaled_noul_is_the_recorded_one() {
    let recorded = recorded("gmlx");
    let rows = recorded["noul"].as_object().expect("an object");
    assert_eq!(rows.len(), 4);
    for (scores, want) in rows {
        let scores: Vec<f32> = serde_json::from_str(scores).expect("scores of yes and no");
        let p = softmax::temper(softmax::softmax(&scores).expect("finite"), GMLX_TEMPERATURE);
        let got = noul::scaled(p[0], GMLX_NOUL_SCALE);
        assert_close(got, want.as_f64().expect("a number"), want);
    }
}

/// Reads a question of which the label at place `i` always has the score `-(i % 7)`, as the recorded
/// ones had; with how many reads in how many rounds.
fn read_as_gmlx(kind: ReadingKind) -> (docket::question::answer::Value, usize, usize) {
    let mut reading = Reading::new(ReadingSpec {
        entropy_max: None,
        kind,
        labels_max: 52,
        orders: 1,
        temperature: GMLX_TEMPERATURE,
        correction: None,
    });
    let (mut passes, mut rounds) = (0, 0);
    loop {
        let wanted = reading.wanted();
        if wanted.is_empty() {
            return (reading.finish().0, passes, rounds);
        }
        passes += wanted.len();
        rounds += 1;
        let read = |shown: &Shown| LabelReading {
            logprobs: (0..shown.options.len()).map(|place| -((place % 7) as f32)).collect(),
            log_mass: None,
            greedy_is_label: true,
            hidden: None,
        };
        let absorbed = reading.absorb(wanted.iter().map(read).collect());
        assert_eq!(absorbed, Ok(()), "the scores are finite");
    }
}

#[test]
fn sixty_options_are_read_and_composed_as_recorded() {
    let recorded = &recorded("gmlx")["chunks60"];
    let keys = (0..60).map(|option| format!("o{option}")).collect();
    let (value, passes, rounds) = read_as_gmlx(ReadingKind::Choice { keys });
    let docket::question::answer::Value::Choice { chosen, keys, probabilities, .. } = value else {
        panic!("a choice is answered by a choice")
    };
    assert_eq!((recorded["passes"].as_u64(), recorded["rounds"].as_u64()), (Some(3), Some(2)));
    assert_eq!((passes, rounds), (3, 2));
    assert_eq!(recorded["choice"], keys[chosen]);
    for option in [0, 30] {
        let want = recorded[format!("o{option}")].as_f64().expect("a number");
        assert_close(probabilities[option], want, recorded);
    }
    assert_close(probabilities.iter().sum(), recorded["sum"].as_f64().expect("a number"), recorded);
}

/// gmlx keys its distribution by name, so that of two levels of one name the first is lost and the
/// sum is not 1; the others are as recorded.
#[test]
fn levels_of_one_name_are_as_recorded_but_for_the_one_that_was_lost() {
    let recorded = &recorded("gmlx")["dup_levels"]["s"];
    let legend = ["same", "same", "other"].map(str::to_owned).to_vec();
    let docket::question::answer::Value::Score { probabilities, legend, .. } =
        read_as_gmlx(ReadingKind::Score { legend }).0
    else {
        panic!("a score is answered by a score")
    };
    for level in [1, 2] {
        let want = recorded["probabilities"][level.to_string()].as_f64().expect("a number");
        assert_close(probabilities[level], want, recorded);
    }
    assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < TOLERANCE, "{probabilities:?}");
    assert_eq!(legend[0], legend[1]);
}
