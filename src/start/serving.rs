//! The service behind HTTP, over the real parts: decisions, prewarm, health, models and metrics.

use std::fmt;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use actors::{EngineState, Lane, PinHandle, PrewarmSpec, ResidencyView};
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, TryFutureExt as _};
use hmac::{Hmac, Mac as _};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::decide::{Asker, Decider};
use crate::error::DecideError;
use crate::question::Decision;
use crate::question::answer::Cost;
use crate::service::{Arrival, Caller, Decided, Health, ModelEntry, Prewarm, Prewarmed, Service};

/// A step that runs longer than this makes the server unready: either the engine is stuck, or steps
/// are so long that others should be asked.
const STALL_AFTER: Duration = Duration::from_mins(1);

/// What the served model is, for `/health` and `/v1/models`.
#[derive(Debug, Clone)]
pub struct ModelFacts {
    /// Names under which it is served; at least one, the first is answered.
    pub served_names: Vec<String>,
    /// What it is, in a line.
    pub description: String,
    /// `YYYY-MM-DD`, or empty.
    pub release_date: String,
    /// More for operators: architecture, precision, memory, layout, limits.
    pub details: Value,
}

/// The decision server.
pub struct Serving {
    decider: Decider,
    facts: ModelFacts,
    metrics: PrometheusHandle,
    /// Keys the tenants' salts; random at each start, since what it salts does not outlive the process.
    secret: [u8; 32],
    started: Instant,
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Serving {
    /// Joins the parts.
    pub fn new(
        decider: Decider,
        facts: ModelFacts,
        metrics: PrometheusHandle,
        secret: [u8; 32],
    ) -> Self {
        Self { decider, facts, metrics, secret, started: Instant::now() }
    }

    /// The decisions' maker.
    pub fn decider(&self) -> &Decider {
        &self.decider
    }

    /// The salt of a caller's segments: the tenant's, with the caller's own hashed in. A caller can
    /// narrow who shares with it, and never reach what belongs to another tenant.
    fn salt(&self, caller: &Caller) -> [u8; 32] {
        #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret).expect("any key length");
        mac.update(&(caller.tenant.0.len() as u64).to_le_bytes());
        mac.update(caller.tenant.0.as_bytes());
        mac.update(caller.salt.as_deref().unwrap_or_default().as_bytes());
        mac.finalize().into_bytes().into()
    }

    fn asker(&self, caller: &Caller, arrival: Arrival) -> Asker {
        let salt = self.salt(caller);
        let since = tokio::time::Instant::from_std(arrival.at);
        Asker { tenant: caller.tenant.clone(), salt, since }
    }

    async fn decided(
        &self,
        caller: Caller,
        decision: Decision,
        arrival: Arrival,
    ) -> Result<Decided, DecideError> {
        let made = self.decider.decide(self.asker(&caller, arrival), decision).await?;
        let open = made.decision;
        Ok(Decided {
            answers: made.answers,
            cost: made.cost,
            model: self.served_name().to_owned(),
            served: Box::new(move || open.responded()),
        })
    }

    async fn prewarmed(
        &self,
        caller: Caller,
        request: Prewarm,
        arrival: Arrival,
    ) -> Result<Prewarmed, DecideError> {
        let asker = self.asker(&caller, arrival);
        let deadline = self.decider.deadline(asker.since, request.timeout);
        let prefix = self.decider.prefix(request.state, asker.salt);
        let prefix = self.decider.in_time(asker.since, deadline, prefix).await?;
        let lane = request.lane.unwrap_or(Lane::Batch);
        let began = tokio::time::Instant::now();
        let warm = self.decider.actors().prewarm(PrewarmSpec {
            tenant: asker.tenant,
            prefix: prefix.prefix,
            lane,
            ttl: request.ttl,
            wait: request.wait,
            deadline: Some(deadline),
        });
        let warm = warm.map_err(DecideError::from);
        let outcome = self.decider.in_time(asker.since, deadline, warm).await?;
        // Where nothing is kept, nothing is read ahead.
        let missing = outcome.prompt_tokens.saturating_sub(outcome.reused);
        let computed = if outcome.stored { u64::from(missing) } else { 0 };
        let left =
            outcome.expires_at.map(|at| at.saturating_duration_since(tokio::time::Instant::now()));
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let held = outcome.pinned || outcome.pending;
        Ok(Prewarmed {
            model: self.served_name().to_owned(),
            prompt_tokens: u64::from(outcome.prompt_tokens),
            reused: missing == 0,
            stored: outcome.stored && missing > 0,
            tier: outcome.tier.as_str(),
            expires_at: left.map(|left| (since_1970 + left).as_secs()),
            handle: held.then(|| outcome.pin.to_string()),
            cost: Cost {
                lane,
                input_tokens: u64::from(prefix.state_tokens),
                prompt_tokens: u64::from(outcome.prompt_tokens),
                computed_tokens: computed,
                cached_tokens: u64::from(outcome.reused),
                queue_wait: Duration::ZERO,
                state_wait: began.elapsed(),
                engine_wait: Duration::ZERO,
                engine_time: Duration::ZERO,
                behind_registration: false,
                state_tokenisations: u32::from(prefix.tokenised),
            },
        })
    }

    fn engine_problem(&self) -> Problem {
        let snapshot = self.decider.actors().snapshot();
        let load = &snapshot.load;
        Problem::of(&load.engine, snapshot.draining, load.last_progress.elapsed())
    }
}

/// Why the server should not be asked now.
#[derive(Debug, Default, PartialEq, Eq)]
struct Problem {
    /// Why it is not ready, if it is not.
    unready: Option<String>,
    /// Why it never will be again, if so.
    dead: Option<String>,
}

impl Problem {
    /// * `idle`: time since the engine last finished something.
    fn of(engine: &EngineState, draining: bool, idle: Duration) -> Self {
        let unready = |reason: String| Self { unready: Some(reason), dead: None };
        match engine {
            EngineState::Dead(reason) => {
                Self { dead: Some(reason.clone()), ..unready(format!("engine dead: {reason}")) }
            }
            EngineState::Restarting => unready("the scheduler is restarting".to_owned()),
            EngineState::Ready | EngineState::Busy if draining => unready("draining".to_owned()),
            EngineState::Busy if idle > STALL_AFTER => {
                unready(format!("the engine has been in one step for {} s", idle.as_secs()))
            }
            EngineState::Ready | EngineState::Busy => Self::default(),
        }
    }
}

impl Service for Serving {
    fn decide(
        &self,
        caller: Caller,
        decision: Decision,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Decided, DecideError>> {
        self.decided(caller, decision, arrival).boxed()
    }

    fn unpin(&self, caller: Caller, handle: String) -> BoxFuture<'_, Result<bool, DecideError>> {
        async move {
            // What is no handle is the handle of nothing.
            let Ok(pin) = handle.parse::<PinHandle>() else { return Ok(false) };
            Ok(self.decider.actors().unpin(caller.tenant, pin).await?)
        }
        .boxed()
    }

