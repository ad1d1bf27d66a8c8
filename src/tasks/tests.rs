//! Tasks over made-up readings: what is kept, found, applied and refused.

mod abstaining;
mod applying;
mod keeping;
mod reading;
mod sharing;

use std::collections::VecDeque;
use std::sync::Mutex;

use actors::{Lane, ReadError, RejectReason, TenantId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value as Wire, json};

use super::EXAMPLES_MAX;
use super::apply::plan;
use super::desk::{Desk, DeskConfig, Refused};
use super::identity::Rendering;
use super::order::{self, TaskOrder};
use super::record::{AbstentionTask, Task};
use super::register::{self, Progress, Reader};
use crate::dialect::{Dialect, RequestLimits};
use crate::error::DecideError;
use crate::json::{Json, Limits};
use crate::prompt::layout::{PerKind, named};
use crate::question::answer::{Answer, Diagnostics, Learned, Value};
use crate::question::correction::{Form, Stage};
use crate::question::{Decision, Kind, Manner, Question, Samples};

const EVEN: PerKind<f64> = PerKind { noul: 1.0, choice: 1.0, score: 1.0 };

fn rendering(fingerprint: &str) -> Rendering {
    Rendering { layout: named::KEYS, fingerprint: fingerprint.to_owned() }
}

fn config() -> DeskConfig {
    DeskConfig {
        tasks: true,
        abstention: true,
        folder: None,
        abstain_option: None,
        profile: rendering("profile"),
        letters: rendering("letters"),
        plain: rendering("plain"),
    }
}

/// Changes of a desk whose store answers at once.
impl Desk {
    fn keep_now(&self, tenant: &TenantId, tasks: Vec<Task>) -> Result<(), Refused> {
        self.keep(tenant, tasks).now_or_never().expect("it answers at once")
    }

    fn keep_abstention_now(
        &self,
        tenant: &TenantId,
        tasks: Vec<AbstentionTask>,
    ) -> Result<(), Refused> {
        self.keep_abstention(tenant, tasks).now_or_never().expect("it answers at once")
    }

    fn remove_now(&self, tenant: &TenantId, id: &str) -> Result<bool, Refused> {
        self.remove(tenant, id).now_or_never().expect("it answers at once")
    }
}

fn desk() -> Desk {
    Desk::open(config()).unwrap()
}

fn tenant(name: &str) -> TenantId {
    TenantId(name.into())
}

fn json(value: &Wire) -> Json {
    Json::parse(value.to_string().as_bytes(), Limits::default()).unwrap()
}

fn decoded(body: Json) -> Result<Decision, DecideError> {
    let decoded = Dialect::Decisio.decision(body, &RequestLimits::default());
    decoded.map(|decoded| decoded.request).map_err(|u| DecideError::Invalid(u.faults))
}

fn routing(state: &str) -> Wire {
    let criteria = json!({"a": null, "b": null, "none": null});
    json!({"state": state, "questions": {"q": {"type": "choice", "criteria": criteria}}})
}

fn decision(body: &Wire) -> Decision {
    decoded(json(body)).unwrap()
}

fn order_of(examples: &[(&str, Wire)]) -> TaskOrder {
    let examples: Vec<Wire> = examples
        .iter()
        .map(|(state, answer)| json!({"request": routing(state), "answer": answer}))
        .collect();
    order::task(&json(&json!({"id": "t", "examples": examples})), &decoded).unwrap()
}

/// Reads what it was told to, in turn.
#[derive(Default)]
struct Told {
    answers: Mutex<VecDeque<Result<Vec<f64>, DecideError>>>,
    read: Mutex<Vec<Decision>>,
}

