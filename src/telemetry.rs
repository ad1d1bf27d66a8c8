//! Metrics of the HTTP layer and of decisions: names, descriptions, and the functions that move them.
//!
//! The metrics macros are used here only, so that a name is written once and the list below is
//! complete.

use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

const REQUESTS: &str = "docket_http_requests_total";
const REQUEST_SECONDS: &str = "docket_http_request_duration_seconds";
const CONNECTIONS: &str = "docket_http_connections";
const BODY_BYTES: &str = "docket_http_body_bytes";
const QUESTIONS: &str = "docket_questions_total";
const QUESTION_READS: &str = "docket_question_reads_total";
const SUFFIX_TOKENS: &str = "docket_suffix_tokens_total";

/// What kind of metric a name is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// A distribution.
    Histogram,
}

/// All metrics of this crate with their kind, labels and meaning.
pub const METRICS: &[(&str, MetricKind, &str)] = &[
    (REQUESTS, MetricKind::Counter, "Responses by route and status"),
    (REQUEST_SECONDS, MetricKind::Histogram, "First byte in to head of the response, by route"),
    (CONNECTIONS, MetricKind::Gauge, "Open connections"),
    (BODY_BYTES, MetricKind::Gauge, "Bytes of request bodies held before they are parsed"),
    (QUESTIONS, MetricKind::Counter, "Questions that were answered, by kind"),
    (QUESTION_READS, MetricKind::Counter, "Reads of questions that gave a result, by kind"),
    (SUFFIX_TOKENS, MetricKind::Counter, "Tokens behind the state in those reads, by kind"),
];

/// Kinds of questions, as their label has them.
const KINDS: [&str; 3] = ["noul", "choice", "score"];

/// Registers the descriptions of all metrics, the actors' too, with the recorder; called once at
/// start.
pub fn describe() {
    let actors = actors::observe::METRICS.iter().map(|(name, kind, help)| match *kind {
        "gauge" => (*name, MetricKind::Gauge, *help),
        "histogram" => (*name, MetricKind::Histogram, *help),
        _ => (*name, MetricKind::Counter, *help),
    });
    for (name, kind, description) in METRICS.iter().copied().chain(actors) {
        match kind {
            MetricKind::Counter => describe_counter!(name, description),
            MetricKind::Gauge => describe_gauge!(name, description),
            MetricKind::Histogram => describe_histogram!(name, description),
        }
    }
    actors::observe::start();
    for kind in KINDS {
        questions(kind, 0);
        question_reads(kind, 0, 0);
    }
}

/// Names of all metrics that the server has.
pub fn metric_names() -> impl Iterator<Item = &'static str> {
    let actors = actors::observe::METRICS.iter().map(|(name, _, _)| *name);
    METRICS.iter().map(|(name, _, _)| *name).chain(actors)
}

/// Counts one response. `route` is a route's pattern or `other`, never a path as sent.
pub(crate) fn response(route: &'static str, status: u16, took: Duration) {
    counter!(REQUESTS, "route" => route, "status" => status.to_string()).increment(1);
    histogram!(REQUEST_SECONDS, "route" => route).record(took.as_secs_f64());
}

/// Counts answered questions of a kind.
pub(crate) fn questions(kind: &'static str, count: u64) {
    counter!(QUESTIONS, "kind" => kind).increment(count);
}

/// Counts reads of questions of a kind, and the tokens behind the state in them.
pub(crate) fn question_reads(kind: &'static str, reads: u64, suffix_tokens: u64) {
    counter!(QUESTION_READS, "kind" => kind).increment(reads);
    counter!(SUFFIX_TOKENS, "kind" => kind).increment(suffix_tokens);
}

/// Counts a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct OpenConnection(());

impl OpenConnection {
    pub(crate) fn new() -> Self {
        gauge!(CONNECTIONS).increment(1.0);
        Self(())
    }
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        gauge!(CONNECTIONS).decrement(1.0);
    }
}

/// Shows the bytes of bodies that are held now.
pub(crate) fn body_bytes(bytes: usize) {
    gauge!(BODY_BYTES).set(bytes as f64);
}
