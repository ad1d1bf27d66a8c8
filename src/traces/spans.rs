//! The times of a request that has ended, laid out as spans.
//!
//! What is measured of a decision are times that follow each other (docs/OPERATIONS.md, "What a request
//! waited for"), not when each began. So spans are laid end to end in that order, and what is left
//! until the end is the readout. Of a decision of several rounds of reads the times are sums over its
//! rounds.

use std::borrow::Cow;
use std::time::Duration;

use crate::question::answer::Cost;

/// Most states of a batch that have spans of their own.
pub const STATES_MAX: usize = 64;

/// Most spans of one request.
pub const SPANS_MAX: usize = 1 + STATES_MAX * (1 + PARTS_MAX);

/// Most parts of one decision.
const PARTS_MAX: usize = 6;

/// A span, within its request.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// What took the time.
    pub name: &'static str,
    /// Which span of the request it is part of; none of the first, which is the request's own.
    pub parent: Option<usize>,
    /// When it began, since the request's first byte.
    pub from: Duration,
    /// When it ended, likewise.
    pub until: Duration,
    /// What is known of it.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Whether it ended with a failure of ours.
    pub failed: bool,
}

/// What is known of a span; never a text of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    /// A word.
    Text(Cow<'static, str>),
    /// A number of things.
    Count(u64),
    /// A time in milliseconds.
    Millis(f64),
    /// Whether something is so.
    Flag(bool),
}

/// A request that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Its method.
    pub method: &'static str,
    /// The pattern of its route.
    pub route: &'static str,
    /// `http` or `https`.
    pub scheme: &'static str,
    /// What it was answered with.
    pub status: u16,
    /// Why, where it was refused.
    pub reason: Option<&'static str>,
    /// The wire format.
    pub dialect: &'static str,
    /// In which lane it was served.
    pub lane: Option<&'static str>,
    /// A keyed hash of its tenant's name.
    pub tenant: String,
    /// What the answer says in `x-typesafe-request-id`.
    pub request_id: String,
    /// From its first byte to the head of its answer; to the last result of a batch that is answered in
    /// lines.
    pub took: Duration,
}

/// All decisions of a request.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Works {
    /// The decisions, at most [`STATES_MAX`].
    pub listed: Vec<Work>,
    /// How many there were.
    pub count: u64,
    /// Questions that were answered.
    pub questions: u64,
    /// Tokens of states and questions.
    pub input_tokens: u64,
    /// Of those, computed.
    pub computed_tokens: u64,
    /// Of those, found.
    pub cached_tokens: u64,
}

/// One decision or prewarm.
#[derive(Debug, Clone, PartialEq)]
pub struct Work {
    /// Which state of a batch it is about; none where it is the whole request.
    pub state: Option<usize>,
    /// When work on it began, since the request's first byte.
    pub began: Duration,
    /// When it was tried the last time: later than `began` where there was no room at first.
    pub tried: Duration,
    /// When it ended.
    pub ended: Duration,
    /// What it was answered with.
    pub status: u16,
    /// Why, where it was refused.
    pub reason: Option<&'static str>,
    /// Questions that were answered.
    pub questions: usize,
    /// What it cost and waited for, where it was answered; without its rows.
    pub cost: Option<Cost>,
}

impl Work {
    /// That on a state of a batch, begun so long after the request's first byte.
    pub fn begun(state: usize, began: Duration) -> Self {
        Self {
            state: Some(state),
            began,
            tried: began,
            ended: began,
            status: 0,
            reason: None,
            questions: 0,
            cost: None,
        }
    }
}

impl Works {
    /// Those of a request that is one decision.
    pub fn one(work: Work) -> Self {
        let mut works = Self::default();
        works.add(work);
        works
    }

    /// Adds a decision; beyond [`STATES_MAX`] it is only counted.
    pub fn add(&mut self, work: Work) {
        self.count += 1;
        self.questions += work.questions as u64;
        if let Some(cost) = &work.cost {
            self.input_tokens += cost.input_tokens;
            self.computed_tokens += cost.computed_tokens;
            self.cached_tokens += cost.cached_tokens;
        }
        if self.listed.len() < STATES_MAX {
            self.listed.push(work);
        }
    }
}

/// What of a cost the spans show.
pub fn without_rows(cost: &Cost) -> Cost {
    Cost { rows: Vec::new(), ..*cost }
}

