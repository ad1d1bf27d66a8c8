//! Meters of steps: what they held, how long they took, what planning them cost.

use std::time::Duration;

use metrics::{Counter, Histogram, counter, histogram};

use crate::snapshot::{StepKind, StepLogEntry};

/// Handles of the metrics that each step moves.
pub(crate) struct StepMeters {
    computed_tokens: Counter,
    state_tokens: Counter,
    failures: Counter,
    durations: [Histogram; 4],
    tokens: Histogram,
    rows: Histogram,
    states: Histogram,
    plan: Histogram,
}

impl StepMeters {
    pub(super) fn new() -> Self {
        Self {
            computed_tokens: counter!("docket_computed_tokens_total"),
            state_tokens: counter!("docket_state_prefill_tokens_total"),
            failures: counter!("docket_engine_failures_total"),
            durations: StepKind::ALL
                .map(|kind| histogram!("docket_step_duration_seconds", "kind" => kind.as_str())),
            tokens: histogram!("docket_step_tokens"),
            rows: histogram!("docket_step_rows"),
            states: histogram!("docket_step_states"),
            plan: histogram!("docket_plan_duration_seconds"),
        }
    }

    /// A step ended.
    pub(crate) fn ended(&self, step: &StepLogEntry) {
        if step.succeeded {
            let of_states: u64 = step.chunks.iter().map(|chunk| u64::from(chunk.tokens)).sum();
            self.computed_tokens.increment(step.tokens.into());
            self.state_tokens.increment(of_states);
        } else if !step.is_outage() {
            self.failures.increment(1);
        }
        self.durations[step.kind() as usize].record(step.elapsed);
        self.tokens.record(f64::from(step.tokens));
        self.rows.record(step.rows.len() as f64);
        self.states.record(step.states as f64);
    }

    /// A step was planned and begun, which took so long by the real clock.
    pub(crate) fn planned(&self, took: Duration) {
        self.plan.record(took);
    }
}
