//! Requests of the `gmlx` dialect.
//!
//! The first fault is the one that is told, in the order in which gmlx looks: what both of its
//! readouts refuse, then what its letter readout does.

use std::collections::{BTreeSet, HashSet};
use std::time::Duration;

use crate::dialect::staging::{self, Unasked, Unstaged, Waits};
use crate::dialect::systemone::fields::{Extensions, Findings};
use crate::dialect::{Decoded, RequestLimits, Undecoded, echo};
use crate::error::Problem;
use crate::json::Json;
use crate::question::{Adaptive, Decision, Manner, Question, Samples};
use crate::service::{Prewarm, States};

use super::profile::profile_of;
use super::questions::{self, of, present};
use super::{INVALID_REQUEST, NO_IMAGES, VALIDATION, repr};

/// Longest time of a request that sets none, as gmlx's server has it; lowered to `--timeout-max`.
const TIMEOUT: Duration = Duration::from_mins(10);

/// Longest text under an image's name in a state that is no image.
const PICTURE_CHARS_MAX: usize = 2_000;

/// Most ids that a message lists.
const IDS_MAX: usize = 10;

/// Fields of gmlx that its letter readout leaves alone, and so does docket.
const UNUSED: [&str; 13] = [
    "alone",
    "auto_max",
    "auto_threshold",
    "chunk_prompt",
    "chunk_rows",
    "depends_on",
    "instructions",
    "seed",
    "sequential",
    "steps",
    "think",
    "think_budget",
    "think_threshold",
];

/// Docket's own fields of a decision and of a prewarm.
const EXTENSIONS: [&str; 2] = ["priority", "timeout_ms"];
const PREWARM_EXTENSIONS: [&str; 3] = ["priority", "timeout_ms", "ttl_s"];

/// Why a request is refused.
pub(super) type Faulty = Problem;

/// A fault of a field.
pub(super) fn invalid(message: String) -> Faulty {
    Problem::new(Vec::new(), VALIDATION, message)
}

fn refused(message: &str) -> Faulty {
    Problem::new(Vec::new(), INVALID_REQUEST, message.to_owned())
}

/// Fields that nobody reads: all of them for the response, gmlx's own for the log.
pub(super) struct Notes {
    pub(super) findings: Findings,
    unused: BTreeSet<&'static str>,
    unknown: usize,
}

impl Notes {
    fn new() -> Self {
        Self { findings: Findings::new(), unused: BTreeSet::new(), unknown: 0 }
    }

    /// Notes a field of the current object.
    pub(super) fn ignore(&mut self, field: &str) {
        match UNUSED.into_iter().find(|name| *name == field) {
            Some(name) => drop(self.unused.insert(name)),
            None => self.unknown += 1,
        }
        self.findings.ignore(field);
    }

    /// Notes a member of a field of the current object.
    pub(super) fn ignore_in(&mut self, field: &str, member: &str) {
        self.unknown += 1;
        self.findings.inside(field.into(), |findings| findings.ignore(member));
    }

    /// The names that are ignored. The log has those that are gmlx's, and how many others there were:
    /// what a caller wrote does not get there.
    fn told(self) -> Vec<String> {
        if !self.unused.is_empty() || self.unknown > 0 {
            let parameters = self.unused.into_iter().collect::<Vec<_>>().join(", ");
            let unknown = self.unknown;
            tracing::warn!(parameters, unknown, "ignoring unsupported parameter(s)");
        }
        self.findings.ignored
    }
}

