//! Requests of the `systemone` dialect.
//!
//! Every fault of a body is found in one pass, so that a caller can mend them all at once; the state
//! is moved, never copied.

use crate::dialect::staging::Waits;
use crate::dialect::{Decoded, ECHO_CHARS_MAX, RequestLimits, Undecoded};
use crate::error::Problem;
use crate::json::Json;
use crate::question::{Decision, Manner, Question};
use crate::service::{Prewarm, States};

use super::fields::{Extensions, Findings};
use super::{questions, staging};

/// Docket's own fields of a decision.
const NAMES: [&str; 11] = [
    "context",
    "state_text",
    "samples",
    "auto_threshold",
    "auto_max",
    "priority",
    "timeout_ms",
    "diagnostics",
    "ask",
    "stage_context",
    "profile",
];

/// A JSON object's members.
pub(in crate::dialect) type Members = Vec<(String, Json)>;

/// See [`crate::dialect::Dialect::decision`].
pub(in crate::dialect) fn decision(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Decision>, Undecoded> {
    let mut findings = Findings::new();
    let mut extensions = Extensions::default();
    let mut state = None;
    let mut questions = None;
    for (field, value) in members(body)? {
        match field.as_str() {
            "state" => state = Some(value),
            "questions" => questions = Some(value),
            // Clients send names of models that are not served here, `jev-latest` above all.
            "model" => {}
            _ if extensions.read(&NAMES, (&field, &value), limits, &mut findings) => {}
            _ => findings.ignore(&field),
        }
    }
    let state = check_state(state, &mut findings);
    let questions = check_questions(questions, limits, &mut findings)
        .and_then(|read| staging::staged(read, &extensions, &mut findings));
    let samples = extensions.samples_of_request(&mut findings);
    match (state, questions) {
        (Some(state), Some(questions)) if findings.faults.is_empty() => {
            let request = Decision {
                samples,
                lane: extensions.lane,
                timeout: extensions.timeout,
                profile: extensions.profile,
                context: extensions.context.filter(|text| !text.is_empty()),
                stage_context: extensions.stage_context.unwrap_or_default(),
                diagnostics: extensions.diagnostics.unwrap_or_default(),
                wants_state_text: extensions.state_text.unwrap_or_default(),
                ..Decision::new(state, questions)
            };
            Ok(Decoded { request, ignored: findings.ignored })
        }
        _ => Err(findings.into()),
    }
}

/// See [`crate::dialect::Dialect::prewarm`].
pub(in crate::dialect) fn prewarm(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Prewarm>, Undecoded> {
    let mut findings = Findings::new();
    let mut extensions = Extensions::default();
    let (mut state, mut states) = (None, None);
    for (field, value) in members(body)? {
        match field.as_str() {
            "state" => state = Some(value),
            "states" => states = Some(value),
            // As in a decision, so that both read the same prefix whatever they are sent.
            "model" => {}
            _ if extensions.read(
                &["priority", "timeout_ms", "ttl_s", "wait", "profile", "context"],
                (&field, &value),
                limits,
                &mut findings,
            ) => {}
            _ => findings.ignore(&field),
        }
    }
    match check_one_or_many(state, states, limits, &mut findings) {
        Some(states) if findings.faults.is_empty() => {
            let Extensions { lane, timeout, ttl, wait, profile, context, .. } = extensions;
            let context = context.filter(|text| !text.is_empty());
            let (wait, manner) = (wait.unwrap_or(true), Manner::Profile);
            let template = Vec::new();
            let request =
                Prewarm { states, lane, timeout, ttl, wait, manner, profile, context, template };
            Ok(Decoded { request, ignored: findings.ignored })
        }
        _ => Err(findings.into()),
    }
}

pub(in crate::dialect) fn members(body: Json) -> Result<Members, Undecoded> {
    if let Json::Object(members) = body {
        return Ok(members);
    }
    let message = format!(
        "the body must be an object, not {}: {}",
        body.type_name(),
        body.excerpt(ECHO_CHARS_MAX)
    );
    let fault = Problem::new(Vec::new(), "wrong_type", message);
    Err(Undecoded { faults: vec![fault], ignored: Vec::new() })
}

fn check_state(state: Option<Json>, findings: &mut Findings) -> Option<Json> {
    match state {
        None => {
            let message = "state is missing: a string or any other JSON but null".to_owned();
            findings.fault(vec!["state".into()], "missing", message);
            None
        }
        Some(Json::Null) => {
            findings.wrong_type("state", "a string or any other JSON but null", &Json::Null);
            None
        }
        present => present,
    }
}

fn check_one_or_many(
    state: Option<Json>,
    states: Option<Json>,
    limits: &RequestLimits,
    findings: &mut Findings,
) -> Option<States> {
    match (state, states) {
        (Some(_), Some(_)) => {
            let message = "state and states are both given, send one of them".to_owned();
            findings.fault(vec!["states".into()], "duplicate_key", message);
            None
        }
        (None, Some(states)) => check_states(states, limits, findings),
        (None, None) => {
            let message = "state or states is missing: a state, or a list of them; a state is a \
                           string or any other JSON but null";
            findings.fault(vec!["state".into()], "missing", message.to_owned());
            None
        }
        (state, None) => check_state(state, findings).map(States::One),
    }
}

fn check_states(states: Json, limits: &RequestLimits, findings: &mut Findings) -> Option<States> {
    let expected = "a list of one or more states";
    let Json::Array(states) = states else {
        findings.wrong_type("states", expected, &states);
        return None;
    };
    let (count, count_max) = (states.len(), limits.states_max);
    if count == 0 {
        let message = format!("states is empty, expected {expected}");
        findings.fault(vec!["states".into()], "too_few", message);
        return None;
    }
    if count > count_max {
        let message = format!("states has {count} elements, at most {count_max} are read ahead");
        findings.fault(vec!["states".into()], "too_many", message);
        return None;
    }
    for (index, _) in states.iter().enumerate().filter(|(_, state)| **state == Json::Null) {
        let message = "a state must be a string or any other JSON but null, not null".to_owned();
        findings.fault(vec!["states".into(), index.into()], "wrong_type", message);
    }
    Some(States::Many(states))
}

fn check_questions(
    questions: Option<Json>,
    limits: &RequestLimits,
    findings: &mut Findings,
) -> Option<Vec<(Question, Waits)>> {
    let expected = "an object of one or more questions by id";
    let members = match questions {
        Some(Json::Object(members)) => members,
        Some(other) => {
            findings.wrong_type("questions", expected, &other);
            return None;
        }
        None => {
            let message = format!("questions is missing: {expected}");
            findings.fault(vec!["questions".into()], "missing", message);
            return None;
        }
    };
    let (count, count_max) = (members.len(), limits.questions_max);
    if count == 0 {
        let message = format!("questions is empty, expected {expected}");
        findings.fault(vec!["questions".into()], "too_few", message);
        return None;
    }
    if count > count_max {
        let message = format!("questions has {count} members, at most {count_max} are answered");
        findings.fault(vec!["questions".into()], "too_many", message);
        return None;
    }
    findings.inside("questions".into(), |findings| {
        let read = |(id, value)| questions::question(id, value, limits, findings);
        // Every question is read, so that the faults of all of them are found.
        let read: Vec<Option<(Question, Waits)>> = members.into_iter().map(read).collect();
        read.into_iter().collect()
    })
}
