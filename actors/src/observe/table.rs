//! Every metric of this crate: name, kind with its buckets, help.

/// What kind of metric a name is; a histogram says what it measures, hence its buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// A distribution of times of a request, in seconds.
    Seconds,
    /// A distribution of times that are mostly below a millisecond, in seconds.
    Micros,
    /// A distribution of times from a second to a day, in seconds.
    Ages,
    /// A distribution of numbers of tokens.
    Tokens,
    /// A distribution of small numbers.
    Count,
    /// A distribution of shares, 0 to 1.
    Share,
}

/// As for the time to a first token, finer where a decision spends its time.
const SECONDS: &[f64] = &[
    0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5,
    5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
const MICROS: &[f64] = &[
    0.000_01, 0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025,
    0.05, 0.1, 0.25, 1.0,
];
const AGES: &[f64] =
    &[0.1, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 14_400.0, 86_400.0];
const TOKENS: &[f64] = &[
    1.0, 4.0, 16.0, 32.0, 64.0, 128.0, 192.0, 256.0, 384.0, 512.0, 1_024.0, 2_048.0, 4_096.0,
    16_384.0,
];
const COUNT: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
const SHARE: &[f64] = &[0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];

impl Kind {
    /// Upper bounds of a histogram's buckets, ascending; `None` for what is no histogram.
    pub fn buckets(self) -> Option<&'static [f64]> {
        match self {
            Self::Counter | Self::Gauge => None,
            Self::Seconds => Some(SECONDS),
            Self::Micros => Some(MICROS),
            Self::Ages => Some(AGES),
            Self::Tokens => Some(TOKENS),
            Self::Count => Some(COUNT),
            Self::Share => Some(SHARE),
        }
    }
}

use Kind::{Ages, Count, Counter, Gauge, Micros, Seconds, Tokens};

