//! Meters of reads: how they ended, what they waited for, what they cost.

use metrics::{Counter, Histogram, counter, histogram};

use crate::error::{ReadError, RejectReason};
use crate::plan::counts::{Counts, Stage};
use crate::read::{Lane, ReadOutcome, ReadTiming, TENANT_BUCKETS};

/// Handles of the metrics that each read moves.
pub(crate) struct ReadMeters {
    admitted: Counter,
    ends: Ends,
    lanes: [LaneMeters; 4],
    prompt_tokens: Counter,
    cached_tokens: Counter,
    behind_registration: Counter,
    cancelled: [Counter; 3],
    expired: [Counter; 3],
    lookup_tokens: Counter,
    resident_tokens: Counter,
    inflight_tokens: Counter,
    served: [Counter; TENANT_BUCKETS],
}

/// Counters of reads that ended, by outcome.
struct Ends {
    done: Counter,
    displaced: Counter,
    rejected: Counter,
    failed: Counter,
    expired: Counter,
    cancelled: Counter,
    draining: Counter,
    unavailable: Counter,
    lost: Counter,
}

/// Times of answered reads of one lane.
struct LaneMeters {
    queue_wait: Histogram,
    state_wait: Histogram,
    engine_wait: Histogram,
    engine_time: Histogram,
    run: Histogram,
    duration: Histogram,
}

impl ReadMeters {
    pub(super) fn new() -> Self {
        let staged =
            |name: &'static str| Stage::ALL.map(|stage| counter!(name, "stage" => stage.as_str()));
        let hits = |source| counter!("docket_prefix_hit_tokens_total", "source" => source);
        Self {
            admitted: counter!("docket_reads_admitted_total"),
            ends: Ends::new(),
            lanes: Lane::ALL.map(LaneMeters::new),
            prompt_tokens: counter!("docket_prompt_tokens_total"),
            cached_tokens: counter!("docket_cached_tokens_total"),
            behind_registration: counter!("docket_waits_behind_registration_total"),
            cancelled: staged("docket_reads_cancelled_total"),
            expired: staged("docket_reads_expired_total"),
            lookup_tokens: counter!("docket_prefix_lookup_tokens_total"),
            resident_tokens: hits("resident"),
            inflight_tokens: hits("inflight"),
            served: std::array::from_fn(
                |bucket| counter!("docket_tenant_served_tokens_total", "bucket" => bucket.to_string()),
            ),
        }
    }

    /// A read ended.
    pub(crate) fn ended(&self, lane: Lane, result: &Result<ReadOutcome, ReadError>) {
        self.ends.of(result).increment(1);
        let Ok(outcome) = result else { return };
        let (computed, cached) = (outcome.computed_tokens, outcome.cached_tokens);
        self.prompt_tokens.increment(u64::from(computed) + u64::from(cached));
        self.cached_tokens.increment(cached.into());
        if outcome.timing.behind_registration {
            self.behind_registration.increment(1);
        }
        self.lanes[lane as usize].record(&outcome.timing);
    }

    /// Reads went down with their scheduler.
    pub(super) fn lost(&self, reads: u64) {
        self.ends.lost.increment(reads);
    }

    /// What the scheduler counted during one event.
    pub(super) fn count(&self, counts: &Counts) {
        self.admitted.increment(counts.admitted);
        self.lookup_tokens.increment(counts.lookup_tokens);
        self.resident_tokens.increment(counts.resident_tokens);
        self.inflight_tokens.increment(counts.inflight_tokens);
        let staged = self.cancelled.iter().zip(counts.cancelled);
        let staged = staged.chain(self.expired.iter().zip(counts.expired));
        let served = self.served.iter().zip(counts.served);
        for (counter, count) in staged.chain(served).filter(|(_, count)| *count > 0) {
            counter.increment(count);
        }
    }
}

impl Ends {
    fn new() -> Self {
        let ended = |outcome| counter!("docket_reads_total", "outcome" => outcome);
        Self {
            done: ended("done"),
            displaced: ended("displaced"),
            rejected: ended("rejected"),
            failed: ended("failed"),
            expired: ended("expired"),
            cancelled: ended("cancelled"),
            draining: ended("draining"),
            unavailable: ended("unavailable"),
            lost: ended("lost"),
        }
    }

    fn of(&self, result: &Result<ReadOutcome, ReadError>) -> &Counter {
        match result {
            Ok(_) => &self.done,
            Err(ReadError::Rejected(RejectReason::Displaced { .. })) => &self.displaced,
            Err(ReadError::Rejected(_)) => &self.rejected,
            Err(ReadError::Engine(_)) => &self.failed,
            Err(ReadError::Expired { .. }) => &self.expired,
            Err(ReadError::Cancelled) => &self.cancelled,
            Err(ReadError::Draining) => &self.draining,
            Err(ReadError::Unavailable) => &self.unavailable,
        }
    }
}

impl LaneMeters {
    fn new(lane: Lane) -> Self {
        let timed = |name: &'static str| histogram!(name, "lane" => lane.as_str());
        Self {
            queue_wait: timed("docket_queue_wait_seconds"),
            state_wait: timed("docket_state_wait_seconds"),
            engine_wait: timed("docket_engine_wait_seconds"),
            engine_time: timed("docket_engine_time_seconds"),
            run: timed("docket_read_run_seconds"),
            duration: timed("docket_read_duration_seconds"),
        }
    }

    fn record(&self, timing: &ReadTiming) {
        let run = timing.state_wait + timing.engine_wait + timing.engine_time;
        self.queue_wait.record(timing.queue_wait);
        self.state_wait.record(timing.state_wait);
        self.engine_wait.record(timing.engine_wait);
        self.engine_time.record(timing.engine_time);
        self.run.record(run);
        self.duration.record(timing.queue_wait + run);
    }
}
