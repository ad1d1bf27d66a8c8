//! Orders to register a task: labelled examples, decoded and checked against each other.

use crate::error::{DecideError, Problem, Step};
use crate::json::Json;
use crate::question::{Decision, Kind, Question};

use super::{EXAMPLES_MAX, ID_BYTES_MAX};

/// A task to be registered.
#[derive(Debug, Clone)]
pub struct TaskOrder {
    /// Its name among the tenant's.
    pub id: String,
    /// What it is to be fitted to; at least one.
    pub examples: Vec<Example>,
    /// How its answers are to be certified, if they are.
    pub certify: Option<CertifyOrder>,
    /// About how much memory it takes.
    pub bytes: usize,
}

/// A decision of one question, with its answer.
#[derive(Debug, Clone)]
pub struct Example {
    /// The decision.
    pub decision: Decision,
    /// The right option (a noul's no is 0, its yes 1); `None` where there is no answer.
    pub gold: Option<usize>,
}

/// How answers are to be certified.
#[derive(Debug, Clone)]
pub struct CertifyOrder {
    /// Share of certified answers that may be wrong.
    pub alpha: f64,
    /// How probable it may be that they are more.
    pub delta: f64,
    /// Share of the examples that is held out, where none are given for it.
    pub holdout: f64,
    /// Fewest examples that are held out.
    pub examples_min: Option<usize>,
    /// Examples for the certificate alone.
    pub examples: Vec<Example>,
}

/// An abstention task to be registered.
#[derive(Debug, Clone)]
pub struct AbstentionOrder {
    /// Its name among the tenant's.
    pub id: String,
    /// The option for not knowing.
    pub option: AbstainOption,
    /// Which questions it is for.
    pub matches: Match,
    /// What it is to be fitted to; at least one.
    pub examples: Vec<Example>,
    /// About how much memory it takes.
    pub bytes: usize,
}

/// An option for not knowing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbstainOption {
    /// One of the request's own, by its key.
    Key(String),
    /// One that the server appends, by its text.
    Append(String),
}

/// Which questions an abstention task is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// Those with the examples' options, in any order.
    OptionSet,
    /// Those with the examples' option keys, whatever they mean.
    OptionKeys,
    /// All of requests in the form that has images.
    ImajevExtension,
}

impl Match {
    /// Its name in requests and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OptionSet => "option_set",
            Self::OptionKeys => "option_keys",
            Self::ImajevExtension => "imajev_extension",
        }
    }

    /// The match of this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::OptionSet, Self::OptionKeys, Self::ImajevExtension];
        all.into_iter().find(|found| found.as_str() == name)
    }
}

/// What decodes the requests of examples, as it would the requests themselves.
pub type Decode<'a> = dyn Fn(Json) -> Result<Decision, DecideError> + 'a;

/// Decodes the body of `POST /v1/tasks`.
///
/// # Errors
/// The first fault found, with its place.
pub fn task(body: &Json, decode: &Decode<'_>) -> Result<TaskOrder, DecideError> {
    let id = id(body)?;
    let examples = examples(body, &[], decode)?;
    let certify = match body.get("certify") {
        None | Some(Json::Null | Json::Bool(false)) => None,
        Some(order @ Json::Object(_)) => Some(certify(order, decode)?),
        Some(_) => {
            let message = "certify must be an object, or absent";
            return Err(fault(vec!["certify".into()], "certify_invalid", message));
        }
    };
    let more = certify.iter().flat_map(|order| &order.examples);
    check_one_question(examples.iter().chain(more))?;
    if let Some(index) = examples.iter().position(|example| example.gold.is_none()) {
        let path = vec!["examples".into(), index.into(), "answer".into()];
        return Err(fault(path, "unknown_answer", "an example of a task has an answer, not null"));
    }
    let certified_by = certify.as_ref().map_or(0, |order| order.examples.len());
    let bytes = bytes(body, examples.len() + certified_by);
    Ok(TaskOrder { id, examples, certify, bytes })
}

/// Decodes the body of `POST /v1/abstention/tasks`.
///
/// # Errors
/// The first fault found, with its place.
pub fn abstention(body: &Json, decode: &Decode<'_>) -> Result<AbstentionOrder, DecideError> {
    let id = id(body)?;
    let option = abstain_option(body.get("option"))?;
    let named = match body.get("match") {
        None | Some(Json::Null) => Some(Match::OptionSet),
        Some(name) => name.as_str().and_then(Match::named),
    };
    let matches = named.ok_or_else(|| {
        let message = "match must be option_set, option_keys or imajev_extension";
        fault(vec!["match".into()], "unknown_match", message)
    })?;
    let examples = examples(body, &[], decode)?;
    if matches != Match::ImajevExtension {
        check_one_question(examples.iter())?;
    }
    check_abstain_option(&option, matches, &examples)?;
    let bytes = bytes(body, examples.len());
    Ok(AbstentionOrder { id, option, matches, examples, bytes })
}

