//! Metrics of a remote engine: what its servers are asked, how that ends, and what they had in their
//! caches.

use std::sync::LazyLock;
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, counter, gauge, histogram};

use super::{Held, limit};

pub(super) const CALLS: &str = "docket_remote_requests_total";
pub(super) const CALL_SECONDS: &str = "docket_remote_request_duration_seconds";
pub(super) const IN_FLIGHT: &str = "docket_remote_requests_in_flight";
pub(super) const FOUND: &str = "docket_remote_hits_total";
pub(super) const PROMPT_TOKENS: &str = "docket_remote_prompt_tokens_total";
pub(super) const CACHED_TOKENS: &str = "docket_remote_cached_tokens_total";
pub(super) const SERVERS: &str = "docket_remote_servers";
pub(super) const RETRIES: &str = "docket_remote_retries_total";
pub(super) const ABORTED: &str = "docket_remote_requests_aborted_total";

/// What a server is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteCall {
    /// To have a state in its cache before reads come.
    Warm,
    /// A reading.
    Read,
    /// Labels that the first answer did not have.
    More,
}

/// How that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteEnd {
    /// With a reading.
    Done,
    /// It could not be sent, or not to a server that takes it.
    NotSent,
    /// The server had no room.
    Busy,
    /// The server does not take such a request.
    Refused,
    /// With numbers that are none.
    NonFinite,
    /// The answer did not come, or cannot be read.
    Lost,
}

/// Whether a server had what it was believed to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RemoteFound {
    /// It had.
    Confirmed,
    /// It had not.
    Missed,
}

const KINDS: [&str; 3] = ["warm", "read", "more"];
const ENDS: [&str; 6] = ["done", "not_sent", "busy", "refused", "non_finite", "lost"];
const FINDINGS: [&str; 2] = ["confirmed", "missed"];
const STATES: [&str; 2] = ["up", "down"];

static METERS: LazyLock<Meters> = LazyLock::new(Meters::new);

struct Meters {
    calls: [[Counter; 6]; 3],
    seconds: [Histogram; 3],
    in_flight: Gauge,
    found: [Counter; 2],
    prompt_tokens: Counter,
    cached_tokens: Counter,
    servers: [Gauge; 2],
    retries: Counter,
    aborted: Counter,
}

impl Meters {
    fn new() -> Self {
        let of_kind =
            |kind: &'static str| ENDS.map(|end| counter!(CALLS, "kind" => kind, "end" => end));
        Self {
            calls: KINDS.map(of_kind),
            seconds: KINDS.map(|kind| histogram!(CALL_SECONDS, "kind" => kind)),
            in_flight: gauge!(IN_FLIGHT),
            found: FINDINGS.map(|end| counter!(FOUND, "end" => end)),
            prompt_tokens: counter!(PROMPT_TOKENS),
            cached_tokens: counter!(CACHED_TOKENS),
            servers: STATES.map(|state| gauge!(SERVERS, "state" => state)),
            retries: counter!(RETRIES),
            aborted: counter!(ABORTED),
        }
    }
}

/// Registers them, so that they are shown before the first.
pub(super) fn start() {
    LazyLock::force(&METERS);
}

/// Shows the limit of requests under way.
pub(crate) fn remote_calls_max(calls: usize) {
    limit(IN_FLIGHT, calls);
}

/// A server is being asked.
pub(crate) fn remote_call() -> Held {
    Held::by(&METERS.in_flight)
}

/// A server was asked.
pub(crate) fn remote_called(kind: RemoteCall, end: RemoteEnd, took: Duration) {
    METERS.calls[kind as usize][end as usize].increment(1);
    METERS.seconds[kind as usize].record(took);
}

/// A server had what it was believed to hold, or had not.
pub(crate) fn remote_found(found: RemoteFound) {
    METERS.found[found as usize].increment(1);
}

/// A server read a prompt, and had so much of it in its cache.
pub(crate) fn remote_prompt(tokens: usize, cached: u32) {
    METERS.prompt_tokens.increment(tokens as u64);
    METERS.cached_tokens.increment(cached.into());
}

/// Shows how many servers are asked, and how many are not.
pub(crate) fn remote_servers(up: usize, down: usize) {
    METERS.servers[0].set(up as f64);
    METERS.servers[1].set(down as f64);
}

/// A request is sent once more, since nothing was executed.
pub(crate) fn remote_retried() {
    METERS.retries.increment(1);
}

/// A request was given up because nobody waits for it.
pub(crate) fn remote_aborted() {
    METERS.aborted.increment(1);
}
