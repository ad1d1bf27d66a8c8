//! One request's end: its one terminal outcome, its times, and what the server said about it.

use std::time::SystemTime;

use hyper::{HeaderMap, StatusCode};
use tokio::time::Instant;

/// Questions of a run whose answers are read and kept, the first ones; of later ones it is only seen
/// that they are there, which costs the generator less.
pub(crate) const ANSWERS_MAX: usize = 20_000;

/// Most tokens that are believed of one request: sums of whatever a server says must not overflow.
const TOKENS_MAX: u64 = 1 << 32;

/// How a request ended. Every request ends in exactly one of these ways.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// 200 with an answer to every question.
    Answered,
    /// 429 or 503: the server did not take it.
    Refused,
    /// 408 or 504: the server gave up.
    Expired,
    /// Any other status, or 200 without all answers.
    Failed,
    /// The client's patience ended first.
    TimedOut,
    /// Its client went away, as the workload wanted.
    Disconnected,
    /// No connection, or it broke, or what came over it is no HTTP.
    ConnectionError,
}

impl Outcome {
    /// All of them, in the order of reports.
    pub(crate) const ALL: [Self; 7] = [
        Self::Answered,
        Self::Refused,
        Self::Expired,
        Self::Failed,
        Self::TimedOut,
        Self::Disconnected,
        Self::ConnectionError,
    ];

    /// The word of reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Refused => "refused",
            Self::Expired => "expired",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Disconnected => "disconnected",
            Self::ConnectionError => "connection_error",
        }
    }

    /// Of a response with this status, all of whose answers are there or not.
    pub(crate) fn of(status: StatusCode, complete: bool) -> Self {
        match status.as_u16() {
            200 if complete => Self::Answered,
            429 | 503 => Self::Refused,
            408 | 504 => Self::Expired,
            _ => Self::Failed,
        }
    }
}

/// Why a connection failed, where it was for the number of connections and not for what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The generator's machine had no file or port left for it.
    Own,
    /// It was new and closed before anything came over it, when so many were open.
    Closed { open: u32 },
}

/// A request that was sent, and how it ended.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    pub(crate) outcome: Outcome,
    /// When the client began to send it.
    pub(crate) sent: Instant,
    /// When the last byte had come, or the client gave up.
    pub(crate) ended: Instant,
    /// What the server said, where it said something.
    pub(crate) reply: Option<Reply>,
    /// What went wrong, in words.
    pub(crate) fault: Option<String>,
    /// Of a connection error.
    pub(crate) denied: Option<Denied>,
    /// One distribution a question in the order asked: of a noul the probability of yes alone, of a
    /// choice those of its options, of a score those of its levels from the lowest; empty where the
    /// server gave none. None where it was not answered, or they were not read.
    pub(crate) answers: Option<Vec<Vec<f64>>>,
    /// HTTP requests that the driver used for it.
    pub(crate) parts: u32,
}

impl Exchange {
    /// The end of a request whose client gave up before there was a connection for it.
    pub(crate) fn unsent(at: Instant) -> Self {
        Self { parts: 0, ..Self::bare(Outcome::TimedOut, at, at) }
    }

    /// Whether it is that.
    pub(crate) fn is_unsent(&self) -> bool {
        self.parts == 0 && self.outcome == Outcome::TimedOut
    }

    /// An end of one HTTP request of which nothing else is known.
    pub(crate) fn bare(outcome: Outcome, sent: Instant, ended: Instant) -> Self {
        let (reply, fault, denied, answers) = (None, None, None, None);
        Self { outcome, sent, ended, reply, fault, denied, answers, parts: 1 }
    }
}

/// What the server said in its head, or in the bodies of its parts.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// `x-docket-reason`.
    pub(crate) reason: Option<String>,
    /// `retry-after-ms`, else `Retry-After`, in seconds or as a date.
    pub(crate) retry_after_ms: Option<u64>,
    pub(crate) computed_tokens: u64,
    pub(crate) cached_tokens: u64,
    /// Tokens of the state, once, and of its questions, as the body's `usage` says.
    pub(crate) input_tokens: Option<u64>,
    /// Of answers read from the likeliest tokens: options that were not among them.
    pub(crate) options_unseen: u64,
    /// Likewise: the probability of all options together over the whole vocabulary, a question's
    /// mean.
    pub(crate) label_mass: Option<f64>,
    /// Absent where the server measures nothing.
    pub(crate) stages: Option<Stages>,
}

/// The server's own times, microseconds; none of what it does not tell.
#[expect(clippy::struct_field_names, reason = "units are last in names")]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stages {
    /// From admission until work on it starts; without the engine wait where that is told apart.
    pub(crate) queue_us: Option<u64>,
    pub(crate) state_us: Option<u64>,
    /// Without a `Server-Timing` it is part of the queue wait.
    pub(crate) engine_wait_us: Option<u64>,
    pub(crate) engine_us: Option<u64>,
    pub(crate) total_us: u64,
}

impl Reply {
    /// Reads the headers that docs/API.md lists; what is absent or no number counts as 0.
    pub(crate) fn of(status: StatusCode, headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let whole = |name: &str| text(name).and_then(|text| text.parse::<u64>().ok());
        Self {
            status: status.as_u16(),
            reason: text("x-docket-reason").map(str::to_owned),
            retry_after_ms: whole("retry-after-ms")
                .or(whole("retry-after").map(|s| s.saturating_mul(1_000)))
                .or(text("retry-after").and_then(|date| ms_until(date, SystemTime::now()))),
            computed_tokens: tokens(whole("x-docket-computed-tokens")),
            cached_tokens: tokens(whole("x-docket-cached-tokens")),
            input_tokens: None,
            options_unseen: 0,
            label_mass: None,
            stages: text("server-timing").and_then(server_timing).or_else(|| own_headers(&text)),
        }
    }
}

