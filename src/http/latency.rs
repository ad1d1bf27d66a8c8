//! How long answers took of late, by lane: what a page shows of the moment, where metrics show the whole.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use actors::Lane;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

/// Most answers that are remembered of a lane: at more than this in a [`WINDOW`] the oldest go early.
const KEPT: usize = 1024;

/// How far back it looks.
const WINDOW: Duration = Duration::from_mins(1);

/// When an answer went out, and how long it took.
type Answered = (Instant, Duration);

/// Answers of late by lane, in the order of [`Lane::ALL`]; a lock for each, held for a push or a copy.
#[derive(Debug, Default)]
pub(super) struct Latencies([Mutex<VecDeque<Answered>>; 4]);

impl Latencies {
    /// Remembers an answer.
    pub(super) fn answered(&self, lane: Lane, now: Instant, took: Duration) {
        let mut kept = self.0[lane as usize].lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back((now, took));
    }

    /// How many answers there were in the last [`WINDOW`], and their percentiles, by lane.
    pub(super) fn shown(&self, now: Instant) -> Value {
        let of_lane = |lane: Lane| (lane.to_string(), shown(&self.since(lane, now)));
        Value::Object(Lane::ALL.into_iter().map(of_lane).collect::<Map<_, _>>())
    }

    /// Those of a lane in the window, sorted.
    fn since(&self, lane: Lane, now: Instant) -> Vec<Duration> {
        let kept = self.0[lane as usize].lock().unwrap_or_else(PoisonError::into_inner);
        let is_recent = |(at, _): &&Answered| now.saturating_duration_since(*at) <= WINDOW;
        let mut found: Vec<Duration> =
            kept.iter().filter(is_recent).map(|(_, took)| *took).collect();
        drop(kept);
        found.sort_unstable();
        found
    }
}

fn shown(sorted: &[Duration]) -> Value {
    let at = |share: f64| percentile(sorted, share).map(|took| took.as_secs_f64() * 1000.0);
    json!({"answered": sorted.len(), "p50_ms": at(0.5), "p90_ms": at(0.9), "p99_ms": at(0.99)})
}

/// The nearest-rank percentile; `None` of nothing.
fn percentile(sorted: &[Duration], share: f64) -> Option<Duration> {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the length"
    )]
    let rank = (share * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.max(1) - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn percentiles_are_of_the_last_minute_and_of_one_lane() {
        let latencies = Latencies::default();
        let start = Instant::now();
        latencies.answered(Lane::Urgent, start, Duration::from_secs(9));
        let now = start + Duration::from_secs(61);
        for ms in 1..=100 {
            latencies.answered(Lane::Urgent, now, Duration::from_millis(ms));
        }
        let shown = latencies.shown(now);
        let wanted = json!({"answered": 100, "p50_ms": 50.0, "p90_ms": 90.0, "p99_ms": 99.0});
        assert_eq!(shown["urgent"], wanted);
        let none = json!({"answered": 0, "p50_ms": null, "p90_ms": null, "p99_ms": null});
        assert_eq!(shown["batch"], none);
    }

    #[tokio::test(start_paused = true)]
    async fn no_more_is_kept_than_the_limit() {
        let latencies = Latencies::default();
        let now = Instant::now();
        for _ in 0..3 * KEPT {
            latencies.answered(Lane::Normal, now, Duration::from_millis(1));
        }
        assert_eq!(latencies.shown(now)["normal"]["answered"], KEPT);
    }
}
