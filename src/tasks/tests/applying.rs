//! What is applied to a question and to its answer, and from which values on.

use super::abstaining::{abstention, finished};
use super::*;
use crate::question::answer::Certified;
use crate::tasks::{HEADS_BYTES_MAX, TASKS_MAX};

/// A task of the routing question with a bias, and a certificate where one is given.
fn task(id: &str, bias: [f64; 3], certificate: &Wire) -> Task {
    let question = &decision(&routing("x")).questions[0];
    let record = json!({
        "format": "decisio-task/1", "id": id, "type": "choice", "fingerprint": "letters",
        "task_key": crate::prompt::identity::task_key(&named::KEYS, question),
        "options": ["a", "b", "none"], "applied_to": "each order", "head": null,
        "calibration": {"applied": true, "bias": bias}, "certificate": certificate,
        "examples": {"counts": [1, 1, 1], "confidences": [0.9]},
    });
    Task::read(&record).unwrap()
}

fn with_none(threshold: f64, matches: &str) -> AbstentionTask {
    let kind = decision(&routing("x")).questions[0].kind.clone();
    let identity = match matches {
        "option_set" => crate::prompt::identity::option_set(&named::KEYS, &kind),
        _ => crate::prompt::identity::option_keys(&kind),
    };
    let task = abstention(&json!({"key": "none"}), matches, &identity);
    AbstentionTask { threshold: Some(threshold), id: matches.to_owned(), ..task }
}

fn kept(config: DeskConfig, tasks: Vec<Task>, abstentions: Vec<AbstentionTask>) -> Desk {
    let desk = Desk::open(config).unwrap();
    desk.keep_now(&tenant("one"), tasks).unwrap();
    desk.keep_abstention_now(&tenant("one"), abstentions).unwrap();
    desk
}

#[test]
fn of_two_tasks_of_a_question_the_newest_is_applied_and_both_are_named() {
    let older = task("z", [1.0, 0.0, 0.0], &Wire::Null);
    let desk = kept(config(), vec![older, task("b", [0.0, 0.0, 2.0], &Wire::Null)], Vec::new());
    let mut twice = routing("x");
    twice["questions"]["again"] = twice["questions"]["q"].clone();
    let mut decision = decision(&twice);
    let plan = plan(&desk, &tenant("one"), (&mut decision, false), &EVEN).unwrap();
    assert_eq!(plan.tasks, ["b", "z"], "sorted, and each once");
    for question in &decision.questions {
        let form = &question.correction.as_ref().unwrap().form;
        assert_eq!(*form, Form::Bias(vec![0.0, 0.0, 2.0]));
    }
}

#[test]
fn nothing_is_applied_that_is_switched_off_or_of_another_fingerprint() {
    let tasks = || vec![task("t", [1.0, 0.0, 0.0], &Wire::Null)];
    let abstentions = || vec![with_none(0.1, "option_set")];
    let applied = |config: DeskConfig, manner: Manner| {
        let desk = kept(config, tasks(), abstentions());
        let mut decision = Decision { manner, ..decision(&routing("x")) };
        let plan = plan(&desk, &tenant("one"), (&mut decision, false), &EVEN).unwrap();
        let mut answers = vec![answer(&decision.questions[0], &[0.3, 0.3, 0.4])];
        plan.finish(&mut answers);
        let corrected = decision.questions[0].correction.is_some();
        (corrected, answers[0].learned.abstention.is_some())
    };
    assert_eq!(applied(config(), Manner::Letters), (true, true));
    assert_eq!(applied(config(), Manner::Profile), (false, false), "its fingerprint is another");
    let off = DeskConfig { tasks: false, ..config() };
    assert_eq!(applied(off, Manner::Letters), (false, true));
    let off = DeskConfig { abstention: false, ..config() };
    assert_eq!(applied(off, Manner::Letters), (true, false));
}

#[test]
fn an_answer_is_certified_from_the_threshold_on() {
    let certificate = json!({"certified": true, "threshold": 0.5});
    let desk = kept(config(), vec![task("t", [0.0; 3], &certificate)], Vec::new());
    let certified = |p: &[f64]| finished(&desk, &routing("x"), false, p).learned.certified.unwrap();
    assert_eq!(certified(&[0.5, 0.3, 0.2]), Certified { is_certified: true, reason: None });
    let below = certified(&[0.49, 0.31, 0.2]);
    assert!(!below.is_certified && below.reason.unwrap().contains("0.4900 is below"));
    let none = json!({"certified": false, "reason": "no threshold keeps the error rate"});
    let desk = kept(config(), vec![task("t", [0.0; 3], &none)], Vec::new());
    let never = finished(&desk, &routing("x"), false, &[1.0, 0.0, 0.0]).learned.certified.unwrap();
    assert_eq!(never.reason.as_deref(), Some("no threshold keeps the error rate"));
}

#[test]
fn what_counts_as_unanswered_is_no_traffic_of_its_task() {
    let tasks = vec![task("t", [0.0; 3], &Wire::Null)];
    let desk = kept(config(), tasks, vec![with_none(0.3, "option_set")]);
    let observed = || desk.all()[0].1.traffic().as_ref().unwrap().figures().observed;
    finished(&desk, &routing("x"), false, &[0.5, 0.3, 0.2]);
    assert_eq!(observed(), 1);
    finished(&desk, &routing("x"), false, &[0.2, 0.3, 0.5]);
    assert_eq!(observed(), 1, "it was not answered");
}