/// Milliseconds until a date; 0 where it has passed.
///
/// Source: RFC 9110, section 5.6.7.
fn ms_until(date: &str, now: SystemTime) -> Option<u64> {
    let left = httpdate::parse_http_date(date).ok()?.duration_since(now).unwrap_or_default();
    u64::try_from(left.as_millis()).ok()
}

/// A number of tokens as a server says it; 0 where it says none, at most [`TOKENS_MAX`].
pub(crate) fn tokens(told: Option<u64>) -> u64 {
    told.unwrap_or(0).min(TOKENS_MAX)
}

/// Source: W3C "Server Timing": `name;dur=milliseconds`, with commas between.
fn server_timing(text: &str) -> Option<Stages> {
    let mut stages = Stages::default();
    let mut has_total = false;
    for entry in text.split(',') {
        let Some((name, value)) = entry.trim().split_once(";dur=") else { continue };
        let time_us = us(value);
        match name {
            "queue" => stages.queue_us = Some(time_us),
            "state" => stages.state_us = Some(time_us),
            "engine-wait" => stages.engine_wait_us = Some(time_us),
            "engine" => stages.engine_us = Some(time_us),
            "total" => {
                stages.total_us = time_us;
                has_total = true;
            }
            _ => {}
        }
    }
    has_total.then_some(stages)
}

fn own_headers<'h>(text: &impl Fn(&str) -> Option<&'h str>) -> Option<Stages> {
    let time = |name: &str| text(name).map(us);
    Some(Stages {
        total_us: text("x-docket-total-ms").map(us)?,
        queue_us: time("x-docket-queue-ms"),
        state_us: time("x-docket-state-ms"),
        engine_us: time("x-docket-engine-ms"),
        engine_wait_us: None,
    })
}

/// Milliseconds in decimal as microseconds.
fn us(milliseconds: &str) -> u64 {
    ms_as_us(milliseconds.trim().parse().unwrap_or(0.0))
}

/// Milliseconds as microseconds, at most an hour.
pub(crate) fn ms_as_us(milliseconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "clamped to an hour; what is not a number becomes 0"
    )]
    let whole = (milliseconds * 1e3).round().clamp(0.0, 3.6e9) as u64;
    whole
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (hyper::header::HeaderName::from_static(name), value.parse().unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn stages_come_from_server_timing() {
        let timing = "queue;dur=1.5, state;dur=20.0, engine-wait;dur=0.3, engine;dur=7.0, other;dur=0.2, total;dur=29.0";
        let reply = Reply::of(
            StatusCode::OK,
            &headers(&[
                ("server-timing", timing),
                ("x-docket-queue-ms", "9"),
                ("x-docket-computed-tokens", "41"),
            ]),
        );
        let stages = Stages {
            queue_us: Some(1_500),
            state_us: Some(20_000),
            engine_wait_us: Some(300),
            engine_us: Some(7_000),
            total_us: 29_000,
        };
        assert_eq!((reply.stages, reply.computed_tokens), (Some(stages), 41));
    }

    #[test]
    fn stages_come_from_the_own_headers_where_server_timing_is_absent() {
        let own = [
            ("x-docket-queue-ms", "1.8"),
            ("x-docket-total-ms", "2.5"),
            ("x-docket-engine-ms", "?"),
        ];
        let stages = Reply::of(StatusCode::OK, &headers(&own)).stages.unwrap();
        let told = (stages.queue_us, stages.total_us, stages.engine_us);
        assert_eq!(told, (Some(1_800), 2_500, Some(0)));
        assert_eq!((stages.state_us, stages.engine_wait_us), (None, None));
        assert_eq!(Reply::of(StatusCode::OK, &headers(&[])).stages, None);
    }

    #[test]
    fn the_finer_retry_after_is_read_first() {
        let of = |pairs: &[_]| Reply::of(StatusCode::TOO_MANY_REQUESTS, &headers(pairs));
        let both = of(&[
            ("retry-after", "2"),
            ("retry-after-ms", "1200"),
            ("x-docket-reason", "queue_full"),
        ]);
        assert_eq!(
            (both.retry_after_ms, both.reason.as_deref()),
            (Some(1_200), Some("queue_full"))
        );
        assert_eq!(of(&[("retry-after", "2")]).retry_after_ms, Some(2_000));
        assert_eq!(of(&[("retry-after", "soon")]).retry_after_ms, None);
        // Long ago.
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(of(&[("retry-after", date)]).retry_after_ms, Some(0));
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_775);
        assert_eq!(ms_until(date, now), Some(2_000));
    }

    #[test]
    fn absurd_numbers_of_tokens_are_cut_off() {
        let most = "18446744073709551615";
        let absurd = [("x-docket-computed-tokens", most), ("x-docket-cached-tokens", most)];
        let reply = Reply::of(StatusCode::OK, &headers(&absurd));
        assert_eq!((reply.computed_tokens, reply.cached_tokens), (TOKENS_MAX, TOKENS_MAX));
    }

    #[test]
    fn each_status_has_one_outcome() {
        let of = |status| Outcome::of(StatusCode::from_u16(status).unwrap(), true);
        assert_eq!(
            [200, 429, 503].map(of),
            [Outcome::Answered, Outcome::Refused, Outcome::Refused]
        );
        assert_eq!([504, 422, 500].map(of), [Outcome::Expired, Outcome::Failed, Outcome::Failed]);
        assert_eq!(Outcome::of(StatusCode::OK, false), Outcome::Failed);
    }
}
