//! Retries: refused requests that are sent again when the server said, and whether it said right.
//!
//! A server that refuses may name a time at which to come back (`Retry-After`). A time that is too
//! short has clients knock in vain, one that is too long leaves the server idle. What became of
//! requests that came back exactly then is the measure of that.

mod report;

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::exchange::{Exchange, Outcome};
use crate::measure::Times;
use crate::workload::Request;

/// Most times that a request is sent again.
pub(crate) const RETRIES_MAX: u32 = 10;
/// Most different reasons that are told apart; the server has a dozen.
const REASONS_MAX: usize = 64;
/// What a refusal without a reason is listed under, and those over the limit.
const NO_REASON: &str = "none";

/// What became of the refused requests of kinds that retry, warm-up left out.
#[derive(Debug, Default)]
pub(crate) struct Retries {
    pub(crate) all: Tally,
    /// By the reason of the first refusal.
    pub(crate) reasons: BTreeMap<String, Tally>,
}

/// Refused requests, of one reason or all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// Requests that were sent again, and those that their first retry answered.
    pub(crate) requests: u64,
    pub(crate) first_answered: u64,
    /// Retries, and those of them that were refused again.
    pub(crate) sent: u64,
    pub(crate) refused_again: u64,
    /// Requests whose last refusal was their end, by why.
    pub(crate) stops: [u64; Stop::ALL.len()],
    /// The wait that the first refusal named, of requests that were sent again.
    pub(crate) named: Times,
    /// From the first refusal to the sending of the retry that was not refused.
    pub(crate) admitted_after: Times,
}

/// Why a refused request was not sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    /// The server named no wait.
    NoWait,
    /// It had been sent again as often as its kind may.
    Spent,
    /// Its client would not have waited so long.
    Impatient,
}

impl Stop {
    /// All of them, in the order of reports.
    pub(crate) const ALL: [Self; 3] = [Self::NoWait, Self::Spent, Self::Impatient];

    /// The words of reports.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NoWait => "no_wait_named",
            Self::Spent => "out_of_retries",
            Self::Impatient => "out_of_patience",
        }
    }
}

/// One request's way from its first refusal on.
#[derive(Debug)]
pub(crate) struct Trail {
    left: u32,
    /// When its client gives up or goes away.
    give_up: Instant,
    refused: Instant,
    reason: String,
    named: Duration,
    sent: u64,
    refused_again: u64,
    first_answered: bool,
    admitted_after: Option<Duration>,
    stop: Option<Stop>,
}

impl Trail {
    /// The way of `request`, which may be sent again `retries` times, from this refusal on.
    pub(crate) fn begin(request: &Request, retries: u32, refusal: &Exchange) -> Self {
        let patience =
            request.leaves_after.map_or(request.patience, |leaves| leaves.min(request.patience));
        let reason = refusal.reply.as_ref().and_then(|reply| reply.reason.clone());
        Self {
            left: retries,
            give_up: refusal.sent + patience,
            refused: refusal.ended,
            reason: reason.unwrap_or_else(|| NO_REASON.to_owned()),
            named: wait(refusal).unwrap_or_default(),
            sent: 0,
            refused_again: 0,
            first_answered: false,
            admitted_after: None,
            stop: None,
        }
    }

    /// When to send again after this end; none where it is the request's own end.
    pub(crate) fn again_at(&mut self, last: &Exchange) -> Option<Instant> {
        if last.outcome != Outcome::Refused {
            return None;
        }
        let Some(wait) = wait(last) else { return self.stop(Stop::NoWait) };
        if self.left == 0 {
            return self.stop(Stop::Spent);
        }
        // Compared as durations: a hostile server may name a wait that no clock reaches.
        if wait >= self.give_up.saturating_duration_since(last.ended) {
            return self.stop(Stop::Impatient);
        }
        self.left -= 1;
        Some(last.ended + wait)
    }

    /// The request with what is left of its client's patience, which counts from the first sending;
    /// none where that has ended.
    pub(crate) fn shortened(&mut self, request: &Request, now: Instant) -> Option<Request> {
        let left = self.give_up.saturating_duration_since(now);
        if left.is_zero() {
            return self.stop(Stop::Impatient);
        }
        let whole =
            request.leaves_after.map_or(request.patience, |leaves| leaves.min(request.patience));
        let spent = whole.saturating_sub(left);
        Some(Request {
            patience: request.patience.saturating_sub(spent),
            leaves_after: request.leaves_after.map(|leaves| leaves.saturating_sub(spent)),
            ..request.clone()
        })
    }

    /// Counts the end of a retry.
    pub(crate) fn tried(&mut self, exchange: &Exchange) {
        self.sent += 1;
        if exchange.outcome == Outcome::Refused {
            self.refused_again += 1;
            return;
        }
        self.first_answered = self.sent == 1 && exchange.outcome == Outcome::Answered;
        self.admitted_after = Some(exchange.sent.saturating_duration_since(self.refused));
    }

    fn stop<T>(&mut self, stop: Stop) -> Option<T> {
        self.stop = Some(stop);
        None
    }
}

impl Retries {
    /// Counts a request that was refused, once it has ended.
    pub(crate) fn record(&mut self, trail: &Trail) {
        let known = self.reasons.len() < REASONS_MAX || self.reasons.contains_key(&trail.reason);
        let reason = if known { trail.reason.as_str() } else { NO_REASON };
        self.reasons.entry(reason.to_owned()).or_default().record(trail);
        self.all.record(trail);
    }
}

impl Tally {
    fn record(&mut self, trail: &Trail) {
        self.sent += trail.sent;
        self.refused_again += trail.refused_again;
        self.first_answered += u64::from(trail.first_answered);
        if let Some(stop) = trail.stop {
            self.stops[stop as usize] += 1;
        }
        if trail.sent > 0 {
            self.requests += 1;
            self.named.add(trail.named);
        }
        if let Some(after) = trail.admitted_after {
            self.admitted_after.add(after);
        }
    }

    /// Whether no refused request could have been sent again.
    pub(crate) fn is_empty(&self) -> bool {
        self.requests == 0 && self.stops == [0; Stop::ALL.len()]
    }

    /// Share of the retries, each at the named time, that were not refused again.
    pub(crate) fn honesty(&self) -> Option<f64> {
        (self.sent > 0).then(|| 1.0 - self.refused_again as f64 / self.sent as f64)
    }
}

/// The wait that a refusal names.
fn wait(refusal: &Exchange) -> Option<Duration> {
    refusal.reply.as_ref()?.retry_after_ms.map(Duration::from_millis)
}

#[cfg(test)]
mod tests;
