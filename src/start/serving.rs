//! The service behind HTTP, over the real parts: decisions, prewarm, health, models and metrics.

pub(super) mod decisio;
mod monitors;
mod prewarming;
mod teaching;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::{Bucket, EngineState, LoadView, PinHandle, ResidencyView, TenantId};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hmac::{Hmac, Mac as _};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::{Value, json};
use sha2::Sha256;

use super::aliases::aliases;
use super::details;
use crate::config::BoundaryRegistration;
use crate::decide::{Asker, Decider};
use crate::error::DecideError;
use crate::question::Decision;
use crate::service::images::ImageLimits;
use crate::service::{
    Arrival, Caller, Decided, Estimate, Health, ModelEntry, Prewarm, Prewarmed, Service, Teaching,
};
use crate::state_key::Secret;
use crate::tasks::apply::plan;
use crate::tasks::desk::Desk;
use decisio::Settings;
use teaching::Teacher;

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
    /// The server's settings in effect, without secrets.
    pub settings: Value,
}

/// The decision server.
pub struct Serving {
    decider: Arc<Decider>,
    desk: Arc<Desk>,
    teacher: Teacher,
    settings: Settings,
    facts: ModelFacts,
    metrics: PrometheusHandle,
    /// Keys the tenants' salts and their states' keys; random at each start unless a fleet is to agree,
    /// since what it salts does not outlive the process.
    secret: Secret,
    /// A step that runs longer than this makes the server unready: either the engine is stuck, or
    /// steps are so long that others should be asked.
    stall_after: Duration,
    started: Instant,
}

impl fmt::Debug for Serving {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Serving").field("facts", &self.facts).finish_non_exhaustive()
    }
}

impl Serving {
    /// Joins the parts.
    pub(super) fn new(
        decider: Decider,
        (desk, settings): (Desk, Settings),
        (facts, metrics): (ModelFacts, PrometheusHandle),
        secret: Secret,
        stall_after: Duration,
    ) -> Self {
        let (decider, desk) = (Arc::new(decider), Arc::new(desk));
        let (own, shown) = (Arc::clone(&decider), Arc::clone(&desk));
        let teacher = Teacher::new(own, shown, *secret.salts(), settings.clone());
        let started = Instant::now();
        Self { decider, desk, teacher, settings, facts, metrics, secret, stall_after, started }
    }

    /// The decisions' maker.
    pub fn decider(&self) -> &Decider {
        &self.decider
    }

    fn asker(&self, caller: &Caller, arrival: Arrival) -> Asker {
        let salt = salted(self.secret.salts(), caller);
        let since = tokio::time::Instant::from_std(arrival.at);
        Asker { tenant: caller.tenant.clone(), salt, since }
    }

    async fn decided(
        &self,
        caller: Caller,
        mut decision: Decision,
        arrival: Arrival,
    ) -> Result<Decided, DecideError> {
        self.check_model(&decision)?;
        let manner = decision.manner;
        let prompter = self.decider.prompters().base(manner, decision.profile.as_deref())?;
        let temperatures = prompter.profile().temperature;
        let commits = self.settings.letters.noul_commit;
        let plan = plan(&self.desk, &caller.tenant, (&mut decision, commits), &temperatures)?;
        let mut made = self.decider.decide(self.asker(&caller, arrival), decision).await?;
        plan.finish(&mut made.answers);
        let open = made.decision;
        let tier = open.tier();
        let served: Box<dyn FnOnce() + Send> = match self.settings.register {
            BoundaryRegistration::Before => {
                open.responded();
                Box::new(|| ())
            }
            BoundaryRegistration::After | BoundaryRegistration::Off => {
                Box::new(move || open.responded())
            }
        };
        let model = self.served_name().to_owned();
        Ok(Decided {
            answers: made.answers,
            cost: made.cost,
            tasks: plan.tasks,
            model,
            stages: made.stages,
            reused: made.reused,
            tier,
            state_text: made.state_text,
            state_key: Some(self.secret.key(&[&made.state])),
            served,
        })
    }

    /// Refuses a decision that insists on a model which is not served.
    fn check_model(&self, decision: &Decision) -> Result<(), DecideError> {
        let available = &self.facts.served_names;
        match &decision.model {
            Some(name) if !available.contains(name) => Err(DecideError::UnknownModel {
                name: name.chars().take(crate::dialect::ECHO_CHARS_MAX).collect(),
                available: available.clone(),
            }),
            Some(_) | None => Ok(()),
        }
    }

    fn engine_problem(&self) -> Problem {
        let snapshot = self.decider.actors().snapshot();
        Problem::of(&snapshot.load, snapshot.draining, self.stall_after)
    }
}

