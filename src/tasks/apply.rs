//! What was learned, applied to a decision: before it is read, and to its answers.
//!
//! The order is that of decisio: a correction instead of the temperature, then abstention, then a
//! noul's commitment (docs/DECISIO.md, "Tasks").

use std::sync::Arc;

use actors::TenantId;

use super::desk::Desk;
use super::fit::apply::committed;
use super::order::AbstainOption;
use super::record::{AbstentionTask, Task};
use crate::error::DecideError;
use crate::json::Json;
use crate::prompt::layout::PerKind;
use crate::question::answer::{Abstention, Answer, Certified, Value};
use crate::question::{ChoiceOption, Decision, Kind, Manner, Question, Samples};
use crate::readout::confidence;

/// Key of an option for not knowing that the server appends.
pub const UNKNOWN_KEY: &str = "__unknown__";

/// What is done to the answers of a decision, one entry a question.
#[derive(Debug, Default)]
pub struct Plan {
    questions: Vec<Planned>,
    /// Ids of the tasks that match, sorted.
    pub tasks: Vec<String>,
}

#[derive(Debug, Default)]
struct Planned {
    task: Option<Arc<Task>>,
    abstain: Option<Abstain>,
    commits: bool,
}

/// How an option for not knowing is treated.
#[derive(Debug)]
enum Abstain {
    /// It is the option of this index.
    Declared { option: usize, threshold: f64 },
    /// It was appended; the question was a noul or a choice.
    Appended { was_noul: bool, threshold: Option<f64> },
}

/// Changes a decision as its tenant's tasks say.
///
/// # Errors
/// [`DecideError::Unsupported`] where a head meets two orders, which it was not fitted for.
pub fn plan(
    desk: &Desk,
    tenant: &TenantId,
    (decision, noul_commit): (&mut Decision, bool),
    temperature: &PerKind<f64>,
) -> Result<Plan, DecideError> {
    let commits = noul_commit && decision.manner == Manner::Letters;
    let mut plan = Plan::default();
    let (manner, images_form) = (decision.manner, decision.images_form);
    let is_twice = matches!(decision.samples, Some(Samples::Count(count)) if count > 1);
    for question in &mut decision.questions {
        let commits = commits && matches!(question.kind, Kind::Noul { .. });
        let mut planned = Planned { commits, ..Planned::default() };
        if decision.applies_tasks && question.finds.is_none() {
            let matching = desk.tasks_of(tenant, manner, question);
            plan.tasks.extend(matching.iter().map(|task| task.id.clone()));
            planned.task = corrected(matching, (manner, is_twice), question)?;
            planned.abstain =
                abstaining(desk, tenant, (manner, images_form), question, temperature);
            if matches!(planned.abstain, Some(Abstain::Appended { .. })) {
                // It is another question now, of which nothing was learned.
                planned.task = None;
            }
        }
        plan.questions.push(planned);
    }
    plan.tasks.sort_unstable();
    plan.tasks.dedup();
    Ok(plan)
}

fn corrected(
    matching: Vec<Arc<Task>>,
    (manner, is_twice): (Manner, bool),
    question: &mut Question,
) -> Result<Option<Arc<Task>>, DecideError> {
    let Some(task) = matching.into_iter().next_back() else { return Ok(None) };
    let needs_hidden = task.correction.as_ref().is_some_and(|learned| learned.needs_hidden());
    if needs_hidden && is_twice && manner == Manner::Letters {
        let message =
            format!("task {} has an intent head, which is not read in two orders", task.id);
        return Err(DecideError::Unsupported(message));
    }
    question.correction.clone_from(&task.correction);
    Ok(Some(task))
}

fn abstaining(
    desk: &Desk,
    tenant: &TenantId,
    (manner, images_form): (Manner, bool),
    question: &mut Question,
    temperature: &PerKind<f64>,
) -> Option<Abstain> {
    let found = desk.abstention_of(tenant, manner, (question, images_form));
    if let Some(task) = found.filter(|task| task.threshold.is_some()) {
        let threshold = task.threshold?;
        match &task.option {
            AbstainOption::Key(key) => {
                if let Some(option) = option_of(&question.kind, key) {
                    return Some(Abstain::Declared { option, threshold });
                }
            }
            AbstainOption::Append(text) if images_form => {
                let was_noul = append(question, text, temperature)?;
                return Some(Abstain::Appended { was_noul, threshold: Some(threshold) });
            }
            AbstainOption::Append(_) => {}
        }
    }
    let text = desk.config().abstain_option.as_deref().filter(|_| images_form)?;
    let was_noul = append(question, text, temperature)?;
    Some(Abstain::Appended { was_noul, threshold: None })
}

fn option_of(kind: &Kind, key: &str) -> Option<usize> {
    let Kind::Choice { options } = kind else { return None };
    options.iter().position(|option| option.key == key)
}

/// Offers an option for not knowing last; a noul becomes a choice. Says whether it was one; `None`
/// where the question has no place for it.
pub(super) fn append(
    question: &mut Question,
    text: &str,
    temperature: &PerKind<f64>,
) -> Option<bool> {
    let unknown = ChoiceOption {
        key: UNKNOWN_KEY.to_owned(),
        description: Some(Json::String(text.to_owned())),
    };
    match &mut question.kind {
        Kind::Choice { options } if options.len() < crate::question::OPTIONS_MAX => {
            options.push(unknown);
            question.correction = None;
            Some(false)
        }
        Kind::Noul { when_true, when_false } => {
            let side = |key: &str, name: &str, meaning: &mut Option<Json>| ChoiceOption {
                key: key.to_owned(),
                description: meaning.take().or_else(|| Some(Json::String(name.to_owned()))),
            };
            let options =
                vec![side("yes", "Yes", when_true), side("no", "No", when_false), unknown];
            question.temperature.get_or_insert(temperature.noul);
            question.kind = Kind::Choice { options };
            question.correction = None;
            Some(true)
        }
        Kind::Choice { .. } | Kind::Score { .. } => None,
    }
}

