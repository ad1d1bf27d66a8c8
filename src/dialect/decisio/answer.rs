//! `POST /v1/answer`: the letters route below System One, with raw probabilities and times.

use std::time::Duration;

use serde_json::{Value as Wire, json};

use crate::dialect::shapes;
use crate::dialect::{RequestLimits, Undecoded};
use crate::error::{DecideError, Fact, Step};
use crate::json::Json;
use crate::question::{ChoiceOption, Decision, Kind, Manner, OPTIONS_MAX, Question, Samples};
use crate::service::Decided;

use super::decode::{Faults, Size, below, check_state, members};
use super::headers::{questions, waited};

/// The options of a noul.
const SIDES: [&str; 2] = ["yes", "no"];

/// Longest time of a request, lowered to `--timeout-max`.
const TIMEOUT: Duration = Duration::from_mins(10);

/// A request of the letters route: what is to be read, and what each question is answered with.
#[derive(Debug, Clone, PartialEq)]
pub struct Lettered {
    /// The questions that are read, by their number.
    pub decision: Decision,
    /// How each question of the request is answered.
    answers: Vec<Wanted>,
}

/// How a question is answered.
#[derive(Debug, Clone, PartialEq)]
enum Wanted {
    /// By the read of this number, with these options.
    Read { index: usize, options: Vec<String> },
    /// By yes, as probable as one option of another question.
    Derived { from: usize, option: usize },
}

/// Reads a request.
///
/// # Errors
/// All faults found.
pub(in crate::dialect) fn decode(
    body: Json,
    limits: &RequestLimits,
) -> Result<Lettered, Undecoded> {
    let mut faults = Faults::default();
    let (mut state, mut questions) = (None, None);
    for (field, value) in members(body)? {
        match field.as_str() {
            "state" => state = Some(value),
            "questions" => questions = Some(value),
            _ => {}
        }
    }
    let state = check_state(state, &mut faults);
    let items = check_items(questions, limits, &mut faults);
    let (mut read, mut answers) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().flatten().enumerate() {
        let path = vec![Step::from("questions"), index.into()];
        let wanted = item_of(item, &path, (&mut read, &answers), &mut faults);
        answers.extend(wanted);
    }
    match state {
        Some(state) if faults.is_empty() => {
            let decision = Decision {
                samples: Some(Samples::Count(1)),
                timeout_default: Some(TIMEOUT.min(limits.timeout_max)),
                manner: Manner::Letters,
                applies_tasks: false,
                ..Decision::new(state, read)
            };
            Ok(Lettered { decision, answers })
        }
        _ => Err(faults.into_undecoded(Vec::new())),
    }
}

fn check_items(
    questions: Option<Json>,
    limits: &RequestLimits,
    faults: &mut Faults,
) -> Option<Vec<Json>> {
    let path = || vec!["questions".into()];
    match questions {
        Some(Json::Array(items)) if items.is_empty() => {
            faults.size(path(), "List", Size::TooShort { min: 1, actual: 0 });
        }
        Some(Json::Array(items)) if items.len() > limits.questions_max => {
            faults.size(path(), "List", Size::TooLong { max: limits.questions_max });
        }
        Some(Json::Array(items)) => return Some(items),
        Some(_) => faults.add(path(), "list_type", "Input should be a valid list"),
        None => faults.missing(path()),
    }
    None
}

/// One question: read, or derived from one before or behind it.
fn item_of(
    item: &Json,
    path: &[Step],
    (read, answers): (&mut Vec<Question>, &[Wanted]),
    faults: &mut Faults,
) -> Option<Wanted> {
    let Json::Object(_) = item else {
        faults.add(path.to_vec(), "dict_type", "Input should be a valid dictionary");
        return None;
    };
    if let Some(derive) = item.get("derive").filter(|derive| **derive != Json::Null) {
        return derived(derive, &below(path, "derive"), answers, faults);
    }
    let options = options(item.get("options"), &below(path, "options"), faults)?;
    let (kind, options) = kind_of(item.get("kind"), options, path, faults)?;
    let instructions = item.get("instructions").filter(|json| **json != Json::Null).cloned();
    let index = read.len();
    read.push(Question::new(index.to_string(), kind, instructions));
    Some(Wanted::Read { index, options })
}

/// The options' texts; none where there is no list.
fn options(options: Option<&Json>, path: &[Step], faults: &mut Faults) -> Option<Vec<String>> {
    let items = match options {
        None | Some(Json::Null) => return Some(Vec::new()),
        Some(Json::Array(items)) => items,
        Some(_) => {
            faults.add(path.to_vec(), "list_type", "Input should be a valid list");
            return None;
        }
    };
    if items.len() > OPTIONS_MAX {
        faults.size(path.to_vec(), "List", Size::TooLong { max: OPTIONS_MAX });
        return None;
    }
    let mut texts: Vec<String> = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let at = path.iter().cloned().chain([index.into()]).collect();
        match item.as_str() {
            Some(text) if texts.iter().any(|known| known == text) => {
                let message = "Value error, the options must be distinct";
                faults.add(at, "value_error", message);
                return None;
            }
            Some(text) => texts.push(text.to_owned()),
            None => {
                faults.add(at, "string_type", "Input should be a valid string");
                return None;
            }
        }
    }
    Some(texts)
}