impl Reader for Told {
    fn read(
        &self,
        _: TenantId,
        decision: Decision,
    ) -> BoxFuture<'_, Result<Vec<Answer>, DecideError>> {
        async move {
            let told = self.answers.lock().unwrap().pop_front();
            let told = told.unwrap_or_else(|| Ok(vec![0.5, 0.3, 0.2]))?;
            let question = decision.questions[0].clone();
            self.read.lock().unwrap().push(decision);
            Ok(vec![answer(&question, &told)])
        }
        .boxed()
    }

    fn temperatures(&self, _: Manner) -> PerKind<f64> {
        EVEN
    }

    fn labels_max(&self, _: Manner, _: &Kind) -> usize {
        26
    }
}

fn answer(question: &Question, p: &[f64]) -> Answer {
    let value = match &question.kind {
        Kind::Noul { .. } => Value::Noul { yes: p[1] },
        Kind::Choice { options } => Value::Choice {
            chosen: crate::readout::confidence::first_top(p),
            keys: options.iter().map(|option| option.key.clone()).collect(),
            probabilities: p.to_vec(),
            confidence: 0.0,
        },
        Kind::Score { .. } => Value::Score {
            mean: 0.0,
            legend: Vec::new(),
            probabilities: p.to_vec(),
            confidence: 0.0,
        },
    };
    let diagnostics = Diagnostics::default();
    let (id, learned) = (question.id.clone(), Learned::default());
    Answer { id, value, diagnostics, raw: p.to_vec(), hidden: None, learned, citations: None }
}

async fn registered(desk: &Desk, name: &str) -> Wire {
    let examples: Vec<(String, Wire)> =
        (0..40).map(|n| (format!("{n}"), json!(if n % 4 == 0 { "a" } else { "b" }))).collect();
    let examples: Vec<(&str, Wire)> =
        examples.iter().map(|(state, answer)| (state.as_str(), answer.clone())).collect();
    let progress = Progress::default();
    let told = Told::default();
    let record = register::task((desk, &told), tenant(name), order_of(&examples), &progress);
    let record = record.await.unwrap();
    assert_eq!(progress.done(), 40);
    let read = told.read.lock().unwrap();
    assert!(read.iter().all(|read| read.lane == Some(Lane::Batch) && !read.applies_tasks));
    record
}

#[tokio::test]
async fn a_task_applies_to_its_question_and_tenant_and_to_no_other() {
    let desk = desk();
    let record = registered(&desk, "one").await;
    assert_eq!(record["calibration"]["applied"], true);
    let of = |name: &str, body: &Wire| {
        let mut decision = decision(body);
        let plan = plan(&desk, &tenant(name), (&mut decision, false), &EVEN).unwrap();
        (plan.tasks, decision.questions[0].correction.is_some())
    };
    assert_eq!(of("one", &routing("x")), (vec!["t".to_owned()], true));
    assert_eq!(of("two", &routing("x")), (vec![], false));
    let mut other = routing("x");
    other["questions"]["q"]["criteria"] = json!({"b": null, "a": null, "none": null});
    assert_eq!(of("one", &other), (vec![], false), "another order is another task");
    let mut raw = decision(&routing("x"));
    raw.applies_tasks = false;
    let plan = plan(&desk, &tenant("one"), (&mut raw, false), &EVEN).unwrap();
    assert!(plan.tasks.is_empty());
}

#[tokio::test]
async fn a_record_says_what_is_served_and_reads_back() {
    let desk = desk();
    let shown = registered(&desk, "one").await;
    let task = Task::read(&shown).unwrap();
    let correction = task.correction.clone().unwrap();
    assert_eq!(correction.stage, Stage::EachOrder);
    let Form::Bias(bias) = &correction.form else { panic!("a bias") };
    let listed: Vec<f64> = serde_json::from_value(shown["calibration"]["bias"].clone()).unwrap();
    assert_eq!(*bias, listed);
    assert_eq!(task.shown(true), shown);
}