impl Plan {
    /// Finishes the answers.
    pub fn finish(&self, answers: &mut [Answer]) {
        for (answer, planned) in answers.iter_mut().zip(&self.questions) {
            if let Some(abstain) = &planned.abstain {
                abstained(answer, abstain);
            }
            if let Some(task) = &planned.task {
                observe(task, answer);
            }
            if let Value::Noul { yes } = &mut answer.value
                && planned.commits
            {
                *yes = committed(*yes);
            }
        }
    }
}

/// Certifies an answer, where its task does, and counts it. What counts as unanswered is neither.
fn observe(task: &Task, answer: &mut Answer) {
    let is_unanswered = answer.learned.abstention.is_some_and(|abstention| abstention.abstained);
    let Some((option, p)) = given(&answer.value) else { return };
    if let Some(traffic) = task.traffic().as_mut().filter(|_| !is_unanswered) {
        traffic.observe(option, p);
    }
    let not = |reason: String| Certified { is_certified: false, reason: Some(reason) };
    answer.learned.certified = task.certificate.as_ref().map(|certificate| match certificate {
        _ if is_unanswered => not("the question counts as unanswered".to_owned()),
        Ok(threshold) if p >= *threshold => Certified { is_certified: true, reason: None },
        Ok(threshold) => {
            not(format!("its probability {p:.4} is below the threshold {threshold:.4}"))
        }
        Err(why) => not(why.clone()),
    });
}

/// The option that is answered and its probability: of a choice the chosen one, else the top.
fn given(value: &Value) -> Option<(usize, f64)> {
    match value {
        Value::Choice { chosen, probabilities, .. } => {
            Some((*chosen, *probabilities.get(*chosen)?))
        }
        Value::Noul { .. } | Value::Score { .. } => top(value),
        Value::Number(_) | Value::Excerpt(_) | Value::Skipped { .. } => None,
    }
}

/// The most probable option and its probability.
pub(super) fn top(value: &Value) -> Option<(usize, f64)> {
    let distribution = distribution(value);
    let at = confidence::first_top(&distribution);
    distribution.get(at).map(|p| (at, *p))
}

/// The distribution by option (a noul's no, then yes).
pub(super) fn distribution(value: &Value) -> Vec<f64> {
    match value {
        Value::Noul { yes } => vec![1.0 - yes, *yes],
        Value::Choice { probabilities, .. } | Value::Score { probabilities, .. } => {
            probabilities.clone()
        }
        Value::Number(_) | Value::Excerpt(_) | Value::Skipped { .. } => Vec::new(),
    }
}

fn abstained(answer: &mut Answer, abstain: &Abstain) {
    let Value::Choice { chosen, keys, probabilities, confidence } = &mut answer.value else {
        return;
    };
    match *abstain {
        Abstain::Declared { option, threshold } => {
            let unknown = probabilities[option];
            let abstained = unknown > threshold;
            *chosen = if abstained { option } else { best(keys, probabilities, Some(option)) };
            *confidence = rescaled(probabilities[*chosen], probabilities.len());
            answer.learned.abstention = Some(Abstention { unknown, abstained });
        }
        Abstain::Appended { was_noul, threshold } => {
            let unknown = probabilities.pop().unwrap_or_default();
            keys.pop();
            let most = probabilities.iter().copied().fold(0.0, f64::max);
            let abstained = unknown > threshold.unwrap_or(most);
            answer.learned.abstention = Some(Abstention { unknown, abstained });
            if was_noul {
                let yes = probabilities[0] + unknown / 2.0;
                answer.value = Value::Noul { yes };
                return;
            }
            let total: f64 = probabilities.iter().sum();
            if total > 0.0 {
                for p in probabilities.iter_mut() {
                    *p /= total;
                }
            }
            *chosen = best(keys, probabilities, None);
            *confidence = rescaled(probabilities[*chosen], probabilities.len());
        }
    }
}

/// The most probable option but `except`; among equals the key that is first in code-point order.
pub(super) fn best(keys: &[String], probabilities: &[f64], except: Option<usize>) -> usize {
    let others = (0..keys.len()).filter(|option| Some(*option) != except);
    let ranked = others.max_by(|a, b| {
        probabilities[*a].total_cmp(&probabilities[*b]).then_with(|| keys[*b].cmp(&keys[*a]))
    });
    ranked.unwrap_or(0)
}

fn rescaled(p: f64, options: usize) -> f64 {
    if options == 1 {
        return 1.0;
    }
    let even = 1.0 / options as f64;
    ((p - even) / (1.0 - even)).max(0.0)
}

/// What the thresholds of the tenant's tasks are, for `/health`.
pub fn thresholds(tasks: &[Arc<AbstentionTask>]) -> serde_json::Map<String, serde_json::Value> {
    tasks.iter().map(|task| (task.id.clone(), serde_json::json!(task.threshold))).collect()
}
