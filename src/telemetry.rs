//! Metrics of the HTTP layer and of decisions: names, descriptions, and the functions that move them.
//!
//! The metrics macros are used here only, so that a name is written once and the list below is
//! complete. What a request moves is registered once and moved by handles.

mod fetches;
mod gateway;
mod responses;
mod tenants;
mod traces;
mod wire;

use std::sync::LazyLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use actors::observe::Kind;
use metrics::{
    Counter, Gauge, Histogram, counter, describe_counter, describe_gauge, describe_histogram,
    gauge, histogram,
};

pub(crate) use fetches::{FetchEnd, image_fetch, image_fetched, image_fetches_max};
pub use gateway::gateway_metric_names;
pub(crate) use gateway::{
    BackendEnd, BackendMeters, Choice, KeyFrom, RetryFor, chosen, describe_gateway,
    gateway_buckets, gateway_failed, gateway_limits, keyed, retried, retrying, shown_by_gateway,
    under_way,
};
pub(crate) use responses::{Ended, RouteMeters};
pub(crate) use tenants::{keys_failed, keys_loaded, usage_unwritten};
pub(crate) use traces::{spans_dropped, spans_sent};
pub(crate) use wire::{Ending, connection_ended, http2_connection, http2_stream, tls_reloaded};

const REQUESTS: &str = "docket_http_requests_total";
const REQUEST_SECONDS: &str = "docket_http_request_duration_seconds";
const CONNECTIONS: &str = "docket_http_connections";
const BODY_BYTES: &str = "docket_http_body_bytes";
const REGISTRATION_BYTES: &str = "docket_task_registration_bytes";
const PARSERS: &str = "docket_http_parsers_busy";
const FETCHES: &str = "docket_image_fetches";
const FETCHED: &str = "docket_image_fetches_total";
const QUESTIONS: &str = "docket_questions_total";
const QUESTION_READS: &str = "docket_question_reads_total";
const SUFFIX_TOKENS: &str = "docket_suffix_tokens_total";
const PROMPT_SECONDS: &str = "docket_prompt_duration_seconds";
const TOKENIZE_SECONDS: &str = "docket_tokenize_duration_seconds";
const TOKENISERS: &str = "docket_tokenisers_busy";
const TEXTS_WAITING: &str = "docket_texts_waiting";
const READOUT_SECONDS: &str = "docket_readout_duration_seconds";
const OTHER_SECONDS: &str = "docket_decision_other_seconds";
const LABEL_MASS: &str = "docket_label_mass";
const PANICS: &str = "docket_engine_panics_total";
const BUILD: &str = "docket_build_info";
const READY: &str = "docket_ready";
const STARTED: &str = "docket_start_time_seconds";
/// Shared with the actors, which list it.
const LIMIT: &str = "docket_limit";

/// All metrics of this crate with their kind, labels and meaning.
pub const METRICS: &[(&str, Kind, &str)] = &[
    (REQUESTS, Kind::Counter, "Responses by route, status and, of refusals, reason"),
    (REQUEST_SECONDS, Kind::Seconds, "First byte in to head of the response, by route and lane"),
    (CONNECTIONS, Kind::Gauge, "Open connections"),
    (wire::ENDED, Kind::Counter, "Connections that the server ended, by reason"),
    (wire::HTTP2_CONNECTIONS, Kind::Gauge, "Of the open connections, those of HTTP/2"),
    (wire::HTTP2_STREAMS, Kind::Gauge, "Requests that are being answered on them"),
    (
        wire::TLS_FAILED,
        Kind::Gauge,
        "1 if the certificate could not be used when it was last read again",
    ),
    (BODY_BYTES, Kind::Gauge, "Bytes of request bodies held before they are parsed"),
    (REGISTRATION_BYTES, Kind::Gauge, "Bytes of examples that registrations under way hold"),
    (PARSERS, Kind::Gauge, "Long bodies that are decompressed and parsed now"),
    (FETCHES, Kind::Gauge, "Images that are being fetched now"),
    (FETCHED, Kind::Counter, "Images that were to be fetched, by end"),
    (QUESTIONS, Kind::Counter, "Questions that were answered, by kind"),
    (QUESTION_READS, Kind::Counter, "Reads of questions that gave a result, by kind"),
    (SUFFIX_TOKENS, Kind::Counter, "Tokens behind the state in those reads, by kind"),
    (PROMPT_SECONDS, Kind::Micros, "Time to render and tokenise a state, or a round of questions"),
    (TOKENIZE_SECONDS, Kind::Micros, "Of that, the time to tokenise one text"),
    (TOKENISERS, Kind::Gauge, "Long texts that are rendered and tokenised now"),
    (TEXTS_WAITING, Kind::Gauge, "Long texts that wait for that"),
    (READOUT_SECONDS, Kind::Micros, "Time to turn the log-probabilities of a round into answers"),
    (OTHER_SECONDS, Kind::Micros, "Time of an answered decision that is neither wait nor engine"),
    (LABEL_MASS, Kind::Share, "Probability of all labels together, of an answered question"),
    (PANICS, Kind::Counter, "Panics in the forward pass"),
    (tenants::TENANTS, Kind::Gauge, "Tenants whose keys are in force"),
    (
        tenants::FAILED,
        Kind::Gauge,
        "1 if the key file could not be used when it was last read again",
    ),
    (tenants::UNWRITTEN, Kind::Gauge, "Since when usage is counted that is not written, or 0"),
    (traces::SENT, Kind::Counter, "Spans of traces that a collector took"),
    (traces::DROPPED, Kind::Counter, "Spans of traces that were lost"),
    (BUILD, Kind::Gauge, "Always 1; its labels say what was built"),
    (READY, Kind::Gauge, "1 while decisions are taken, else 0, as readiness says"),
    (STARTED, Kind::Gauge, "When the process started, in seconds since 1970"),
];

