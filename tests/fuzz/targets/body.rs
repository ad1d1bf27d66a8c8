//! Bodies of each dialect: one is a decision within the limits, or is refused as the caller's fault, in
//! the dialect's shape.

use std::collections::HashSet;
use std::time::Duration;

use docket::dialect::batch;
use docket::dialect::problem::{Fault, FullStatus};
use docket::dialect::{
    Dialect, FAULTS_MAX, QUESTIONS_MAX, RequestLimits, STATES_MAX, TIMEOUT_MAX, Undecoded,
    decisions, letters,
};
use docket::error::{DecideError, Problem};
use docket::json::{Json, Limits};
use docket::question::{Decision, Finds, Kind, OPTIONS_MAX, Question, Samples, stages};
use docket::service::{Prewarm, States};
use serde_json::Value as Wire;

/// Longest refusal: what was sent is repeated in part only.
const REFUSAL_BYTES_MAX: usize = 20_000;

/// Most names of ignored fields that are told.
const IGNORED_MAX: usize = 16;

/// A body of `systemone`.
pub fn systemone(input: &[u8]) {
    decision(Dialect::Systemone, input);
}

/// A body of `decisio`, and of its letters route; what is ahead of a line end is a header.
pub fn decisio(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').filter(|end| *end < 32);
    let (head, body) = input.split_at(end.unwrap_or(0));
    let header = String::from_utf8_lossy(head).into_owned();
    for debug_allowed in [false, true] {
        for known in ["x-decisio-route", "x-decisio-debug", "x-rlcd-route", "x-rlcd-debug"] {
            let value = |name: &str| (name == known).then(|| header.clone());
            if let Err(fault) = Dialect::Decisio.headed(&value, debug_allowed) {
                refused(Dialect::Decisio, &fault.into());
            }
        }
    }
    decision(Dialect::Decisio, body);
    let Ok(json) = Json::parse(body, Limits::default()) else { return };
    match letters::decode(json, &RequestLimits::default()) {
        Ok(wanted) => within(&wanted.decision),
        Err(undecoded) => faulty(Dialect::Decisio, undecoded),
    }
}

/// A body of `self`.
pub fn selfserve(input: &[u8]) {
    decision(Dialect::SelfServe, input);
}

/// A body of `vllm`.
pub fn vllm(input: &[u8]) {
    decision(Dialect::Vllm, input);
}

/// A body of `gmlx`.
pub fn gmlx(input: &[u8]) {
    decision(Dialect::Gmlx, input);
}

/// A body of `openai`, as its own route reads it too.
pub fn openai(input: &[u8]) {
    decision(Dialect::Openai, input);
    let Ok(json) = Json::parse(input, Limits::default()) else { return };
    match decisions::decode(json, &RequestLimits::default()) {
        Ok(asked) => {
            assert_eq!(asked.wanted.len(), asked.decision.questions.len());
            within(&asked.decision);
        }
        Err(undecoded) => faulty(Dialect::Openai, undecoded),
    }
}

/// A prewarm and a batch, in the dialect that the first byte names.
pub fn prewarm_batch(input: &[u8]) {
    let Some((first, body)) = input.split_first() else { return };
    let dialect = Dialect::ALL[usize::from(*first) % Dialect::ALL.len()];
    let json = match Json::parse(body, Limits::default()) {
        Ok(json) => json,
        Err(problem) => return invalid(dialect, vec![problem]),
    };
    match dialect.prewarm(json.clone(), &RequestLimits::default()) {
        Ok(decoded) => prewarmed(&decoded.request),
        Err(undecoded) => faulty(dialect, undecoded),
    }
    let (states, rest) = match batch::split(json) {
        Ok(split) => split,
        Err(error) => return refused(dialect, &error.into()),
    };
    assert!((1..=batch::STATES_MAX).contains(&states.len()), "{} states", states.len());
    assert!(rest.iter().all(|(name, _)| name != "states" && name != "state"));
    for state in states.into_iter().take(2).chain([batch::blank()]) {
        match dialect.decision(batch::with_state(&rest, state), &RequestLimits::default()) {
            Ok(decoded) => within(&decoded.request),
            Err(undecoded) => faulty(dialect, undecoded),
        }
    }
}

fn decision(dialect: Dialect, body: &[u8]) {
    let json = match Json::parse(body, Limits::default()) {
        Ok(json) => json,
        Err(problem) => return invalid(dialect, vec![problem]),
    };
    match dialect.decision(json, &RequestLimits::default()) {
        Ok(decoded) => {
            assert!(decoded.ignored.len() <= IGNORED_MAX, "{:?}", decoded.ignored);
            within(&decoded.request);
        }
        Err(undecoded) => faulty(dialect, undecoded),
    }
}

fn faulty(dialect: Dialect, undecoded: Undecoded) {
    assert!(undecoded.ignored.len() <= IGNORED_MAX, "{:?}", undecoded.ignored);
    invalid(dialect, undecoded.faults);
}

