//! Fields of a `systemone` request that say which questions wait for which, and their faults in the
//! words of this dialect.

use crate::dialect::staging::{self, Unasked, Unstaged, Waits};
use crate::dialect::{ECHO_CHARS_MAX, echo};
use crate::error::Step;
use crate::json::Json;
use crate::question::{Question, Samples};

use super::fields::{Extensions, Findings};

/// Most names that a message lists.
const NAMES_MAX: usize = 10;

/// Reads `ask`: the ids of the questions that are to be answered.
pub(super) fn ask(field: &str, value: &Json, findings: &mut Findings) -> Option<Vec<String>> {
    let expected = "a list of one or more of the questions' ids";
    let ids = staging::names(value);
    match &ids {
        None => findings.wrong_type(field, expected, value),
        Some(ids) if ids.is_empty() => {
            let message = format!("{field} is empty, expected {expected}");
            findings.fault(vec![field.into()], "too_few", message);
        }
        Some(_) => {}
    }
    ids
}

/// Reads a question's `ask_if`.
pub(super) fn ask_if(
    field: &str,
    value: &Json,
    findings: &mut Findings,
) -> Vec<(String, Vec<Json>)> {
    let conditions = staging::conditions(value);
    if conditions.is_none() {
        let found = value.excerpt(ECHO_CHARS_MAX);
        let message = format!(
            "{field} must be an object of ids of other questions, each with a list of one or more \
             of its answers, not {found}"
        );
        findings.fault(vec![field.into()], "ask_if_invalid", message);
    }
    conditions.unwrap_or_default()
}

/// Reads a question's `depends_on`.
pub(super) fn depends_on(field: &str, value: &Json, findings: &mut Findings) -> Vec<String> {
    let ids = staging::names(value);
    if ids.is_none() {
        findings.wrong_type(field, "a list of ids of other questions", value);
    }
    ids.unwrap_or_default()
}

/// The questions that are asked, each with what it waits for. Without `stage_context` a `depends_on`
/// would change nothing but the time that the answer takes, so it is ignored then.
pub(super) fn staged(
    read: Vec<(Question, Waits)>,
    extensions: &Extensions,
    findings: &mut Findings,
) -> Option<Vec<Question>> {
    let (mut questions, mut waits): (Vec<Question>, Vec<Waits>) = read.into_iter().unzip();
    let adaptive = extensions.adaptive().map(Samples::Adaptive);
    for question in questions.iter_mut().filter(|q| q.samples == Some(Samples::Auto)) {
        question.samples = adaptive.or(question.samples);
    }
    if !extensions.stage_context.unwrap_or_default() {
        for (question, waits) in questions.iter().zip(&mut waits) {
            if !std::mem::take(&mut waits.depends_on).is_empty() {
                ignore_depends_on(question, findings);
            }
        }
    }
    if let Err(fault) = staging::staged(&mut questions, waits) {
        tell_unstaged(fault, &questions, findings);
        return None;
    }
    let Some(ask) = &extensions.ask else { return Some(questions) };
    let asked = staging::asked(questions, ask);
    asked.map_err(|fault| tell_unasked(fault, ask, findings)).ok()
}

fn ignore_depends_on(question: &Question, findings: &mut Findings) {
    findings.inside("questions".into(), |findings| {
        let id = Step::Key(question.id.clone());
        findings.inside(id, |findings| findings.ignore("depends_on"));
    });
}

fn tell_unstaged(fault: Unstaged, questions: &[Question], findings: &mut Findings) {
    let id = |place: usize| questions.get(place).map_or("", |question| question.id.as_str());
    let at = |place: usize, field: &'static str| {
        vec![Step::from("questions"), Step::from(id(place)), Step::from(field)]
    };
    match fault {
        Unstaged::Unknown { question, names, field } => {
            let names = echo(&names);
            let message =
                format!("{field} names {names:?}, which is no other question of the request");
            findings.fault(at(question, field), "unknown_question", message);
        }
        Unstaged::NoAnswer { question, names, index, answers } => {
            let mut path = at(question, "ask_if");
            path.extend([Step::Key(names.clone()), Step::Index(index)]);
            let names = echo(&names);
            let message = if answers.is_empty() {
                format!("the answers of {names:?} have no names that a question could wait for")
            } else {
                format!("an answer of {names:?} is one of {}", listed(&answers))
            };
            findings.fault(path, "ask_if_invalid", message);
        }
        Unstaged::Cycle(places) => {
            let ids: Vec<String> = places.into_iter().map(|place| id(place).to_owned()).collect();
            let message = format!("questions wait for each other in a circle: {}", listed(&ids));
            findings.fault(vec!["questions".into()], "cycle", message);
        }
    }
}

fn tell_unasked(fault: Unasked, ask: &[String], findings: &mut Findings) {
    match fault {
        Unasked::Unknown(index) => {
            let name = ask.get(index).map(|name| echo(name)).unwrap_or_default();
            let message = format!("{name:?} is no question of the request");
            findings.fault(vec!["ask".into(), index.into()], "unknown_question", message);
        }
        Unasked::Open { id, names } => {
            let (id, names) = (echo(&id), echo(&names));
            let message = format!("ask has {id:?} but not {names:?}, for which it waits");
            findings.fault(vec!["ask".into()], "ask_incomplete", message);
        }
    }
}

/// The first of `names`, with what shows that there are more.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(NAMES_MAX).map(|name| format!("{:?}", echo(name)));
    let more = (names.len() > NAMES_MAX).then(|| "...".to_owned());
    shown.chain(more).collect::<Vec<_>>().join(", ")
}