/// Kinds of questions, as their label has them.
const KINDS: [&str; 5] = ["noul", "choice", "score", "number", "excerpt"];

static METERS: LazyLock<Meters> = LazyLock::new(Meters::new);

/// Handles of what this crate moves; without a recorder they do nothing.
struct Meters {
    /// By kind of question, in the order of [`KINDS`].
    questions: [Counter; 5],
    reads: [Counter; 5],
    suffix_tokens: [Counter; 5],
    connections: Gauge,
    body_bytes: Gauge,
    registration_bytes: Gauge,
    parsers: Gauge,
    tokenisers: Gauge,
    texts_waiting: Gauge,
    state: Histogram,
    round: Histogram,
    tokenize: Histogram,
    readout: Histogram,
    other: Histogram,
    label_mass: Histogram,
    panics: Counter,
    ready: Gauge,
}

impl Meters {
    fn new() -> Self {
        let by_kind = |name: &'static str| KINDS.map(|kind| counter!(name, "kind" => kind));
        Self {
            questions: by_kind(QUESTIONS),
            reads: by_kind(QUESTION_READS),
            suffix_tokens: by_kind(SUFFIX_TOKENS),
            connections: gauge!(CONNECTIONS),
            body_bytes: gauge!(BODY_BYTES),
            registration_bytes: gauge!(REGISTRATION_BYTES),
            parsers: gauge!(PARSERS),
            tokenisers: gauge!(TOKENISERS),
            texts_waiting: gauge!(TEXTS_WAITING),
            state: histogram!(PROMPT_SECONDS, "part" => "state"),
            round: histogram!(PROMPT_SECONDS, "part" => "questions"),
            tokenize: histogram!(TOKENIZE_SECONDS),
            readout: histogram!(READOUT_SECONDS),
            other: histogram!(OTHER_SECONDS),
            label_mass: histogram!(LABEL_MASS),
            panics: counter!(PANICS),
            ready: gauge!(READY),
        }
    }
}

/// Registers all metrics, the actors' too, with the recorder; called once at start, when that is
/// there and before anything is counted.
pub fn describe() {
    all().for_each(describe_one);
    actors::observe::start();
    LazyLock::force(&METERS);
    fetches::start();
    tenants::start();
    traces::start();
    wire::start();
    process();
    limit(TOKENISERS, crate::prompt::tokens::TOKENISERS_MAX);
    limit(REGISTRATION_BYTES, crate::tasks::REGISTRATIONS_BYTES_MAX);
}

/// Gives the recorder a metric's kind and meaning.
fn describe_one((name, kind, help): &(&'static str, Kind, &'static str)) {
    match kind {
        Kind::Counter => describe_counter!(*name, *help),
        Kind::Gauge => describe_gauge!(*name, *help),
        Kind::Seconds | Kind::Micros | Kind::Ages | Kind::Tokens | Kind::Count | Kind::Share => {
            describe_histogram!(*name, *help)
        }
    }
}

