//! Metrics of a gateway: a process of its own, whose list is apart from a server's.

use std::sync::LazyLock;
use std::time::Duration;

use actors::observe::Kind;
use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{Held, limit};

const REQUESTS: &str = "docket_gateway_requests_total";
const SECONDS: &str = "docket_gateway_answer_duration_seconds";
const IN_FLIGHT: &str = "docket_gateway_in_flight";
const READY: &str = "docket_gateway_backend_ready";
const EJECTIONS: &str = "docket_gateway_ejections_total";
const PROBES: &str = "docket_gateway_probes_total";
const CHOICES: &str = "docket_gateway_choices_total";
const KEYS: &str = "docket_gateway_keys_total";
const RETRIES: &str = "docket_gateway_retries_total";
const RETRYING: &str = "docket_gateway_retrying";
const UNDER_WAY: &str = "docket_gateway_under_way";
const FAILURES: &str = "docket_gateway_failures_total";

/// All metrics that only a gateway has, with their kind and meaning.
pub(super) const METRICS: &[(&str, Kind, &str)] = &[
    (REQUESTS, Kind::Counter, "Requests that were sent to a backend, by backend and end"),
    (SECONDS, Kind::Seconds, "From a request's sending to the head of its answer, by backend"),
    (IN_FLIGHT, Kind::Gauge, "Requests at a backend, by backend"),
    (READY, Kind::Gauge, "1 while a backend is given requests, else 0, by backend"),
    (
        EJECTIONS,
        Kind::Counter,
        "How often a backend was left alone for what became of its requests",
    ),
    (PROBES, Kind::Counter, "Probes, by backend and end"),
    (CHOICES, Kind::Counter, "Choices of a backend, by reason"),
    (KEYS, Kind::Counter, "Requests, by where the key of their state is from"),
    (RETRIES, Kind::Counter, "Requests that were sent once more, by reason"),
    (RETRYING, Kind::Gauge, "Requests that wait to be sent once more, or are"),
    (UNDER_WAY, Kind::Gauge, "Requests of clients that have not ended"),
    (FAILURES, Kind::Counter, "Requests that the gateway answered itself, by reason"),
];

/// Beginnings of the names of a server's metrics that a gateway has too.
const SHARED: [&str; 9] = [
    "docket_build_info",
    "docket_http2_",
    "docket_http_body_bytes",
    "docket_http_connections",
    "docket_http_parsers_busy",
    "docket_limit",
    "docket_start_time_seconds",
    "docket_tls_",
    "docket_gateway_",
];

/// Names of all metrics that only a gateway has.
pub fn gateway_metric_names() -> impl Iterator<Item = &'static str> {
    METRICS.iter().map(|(name, ..)| *name)
}

/// The histograms among them with the upper bounds of their buckets.
pub(crate) fn gateway_buckets() -> impl Iterator<Item = (&'static str, &'static [f64])> {
    METRICS.iter().filter_map(|(name, kind, _)| Some((*name, kind.buckets()?)))
}

/// Registers them, and what a server has too; called once at start.
pub(crate) fn describe_gateway() {
    let shared = super::all().filter(|(name, ..)| is_shown(name));
    shared.chain(METRICS).for_each(super::describe_one);
    LazyLock::force(&METERS);
    super::wire::start();
    super::process();
}

/// Of rendered metrics those that a gateway has: what it shares a binary with would be zeros.
pub(crate) fn shown_by_gateway(rendered: &str) -> String {
    let name = |line: &str| {
        let line = line.strip_prefix("# HELP ").or(line.strip_prefix("# TYPE ")).unwrap_or(line);
        line.split(['{', ' ']).next().is_some_and(is_shown)
    };
    let mut shown = String::new();
    for line in rendered.lines().filter(|line| name(line)) {
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

fn is_shown(name: &str) -> bool {
    SHARED.iter().any(|start| name.starts_with(start))
}

/// How a request at a backend ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendEnd {
    /// With an answer, whole.
    Answered,
    /// With a refusal for now, 429 or 503.
    Refused,
    /// The backend could not be reached.
    Unreached,
    /// The connection broke.
    Broken,
    /// No answer, or no more of it, came in time.
    Timeout,
    /// The client had gone.
    Left,
}

const ENDS: [&str; 6] = ["answered", "refused", "unreached", "broken", "timeout", "left"];

/// Reasons of choices, in the order of [`Choice`].
const REASONS: [&str; 5] = ["own", "load", "down", "retry", "any"];

/// Why a backend was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The key prefers it to all others.
    Own,
    /// Those that the key prefers have more than their share.
    Load,
    /// Those that the key prefers are out.
    Down,
    /// Those that the key prefers were tried.
    Retry,
    /// There is no key.
    Any,
}