/// The salt of a caller's segments: the tenant's, with the caller's own hashed in. A caller can narrow
/// who shares with it, and never reach what belongs to another tenant.
fn salted(secret: &[u8; 32], caller: &Caller) -> [u8; 32] {
    #[expect(clippy::expect_used, reason = "HMAC takes keys of every length")]
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("any key length");
    mac.update(&(caller.tenant.0.len() as u64).to_le_bytes());
    mac.update(caller.tenant.0.as_bytes());
    mac.update(caller.salt.as_deref().unwrap_or_default().as_bytes());
    mac.finalize().into_bytes().into()
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
    /// * `stall_after`: after what time without the end of a step something is wrong.
    fn of(load: &LoadView, draining: bool, stall_after: Duration) -> Self {
        let unready = |reason: String| Self { unready: Some(reason), dead: None };
        let stuck =
            load.stuck_since.map(|since| since.elapsed()).filter(|time| *time > stall_after);
        match (&load.engine, stuck) {
            (EngineState::Dead(reason), _) => {
                Self { dead: Some(reason.clone()), ..unready(format!("engine dead: {reason}")) }
            }
            (EngineState::Restarting, _) => unready("the scheduler is restarting".to_owned()),
            (EngineState::Ready | EngineState::Busy, _) if draining => {
                unready("draining".to_owned())
            }
            (EngineState::Busy, Some(time)) => {
                unready(format!("the engine has been in one step for {:.1} s", time.as_secs_f64()))
            }
            (EngineState::Ready, Some(time)) => {
                unready(format!("reads wait, and no step ran for {:.1} s", time.as_secs_f64()))
            }
            (EngineState::Ready | EngineState::Busy, None) => Self::default(),
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

    fn estimate(
        &self,
        caller: Caller,
        decision: Decision,
        arrival: Arrival,
    ) -> BoxFuture<'_, Result<Estimate, DecideError>> {
        async move {
            self.check_model(&decision)?;
            let asker = self.asker(&caller, arrival);
            let deadline = self.decider.deadline(asker.since, decision.timeout);
            let since = asker.since;
            self.decider.in_time(since, deadline, self.decider.estimate(asker, decision)).await
        }
        .boxed()
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

    fn token_bucket(&self, tenant: &TenantId) -> Option<Bucket> {
        self.decider.actors().bucket(tenant)
    }

    fn models(&self) -> Vec<ModelEntry> {
        entries(&self.facts, true)
    }

    fn served_name(&self) -> &str {
        first_name(&self.facts)
    }

    fn health(&self) -> Health {
        let Problem { unready: reason, dead } = self.engine_problem();
        let snapshot = self.decider.actors().snapshot();
        let config = self.decider.actors().config();
        let details = json!({
            "served_names": self.facts.served_names,
            "model": with_memory(&self.facts.details, &snapshot.residency),
            "version": env!("CARGO_PKG_VERSION"),
            "uptime_s": self.started.elapsed().as_secs(),
            "engine": details::engine(&snapshot.load),
            "restarts": details::restarts(&snapshot),
            "queue": details::queue(&snapshot, config),
            "residency": details::residency(&snapshot),
            "tenants": details::tenants(&snapshot),
            "state_boundary": details::registration(&snapshot),
            "limits": details::limits(config),
            "config": self.facts.settings,
        });
        Health { ready: reason.is_none(), reason, dead, details }
    }

    fn dead(&self) -> Option<String> {
        self.decider.actors().death()
    }

    fn metrics(&self) -> String {
        let actors = self.decider.actors();
        let snapshot = actors.show_gauges();
        crate::telemetry::ready(self.engine_problem().unready.is_none());
        let own = self.metrics.render();
        let aliases = aliases(&own, &snapshot, actors.caps(), self.served_name());
        own + &aliases + &monitors::monitors(&self.desk)
    }

    fn images(&self) -> Option<ImageLimits> {
        let sees = self.decider.actors().caps().sees_images;
        sees.then_some(ImageLimits { count_max: crate::http::IMAGES_MAX })
    }

    fn teaching(&self) -> Option<&dyn Teaching> {
        Some(&self.teacher)
    }
}

/// The model under each of its names.
///
/// * `is_readable`: whether questions can be read from it.
pub(super) fn entries(facts: &ModelFacts, is_readable: bool) -> Vec<ModelEntry> {
    let entry = |name: &String| ModelEntry {
        name: name.clone(),
        description: facts.description.clone(),
        release_date: facts.release_date.clone(),
        precision: facts.details["precision"].as_str().map(str::to_owned),
        context_tokens: facts.details["context_tokens"].as_u64(),
        is_readable,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The problem, with a limit of a minute, when nothing has begun or ended for so many seconds.
    fn problem(engine: EngineState, draining: bool, stuck_s: Option<u64>) -> Problem {
        let now = tokio::time::Instant::now();
        let stuck_since = stuck_s.map(|seconds| now - Duration::from_secs(seconds));
        let load = LoadView { engine, stuck_since, ..LoadView::idle(0, now) };
        Problem::of(&load, draining, Duration::from_mins(1))
    }

    #[test]
    fn a_step_of_over_a_minute_makes_the_server_unready_and_not_dead() {
        let stuck = problem(EngineState::Busy, false, Some(61));
        assert!(stuck.unready.is_some_and(|reason| reason.contains("61.0 s")));
        assert_eq!(stuck.dead, None);
        assert_eq!(problem(EngineState::Busy, false, Some(59)), Problem::default());
        assert_eq!(problem(EngineState::Ready, false, None), Problem::default(), "idle");
    }

    #[test]
    fn reads_that_wait_while_nothing_runs_make_the_server_unready() {
        let stuck = problem(EngineState::Ready, false, Some(61));
        assert!(stuck.unready.is_some_and(|reason| reason.contains("reads wait")));
    }

    #[test]
    fn draining_and_death_are_told_apart() {
        let draining = problem(EngineState::Busy, true, Some(3600));
        assert_eq!(draining, Problem { unready: Some("draining".to_owned()), dead: None });
        let dead = problem(EngineState::Dead("oom".to_owned()), true, None);
        assert_eq!(dead.dead.as_deref(), Some("oom"));
    }
}