#[test]
fn a_confidence_is_that_of_the_answer_that_is_given() {
    let desk = kept(config(), Vec::new(), vec![with_none(0.3, "option_set")]);
    let confidence = |desk: &Desk, images_form: bool, p: &[f64]| {
        let answer = finished(desk, &routing("x"), images_form, p);
        let Value::Choice { confidence, .. } = answer.value else { panic!() };
        confidence
    };
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(near(confidence(&desk, false, &[0.2, 0.5, 0.3]), 0.25), "(.5 - 1/3) / (1 - 1/3)");
    assert!(near(confidence(&desk, false, &[0.1, 0.1, 0.8]), 0.7), "of the option for not knowing");
    assert!(near(confidence(&desk, false, &[0.36, 0.33, 0.31]), 0.0), "never below 0");
    let offering = DeskConfig { abstain_option: Some("?".to_owned()), ..config() };
    let desk = Desk::open(offering).unwrap();
    assert!(near(confidence(&desk, true, &[0.3, 0.2, 0.1, 0.4]), 0.25), "scaled to three options");
}

#[test]
fn an_option_that_is_offered_to_all_is_believed_where_nothing_is_more_probable() {
    let offering = DeskConfig { abstain_option: Some("?".to_owned()), ..config() };
    let desk = Desk::open(offering).unwrap();
    let abstains = |images_form: bool, p: &[f64]| {
        let learned = finished(&desk, &routing("x"), images_form, p).learned;
        learned.abstention.map(|abstention| abstention.abstained)
    };
    assert_eq!(abstains(true, &[0.3, 0.2, 0.1, 0.4]), Some(true));
    assert_eq!(abstains(true, &[0.4, 0.15, 0.05, 0.4]), Some(false), "an answer is as probable");
    assert_eq!(abstains(false, &[0.3, 0.2, 0.5]), None, "offered in the form of images only");
}

#[test]
fn the_same_options_come_before_the_same_keys() {
    let abstained = |tasks: Vec<AbstentionTask>| {
        let desk = kept(config(), Vec::new(), tasks);
        let answer = finished(&desk, &routing("x"), false, &[0.3, 0.2, 0.5]);
        answer.learned.abstention.unwrap().abstained
    };
    let (keys, set) = (|| with_none(0.1, "option_keys"), || with_none(0.9, "option_set"));
    assert!(abstained(vec![keys()]));
    assert!(!abstained(vec![keys(), set()]) && !abstained(vec![set(), keys()]));
}

#[test]
fn a_head_is_applied_to_several_orders_of_the_profile() {
    let desk = desk();
    let question = &decision(&routing("x")).questions[0];
    let record = json!({
        "format": "decisio-task/1", "id": "h", "type": "choice", "fingerprint": "profile",
        "task_key": crate::prompt::identity::task_key(&named::KEYS, question),
        "options": ["a", "b", "none"], "applied_to": "the average",
        "calibration": {"applied": false}, "certificate": null, "examples": {},
        "head": {
            "applied": true, "T": 1.0,
            "A": {"shape": [1, 3], "b64": "AAAAAAAAAAAAAAAA"},
            "c": {"shape": [3], "b64": "AAAAAAAAAAAAAAAA"},
        },
    });
    desk.keep_now(&tenant("one"), vec![Task::read(&record).unwrap()]).unwrap();
    let mut twice = Decision { manner: Manner::Profile, ..decision(&routing("x")) };
    twice.samples = Some(Samples::Count(2));
    let plan = plan(&desk, &tenant("one"), (&mut twice, false), &EVEN).unwrap();
    assert_eq!((plan.tasks.len(), twice.questions[0].needs_hidden()), (1, true));
}

#[test]
fn a_task_takes_the_place_of_one_of_its_name_and_what_is_too_much_is_refused() {
    let desk = desk();
    for bias in [1.0, 2.0] {
        desk.keep_now(&tenant("one"), vec![task("t", [bias, 0.0, 0.0], &Wire::Null)]).unwrap();
        desk.keep_abstention_now(&tenant("one"), vec![with_none(bias / 4.0, "option_set")])
            .unwrap();
    }
    let (tasks, abstentions) = (desk.tasks(&tenant("one")), desk.abstentions(&tenant("one")));
    assert_eq!((tasks.len(), abstentions.len()), (1, 1));
    assert_eq!(tasks[0].correction.as_ref().unwrap().form, Form::Bias(vec![2.0, 0.0, 0.0]));
    assert_eq!(abstentions[0].threshold, Some(0.5));

    let heavy = |id: &str, head_bytes| {
        let mut task = task(id, [0.0; 3], &Wire::Null);
        task.head_bytes = head_bytes;
        task
    };
    let half = HEADS_BYTES_MAX / 2;
    desk.keep_now(&tenant("one"), vec![heavy("h1", half), heavy("h2", half)]).unwrap();
    let refused = desk.keep_now(&tenant("one"), vec![heavy("h3", 1)]);
    assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
    desk.keep_now(&tenant("one"), vec![heavy("h1", half - 1), heavy("h3", 1)]).unwrap();

    let named = |n: usize| AbstentionTask { id: format!("t{n}"), ..with_none(0.5, "option_set") };
    let refused = desk.keep_abstention_now(&tenant("one"), (0..TASKS_MAX).map(named).collect());
    assert!(matches!(refused, Err(Refused::Full(_))), "one is there already");
    let refused = desk.keep_abstention_now(&tenant("one/sub"), (0..TASKS_MAX).map(named).collect());
    assert!(matches!(refused, Err(Refused::Full(_))), "{refused:?}");
    desk.keep_abstention_now(&tenant("two"), (0..TASKS_MAX).map(named).collect()).unwrap();
}