/// Where the key of a request's state is from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyFrom {
    /// Its header.
    Header,
    /// Its body.
    Body,
    /// It is about no state.
    None,
}

const SOURCES: [&str; 3] = ["header", "body", "none"];

/// Why a request is sent once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryFor {
    /// The backend could not be reached.
    Unreached,
    /// The connection broke, and it may be carried out twice.
    Broken,
    /// It was refused, and another backend is asked.
    Refused,
    /// It was refused, and its `Retry-After` was waited for.
    Waited,
}

const RETRY_REASONS: [&str; 4] = ["unreached", "broken", "refused", "waited"];

static METERS: LazyLock<Meters> = LazyLock::new(|| Meters {
    choices: REASONS.map(|reason| counter!(CHOICES, "reason" => reason)),
    keys: SOURCES.map(|from| counter!(KEYS, "from" => from)),
    retries: RETRY_REASONS.map(|reason| counter!(RETRIES, "reason" => reason)),
    retrying: gauge!(RETRYING),
    under_way: gauge!(UNDER_WAY),
});

struct Meters {
    choices: [Counter; 5],
    keys: [Counter; 3],
    retries: [Counter; 4],
    retrying: Gauge,
    under_way: Gauge,
}

/// What is counted of one backend.
pub(crate) struct BackendMeters {
    ends: [Counter; 6],
    seconds: Histogram,
    in_flight: Gauge,
    ready: Gauge,
    ejections: Counter,
    probes: [Counter; 2],
}

impl BackendMeters {
    /// * `name`: the backend's host and port.
    pub(crate) fn new(name: &str) -> Self {
        let of = || name.to_owned();
        Self {
            ends: ENDS.map(|end| counter!(REQUESTS, "backend" => of(), "end" => end)),
            seconds: histogram!(SECONDS, "backend" => of()),
            in_flight: gauge!(IN_FLIGHT, "backend" => of()),
            ready: gauge!(READY, "backend" => of()),
            ejections: counter!(EJECTIONS, "backend" => of()),
            probes: ["failed", "ready"]
                .map(|end| counter!(PROBES, "backend" => of(), "end" => end)),
        }
    }

    pub(crate) fn ended(&self, end: BackendEnd) {
        self.ends[end as usize].increment(1);
    }

    pub(crate) fn answered_after(&self, time: Duration) {
        self.seconds.record(time);
    }

    pub(crate) fn in_flight(&self, requests: u32) {
        self.in_flight.set(f64::from(requests));
    }

    pub(crate) fn ready(&self, is_ready: bool) {
        self.ready.set(if is_ready { 1.0 } else { 0.0 });
    }

    pub(crate) fn ejected(&self) {
        self.ejections.increment(1);
    }

    pub(crate) fn probed(&self, is_ready: bool) {
        self.probes[usize::from(is_ready)].increment(1);
    }
}

/// A backend was chosen.
pub(crate) fn chosen(choice: Choice) {
    METERS.choices[choice as usize].increment(1);
}

/// The key of a request was looked for.
pub(crate) fn keyed(from: KeyFrom) {
    METERS.keys[from as usize].increment(1);
}

/// A request is sent once more.
pub(crate) fn retried(why: RetryFor) {
    METERS.retries[why as usize].increment(1);
}

/// A request waits to be sent once more, or is.
pub(crate) fn retrying() -> Held {
    Held::by(&METERS.retrying)
}

/// A request of a client is under way.
pub(crate) fn under_way() -> Held {
    Held::by(&METERS.under_way)
}

/// Shows the limits of both.
pub(crate) fn gateway_limits(under_way: u32, retrying: u32) {
    limit(UNDER_WAY, under_way as usize);
    limit(RETRYING, retrying as usize);
}

/// A request was answered by the gateway itself.
pub(crate) fn gateway_failed(reason: &'static str) {
    counter!(FAILURES, "reason" => reason).increment(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_gateway_has_is_shown() {
        let rendered = "\
# TYPE docket_questions_total counter
docket_questions_total{kind=\"noul\"} 0

# HELP docket_gateway_under_way Requests
# TYPE docket_gateway_under_way gauge
docket_gateway_under_way 1
docket_ready 0
docket_http_connections 2
";
        let shown = "\
# HELP docket_gateway_under_way Requests
# TYPE docket_gateway_under_way gauge
docket_gateway_under_way 1
docket_http_connections 2
";
        assert_eq!(shown_by_gateway(rendered), shown);
    }
}