/// The spans of a request: its own, then those of each decision, in order; at most [`SPANS_MAX`].
pub fn spans(request: &Request, works: &Works) -> Vec<Span> {
    let took = request.took;
    let mut spans = vec![Span {
        name: "request",
        parent: None,
        from: Duration::ZERO,
        until: took,
        attributes: of_request(request, works),
        failed: request.status >= 500,
    }];
    for work in &works.listed {
        // What is the whole request ends with it: the last of its readout is the head of the answer.
        let ended = work.state.map_or(took, |_| work.ended);
        let [began, tried, ended] = [work.began, work.tried, ended].map(|at| at.min(took));
        let mut parent = 0;
        if let Some(state) = work.state {
            parent = spans.len();
            spans.push(Span {
                name: "decision",
                parent: Some(0),
                from: began,
                until: ended.max(began),
                attributes: of_state(state, work),
                failed: work.status >= 500,
            });
        }
        if let Some(cost) = &work.cost {
            spans.extend(parts(parent, (tried.max(began), ended.max(began)), work.tried, cost));
        }
    }
    spans
}

/// The parts of a decision, end to end from its last try to its end; those that took no time are left
/// out.
fn parts(
    parent: usize,
    (tried, ended): (Duration, Duration),
    tried_since: Duration,
    cost: &Cost,
) -> Vec<Span> {
    // What is counted as preparation begins with the request's first byte.
    let render = cost.prepare.saturating_sub(tried_since);
    let lengths = [
        ("render", render, of_render(cost)),
        ("queue", cost.queue_wait, vec![("docket.waits_for", word("turn"))]),
        ("state", cost.state_wait, of_prefix(cost)),
        ("queue", cost.engine_wait, vec![("docket.waits_for", word("engine"))]),
        ("step", cost.engine_time, vec![("docket.steps", Attribute::Count(cost.runs.into()))]),
        ("readout", Duration::MAX, Vec::new()),
    ];
    let mut at = tried.min(ended);
    let mut parts = Vec::with_capacity(PARTS_MAX);
    for (name, length, attributes) in lengths {
        let until = at.saturating_add(length).min(ended);
        if until > at {
            let (parent, failed) = (Some(parent), false);
            parts.push(Span { name, parent, from: at, until, attributes, failed });
        }
        at = until;
    }
    parts
}

fn of_request(request: &Request, works: &Works) -> Vec<(&'static str, Attribute)> {
    let mut attributes = vec![
        ("http.request.method", word(request.method)),
        ("http.route", word(request.route)),
        ("http.response.status_code", Attribute::Count(request.status.into())),
        ("url.scheme", word(request.scheme)),
        ("docket.dialect", word(request.dialect)),
        ("docket.tenant", Attribute::Text(request.tenant.clone().into())),
        ("docket.request_id", Attribute::Text(request.request_id.clone().into())),
    ];
    attributes.extend(request.lane.map(|lane| ("docket.lane", word(lane))));
    attributes.extend(refused(request.status, request.reason));
    if works.count > 0 {
        attributes.extend([
            ("docket.decisions", Attribute::Count(works.count)),
            ("docket.questions", Attribute::Count(works.questions)),
            ("docket.tokens.input", Attribute::Count(works.input_tokens)),
            ("docket.tokens.computed", Attribute::Count(works.computed_tokens)),
            ("docket.tokens.cached", Attribute::Count(works.cached_tokens)),
        ]);
    }
    attributes
}

fn of_state(state: usize, work: &Work) -> Vec<(&'static str, Attribute)> {
    let mut attributes = vec![
        ("docket.state", Attribute::Count(state as u64)),
        ("docket.status", Attribute::Count(work.status.into())),
        ("docket.questions", Attribute::Count(work.questions as u64)),
    ];
    attributes.extend(refused(work.status, work.reason));
    if let Some(cost) = &work.cost {
        attributes.extend([
            ("docket.tokens.input", Attribute::Count(cost.input_tokens)),
            ("docket.tokens.computed", Attribute::Count(cost.computed_tokens)),
            ("docket.tokens.cached", Attribute::Count(cost.cached_tokens)),
        ]);
    }
    attributes
}

fn refused(status: u16, reason: Option<&'static str>) -> Vec<(&'static str, Attribute)> {
    let mut attributes: Vec<_> =
        reason.map(|why| ("docket.reason", word(why))).into_iter().collect();
    if status >= 500 {
        attributes.push(("error.type", word(reason.unwrap_or("error"))));
    }
    attributes
}

fn of_render(cost: &Cost) -> Vec<(&'static str, Attribute)> {
    vec![("docket.state_tokenised", Attribute::Flag(cost.state_tokenisations > 0))]
}

fn of_prefix(cost: &Cost) -> Vec<(&'static str, Attribute)> {
    vec![
        ("docket.prefix_tokens", Attribute::Count(cost.prefix_tokens.into())),
        ("docket.own_steps_ms", Attribute::Millis(cost.state_time.as_secs_f64() * 1e3)),
        ("docket.behind_registration", Attribute::Flag(cost.behind_registration)),
    ]
}

fn word(word: &'static str) -> Attribute {
    Attribute::Text(Cow::Borrowed(word))
}

#[cfg(test)]
mod tests;