/// About the memory of so many examples: their texts are those of the body.
fn bytes(body: &Json, examples: usize) -> usize {
    body.heap_bytes() + examples * (size_of::<Example>() + size_of::<Question>())
}

fn check_abstain_option(
    option: &AbstainOption,
    matches: Match,
    examples: &[Example],
) -> Result<(), DecideError> {
    match option {
        AbstainOption::Key(key) => {
            let has_it = |example: &Example| match &question(example).kind {
                Kind::Choice { options } => options.iter().any(|option| option.key == *key),
                Kind::Noul { .. } | Kind::Score { .. } => false,
            };
            let lacks = examples.iter().position(|example| !has_it(example));
            lacks.map_or(Ok(()), |index| {
                let path = vec!["examples".into(), index.into(), "request".into()];
                let message = "its question is no choice with the key of the abstain option";
                Err(fault(path, "unknown_option", message))
            })
        }
        AbstainOption::Append(_) => {
            let uses_it = examples.iter().all(|example| example.decision.images_form);
            if matches == Match::ImajevExtension || uses_it {
                return Ok(());
            }
            let message = "an option is appended to requests in the form that has images only: match \
                           imajev_extension, or examples with images (an empty list will do)";
            Err(fault(vec!["option".into(), "append".into()], "option_invalid", message))
        }
    }
}

fn abstain_option(option: Option<&Json>) -> Result<AbstainOption, DecideError> {
    let text = |name| option.and_then(|option| option.get(name)).and_then(Json::as_str);
    match (text("key"), text("append")) {
        (Some(key), None) => Ok(AbstainOption::Key(key.to_owned())),
        (None, Some(text)) if !text.trim().is_empty() => Ok(AbstainOption::Append(text.to_owned())),
        _ => {
            let message = "option must be {\"key\": KEY} or {\"append\": TEXT}, one of them";
            Err(fault(vec!["option".into()], "option_invalid", message))
        }
    }
}

fn id(body: &Json) -> Result<String, DecideError> {
    let path = || vec![Step::from("id")];
    match body.get("id") {
        Some(Json::String(id)) if is_id(id) => Ok(id.clone()),
        None => Err(fault(path(), "missing", "id is missing: a name for the task")),
        Some(_) => Err(fault(path(), "id_invalid", &format!("id {ID_RULE}"))),
    }
}

/// What an id must be, in words.
pub(super) const ID_RULE: &str = "must be 1 to 200 visible ASCII characters other than , / ? # and %, \
    or words of letters and digits with single spaces, and not `import`";

/// Whether a task may be called so: it stands in a header's list and in a path.
pub(super) fn is_id(id: &str) -> bool {
    let is_visible =
        |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b',' | b'/' | b'?' | b'#' | b'%');
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric());
    let is_plain = id.bytes().all(is_visible) || id.split(' ').all(is_word);
    (1..=ID_BYTES_MAX).contains(&id.len()) && is_plain && id != "import"
}

fn examples(body: &Json, at: &[Step], decode: &Decode<'_>) -> Result<Vec<Example>, DecideError> {
    let path: Vec<Step> = at.iter().cloned().chain(["examples".into()]).collect();
    let Some(Json::Array(items)) = body.get("examples") else {
        return Err(fault(path, "missing", "examples is missing: a list of {request, answer}"));
    };
    if !(1..=EXAMPLES_MAX).contains(&items.len()) {
        let message = format!("examples has {} of 1 to {EXAMPLES_MAX} elements", items.len());
        return Err(fault(path, "examples_invalid", &message));
    }
    let one = |(index, item): (usize, &Json)| {
        let path: Vec<Step> = path.iter().cloned().chain([index.into()]).collect();
        example(item, &path, decode)
    };
    items.iter().enumerate().map(one).collect()
}