    fn prewarm(
        &self,
        caller: Caller,
        request: Prewarm,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Prewarmed, DecideError>> {
        self.prewarmed(caller, request, arrival).boxed()
    }

    fn models(&self) -> Vec<ModelEntry> {
        entries(&self.facts)
    }

    fn served_name(&self) -> &str {
        first_name(&self.facts)
    }

    fn health(&self) -> Health {
        let Problem { unready: reason, dead } = self.engine_problem();
        let snapshot = self.decider.actors().snapshot();
        let load = &snapshot.load;
        let mut waiting = serde_json::Map::new();
        for lane in Lane::ALL {
            waiting.insert(lane.to_string(), load.waiting_in(lane).into());
        }
        let details = json!({
            "served_names": self.facts.served_names,
            "model": with_memory(&self.facts.details, &snapshot.residency),
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.started.elapsed().as_secs(),
            "engine": {
                "epoch": load.epoch,
                "steps": load.steps,
                "last_progress_s": load.last_progress.elapsed().as_secs_f64(),
                "tokens_per_second": load.tokens_per_second,
                "computed_tokens": load.totals.computed_tokens,
                "cached_tokens": load.totals.cached_tokens,
                "failures": load.totals.step_failures,
            },
            "queue": {
                "reads_waiting": waiting,
                "reads_in_flight": load.reads_in_flight,
                "tokens_waiting": load.tokens(),
                "decisions_open": load.decisions_open,
            },
            "residency": {
                "budget_bytes": snapshot.residency.budget,
                "used_bytes": snapshot.residency.used,
                "reserved_bytes": snapshot.residency.reserved,
                "pinned_bytes": snapshot.residency.pinned,
                "segments": snapshot.residency.segments,
                "evictions": snapshot.residency.evictions,
            },
            "state_boundary": {
                "pending": snapshot.registration.pending,
                "deferred": snapshot.registration.deferred,
                "registered": snapshot.registration.registered,
                "dropped": snapshot.registration.dropped,
                "failed": snapshot.registration.failed,
            },
        });
        Health { ready: reason.is_none(), reason, dead, details }
    }

    fn metrics(&self) -> String {
        let snapshot = self.decider.actors().snapshot();
        self.metrics.render() + &aliases(&snapshot)
    }
}

/// The model under each of its names.
pub(super) fn entries(facts: &ModelFacts) -> Vec<ModelEntry> {
    let entry = |name: &String| ModelEntry {
        name: name.clone(),
        description: facts.description.clone(),
        release_date: facts.release_date.clone(),
    };
    facts.served_names.iter().map(entry).collect()
}

/// The name that responses give.
pub(super) fn first_name(facts: &ModelFacts) -> &str {
    facts.served_names.first().map_or("docket", String::as_str)
}

/// What is known of the model, and what keys and values take now and may take beside the rest of its
/// memory; an engine that states none keeps none.
fn with_memory(details: &Value, residency: &ResidencyView) -> Value {
    let mut details = details.clone();
    if let Some(memory) = details.get_mut("memory") {
        memory["kv_budget_bytes"] = residency.budget.into();
        memory["kv_used_bytes"] = residency.used.into();
    }
    details
}

/// The gauges under the names by which routers and dashboards of the field know them.
fn aliases(snapshot: &actors::Snapshot) -> String {
    let (load, residency) = (&snapshot.load, &snapshot.residency);
    let share = residency.used as f64 / residency.budget.max(1) as f64;
    let gauge = |name: &str, value: f64| format!("# TYPE vllm:{name} gauge\nvllm:{name} {value}\n");
    gauge("num_requests_waiting", load.waiting() as f64)
        + &gauge("num_requests_running", load.reads_in_flight as f64)
        + &gauge("kv_cache_usage_perc", share.min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_of_over_a_minute_makes_the_server_unready_and_not_dead() {
        let of = |engine: &EngineState, seconds| {
            Problem::of(engine, false, Duration::from_secs(seconds))
        };
        let stuck = of(&EngineState::Busy, 61);
        assert!(stuck.unready.is_some_and(|reason| reason.contains("61 s")));
        assert_eq!(stuck.dead, None);
        assert_eq!(of(&EngineState::Busy, 60), Problem::default());
        assert_eq!(of(&EngineState::Ready, 3600), Problem::default(), "an idle engine is ready");
    }

    #[test]
    fn draining_and_death_are_told_apart() {
        let draining = Problem::of(&EngineState::Busy, true, Duration::from_hours(1));
        assert_eq!(draining, Problem { unready: Some("draining".to_owned()), dead: None });
        let dead = Problem::of(&EngineState::Dead("oom".to_owned()), true, Duration::ZERO);
        assert_eq!(dead.dead.as_deref(), Some("oom"));
    }
}