/// Every metric of this crate.
pub const METRICS: &[(&str, Kind, &str)] = &[
    (
        "docket_admission_rejections_total",
        Counter,
        "Decisions and prewarms refused at admission, or displaced after it, by reason",
    ),
    ("docket_reads_admitted_total", Counter, "Reads that came into the queue"),
    ("docket_reads_total", Counter, "Reads that ended, by outcome"),
    ("docket_reads_cancelled_total", Counter, "Reads whose client went away, by how far they were"),
    (
        "docket_reads_expired_total",
        Counter,
        "Reads whose deadline passed while they waited, by how far they were",
    ),
    (
        "docket_prompt_tokens_total",
        Counter,
        "Prompt tokens of answered reads, computed for them or not",
    ),
    ("docket_computed_tokens_total", Counter, "Tokens that the engine ran"),
    (
        "docket_cached_tokens_total",
        Counter,
        "Prompt tokens of answered reads that were not computed for them",
    ),
    (
        "docket_state_prefill_tokens_total",
        Counter,
        "Of the computed tokens, those of heads and states; the rest are of questions",
    ),
    (
        "docket_state_duplicate_prefill_tokens_total",
        Counter,
        "State tokens computed again while they were resident; must stay 0",
    ),
    (
        "docket_prefix_lookup_tokens_total",
        Counter,
        "Tokens of heads and states of answered decisions",
    ),
    (
        "docket_prefix_hit_tokens_total",
        Counter,
        "Of these, tokens that were resident, or computed for others meanwhile, by source",
    ),
    (
        "docket_tenant_served_tokens_total",
        Counter,
        "Tokens run on the account of tenants, by one of 16 buckets into which their names fall",
    ),
    (
        "docket_waits_behind_registration_total",
        Counter,
        "Answered reads that came while a boundary registration ran",
    ),
    ("docket_queue_reads", Gauge, "Reads that wait, by lane"),
    ("docket_queue_tokens", Gauge, "Unique tokens that wait, by lane"),
    ("docket_entering_reads", Gauge, "Reads let in that the queue has not seen yet, by lane"),
    (
        "docket_oldest_wait_seconds",
        Gauge,
        "How long the oldest read that waits has waited until now, by the lane it stands in",
    ),
    ("docket_predicted_wait_seconds", Gauge, "Wait that a newcomer is predicted now, by lane"),
    (
        "docket_predicted_wait_limit_seconds",
        Gauge,
        "Longest predicted wait with which a newcomer is let in, by lane",
    ),
    ("docket_tenant_reads", Gauge, "Reads of the tenant of whom most wait or run"),
    (
        "docket_tenants",
        Gauge,
        "Tenants with something open, or with a bucket that is not full again",
    ),
    (
        "docket_retries_expected",
        Gauge,
        "Refused decisions for which room is kept when they come back",
    ),
    (
        "docket_states",
        Gauge,
        "States that open decisions or wants need, by how far they are; half a second old at most",
    ),
    ("docket_wants_waiting", Gauge, "States to be computed for prewarms and registrations"),
    (
        "docket_fairness_gap_tokens",
        Gauge,
        "Largest gap in served tokens between two tenants of a lane",
    ),
    ("docket_limit", Gauge, "The limit of the metric that the label names, in its unit"),
    ("docket_plan_duration_seconds", Micros, "Time to plan a step and begin it"),
    (
        "docket_details_duration_seconds",
        Micros,
        "Time to make what `/v1/live` tells one by one, by actor",
    ),
    ("docket_reads_in_flight", Gauge, "Reads in the running step"),
    ("docket_decisions_open", Gauge, "Decisions that are open"),
    ("docket_engine_tokens_per_second", Gauge, "Smoothed speed of the engine"),
    (
        "docket_step_duration_seconds",
        Seconds,
        "Time of a step as the scheduler sees it, by what was in it",
    ),
    ("docket_step_tokens", Tokens, "Tokens of a step"),
    ("docket_step_rows", Count, "Rows of a step"),
    ("docket_step_states", Count, "States of which a step has chunks or rows"),
    (
        "docket_queue_wait_seconds",
        Seconds,
        "From admission of an answered read until work on it began, by lane",
    ),
    ("docket_state_wait_seconds", Seconds, "From then until its state was resident, by lane"),
    (
        "docket_engine_wait_seconds",
        Seconds,
        "From ready to run until the step of a read began, by lane",
    ),
    ("docket_engine_time_seconds", Seconds, "The step that answered a read, by lane"),
    (
        "docket_read_run_seconds",
        Seconds,
        "From the beginning of work on an answered read to its outcome, by lane",
    ),
    (
        "docket_read_duration_seconds",
        Seconds,
        "From admission of an answered read to its outcome, by lane",
    ),
    ("docket_residency_bytes", Gauge, "Bytes of keys and values, by kind"),
    ("docket_residency_segments", Gauge, "Blocks of at most 64 tokens that are held"),
    ("docket_residency_leases", Gauge, "Heads and states that something uses now"),
    ("docket_evictions_total", Counter, "Blocks of at most 64 tokens that were dropped, by reason"),
    ("docket_block_lifetime_seconds", Ages, "From computing a block to its eviction for room"),
    ("docket_block_idle_seconds", Ages, "From the last use of a block to its eviction for room"),
    ("docket_block_reuse_gap_seconds", Ages, "From the last use of a state to the next"),
    ("docket_registrations_total", Counter, "Boundary registrations that ended, by result"),
    ("docket_registrations_pending", Gauge, "Boundary registrations that wait or run"),
    ("docket_registrations_deferred", Gauge, "Of these, those that wait until the engine is idle"),
    ("docket_prewarms_total", Counter, "Prewarms that were answered, by result"),
    ("docket_prewarms_waiting", Gauge, "Prewarms whose states are to be computed"),
    ("docket_engine_failures_total", Counter, "Steps that failed as a whole"),
    ("docket_engine_epoch", Gauge, "Generation; raised at each restart of the actors"),
    ("docket_actor_restarts_total", Counter, "Actors that were lost and started again, by actor"),
];