/// Shows what the process is and since when it runs.
fn process() {
    let target = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    let labels = [
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("target", target),
        ("commit", crate::version::COMMIT.to_owned()),
        ("features", crate::version::FEATURES.to_owned()),
    ];
    gauge!(BUILD, &labels).set(1.0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    gauge!(STARTED).set(now.unwrap_or_default().as_secs_f64());
}

fn all() -> impl Iterator<Item = &'static (&'static str, Kind, &'static str)> {
    METRICS.iter().chain(actors::observe::METRICS)
}

/// Names of all metrics that the server has.
pub fn metric_names() -> impl Iterator<Item = &'static str> {
    all().map(|(name, ..)| *name)
}

/// Every histogram with the upper bounds of its buckets.
pub fn buckets() -> impl Iterator<Item = (&'static str, &'static [f64])> {
    all().filter_map(|(name, kind, _)| Some((*name, kind.buckets()?)))
}

/// Shows the limit of what the metric `of` counts, in its unit.
pub(crate) fn limit(of: &'static str, limit: usize) {
    gauge!(LIMIT, "metric" => of).set(limit as f64);
}

/// Shows the limit of open connections.
pub(crate) fn connections_max(connections: usize) {
    limit(CONNECTIONS, connections);
}

/// Shows the limits of bodies being received and parsed.
pub(crate) fn bodies_max(bytes: usize, parsers: usize) {
    limit(BODY_BYTES, bytes);
    limit(PARSERS, parsers);
}

/// Counts answered questions of a kind.
pub(crate) fn questions(kind: &'static str, count: u64) {
    of_kind(&METERS.questions, kind, count);
}

/// Counts reads of questions of a kind, and the tokens behind the state in them.
pub(crate) fn question_reads(kind: &'static str, reads: u64, suffix_tokens: u64) {
    of_kind(&METERS.reads, kind, reads);
    of_kind(&METERS.suffix_tokens, kind, suffix_tokens);
}

fn of_kind(counters: &[Counter; 5], kind: &str, count: u64) {
    if let Some((_, counter)) = KINDS.iter().zip(counters).find(|(known, _)| **known == kind) {
        counter.increment(count);
    }
}

/// A state was rendered and tokenised.
pub(crate) fn state_prompted(took: Duration) {
    METERS.state.record(took);
}

/// A round of questions was.
pub(crate) fn round_prompted(took: Duration) {
    METERS.round.record(took);
}

/// One text was tokenised.
pub(crate) fn tokenised(took: Duration) {
    METERS.tokenize.record(took);
}

/// Outcomes of a round became distributions.
pub(crate) fn read_out(took: Duration) {
    METERS.readout.record(took);
}

/// A decision was answered; of its time, so much was neither wait nor engine.
pub(crate) fn decision_other(time: Duration) {
    METERS.other.record(time);
}

/// A question was answered, whose labels had so much of the probability.
pub(crate) fn label_mass(mass: f64) {
    METERS.label_mass.record(mass);
}

/// The forward pass panicked.
pub(crate) fn engine_panicked() {
    METERS.panics.increment(1);
}

/// Shows whether decisions are taken now.
pub(crate) fn ready(is_ready: bool) {
    METERS.ready.set(if is_ready { 1.0 } else { 0.0 });
}

/// Shows the bytes of bodies that are held now.
pub(crate) fn body_bytes(bytes: usize) {
    METERS.body_bytes.set(bytes as f64);
}

/// Shows the bytes of examples that registrations of tasks hold now.
pub(crate) fn registration_bytes(bytes: usize) {
    METERS.registration_bytes.set(bytes as f64);
}

/// Counts something in a gauge until it is dropped.
pub(crate) struct Held(&'static Gauge);

impl Held {
    fn by(gauge: &'static Gauge) -> Self {
        gauge.increment(1.0);
        Self(gauge)
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// A connection is open.
pub(crate) fn connection() -> Held {
    Held::by(&METERS.connections)
}

/// A long body is being parsed.
pub(crate) fn parser() -> Held {
    Held::by(&METERS.parsers)
}

/// A long text waits for a tokeniser.
pub(crate) fn text_waiting() -> Held {
    Held::by(&METERS.texts_waiting)
}

/// A long text is being tokenised.
pub(crate) fn tokeniser() -> Held {
    Held::by(&METERS.tokenisers)
}
