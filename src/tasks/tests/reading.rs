//! How examples are read, and what is made of what they show.

use super::*;
use crate::tasks::register::REGISTRATION_MAX;

async fn task(told: &Told, order: TaskOrder) -> Result<Wire, DecideError> {
    let (desk, progress) = (desk(), Progress::default());
    register::task((&desk, told), tenant("one"), order, &progress).await
}

#[tokio::test]
async fn an_example_has_the_time_of_its_registration_and_not_its_own() {
    let told = Told::default();
    let mut order = order_of(&[("x", json!("a"))]);
    let decision = &mut order.examples[0].decision;
    decision.timeout = Some(std::time::Duration::from_millis(1));
    decision.questions[0].samples = Some(Samples::Count(9));
    task(&told, order).await.unwrap();
    let read = told.read.lock().unwrap();
    assert_eq!((read[0].timeout, read[0].timeout_default), (None, Some(REGISTRATION_MAX)));
    assert_eq!(read[0].questions[0].samples, None, "in the orders of the fingerprint");
}

#[tokio::test(start_paused = true)]
async fn an_example_that_finds_no_room_for_an_hour_ends_its_registration() {
    let retry_after = REGISTRATION_MAX / 10;
    let full = RejectReason::QueueFull { reads_waiting: 1, reads_max: 1, retry_after };
    let full = DecideError::Read(ReadError::Rejected(full));
    let told = Told::default();
    told.answers.lock().unwrap().extend(vec![Err(full.clone()); 20]);
    let began = tokio::time::Instant::now();
    assert_eq!(task(&told, order_of(&[("x", json!("a"))])).await, Err(full));
    assert_eq!(began.elapsed(), REGISTRATION_MAX);
}

#[tokio::test]
async fn an_option_without_probability_is_learned_from_too() {
    let told = Told::default();
    told.answers.lock().unwrap().extend(vec![Ok(vec![1.0, 0.0, 0.0]); 12]);
    let examples: Vec<(&str, Wire)> =
        (0..12).map(|n| ("x", json!(if n % 2 == 0 { "a" } else { "b" }))).collect();
    let record = task(&told, order_of(&examples)).await.unwrap();
    let loss = &record["calibration"]["cv_logloss_plain"];
    assert_eq!(*loss, json!(350.0), "the half of 700: a logarithm of 0 counts as -700");
}

#[tokio::test]
async fn hidden_states_are_read_where_a_head_could_be_fitted() {
    let wanted = async |options: usize| {
        let criteria: serde_json::Map<String, Wire> =
            (0..options).map(|n| (format!("k{n}"), Wire::Null)).collect();
        let question = json!({"type": "choice", "criteria": criteria});
        let request = json!({"state": "s", "questions": {"q": question}});
        let body = json!({"id": "t", "examples": [{"request": request, "answer": "k1"}]});
        let order = order::task(&json(&body), &decoded).unwrap();
        let told = Told::default();
        told.answers.lock().unwrap().push_back(Ok(vec![1.0 / options as f64; options]));
        task(&told, order).await.unwrap();
        let read = told.read.lock().unwrap();
        read[0].questions[0].wants_hidden
    };
    assert!(wanted(10).await && !wanted(9).await);
}

#[tokio::test]
async fn a_certificate_is_made_of_examples_that_nothing_is_fitted_to() {
    let certified = async |certify: Wire| {
        let one = |n: usize| json!({"request": routing(&n.to_string()), "answer": "b"});
        let mut body = json!({"id": "t", "examples": (0..40).map(one).collect::<Vec<_>>()});
        body["certify"] = certify;
        let told = Told::default();
        let record = task(&told, order::task(&json(&body), &decoded).unwrap()).await.unwrap();
        let counts = record["examples"]["counts"].as_array().unwrap().clone();
        (record["n_examples"].clone(), record["certificate"]["n"].clone(), counts[1].clone())
    };
    let given: Vec<Wire> =
        (0..60).map(|n| json!({"request": routing(&format!("c{n}")), "answer": "a"})).collect();
    let own = certified(json!({"alpha": 0.3, "examples": given})).await;
    assert_eq!(own, (json!(40), json!(60), json!(40)));
    let held_out = certified(json!({"alpha": 0.3, "holdout": 0.25})).await;
    assert_eq!(held_out, (json!(30), json!(10), json!(30)));
}

/// A noul is shown as yes, no, not knowing, and read as no, yes.
#[tokio::test]
async fn a_threshold_of_an_appended_option_is_fitted_to_nouls() {
    let told = Told::default();
    let mut examples = Vec::new();
    for n in 0..12 {
        let is_unknown = n % 3 == 0;
        let (plain, offered) = if is_unknown {
            (vec![0.4, 0.6], vec![0.3, 0.2, 0.5])
        } else {
            (vec![0.1, 0.9], vec![0.8, 0.1, 0.1])
        };
        told.answers.lock().unwrap().extend([Ok(plain), Ok(offered)]);
        let request = json!({"state": n.to_string(), "questions": {"q": {"type": "noul"}}});
        let answer = if is_unknown { Wire::Null } else { json!("yes") };
        examples.push(json!({"request": request, "answer": answer}));
    }
    let body = json!({
        "id": "u", "option": {"append": "?"}, "match": "imajev_extension", "examples": examples,
    });
    let order = order::abstention(&json(&body), &decoded).unwrap();
    let (desk, progress) = (desk(), Progress::default());
    let record = register::abstaining((&desk, &told), tenant("one"), order, &progress).await;
    let record = record.unwrap();
    assert_eq!((&record["right_plain"], &record["applied"]), (&json!(8), &json!(true)), "{record}");
    let threshold = record["threshold"].as_f64().unwrap();
    assert!((0.1..0.5).contains(&threshold), "{record}");
    assert!(told.read.lock().unwrap().iter().all(|read| read.applies_tasks));
}

#[tokio::test]
async fn the_option_for_not_knowing_is_no_answer() {
    let told = Told::default();
    let mut examples = Vec::new();
    for n in 0..12 {
        let (p, answer) = match n {
            0..4 => (vec![0.2, 0.2, 0.6], "none"),
            4..11 => (vec![0.1, 0.8, 0.1], "b"),
            _ => (vec![0.2, 0.3, 0.5], "b"),
        };
        told.answers.lock().unwrap().push_back(Ok(p));
        examples.push(json!({"request": routing(&n.to_string()), "answer": answer}));
    }
    let body = json!({"id": "u", "option": {"key": "none"}, "examples": examples});
    let order = order::abstention(&json(&body), &decoded).unwrap();
    let (desk, progress) = (desk(), Progress::default());
    let record = register::abstaining((&desk, &told), tenant("one"), order, &progress).await;
    let record = record.unwrap();
    assert_eq!(record["n_unanswerable"], 4);
    assert_eq!((&record["right_plain"], &record["false_plain"]), (&json!(11), &json!(1)));
}