/// See [`crate::dialect::Dialect::decision`].
pub(in crate::dialect) fn decision(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Decision>, Undecoded> {
    noting(|notes| read(body, limits, notes))
}

/// See [`crate::dialect::Dialect::prewarm`].
pub(in crate::dialect) fn prewarm(
    body: Json,
    limits: &RequestLimits,
) -> Result<Decoded<Prewarm>, Undecoded> {
    noting(|notes| read_prewarm(body, limits, notes))
}

fn noting<T>(read: impl FnOnce(&mut Notes) -> Result<T, Faulty>) -> Result<Decoded<T>, Undecoded> {
    let mut notes = Notes::new();
    let read = read(&mut notes);
    let ignored = notes.told();
    match read {
        Ok(request) => Ok(Decoded { request, ignored }),
        Err(fault) => Err(Undecoded { faults: vec![fault], ignored }),
    }
}

/// Fields of a body that are read in an order of their own.
#[derive(Default)]
struct Fields {
    state: Option<Json>,
    questions: Option<Json>,
    model: Option<Json>,
    profile: Option<Json>,
    images: Option<Json>,
    ask: Option<Json>,
    samples: Option<Json>,
    auto_max: Option<Json>,
    auto_threshold: Option<Json>,
}

fn read(body: Json, limits: &RequestLimits, notes: &mut Notes) -> Result<Decision, Faulty> {
    let mut fields = Fields::default();
    let mut extensions = Extensions::default();
    for (field, value) in members(body)? {
        match field.as_str() {
            "questions" => fields.questions = Some(value),
            "ask" => fields.ask = present(value),
            "samples" => fields.samples = present(value),
            "auto_max" => fields.auto_max = present(value),
            "auto_threshold" => fields.auto_threshold = present(value),
            _ => {
                let own = (&EXTENSIONS[..], &mut extensions);
                fields.common((&field, value), own, limits, notes);
            }
        }
    }
    let Fields { state, questions, model, profile, images, ask, samples, .. } = fields;
    check_images(images.as_ref())?;
    let state = check_state(state)?;
    let (mut questions, waits) = check_questions(questions, limits, notes)?;
    staging::staged(&mut questions, waits).map_err(|fault| unstaged(fault, &questions))?;
    let has_auto = fields.auto_max.is_some() || fields.auto_threshold.is_some();
    let orders = check_samples(samples.as_ref(), (fields.auto_max, fields.auto_threshold), notes)?;
    let asked = check_ask(ask.as_ref())?;
    let all: Vec<(String, bool)> = questions
        .iter()
        .map(|question| (question.id.clone(), question.instructions.is_some()))
        .collect();
    if let Some(ids) = asked {
        questions = staging::asked(questions, &ids).map_err(unasked)?;
    }
    // From here on what only the letter readout refuses.
    if let Some((id, _)) = all.iter().find(|(_, is_instructed)| !is_instructed) {
        return Err(of(id, "instructions is required"));
    }
    let asked_samples = orders.ok_or_else(samples_fault)?;
    check_pictures(&state)?;
    let profile = profile_of(model.as_ref(), profile.as_ref())?;
    // A profile says how many orders there are, where the request leaves it to us.
    let is_profiles = profile.is_some() && samples.is_none() && !has_auto;
    Ok(Decision {
        samples: Some(if is_profiles { Samples::Auto } else { asked_samples }),
        lane: extensions.lane,
        timeout: extensions.timeout,
        timeout_default: Some(TIMEOUT.min(limits.timeout_max)),
        profile,
        ..Decision::new(state, questions)
    })
}

fn read_prewarm(body: Json, limits: &RequestLimits, notes: &mut Notes) -> Result<Prewarm, Faulty> {
    let mut fields = Fields::default();
    let mut extensions = Extensions::default();
    for (field, value) in members(body)? {
        let own = (&PREWARM_EXTENSIONS[..], &mut extensions);
        fields.common((&field, value), own, limits, notes);
    }
    check_images(fields.images.as_ref())?;
    let state = check_state(fields.state)?;
    check_pictures(&state)?;
    Ok(Prewarm {
        states: States::One(state),
        lane: extensions.lane,
        timeout: extensions.timeout,
        ttl: extensions.ttl,
        wait: true,
        manner: Manner::Profile,
        profile: profile_of(fields.model.as_ref(), fields.profile.as_ref())?,
        context: None,
        template: Vec::new(),
    })
}

impl Fields {
    /// Takes a field that decisions and prewarms have, or one of docket's own where it is sound; notes
    /// any other.
    fn common(
        &mut self,
        (field, value): (&str, Json),
        (own, extensions): (&[&'static str], &mut Extensions),
        limits: &RequestLimits,
        notes: &mut Notes,
    ) {
        match field {
            "state" => self.state = Some(value),
            "model" => self.model = Some(value),
            "profile" => self.profile = present(value),
            "images" => self.images = Some(value),
            _ => {
                let mut faulty = Findings::new();
                let is_own = extensions.read(own, (field, &value), limits, &mut faulty);
                if !is_own || !faulty.faults.is_empty() {
                    notes.ignore(field);
                }
            }
        }
    }
}

fn members(body: Json) -> Result<Vec<(String, Json)>, Faulty> {
    if let Json::Object(members) = body {
        return Ok(members);
    }
    Err(refused(&format!("invalid body: must be a JSON object, not {}", body.type_name())))
}

/// Images are refused, and what stands for none is not.
fn check_images(images: Option<&Json>) -> Result<(), Faulty> {
    let is_truthy = match images {
        None | Some(Json::Null | Json::Bool(false)) => false,
        Some(Json::Bool(true)) => true,
        Some(Json::Number(spelling)) => spelling.parse() != Ok(0.0),
        Some(Json::String(text)) => !text.is_empty(),
        Some(Json::Array(items)) => !items.is_empty(),
        Some(Json::Object(members)) => !members.is_empty(),
    };
    if is_truthy { Err(refused(NO_IMAGES)) } else { Ok(()) }
}

fn check_state(state: Option<Json>) -> Result<Json, Faulty> {
    let required = || invalid("state: required".to_owned());
    state.and_then(present).ok_or_else(required)
}

/// Refuses a state of which a member is a picture.
fn check_pictures(state: &Json) -> Result<(), Faulty> {
    let is_picture = |name| {
        let text = state.get(name).and_then(Json::as_str).unwrap_or_default();
        text.starts_with("data:image") || text.chars().nth(PICTURE_CHARS_MAX).is_some()
    };
    if ["screenshot", "image"].into_iter().any(is_picture) {
        return Err(refused(NO_IMAGES));
    }
    Ok(())
}

fn check_questions(
    questions: Option<Json>,
    limits: &RequestLimits,
    notes: &mut Notes,
) -> Result<(Vec<Question>, Vec<Waits>), Faulty> {
    let members = match questions {
        Some(Json::Object(members)) if !members.is_empty() => members,
        Some(_) | None => {
            let message = "questions: needs a non-empty map of id -> question".to_owned();
            return Err(invalid(message));
        }
    };
    if members.len() > limits.questions_max {
        return Err(invalid(format!("schema: at most {} questions", limits.questions_max)));
    }
    notes.findings.at.push("questions".into());
    let mut read = Vec::with_capacity(members.len());
    let mut ids = HashSet::new();
    for (id, value) in members {
        let one = questions::question(&id, value, notes)?;
        if !ids.insert(one.0.id.clone()) {
            return Err(of(&one.0.id, "is given twice, but for spaces around its id"));
        }
        read.push(one);
    }
    notes.findings.at.pop();
    Ok(read.into_iter().unzip())
}

fn unstaged(fault: Unstaged, questions: &[Question]) -> Faulty {
    let id = |place: usize| questions.get(place).map_or("", |question| question.id.as_str());
    match fault {
        Unstaged::Unknown { question, names, field: _ } => {
            of(id(question), &format!("depends on unknown question {}", repr::text(&names)))
        }
        Unstaged::NoAnswer { question, names, index: _, answers } => {
            let (names, answers) = (repr::text(&names), repr::list(&answers));
            of(id(question), &format!("ask_if values for {names} must be among {answers}"))
        }
        Unstaged::Cycle(places) => {
            let ids = places.iter().take(IDS_MAX).map(|place| echo(id(*place)));
            let more = (places.len() > IDS_MAX).then(|| "...".to_owned());
            let ids: Vec<String> = ids.chain(more).collect();
            invalid(format!("schema: dependency cycle among {}", ids.join(", ")))
        }
    }
}

fn ask_fault() -> Faulty {
    invalid("schema: ask must list question ids from this schema".to_owned())
}

fn check_ask(ask: Option<&Json>) -> Result<Option<Vec<String>>, Faulty> {
    let Some(ask) = ask else { return Ok(None) };
    let ids = staging::names(ask).filter(|ids| !ids.is_empty()).ok_or_else(ask_fault)?;
    Ok(Some(ids.into_iter().map(|id| id.trim().to_owned()).collect()))
}

fn unasked(fault: Unasked) -> Faulty {
    match fault {
        Unasked::Unknown(_) => ask_fault(),
        Unasked::Open { id, names: _ } => {
            let id = repr::text(&id);
            invalid(format!("schema: ask names {id} but not everything it depends on"))
        }
    }
}

fn samples_fault() -> Faulty {
    invalid("schema: samples must be a positive count or \"auto\"".to_owned())
}

/// How many orders are read; `None` for `true`, which only the letter readout refuses. What says when
/// `auto` reads more is noted as ignored where it does not.
fn check_samples(
    samples: Option<&Json>,
    (auto_max, auto_threshold): (Option<Json>, Option<Json>),
    notes: &mut Notes,
) -> Result<Option<Samples>, Faulty> {
    let usual = Adaptive::default();
    let orders_max = match &auto_max {
        None => usual.orders_max,
        Some(value) => count(value)
            .ok_or_else(|| invalid("schema: auto_max must be a positive count".to_owned()))?,
    };
    let entropy_max = match &auto_threshold {
        None => usual.entropy_max,
        Some(value) => nats(value).ok_or_else(|| {
            invalid("schema: auto_threshold must be a number of at least 0".to_owned())
        })?,
    };
    let adaptive = Samples::Adaptive(Adaptive { entropy_max, orders_max });
    let counted = match samples {
        None => return Ok(Some(adaptive)),
        Some(Json::String(text)) if text == "auto" => return Ok(Some(adaptive)),
        Some(Json::Bool(true)) => None,
        Some(value) => Some(Samples::Count(count(value).ok_or_else(samples_fault)?)),
    };
    for (name, value) in [("auto_max", auto_max), ("auto_threshold", auto_threshold)] {
        if value.is_some() {
            notes.ignore(name);
        }
    }
    Ok(counted)
}

/// A whole number of at least 1 that is written as one: neither `4.0` nor `true`.
fn count(value: &Json) -> Option<u32> {
    let digits = value.as_number().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?;
    let count: u64 = digits.parse().unwrap_or(u64::MAX);
    (count > 0).then(|| u32::try_from(count).unwrap_or(u32::MAX))
}

fn nats(value: &Json) -> Option<f64> {
    let nats: f64 = value.as_number()?.parse().ok()?;
    (nats.is_finite() && nats >= 0.0).then_some(nats)
}