#[tokio::test(start_paused = true)]
async fn examples_that_are_refused_for_want_of_room_are_asked_again() {
    let told = Told::default();
    let retry_after = std::time::Duration::from_secs(3);
    let full = RejectReason::QueueFull { reads_waiting: 1, reads_max: 1, retry_after };
    let full = DecideError::Read(ReadError::Rejected(full));
    told.answers.lock().unwrap().extend([Err(full.clone()), Err(full)]);
    let began = tokio::time::Instant::now();
    let order = order_of(&[("x", json!("a"))]);
    let progress = Progress::default();
    let desk = desk();
    let record = register::task((&desk, &told), tenant("one"), order, &progress).await.unwrap();
    assert_eq!(record["calibration"]["applied"], false, "one example teaches nothing");
    assert_eq!(began.elapsed(), 2 * retry_after);
    let broken = DecideError::Unsupported("x".to_owned());
    told.answers.lock().unwrap().push_back(Err(broken.clone()));
    let order = order_of(&[("x", json!("a"))]);
    let failed = register::task((&desk, &told), tenant("one"), order, &progress).await;
    assert_eq!(failed, Err(broken));
}

#[test]
fn orders_are_read_with_the_answers_of_each_kind() {
    let gold = |question: Wire, answer: Wire| {
        let request = json!({"state": "s", "questions": {"q": question}});
        let body = json!({"id": "t", "examples": [{"request": request, "answer": answer}]});
        order::task(&json(&body), &decoded).ok().and_then(|order| order.examples[0].gold)
    };
    let noul = || json!({"type": "noul"});
    assert_eq!(gold(noul(), json!("yes")), Some(1));
    assert_eq!(gold(noul(), json!(false)), Some(0));
    assert_eq!(gold(noul(), json!("maybe")), None);
    let score = || json!({"type": "score", "criteria": ["low", "high"]});
    assert_eq!(gold(score(), json!(1)), Some(1));
    assert_eq!(gold(score(), json!("0")), Some(0));
    assert_eq!(gold(score(), json!(2)), None);
    assert_eq!(gold(json!({"type": "choice", "criteria": {"x": null}}), json!("x")), Some(0));
}

#[test]
fn orders_beyond_their_limits_are_refused() {
    let refused = |body: Wire| {
        let Err(DecideError::Invalid(problems)) = order::task(&json(&body), &decoded) else {
            panic!("{body}");
        };
        problems[0].code
    };
    let example = json!({"request": routing("x"), "answer": "a"});
    let many = vec![example.clone(); EXAMPLES_MAX + 1];
    assert_eq!(refused(json!({"id": "t", "examples": many})), "examples_invalid");
    for id in ["", "a,b", "a/b", "a\nb", " a", "é", &"x".repeat(201)] {
        assert_eq!(refused(json!({"id": id, "examples": [example]})), "id_invalid", "{id:?}");
    }
    let certify = json!({"alpha": 1.0});
    let body = json!({"id": "t", "examples": [example], "certify": certify});
    assert_eq!(refused(body), "certify_invalid");
    let unanswered = json!({"request": routing("x"), "answer": null});
    assert_eq!(refused(json!({"id": "t", "examples": [unanswered]})), "unknown_answer");
}

#[test]
fn an_order_knows_about_how_much_memory_it_takes() {
    let bytes = |state: Wire, count: usize| {
        let mut request = routing("x");
        request["state"] = state;
        let examples = vec![json!({"request": request, "answer": "a"}); count];
        let (task, abstention) = (
            json!({"id": "t", "examples": examples}),
            json!({"id": "t", "examples": examples, "option": {"key": "none"}}),
        );
        let task = order::task(&json(&task), &decoded).unwrap().bytes;
        let abstention = order::abstention(&json(&abstention), &decoded).unwrap().bytes;
        assert!(task.abs_diff(abstention) < 500, "{task} {abstention}");
        task
    };
    let texts = bytes(json!("x".repeat(10_000)), 10);
    assert!((100_000..120_000).contains(&texts), "{texts}");
    let numbers = bytes(json!(vec![1; 10_000]), 10);
    assert!(numbers > 100_000 * size_of::<Json>(), "values cost more than their text: {numbers}");
}