fn example(item: &Json, path: &[Step], decode: &Decode<'_>) -> Result<Example, DecideError> {
    let below = |name: &str| path.iter().cloned().chain([name.into()]).collect::<Vec<_>>();
    let Some(request) = item.get("request").cloned() else {
        return Err(fault(below("request"), "missing", "request is missing: a decision"));
    };
    let decision = decode(request).map_err(|error| placed(error, &below("request")))?;
    if decision.questions.len() != 1 {
        let message =
            format!("the request of an example has one question, not {}", decision.questions.len());
        return Err(fault(below("request"), "questions_invalid", &message));
    }
    let Some(answer) = item.get("answer") else {
        return Err(fault(below("answer"), "missing", "answer is missing: the key of the answer"));
    };
    let gold = if *answer == Json::Null {
        None
    } else {
        let kind = &decision.questions[0].kind;
        let gold = gold(kind, answer).ok_or_else(|| {
            let message = format!("{} is none of the question's answers", answer.excerpt(100));
            fault(below("answer"), "unknown_answer", &message)
        })?;
        Some(gold)
    };
    Ok(Example { decision, gold })
}

/// The option that an answer names.
fn gold(kind: &Kind, answer: &Json) -> Option<usize> {
    match kind {
        Kind::Noul { .. } => match answer {
            Json::Bool(yes) => Some(usize::from(*yes)),
            Json::String(text) if text == "yes" => Some(1),
            Json::String(text) if text == "no" => Some(0),
            Json::String(_) | Json::Null | Json::Number(_) | Json::Array(_) | Json::Object(_) => {
                None
            }
        },
        Kind::Choice { options } => {
            let key = answer.as_str()?;
            options.iter().position(|option| option.key == key)
        }
        Kind::Score { levels } => {
            let index = answer.as_number().or(answer.as_str())?.parse::<usize>().ok()?;
            (index < levels.len()).then_some(index)
        }
    }
}

fn certify(order: &Json, decode: &Decode<'_>) -> Result<CertifyOrder, DecideError> {
    let at = [Step::from("certify")];
    let rate = |name: &'static str, default: f64| match order.get(name) {
        None | Some(Json::Null) => Ok(default),
        Some(value) => {
            let rate = value.as_number().and_then(|number| number.parse::<f64>().ok());
            rate.filter(|rate| *rate > 0.0 && *rate < 1.0).ok_or_else(|| {
                let message = format!("{name} must be above 0 and below 1");
                fault(vec!["certify".into(), name.into()], "certify_invalid", &message)
            })
        }
    };
    let examples_min = match order.get("min_examples") {
        None | Some(Json::Null) => None,
        Some(value) => {
            let count = value.as_number().and_then(|number| number.parse::<usize>().ok());
            let message = "min_examples must be a whole number";
            let path = vec!["certify".into(), "min_examples".into()];
            Some(count.ok_or_else(|| fault(path, "certify_invalid", message))?)
        }
    };
    let examples = match order.get("examples") {
        None | Some(Json::Null) => Vec::new(),
        Some(_) => examples(order, &at, decode)?,
    };
    if let Some(index) = examples.iter().position(|example| example.gold.is_none()) {
        let path = vec!["certify".into(), "examples".into(), index.into(), "answer".into()];
        return Err(fault(path, "unknown_answer", "an example of a task has an answer, not null"));
    }
    Ok(CertifyOrder {
        alpha: rate("alpha", 0.05)?,
        delta: rate("delta", 0.1)?,
        holdout: rate("holdout", 0.5)?,
        examples_min,
        examples,
    })
}

/// Every example must ask the same question with the same options.
fn check_one_question<'e>(examples: impl Iterator<Item = &'e Example>) -> Result<(), DecideError> {
    let mut first: Option<&Question> = None;
    for (index, example) in examples.enumerate() {
        let own = question(example);
        let known = *first.get_or_insert(own);
        let is_same_choice = matches!(known.kind, Kind::Choice { .. });
        if known.kind != own.kind || !is_same_choice && known.instructions != own.instructions {
            let path = vec!["examples".into(), index.into(), "request".into()];
            let message = "the examples must share one question: this one differs from the first";
            return Err(fault(path, "examples_differ", message));
        }
    }
    Ok(())
}

pub(super) fn question(example: &Example) -> &Question {
    &example.decision.questions[0]
}

fn fault(path: Vec<Step>, code: &'static str, message: &str) -> DecideError {
    DecideError::Invalid(vec![Problem::new(path, code, message.to_owned())])
}

/// A fault of an example's request, at its place in the order.
fn placed(error: DecideError, at: &[Step]) -> DecideError {
    let DecideError::Invalid(problems) = error else { return error };
    let place = |problem: Problem| Problem {
        path: at.iter().cloned().chain(problem.path).collect(),
        ..problem
    };
    DecideError::Invalid(problems.into_iter().map(place).collect())
}