fn kind_of(
    kind: Option<&Json>,
    options: Vec<String>,
    path: &[Step],
    faults: &mut Faults,
) -> Option<(Kind, Vec<String>)> {
    let name = kind.map_or(Some("choice"), Json::as_str);
    if name == Some("noul") {
        let kind = Kind::Noul { when_true: None, when_false: None };
        return Some((kind, vec!["yes".to_owned(), "no".to_owned()]));
    }
    if !matches!(name, Some("choice" | "score")) {
        let expected = "'noul', 'choice' or 'score'";
        let message = format!("Input should be {expected}");
        let facts = vec![("expected", Fact::Text(expected.to_owned()))];
        faults.with(below(path, "kind"), ("literal_error", &message), facts);
        return None;
    }
    if options.is_empty() {
        faults.size(below(path, "options"), "List", Size::TooShort { min: 1, actual: 0 });
        return None;
    }
    let kind = if name == Some("score") {
        Kind::Score { levels: options.iter().cloned().map(Json::String).collect() }
    } else {
        let option = |key: &String| ChoiceOption { key: key.clone(), description: None };
        Kind::Choice { options: options.iter().map(option).collect() }
    };
    Some((kind, options))
}

/// A question that is answered from an earlier one.
fn derived(
    derive: &Json,
    path: &[Step],
    answers: &[Wanted],
    faults: &mut Faults,
) -> Option<Wanted> {
    let from = derive.get("from").and_then(Json::as_number).and_then(|n| n.parse::<usize>().ok());
    let named = derive.get("option").and_then(Json::as_str);
    let source = from.and_then(|from| Some((from, answers.get(from)?)));
    if let (Some((_, Wanted::Read { index, options })), Some(named)) = (source, named)
        && let Some(option) = options.iter().position(|option| option == named)
    {
        return Some(Wanted::Derived { from: *index, option });
    }
    let message = "Value error, derive must name an earlier question by its number and one of its \
                   options";
    faults.add(path.to_vec(), "value_error", message);
    None
}

/// The response: raw probabilities and times. `total` is from the request's first byte to now.
///
/// # Errors
/// [`DecideError::Internal`] where a number is not finite.
pub(in crate::dialect) fn encode(
    wanted: &Lettered,
    decided: &Decided,
    total: Duration,
) -> Result<String, DecideError> {
    shapes::check_finite(&decided.answers)?;
    let raw: Vec<Vec<f64>> = decided
        .answers
        .iter()
        .zip(&wanted.decision.questions)
        .map(|(answer, question)| in_order(&question.kind, &answer.raw))
        .collect();
    let answers: Vec<Wire> = wanted
        .answers
        .iter()
        .map(|wanted| match wanted {
            Wanted::Read { index, options } => {
                json!({"options": options, "probs": raw[*index]})
            }
            Wanted::Derived { from, option } => {
                let yes = raw[*from][*option];
                json!({"options": SIDES, "probs": [yes, 1.0 - yes]})
            }
        })
        .collect();
    Ok(json!({"answers": answers, "timing": timing(decided, total)}).to_string())
}

/// A noul's probabilities are given for yes, then no.
fn in_order(kind: &Kind, raw: &[f64]) -> Vec<f64> {
    match kind {
        Kind::Noul { .. } => raw.iter().rev().copied().collect(),
        Kind::Choice { .. } | Kind::Score { .. } => raw.to_vec(),
    }
}

fn timing(decided: &Decided, total: Duration) -> Wire {
    let cost = &decided.cost;
    let ms = |time: Duration| (time.as_secs_f64() * 1e4).round() / 10.0;
    let mean = |of: fn(&crate::question::answer::RowTokens) -> u64| {
        let sum: u64 = cost.rows.iter().map(of).sum();
        sum as f64 / cost.rows.len().max(1) as f64
    };
    let waited = waited(cost);
    let busy = cost.prepare + cost.state_time + questions(cost) + waited;
    let is_found = cost.rows.iter().all(|row| row.cached >= u64::from(cost.prefix_tokens));
    json!({
        "prepare_ms": ms(cost.prepare),
        "warm_ms": ms(cost.state_time),
        "questions_ms": ms(questions(cost)),
        "readout_ms": ms(total.saturating_sub(busy)),
        "server_ms": ms(total),
        "waited_ms": ms(waited),
        "waited_behind_registration": cost.behind_registration,
        "cached_tokens": cost.rows.iter().map(|row| row.cached).collect::<Vec<_>>(),
        "cached_tokens_mean": mean(|row| row.cached),
        "prompt_tokens": cost.rows.iter().map(|row| row.prompt).collect::<Vec<_>>(),
        "prompt_tokens_mean": mean(|row| row.prompt),
        "engine_prompt_tokens": cost.computed_tokens,
        "engine_timing": {
            "queue_ms": ms(cost.queue_wait),
            "sched_to_token_ms": ms(cost.state_wait + cost.engine_wait + cost.engine_time),
        },
        "shared_prefix_tokens": cost.prefix_tokens,
        "questions": decided.answers.len(),
        "state_boundary": {
            "registered": false,
            "found": is_found,
            "deferred": !is_found,
        },
    })
}