#[test]
fn an_intent_head_is_not_read_in_two_orders_of_letters() {
    let desk = desk();
    let question = &decision(&routing("x")).questions[0];
    let key = crate::prompt::identity::task_key(&named::KEYS, question);
    let record = json!({
        "format": "decisio-task/1", "id": "h", "type": "choice", "task_key": key,
        "fingerprint": "letters", "options": ["a", "b", "none"], "applied_to": "the average",
        "calibration": {"applied": false}, "certificate": null, "examples": {},
        "head": {
            "applied": true, "T": 1.0,
            "A": {"shape": [1, 3], "b64": "AAAAAAAAAAAAAAAA"},
            "c": {"shape": [3], "b64": "AAAAAAAAAAAAAAAA"},
        },
    });
    desk.keep_now(&tenant("one"), vec![Task::read(&record).unwrap()]).unwrap();
    let mut once = decision(&routing("x"));
    assert!(plan(&desk, &tenant("one"), (&mut once, false), &EVEN).is_ok());
    assert!(once.questions[0].needs_hidden());
    let mut twice = decision(&routing("x"));
    twice.samples = Some(Samples::Count(2));
    let refused = plan(&desk, &tenant("one"), (&mut twice, false), &EVEN);
    assert!(matches!(refused, Err(DecideError::Unsupported(_))));
}

#[test]
fn a_noul_commits_where_that_is_asked_for_and_only_by_letters() {
    let desk = desk();
    let committed = |manner, commit: bool| {
        let body = json!({"state": "x", "questions": {"q": {"type": "noul"}}});
        let mut decision = Decision { manner, ..decision(&body) };
        let plan = plan(&desk, &tenant("one"), (&mut decision, commit), &EVEN).unwrap();
        let mut answers = vec![answer(&decision.questions[0], &[0.4, 0.6])];
        plan.finish(&mut answers);
        answers.remove(0).value
    };
    assert_eq!(committed(Manner::Letters, true), Value::Noul { yes: 0.8 });
    assert_eq!(committed(Manner::Letters, false), Value::Noul { yes: 0.6 });
    assert_eq!(committed(Manner::Profile, true), Value::Noul { yes: 0.6 });
}

#[tokio::test]
async fn examples_are_read_in_the_batch_lane_and_the_fingerprints_orders() {
    let (desk, told, progress) = (desk(), Told::default(), Progress::default());
    let mut order = order_of(&[("x", json!("a")), ("y", json!("b"))]);
    order.examples[0].decision.lane = Some(Lane::Urgent);
    order.examples[0].decision.samples = Some(Samples::Count(9));
    order.examples[1].decision.lane = Some(Lane::Idle);
    register::task((&desk, &told), tenant("one"), order, &progress).await.unwrap();
    let read = told.read.lock().unwrap();
    let lanes: Vec<_> = read.iter().map(|read| (read.lane, read.samples)).collect();
    assert_eq!(lanes, [(Some(Lane::Batch), None), (Some(Lane::Idle), None)]);
}

#[tokio::test]
async fn a_question_with_more_options_than_labels_is_no_task() {
    let criteria: serde_json::Map<String, Wire> =
        (0..27).map(|n| (format!("k{n}"), Wire::Null)).collect();
    let request =
        json!({"state": "s", "questions": {"q": {"type": "choice", "criteria": criteria}}});
    let body = json!({"id": "t", "examples": [{"request": request, "answer": "k1"}]});
    let order = order::task(&json(&body), &decoded).unwrap();
    let (desk, told, progress) = (desk(), Told::default(), Progress::default());
    let refused = register::task((&desk, &told), tenant("one"), order, &progress).await;
    assert!(matches!(refused, Err(DecideError::Unsupported(_))), "{refused:?}");
}
