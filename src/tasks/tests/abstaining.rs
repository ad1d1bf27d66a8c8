//! Options for not knowing: declared, appended, fitted.

use super::*;
use crate::question::answer::Abstention;
use crate::tasks::apply::UNKNOWN_KEY;
use crate::tasks::order::Example;

pub(super) fn abstention(option: &Wire, matches: &str, identity: &str) -> AbstentionTask {
    let record = json!({
        "format": "decisio-abstention/1", "id": "u", "option": option, "match": matches,
        "identity": identity, "fingerprint": "letters", "applied": true, "threshold": 0.3,
    });
    AbstentionTask::read(&record).unwrap()
}

pub(super) fn finished(desk: &Desk, body: &Wire, images_form: bool, p: &[f64]) -> Answer {
    let mut decision = decision(body);
    decision.images_form = images_form;
    let plan = plan(desk, &tenant("one"), (&mut decision, false), &EVEN).unwrap();
    let mut answers = vec![answer(&decision.questions[0], p)];
    plan.finish(&mut answers);
    answers.remove(0)
}

#[test]
fn a_declared_option_is_believed_above_its_threshold_alone() {
    let desk = desk();
    let kind = decision(&routing("x")).questions[0].kind.clone();
    let set = crate::prompt::identity::option_set(&named::KEYS, &kind);
    let task = abstention(&json!({"key": "none"}), "option_set", &set);
    desk.keep_abstention_now(&tenant("one"), vec![task]).unwrap();
    let chosen = |p: &[f64]| {
        let answer = finished(&desk, &routing("x"), false, p);
        let Value::Choice { chosen, keys, probabilities, .. } = answer.value else { panic!() };
        assert_eq!(probabilities, p, "they stay as they are");
        (keys[chosen].clone(), answer.learned.abstention.unwrap())
    };
    let (key, abstention) = chosen(&[0.35, 0.34, 0.31]);
    assert_eq!((key.as_str(), abstention), ("none", Abstention { unknown: 0.31, abstained: true }));
    let (key, abstention) = chosen(&[0.2, 0.5, 0.3]);
    assert_eq!((key.as_str(), abstention.abstained), ("b", false), "not above it");
    let (key, _) = chosen(&[0.4, 0.4, 0.2]);
    assert_eq!(key, "a", "among equals the first key");
}

#[test]
fn an_appended_option_is_offered_in_the_form_of_images_and_taken_out_of_the_answer() {
    let desk = desk();
    let task = abstention(&json!({"append": "It cannot be told."}), "imajev_extension", "");
    desk.keep_abstention_now(&tenant("one"), vec![task]).unwrap();
    let plain = finished(&desk, &routing("x"), false, &[0.5, 0.3, 0.2]);
    assert_eq!(plain.learned.abstention, None);
    let offered = finished(&desk, &routing("x"), true, &[0.3, 0.2, 0.1, 0.4]);
    let Value::Choice { chosen, keys, probabilities, .. } = offered.value else { panic!() };
    assert_eq!((chosen, keys.len()), (0, 3));
    assert!(!keys.iter().any(|key| key == UNKNOWN_KEY));
    assert!((probabilities[0] - 0.5).abs() < 1e-12 && (probabilities[2] - 1.0 / 6.0).abs() < 1e-12);
    assert_eq!(offered.learned.abstention.unwrap(), Abstention { unknown: 0.4, abstained: true });
    let noul = json!({"state": "x", "questions": {"q": {"type": "noul"}}});
    let noul = finished(&desk, &noul, true, &[0.5, 0.3, 0.2]);
    assert_eq!(noul.value, Value::Noul { yes: 0.5 + 0.2 / 2.0 });
    assert_eq!(noul.learned.abstention.unwrap(), Abstention { unknown: 0.2, abstained: false });
}

/// Probabilities that the examples of an abstention order are read with, in their order.
#[tokio::test]
async fn a_threshold_is_fitted_to_what_examples_show() {
    let desk = desk();
    let told = Told::default();
    let mut examples = Vec::new();
    for n in 0..24 {
        let unknown = n % 3 == 0;
        let p = if unknown { vec![0.4, 0.25, 0.35] } else { vec![0.2, 0.75, 0.05] };
        told.answers.lock().unwrap().push_back(Ok(p));
        let answer = if unknown { Wire::Null } else { json!("b") };
        examples.push(json!({"request": routing(&n.to_string()), "answer": answer}));
    }
    let body = json!({"id": "u", "option": {"key": "none"}, "examples": examples});
    let order = order::abstention(&json(&body), &decoded).unwrap();
    let held: Vec<&Example> = order.examples.iter().filter(|e| e.gold.is_none()).collect();
    assert_eq!(held.len(), 8);
    let progress = Progress::default();
    let record =
        register::abstaining((&desk, &told), tenant("one"), order, &progress).await.unwrap();
    assert_eq!((&record["n"], &record["n_unanswerable"]), (&json!(24), &json!(8)));
    assert_eq!((&record["applied"], &record["right_plain"]), (&json!(true), &json!(16)));
    let threshold = record["threshold"].as_f64().unwrap();
    assert!((0.05..0.35).contains(&threshold), "{record}");
    let answer = finished(&desk, &routing("new"), false, &[0.4, 0.25, 0.35]);
    assert!(answer.learned.abstention.unwrap().abstained);
}

/// A task of the routing question that certifies every answer.
fn certifying() -> Task {
    let question = &decision(&routing("x")).questions[0];
    let record = json!({
        "format": "decisio-task/1", "id": "c", "type": "choice", "fingerprint": "letters",
        "task_key": crate::prompt::identity::task_key(&named::KEYS, question),
        "options": ["a", "b", "none"], "applied_to": "each order", "head": null,
        "calibration": {"applied": false}, "certificate": {"certified": true, "threshold": 0.5},
        "examples": {"counts": [1, 1, 1], "confidences": [0.9]},
    });
    Task::read(&record).unwrap()
}

#[test]
fn a_question_without_an_answer_is_never_certified() {
    let desk = desk();
    desk.keep_now(&tenant("one"), vec![certifying()]).unwrap();
    let kind = decision(&routing("x")).questions[0].kind.clone();
    let set = crate::prompt::identity::option_set(&named::KEYS, &kind);
    let certified = |p: &[f64], images_form: bool| {
        let certified = finished(&desk, &routing("x"), images_form, p).learned.certified;
        certified.map(|certified| certified.is_certified)
    };
    assert_eq!(certified(&[0.1, 0.8, 0.1], false), Some(true));
    let task = abstention(&json!({"key": "none"}), "option_set", &set);
    desk.keep_abstention_now(&tenant("one"), vec![task]).unwrap();
    assert_eq!(certified(&[0.1, 0.2, 0.7], false), Some(false), "it counts as unanswered");
    let mut unsure = abstention(&json!({"key": "none"}), "option_set", &set);
    unsure.threshold = Some(0.999);
    desk.keep_abstention_now(&tenant("one"), vec![unsure]).unwrap();
    assert_eq!(certified(&[0.01, 0.02, 0.97], false), Some(false), "the answer is another one");
    let desk = self::desk();
    desk.keep_now(&tenant("one"), vec![certifying()]).unwrap();
    let appended = abstention(&json!({"append": "It cannot be told."}), "imajev_extension", "");
    desk.keep_abstention_now(&tenant("one"), vec![appended]).unwrap();
    let answer = finished(&desk, &routing("x"), true, &[0.8, 0.05, 0.05, 0.1]);
    assert_eq!(answer.learned.certified, None, "with another option it is another question");
}