fn invalid(dialect: Dialect, faults: Vec<Problem>) {
    assert!((1..=FAULTS_MAX).contains(&faults.len()), "{} faults", faults.len());
    refused(dialect, &DecideError::Invalid(faults).into());
}

/// Whatever is wrong with a body is the caller's fault, told in the dialect's shape.
fn refused(dialect: Dialect, fault: &Fault) {
    let refusal = dialect.refusal(fault, FullStatus::default());
    assert!((400..500).contains(&refusal.status), "{refusal:?}");
    assert!(refusal.body.len() < REFUSAL_BYTES_MAX, "{} bytes of refusal", refusal.body.len());
    assert!(!refusal.reason.is_empty() && refusal.reason.is_ascii(), "{refusal:?}");
    let told: Wire = serde_json::from_str(&refusal.body).expect("a refusal is JSON");
    let (detail, error) = (&told["detail"], &told["error"]);
    let is_shaped = match dialect {
        Dialect::Systemone | Dialect::Decisio => {
            let is_entry = |entry: &Wire| {
                entry["loc"].is_array() && entry["msg"].is_string() && entry["type"].is_string()
            };
            let entries = detail.as_array();
            detail.is_string()
                || detail.is_object()
                || entries.is_some_and(|all| !all.is_empty() && all.iter().all(is_entry))
        }
        Dialect::SelfServe | Dialect::Gmlx | Dialect::Openai => {
            error["type"].is_string() && error["message"].is_string()
        }
        Dialect::Vllm => {
            error["type"].is_string() && error["message"].is_string() && error["code"].is_number()
        }
    };
    assert!(is_shaped, "{dialect:?}: {told}");
}

fn within(decision: &Decision) {
    let questions = &decision.questions;
    assert!((1..=QUESTIONS_MAX).contains(&questions.len()), "{} questions", questions.len());
    let ids: HashSet<&str> = questions.iter().map(|question| question.id.as_str()).collect();
    assert_eq!(ids.len(), questions.len(), "an id is there twice");
    assert!(decision.state != Json::Null, "a state is null");
    assert!(timely(decision.timeout) && timely(decision.timeout_default), "{decision:?}");
    assert!(decision.samples.is_none_or(sampled), "{decision:?}");
    for question in questions {
        asked(question);
    }
    let stages =
        stages::stages(questions).expect("questions that depend on each other have an order");
    assert_eq!(stages.iter().map(Vec::len).sum::<usize>(), questions.len());
}

fn timely(timeout: Option<Duration>) -> bool {
    timeout.is_none_or(|timeout| timeout > Duration::ZERO && timeout <= TIMEOUT_MAX)
}

fn sampled(samples: Samples) -> bool {
    match samples {
        Samples::Auto => true,
        Samples::Count(count) => count >= 1,
        Samples::Adaptive(adaptive) => {
            adaptive.orders_max >= 1
                && adaptive.entropy_max.is_finite()
                && adaptive.entropy_max >= 0.0
        }
    }
}

fn asked(question: &Question) {
    assert!(question.samples.is_none_or(sampled), "{question:?}");
    let is_divisor = |divisor: f64| divisor.is_finite() && divisor > 0.0;
    assert!(question.temperature.is_none_or(is_divisor), "{question:?}");
    match question.finds {
        Some(Finds::Number(criteria)) => {
            let limits = [criteria.min, criteria.max, criteria.precision];
            assert!(limits.iter().flatten().all(|limit| limit.is_finite()), "{question:?}");
            assert!(criteria.precision.is_none_or(|step| step >= 0.0), "{question:?}");
            let (min, max) = (criteria.min.unwrap_or(f64::MIN), criteria.max.unwrap_or(f64::MAX));
            assert!(min <= max, "{question:?}");
        }
        Some(Finds::Excerpt) => {}
        None => counted(&question.kind),
    }
}

fn counted(kind: &Kind) {
    let count = kind.options();
    match kind {
        Kind::Noul { .. } => {}
        Kind::Choice { options } => {
            assert!((1..=OPTIONS_MAX).contains(&count), "{count} options");
            let keys: HashSet<&str> = options.iter().map(|option| option.key.as_str()).collect();
            assert_eq!(keys.len(), count, "a key is there twice");
        }
        Kind::Score { .. } => assert!((1..=OPTIONS_MAX).contains(&count), "{count} levels"),
    }
}

fn prewarmed(request: &Prewarm) {
    assert!(timely(request.timeout), "{request:?}");
    let is_stated = |state: &Json| *state != Json::Null;
    match &request.states {
        States::One(state) => assert!(is_stated(state), "a state is null"),
        States::Many(states) => {
            assert!((1..=STATES_MAX).contains(&states.len()), "{} states", states.len());
            assert!(states.iter().all(is_stated), "a state is null");
        }
    }
}
